"""Open the store that a user typed: a file, a folder of files, or KIND:ADDRESS#TABLE (see kinds.py)."""

import os
import re
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ..support.credentials import without_secrets
from ..support.nearest import files_near
from .checks import check_metric
from .journal import was_interrupted
from .kinds import BUILT_IN, DATABASES, FOLDER, GROUP, SUFFIXES
from .store import Store, StoreError


def open_store(
    source: str | os.PathLike[str],
    *,
    vector: str | None = None,
    id: str | None = None,
    metric: str | None = None,
    items: str | os.PathLike[str] | None = None,
) -> Store:
    """Return the store with this name; it need not exist yet.

    Parameters
    ----------
    source : path, or KIND:ADDRESS#TABLE
    vector, id : str, optional
        Columns of the vectors and of the ids, where they cannot be guessed. Ids are unique.
    metric : "l2", "cosine" or "ip", optional
        How the store is searched, where it does not say so itself.
    items : path, optional
        A table with a row per item, for files and indexes that keep vectors alone.
    """
    text = os.fspath(source)
    check_metric(metric)
    store: Store = _class_for(text).from_source(text, vector=vector, id=id, metric=metric, items=items)
    return store


def _class_for(text: str) -> Any:
    scheme, colon, _ = text.partition(":")
    kind = class_of(scheme) if colon and scheme[:1].isalpha() else None
    if kind is not None:
        return kind
    path = Path(os.path.realpath(os.path.expanduser(text)))
    # a folder may be missing in the middle of a switch
    is_folder = os.path.isdir(path) or (not os.path.exists(path) and was_interrupted(path))
    kind = class_of(FOLDER if is_folder else path.suffix.lower())
    if kind is None:
        plug_ins = plug_in_names()
        more = f" Installed packages add {', '.join(plug_ins)}." if plug_ins else ""
        # a mistyped address may have its password anywhere: after // and :, before @, or after ?
        shown = re.sub(r"//.*:.*|:.*@|\?[^#]*", "…", without_secrets(text), flags=re.DOTALL)
        near = "" if colon or path.exists() else files_near(path, SUFFIXES)
        if path.suffix.lower() in (".csv", ".tsv", ".txt") and path.is_file():
            near = (
                ' Save the vectors in another form: np.save("vectors.npy", np.loadtxt(file, delimiter=",")).'
            )
        raise StoreError(
            f"{shown!r} is not a known store: files end in {', '.join(SUFFIXES)}, a folder "
            f"contains such files (not of indexes), and databases are {', '.join(DATABASES)}.{more}{near}"
        )
    return kind


def class_of(name: str) -> Any:
    """Return the class for a scheme, a suffix or FOLDER; None where no package provides one."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return getattr(import_module(f".{module}", __package__), attribute)
    plug_ins = list(entry_points(group=GROUP, name=name))
    if len(plug_ins) > 1:
        packages = " and ".join(sorted(map(_package, plug_ins)))
        raise StoreError(f"{packages} both provide a store {name!r}. Uninstall one of them.")
    return _load(plug_ins[0]) if plug_ins else None


def plug_in_names() -> list[str]:
    """Return the schemes and suffixes of other packages, without loading them."""
    return sorted(entry_points(group=GROUP).names)


def _load(plug_in: EntryPoint) -> Any:
    which = f"the store {plug_in.name!r} of {_package(plug_in)} ({plug_in.value})"
    try:
        kind = plug_in.load()
    except Exception as error:  # the code of another package may raise anything
        raise StoreError(
            f"{which} cannot be loaded: {type(error).__name__}: {error}. Update or uninstall that package."
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, Store)):
        raise StoreError(f"{which} is not a subclass of {Store.__module__}.Store. Update that package.")
    return kind


def _package(plug_in: EntryPoint) -> str:
    return "an unknown package" if plug_in.dist is None else f"the package {plug_in.dist.name}"
