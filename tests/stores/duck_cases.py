"""Tables of DuckDB in a file, written and searched by DuckDB alone."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case, model_for, sample

FUNCTIONS = {
    "l2": "array_distance",
    "cosine": "array_cosine_distance",
    "ip": "array_negative_inner_product",
}


def connect(path):
    """Connect to write, or else to read where this process has the file open to read."""
    try:
        return duckdb.connect(str(path))
    except duckdb.ConnectionException:
        return duckdb.connect(str(path), read_only=True)


def run(path, *statements):
    """Run statements, a text or a text and its values; return the rows of the last one."""
    with connect(path) as database:
        for statement in statements:
            text, *values = [statement] if isinstance(statement, str) else statement
            rows = database.execute(text, *values).fetchall()
    return rows


def rows_of(ids, X, texts):
    """Return rows as Arrow; a row of NaN has no vector."""
    X = np.asarray(X, np.float32)
    missing = pa.array(np.isnan(X).all(axis=1))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1], mask=missing)
    return pa.table({"id": pa.array(list(ids)), "embedding": vectors, "text": list(texts)})


def fill(path, ids, X, texts, table="items", key="PRIMARY KEY"):
    type = "VARCHAR" if isinstance(ids[0], str) else "BIGINT"
    run(path, f"CREATE TABLE {table} (id {type} {key}, embedding FLOAT[{X.shape[1]}], text VARCHAR)")
    insert(path, ids, X, texts, table)


def insert(path, ids, X, texts, table="items"):
    with connect(path) as database:
        database.register("rows", rows_of(ids, X, texts))
        database.execute(f"INSERT INTO {table} SELECT * FROM rows")


def ask_for(path, queries, k, metric="l2", table="items"):
    width = np.shape(queries)[1]
    query = f"SELECT id FROM {table} ORDER BY {FUNCTIONS[metric]}(embedding, ?::FLOAT[{width}]) LIMIT {k}"
    with connect(path) as database:
        found = [database.execute(query, [q]).fetchall() for q in np.asarray(queries).tolist()]
    return [[i for (i,) in rows] for rows in found]


def dump(path, table="items"):
    """Return all rows, as the engine reports them."""
    return run(path, f'SELECT * FROM "{table}" ORDER BY 1')


def make(folder, ids, X, texts, metric="l2"):
    folder.mkdir(exist_ok=True)
    fill(folder / "items.duckdb", ids, X, texts)
    return open_store(f"duckdb:{folder / 'items.duckdb'}#items", metric=metric)


def ask(store, queries, k):
    return ask_for(store.address, queries, k, store.metric or "l2")


def add(store, ids, X, texts):
    insert(store.address, ids, X, texts)


def numbers(request):
    return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)


def texts(request):
    return Case(make, ask, add, metrics=("l2", "cosine", "ip"))


@pytest.fixture(name="few")
def few_rows(tmp_path):
    """60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")
