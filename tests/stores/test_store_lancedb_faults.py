"""Tables of LanceDB whose processes are killed, or on which two work at once."""

import os
import signal
import sys
import time

import lancedb
import numpy as np
import pytest

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.lancedb import lance_table, lance_versions
from hubless.stores.lancedb.lance_table import LanceTable
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_between
from tests.stores.killer import CONTEXT, LONG, start
from tests.stores.lancedb_cases import content, engine, indexed

pytestmark = [pytest.mark.services, pytest.mark.faults]
N = 400
REFUSED = 3  # exit code of a process


@pytest.fixture
def items(tmp_path, request):
    """Return a table with two indexes, what is in it, and a model; its parameter is the width it moves to."""
    store, ids, X, model = indexed(tmp_path, N)
    width = getattr(request, "param", None)
    return store, ids, X, model if width is None else model_between(X, width, "l2")[0]


def check_moved(store, name, ids, X, model):
    """Check that every row is there once, with its vector moved and its text."""
    rows = content(store, name)
    assert set(rows) == set(ids.tolist())
    for i, moved in zip(ids.tolist(), model.move(X), strict=True):
        np.testing.assert_allclose(rows[i]["vector"], moved, rtol=1e-5, atol=1e-6)
        assert rows[i]["text"] == f"text of {i}"


def apply_slowly(address, model, size, pause_at, go):
    """Apply in many small batches; wait for `go` once green has `pause_at` rows."""
    LanceTable.batches.__defaults__ = ((), size)
    store, write = LanceTable(address, "items"), LanceTable.write

    def write_or_wait(green, batch, moved):
        if count(store) >= pause_at:
            go.wait()
        write(green, batch, moved)

    LanceTable.write = write_or_wait
    apply_index(model, store, "moved")


def apply_unlocked(address, model, size):
    """Apply in many small batches, even while others do; exit with REFUSED on a StoreError."""
    LanceTable.batches.__defaults__ = ((), size)
    LanceTable._folder = None  # as in a bucket, which has no locks
    try:
        apply_index(model, LanceTable(address, "items"), "moved")
    except StoreError:
        sys.exit(REFUSED)


def count(store):
    try:
        return engine(store, "moved").count_rows()
    except ValueError:  # it does not exist yet
        return 0


def wait_for(store, process, rows):
    """Wait until green has this many rows."""
    while count(store) < rows:
        assert process.is_alive()
        time.sleep(0.005)


