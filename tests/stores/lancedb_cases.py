"""Tables of LanceDB, written and searched by LanceDB alone."""

import lancedb
import numpy as np
import pyarrow as pa
from lancedb import index as kinds

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case, model_for, sample

DISTANCES = {"l2": "l2", "cosine": "cosine", "ip": "dot"}


def rows_of(ids, X, texts, kind=np.float32):
    """Return rows as LanceDB takes them."""
    is_missing = pa.array(np.isnan(X).all(axis=1))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.astype(kind).ravel()), X.shape[1], mask=is_missing)
    return pa.table({"id": pa.array(list(ids)), "vector": vectors, "text": texts})


def make(folder, ids, X, texts, metric):
    rows = rows_of(ids, X, texts)
    lancedb.connect(folder).create_table("items", schema=rows.schema).add(
        rows
    )  # `create_table` takes no null
    return open_store(f"lancedb:{folder}#items", metric=metric)


def engine(store, name="items"):
    """Return the table of LanceDB, as it is now."""
    return lancedb.connect(store.address).open_table(name)


def ask(store, queries, k):
    table, distance = engine(store), DISTANCES[store.facts().metric]
    results = [table.search(q).distance_type(distance).limit(k).to_arrow() for q in queries]
    return [result.column("id").to_pylist() for result in results]


def add(store, ids, X, texts):
    engine(store).add(rows_of(ids, X, texts))


def content(store, name="items", id="id"):
    """Return all rows by id; fail where an id is there twice."""
    rows = engine(store, name).to_arrow().to_pylist()
    by_id = {row[id]: row for row in rows}
    assert len(by_id) == len(rows)
    return by_id


def indexed(folder, n):
    """Make a table with two indexes; return it, its ids and vectors, and a model."""
    ids, X, y, texts = sample(n)
    store = make(folder, ids, X, texts, None)
    engine(store).create_index("vector", config=kinds.IvfFlat(num_partitions=3))
    engine(store).create_index("id", config=kinds.BTree())
    return store, ids, X, model_for(X, y, "l2")


def texts(request):
    return Case(make, ask, add, metrics=("l2", "cosine", "ip"))


def numbers(request):
    return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)
