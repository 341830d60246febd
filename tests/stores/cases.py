"""The table of the stores that the contract is run on. Every built-in kind has a row, or a test fails.

A case is a function of pytest's `request` that returns a `Case`; its module is imported when it is used.
"""

from importlib import import_module
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """A store that the contract is run on."""

    kinds: tuple[str, ...]  # names in hubless.stores.kinds, all of one class
    case: str  # module of this folder:function
    marks: tuple[str, ...] = ()


CASES = [
    Row((".npy",), "file_cases:npy"),
    Row((".npz",), "file_cases:npz"),
    Row((".parquet",), "file_cases:parquet"),
    Row((".parquet",), "file_cases:parquet_of_lists"),
    Row((".arrow", ".ipc", ".feather"), "file_cases:arrow"),
    Row((".hdf5", ".h5"), "file_cases:hdf5"),
    Row(("/",), "file_cases:parts"),
    Row((".faiss", ".index"), "faiss_cases:flat"),
    Row((".faiss", ".index"), "faiss_cases:hnsw"),
    Row((".faiss", ".index"), "faiss_cases:ivf"),
    Row((".faiss", ".index"), "faiss_cases:id_map"),
    Row((".faiss", ".index"), "faiss_cases:ivf_with_ids"),
    Row((".usearch",), "index_cases:usearch", ("services",)),
    Row((".usearch",), "index_cases:usearch_with_keys", ("services",)),
    Row((".hnsw", ".hnswlib", ".bin"), "index_cases:hnsw", ("services",)),
    Row((".hnsw", ".hnswlib", ".bin"), "index_cases:hnsw_with_labels", ("services",)),
    Row(("lancedb",), "lancedb_cases:texts", ("services",)),
    Row(("lancedb",), "lancedb_cases:numbers", ("services",)),
    Row(("postgresql", "postgres"), "pg_cases:numbers", ("services",)),
    Row(("postgresql", "postgres"), "pg_cases:texts_and_an_index", ("services",)),
    Row(("qdrant",), "qdrant_cases:folder", ("services",)),
    Row(("qdrant",), "qdrant_server:server", ("services",)),
    Row(("chroma",), "chroma_cases:folder", ("services",)),
    Row(("chroma",), "chroma_cases:server", ("services",)),
    Row(("sqlite",), "vec_cases:numbers", ("services",)),
    Row(("sqlite",), "vec_cases:texts", ("services",)),
    Row(("duckdb",), "duck_cases:numbers", ("services",)),
    Row(("duckdb",), "duck_cases:texts", ("services",)),
    Row(("qdrant-edge",), "qdrant_edge_cases:shard", ("services",)),
]


def parameters():
    """Return the rows for `pytest.fixture(params=…)`."""
    return [
        pytest.param(row, id=row.case, marks=[getattr(pytest.mark, mark) for mark in row.marks])
        for row in CASES
    ]


def case_of(row, request):
    """Return the Case of a row."""
    module, _, function = row.case.partition(":")
    return getattr(import_module(f"tests.stores.{module}"), function)(request)
