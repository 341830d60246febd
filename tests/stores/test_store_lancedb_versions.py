"""Tables of LanceDB: indexes of all kinds, which moved tables have too, and versions, which are kept."""

from datetime import timedelta

import lancedb
import numpy as np
import pytest
from lancedb import index as kinds

from hubless.neighbors.knn import unit
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.lancedb import lance_rows
from hubless.stores.store import StoreError
from hubless.testing.store_cases import exact, model_for, overlap, sample
from tests.stores.lancedb_cases import add, ask, content, engine, make

pytestmark = pytest.mark.services


@pytest.fixture
def items(tmp_path):
    """Return a table of 300 rows, what is in it, and a model."""
    ids, X, y, texts = sample()
    return make(tmp_path, ids, X, texts, None), ids, X, model_for(X, y, "l2")


def clean_up(table):
    with pytest.warns(UserWarning, match="removes every version except the latest"):
        table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)


# --- indexes ------------------------------------------------------------------------------------------------

RECIPES = {
    "IVF_PQ": kinds.IvfPq(distance_type="cosine", num_partitions=5, num_sub_vectors=4, max_iterations=20),
    "IVF_FLAT": kinds.IvfFlat(distance_type="dot", num_partitions=7, sample_rate=100),
    "IVF_SQ": kinds.IvfSq(num_partitions=3),
    "IVF_RQ": kinds.IvfRq(num_partitions=3, distance_type="cosine"),
    "IVF_HNSW_SQ": kinds.HnswSq(num_partitions=2, m=12, ef_construction=60),
    "IVF_HNSW_PQ": kinds.HnswPq(num_partitions=2, m=10, num_sub_vectors=8),
    "IVF_HNSW_FLAT": kinds.HnswFlat(num_partitions=2, ef_construction=50),
}


@pytest.fixture
def many(tmp_path):
    """Return a table that is large enough for indexes."""
    ids, X, y, texts = sample(600, d=16)
    return make(tmp_path, ids, X, texts, None), ids, X, y


def indexes_of(table):
    """Return what LanceDB reports of all indexes of a table, and how many parts its search ranks."""
    indexes = {
        index.name: (index.index_type, index.columns, index.num_unindexed_rows, index.index_details)
        for index in table.list_indices()
    }
    plan = table.search(np.ones(16, dtype=np.float32)).limit(1).analyze_plan()
    return indexes, [word for word in plan.split() if word.startswith("partitions_ranked")]


@pytest.mark.parametrize("name", RECIPES)
def test_an_index_is_built_again(tmp_path, name):
    ids, X, y, texts = sample(600, d=16)
    metric = {"l2": "l2", "cosine": "cosine", "dot": "ip"}[RECIPES[name].distance_type]
    X = unit(X) if metric == "ip" else X
    store = make(tmp_path, ids, X, texts, None)
    engine(store).create_index("vector", config=RECIPES[name], name="mine")
    facts, before = store.facts(), indexes_of(engine(store))
    assert (facts.metric, facts.index) == (metric, name)
    model = model_for(X, y, metric)
    apply_index(model, store, "moved")
    assert indexes_of(engine(store, "moved")) == before
    promote_index(store, "moved")
    assert indexes_of(engine(store)) == before
    assert store.facts() == facts
    queries = unit(X[:20] + 0.1)
    # by the index, but in all parts, and with so many candidates that codes of a few bits do not matter
    table = engine(store)
    results = [table.search(q).nprobes(10).refine_factor(60).limit(10).to_arrow() for q in queries]
    got = [result.column("id").to_pylist() for result in results]
    assert overlap(got, exact(ids, model.move(X), queries, 10, metric)) > 0.98


def test_other_indices_are_built_too(many):
    store, _, X, y = many
    table = engine(store)
    table.create_index("vector", config=kinds.IvfFlat(num_partitions=4))
    table.create_index("id", config=kinds.BTree())
    words = kinds.FTS(with_position=True, stem=False, max_token_length=None, ngram_max_length=4)
    table.create_index("text", config=words, name="words")
    table.create_index("text", config=kinds.Bitmap(), name="same", replace=False)
    before = indexes_of(engine(store))
    assert len(before[0]) == 4
    apply_index(model_for(X, y, "l2"), store, "moved")
    promote_index(store, "moved")
    assert indexes_of(engine(store)) == before


