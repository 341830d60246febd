"""The LanceDB store under kills, two applies at once, and programs that write at the worst moment."""

import multiprocessing
import os
import signal
import sys
import time
from contextlib import nullcontext

import lancedb
import numpy as np
import pytest
from lancedb import index as kinds

from hubless.index.apply import apply, promote, rollback
from hubless.stores import lancedb as store_module
from hubless.stores import lancedb_versions
from hubless.stores.lancedb import LanceTable
from hubless.stores.store import StoreError
from tests.store_contract import model_for, sample
from tests.test_store_lancedb import add, content, engine, make, rows_of

N = 400
REFUSED = 3  # status of a process


@pytest.fixture
def items(tmp_path):
    """A table with two indices, what is in it, and a model."""
    ids, X, y, texts = sample(N)
    store = make(tmp_path, ids, X, texts, None)
    engine(store).create_index("vector", config=kinds.IvfFlat(num_partitions=3))
    engine(store).create_index("id", config=kinds.BTree())
    return store, ids, X, model_for(X, y, "l2")


def check_moved(store, name, ids, X, model):
    """Every row is there once, with its vector moved and its text."""
    found = content(store, name)
    assert set(found) == set(ids.tolist())
    for i, moved in zip(ids.tolist(), model.move(X), strict=True):
        np.testing.assert_allclose(found[i]["vector"], moved, rtol=1e-5, atol=1e-6)
        assert found[i]["text"] == f"text of {i}"


# --- other processes, which are killed ----------------------------------------------------------------------


def run(work, *arguments):
    """A process of its own, forked from one that has the slow imports behind it and never opened a table."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lancedb", "hubless.index.apply", __name__])
    process = context.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def apply_slowly(address, model, size, is_locked=True):
    LanceTable.batches.__defaults__ = ((), size)  # many small batches
    if not is_locked:
        LanceTable.lock = lambda self: nullcontext()
    try:
        apply(model, LanceTable(address, "items"), "moved")
    except StoreError:
        sys.exit(REFUSED)


def count(store):
    try:
        return engine(store, "moved").count_rows()
    except ValueError:  # not there yet
        return 0


def wait_for(store, process, rows):
    """Until green has so many rows, or nobody works on it any more."""
    while process.is_alive() and count(store) < rows:
        time.sleep(0.005)


def test_an_apply_that_is_killed_is_resumed(items):
    store, ids, X, model = items
    before, state = content(store), store.state()
    moments = sorted(np.random.default_rng().integers(1, N // 2, 6).tolist())
    for rows in moments:
        process = run(apply_slowly, store.address, model, 10)
        wait_for(store, process, rows)
        process.kill()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL, moments
        assert not store.beside("moved").mark().done
        with pytest.raises(StoreError, match="not finished"):
            promote(store, "moved")
    assert 0 < count(store) < N
    report = apply(model, store, "moved")
    assert 0 < report["written"] < N  # what was there is not written again
    check_moved(store, "moved", ids, X, model)
    assert content(store) == before
    assert store.state() == state


def test_a_second_apply_refuses_while_one_runs(items):
    store, ids, X, model = items
    process = run(apply_slowly, store.address, model, 5)
    wait_for(store, process, 1)
    with pytest.raises(StoreError, match="another process"):
        apply(model, store, "moved")
    with pytest.raises(StoreError, match="another process"):
        store.promote(store.beside("moved"))
    process.join(60)
    assert process.exitcode == 0
    check_moved(store, "moved", ids, X, model)
    assert apply(model, store, "moved")["written"] == 0


def test_two_applies_that_cannot_lock_each_other_out_agree(items):
    store, ids, X, model = items
    both = [run(apply_slowly, store.address, model, 20, False) for _ in range(2)]
    for process in both:
        process.join(60)
    codes = {process.exitcode for process in both}
    assert 0 in codes
    assert codes <= {0, REFUSED}  # where both build the index, one is told so
    check_moved(store, "moved", ids, X, model)
    assert apply(model, store, "moved")["written"] == 0
    promote(store, "moved")


def kill_me(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(done):
    return lambda *arguments, **named: (done(*arguments, **named), kill_me())


def overwrite_a_part(table, reader, **_):
    """As LanceDB's own `add`, but killed while rows are read."""

    def rows():
        for batch in reader:
            yield batch.slice(0, 10)
            kill_me()

    engine_add(table, type(reader).from_batches(reader.schema, rows()), mode="overwrite")


def build_one(table, source):
    first = source.list_indices()[0]
    table.create_index(first.columns[0], config=store_module.recipe(source, first), name=first.name)
    kill_me()


engine_add = lancedb.table.LanceTable.add
MOMENTS = {
    "original kept": lambda: setattr(store_module, "keep", kill_after(store_module.keep)),
    "rows half written": lambda: setattr(lancedb.table.LanceTable, "add", overwrite_a_part),
    "rows there": lambda: setattr(LanceTable, "_check_replaced", kill_me),
    "one index there": lambda: setattr(store_module, "build", build_one),
    "indices there": lambda: setattr(LanceTable, "_set", kill_me),
    "all done": lambda: setattr(LanceTable, "_set", kill_after(LanceTable._set)),
    "moved kept": lambda: setattr(lancedb_versions, "keep", kill_after(lancedb_versions.keep)),
}


def switch_and_die(address, moment, back):
    MOMENTS[moment]()
    store = LanceTable(address, "items")
    store.rollback() if back else store.promote(store.beside("moved"))


def apply_and_die(address, moment, model):
    MOMENTS[moment]()
    apply(model, LanceTable(address, "items"), "moved")


