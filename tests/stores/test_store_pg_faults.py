"""Tables of PostgreSQL whose processes are killed, whose connections break, or to which others write."""

import itertools
import time

import numpy as np
import psycopg
import pytest

from hubless.repair.apply import apply_index, promote_index
from hubless.stores.postgres.pg_table import PgTable
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.killer import LONG, killed_at
from tests.stores.pg_cases import Small, as_text, check_moved, items, rows_of, run
from tests.stores.postgres import PASSWORD

pytestmark = pytest.mark.services
OTHERS = "backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()"
KILLS = 6
# all that is sent to the server
STEPS = [
    (psycopg.Cursor, "execute"),
    (psycopg.ServerCursor, "execute"),
    (psycopg.ServerCursor, "fetchmany"),
    (psycopg.Copy, "write_row"),
    (psycopg.Connection, "commit"),
]


def count_steps(counted, patch=setattr):
    """Let all that is sent to the server be counted."""
    for kind, name in STEPS:
        patch(kind, name, counted(getattr(kind, name)))


def apply_again(address):
    _, X, y, _ = sample(60)
    apply_index(model_for(X, y, "l2"), Small(address, "items"), "moved")


@pytest.mark.faults
def test_an_apply_that_was_killed_is_resumed(address, monkeypatch):
    _, X, y = items(address, n=60, index="hnsw (embedding vector_l2_ops)")
    before, model, steps, written = rows_of(address), model_for(X, y, "l2"), [], []

    def counted(step):
        return lambda *args, **options: (steps.append(1), step(*args, **options))[1]

    with monkeypatch.context() as patch:
        count_steps(counted, patch.setattr)
        apply_index(model, Small(address, "items"), "undisturbed")
    shares = (np.arange(KILLS) + np.random.default_rng().random(KILLS)) / KILLS
    for moment in (shares * len(steps)).astype(int).tolist():
        killed_at(moment, count_steps, apply_again, address)
        end = time.monotonic() + LONG
        while run(address, f"SELECT 1 FROM pg_stat_activity WHERE {OTHERS}") and time.monotonic() < end:
            time.sleep(0.01)  # the server sees a moment later that nobody is there
        written.append(apply_index(model, PgTable(address, "items"), "moved")["written"])
        check_moved(address, model)
        run(address, "DROP TABLE moved")
    assert min(written) < 60  # so it was resumed
    after = rows_of(address)
    assert all(np.array_equal(before[i][1], after[i][1]) for i in before)


@pytest.mark.faults
def test_a_lost_connection_is_reported_and_loses_nothing(address):
    _, X, y = items(address, index="hnsw (embedding vector_l2_ops)")
    store, model, batches = Small(address, "items"), model_for(X, y, "l2"), itertools.count()

    def between():
        if next(batches) == 2:
            run(address, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")

    store.between = between
    with pytest.raises(StoreError, match=r"untouched.* again") as caught:
        apply_index(model, store, "moved")
    assert PASSWORD not in str(caught.value)
    assert len(rows_of(address, "moved")) == 45
    with pytest.raises(StoreError, match="not finished"):
        promote_index(store, "moved")
    assert apply_index(model, store, "moved")["written"] == 15
    check_moved(address, model)
    promote_index(store, "moved")


def test_two_at_once(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    with store.sibling("moved").lock():
        with pytest.raises(StoreError, match="another process"):
            apply_index(model, store, "moved")
        with pytest.raises(StoreError, match="another process"):
            promote_index(store, "moved")
        apply_index(model, store, "another")  # which nobody holds
    apply_index(model, store, "moved")
    promote_index(store, "moved")


def test_what_others_write_meanwhile_is_moved(address):
    _, X, y = items(address)
    store, model, batches = Small(address, "items"), model_for(X, y, "l2"), itertools.count()
    order = [i for (i,) in run(address, "SELECT id FROM items")]
    passed, ahead = order[:30], order[30:]

    def between():
        if next(batches) == 1:
            for rows in (passed, ahead):
                run(
                    address,
                    f"UPDATE items SET embedding = '{as_text(X[0] * 2)}' WHERE id = {rows[0]}",
                    f"UPDATE items SET text = 'new' WHERE id = {rows[1]}",
                    f"DELETE FROM items WHERE id = {rows[2]}",
                    f"UPDATE items SET id = -id - 1 WHERE id = {rows[3]}",
                    f"INSERT INTO items VALUES ({rows[0]} + 10000, 'added', '{as_text(X[1] / 2)}')",
                )

    store.between = between
    report = apply_index(model, store, "moved")
    assert report["passes"] == 3
    assert not report["notes"]
    check_moved(address, model)
    store = PgTable(address, "items")
    for change in (
        f"UPDATE items SET text = 'newer' WHERE id = {passed[5]}",
        f"UPDATE items SET embedding = NULL WHERE id = {passed[6]}",
        f"UPDATE items SET id = id + 20000 WHERE id = {passed[7]}",
        f"DELETE FROM items WHERE id = {passed[8]}",
        f"INSERT INTO items VALUES (-5, NULL, '{as_text(X[1])}')",
        "CREATE INDEX ON items (text)",
        "ALTER TABLE items ALTER text SET DEFAULT 'none'",
    ):
        run(address, change)
        with pytest.raises(StoreError, match="changed"):
            promote_index(store, "moved")
        if change.startswith("ALTER"):
            with pytest.raises(StoreError, match="changed"):
                apply_index(model, store, "moved")
            run(address, "DROP TABLE moved")
        apply_index(model, store, "moved")
        check_moved(address, model)
    promote_index(store, "moved")
