"""Saved models: a folder with config.json, model.safetensors (the learned arrays) and README.md, a card."""

import hashlib
import json
import os
import platform
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from .card import card as _card
from .card import own_version
from .inputs import check_count
from .model_files import check_header, kind_of, left_behind, parse_json, read_file, replacing
from .models import describe_model, keys_of, restore_model
from .plain import check_names, short
from .state import KEYS

FORMAT = "hubless mover"  # of all models: by it, a hubless that knows version 1 alone tells what to install
FORMAT_VERSION = 2
FILES = CONFIG, ARRAYS, CARD = "config.json", "model.safetensors", "README.md"
HEAD = ("format", "format_version", "hubless_version", "sha256")
LIBRARIES = ("hubless", "numpy", "python", "safetensors", "scikit-learn")
MOST_CONFIG = 64 << 20  # bytes of config.json
REFUSALS = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError),
    SafetensorError,
)


def save(model: Any, folder: str | os.PathLike[str]) -> None:
    """Save a fitted model as a folder, which `load` reads.

    Parameters
    ----------
    model : a fitted mover, classifier or other estimator of hubless, or a Repair of an index
        Of any array library and on any device. Not Regress, whose regressor could be anything.
    folder : path
        A new or an empty folder, or one with a saved model, which is replaced at the end or not at all.

    Notes
    -----
    What `set_output` and metadata routing were told is not saved, nor is `device`.

    All is on the disk before the folder gets its name, so that a full disk, a kill or a power cut leaves the
    former model or the new one. A kill may leave a hidden folder beside it, `.NAME.*.part`, which can be
    removed; one between two renames leaves the former model as `.NAME.*.old`, which `load` then tells.

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
    config, arrays = describe_model(model)
    rows = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # all that it can write
    _check_loadable(_text(config, "0" * 64), rows)
    _check_replaceable(folder)
    with replacing(folder) as part:
        (part / CARD).write_text(_card(model), encoding="utf-8")
        try:
            safetensors.numpy.save_file(rows, part / ARRAYS)
        except SafetensorError as error:
            raise OSError(f"{part / ARRAYS} could not be written: {error}") from error
        shutil.copymode(part / CARD, part / ARRAYS)  # safetensors makes a file that only its owner can read
        with (part / ARRAYS).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        (part / CONFIG).write_text(_text(config, digest), encoding="utf-8")


def load(folder: str | os.PathLike[str], device: str = "cpu", *, max_bytes: int = 4 << 30) -> Any:
    """The model saved in a folder: it moves, answers and transforms as the saved one does, to the last bit.

    Parameters
    ----------
    folder : path
        What `save` wrote. It may come from a stranger: loading it runs no code of theirs.
    device : str, default="cpu"
        "cpu" gives a model of NumPy arrays; another, as "cuda", one of torch tensors there ("cpu:0" on the
        processor). Where that is not what the model was fitted with, products may differ in the last bits.
    max_bytes : int, default=4 GiB
        A larger file of arrays is refused before it is read.

    Examples
    --------
    See `save`.
    """
    folder = Path(folder).expanduser()
    check_count("max_bytes", max_bytes)
    _check_complete(folder)
    try:
        config = _checked_config(read_file(folder, CONFIG, MOST_CONFIG))
        arrays = _read_arrays(folder, config.pop("sha256"), max_bytes)
        return restore_model(config, arrays, device)
    except REFUSALS as error:
        told = str(error).rstrip(".")
        raise ValueError(
            f"{folder} cannot be loaded: {told if len(told) <= 2000 else told[:2000] + ' …'}. Copy the whole "
            "folder again from where it was made, or save the mover again with this hubless."
        ) from error


def _text(config: dict[str, Any], digest: str) -> str:
    """config.json."""
    known = {"hubless": own_version(), "python": platform.python_version()}
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "hubless_version": own_version(),
        "versions": {name: known.get(name) or version(name) for name in LIBRARIES},
        "sha256": {ARRAYS: digest},
    }
    return json.dumps({**head, **config}, indent=1) + "\n"


def _check_loadable(text: str, arrays: dict[str, np.ndarray]) -> None:
    """Refuse to write what `load` would refuse to read, as it may take the place of a good model."""
    if len(text) > MOST_CONFIG:
        raise ValueError(f"{CONFIG} would have {len(text)} bytes; at most {MOST_CONFIG} are read.")
    try:
        restore_model(_checked_config(text), arrays, "cpu")
    except REFUSALS as error:
        raise ValueError(f"it cannot be saved, as it could not be loaded again: {error}") from error


def _check_complete(folder: Path) -> None:
    """Refuse a folder that is not there or lacks a file."""
    for path in (folder / CONFIG, folder / ARRAYS):
        if (told := kind_of(path)) is not None:
            left = left_behind(folder, (CONFIG, ARRAYS))
            hint = f" A save that was cut short left the former mover in {left}: rename that." if left else ""
            raise FileNotFoundError(
                f"{path} is {told}. Give the folder that hubless.save wrote, with {CONFIG} and {ARRAYS} "
                f"in it.{hint}"
            )


def _checked_config(text: str | bytes) -> dict[str, Any]:
    """config.json, of a version that is read here, with all that version 2 has in common."""
    config = parse_json(text)
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f'{CONFIG} is not one of a saved mover: it has no "format": "{FORMAT}".')
    found = config.get("format_version")
    if type(found) is not int or found not in (1, 2):
        raise ValueError(
            f"its format_version is {short(found)}, this hubless reads 1 and 2: install hubless "
            f"{config.get('hubless_version')}, which wrote it."
        )
    if found == 1:
        check_names(config, (*HEAD, *KEYS), CONFIG)
        config |= {"kind": "mover", "metric": "l2", "fingerprint": None}
        return config | {"dimension": config["n_features_in_"]}
    check_names(config, (*HEAD, "versions", *keys_of(config.get("kind"))), CONFIG)
    check_names(config["versions"], LIBRARIES, "versions")
    if not all(isinstance(told, str) for told in (config["hubless_version"], *config["versions"].values())):
        raise ValueError(f"versions are {short(config['versions'])}; expected texts.")
    return config


def _read_arrays(folder: Path, digests: Any, max_bytes: int) -> dict[str, np.ndarray]:
    """Learned arrays; they are read once, so what is used is what was checked."""
    check_names(digests, [ARRAYS], "sha256")
    content = read_file(folder, ARRAYS, max_bytes, "; where you trust it, give a larger max_bytes")
    if (got := hashlib.sha256(content).hexdigest()) != digests[ARRAYS]:
        raise ValueError(
            f"{ARRAYS} is damaged or of another mover: sha256 {got}, expected {short(digests[ARRAYS])}."
        )
    check_header(content, ARRAYS)
    return safetensors.numpy.load(content)


def _check_replaceable(folder: Path) -> None:
    """Refuse to replace anything but a saved model."""
    held = sorted(os.listdir(folder)) if folder.is_dir() else []
    if (held and not _is_model(folder, held)) or (folder.exists() and not folder.is_dir()):
        told = f"a folder with {', '.join(held[:5])}" if held else "a file"
        raise FileExistsError(
            f"{folder} is {told}, not just a saved mover, and stays as it is. Give a new or an empty folder."
        )


def _is_model(folder: Path, held: list[str]) -> bool:
    if not set(held) <= set(FILES) or CONFIG not in held or any(kind_of(folder / name) for name in held):
        return False
    try:
        return FORMAT.encode() in read_file(folder, CONFIG, MOST_CONFIG)
    except ValueError:
        return False
