"""Stores that are files, on Dask: workers read them, learn from them, and write moved copies.

The files must be where every worker sees them, under the same path.
"""

import os
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from ...stores.files.file_store import FileStore
from ...stores.files.parts import Parts
from ...stores.files.plain_files import NpyFile
from ...stores.opening import open_store
from ...stores.store import Batch, Store, StoreError
from ...support.imports import need
from ...support.progress import Step
from ..block import Block, Look
from ..sources import Prepare, check_label, facts_of
from .dask_objects import DaskObjects
from .engine import compute

BLOCK = 1 << 26  # bytes of a block


class Place(NamedTuple):
    """What opens a file again on a worker, and changes when the file is written to."""

    path: str
    options: tuple[tuple[str, Any], ...]
    written: int  # when it was last written to

    @staticmethod
    def of(store: FileStore) -> "Place":
        """Return the place of a file."""
        items = None if store.items is None else str(Path(store.items).resolve())
        options = {"vector": store.vector, "id": store.id, "metric": store.metric, "items": items}
        return Place(str(store.path), tuple(options.items()), os.stat(store.path).st_mtime_ns)


@lru_cache(maxsize=16)
def open_place(place: Place) -> Any:
    """Open the store of a place, once per worker."""
    return open_store(place.path, **dict(place.options))


def files_of(store: Store) -> list[FileStore]:
    """Return the files of a store; StoreError where workers cannot read it."""
    pieces = list(store.pieces())
    files = [piece for piece in pieces if isinstance(piece, FileStore)]
    if len(files) != len(pieces) or any(isinstance(piece, Parts) for piece in files):
        raise StoreError(
            f"{store.name} cannot be read by many workers at once: give .npy, Parquet or Arrow files, or a "
            "folder of them with the labels in a column; or leave out --dask."
        )
    return files


