"""Columns of vectors in Arrow tables, which Parquet and Arrow files and LanceDB share: as NumPy and back."""

from typing import Any

import numpy as np

from ..support.imports import need
from .checks import choose_vectors
from .store import StoreError


def vector_column(schema: Any, requested: str | None, name: str, *, fixed: bool = False) -> str:
    """Return the name of the column of vectors: the requested one, or the only one.

    With `fixed`, only lists of a fixed size are vectors.
    """
    types = need("pyarrow", "files").types
    kinds = [types.is_fixed_size_list, *([] if fixed else [types.is_list, types.is_large_list])]
    lists = [field for field in schema if any(is_kind(field.type) for is_kind in kinds)]
    known = [field.name for field in lists if types.is_floating(field.type.value_type)]
    return choose_vectors(name, known, requested)


def holds_texts(kind: Any) -> bool:
    """Return whether a column of a type holds texts, or numbers of its different texts."""
    types = need("pyarrow", "files").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def as_list(column: Any) -> list[Any]:
    """Return the values of a column; equal texts, such as labels, are one text and take memory once."""
    if not holds_texts(column.type):
        return list(column.to_pylist())
    types = need("pyarrow", "files").types
    coded = column if types.is_dictionary(column.type) else column.dictionary_encode()
    if hasattr(coded, "chunks"):
        coded = coded.unify_dictionaries().combine_chunks()
    if 2 * len(coded.dictionary) > len(coded):  # most are different
        return list(column.to_pylist())
    texts = [*coded.dictionary.to_pylist(), None]
    return [texts[number] for number in coded.indices.fill_null(-1).to_pylist()]


def as_matrix(column: Any, dimension: int, name: str) -> np.ndarray:
    """Return a column of lists as a matrix, without a copy where possible; a null is a row of NaN."""
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    if not chunks:
        return np.empty((0, dimension), column.type.value_type.to_pandas_dtype())
    return np.concatenate([_matrix(chunk, dimension, name) for chunk in chunks])


def _matrix(chunk: Any, dimension: int, name: str) -> np.ndarray:
    is_valid = np.asarray(chunk.is_valid())
    flat = chunk.flatten().to_numpy(zero_copy_only=False)  # nulls have no values here
    is_fixed = hasattr(chunk.type, "list_size")
    lengths = {chunk.type.list_size} if is_fixed else {*chunk.drop_null().value_lengths().to_pylist()}
    if not lengths <= {dimension}:
        raise StoreError(
            f"{name} has vectors of {', '.join(map(str, sorted(lengths)[:5]))} numbers; expected {dimension} "
            "in each."
        )
    if is_valid.all():
        return flat.reshape(-1, dimension)
    matrix = np.full((len(chunk), dimension), np.nan, dtype=flat.dtype)
    matrix[is_valid] = flat.reshape(-1, dimension)
    return matrix


def with_width(field: Any, width: int) -> Any:
    """Return the field of a column of vectors for vectors of another width; lists of any size stay."""
    if not hasattr(field.type, "list_size"):
        return field
    return field.with_type(need("pyarrow", "files").list_(field.type.value_field, width))


def as_column(moved: np.ndarray, kind: Any) -> Any:
    """Return a matrix as a column of the type that the original has; rows of NaN are nulls."""
    pa = need("pyarrow", "files")
    is_missing = np.isnan(moved).all(axis=1)
    mask = pa.array(is_missing) if is_missing.any() else None
    flat = pa.array(np.ascontiguousarray(moved, kind.value_type.to_pandas_dtype()).reshape(-1))
    if hasattr(kind, "list_size"):
        return pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=mask)
    make, width = (pa.LargeListArray, np.int64) if pa.types.is_large_list(kind) else (pa.ListArray, np.int32)
    offsets = np.arange(len(moved) + 1) * moved.shape[1]
    return make.from_arrays(pa.array(offsets.astype(width)), flat, type=kind, mask=mask)
