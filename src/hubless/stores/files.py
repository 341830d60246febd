"""Vectors in plain files: .npy (mapped, not read), .npz, the HDF5 of ann-benchmarks, folders of parts."""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .file_store import FileStore
from .rows import Rows
from .store import ROWS, Batch, Columns, Facts, Mark, StoreError, need

Append = Callable[[Batch, np.ndarray], None]


def facts_of(kind: str, vectors: Any, metric: str | None = None) -> Facts:
    """Facts of a matrix of numbers; StoreError for anything else."""
    shape, dtype = tuple(vectors.shape), np.dtype(vectors.dtype)
    if len(shape) != 2 or dtype.kind != "f":
        raise StoreError(
            f"vectors are a matrix of floating-point numbers, one row each; got {dtype} of shape {shape}."
        )
    return Facts(kind, metric, shape[1], shape[0], dtype.name, "exhaustive: every vector is compared")


class NpyFile(FileStore):
    """A matrix in a .npy file; ids are row numbers, or a column of `items`."""

    may_lack_vectors = False

    def _open(self) -> Rows:
        try:
            vectors = np.lib.format.open_memmap(self.path, mode="r")  # which takes no pickles
        except (EOFError, ValueError) as error:
            raise StoreError(f"{self.path} is not a matrix in NumPy's format: {error}") from error
        facts = facts_of("npy file", vectors)
        path, first, row = self.path, vectors.offset, vectors.strides[0]

        def read(part: slice) -> np.ndarray:
            """Read, where it can be: mapped pages stay in the memory of the process."""
            if not vectors.flags.c_contiguous:
                return np.asarray(vectors[part])
            count = max(0, part.stop - part.start) * facts.dimension
            found = np.fromfile(path, vectors.dtype, count, offset=first + part.start * row)
            if found.size < count:
                raise StoreError(f"{path} has become shorter while it was read.")
            return found.reshape(-1, facts.dimension)

        return Rows(facts, read, lambda rows: np.asarray(vectors[rows]))

    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Append]:
        dtype = np.dtype(blue.facts().dtype)
        with part.open("wb") as file:  # not mapped: a full disk is then an error, not the end of the process
            blue.write_head(file)
            yield lambda batch, moved: _write_all(file, moved.astype(dtype))
            file.flush()
            os.fsync(file.fileno())

    def write_head(self, file: Any) -> None:
        """Begin a file of as many such rows."""
        facts = self.facts()
        head = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(facts.dtype)),
            "fortran_order": False,
            "shape": (facts.count, facts.dimension),
        }
        np.lib.format.write_array_header_1_0(file, head)


def _write_all(file: Any, rows: np.ndarray) -> None:
    file.write(np.ascontiguousarray(rows).data)


class NpzFile(FileStore):
    """A .npz file: a matrix, by default "vectors" or the only one, and arrays as long as it, the columns."""

    may_lack_vectors = False

    def _open(self) -> Rows:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
        except (EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise StoreError(f"{self.path} is not a .npz file that is safe to read: {error}") from error
        key = _pick(arrays, self.vector, self.path)
        vectors = arrays.pop(key)
        facts = facts_of("npz file", vectors)
        self._key, self._other = key, arrays
        columns = {
            name: _values(array) for name, array in arrays.items() if array.shape[:1] == (len(vectors),)
        }
        return Rows(facts, lambda part: vectors[part], lambda rows: vectors[rows], columns)

    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Append]:
        facts, kept = blue.facts(), []
        yield lambda batch, moved: kept.append(moved.astype(facts.dtype))
        vectors = np.concatenate(kept) if kept else np.empty((0, facts.dimension), facts.dtype)
        with part.open("wb") as file:
            arrays: dict[str, Any] = {blue._key: vectors, **blue._other}
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())


def _pick(arrays: dict[str, np.ndarray], asked: str | None, path: Path) -> str:
    """Which array holds the vectors."""
    matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind == "f"]
    name = asked or ("vectors" if "vectors" in matrices else matrices[0] if len(matrices) == 1 else None)
    if name not in matrices:
        raise StoreError(f"name the array of {path} that holds the vectors (--vector); it has {matrices}.")
    return str(name)


def _values(array: np.ndarray) -> Callable[[Any], list[Any]]:
    return lambda part: array[part].tolist()


class Hdf5File(FileStore):
    """An HDF5 file as ann-benchmarks has them: the matrix "train", its metric in the attribute "distance".

    The moved file has "test", the queries, but not "neighbors" and "distances", which are of the original.
    """

    may_lack_vectors = False

    def _open(self) -> Rows:
        h5py = need("h5py", "files")
        try:
            file = h5py.File(self.path, "r")
        except OSError as error:
            raise StoreError(f"{self.path} is not an HDF5 file: {error}") from error
        key = self.vector or "train"
        if key not in file:
            raise StoreError(
                f"name the dataset of {self.path} that holds the vectors (--vector); it has {list(file)}."
            )
        vectors, told = file[key], str(file.attrs.get("distance", ""))
        metric = {"euclidean": "l2", "angular": "cosine", "ip": "ip", "dot": "ip", "": None}.get(told, told)
        if metric not in ("l2", "cosine", "ip", None):
            raise StoreError(f"{self.path} compares by {told}; what can be moved is euclidean or angular.")
        self._key = key

        def take(rows: np.ndarray) -> np.ndarray:
            order, back = np.unique(rows, return_inverse=True)  # HDF5 wants rising row numbers
            return np.asarray(vectors[order])[back]

        return Rows(facts_of("HDF5 file", vectors, metric), lambda part: np.asarray(vectors[part]), take)

    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Append]:
        h5py, facts = need("h5py", "files"), blue.facts()
        with h5py.File(blue.path, "r") as old, h5py.File(part, "w") as new:
            new.attrs.update({**old.attrs, "hubless": self._begun.to_json()})
            for name in set(old) - {blue._key, "neighbors", "distances"}:
                old.copy(name, new)
            vectors = new.create_dataset(blue._key, (facts.count, facts.dimension), facts.dtype)
            place = 0

            def append(batch: Batch, moved: np.ndarray) -> None:
                nonlocal place
                vectors[place : place + len(moved)] = moved
                place += len(moved)

            yield append

    def _mark_inside(self) -> Mark | None:
        with need("h5py", "files").File(self.path, "r") as file:
            return Mark.from_json(str(file.attrs.get("hubless", "")))


