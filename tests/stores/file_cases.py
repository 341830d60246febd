"""Files of vectors, written by the libraries that own their formats."""

import json

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case, exact


def write_items(folder, ids, texts):
    """Write a table of items."""
    path = folder / "items.json"
    path.write_text(json.dumps({"id": [getattr(i, "item", lambda i=i: i)() for i in ids], "text": texts}))
    return path


def table_of(ids, vectors, texts, kind=None):
    """Return an Arrow table."""
    d = vectors.shape[1]
    is_missing = pa.array(np.isnan(vectors).all(axis=1))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), d, mask=is_missing)
    if kind is not None:
        column = column.cast(kind)
    return pa.table({"id": pa.array(ids.tolist()), "embedding": column, "text": pa.array(texts)})


def make_npy(folder, ids, vectors, texts, metric):
    np.save(folder / "v.npy", vectors)
    return open_store(folder / "v.npy", metric=metric, items=write_items(folder, ids, texts))


def make_npz(folder, ids, vectors, texts, metric):
    names = np.array([str(i) for i in ids]) if isinstance(ids[0], str) else ids
    np.savez(folder / "v.npz", vectors=vectors, id=names, text=np.array(texts))
    return open_store(folder / "v.npz", metric=metric)


def make_parquet(folder, ids, vectors, texts, metric):
    pq.write_table(table_of(ids, vectors, texts), folder / "v.parquet", row_group_size=64)
    return open_store(folder / "v.parquet", metric=metric)


def make_lists(folder, ids, vectors, texts, metric):
    pq.write_table(table_of(ids, vectors, texts, pa.list_(pa.float32())), folder / "v.parquet")
    return open_store(folder / "v.parquet", metric=metric)


def make_arrow(folder, ids, vectors, texts, metric):
    pyarrow.feather.write_feather(
        table_of(ids, vectors, texts), folder / "v.arrow", compression="uncompressed"
    )
    return open_store(folder / "v.arrow", metric=metric)


def make_hdf5(folder, ids, vectors, texts, metric):
    with h5py.File(folder / "v.hdf5", "w") as file:
        file["train"], file["test"], file["neighbors"] = vectors, vectors[:5], np.zeros((5, 2), int)
        file.attrs["distance"] = {"l2": "euclidean", "cosine": "angular"}[metric]
    return open_store(folder / "v.hdf5", items=write_items(folder, ids, texts))


def make_parts(folder, ids, vectors, texts, metric):
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(ids)), 4)):
        rows = [texts[j] for j in part]
        pq.write_table(table_of(ids[part], vectors[part], rows), folder / "parts" / f"{i}.parquet")
    return open_store(folder / "parts", metric=metric)


def rows_of(path):
    """Return the ids and vectors of a file or of a folder of Parquet files, as the format's library reads it.

    Ids are None where the format has none.
    """
    if path.suffix == ".npy":
        return None, np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as held:
            return held["id"].tolist(), held["vectors"]
    if path.suffix == ".hdf5":
        with h5py.File(path) as file:
            return None, file["train"][:]
    if path.suffix == ".parquet":
        with path.open("rb") as file:  # once: of a path, pyarrow opens it twice, and it may be another then
            table = pq.read_table(file)
    else:
        table = pyarrow.feather.read_table(path) if path.suffix == ".arrow" else pq.read_table(path)
    return table["id"].to_pylist(), np.array(table["embedding"].to_pylist(), dtype=np.float32)


def read_again(store, queries, k):
    """Search what is under the served path, by plain loops over what the format's library reads."""
    ids, X = rows_of(store.path)
    if ids is None:
        ids = json.loads((store.path.parent / "items.json").read_text())["id"]
    return exact(ids, X, queries, k, store.metric or store.facts().metric)


def case_for(make):
    return lambda request: Case(make, read_again)


npy, npz, hdf5 = case_for(make_npy), case_for(make_npz), case_for(make_hdf5)
parquet, parquet_of_lists, arrow = case_for(make_parquet), case_for(make_lists), case_for(make_arrow)
parts = case_for(make_parts)
