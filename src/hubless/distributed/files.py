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

from ..large.sources import OfStore, Prepared
from ..large.survey import Block, Look
from ..stores.file_store import FileStore
from ..stores.files import NpyFile, Parts
from ..stores.opening import open_store
from ..stores.rows import write_at
from ..stores.store import Batch, Store, StoreError, need
from .engine import compute
from .learn import Blocks

BLOCK = 1 << 26  # bytes of a block


class Place(NamedTuple):
    """What opens a file again on a worker, and tells whether it is the same still."""

    path: str
    options: tuple[tuple[str, Any], ...]
    written: int  # when it was last written to

    @staticmethod
    def of(store: FileStore) -> "Place":
        items = None if store.items is None else str(Path(store.items).resolve())
        options = {"vector": store.vector, "id": store.id, "metric": store.metric, "items": items}
        return Place(str(store.path), tuple(options.items()), os.stat(store.path).st_mtime_ns)


@lru_cache(maxsize=16)
def opened(place: Place) -> Any:
    """The store of a place, opened once by a worker."""
    return open_store(place.path, **dict(place.options))


def files_of(store: Store) -> list[FileStore]:
    """The files of a store; StoreError where it is none that workers could read on their own."""
    pieces = list(store.pieces())
    files = [piece for piece in pieces if isinstance(piece, FileStore)]
    if len(files) != len(pieces) or any(isinstance(piece, Parts) for piece in files):
        raise StoreError(
            f"{store.name} cannot be read by many workers at once: give .npy, Parquet or Arrow files, or a "
            "folder of them with the labels in a column; or leave --dask out."
        )
    return files


def blocks_of_store(store: Store, label: str, prepared: Prepared | None, *, skip_bad: bool = False) -> Blocks:
    """Labeled items of files, in blocks that workers read."""
    delayed, facts = need("dask", "dask").delayed, OfStore.facts_of(store)
    size = max(1, BLOCK // (facts.dimension * facts.itemsize))
    blocks, names = [], []
    files = files_of(store)
    for file in files:
        place = Place.of(file)
        for start, last in _spans(file, size):
            name = file.name if len(files) > 1 else f"rows {start:,} to {last - 1:,} of {file.name}"
            blocks.append(delayed(read_block)(place, name, start, last, label, prepared))
            names.append(name)
    return Blocks(blocks, names, facts.dimension, Look(texts=True, may_miss=True, skip_bad=skip_bad))


def _spans(file: FileStore, size: int) -> list[tuple[int, int]]:
    """Rows of a file that are read together; an empty span where it cannot be read, which reading it says."""
    try:
        return file.spans(size)
    except (OSError, ValueError):
        return [(0, 0)]


def read_block(
    place: Place, name: str, start: int, last: int, label: str, prepared: Prepared | None
) -> Block:
    """Some rows of a file; where they cannot be read, the block says why."""
    try:
        store = opened(place)
        X, columns = store.read_span(start, last, [label])
    except (OSError, ValueError) as error:
        return Block(name, np.empty((0, 0)), [], error=str(error))
    may_lack = store.may_lack_vectors or prepared is not None
    return Block(name, X if prepared is None else prepared(X), columns[label], start, may_lack)


# --- to move -----------------------------------------------------------------------------------------------


def write_moved(model: Any, blue: Store, green: Any, bar: Any) -> tuple[int, int]:
    """Let workers write a moved copy, a part or some rows each; rows, and items of a class not known."""
    delayed = need("dask", "dask").delayed
    on_workers, path = delayed(model, pure=False), green._part()
    half = path / f".half-{uuid4().hex}"  # for parts that are not whole yet; what dies there goes with it
    if isinstance(blue, Parts):
        tasks = _parts(model, on_workers, blue, half, green._begun)
    elif isinstance(blue, NpyFile):
        tasks = _rows(on_workers, blue, path)
    else:
        raise StoreError(
            f"{blue.name} cannot be written by many workers: give .npy or a folder of parts, or leave --dask "
            "out."
        )
    bar.reset(len(tasks))
    written, strange = compute(delayed(np.sum)(tasks, axis=0), tasks, bar) if tasks else (0, 0)
    if half.exists():
        shutil.rmtree(half)
    return int(written), int(strange)


def _parts(model: Any, shared: Any, blue: Parts, half: Path, mark: Any) -> list[Any]:
    """What writes the moved parts of a folder."""
    if blue.items is not None and (model.columns or model.own is not None):
        raise StoreError(
            f"{blue.name} has its columns in a table beside it, for one process to read: leave --dask out."
        )
    half.mkdir(parents=True)
    blue.copy_others(half.parent)
    parts = blue.parts()
    starts = np.cumsum([0, *(part.facts().count for part in parts)]).tolist()
    firsts = starts[:-1] if blue.has_row_numbers() else [None] * len(parts)  # counted through all parts
    move = need("dask", "dask").delayed(move_part)
    return [
        move(shared, Place.of(part), first, str(half), mark)
        for part, first in zip(parts, firsts, strict=True)
    ]


def _rows(shared: Any, blue: NpyFile, path: Path) -> list[Any]:
    """What writes the moved rows of a matrix, whose file is made here."""
    facts = blue.facts()
    row = facts.dimension * np.dtype(facts.dtype).itemsize
    with path.open("wb") as file:
        blue.write_head(file)
        first = file.tell()
        file.truncate(first + facts.count * row)
    place, size, move = Place.of(blue), max(1, BLOCK // row), need("dask", "dask").delayed(move_rows)
    return [
        move(shared, place, str(path), first, start, min(start + size, facts.count))
        for start in range(0, facts.count, size)
    ]


def move_part(model: Any, place: Place, first: int | None, half: str, mark: Any) -> tuple[int, int]:
    """Write the moved copy of one part, in a folder for halves, and put it beside that folder once whole.

    `first` is the number of its first row in all parts; None where rows have ids of their own.
    """
    store, count, strange = opened(place), 0, 0
    made = Path(half, f"{uuid4().hex}-{store.path.name}")
    store._begun = mark
    with store._writer(store, made) as append:
        for batch in store.batches(model.columns):
            if first is not None:
                batch = batch._replace(ids=first + count + np.arange(len(batch.ids)))
            append(batch, model.move_batch(batch))
            count += len(batch.ids)
            strange += model.n_strange(batch)
    os.replace(made, Path(half).with_name(store.path.name))
    return count, strange


def move_rows(model: Any, place: Place, path: str, first: int, start: int, last: int) -> tuple[int, int]:
    """Write some moved rows of a matrix into their place."""
    store = opened(place)
    facts = store.facts()
    batch = Batch(store._all_ids()[start:last], *store.read_span(start, last, model.columns))
    moved = np.ascontiguousarray(model.move_batch(batch), dtype=facts.dtype)
    file = os.open(path, os.O_WRONLY)
    try:
        write_at(file, moved.data.cast("B"), first + start * facts.dimension * moved.itemsize)
        os.fsync(file)
    finally:
        os.close(file)
    return last - start, model.n_strange(batch)
