"""Moved vectors of another width: indexes and types that depend on it, for each kind of store.

That rows are written, switched and switched back is in store_contract.py.
"""

import json

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.faiss import FaissIndex
from hubless.stores.opening import open_store
from hubless.stores.store import Mark, StoreError
from hubless.testing.store_cases import exact, model_between, sample

services = pytest.mark.services


# --- the mark -----------------------------------------------------------------------------------------------


def test_a_mark_says_the_width_where_it_differs():
    mark = Mark("m", "items", "", done=True)
    assert "width" not in json.loads(mark.to_json())  # as before there were such copies
    wide = Mark("m", "items", "", done=True, width=11)
    assert Mark.from_json(wide.to_json()) == wide
    for width in (0, -3, 1.5, True, "11"):
        forged = json.dumps({**json.loads(wide.to_json()), "width": width})
        assert Mark.from_json(forged) is None


# --- files --------------------------------------------------------------------------------------------------


def test_rows_without_a_vector_have_none_in_the_other_width(tmp_path):
    _, X, _, _ = sample(40)
    model, _ = model_between(X, 5, "l2")
    rows = [None if i % 7 == 3 else x for i, x in enumerate(X.tolist())]
    for name, kind in (("fixed", pa.list_(pa.float32(), 8)), ("lists", pa.large_list(pa.float32()))):
        table = pa.table({"v": pa.array(rows, kind), "n": range(40)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        apply_index(model, tmp_path / f"{name}.parquet", f"{name}-moved.parquet")
        moved = pq.read_table(tmp_path / f"{name}-moved.parquet")
        kept = moved["v"].to_pylist()
        assert [row is None for row in kept] == [row is None for row in rows]
        present = [i for i, row in enumerate(rows) if row is not None]
        np.testing.assert_allclose([kept[i] for i in present], model.move(X[present]), rtol=1e-5, atol=1e-6)
        assert moved["n"].to_pylist() == [*range(40)]
        assert moved.schema.field("v").type == (pa.list_(pa.float32(), 5) if name == "fixed" else kind)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".faiss"])
def test_a_store_without_rows_gets_the_width(tmp_path, suffix):
    _, X, _, _ = sample(40)
    model, _ = model_between(X, 11, "l2")
    path, empty = tmp_path / f"v{suffix}", X[:0]
    if suffix == ".npy":
        np.save(path, empty)
    elif suffix == ".npz":
        np.savez(path, vectors=empty)
    else:
        faiss.write_index(faiss.IndexFlatL2(8), str(path))
    apply_index(model, path, f"moved{suffix}")
    facts = open_store(tmp_path / f"moved{suffix}").facts()
    assert (facts.dimension, facts.count) == (11, 0)


# --- FAISS --------------------------------------------------------------------------------------------------


def test_an_ivf_index_of_few_vectors_has_fewer_lists(tmp_path):
    _, X, _, _ = sample(60)
    model, queries = model_between(X, 11, "l2")
    index = faiss.index_factory(8, "IVF32,Flat")
    index.cp.min_points_per_centroid = 1
    index.train(X)
    index.add(X[:20])
    index.nprobe = 32
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    store = FaissIndex(tmp_path / "v.faiss")
    apply_index(model, store, "green")
    promote_index(store, "green")
    served = faiss.read_index(str(tmp_path / "v.faiss"))
    assert (served.d, served.nlist, served.nprobe) == (11, 20, 32)
    found = served.search(queries[:5], 3)[1]
    assert found.tolist() == exact(np.arange(20), model.move(X[:20]), queries[:5], 3, "l2")


def test_an_ivf_index_with_another_quantizer_is_refused(tmp_path):
    _, X, _, _ = sample(60)
    index = faiss.index_factory(8, "IVF4_HNSW8,Flat")
    index.cp.min_points_per_centroid = 1
    index.train(X)
    index.add(X)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    with pytest.raises(StoreError, match=r"5 columns.*IndexHNSWFlat.*flat quantizer"):
        apply_index(model_between(X, 5, "l2")[0], tmp_path / "v.faiss", "green")
    assert [file.name for file in tmp_path.iterdir()] == ["v.faiss"]


# --- LanceDB ------------------------------------------------------------------------------------------------


