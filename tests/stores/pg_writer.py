"""A program that writes to a table of PostgreSQL all the while, one that reads it, and what must be left."""

import random
import time

import numpy as np
import psycopg

from tests.stores.killer import start
from tests.stores.pg_cases import as_text, fill, run

PAUSE = 0.004  # seconds between two transactions
COLUMNS = "id, text, place, embedding::text"


def make_table(address, X):
    """Make a table with all that rows must respect: unique, identity and generated columns, a foreign key."""
    run(
        address,
        "CREATE TABLE books (id int PRIMARY KEY)",
        "INSERT INTO books SELECT generate_series(0, 9)",
        f"CREATE TABLE items (id bigint PRIMARY KEY, text text, place int, embedding vector({X.shape[1]}), "
        "n int GENERATED ALWAYS AS IDENTITY, book int DEFAULT 3 REFERENCES books, "
        "length int GENERATED ALWAYS AS (char_length(text)) STORED, "
        "CONSTRAINT one_place UNIQUE (place) DEFERRABLE)",
    )
    rows = [(i, f"text {i}", i, as_text(x)) for i, x in enumerate(X)]
    fill(address, ("public", "items"), ("id", "text", "place", "embedding"), rows)


class Writer:
    """Every transaction keeps the number of rows and the sum of their places.

    `rows` is what a table without hubless would have: id → [text, place, vector as text, table that the
    vector was written to]; `switched` is a copy from before the first transaction in another table.
    """

    def __init__(self, connection, X, seed=0):
        self.connection, self.X, self.random = connection, X, random.Random(seed)
        rows = connection.execute(f"SELECT {COLUMNS}, tableoid::bigint FROM items").fetchall()
        self.rows = {i: [text, place, vector, oid] for i, text, place, vector, oid in rows}
        self.table, self.switched, self.next, self.later = rows[0][4], None, len(rows), 0
        self.longest = 0.0

    def vector(self):
        return as_text(self.X[self.random.randrange(len(self.X))] + np.float32(self.random.random()))

    def write(self, statement, *values):
        """Run a statement; return the table that it wrote to."""
        return self.connection.execute(f"{statement} RETURNING tableoid::bigint", values).fetchone()[0]

    def step(self):
        """Write one transaction, then note what it did."""
        kinds = [self.replace, self.rewrite, self.rename, self.swap, self.clear, self.renumber, self.nested]
        one, other = self.random.sample(sorted(self.rows), 2)
        before = time.monotonic()
        with self.connection.transaction():
            table, changes = self.random.choice(kinds)(one, other)
        self.longest = max(self.longest, time.monotonic() - before)
        if table != self.table and self.switched is None:
            self.switched = {i: list(row) for i, row in self.rows.items()}
        self.later += self.switched is not None
        for i, row in changes.items():
            if row is None:
                del self.rows[i]
            else:
                self.rows[i] = row if row[3] is not None else [*row[:3], table]

    def replace(self, one, _):
        place, new, vector = self.rows[one][1], self.next, self.vector()
        self.next += 1
        self.write("DELETE FROM items WHERE id = %s", one)
        values = (new, f"new {new}", place, vector)
        table = self.write("INSERT INTO items (id, text, place, embedding) VALUES (%s, %s, %s, %s)", *values)
        return table, {one: None, new: [*values[1:], None]}

    def rewrite(self, one, _):
        vector = self.vector()
        table = self.write("UPDATE items SET embedding = %s WHERE id = %s", vector, one)
        return table, {one: [*self.rows[one][:2], vector, None]}

    def rename(self, one, _):
        """Read a row, think, and write it, as programs do that map tables to objects."""
        text = self.connection.execute("SELECT text FROM items WHERE id = %s", [one]).fetchone()[0] + "!"
        time.sleep(PAUSE / 2)
        table = self.write("UPDATE items SET text = %s WHERE id = %s", text, one)
        return table, {one: [text, *self.rows[one][1:]]}

    def swap(self, one, other):
        a, b = self.rows[one], self.rows[other]
        swap = "UPDATE items SET place = CASE id WHEN %s THEN %s ELSE %s END WHERE id IN (%s, %s)"
        table = self.write(swap, one, b[1], a[1], one, other)
        return table, {one: [a[0], b[1], *a[2:]], other: [b[0], a[1], *b[2:]]}

    def clear(self, one, _):
        table = self.write("UPDATE items SET embedding = NULL WHERE id = %s", one)
        return table, {one: [*self.rows[one][:2], None, None]}

    def renumber(self, one, _):
        new = self.next
        self.next += 1
        table = self.write("UPDATE items SET id = %s WHERE id = %s", new, one)
        return table, {one: None, new: self.rows[one]}

    def nested(self, one, other):
        with self.connection.transaction():  # a savepoint: its rows have a number of their own
            table, changes = self.rewrite(one, other)
        return table, changes


def keep_writing(address, X, stop, results):
    """Write until told to stop, and some more after the switch."""
    with psycopg.connect(address, autocommit=True) as connection:
        writer = Writer(connection, X)
        try:
            while not stop.is_set() or (writer.switched is not None and writer.later < 50):
                writer.step()
                time.sleep(PAUSE)
            results.put((writer.rows, writer.switched, writer.longest, None))
        except psycopg.Error as error:
            results.put((None, None, None, repr(error)))


def keep_reading(address, n, stop, results):
    """Read the whole table until told to stop; report what was not one whole version."""
    wrong, longest, tables = [], 0.0, set()
    query = "SELECT tableoid::bigint, count(*), count(DISTINCT id), sum(place) FROM items GROUP BY tableoid"
    with psycopg.connect(address, autocommit=True) as connection:
        while not stop.is_set():
            before = time.monotonic()
            try:
                rows = connection.execute(query).fetchall()
            except psycopg.Error as error:
                wrong.append(repr(error))
                break
            longest = max(longest, time.monotonic() - before)
            tables |= {row[0] for row in rows}
            if [row[1:] for row in rows] != [(n, n, n * (n - 1) // 2)]:
                wrong.append(rows)
            time.sleep(PAUSE)
    results.put((wrong, longest, len(tables)))


def others_at_work(context, address, X):
    """Start a writer and a reader; return a function that stops them and returns what they saw."""
    stop, written, read = context.Event(), context.Queue(), context.Queue()
    start(keep_writing, address, X, stop, written)
    start(keep_reading, address, len(X), stop, read)

    def stopped():
        stop.set()
        return written.get(timeout=60), read.get(timeout=60)

    return stopped