def die(store, moment, what=False, work=switch_and_die):
    process = run(work, store.address, moment, what)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("moment", ["one index there", "indices there"])
def test_an_apply_that_is_killed_while_it_builds_indices_is_resumed(items, moment):
    store, ids, X, model = items
    die(store, moment, model, apply_and_die)
    check_moved(store, "moved", ids, X, model)
    assert not store.beside("moved").mark().done
    assert apply(model, store, "moved")["written"] == 0
    assert store.beside("moved").mark().done
    assert len(engine(store, "moved").list_indices()) == 2


@pytest.mark.parametrize("moment", list(MOMENTS)[:5])
def test_a_promote_that_is_killed_is_completed_or_rolled_back(items, moment):
    store, ids, X, model = items
    before = content(store)
    apply(model, store, "moved")
    for then in ("rollback", "promote"):
        die(store, moment)
        served = store.mark()
        if served is None:
            assert content(store) == before
        else:
            assert not served.done
            check_moved(store, "items", ids, X, model)
            if then == "rollback":
                rollback(store)
                assert content(store) == before
                apply(model, store, "moved")
    store.promote(store.beside("moved"))
    assert store.mark().done
    check_moved(store, "items", ids, X, model)
    indices = {index.name: index.num_unindexed_rows for index in engine(store).list_indices()}
    assert indices == {"vector_idx": 0, "id_idx": 0}
    rollback(store)
    assert content(store) == before
    assert len(engine(store).list_indices()) == 2


def test_a_rollback_that_is_killed_is_run_again(items):
    store, ids, X, model = items
    before = content(store)
    apply(model, store, "moved")
    die(store, "all done")
    assert store.mark().done
    die(store, "moved kept", True)
    check_moved(store, "items", ids, X, model)
    kept = rollback(store)["moved_kept_as"]
    assert content(store) == before
    assert [name.split("-")[1] for name in sorted(engine(store).branches.list())] == ["moved", "original"]
    assert store.beside(kept).mark().model == model.hash


def test_a_branch_whose_making_was_killed_is_no_obstacle(items):
    store, ids, X, model = items
    apply(model, store, "moved")
    half = lancedb_versions.keep(engine(store), "original", engine(store).version)
    os.remove(f"{store.address}/items.lance/_refs/branches/{half}.json")
    promote(store, "moved")
    check_moved(store, "items", ids, X, model)


# --- other programs, which write meanwhile ------------------------------------------------------------------


def test_rows_that_change_while_or_after_green_is_built_are_found(items, monkeypatch):
    store, ids, X, model = items
    write = LanceTable.write

    def write_late(green, batch, moved):
        write(green, batch, moved)
        monkeypatch.setattr(LanceTable, "write", write)
        engine(store).update(where=f"id = {ids[3]}", values={"text": "other words"})

    monkeypatch.setattr(LanceTable, "write", write_late)
    report = apply(model, store, "moved")
    assert (report["written"], report["passes"]) == (N + 1, 3)
    assert content(store, "moved")[ids[3]]["text"] == "other words"
    engine(store).update(where=f"id = {ids[4]}", values={"text": None})
    other = rows_of(ids[5:6], X[5:6] + 1, ["text of it"])
    engine(store).merge_insert("id").when_matched_update_all().execute(other)
    engine(store).delete(f"id = {ids[6]}")
    with pytest.raises(StoreError, match="changed"):
        promote(store, "moved")
    report = apply(model, store, "moved")
    assert (report["written"], report["removed"]) == (2, 1)
    found = content(store, "moved")
    assert found[ids[4]]["text"] is None
    np.testing.assert_allclose(found[ids[5]]["vector"], model.move(X[5:6] + 1)[0], rtol=1e-5)
    assert ids[6] not in found
    assert set(found) == set(content(store))


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_row_that_comes_while_it_is_promoted_is_not_lost(items, monkeypatch, is_killed):
    store, _, X, model = items
    apply(model, store, "moved")
    keep = store_module.keep

    def keep_late(table, word, version):
        add(store, [10**6], X[:1], ["late"])  # after the state was compared, before the rows are overwritten
        return keep(table, word, version)

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "keep", keep_late)
        if is_killed:  # before it could see what happened
            patch.setattr(LanceTable, "_check_replaced", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError if is_killed else StoreError):
            promote(store, "moved")
    if is_killed:
        assert 10**6 not in content(store)  # which comes later
        with pytest.raises(StoreError, match="changed while it was promoted"):
            store.promote(store.beside("moved"))
    assert store.mark() is None
    assert len(content(store)) == N + 1
    assert content(store)[10**6]["text"] == "late"
    assert apply(model, store, "moved")["written"] == 1
    promote(store, "moved")
    np.testing.assert_allclose(content(store)[10**6]["vector"], model.move(X[:1])[0], rtol=1e-5)


def test_a_row_that_comes_while_it_is_rolled_back_is_not_lost(items, monkeypatch):
    store, _, X, model = items
    apply(model, store, "moved")
    promote(store, "moved")
    keep = lancedb_versions.keep

    def keep_late(table, word, version):
        kept = keep(table, word, version)
        monkeypatch.setattr(lancedb_versions, "keep", keep)
        add(store, [10**6], X[:1], ["late"])
        return kept

    monkeypatch.setattr(lancedb_versions, "keep", keep_late)
    kept = rollback(store)["moved_kept_as"]
    assert 10**6 not in content(store)
    assert store.beside(kept).fetch([10**6], ["text"]).columns["text"] == ["late"]
