"""Vectors in HDF5, as the files of ann-benchmarks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...support.imports import need
from ..checks import choose_vectors, readable
from ..kinds import METRICS
from ..store import Batch, Mark, StoreError
from .file_rows import FileRows, Where
from .file_store import Append, FileStore
from .plain_files import facts_of

OUTDATED = ("neighbors", "distances")  # of the original vectors
BROKEN = (OSError, KeyError, ValueError, RuntimeError, TypeError, OverflowError)


class Hdf5File(FileStore):
    """An HDF5 file of ann-benchmarks: the matrix "train", its metric in the attribute "distance".

    The moved file has "test", the queries, but not "neighbors" and "distances", which are of the original.
    Chunks, filters and attributes stay. What the file says of other files is not read: links to them stay
    links, and vectors that are in another file are refused.
    """

    may_lack_vectors = False

    def _open(self) -> FileRows:
        h5py = need("h5py", "files")
        try:
            file = h5py.File(self.path, "r")
            names, distance = list(file), str(file.attrs.get("distance", ""))
        except BROKEN as error:
            raise StoreError(f"{self.path} is not an HDF5 file: {error}") from error
        self._key = choose_vectors(self.name, names, self.vector or "train")
        vectors = self._own_matrix(h5py, file)
        known = {"": None, "euclidean": "l2", "angular": "cosine", "dot": "ip", **{m: m for m in METRICS}}
        if distance not in known:
            raise StoreError(
                f"{self.path} has the distance {distance!r}; expected {', '.join(filter(None, known))}."
            )

        def read(where: Where) -> np.ndarray:
            try:
                if isinstance(where, slice):
                    return np.asarray(vectors[where])
                order, back = np.unique(where, return_inverse=True)  # HDF5 needs ascending row numbers
                return np.asarray(vectors[order])[back]
            except BROKEN as error:
                raise StoreError(f"{self.path} cannot be read: {error}") from error

        return FileRows(facts_of("HDF5 file", vectors, known[distance]), read)

    def _own_matrix(self, h5py: Any, file: Any) -> Any:
        """Return the vectors; StoreError where they are not in this file, or not there at all."""
        if not isinstance(file.get(self._key, getlink=True), h5py.HardLink):
            raise StoreError(f"{self._key!r} in {self.path} is a link. Give the file with the vectors.")
        try:
            vectors = file[self._key]
            if not isinstance(vectors, h5py.Dataset):
                raise StoreError(f"{self._key!r} in {self.path} is not a matrix but a {vectors}.")
            if vectors.is_virtual or vectors.external:
                raise StoreError(
                    f"{self._key!r} in {self.path} is kept in other files. Copy it into one: h5repack can."
                )
            stored = vectors.id.get_storage_size()
            if vectors.size and not stored:
                raise StoreError(f"{self._key!r} in {self.path} was never written: {vectors.shape}, 0 bytes.")
        except BROKEN as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{self.path} cannot be read: {error}") from error
        return vectors

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        h5py, facts, place = need("h5py", "files"), blue.facts(), 0
        with _as_os_error(part), h5py.File(blue.path, "r") as old:
            in_order = bool(old["/"].id.get_create_plist().get_link_creation_order())
            with h5py.File(part, "w", track_order=in_order) as new:
                copy_attributes(h5py, old, new)
                new.attrs["hubless"] = self.build_mark.to_json()
                for name in old:
                    if name == blue._key:
                        width = self.build_mark.width or facts.dimension
                        vectors = matrix_like(h5py, new, name, old[name], width)
                    elif name not in OUTDATED:
                        copy_member(h5py, old, new, name)

                def append(batch: Batch, moved: np.ndarray) -> None:
                    nonlocal place
                    vectors[place : place + len(moved)] = moved
                    place += len(moved)

                yield append

    def _mark_inside(self) -> Mark | None:
        with readable(self.path), need("h5py", "files").File(self.path, "r") as file:
            return Mark.from_json(str(file.attrs.get("hubless", "")))


@contextmanager
def _as_os_error(path: Path) -> Iterator[None]:
    """Raise OSError where HDF5 cannot write, such as on a full disk: it may raise RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(f"{path} could not be written: {error}") from error


def matrix_like(h5py: Any, file: Any, name: str, old: Any, width: int) -> Any:
    """Create a matrix with the rows, type, chunks, filters and attributes of another one."""
    settings, chunks = old.id.get_create_plist(), old.chunks
    if chunks is not None:
        settings.set_chunk((chunks[0], min(chunks[1], width)))
    limit = (old.maxshape[0], None if old.maxshape[1] is None else max(width, old.maxshape[1]))
    limit = (limit[0], width) if chunks is None else limit
    unlimited = [h5py.h5s.UNLIMITED if one is None else one for one in limit]
    space = h5py.h5s.create_simple((old.shape[0], width), tuple(unlimited))
    made = h5py.h5d.create(file.id, name.encode(), old.id.get_type(), space, settings)
    new = h5py.Dataset(made)
    copy_attributes(h5py, old, new)
    return new


def copy_member(h5py: Any, old: Any, new: Any, name: str) -> None:
    """Copy a data set or a group; a link stays a link: what it leads to may be another file."""
    link = old.get(name, getlink=True)
    if isinstance(link, h5py.HardLink):
        old.copy(name, new, expand_soft=False, expand_external=False)
    else:
        new[name] = link


def copy_attributes(h5py: Any, old: Any, new: Any) -> None:
    """Copy attributes as they are; references would lead to places of the other file."""
    for name in old.attrs:
        kind, value = old.attrs.get_id(name).dtype, old.attrs[name]
        if isinstance(value, h5py.Empty):
            new.attrs[name] = value
        elif not _has_references(h5py, kind):
            new.attrs.create(name, value, dtype=kind)


def _has_references(h5py: Any, kind: Any) -> bool:
    if kind.names is not None:
        return any(_has_references(h5py, kind[name]) for name in kind.names)
    return h5py.check_ref_dtype(h5py.check_vlen_dtype(kind) or kind) is not None
