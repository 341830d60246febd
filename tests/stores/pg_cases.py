"""Tables of PostgreSQL with pgvector, written and searched by plain SQL."""

import itertools
import json

import numpy as np
import psycopg
from psycopg import sql

from hubless.stores.opening import open_store
from hubless.stores.postgres.pg_table import PgTable
from hubless.testing.store_cases import Case, sample

OPERATORS = {"l2": "<->", "cosine": "<=>", "ip": "<#>"}


def as_text(vector):
    """Return a vector as pgvector reads it."""
    return None if vector is None or np.isnan(vector).all() else str(np.asarray(vector, dtype=float).tolist())


def run(address, *statements):
    """Run statements of another program, in one transaction; return the rows of the last, if it has any."""
    with psycopg.connect(address) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


def fill(address, path, columns, rows):
    """Copy rows into a table."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(*path), names)
    with psycopg.connect(address) as connection, connection.cursor().copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def ask(address, queries, k, metric, table="items"):
    query = f"SELECT id FROM {table} ORDER BY embedding {OPERATORS[metric]} %s LIMIT %s"
    with psycopg.connect(address) as connection:
        return [[i for (i,) in connection.execute(query, [as_text(q), k])] for q in queries]


def items(address, *, n=60, id_type="bigint", type="vector", index=None, more="", schema="public", **data):
    """Make a table `items` with a row for each vector; return ids, vectors and classes."""
    ids, X, y, texts = sample(n, text_ids=id_type == "text")
    ids, X, texts = data.get("ids", ids), data.get("X", X), data.get("texts", texts)
    d = X.shape[1]
    run(
        address,
        f"CREATE SCHEMA IF NOT EXISTS {schema}",
        f"CREATE TABLE {schema}.items (id {id_type} PRIMARY KEY, text text, embedding {type}({d}) {more})",
    )
    add(address, (schema, "items"), ids, X, texts)
    if index:
        run(address, f"CREATE INDEX ON {schema}.items USING {index}")
    return ids, X, y


def add(address, path, ids, X, texts):
    rows = [(i, t, as_text(x)) for i, t, x in zip(ids.tolist(), texts, X, strict=True)]
    fill(address, path, ("id", "text", "embedding"), rows)


def rows_of(address, table="items"):
    """Return id → (text, vector or None)."""
    rows = run(address, f"SELECT id, text, embedding::text FROM {table}")
    return {i: (t, None if v is None else np.array(json.loads(v), np.float32)) for i, t, v in rows}


def check_moved(address, model, blue="items", green="moved", rtol=1e-5, atol=1e-6):
    """Check that green has all rows of blue, moved, and no others."""
    before, after = rows_of(address, blue), rows_of(address, green)
    assert set(before) == set(after)
    for i, (t, vector) in before.items():
        assert after[i][0] == t
        if vector is None:
            assert after[i][1] is None
        else:
            np.testing.assert_allclose(after[i][1], model.move(vector[None])[0], rtol=rtol, atol=rtol)


class Small(PgTable):
    """A table in batches of a few rows; `between` is called after each that was read."""

    size = 15
    between = staticmethod(lambda: None)

    def batches(self, columns=(), size=None):
        for batch in super().batches(columns, size or self.size):
            yield batch
            self.between()


def _case(request, *, has_texts):
    address, numbers, known = request.getfixturevalue("address"), itertools.count(), {}

    def make(folder, ids, X, texts, metric):
        schema = f"place{next(numbers)}"
        index = f"hnsw (embedding vector_{metric}_ops)" if has_texts else None
        kind = "text" if has_texts else "bigint"
        items(address, id_type=kind, index=index, schema=schema, ids=ids, X=X, texts=texts)
        store = open_store(f"{address}#{schema}.items", metric=None if has_texts else metric)
        known[store.name] = f"{schema}.items", metric
        return store

    def ask_again(store, queries, k):
        table, metric = known[store.name]
        return ask(address, queries, k, metric, table)

    def add_rows(store, ids, X, texts):
        add(address, known[store.name][0].split("."), ids, X, texts)

    return Case(
        make,
        ask_again,
        add_rows,
        metrics=("l2", "cosine", "ip"),
        recall=0.97 if has_texts else 1.0,
        text_ids=has_texts,
    )


def numbers(request):
    return _case(request, has_texts=False)


def texts_and_an_index(request):
    return _case(request, has_texts=True)