def test_rows_added_after_the_index_are_reported_and_indexed_in_green(many):
    store, _, X, y = many
    engine(store).create_index("vector", config=kinds.IvfFlat(num_partitions=4))
    add(store, [10**6], X[:1], ["late"])
    assert store.facts().index == "IVF_FLAT, 1 rows not in it"
    model = model_for(X, y, "l2")
    apply_index(model, store, "moved")
    add(store, [10**6 + 1], X[:1], ["later"])
    assert apply_index(model, store, "moved")["written"] == 1
    assert store.sibling("moved").facts().index == "IVF_FLAT"


def test_a_metric_that_only_the_index_knows_stays_without_it(many):
    store, _, X, y = many
    engine(store).create_index("vector", config=RECIPES["IVF_PQ"])
    apply_index(model_for(X, y, "cosine"), store, "moved")
    engine(store, "moved").drop_index("vector_idx")
    assert store.sibling("moved").facts().metric == "cosine"


# --- versions -----------------------------------------------------------------------------------------------


def test_the_original_survives_a_clean_up_and_comes_back_with_its_index(many):
    store, ids, X, y = many
    engine(store).create_index("vector", config=kinds.IvfPq(num_partitions=4, num_sub_vectors=4))
    original, index, nearest = content(store), indexes_of(engine(store)), ask(store, X[:10], 5)
    model = model_for(X, y, "l2")
    apply_index(model, store, "moved")
    kept = promote_index(store, "moved")["original"]
    add(store, [10**6], X[:1], ["came to the moved one"])
    for name in ("items", "moved"):
        clean_up(engine(store, name))
    assert content(store) != original
    old = store.sibling(kept)
    assert old.facts().count == 600
    assert {i for batch in old.ids() for i in batch.tolist()} == set(ids.tolist())
    report = rollback_index(store)
    assert report["added_since"] == 1
    assert content(store) == original
    assert indexes_of(engine(store)) == index
    assert ask(store, X[:10], 5) == nearest
    assert store.mark() is None
    clean_up(engine(store))
    moved = store.sibling(report["moved_kept_as"])
    np.testing.assert_allclose(moved.fetch(ids[:3]).vectors, model.move(X[:3]), rtol=1e-5, atol=1e-6)
    assert moved.fetch([10**6], ["text"]).columns["text"] == ["came to the moved one"]


def test_an_old_version_is_read_only(items):
    store, _, _, model = items
    apply_index(model, store, "moved")
    kept = promote_index(store, "moved")["original"]
    old = store.sibling(kept)
    assert old.mark() is None
    for write in (
        lambda: old.begin(store, None),
        lambda: old.remove(np.array([1])),
        lambda: old.promote(store.sibling("moved")),
        old.rollback,
    ):
        with pytest.raises(StoreError, match="only be read"):
            write()
    assert not store.sibling("items@never").exists()
    assert apply_index(model, old, "again")["written"] == 300  # it may be moved, into another table


def test_parts_are_read_in_one_order(items, monkeypatch):
    store, ids, *_ = items
    engine(store).delete(f"id in ({ids[5]}, {ids[90]}, {ids[91]})")
    add(store, [10**6], np.ones((1, 8)), ["late"])
    whole = [row["id"] for row in engine(store).to_arrow().to_pylist()]
    monkeypatch.setattr(lance_rows, "PART", 37)
    assert [i for batch in store.batches(size=10) for i in batch.ids.tolist()] == whole
    assert len(whole) == 298


def test_promote_and_rollback_twice(items):
    store, *_, model = items
    original = content(store)
    for _ in range(2):
        apply_index(model, store, "moved")
        promote_index(store, "moved")
        with pytest.raises(StoreError, match="moved already"):
            store.promote(store.sibling("moved"))
        rollback_index(store)
        assert content(store) == original


def test_a_table_that_was_made_again_has_another_state(items, tmp_path):
    store, ids, X, _ = items
    state, version = store.state(), engine(store).version
    assert store.state() == state
    lancedb.connect(tmp_path).drop_table("items")
    make(tmp_path, ids, X, [""] * 300, None)
    assert engine(store).version == version
    assert store.state() != state


def test_other_columns_than_those_of_green_are_refused(items):
    store, *_, model = items
    apply_index(model, store, "moved")
    engine(store).add_columns({"twice": "id * 2"})
    with pytest.raises(StoreError, match="different columns now"):
        apply_index(model, store, "moved")
