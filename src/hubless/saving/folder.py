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

from ..arrays.inputs import check_count
from ..support.credentials import without_secrets
from ..support.nearest import files_near
from ..support.outputs import check_output, real_path
from ..support.progress import step
from ..support.text import printable, short
from ..support.untrusted_json import parse_json
from ..support.version import __version__
from ..support.writing import new_folder
from .card import card
from .hub_download import fetch
from .state import describe, restore
from .untrusted import check_header, kind_of, left_behind, read_file
from .values import check_names, class_named, expect

FORMAT, FORMAT_VERSION = "hubless model", 1
FILES = CONFIG, ARRAYS, CARD = "config.json", "model.safetensors", "README.md"
KEYS = ("format", "format_version", "versions", "sha256", "dimension", "metric", "fingerprint", "model")
LIBRARIES = ("hubless", "numpy", "python", "safetensors", "scikit-learn")
MAX_CONFIG = 64 << 20  # bytes of config.json
HUB = "hf:/"  # the start of an address on the Hub, as a Path spells it, too
AGAIN = "Copy the whole folder again from where it was made, or save the model again with this hubless."
AGAIN_FROM_HUB = (
    "Upload it again with this hubless; where the download is to blame, remove it from the cache (`hf cache "
    "rm`) and load again."
)
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
        A new or an empty folder, or one with a saved model, which is replaced at the end or not at all. A
        link to such a folder stays; a link to nothing is refused.

    Notes
    -----
    Settings of `set_output` and of metadata routing are not saved, nor is `device`.

    Everything is on the disk before the folder gets its name, so a full disk, a killed process or a power cut
    leaves the old model or the new one. A killed process may leave a hidden folder beside it, `.NAME.*.part`,
    which can be removed; killed between two renames, it leaves the old model as `.NAME.*.old`, and `load`
    says so.

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
    folder = check_replaceable(folder)
    config, arrays = _describe(model)
    rows = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # safetensors needs that
    _check_loadable(_text(config, "0" * 64), rows)
    with step(f"writing {folder.name}"), new_folder(folder, replace=True) as part:
        (part / CARD).write_text(card(model), encoding="utf-8")
        try:
            safetensors.numpy.save_file(rows, part / ARRAYS)
        except SafetensorError as error:
            raise OSError(f"{part / ARRAYS} could not be written: {error}") from error
        shutil.copymode(part / CARD, part / ARRAYS)  # safetensors makes a file that only its owner can read
        with (part / ARRAYS).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        (part / CONFIG).write_text(_text(config, digest), encoding="utf-8")


def load(folder: str | os.PathLike[str], device: str = "cpu", *, max_bytes: int = 4 << 30) -> Any:
    """Load the model saved in a folder: it moves, answers and transforms as the saved one, bit for bit.

    Parameters
    ----------
    folder : path or address
        A folder that `save` wrote, or hf://user/model, from the Hugging Face Hub, at a branch, tag or commit
        with hf://user/model@revision. It may be untrusted: loading it runs no code of it.
    device : str, default="cpu"
        "cpu" gives a model of NumPy arrays; another, such as "cuda", one of torch tensors there ("cpu:0" on
        the processor). Where that is not what the model was fitted with, products may differ in the last
        bits.
    max_bytes : int, default=4 GiB
        A larger file of arrays is refused before it is read.

    Examples
    --------
    >>> import hubless
    >>> from hubless.movers import Shrink
    >>> hubless.save(Shrink(0.5).fit([[0.0], [4.0], [9.0]], ["a", "a", "b"]), "model")
    >>> hubless.load("model").move([[1.0]], ["b"]).tolist()  # half of the way to 9
    [[5.0]]
    """
    check_count("max_bytes", max_bytes)
    limits = {CONFIG: MAX_CONFIG, ARRAYS: max_bytes}
    if str(folder).startswith(HUB):
        paths, again = fetch(os.fspath(folder), limits), AGAIN_FROM_HUB
    else:
        folder = Path(os.path.expanduser(folder))
        _check_complete(folder)
        paths, again = {name: folder / name for name in limits}, AGAIN
    try:
        config = _checked_config(read_file(paths[CONFIG].parent, paths[CONFIG].name, MAX_CONFIG))
        arrays = _read_arrays(paths[ARRAYS], config["sha256"], max_bytes)
        return _restore(config, arrays, device)
    except REFUSALS as error:
        reason = printable(str(error)).rstrip(".")
        reason = reason if len(reason) <= 2000 else reason[:2000] + " …"
        raise ValueError(f"{folder} cannot be loaded: {reason}. {again}") from error


