"""Tables of sqlite-vec in a file, written and searched by SQLite and sqlite-vec alone."""

from contextlib import closing

import numpy as np
import pytest
import sqlite_vec

from hubless.stores.opening import open_store
from hubless.stores.sqlite_vec.vec_session import sqlite_module
from hubless.testing.store_cases import Case, model_for, sample

INSERT = "INSERT INTO {} (id, embedding, text) VALUES (?, ?, ?)"


def connect(path, timeout=60):
    """Connect as the README of sqlite-vec says."""
    connection = sqlite_module().connect(str(path), timeout=timeout)
    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.enable_load_extension(False)
    return connection


def run(path, *statements):
    """Run statements in one transaction; return the rows of the last one."""
    with closing(connect(path)) as database:
        for statement in statements:
            rows = database.execute(*([statement] if isinstance(statement, str) else statement)).fetchall()
        database.commit()
    return rows


def declared(width, metric="l2", key="integer", more=", text text"):
    return f"id {key} primary key, embedding float[{width}] distance_metric={metric}{more}"


def fill(path, ids, X, texts, metric="l2", table="items"):
    """Make a table; its metadata column has the texts."""
    key = "text" if isinstance(ids[0], str) else "integer"
    run(path, f"CREATE VIRTUAL TABLE {table} USING vec0({declared(X.shape[1], metric, key)})")
    insert(path, ids, X, texts, table)


def insert(path, ids, X, texts, table="items"):
    ids = [i if isinstance(i, str) else int(i) for i in ids]
    rows = zip(ids, [x.tobytes() for x in np.asarray(X, np.float32)], texts, strict=True)
    with closing(connect(path)) as database:
        database.executemany(INSERT.format(table), list(rows))
        database.commit()


def ask_for(path, queries, k, table="items", timeout=60):
    query = f"SELECT id FROM {table} WHERE embedding MATCH ? AND k = ? ORDER BY distance"
    with closing(connect(path, timeout)) as database:
        encoded = [np.asarray(q, np.float32).tobytes() for q in queries]
        return [[i for (i,) in database.execute(query, [q, k])] for q in encoded]


def dump(path, table="items"):
    """Return all rows, as the engine reports them."""
    return run(path, f'SELECT * FROM "{table}" ORDER BY 1')


def make(folder, ids, X, texts, metric="l2"):
    folder.mkdir(exist_ok=True)
    fill(folder / "items.db", ids, X, texts, metric)
    return open_store(f"sqlite:{folder / 'items.db'}#items")


def ask(store, queries, k):
    return ask_for(store.address, queries, k)


def add(store, ids, X, texts):
    insert(store.address, ids, X, texts)


def numbers(request):
    return Case(make, ask, add, text_ids=False, may_lack_vectors=False)


def texts(request):
    return Case(make, ask, add, may_lack_vectors=False)


@pytest.fixture(name="few")
def few_rows(tmp_path):
    """60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")
