"""What a worker does with its part of the objects: looks, sorts by bin, learns. Functions of plain data.

Every result depends on the input alone: rows are put in their order before anything is computed, so it does
not matter who computes it, or how often.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arrays import float_type
from ..stores.store import need
from .checkpoints import Checkpoints, content_of, key_of
from .lesson import Lesson, Near, Sums, Taught, learn_classes, learn_found, nearest_in_chunk, taught_in
from .plan import Bins
from .sampling import Draw, Drawn, Sample
from .survey import BadPart, Block, Look, Survey, check_kind, clean, codes_of, survey_part


@dataclass(frozen=True)
class Work:
    """What all tasks of a fit know."""

    n_columns: int
    dtype: Any
    classes: np.ndarray
    sample: Sample
    bins: Bins
    lesson: Lesson
    look: Look
    folder: Path | None  # of checkpoints


class Rows(NamedTuple):
    """Objects of a bin, in order of class and row."""

    X: np.ndarray  # (n, d)
    codes: np.ndarray  # (c,), the classes in it
    sizes: np.ndarray  # (c,)


# --- blocks, as they come ----------------------------------------------------------------------------------


def floats(X: Any) -> np.ndarray:
    """Numbers as they are computed with; ValueError for what is none."""
    X = np.asarray(X)
    if X.dtype.kind not in "fiubO":
        raise ValueError(f"vectors are real numbers; got {X.dtype}.")
    try:
        return X.astype(float_type(X.dtype), copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"vectors are real numbers; {error}.") from error


def as_block(X: Any, y: Any, name: str) -> Block:
    """A block as it is learned from; where its vectors are no numbers, it says so."""
    try:
        X = floats(X)
    except ValueError as error:
        return Block(name, np.empty((0, 0)), [], error=f"{name}: {error}")
    return Block(name, X, y if isinstance(y, np.ndarray | list) else np.asarray(y))


def look_at(block: Block, n_columns: int, look: Look) -> Survey:
    """What is to be seen of a block; a bad one is told as left out."""
    try:
        return survey_part([block], n_columns, look)
    except (OSError, ValueError) as error:
        seen = Survey(n_columns)
        seen.leave_out(block.part, error)
        return seen


def first_kind(kinds: list[bool | None]) -> bool | None:
    return next((kind for kind in kinds if kind is not None), None)


def of_kind(seen: Survey, kind: bool | None, name: str) -> Survey:
    """What was seen of a block; it is told as left out where its labels are of another kind."""
    try:
        check_kind(kind, seen, name)
    except BadPart as error:
        seen = Survey(seen.n_columns)
        seen.leave_out(name, error)
    return seen


def add_surveys(surveys: list[Survey]) -> Survey:
    """What is to be seen of all."""
    total = Survey(surveys[0].n_columns)
    for seen in surveys:
        total.add(seen)
    return total


def add_sums(sums: list[Sums]) -> Sums:
    """What all of them taught."""
    return reduce(add, sums)


def counts_of(block: Block, work: Work) -> np.ndarray:
    """Objects in a block of each class that is cut into chunks; int64 (cut classes,)."""
    _, labels = clean(block, work.n_columns, work.look)
    return np.bincount(codes_of(labels, work.classes), minlength=len(work.classes))[work.bins.cut]


def counts_before(counts: list[np.ndarray]) -> np.ndarray:
    """Objects of these classes in all blocks before each; int64 (blocks, cut classes)."""
    return np.cumsum([np.zeros_like(counts[0]), *counts[:-1]], axis=0)


def sorted_into_bins(block: Block, work: Work, first_row: int, before: np.ndarray | None) -> Any:
    """A data frame of the objects of a block with the bin of each.

    Parameters
    ----------
    first_row : the number of objects before those of this block
    before : of each class that is cut into chunks, how many of its objects come before this block
    """
    X, labels = clean(block, work.n_columns, work.look)
    codes = codes_of(labels, work.classes)
    bins = work.bins.first[codes]
    lengths = work.bins.chunk_rows(work.sample.sizes)
    for code, rank in zip(work.bins.cut.tolist(), () if before is None else before.tolist(), strict=False):
        own = np.flatnonzero(codes == code)
        bins[own] += (rank + np.arange(len(own))) // lengths[code]
    return as_frame(bins, codes, first_row + np.arange(len(X)), X.astype(work.dtype, copy=False))


def as_frame(bins: np.ndarray, codes: np.ndarray, rows: np.ndarray, X: np.ndarray) -> Any:
    """Rows as a data frame that can be shuffled: a vector is a value of bytes."""
    pa, pd = need("pyarrow", "dask"), need("pandas", "dask")
    X = np.ascontiguousarray(X)
    ends = np.arange(len(X) + 1, dtype=np.int64) * (X.shape[1] * X.itemsize)
    vectors = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(X), [None, pa.py_buffer(ends), pa.py_buffer(X)]
    )
    return pd.DataFrame(
        {"bin": bins, "code": codes, "row": rows, "vector": pd.arrays.ArrowExtensionArray(vectors)}
    )


def rows_of(frame: Any, n_columns: int, dtype: Any) -> Rows:
    """The objects of a bin, in order, from the data frame that came out of the shuffle."""
    pa = need("pyarrow", "dask")
    codes, rows = frame["code"].to_numpy(), frame["row"].to_numpy()
    order = np.lexsort((rows, codes))
    vectors = pa.array(frame["vector"].array)
    pieces = vectors.chunks if isinstance(vectors, pa.ChunkedArray) else [vectors]
    X = np.concatenate(
        [_matrix(piece, n_columns, dtype) for piece in pieces if len(piece)]
        or [np.empty((0, n_columns), dtype)]
    )
    present, sizes = np.unique(codes, return_counts=True)
    return Rows(X[order], present.astype(np.int64), sizes.astype(np.int64))


def _matrix(piece: Any, n_columns: int, dtype: Any) -> np.ndarray:
    """A column of bytes as a matrix, without a copy."""
    width = n_columns * np.dtype(dtype).itemsize
    wide = 8 if str(piece.type).startswith("large") else 4
    offsets = np.frombuffer(piece.buffers()[1], np.int64 if wide == 8 else np.int32)
    first = int(offsets[piece.offset])
    flat = np.frombuffer(piece.buffers()[2], dtype, len(piece) * n_columns, offset=first)
    assert int(offsets[piece.offset + len(piece)]) - first == len(piece) * width
    return flat.reshape(len(piece), n_columns)


def some_of(block: Block, n_columns: int, look: Look, first: int, classes: np.ndarray, draw: Draw) -> Drawn:
    """What is drawn of the objects of a block, which `first` others come before."""
    X, labels = clean(block, n_columns, look)
    return draw.of_rows(first, X, labels, codes_of(labels, classes))


def move_block(X: Any, y: Any = None, *, mover: Any) -> np.ndarray:
    """Objects of a block where a mover moves them."""
    X = floats(X)
    return np.asarray(mover.move(X, y)) if len(X) else X


def codes_in(y: Any, *, classes: np.ndarray) -> np.ndarray:
    """Class numbers of the labels of a block."""
    return codes_of(np.asarray(y), classes)


# --- bins of whole classes ---------------------------------------------------------------------------------


def learn_bin(frame: Any, work: Work) -> Sums:
    """What the classes of a bin teach, or taught a run before."""
    X, codes, sizes = rows_of(frame, work.n_columns, work.dtype)
    if not len(X):
        return Sums.none(work.lesson)
    taught = taught_in(work.sample, codes, sizes)
    key = "" if work.folder is None else key_of(work.lesson, taught, codes, sizes, X)
    return Checkpoints(work.folder).get(key, lambda: learn_classes(X, codes, sizes, taught, work.lesson))


# --- a class in chunks -------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    """Objects of a class that is cut into chunks, in order."""

    X: np.ndarray  # (n, d)
    code: int
    first: int  # rank of the first
    content: bytes  # what stands for them


def chunk_of(frame: Any, work: Work, code: int, number: int) -> Chunk:
    """A chunk from the data frame that came out of the shuffle."""
    X = rows_of(frame, work.n_columns, work.dtype).X
    first = number * int(work.bins.chunk_rows(work.sample.sizes)[code])
    return Chunk(X, code, first, content_of(X) if work.folder is not None else b"")


class Asking(NamedTuple):
    """Sources of a class that look for their targets in all chunks of it."""

    x: np.ndarray  # (s, d)
    taught: Taught  # their ranks, and weights
    key: str
    known: Sums | None  # what they taught a run before


def sources_in(chunk: Chunk, work: Work) -> tuple[np.ndarray, np.ndarray]:
    """The sources of a chunk, and their ranks."""
    ranks = work.sample.ranks(chunk.code)
    own = ranks[(ranks >= chunk.first) & (ranks < chunk.first + len(chunk.X))]
    return chunk.X[own - chunk.first], own


def asking(
    code: int, sources: list[tuple[np.ndarray, np.ndarray]], contents: list[bytes], work: Work
) -> Asking:
    """Sources of some chunks of a class; `contents` are those of all its chunks."""
    x, own = (np.concatenate(parts) for parts in zip(*sources, strict=True))
    weights = None if work.sample.is_whole() else np.full(len(own), work.sample.weight(code))
    taught = Taught(own, weights)
    if work.folder is None:
        return Asking(x, taught, "", None)
    key = key_of(work.lesson, taught, np.array([code]), *contents)
    return Asking(x, taught, key, Checkpoints(work.folder).load(key))


def content(chunk: Chunk) -> bytes:
    return chunk.content


def nearest_of(sources: Asking, chunk: Chunk, work: Work) -> Near | None:
    """The nearest objects of a chunk; None where nobody asks."""
    if sources.known is not None or not len(sources.x) or not len(chunk.X):
        return None
    return nearest_in_chunk(sources.x, sources.taught.rows, chunk.X, chunk.first, work.lesson.n_targets)


def nearer(found: list[Near | None]) -> Near | None:
    """The nearest of all."""
    there = [near for near in found if near is not None]
    return reduce(Near.joined, there) if there else None


def sum_of(chunk: Chunk) -> np.ndarray:
    """Σ x over a chunk, float64 (d,)."""
    return np.asarray(chunk.X.sum(axis=0, dtype=np.float64))


def class_sum(code: int, sums: list[np.ndarray], work: Work) -> Sums:
    """The sum of a class from those of its chunks."""
    total = reduce(add, sums)
    return Sums(Sums.none(work.lesson).moments, 0, np.array([code]), total[None, :])


def learn_asking(sources: Asking, near: Near | None, whole: Sums | None, work: Work) -> Sums:
    """What sources of a class teach, or taught a run before; `whole` has the sum of the class."""
    if not len(sources.x) or not work.lesson.n_targets:
        return Sums.none(work.lesson)
    if sources.known is not None:
        return sources.known
    mean = None
    if whole is not None:
        mean = whole.class_sums[0] / work.sample.sizes[int(whole.codes[0])]
    assert near is not None
    found = learn_found(sources.x, near, sources.taught.weights, work.lesson, mean)
    return Checkpoints(work.folder).save(sources.key, found)