@services
@pytest.mark.parametrize("width", [24, 11])
def test_indexes_of_a_lancedb_table_are_built_for_the_width(tmp_path, width):
    from lancedb import index as kinds

    from tests.stores.lancedb_cases import engine, make

    ids, X, _, texts = sample(600, d=16)
    store = make(tmp_path, ids, X, texts, None)
    engine(store).create_index("vector", config=kinds.IvfPq(num_partitions=3, num_sub_vectors=4))
    model, _ = model_between(X, width, "l2")
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    (index,) = engine(store).list_indices()
    assert (index.index_type, index.num_unindexed_rows) == ("IvfPq", 0)
    n_parts = index.index_details["compression"]["num_sub_vectors"]
    assert n_parts == 4 if width == 24 else n_parts != 4  # which does not divide 11
    assert engine(store).schema.field("vector").type.list_size == width
    rollback_index(store)
    assert engine(store).schema.field("vector").type.list_size == 16


# --- PostgreSQL ---------------------------------------------------------------------------------------------


def indexes_of(address, table="items"):
    from tests.stores.pg_cases import run

    rows = run(address, f"SELECT indexname, indexdef FROM pg_indexes WHERE tablename = '{table}' ORDER BY 1")
    return {name: definition.partition(" USING ")[2] for name, definition in rows}


@services
@pytest.mark.parametrize("type", ["vector(8)", "halfvec(8)", "vector"])
def test_indexes_of_expressions_get_the_width(address, type):
    from tests.stores.pg_cases import add, ask, run

    ids, X, _, texts = sample(60)
    run(address, f"CREATE TABLE items (id bigint PRIMARY KEY, text text, embedding {type})")
    add(address, ("public", "items"), ids, X, texts)
    run(address, "CREATE INDEX near ON items USING hnsw ((embedding::halfvec(8)) halfvec_l2_ops)")
    store, before = open_store(f"{address}#items"), indexes_of(address)
    model, queries = model_between(X, 11, "l2")
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    assert store.facts().dimension == 11
    after = indexes_of(address)
    assert after.keys() == before.keys()
    assert after["near"] == before["near"].replace("8", "11")
    if "half" not in type:  # which rounds, and may swap two neighbours
        answers = exact(ids, model.move(X), queries[:5], 3, "l2")
        assert ask(address, queries[:5], 3, "l2") == answers
    rollback_index(store)
    assert indexes_of(address) == before
    assert store.facts().dimension == 8


@services
def test_a_width_that_pgvector_cannot_index_is_refused_first(address):
    from tests.stores.pg_cases import items, run

    _, X, _ = items(address, index="hnsw (embedding vector_l2_ops)")
    model, _ = model_between(X, 2001, "l2")
    store = open_store(f"{address}#items")
    with pytest.raises(StoreError, match=r"2001 columns.*at most 2000"):
        apply_index(model, store, "moved")
    assert not store.sibling("moved").exists()
    run(address, "DROP INDEX items_embedding_idx")
    assert apply_index(model, store, "moved")["written"] == 60


@services
def test_a_changed_column_is_still_refused(address):
    from tests.stores.pg_cases import items, run

    _, X, _ = items(address, n=20)
    model, store = model_between(X, 11, "l2")[0], open_store(f"{address}#items")
    apply_index(model, store, "moved")
    run(address, "ALTER TABLE items ADD COLUMN more int")
    with pytest.raises(StoreError, match="columns or checks"):
        apply_index(model, store, "moved")


# --- Qdrant -------------------------------------------------------------------------------------------------


@services
def test_one_of_several_vectors_of_a_point_gets_the_width(tmp_path):
    from hubless.stores.qdrant.qdrant_collection import QdrantCollection
    from tests.stores.qdrant_cases import dump
    from tests.stores.test_store_qdrant import rich

    before, ids, X, _ = rich(tmp_path)
    store = QdrantCollection(str(tmp_path), "items", vector="body")
    model, _ = model_between(X, 11, "l2")
    assert apply_index(model, store, "moved")["written"] == 40
    assert apply_index(model, store, "moved")["written"] == 0
    promote_index(store, "moved")
    client = store.connection.client
    sizes = {
        name: params.size for name, params in client.get_collection("items").config.params.vectors.items()
    }
    assert sizes == {"body": 11, "title": 3, "words": 2}
    after = dump(client, "items")
    for i, moved in zip(ids, model.move(X), strict=True):
        vectors, payload = after[i]
        assert payload == before[i][1]
        assert vectors.keys() == before[i][0].keys()
        assert vectors["words"] == before[i][0]["words"]
        if "body" in vectors:
            np.testing.assert_allclose(vectors["body"], moved, rtol=1e-5, atol=1e-6)
    rollback_index(store)
    assert dump(client, "items").keys() == before.keys()
    assert store.facts().dimension == 8
