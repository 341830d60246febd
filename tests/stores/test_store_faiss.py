"""FAISS indexes: ids, tables of items, and lists of few vectors."""

import json

import faiss
import numpy as np
import pytest

from hubless.repair.apply import apply_index, promote_index
from hubless.stores.faiss import FaissIndex
from hubless.stores.store import StoreError
from hubless.testing.store_cases import exact, model_for, sample


def test_a_table_of_items_goes_by_id_where_an_index_has_ids(tmp_path):
    ids, X, y, _ = sample()
    ids = ids - 1500  # hashes are often negative
    index = faiss.IndexIDMap2(faiss.IndexFlatL2(8))
    index.add_with_ids(X, ids)
    ivf = faiss.index_factory(8, "IVF4,Flat")
    ivf.cp.min_points_per_centroid = 1
    ivf.train(X)
    ivf.add_with_ids(X, ids)
    order = np.random.default_rng(1).permutation(len(ids))
    items = tmp_path / "items.json"
    items.write_text(json.dumps({"id": ids[order].tolist(), "label": y[order].tolist()}))
    for name, made in (("map", index), ("ivf", ivf)):
        faiss.write_index(made, str(tmp_path / f"{name}.faiss"))
        store = FaissIndex(tmp_path / f"{name}.faiss", items=items)
        batch = store.fetch(ids[:50].tolist(), ["label"])
        np.testing.assert_array_equal(batch.vectors, X[:50])
        assert batch.columns["label"] == y[:50].tolist()
        assert store.search(X[:5], 3).tolist() == made.search(X[:5], 3)[1].tolist()
    items.write_text(json.dumps({"label": y.tolist()}))
    assert FaissIndex(tmp_path / "map.faiss", items=items).fetch([ids[7]], ["label"]).columns["label"] == [
        y[7]
    ]
    with pytest.raises(StoreError, match="order"):
        FaissIndex(tmp_path / "ivf.faiss", items=items).facts()


def test_an_ivf_index_of_few_vectors_keeps_its_lists(tmp_path):
    _, X, y, _ = sample(60)
    index = faiss.index_factory(8, "IVF32,Flat")
    index.cp.min_points_per_centroid = 1
    index.train(X)
    index.add(X[:20])
    index.nprobe = 32
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    store, model = FaissIndex(tmp_path / "v.faiss"), model_for(X, y, "l2")
    apply_index(model, store, "green")
    promote_index(store, "green")
    found = faiss.read_index(str(tmp_path / "v.faiss")).search(X[:5], 3)[1]
    assert found.tolist() == exact(np.arange(20), model.move(X[:20]), X[:5], 3, "l2")