def test_an_apply_that_is_killed_is_resumed(items):
    """Killed at any moment; it waits for that before it writes more than half of the rows."""
    store, ids, X, model = items
    before, state, never = content(store), store.state(), CONTEXT.Event()
    moments = sorted(np.random.default_rng().integers(1, N // 2, 6).tolist())
    for rows in moments:
        process = start(apply_slowly, store.address, model, 10, N // 2, never)
        wait_for(store, process, rows)
        process.kill()
        process.join(LONG)
        assert process.exitcode == -signal.SIGKILL, moments
        assert not store.sibling("moved").mark().done
        with pytest.raises(StoreError, match="not finished"):
            promote_index(store, "moved")
    assert 0 < count(store) < N
    report = apply_index(model, store, "moved")
    assert 0 < report["written"] < N  # what exists is not written again
    check_moved(store, "moved", ids, X, model)
    assert content(store) == before
    assert store.state() == state


def test_a_second_apply_refuses_while_one_runs(items):
    store, ids, X, model = items
    go = CONTEXT.Event()
    process = start(apply_slowly, store.address, model, 100, 100, go)
    wait_for(store, process, 1)
    with pytest.raises(StoreError, match="another process"):
        apply_index(model, store, "moved")
    with pytest.raises(StoreError, match="another process"):
        store.promote(store.sibling("moved"))
    go.set()
    process.join(LONG)
    assert process.exitcode == 0
    check_moved(store, "moved", ids, X, model)
    assert apply_index(model, store, "moved")["written"] == 0


def test_two_applies_that_cannot_lock_each_other_out_agree(items):
    store, ids, X, model = items
    both = [start(apply_unlocked, store.address, model, 20) for _ in range(2)]
    for process in both:
        process.join(LONG)
    codes = {process.exitcode for process in both}
    assert 0 in codes
    assert codes <= {0, REFUSED}  # where both build the index, one is refused
    check_moved(store, "moved", ids, X, model)
    assert apply_index(model, store, "moved")["written"] == 0
    promote_index(store, "moved")


def kill_me(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(done):
    return lambda *arguments, **named: (done(*arguments, **named), kill_me())


def overwrite_a_part(table, reader, **_):
    """Add as LanceDB does, but killed while rows are read."""

    def rows():
        for batch in reader:
            yield batch.slice(0, 10)
            kill_me()

    engine_add(table, type(reader).from_batches(reader.schema, rows()), mode="overwrite")


def build_one(table, source):
    first = source.list_indices()[0]
    table.create_index(first.columns[0], config=lance_table.index_settings(source, first), name=first.name)
    kill_me()


engine_add = lancedb.table.LanceTable.add
MOMENTS = {
    "original kept": lambda: setattr(lance_versions, "keep", kill_after(lance_versions.keep)),
    "rows half written": lambda: setattr(lancedb.table.LanceTable, "add", overwrite_a_part),
    "rows written": lambda: setattr(lance_versions, "check_replaced", kill_me),
    "one index built": lambda: setattr(lance_table, "build", build_one),
    "indexes built": lambda: setattr(LanceTable, "set_mark", kill_me),
    "all done": lambda: setattr(LanceTable, "set_mark", kill_after(LanceTable.set_mark)),
    "moved kept": lambda: setattr(lance_versions, "keep", kill_after(lance_versions.keep)),
}


def switch_and_die(address, moment, back):
    MOMENTS[moment]()
    store = LanceTable(address, "items")
    store.rollback() if back else store.promote(store.sibling("moved"))


def apply_and_die(address, moment, model):
    MOMENTS[moment]()
    apply_index(model, LanceTable(address, "items"), "moved")


def die(store, moment, what=False, work=switch_and_die):
    process = start(work, store.address, moment, what)
    process.join(LONG)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("moment", ["one index built", "indexes built"])
def test_an_apply_that_is_killed_while_it_builds_indexes_is_resumed(items, moment):
    store, ids, X, model = items
    die(store, moment, model, apply_and_die)
    check_moved(store, "moved", ids, X, model)
    assert not store.sibling("moved").mark().done
    assert apply_index(model, store, "moved")["written"] == 0
    assert store.sibling("moved").mark().done
    assert len(engine(store, "moved").list_indices()) == 2


@pytest.mark.parametrize("items", [None, 11], indirect=True)
@pytest.mark.parametrize("moment", list(MOMENTS)[:5])
def test_a_promote_that_is_killed_is_completed_or_rolled_back(items, moment):
    store, ids, X, model = items
    before = content(store)
    apply_index(model, store, "moved")
    for then in ("rollback", "promote"):
        die(store, moment)
        served = store.mark()
        if served is None:
            assert content(store) == before
        else:
            assert not served.done
            check_moved(store, "items", ids, X, model)
            if then == "rollback":
                rollback_index(store)
                assert content(store) == before
                apply_index(model, store, "moved")
    store.promote(store.sibling("moved"))
    assert store.mark().done
    check_moved(store, "items", ids, X, model)
    indexes = {index.name: index.num_unindexed_rows for index in engine(store).list_indices()}
    assert indexes == {"vector_idx": 0, "id_idx": 0}
    rollback_index(store)
    assert content(store) == before
    assert len(engine(store).list_indices()) == 2


def test_a_rollback_that_is_killed_is_run_again(items):
    store, ids, X, model = items
    before = content(store)
    apply_index(model, store, "moved")
    die(store, "all done")
    assert store.mark().done
    die(store, "moved kept", True)
    check_moved(store, "items", ids, X, model)
    kept = rollback_index(store)["moved_kept_as"]
    assert content(store) == before
    assert [name.split("-")[1] for name in sorted(engine(store).branches.list())] == ["moved", "original"]
    assert store.sibling(kept).mark().model == model.hash


def test_a_half_made_branch_does_not_block_promote(items):
    store, ids, X, model = items
    apply_index(model, store, "moved")
    half = lance_versions.keep(engine(store), "original", engine(store).version)
    os.remove(f"{store.address}/items.lance/_refs/branches/{half}.json")
    promote_index(store, "moved")
    check_moved(store, "items", ids, X, model)
