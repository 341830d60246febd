"""Vectors in NumPy's files: .npy (read in place, never as a whole) and .npz."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from ...support.machine import machine_memory
from ...support.mapping import release_pages
from ...support.text import reason
from ..checks import choose_vectors
from ..store import Facts, StoreError
from .file_rows import FileRows, Where, picker
from .file_store import Append, FileStore


def facts_of(kind: str, vectors: Any, metric: str | None = None) -> Facts:
    """Return facts of a matrix of numbers; StoreError for anything else."""
    shape, dtype = tuple(vectors.shape), np.dtype(vectors.dtype)
    if len(shape) != 2 or not shape[1] or dtype.kind != "f":
        got = f"got {dtype} of shape {shape}"
        if len(shape) == 2 and dtype.kind in "biu":
            got += '. Save whole numbers as float32: np.save("vectors.npy", X.astype("float32"))'
        raise StoreError(f"vectors are a matrix of floating-point numbers, one row each; {got}.")
    return Facts(kind, metric, shape[1], shape[0], dtype.name, "exhaustive: every vector is compared")


class NpyFile(FileStore):
    """A matrix in a .npy file; ids are row numbers, or a column of `items`."""

    may_lack_vectors = False

    def _open(self) -> FileRows:
        try:
            vectors = np.lib.format.open_memmap(self.path, mode="r")  # it refuses pickles
        except OSError:
            raise
        except Exception as error:  # NumPy may raise anything for a damaged file
            raise StoreError(f"{self.path} is not a matrix in NumPy's format: {reason(error)}") from error
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
        write_head(file, self.facts(), width)


def write_head(file: Any, facts: Facts, width: int | None = None) -> None:
    """Write the header of a matrix in NumPy's format, rows one after the other."""
    head = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(facts.dtype)),
        "fortran_order": False,
        "shape": (facts.count, width or facts.dimension),
    }
    np.lib.format.write_array_header_1_0(file, head)


class NpzFile(FileStore):
    """A .npz file: a matrix, by default "vectors" or the only one; arrays of its length are the columns.

    The moved file has the same members in the same order, each compressed as it was.
    """

    is_read_whole = True
    may_lack_vectors = False

    def _open(self) -> FileRows:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                _check_members(archive.zip.infolist())
                loaded = {name: archive[name] for name in archive.files}
        except Exception as error:  # NumPy may raise anything for a damaged file
            raise StoreError(
                f"{self.path} is not a readable .npz file of plain arrays (no pickles): {reason(error)}"
            ) from error
        arrays = {name: array for name, array in loaded.items() if isinstance(array, np.ndarray)}
        matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind == "f"]
        if not matrices and {"data", "shape", "format"} <= {*arrays}:  # of scipy.sparse.save_npz
            raise StoreError(
                f"{self.path} is a sparse matrix of SciPy, and vectors here are dense: save X.toarray(), or "
                "reduce it to fewer columns first, as TruncatedSVD of scikit-learn does."
            )
        default = "vectors" if "vectors" in matrices else None
        self._key = choose_vectors(self.name, matrices, self.vector or default)
        vectors = arrays.pop(self._key)
        columns = {
            name: picker(array) for name, array in arrays.items() if array.shape[:1] == (len(vectors),)
        }
        return FileRows(facts_of("npz file", vectors), lambda where: vectors[where], columns)

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        facts, key = blue.facts(), blue._key
        with ZipFile(blue.path) as old, ZipFile(part, "w") as new:
            members = iter(old.infolist())
            for member in members:
                if member.filename.removesuffix(".npy") == key:
                    break
                _copy(old, new, member)
            with new.open(_like(member), "w", force_zip64=True) as file:
                write_head(file, facts, self.build_mark.width)
                yield lambda batch, moved: file.write(np.ascontiguousarray(moved, facts.dtype).data)
            for member in members:
                _copy(old, new, member)


def _check_members(members: list[ZipInfo]) -> None:
    """Refuse two members of one name, of which readers see one; and more than memory holds."""
    names = [member.filename.removesuffix(".npy") for member in members]
    if len(set(names)) < len(names):
        raise ValueError(f"it has {len(names)} members of {len(set(names))} names")
    size, memory = sum(member.file_size for member in members), machine_memory()
    if size > memory:
        raise ValueError(f"unpacked it has {size / 1e9:,.1f} GB, more than memory ({memory / 1e9:,.1f} GB)")


def _like(member: ZipInfo) -> ZipInfo:
    """Return a new member with the name, time, rights and compression of another; its level is not kept."""
    new = ZipInfo(member.filename, member.date_time)
    for name in ("compress_type", "external_attr", "comment"):
        setattr(new, name, getattr(member, name))
    return new


def _copy(old: ZipFile, new: ZipFile, member: ZipInfo) -> None:
    with old.open(member) as source, new.open(_like(member), "w", force_zip64=True) as target:
        shutil.copyfileobj(source, target, 1 << 20)
