"""The models that a loop keeps, and what it makes an index serve.

A moved copy is always built from the original vectors. One version cannot take the place of another in one
step: the index goes back to the original, the copy of the other version is built, and the index is switched
to it. Each of these is one step of the store, and between them the original serves. `serve` begins with what
the index is now, so a call that was killed is completed by calling it again.
"""

import re
from pathlib import Path

from ..repair.apply import apply_index, promote_index, rollback_index
from ..repair.index_items import as_repair
from ..repair.recall import LOST, measure_recall
from ..repair.repair import Repair
from ..saving import save
from ..stores.file_marks import forget_marks
from ..stores.files.file_store import FileStore
from ..stores.store import Store, StoreError
from ..support.writing import remove, sync_folder
from .loop_journal import VERSIONS
from .loop_state import LoopState, Version


def original_store(store: Store) -> Store:
    """Return the store of the original vectors: what serves, or what is kept while a moved copy serves."""
    mark = store.mark()
    if mark is None:
        return store
    if mark.original is None:
        raise StoreError(f"{store.name} is a moved copy that was not promoted. Give the index that serves.")
    return store.sibling(mark.original)


def serving_version(store: Store, state: LoopState) -> int:
    """Return the version that an index serves, or ORIGINAL; StoreError where another model moved it."""
    mark = store.mark()
    if mark is None:
        return 0
    for version in state.versions:
        if version.model == mark.model:
            return version.number
    raise StoreError(
        f"{store.name} was moved by model {mark.model[:12]}, which this loop did not make. Roll it back "
        "first: `hubless rollback`."
    )


def load_version(folder: Path, version: Version) -> Repair:
    """Return the model of a version; StoreError where its folder has another one."""
    path = folder / VERSIONS / version.folder
    model = as_repair(path)
    if model.hash != version.model:
        raise StoreError(f"{path} has another model than version {version.number}. Restore that folder.")
    return model


def keep_version(folder: Path, version: Version, model: Repair) -> None:
    """Save the model of a version."""
    save(model, folder / VERSIONS / version.folder)


def remove_versions(folder: Path, kept: LoopState) -> None:
    """Remove the folders that a loop made and that are not kept; anything else stays."""
    names, made = {version.folder for version in kept.versions}, folder / VERSIONS
    for path in made.iterdir() if made.is_dir() else ():
        if re.fullmatch(r"\d{4,}-[0-9a-f]{12}", path.name) and path.name not in names and _is_model(path):
            remove(path)


def _is_model(path: Path) -> bool:
    files = {"config.json", "model.safetensors", "README.md"}
    return path.is_dir() and not path.is_symlink() and {inside.name for inside in path.iterdir()} <= files


def serve(store: Store, model: Repair | None, ours: set[str], *, guard: bool = True) -> str | None:
    """Make an index serve the items moved by a model, or the original; return why not, else None.

    Parameters
    ----------
    ours : hashes of all models of this loop; copies that these moved, and that do not serve, are removed
    guard : bool
        Whether to refuse a copy whose approximate index finds fewer of the true neighbours.
    """
    store.recover()
    store.refresh()
    mark, wanted = store.mark(), None if model is None else model.hash
    if mark is not None and not (mark.model == wanted and mark.done):
        _check_nothing_is_lost(store)
        rollback_index(store)
        store.refresh()
        mark = None
    refusal = None
    if model is not None and mark is None:
        target = copy_name(store, model)
        apply_index(model, store, target)
        refusal = _lost_recall(store, store.sibling(target)) if guard else None
        if refusal is None:
            promote_index(store, target, model if store.can_reconcile else None)
            store.refresh()
    _remove_copies(store, ours)
    return refusal


def copy_name(store: Store, model: Repair) -> str:
    """Return a name for the moved copy of a version, which `sibling` takes."""
    name = store.moved_name
    if isinstance(store, FileStore):
        path = Path(name)
        return f"{path.stem}-{model.hash[:12]}{path.suffix}"
    return f"{name}_{model.hash[:12]}"


def _check_nothing_is_lost(store: Store) -> None:
    """Refuse to leave a moved copy whose rows the original lacks, or has changed since."""
    original, mark = original_store(store), store.mark()
    added = sum(int((~original.contains(ids)).sum()) for ids in store.ids())
    if added or (mark is not None and mark.changed):
        rows = f"{added:,} rows of {store.name} are" if added else f"{store.name} was changed, and this is"
        raise StoreError(
            f"{rows} not in the original, {original.name}, and would no longer be found. Add them to the "
            "original first; the loop then continues."
        )


def _lost_recall(blue: Store, green: Store) -> str | None:
    measured = measure_recall(blue, green)
    if measured is None or measured.after >= measured.before - LOST:
        return None
    return (
        f"the approximate index ({green.facts().index}) would find {measured.after:.1%} of the true "
        f"neighbours instead of {measured.before:.1%}"
    )


def _remove_copies(store: Store, ours: set[str]) -> None:
    """Remove the files with copies that models of this loop moved, and that do not serve.

    Copies in databases stay, under the names in the journal: removing a table is left to people.
    """
    if not isinstance(store, FileStore):
        return
    stem, suffix = re.escape(store.path.stem), re.escape(store.path.suffix)
    names = re.compile(rf"{stem}(-moved-[0-9a-f]{{12}}|\.moved-[0-9a-f]{{8}}(-\d+)?){suffix}")
    for path in sorted(store.path.parent.iterdir()):
        if not names.fullmatch(path.name) or path.is_symlink():
            continue
        copy = store.sibling(str(path))
        mark = copy.mark()
        if (
            mark is not None
            and mark.original is None
            and mark.model in ours
            and copy.is_made_from(store, mark)
        ):
            with copy.lock():
                remove(path)
                forget_marks(path)
    sync_folder(store.path.parent)
