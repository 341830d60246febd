"""Tables of PostgreSQL to which others write all the while: promote moves the last rows while they wait."""

import itertools
import json
import threading
import time

import numpy as np
import psycopg
import pytest

import hubless
from hubless import cli
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.repair import Repair
from hubless.stores.postgres.pg_locking import Clock
from hubless.stores.postgres.pg_table import PgTable
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.killer import CONTEXT
from tests.stores.pg_cases import Small, as_text, check_moved, items, rows_of, run
from tests.stores.pg_writer import COLUMNS, make_table, others_at_work

pytestmark = pytest.mark.services


class Late(PgTable):
    """A table to which others write right before the switch."""

    late = staticmethod(lambda: None)

    def _catch_up(self, *arguments):
        n_rows = super()._catch_up(*arguments)
        self.late()
        return n_rows


class Busy(Small):
    """A table to which a writer has written between any two passes, however slow that writer is."""

    size, is_busy, seen = 100, False, None

    def batches(self, columns=(), size=None):
        limit = time.monotonic() + 60
        while self.is_busy and self.state() == self.seen and time.monotonic() < limit:
            time.sleep(0.01)
        yield from super().batches(columns, size)
        self.seen = self.state() if self.is_busy else None


def as_array(text):
    return np.array(json.loads(text), dtype=np.float32)