def objects_of_store(
    store: Store,
    label: str,
    prepare: Prepare | None,
    *,
    skip_bad: bool = False,
) -> DaskObjects:
    """Return labeled items of files, in blocks that workers read."""
    delayed, facts = need("dask", "dask").delayed, facts_of(store)
    check_label(store, facts, label)
    size = max(1, BLOCK // (facts.dimension * facts.itemsize))
    blocks, files = [], files_of(store)
    for file in files:
        place = Place.of(file)
        for start, last in _spans(file, size):
            name = file.name if len(files) > 1 else f"rows {start:,} to {last - 1:,} of {file.name}"
            blocks.append(delayed(read_block)(place, name, start, last, label, prepare))
    look = Look(facts.dimension, as_texts=True, may_miss=True, skip_bad=skip_bad)
    return DaskObjects(blocks, store.name, look, store.state)


def _spans(file: FileStore, size: int) -> list[tuple[int, int]]:
    """Return spans of rows of a file; an empty one where it cannot be read: reading it will report why."""
    try:
        return file.spans(size)
    except (OSError, ValueError):
        return [(0, 0)]


def read_block(place: Place, name: str, start: int, last: int, label: str, prepare: Prepare | None) -> Block:
    """Return a span of rows of a file; where they cannot be read, the block says why."""
    try:
        store = open_place(place)
        X, columns = store.read_span(start, last, [label])
        if store.is_read_whole and last == store.facts().count:
            store.refresh()
        X = X if prepare is None else prepare(X)
    except (OSError, ValueError) as error:
        return Block.unreadable(name, error)
    may_lack = store.may_lack_vectors or prepare is not None
    return Block(name, X, columns[label], start, may_lack)


# --- to move -----------------------------------------------------------------------------------------------


def write_moved(model: Any, blue: Store, green: Any, moving: Step) -> tuple[int, np.ndarray | None]:
    """Let workers write a moved copy, a part or a span of rows each.

    Returns
    -------
    rows : how many were written
    unmoved : how many of them are not moved, by reason; None where there are no rows
    """
    delayed = need("dask", "dask").delayed
    on_workers, path = delayed(model, pure=False), green.part_path()
    half = path / f".half-{uuid4().hex}"  # for parts that are not complete yet; it is removed at the end
    if isinstance(blue, Parts):
        tasks = _parts(model, on_workers, blue, half, green.build_mark)
    elif isinstance(blue, NpyFile):
        tasks = _rows(on_workers, blue, path, green.build_mark.width)
    else:
        raise StoreError(
            f"{blue.name} cannot be written by many workers: give .npy or a folder of parts, or leave out "
            "--dask."
        )
    moving.total = len(tasks)
    counts = compute(delayed(np.sum)(tasks, axis=0), tasks, moving) if tasks else None
    if half.exists():
        shutil.rmtree(half)
    return (0, None) if counts is None else (int(counts[0]), counts[1:])


def _parts(model: Any, shared: Any, blue: Parts, half: Path, mark: Any) -> list[Any]:
    """Return tasks that write the moved parts of a folder."""
    if blue.items is not None and (model.columns or model.steps is not None):
        raise StoreError(
            f"{blue.name} has its columns in a table beside it, for one process to read: leave out --dask."
        )
    half.mkdir(parents=True)
    blue.copy_others(half.parent)
    parts = blue.parts()
    starts = np.cumsum([0, *(part.facts().count for part in parts)]).tolist()
    firsts = starts[:-1] if blue.ids_are_row_numbers() else [None] * len(parts)  # counted through all parts
    move = need("dask", "dask").delayed(move_part)
    return [
        move(shared, Place.of(part), first, str(half), mark)
        for part, first in zip(parts, firsts, strict=True)
    ]


def _rows(shared: Any, blue: NpyFile, path: Path, width: int | None) -> list[Any]:
    """Return tasks that write the moved rows of a matrix, and create its file."""
    facts = blue.facts()
    row = (width or facts.dimension) * np.dtype(facts.dtype).itemsize
    with path.open("wb") as file:
        blue.write_head(file, width)
        first = file.tell()
        file.truncate(first + facts.count * row)
    place, size, move = Place.of(blue), max(1, BLOCK // row), need("dask", "dask").delayed(move_rows)
    return [
        move(shared, place, str(path), first, start, min(start + size, facts.count))
        for start in range(0, facts.count, size)
    ]


def move_part(model: Any, place: Place, first: int | None, half: str, mark: Any) -> np.ndarray:
    """Write the moved copy of one part in the folder for unfinished parts; once complete, it moves up.

    `first` is the number of its first row in all parts; None where rows have ids. Return the number of rows,
    and of those that are not moved, by reason.
    """
    store, count, unmoved = open_place(place), 0, 0
    made = Path(half, f"{uuid4().hex}-{store.path.name}")
    store.build_mark = mark
    with store.writer(store, made) as append:
        for batch in store.batches(model.columns):
            if first is not None:
                batch = batch._replace(ids=first + count + np.arange(len(batch.ids)))
            append(batch, model.move_batch(batch))
            count += len(batch.ids)
            unmoved = unmoved + model.count_unmoved(batch)
    os.replace(made, Path(half).with_name(store.path.name))
    return np.append(count, unmoved)


def move_rows(model: Any, place: Place, path: str, first: int, start: int, last: int) -> np.ndarray:
    """Write moved rows of a matrix into their place, and return what `move_part` does."""
    store = open_place(place)
    facts = store.facts()
    batch = Batch(store.all_ids[start:last], *store.read_span(start, last, model.columns))
    moved = np.ascontiguousarray(model.move_batch(batch), dtype=facts.dtype)
    with open(path, "r+b") as file:
        file.seek(first + start * moved.shape[1] * moved.itemsize)
        file.write(moved.data)
        file.flush()
        os.fsync(file.fileno())
    return np.append(last - start, model.count_unmoved(batch))
