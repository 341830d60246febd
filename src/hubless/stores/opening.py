"""From what a user types to a store.

vectors.npy  vectors.npz  items.parquet  items.arrow  data.hdf5  folder-of-parts/   index.faiss
lancedb:FOLDER#TABLE   postgresql://USER@HOST/DATABASE#TABLE   qdrant:FOLDER-OR-URL#COLLECTION
"""

import os
from pathlib import Path
from typing import Any

from .arrow import ArrowFile
from .faiss import FaissIndex
from .files import Hdf5File, NpyFile, NpzFile, Parts
from .lancedb import LanceTable
from .pgvector import PgTable
from .qdrant import QdrantCollection
from .qdrant_edge import QdrantEdge
from .store import METRICS, Store, StoreError
from .switch import settle

FILES: dict[str, Any] = {
    ".npy": NpyFile,
    ".npz": NpzFile,
    ".parquet": ArrowFile,
    ".arrow": ArrowFile,
    ".ipc": ArrowFile,
    ".feather": ArrowFile,
    ".hdf5": Hdf5File,
    ".h5": Hdf5File,
}
INDEXES: dict[str, Any] = {".faiss": FaissIndex, ".index": FaissIndex}
DATABASES: dict[str, Any] = {
    "lancedb": LanceTable,
    "postgresql": PgTable,
    "postgres": PgTable,
    "qdrant": QdrantCollection,
}


def open_store(
    source: str | os.PathLike[str],
    *,
    vector: str | None = None,
    id: str | None = None,
    metric: str | None = None,
    items: str | os.PathLike[str] | None = None,
) -> Store:
    """The store that a name stands for.

    Parameters
    ----------
    source : path, or KIND:ADDRESS#TABLE
    vector, id : str, optional
        Columns with the vectors and with ids that no two rows share, where they cannot be guessed.
    metric : "l2", "cosine" or "ip", optional
        How it is searched, where it does not say so itself.
    items : path, optional
        A table with a row per item, for files and indexes that keep vectors alone.
    """
    text = os.fspath(source)
    if metric is not None and metric not in METRICS:
        raise StoreError(f"a metric is one of {', '.join(METRICS)}; got {metric!r}.")
    scheme = text.partition(":")[0]
    if scheme in DATABASES or scheme == "qdrant-edge":
        return _database(scheme, text, {"vector": vector, "id": id, "metric": metric}, items)
    options = {"vector": vector, "id": id, "metric": metric, "items": items}
    path = Path(text).expanduser().resolve()
    settle(path)
    if path.is_dir():
        return Parts(path, kinds=FILES, **options)
    kind = (FILES | INDEXES).get(path.suffix.lower())
    if kind is None:
        raise StoreError(
            f"{text!r} is not a store that is known: files end in {', '.join(FILES | INDEXES)}, a folder "
            "holds such files, and databases are lancedb:FOLDER#TABLE, postgresql://USER@HOST/DB#TABLE, "
            "qdrant:FOLDER-OR-URL#COLLECTION or qdrant-edge:FOLDER."
        )
    return kind(path, **options)


def _database(scheme: str, text: str, options: dict[str, Any], items: Any) -> Store:
    if items is not None:
        raise StoreError(f"{text} keeps the columns of its items itself; leave the table of items out.")
    if scheme == "qdrant-edge":
        options.pop("id")
        return QdrantEdge(text.partition(":")[2], **options)
    address, _, table = text.rpartition("#")
    if not address or not table:
        raise StoreError(f"name the table or collection behind a #: {text}#NAME.")
    if scheme in ("lancedb", "qdrant"):
        address = address.partition(":")[2]
    if scheme == "qdrant" and options.pop("id") is not None:
        raise StoreError("points of Qdrant have ids of their own; leave --id out.")
    return DATABASES[scheme](address, table, **options)