def check_rows(address, table, expected, model, moved_from):
    """Check all rows of a table: vectors that were written to the table `moved_from` are moved."""
    rows = {i: rest for i, *rest in run(address, f"SELECT {COLUMNS} FROM {table}")}
    assert set(rows) == set(expected)
    for i, (text, place, vector, written_to) in expected.items():
        assert rows[i][:2] == [text, place]
        if vector is None:
            assert rows[i][2] is None
            continue
        wanted = as_array(vector)
        wanted = model.move(wanted[None])[0] if written_to == moved_from else wanted
        np.testing.assert_allclose(as_array(rows[i][2]), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_table_is_promoted_while_others_write_and_read(address):
    _, X, y, _ = sample(600)
    make_table(address, X)
    run(address, "CREATE INDEX ON items USING hnsw (embedding vector_l2_ops)")
    model, store = model_for(X, y, "l2"), Busy(address, "items")
    store.is_busy = True
    stopped = others_at_work(CONTEXT, address, X)
    try:
        time.sleep(0.5)
        report = apply_index(model, store, "moved")
        assert (report["passes"], "Promote with the model soon" in report["notes"][0]) == (5, True)
        with pytest.raises(StoreError, match=r"changed since.*[0-9]+ rows? may differ.*--model"):
            promote_index(store, "moved")
        (blue,) = run(address, "SELECT 'items'::regclass::oid::bigint")[0]
        kept = promote_index(store, "moved", model)["original"]
    finally:
        (rows, switched, longest, error), (wrong, gap, n_tables) = stopped()
    assert (error, wrong, n_tables) == (None, [], 2)
    assert max(longest, gap) < 30  # seconds, the limit for writers; 0.1 on a quiet machine
    check_rows(address, kept, switched, model, moved_from=None)
    check_rows(address, "items", rows, model, moved_from=blue)
    assert run(address, "SELECT count(DISTINCT n), sum(length - char_length(text)) FROM items") == [(600, 0)]
    added = len(set(rows) - set(switched))
    assert added > 0
    assert rollback_index(store)["added_since"] == added


def test_values_that_are_unique_may_be_swapped(address):
    _, X, y, _ = sample(30)
    make_table(address, X)
    run(address, "CREATE UNIQUE INDEX ON items (text)")  # which is never deferred
    model, store = model_for(X, y, "l2"), PgTable(address, "items")
    apply_index(model, store, "moved")
    run(
        address,
        "UPDATE items SET text = 'between' WHERE id = 1",
        "UPDATE items SET text = 'text 1', place = place + 100 WHERE id = 2",
        "UPDATE items SET text = 'text 2' WHERE id = 1",
    )
    promote_index(store, "moved", model)
    check_moved(address, model, "items_original", "items")


def test_beyond_the_bounds_nothing_is_changed(address, monkeypatch):
    _, X, y = items(address)
    store, model, numbers = Late(address, "items"), model_for(X, y, "l2"), itertools.count(10**6)
    apply_index(model, store, "moved")

    def late():
        for i in itertools.islice(numbers, 12):
            run(address, f"INSERT INTO items VALUES ({i}, 'late', '{as_text(X[0])}')")

    def described():
        served = (
            "SELECT relname, oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        return run(address, f"{served} ORDER BY 1"), store.mark()

    before = described()
    store.late = late
    with pytest.raises(StoreError, match=r"serves as before: 12 of its rows changed.*at most 11 are"):
        promote_index(store, "moved", model, max_rows=11)
    assert described() == before
    with monkeypatch.context() as patch:
        patch.setattr(Repair, "move_batch", lambda self, batch: time.sleep(1) or self.move(batch.vectors))
        with pytest.raises(StoreError, match=r"serves as before: writers would wait.*more than 0.5 s"):
            promote_index(store, "moved", model, max_wait=0.5)
    assert described() == before
    for bounds in ({"max_rows": -1}, {"max_wait": 0}, {"max_wait": float("nan")}):
        with pytest.raises(StoreError, match="must be"):
            promote_index(store, "moved", model, **bounds)
    with pytest.raises(StoreError, match="made by model"):
        promote_index(store, "moved", model_for(X[:30], y[:30], "l2"))
    promote_index(store, "moved", model, max_rows=12)
    check_moved(address, model, "items_original", "items")
    assert len(rows_of(address)) == 60 + 36


def test_a_statement_that_takes_too_long_is_cancelled(address):
    with (
        pytest.raises(StoreError, match=r"more than 0\.2 s"),
        psycopg.connect(address) as connection,
        Clock(connection, "items", 0.2).running(),
    ):
        connection.execute("SELECT pg_sleep(60)")


def test_what_was_undone_meanwhile_is_noticed(address):
    """The rows are the same before and after each pass; while they were read, they were not."""

    class Undone(Small):
        def state(self):
            run(address, "DELETE FROM items WHERE id = -1", f"UPDATE items SET text = 'a' WHERE id = {one}")
            return super().state()

        def batches(self, columns=(), size=None):
            if self.name.endswith("items"):
                insert = f"INSERT INTO items VALUES (-1, '', '{as_text(X[0])}') ON CONFLICT DO NOTHING"
                run(address, insert, f"UPDATE items SET text = 'b' WHERE id = {one}")
            return super().batches(columns, size)

    ids, X, y = items(address)
    one, model, store = ids[7], model_for(X, y, "l2"), Undone(address, "items")
    apply_index(model, store, "moved")
    store.state()  # undoes the last of it
    store = PgTable(address, "items")
    assert set(rows_of(address, "moved")) - set(rows_of(address)) == {-1}
    with pytest.raises(StoreError, match="2 rows may differ"):
        promote_index(store, "moved")
    promote_index(store, "moved", model)
    check_moved(address, model, "items_original", "items")


def test_a_long_transaction_hides_nothing_and_costs_nothing(address):
    """While it is open, any row may be its; that its subtransaction wrote one, nobody else can know."""
    with psycopg.connect(address) as connection:
        connection.execute("SELECT pg_current_xact_id()")
        ids, X, y = items(address)
        store, model = PgTable(address, "items"), model_for(X, y, "l2")
        apply_index(model, store, "unchanged")
        promote_index(store, "unchanged")  # nothing was written since
        rollback_index(store)
        with connection.transaction():
            connection.execute(f"UPDATE items SET text = 'hidden' WHERE id = {ids[5]}")
        apply_index(model, store, "moved")
        run(address, f"INSERT INTO items VALUES (-1, 'late', '{as_text(X[1])}')")
        connection.commit()
        with pytest.raises(StoreError, match="61 rows may"):  # all were written since it began
            promote_index(store, "moved")
        connection.execute("SELECT pg_current_xact_id()")
        store = Late(address, "items")
        store.late = lambda: run(address, f"UPDATE items SET text = 'later' WHERE id = {ids[6]}")
        promote_index(store, "moved", model, max_rows=1)
    check_moved(address, model, "items_original", "items")
    texts = [rows_of(address)[ids[place]][0] for place in (5, 6)]
    assert texts == ["hidden", "later"]


def test_transactions_of_another_server_say_nothing(address):
    """Such as in a database that was restored from a dump: then all rows are moved again."""
    ids, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    (comment,) = run(address, "SELECT col_description('moved'::regclass, 3)")[0]
    mark = json.loads(comment)
    system, oid, _ = mark["since"].split()
    for since in (f"1 {oid} 999999999", f"{system} 1 999999999", f"{system} {oid} 999999999", "", "1 2 x"):
        text = json.dumps({**mark, "since": since})
        run(address, f"COMMENT ON COLUMN moved.embedding IS '{text}'")
        run(address, f"UPDATE items SET embedding = '{as_text(X[9] + 1)}' WHERE id = {ids[5]}")
        with pytest.raises(StoreError, match="60 rows may differ"):
            promote_index(store, "moved")
    promote_index(store, "moved", model)
    check_moved(address, model, "items_original", "items")


def test_who_has_read_and_wants_to_write_is_let_through(address):
    ids, X, y = items(address)
    store, model, errors = PgTable(address, "items"), model_for(X, y, "l2"), []
    apply_index(model, store, "moved")
    held = "SELECT 1 FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND relation = 'items'::regclass"

    def promote():
        try:
            promote_index(store, "moved", model)
        except StoreError as error:
            errors.append(error)

    with psycopg.connect(address) as connection:
        connection.execute("SELECT count(*) FROM items")
        thread = threading.Thread(target=promote)
        thread.start()
        while not connection.execute(held).fetchone() and thread.is_alive():
            time.sleep(0.001)
        connection.execute(f"UPDATE items SET text = 'mine' WHERE id = {ids[3]}")  # no deadlock
    thread.join()
    assert errors == []
    assert rows_of(address)[ids[3]][0] == "mine"
    check_moved(address, model, "items_original", "items")


def test_the_command_line_gives_the_model_to_promote(address, tmp_path, capsys):
    _, X, y = items(address)
    folder, source, model = str(tmp_path / "a model"), f"{address}#items", model_for(X, y, "l2")
    hubless.save(model, folder)
    assert cli.main(["apply", folder, source, "-o", "moved"]) == 0
    assert f" moved --model '{folder}'" in capsys.readouterr().out
    run(address, f"INSERT INTO items VALUES (-1, 'late', '{as_text(X[0])}')")
    assert cli.main(["promote", source, "moved"]) != 0
    assert "1 row may differ" in capsys.readouterr().err
    assert cli.main(["promote", source, "moved", "--model", folder, "--max-wait", "20"]) == 0
    check_moved(address, model, "items_original", "items")


def test_vectors_of_other_lengths_are_refused_by_promote_too(address):
    _, X, y, texts = sample(60)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    items(address, index="hnsw (embedding vector_ip_ops)", X=X, texts=texts)
    store, model = PgTable(address, "items"), model_for(X, y, "ip")
    apply_index(model, store, "moved")
    run(address, f"INSERT INTO items VALUES (-1, 'long', '{as_text(9 * X[1])}')")
    with pytest.raises(StoreError, match="inner product"):
        promote_index(store, "moved", model)
    assert store.mark() is None