def _describe(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a fitted model as JSON and arrays; a model that is not an estimator describes itself."""
    node, arrays = model._describe() if hasattr(model, "_describe") else describe(model)
    return {**_about(model), "model": node}, arrays


def _about(model: Any) -> dict[str, Any]:
    """Return what a program may want to know about a model without loading it."""
    return {
        "dimension": int(getattr(model, "dimension", None) or model.n_features_in_),
        "metric": getattr(model, "metric", "l2"),
        "fingerprint": getattr(model, "fingerprint", None),
    }


def _restore(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Any:
    """Return the model that `_describe` was given, on a device; ValueError where that is not a model."""
    node = config["model"]
    kind = class_named(node.get("class")) if isinstance(node, dict) else None
    model = getattr(kind, "_restore", restore)(node, arrays, device)
    for name, value in _about(model).items():
        expect(config[name] == value, name, config[name], short(value))
    return model


def _text(config: dict[str, Any], digest: str) -> str:
    """Return the content of config.json."""
    known = {"hubless": __version__, "python": platform.python_version()}
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {name: known.get(name) or version(name) for name in LIBRARIES},
        "sha256": {ARRAYS: digest},
    }
    return json.dumps({**head, **config}, indent=1) + "\n"


def _check_loadable(text: str, arrays: dict[str, np.ndarray]) -> None:
    """Refuse to write what `load` would refuse to read, as it may replace a good model."""
    if len(text) > MAX_CONFIG:
        raise ValueError(f"{CONFIG} would have {len(text)} bytes; at most {MAX_CONFIG} are read.")
    try:
        _restore(_checked_config(text), arrays, "cpu")
    except REFUSALS as error:
        raise ValueError(f"it cannot be saved, as it could not be loaded again: {error}") from error


def _check_complete(folder: Path) -> None:
    """Refuse a folder that does not exist or lacks a file."""
    for path in (folder / CONFIG, folder / ARRAYS):
        if (problem := kind_of(path)) is not None:
            left = left_behind(folder, (CONFIG, ARRAYS))
            hint = f" An interrupted save left the old model in {left}: rename that." if left else ""
            hint = hint or ("" if folder.exists() else files_near(folder))
            raise FileNotFoundError(
                f"{without_secrets(str(path))} is {problem}. Give the folder that hubless.save wrote, with "
                f"{CONFIG} and {ARRAYS} in it.{hint}"
            )


def _checked_config(text: str | bytes) -> dict[str, Any]:
    """Return what config.json holds; ValueError where its format is not the one that is read here."""
    config = parse_json(text)
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f'{CONFIG} is not one of a saved model: it has no "format": "{FORMAT}".')
    written, versions = config.get("format_version"), config.get("versions")
    if type(written) is not int or written != FORMAT_VERSION:
        wrote = versions.get("hubless") if isinstance(versions, dict) else None
        raise ValueError(
            f"its format_version is {short(written)}, this hubless reads {FORMAT_VERSION}: install hubless "
            f"{short(wrote)}, which wrote it."
        )
    check_names(config, KEYS, CONFIG)
    check_names(versions, LIBRARIES, "versions")
    for name, value in config["versions"].items():
        expect(isinstance(value, str), f"the version of {name}", value, "a text")
    return config


def _read_arrays(path: Path, digests: Any, max_bytes: int) -> dict[str, np.ndarray]:
    """Return the learned arrays; the file is read once, so what is used is what was checked."""
    check_names(digests, [ARRAYS], "sha256")
    content = read_file(path.parent, path.name, max_bytes, "; where you trust it, give a larger max_bytes")
    if (got := hashlib.sha256(content).hexdigest()) != digests[ARRAYS]:
        raise ValueError(
            f"{ARRAYS} is damaged or of another model: sha256 {got}, expected {short(digests[ARRAYS])}."
        )
    check_header(content, ARRAYS)
    return safetensors.numpy.load(content)


def check_replaceable(folder: str | os.PathLike[str]) -> Path:
    """Return where `save` writes; OSError where it cannot, or where there is anything but a saved model."""
    folder = real_path(folder)
    held = sorted(os.listdir(folder)) if folder.is_dir() else []
    if (held and not _is_model(folder, held)) or (folder.exists() and not folder.is_dir()):
        what = f"a folder with {', '.join(held[:5])}" if held else "a file"
        raise FileExistsError(
            f"{folder} is {what}, not just a saved model, and is not changed. Give a new or an empty folder."
        )
    return check_output(folder)


def _is_model(folder: Path, held: list[str]) -> bool:
    if not set(held) <= set(FILES) or CONFIG not in held or any(kind_of(folder / name) for name in held):
        return False
    try:
        return FORMAT.encode() in read_file(folder, CONFIG, MAX_CONFIG)
    except ValueError:
        return False