class Parts(FileStore):
    """A folder of .npy, .npz, Parquet, Arrow or HDF5 files of one kind, one after the other by name.

    Ids are those of the parts where these have a column of them, else row numbers counted through.
    """

    def __init__(self, path: Any, *, kinds: dict[str, Any], **options: Any) -> None:
        super().__init__(path, **options)
        self.kinds = kinds

    def parts(self) -> list[FileStore]:
        """The files, in order."""
        files = [file for file in sorted(self.path.iterdir()) if file.suffix.lower() in self.kinds]
        suffixes = {file.suffix.lower() for file in files}
        if len(suffixes) != 1:
            raise StoreError(
                f"{self.path} must hold parts of one kind ({', '.join(self.kinds)}); it has "
                f"{sorted(suffixes) or 'none'}."
            )
        options = {"vector": self.vector, "id": self.id, "metric": self.metric}
        return [self.kinds[file.suffix.lower()](file, **options) for file in files]

    def _open(self) -> Rows:
        parts = self.parts()
        opened = [part._opened() for part in parts]
        widths = [rows.facts.dimension for rows in opened]
        if len(set(widths)) != 1:
            odd = min(range(len(parts)), key=lambda i: widths.count(widths[i]))
            raise StoreError(
                f"the parts in {self.path} have vectors of {sorted(set(widths))} columns; "
                f"{parts[odd].path.name} has {widths[odd]}. Repair or remove it."
            )
        ends = np.cumsum([0] + [rows.facts.count for rows in opened])
        first = opened[0].facts
        facts = replace(first, kind=f"{len(opened)} parts, {first.kind}", count=int(ends[-1]))

        def gather(read: Callable[[Rows, np.ndarray], Any], where: Any, empty: np.ndarray) -> np.ndarray:
            """Values of a slice or of row numbers, from the parts they are in."""
            rows = np.arange(where.start, where.stop) if isinstance(where, slice) else np.asarray(where)
            owner = np.searchsorted(ends, rows, side="right") - 1
            for i in np.unique(owner):
                values = read(opened[i], rows[owner == i] - ends[i])
                for place, value in zip(np.flatnonzero(owner == i), values, strict=True):
                    empty[place] = value
            return empty

        def vectors(where: Any) -> np.ndarray:
            empty = np.empty((_length(where), first.dimension), first.dtype)
            return gather(lambda rows, numbers: rows.take(numbers), where, empty)

        def column(name: str) -> Callable[[Any], list[Any]]:
            def values(where: Any) -> list[Any]:
                empty = np.empty(_length(where), dtype=object)
                return gather(lambda rows, numbers: rows.columns[name](numbers), where, empty).tolist()

            return values

        shared = [name for name in opened[0].columns if all(name in rows.columns for rows in opened)]
        return Rows(facts, vectors, vectors, {name: column(name) for name in shared})

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        """Part after part, each front to back."""
        self._columns(columns, slice(0, 0))  # refuses those that are not there
        own, start = columns if self.items is None else (), 0
        for part in self.parts():
            for vectors, values in part.blocks(own, size):
                rows = slice(start, start + len(vectors))
                start = rows.stop
                yield vectors, values if self.items is None else self._columns(columns, rows)

    def pieces(self) -> Sequence[FileStore]:
        """The parts; all as one where their columns are in a table beside them."""
        return self.parts() if self.items is None else [self]

    def beside(self, name: str) -> "Parts":
        options = {"vector": self.vector, "id": self.id, "metric": self.metric, "items": self.items}
        return Parts(self._path_of(name), kinds=self.kinds, **options)

    def copy_others(self, target: Path) -> None:
        """Copy what lies beside the parts into another folder, so that it is there after a switch too."""
        parts = {part.path.name for part in self.parts()}
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.copytree(entry, target / entry.name, symlinks=True)
            elif entry.name not in parts:
                shutil.copy2(entry, target / entry.name, follow_symlinks=False)

    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Append]:
        part.mkdir()
        blue.copy_others(part)
        olds, left = blue.parts(), 0
        with ExitStack() as current:  # the writer of the part whose rows come now
            write: Append | None = None

            def begin_next() -> None:
                nonlocal left, write
                current.close()
                old = olds.pop(0)
                old._begun, left = self._begun, old.facts().count
                write = current.enter_context(old._writer(old, part / old.path.name))

            def append(batch: Batch, moved: np.ndarray) -> None:
                nonlocal left
                while not left:
                    begin_next()
                left -= len(moved)
                if write is not None:
                    write(batch, moved)

            yield append
            while olds:  # parts without rows
                begin_next()


def _length(where: Any) -> int:
    return where.stop - where.start if isinstance(where, slice) else len(where)
