"""Count the files in which a function of hubless is called by the four calls of docs/design.md.

python docs/walks.py            # prints the files of each
python docs/walks.py --write    # writes their numbers into docs/design.md
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

import hubless
from hubless import MoveLabeledClassifier
from hubless.cli import main as run_verb

PAGE = Path(__file__).parent / "design.md"
PACKAGE = Path(hubless.__file__).parent
FUNCTION = 1  # the flag of code that is a function, and not the body of a class or a module


def visited(call: Callable[[], Any]) -> list[str]:
    """Return the files of the package in which the call runs a function."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_named = not code.co_name.startswith("<") and code.co_flags & FUNCTION
        if event == "call" and is_named and code.co_filename.startswith(str(PACKAGE)):
            file = str(Path(code.co_filename).relative_to(PACKAGE))
            if file not in files and not is_importing(frame):
                files.add(file)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(files)


def is_importing(frame: FrameType | None) -> bool:
    """Say whether a module of the package is being imported, which happens once in a process."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            return True
        frame = frame.f_back
    return False


def write_inputs() -> tuple[np.ndarray, np.ndarray]:
    """Write a small index with labels, and the data set of the experiment, into the current folder."""
    import faiss

    X, y = make_blobs(600, 40, centers=8, cluster_std=2.5, center_box=(-1, 1), random_state=0)
    index = faiss.IndexFlatL2(40)
    index.add(X.astype(np.float32))
    faiss.write_index(index, "index.faiss")
    Path("items.csv").write_text("id,category\n" + "".join(f"a{i},c{c}\n" for i, c in enumerate(y)))
    return X, y


def walks() -> dict[str, list[str]]:
    """Return the files of each call, by the heading of its walk."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            X, y = write_inputs()
            index = ["index.faiss", "--items", "items.csv", "--labels", "category"]
            cell = ["--datasets", "iris", "--splits", "1", "--methods", "move-labeled"]
            return {
                "`MoveLabeledClassifier": visited(lambda: MoveLabeledClassifier().fit(X, y)),
                "`hubless fit": visited(lambda: run_verb(["fit", *index, "-o", "model"])),
                "`hubless reproduce": visited(lambda: run_verb(["reproduce", *cell, "--out", "results"])),
                "`hubless report": visited(lambda: run_verb(["report", *index, "-o", "page.html"])),
            }
        finally:
            os.chdir(before)


def numbered(text: str, counts: dict[str, list[str]]) -> str:
    """Return the page with the number of files in each heading."""
    for start, files in counts.items():
        text, n = re.subn(
            rf"^(### {re.escape(start)}.*): .* files$", rf"\1: {len(files)} files", text, flags=re.M
        )
        assert n == 1, start
    return text


if __name__ == "__main__":
    counts = walks()
    for start, files in counts.items():
        print(f"{start.strip('`')}: {len(files)}\n  {' '.join(files)}")
    if "--write" in sys.argv:
        PAGE.write_text(numbered(PAGE.read_text(), counts))
