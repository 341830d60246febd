"""What fuzzing found, kept: each file once broke a reader (see benchmarks/fuzz.py), and must not again.

A folder of corpus/TARGET is one case: the files beside each other, of which TARGET's reader reads the first.
"""

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.fuzz_child import problem_of, snapshot
from benchmarks.fuzz_targets import TARGETS, case, valid
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.support.cache import load_arrays

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(folder for target in CORPUS.iterdir() for folder in target.iterdir())
NAMES = {target.replace(" ", "-"): target for target in TARGETS}


@pytest.mark.parametrize("folder", [pytest.param(f, id=f"{f.parent.name}/{f.name}") for f in CASES])
@pytest.mark.filterwarnings("ignore")
def test_what_was_found_is_read_or_refused_in_one_line(folder, tmp_path):
    target = NAMES[folder.parent.name]
    shutil.copytree(folder, tmp_path / "case")
    first, before, error = next(iter(valid(target)[0])), snapshot(tmp_path), None
    try:
        TARGETS[target].read(tmp_path / "case", first)
    except Exception as raised:
        error = raised
    assert error is None or problem_of(error, {}) is None
    assert snapshot(tmp_path) == before


READ = [
    pytest.param(name, marks=[pytest.mark.services] * (target.package in {"hnswlib", "usearch"}))
    for name, target in sorted(TARGETS.items())
    if name != "source"
]


@pytest.mark.parametrize("target", READ)  # of which some are rightly refused
def test_valid_examples_are_read(target, tmp_path):
    for number, files in enumerate(valid(target)):
        for name, content in files.items():
            file = tmp_path / str(number) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        TARGETS[target].read(tmp_path / str(number), next(iter(files)))


def test_a_case_is_made_again_from_its_number():
    for target in ("npy", "model", "items.json"):
        made = [case(target, 5, number) for number in range(20)]
        assert made == [case(target, 5, number) for number in range(20)]
        assert len({str(one) for one in made}) > 15


@pytest.mark.parametrize("kind", ["loop", "pipe"])
@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet", "v.arrow", "v.hdf5", "v.faiss"])
def test_a_link_to_itself_or_a_pipe_is_no_file(name, kind, tmp_path):
    """A pipe would be waited for without end."""
    path = tmp_path / name
    if kind == "loop":
        path.symlink_to(path)
    else:
        os.mkfifo(path)
    for source in (path, tmp_path):
        if source == tmp_path and (kind == "loop" or name == "v.faiss"):
            continue
        with pytest.raises(StoreError, match=r"does not exist|is a pipe"):
            open_store(source).facts()
    if kind == "pipe":
        assert load_arrays(path, ["A"]) is None


def test_a_home_of_nobody_is_a_path_that_does_not_exist():
    with pytest.raises(StoreError, match="does not exist"):
        open_store("~nobody-has-this-name/v.npy").facts()
