"""Vectors in plain files: .npy (read in place, never as a whole), .npz, and the HDF5 of ann-benchmarks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...support.cache import DAMAGED
from ...support.imports import need
from ...support.mapping import release_pages
from ..checks import choose_vectors
from ..kinds import METRICS
from ..store import Batch, Facts, Mark, StoreError
from .file_rows import FileRows, Where, picker
from .file_store import Append, FileStore


def facts_of(kind: str, vectors: Any, metric: str | None = None) -> Facts:
    """Return facts of a matrix of numbers; StoreError for anything else."""
    shape, dtype = tuple(vectors.shape), np.dtype(vectors.dtype)
    if len(shape) != 2 or dtype.kind != "f":
        raise StoreError(
            f"vectors are a matrix of floating-point numbers, one row each; got {dtype} of shape {shape}."
        )
    return Facts(kind, metric, shape[1], shape[0], dtype.name, "exhaustive: every vector is compared")


class NpyFile(FileStore):
    """A matrix in a .npy file; ids are row numbers, or a column of `items`."""

    may_lack_vectors = False

    def _open(self) -> FileRows:
        try:
            vectors = np.lib.format.open_memmap(self.path, mode="r")  # it refuses pickles
        except (EOFError, ValueError) as error:
            raise StoreError(f"{self.path} is not a matrix in NumPy's format: {error}") from error
        facts = facts_of("npy file", vectors)

        def read(where: Where) -> np.ndarray:
            """Read the file where possible: mapped pages would stay in the memory of the process."""
            if not isinstance(where, slice) or not vectors.flags.c_contiguous:
                picked = np.array(vectors[where], order="C")  # a copy: mapped pages are released
                release_pages(vectors)
                return picked
            count = max(0, where.stop - where.start) * facts.dimension
            first = vectors.offset + where.start * vectors.strides[0]
            numbers = np.fromfile(self.path, vectors.dtype, count, offset=first)
            if numbers.size < count:
                raise StoreError(
                    f"{self.path} became shorter while it was read: another process wrote to it."
                )
            return numbers.reshape(-1, facts.dimension)

        return FileRows(facts, read)

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        dtype = np.dtype(blue.facts().dtype)
        with part.open("wb") as file:  # not mapped: a full disk is then an error, not the end of the process
            blue.write_head(file, self.build_mark.width)
            yield lambda batch, moved: file.write(np.ascontiguousarray(moved, dtype).data)

    def write_head(self, file: Any, width: int | None = None) -> None:
        """Write the header of a file with as many such rows, or rows of another width."""
        facts = self.facts()
        head = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(facts.dtype)),
            "fortran_order": False,
            "shape": (facts.count, width or facts.dimension),
        }
        np.lib.format.write_array_header_1_0(file, head)


class NpzFile(FileStore):
    """A .npz file: a matrix, by default "vectors" or the only one; arrays of its length are the columns."""

    is_read_whole = True
    may_lack_vectors = False

    def _open(self) -> FileRows:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except (OSError, *DAMAGED) as error:
            raise StoreError(
                f"{self.path} is not a readable .npz file of plain arrays (no pickles): {error}"
            ) from error
        matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind == "f"]
        default = "vectors" if "vectors" in matrices else None
        self._key = choose_vectors(self.name, matrices, self.vector or default)
        vectors = arrays.pop(self._key)
        self._others = arrays
        columns = {
            name: picker(array) for name, array in arrays.items() if array.shape[:1] == (len(vectors),)
        }
        return FileRows(facts_of("npz file", vectors), lambda where: vectors[where], columns)

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        facts, kept = blue.facts(), []
        yield lambda batch, moved: kept.append(moved.astype(facts.dtype))
        shape = (0, self.build_mark.width or facts.dimension)
        vectors = np.concatenate(kept) if kept else np.empty(shape, facts.dtype)
        with part.open("wb") as file:
            arrays: dict[str, Any] = {blue._key: vectors, **blue._others}
            np.savez(file, **arrays)


class Hdf5File(FileStore):
    """An HDF5 file of ann-benchmarks: the matrix "train", its metric in the attribute "distance".

    The moved file has "test", the queries, but not "neighbors" and "distances", which are of the original.
    """

    may_lack_vectors = False

    def _open(self) -> FileRows:
        h5py = need("h5py", "files")
        try:
            file = h5py.File(self.path, "r")
        except OSError as error:
            raise StoreError(f"{self.path} is not an HDF5 file: {error}") from error
        self._key = choose_vectors(self.name, list(file), self.vector or "train")
        vectors, distance = file[self._key], str(file.attrs.get("distance", ""))
        known = {"": None, "euclidean": "l2", "angular": "cosine", "dot": "ip", **{m: m for m in METRICS}}
        if distance not in known:
            raise StoreError(
                f"{self.path} has the distance {distance!r}; expected {', '.join(filter(None, known))}."
            )

        def read(where: Where) -> np.ndarray:
            if isinstance(where, slice):
                return np.asarray(vectors[where])
            order, back = np.unique(where, return_inverse=True)  # HDF5 needs ascending row numbers
            return np.asarray(vectors[order])[back]

        return FileRows(facts_of("HDF5 file", vectors, known[distance]), read)

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        h5py, facts = need("h5py", "files"), blue.facts()
        with h5py.File(blue.path, "r") as old, h5py.File(part, "w") as new:
            new.attrs.update({**old.attrs, "hubless": self.build_mark.to_json()})
            for name in set(old) - {blue._key, "neighbors", "distances"}:
                old.copy(name, new)
            shape = (facts.count, self.build_mark.width or facts.dimension)
            vectors = new.create_dataset(blue._key, shape, facts.dtype)
            place = 0

            def append(batch: Batch, moved: np.ndarray) -> None:
                nonlocal place
                vectors[place : place + len(moved)] = moved
                place += len(moved)

            yield append

    def _mark_inside(self) -> Mark | None:
        with need("h5py", "files").File(self.path, "r") as file:
            return Mark.from_json(str(file.attrs.get("hubless", "")))
