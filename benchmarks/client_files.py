"""Index files as their own engines see them: what `client_stores` does with databases, with these."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from . import client_stores
from .client_stores import ITEMS, Client
from .index_data import LABEL
from .record import Options

EF = 64  # rows that a search of hnswlib looks at; usearch's default
NAMES = {"l2": "l2sq", "cosine": "cos"}


def _write_items(folder: Path, classes: Sequence[str] | None) -> None:
    if classes is not None:
        (folder / ITEMS).write_text(json.dumps({LABEL: list(classes)}))


def usearch_load(folder: Path, X: np.ndarray, metric: str, classes: Sequence[str] | None = None) -> str:
    _write_items(folder, classes)
    kind = import_module("usearch.index").Index
    index = kind(ndim=X.shape[1], metric=NAMES[metric], dtype="f32")
    index.add(np.arange(len(X)), X)
    index.save(str(folder / "items.usearch"))
    return str(folder / "items.usearch")


def usearch_ask(folder: Path, queries: np.ndarray, k: int) -> list[list[int]]:
    index = import_module("usearch.index").Index.restore(str(folder / "items.usearch"))
    return index.search(queries, k).keys.tolist()


def hnswlib_load(folder: Path, X: np.ndarray, metric: str, classes: Sequence[str] | None = None) -> str:
    _write_items(folder, classes)
    index = import_module("hnswlib").Index(metric, X.shape[1])
    index.init_index(max_elements=len(X), ef_construction=200, M=16)
    index.add_items(X, np.arange(len(X)))
    index.save_index(str(folder / "items.hnsw"))
    return str(folder / "items.hnsw")


def hnswlib_ask(folder: Path, queries: np.ndarray, k: int) -> list[list[int]]:
    """By cosine, as banking77 is compared."""
    index = import_module("hnswlib").Index("cosine", queries.shape[1])
    index.load_index(str(folder / "items.hnsw"))
    index.set_ef(EF)
    return index.knn_query(queries, k)[0].tolist()


def dump(folder: Path) -> Any:
    files = [folder / name for name in ("items.usearch", "items.hnsw")]
    return [file.read_bytes() for file in files if file.exists()]


CLIENTS = {
    "usearch": Client(usearch_load, usearch_ask, dump),
    "hnswlib": Client(hnswlib_load, hnswlib_ask, dump),
}


def measure(options: Options) -> dict[str, Any]:
    """Return both parts for every engine."""
    return client_stores.measure(options, CLIENTS)
