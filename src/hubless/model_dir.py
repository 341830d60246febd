"""Saved movers: a folder with config.json, model.safetensors (the learned arrays) and README.md, a card."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from .movers import Mover
from .state import KEYS, check_names, describe, restore

FORMAT, FORMAT_VERSION = "hubless mover", 1
FILES = CONFIG, ARRAYS, CARD = "config.json", "model.safetensors", "README.md"


def save(mover: Mover, folder: str | os.PathLike[str]) -> None:
    """Save a fitted mover as a folder, which `load` reads.

    Parameters
    ----------
    mover : a fitted mover, of any array library and on any device
        Not Regress, whose regressor could be anything.
    folder : path
        A new or an empty folder, or one with a saved mover, which is replaced at the end or not at all.

    Notes
    -----
    What `set_output` and metadata routing were told is not saved.

    Examples
    --------
    >>> import hubless, tempfile
    >>> from hubless.movers import Shrink
    >>> mover = Shrink(0.5).fit([[0.0], [4.0], [9.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hubless.save(mover, folder)
    ...     hubless.load(folder).move([[1.0]], ["b"]).tolist()
    [[5.0]]
    """
    folder = Path(folder).expanduser().resolve()
    config, arrays = describe(mover)
    _check_replaceable(folder)
    with _replacing(folder) as part:
        (part / CARD).write_text(_card(mover), encoding="utf-8")
        rows = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # all that it can write
        safetensors.numpy.save_file(rows, part / ARRAYS)
        shutil.copymode(part / CARD, part / ARRAYS)  # safetensors makes a file that only its owner can read
        with (part / ARRAYS).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "hubless_version": _own_version()}
        text = json.dumps({**head, **config, "sha256": {ARRAYS: digest}}, indent=1)
        (part / CONFIG).write_text(text + "\n", encoding="utf-8")


def load(folder: str | os.PathLike[str], device: str = "cpu") -> Mover:
    """The mover saved in a folder: it moves objects to where the saved one does, to the last bit.

    Parameters
    ----------
    folder : path
        What `save` wrote. It may come from a stranger: loading it runs no code of theirs.
    device : str, default="cpu"
        "cpu" gives a mover of NumPy arrays; another, as "cuda", one of torch tensors there ("cpu:0" on the
        processor). Where that is not what the mover was fitted with, products may differ in the last bits.

    Examples
    --------
    See `save`.
    """
    folder = Path(folder).expanduser()
    _check_complete(folder)
    try:
        config = _read_config(folder / CONFIG)
        arrays = _read_arrays(folder / ARRAYS, config["sha256"])
        return restore(config, arrays, device)
    except (ArithmeticError, LookupError, RecursionError, SafetensorError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder} cannot be loaded: {str(error).rstrip('.')}. Copy the whole folder again from where it "
            "was made, or save the mover again with this hubless."
        ) from error


def _check_complete(folder: Path) -> None:
    """Refuse a folder that is not there or lacks a file."""
    missing = [path for path in (folder / CONFIG, folder / ARRAYS) if not path.is_file()]
    if missing:
        left = sorted(folder.parent.glob(f".{folder.name}.*.old"))
        hint = f" A save that was cut short left the former mover in {left[-1]}: rename that." if left else ""
        raise FileNotFoundError(
            f"{missing[0]} is not there. Give the folder that hubless.save wrote, with {CONFIG} and {ARRAYS} "
            f"in it.{hint}"
        )


def _read_config(path: Path) -> dict[str, Any]:
    """config.json, of the version that is read here."""
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f'{CONFIG} is not one of a saved mover: it has no "format": "{FORMAT}".')
    if config.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"its format_version is {config.get('format_version')!r}, this hubless reads {FORMAT_VERSION}: "
            f"install hubless {config.get('hubless_version')}, which wrote it."
        )
    check_names(config, ("format", "format_version", "hubless_version", "sha256", *KEYS), CONFIG)
    return config


def _read_arrays(path: Path, digests: Any) -> dict[str, np.ndarray]:
    """Learned arrays; they are read once, so what is used is what was checked."""
    check_names(digests, [ARRAYS], "sha256")
    content = path.read_bytes()
    if (got := hashlib.sha256(content).hexdigest()) != digests[ARRAYS]:
        raise ValueError(
            f"{ARRAYS} is damaged or of another mover: sha256 {got}, expected {digests[ARRAYS]}."
        )
    return safetensors.numpy.load(content)


def _check_replaceable(folder: Path) -> None:
    """Refuse to replace anything but a saved mover."""
    held = sorted(os.listdir(folder)) if folder.is_dir() else []
    is_model = (
        set(held) <= set(FILES) and CONFIG in held and FORMAT.encode() in (folder / CONFIG).read_bytes()
    )
    if (held and not is_model) or (folder.exists() and not folder.is_dir()):
        told = f"a folder with {', '.join(held[:5])}" if held else "a file"
        raise FileExistsError(
            f"{folder} is {told}, not just a saved mover, and stays as it is. Give a new or an empty folder."
        )


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A folder to fill that becomes `folder` at the end, whole, or is removed.

    A folder cannot be renamed onto a full one, so the former one makes way first: a kill at that very moment
    leaves it whole under a hidden name, which `load` tells.
    """
    mark = uuid4().hex[:8]
    part, old = (folder.with_name(f".{folder.name}.{mark}.{end}") for end in ("part", "old"))
    part.mkdir(parents=True)
    try:
        yield part
        if folder.exists():
            os.rename(folder, old)
        os.rename(part, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _own_version() -> str:
    try:
        return version("hubless")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def _card(mover: Any) -> str:
    """README.md: what the mover is, and how to use it."""
    name, asks = type(mover).__name__, "Z, y" if mover._uses_labels else "Z"
    column = (
        "as they are"
        if mover.exit_.floor is None
        else "as they are, with a 0 in the one column more that moved objects have"
    )
    return f"""# {name}

{(type(mover).__doc__ or "").strip().splitlines()[0]}

```
{mover!r}
```

Saved by hubless {_own_version()}, for objects of {mover.n_features_in_} columns. Load it, store what it
moved in an index by Euclidean distance, and ask that index with queries {column}:

```python
import hubless

mover = hubless.load("path/to/this/folder")
stored = mover.move({asks})  # objects, one a row{", and their classes" if mover._uses_labels else ""}
asked = mover.transform(queries)  # {column}
```

`config.json` has its parameters, `{ARRAYS}` what it learned. Loading runs no code of this folder.
"""
