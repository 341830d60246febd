"""The functions of `hubless.repair` for Python: stores and models by name or opened, and what verbs print."""

import json

import faiss
import numpy as np
import pytest

import hubless
from hubless import repair
from hubless.movers import MoveLabeled
from hubless.repair.index_items import read_items
from hubless.repair.learn_in_memory import learn_from_labels
from hubless.report.index_report import Named, report_index, write_index_report
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests import reference

N, M, D = 120, 30, 8


class Place:
    """120 items of 3 classes in a FAISS index, opened with the table beside it; 30 queries."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((3, D))
        self.y, self.truth = rng.integers(0, 3, N).astype(str), rng.integers(0, 3, M).astype(str)
        self.X, self.queries = (
            (centres[y.astype(int)] + rng.standard_normal((len(y), D))).astype(np.float32)
            for y in (self.y, self.truth)
        )
        index = faiss.IndexFlatL2(D)
        index.add(self.X)
        self.index = str(folder / "index.faiss")
        faiss.write_index(index, self.index)
        np.save(folder / "queries.npy", self.queries)
        for name, labels in (("items", self.y), ("queries", self.truth)):
            texts = [f"{name} {i}" for i in range(len(labels))]
            table = {"category": labels.tolist(), "title": texts}
            (folder / f"{name}.json").write_text(json.dumps(table))
        self.folder = folder
        self.store = open_store(self.index, items=folder / "items.json")
        self.query_store = open_store(folder / "queries.npy", items=folder / "queries.json")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def model(place):
    return repair.fit_index(place.store, labels="category", mover="ridge")


def test_fit_index_learns_what_its_parts_learn(place, model):
    expected = learn_from_labels(read_items(place.store, ["category"]), "category", mover="ridge")
    assert model.hash == expected.hash
    in_parts = repair.fit_index(place.store, labels="category", mover="ridge", in_parts=True)
    assert in_parts.facts["learned"]["chosen on"] == N
    np.testing.assert_allclose(in_parts.mover.W_, model.mover.W_, rtol=1e-6, atol=1e-6)


def test_fit_index_needs_one_kind_of_truth(place):
    for given in ({}, {"labels": "category", "pairs": "qrels.tsv"}):
        with pytest.raises(StoreError, match="labels, --labels"):
            repair.fit_index(place.store, **given)
    with pytest.raises(StoreError, match="queries"):
        repair.fit_index(place.store, pairs="qrels.tsv")
    for option in (
        {"memory": "1GB"},
        {"max_pairs": None},
        {"scratch": "x"},
        {"skip_bad": True},
        {"dask": ""},
    ):
        with pytest.raises(StoreError, match=r"is for labels \(--labels\)"):
            repair.fit_index(place.store, pairs="qrels.tsv", queries=place.query_store, **option)
    with pytest.raises(StoreError, match="for one process"):
        repair.fit_index(place.store, labels="category", memory="1GB", dask="")


def test_a_model_may_be_a_folder_a_repair_or_a_mover(place, model):
    hubless.save(model, place.folder / "model")
    mover = MoveLabeled(1.0).fit(place.X, place.y)
    hubless.save(mover, place.folder / "mover")
    how = {"labels": "category", "k": 3}
    saved, given = (
        repair.evaluate_index(each, place.store, place.query_store, **how)
        for each in (place.folder / "model", model)
    )
    assert saved.as_dict() == given.as_dict()
    _, near = reference.nearest(place.queries, mover.move(place.X), 3)
    right = np.mean(reference.vote(place.y[near]) == place.truth)
    for each in (str(place.folder / "mover"), mover):
        found = repair.evaluate_index(each, place.store, place.query_store, **how)
        assert found.figures[0].after == pytest.approx(right)
    with pytest.raises(StoreError, match=r"got a MoveLabeledClassifier; .*`hubless fit`"):
        repair.evaluate_index(hubless.MoveLabeledClassifier(), place.store, place.query_store, **how)
    with pytest.raises(StoreError, match="labels, --labels"):
        repair.evaluate_index(model, place.store, place.query_store)


def test_queries_may_be_an_array_or_a_store(place, model):
    for queries in (place.queries, place.query_store, str(place.folder / "queries.npy")):
        shown = repair.preview_index(model, place.index, queries, rows=[4, 2], k=5, fetched=N)
        assert [entry.query for entry in shown] == [4, 2]
        _, near = reference.nearest(place.queries[[4, 2]], model.move(place.X), 5)
        assert [[item["id"] for item in entry.after] for entry in shown] == near.tolist()
        ids, classes, *_ = repair.predict_index(model, queries, place.store, n_neighbors=3)
        _, near = reference.nearest(place.queries, model.move(place.X), 3)
        assert ids == [*range(M)]
        assert classes.tolist() == reference.vote(place.y[near]).tolist()
        assert repair.diagnose(place.index, queries=queries).hubness.n_queries == M


def test_a_classifier_predicts_without_a_source(place):
    classifier = hubless.MoveLabeledClassifier(n_neighbors=3).fit(place.X, place.y)
    _, classes, *_ = repair.predict_index(classifier, place.queries)
    assert classes.tolist() == classifier.predict(place.queries).tolist()


def test_an_index_is_switched_by_its_name(place, model):
    hubless.save(model, place.folder / "model")
    made = repair.apply_index(place.folder / "model", place.index, "moved.faiss")
    assert (made["rows"], made["written"]) == (N, N)
    repair.promote_index(place.index, "moved.faiss")
    assert repair.index_status(place.index)["status"] == "serving moved"
    served = faiss.read_index(place.index).reconstruct_n(0, N)
    np.testing.assert_allclose(served, model.move(place.X), rtol=1e-6)
    assert repair.rollback_index(place.index)["added_since"] == 0
    np.testing.assert_array_equal(faiss.read_index(place.index).reconstruct_n(0, N), place.X)


def test_models_are_updated_and_merged_by_name(place, model):
    hubless.save(model, place.folder / "model")
    both = repair.update_model(place.folder / "model", place.query_store, "category")
    assert both.facts["learned"]["n"] == N + M
    less = repair.update_model(both, place.query_store, "category", remove=True)
    np.testing.assert_allclose(less.mover.W_, model.mover.W_, rtol=1e-6, atol=1e-6)
    other = repair.fit_index(place.query_store, labels="category", mover="ridge")
    joint = repair.merge_models([place.folder / "model", other])
    np.testing.assert_allclose(joint.mover.moments_.K, both.mover.moments_.K, rtol=1e-9)


def test_a_report_of_an_index_is_that_of_the_command_line(place, model, run, tmp_path):
    hubless.save(model, place.folder / "model")
    named = Named(str(place.index), ["--items", str(place.folder / "items.json")])
    report = report_index(
        place.store, model=place.folder / "model", labels="category", queries=place.query_store, named=named
    )
    given = [place.index, "--items", place.folder / "items.json", "--labels", "category"]
    asking = ["--queries", place.folder / "queries.npy", "--query-items", place.folder / "queries.json"]
    found = run("report", *given, *asking, "--model", place.folder / "model", "-o", tmp_path / "page.html")
    for part in ("summary", "hubness", "apply", "counts", "classes"):
        assert report.figures[part] == found[part]
    assert report.figures["provenance"][:2] == [
        ["source", place.index],
        ["queries", str(place.query_store.name)],
    ]


def test_a_report_is_refused_before_any_work(place, tmp_path, monkeypatch):
    monkeypatch.setattr("hubless.repair.evaluate.read_items", lambda *_, **__: pytest.fail("work was done"))
    (tmp_path / "page.html").write_text("somebody else's")
    with pytest.raises(ValueError, match="is not a hubless page"):
        write_index_report(place.store, tmp_path / "page.html", labels="category")
    new = tmp_path / "new.html"
    with pytest.raises(ValueError, match="layout"):
        write_index_report(place.store, new, labels="category", layout="circle")
    with pytest.raises(StoreError, match="no column 'nowhere'; it has category, title"):
        write_index_report(place.store, new, labels="category", text="nowhere")
    with pytest.raises(StoreError, match="--queries SOURCE"):
        write_index_report(place.store, new, pairs="qrels.tsv")
    with pytest.raises(StoreError, match="cannot both be"):
        write_index_report(place.store, new, labels="category", parquet=new)
    assert not new.exists()
