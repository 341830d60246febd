"""Models whose moved items have another width: that of queries of another space, or one column more."""

import io
import json

import faiss
import numpy as np
import pyarrow as pa
import pytest

import hubless
from hubless.integrations.langchain import MovedEmbeddings
from hubless.movers import MoveLabeled
from hubless.repair.apply import apply_index, promote_index
from hubless.repair.doctor import diagnose
from hubless.repair.evaluate import evaluate_index
from hubless.repair.move_stream import move_arrow, move_lines
from hubless.repair.predict import predict_index
from hubless.repair.preview import preview_index
from hubless.repair.recall import compare_recall
from hubless.repair.repair import Repair
from hubless.report.index_report import report_index
from hubless.stores.opening import open_store
from hubless.stores.store import Store, StoreError

N, D, E = 120, 9, 6  # items, their columns, and those of queries


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


class Captions:
    """Pictures and captions, in two spaces: of each picture, one caption is learned from and one asks."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        meaning, first, second = (rng.standard_normal(shape) for shape in ((N, 4), (4, D), (4, E)))
        sides = [meaning @ first, meaning @ second, meaning @ second]
        noisy = [(side + 0.8 * rng.standard_normal(side.shape)).astype(np.float32) for side in sides]
        self.X, self.learned, self.asked = noisy
        self.labels = [f"kind {i}" for i in (meaning[:, 0] > 0).astype(int)]
        self.ids, self.folder = [f"picture {i}" for i in range(N)], folder
        np.save(folder / "items.npy", self.X)
        np.save(folder / "queries.npy", self.asked)
        self.items, self.names = folder / "items.json", folder / "queries.json"
        self.items.write_text(json.dumps({"id": self.ids, "kind": self.labels, "text": self.ids}))
        self.names.write_text(json.dumps({"id": [f"caption {i}" for i in range(N)], "kind": self.labels}))
        self.pairs = folder / "pairs.tsv"
        rows = [f"caption {i}\t{name}\t1" for i, name in enumerate(self.ids)]
        self.pairs.write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
        self.model = Repair(MoveLabeled(1.0).fit_pairs(unit(self.learned), unit(self.X)), "cosine")
        hubless.save(self.model, folder / "model")

    @property
    def source(self):
        return open_store(self.folder / "items.npy", metric="cosine", items=self.items)

    @property
    def queries(self):
        return open_store(self.folder / "queries.npy", items=self.names)

    def truth(self, k):
        """Return the places of the k nearest to each query after the move, by plain loops."""
        mover = self.model.mover
        moved = [mover.query_mean_ + mover.W_ @ (x - mover.mean_) for x in unit(self.X).astype(np.float64)]
        moved = unit(np.array(moved))
        return [np.argsort([-float(z @ q) for z in moved])[:k].tolist() for q in self.asked]

    def votes(self, k):
        """Return the most frequent kind among them."""
        kinds = [[self.labels[i] for i in row] for row in self.truth(k)]
        return [max(row, key=row.count) for row in kinds]


@pytest.fixture(scope="module")
def captions(tmp_path_factory):
    return Captions(tmp_path_factory.mktemp("captions"))


class WithColumn(Repair):
    """Gives items one column more, which is larger the farther an item is from the origin."""

    @property
    def width(self):
        return self.query_width + 1

    def move(self, vectors, ids=None, labels=None):
        moved = super().move(vectors, ids, labels)
        return np.c_[moved, np.linalg.norm(moved, axis=1)].astype(np.float32)


@pytest.fixture
def column(captions):
    y = np.arange(N) % 5
    return WithColumn(MoveLabeled(1.0).fit(captions.X, y))


# --- the model ----------------------------------------------------------------------------------------------


def test_rows_that_cannot_be_moved(captions):
    Z = captions.X[:5].copy()
    Z[1], Z[2, 3], Z[3] = np.nan, np.inf, 0
    moved = captions.model.move(Z)
    assert (moved.shape, moved.dtype) == ((5, E), np.float32)
    assert np.isnan(moved[1:3]).all()
    assert (moved[3] == 0).all()
    np.testing.assert_array_equal(moved[[0, 4]], captions.model.move(Z[[0, 4]]))
    assert captions.model.move(Z[1:4]).shape == (3, E)


def test_it_says_what_queries_need(captions, column, tmp_path):
    model = captions.model
    assert (model.dimension, model.query_width, model.width) == (D, E, E)
    assert f"queries of {E} columns" in model.query_note
    assert model.query_note in (captions.folder / "model" / "README.md").read_text()
    loaded = hubless.load(captions.folder / "model")
    assert loaded.hash == model.hash
    np.testing.assert_array_equal(loaded.move(captions.X), model.move(captions.X))
    plain = Repair(column.mover)
    assert plain.query_note is None
    assert plain.as_queries(captions.X) is captions.X
    assert f"append a 0 to every query of {D} columns" in column.query_note
    np.testing.assert_array_equal(column.as_queries(captions.X), np.c_[captions.X, np.zeros(N)])


# --- figures ------------------------------------------------------------------------------------------------


def test_there_are_figures_after_the_move_alone(captions, run, words):
    evaluation = evaluate_index(captions.model, captions.source, captions.queries, pairs=captions.pairs)
    truth = captions.truth(10)
    hit = next(change for change in evaluation.figures if change.measure == "hit rate@10")
    assert hit.after == pytest.approx(np.mean([i in row for i, row in enumerate(truth)]))
    assert 0.3 < hit.after < 1  # so the line above can fail
    assert np.isnan([hit.before, hit.low, hit.high]).all()
    counts = np.bincount(np.concatenate(truth), minlength=N)
    assert evaluation.hubness.before is None
    assert evaluation.hubness.after.largest_occurrence == counts.max()
    verb = ["evaluate", captions.folder / "model", captions.folder / "items.npy", "--items", captions.items]
    verb += ["--metric", "cosine", "--queries", captions.folder / "queries.npy", "--pairs", captions.pairs]
    verb += ["--query-items", captions.names]
    shown = run(*verb)
    assert {row["before"] for row in shown["figures"]} == {None}
    assert (shown["fixed"], shown["hubness"]["before"]) == (None, None)
    text = words(*verb)
    assert "nan" not in text
    assert "—" in text
    assert f"Items have {D} columns and queries {E}" in text


def test_the_vote_is_measured_after_the_move_alone(captions):
    by_class = evaluate_index(captions.model, captions.source, captions.queries, labels="kind", k=3)
    right = np.array(captions.votes(3)) == captions.labels
    assert by_class.figures[0].after == pytest.approx(right.mean())
    assert np.isnan(by_class.figures[0].before)


def test_a_column_is_measured_before_and_after(captions, column, tmp_path):
    queries = captions.X + 0.3
    np.save(tmp_path / "q.npy", queries)
    store = open_store(captions.folder / "items.npy", metric="l2", items=captions.items)
    asked = open_store(tmp_path / "q.npy", items=captions.names)
    evaluation = evaluate_index(column, store, asked, labels="kind", k=1)
    moved = column.move(captions.X)
    for state, stored, added in (("before", captions.X, 0), ("after", moved, 1)):
        near = [np.argmin(((stored - np.r_[q, [0] * added]) ** 2).sum(axis=1)) for q in queries]
        right = np.array(captions.labels)[near] == captions.labels
        assert getattr(evaluation.figures[0], state) == pytest.approx(right.mean())


# --- what is shown and refused ------------------------------------------------------------------------------


def test_previews_rank_all_items(captions, run, words, refused):
    previews = preview_index(
        captions.model, captions.source, captions.queries, rows=[3, 50], k=4, fetched=1, text="text"
    )
    truth = captions.truth(4)
    for preview, row in zip(previews, (3, 50), strict=True):
        assert preview.before == []
        assert [item["id"] for item in preview.after] == [captions.ids[i] for i in truth[row]]
        assert [item["text"] for item in preview.after] == [captions.ids[i] for i in truth[row]]
    verb = ["preview", captions.folder / "model", captions.folder / "items.npy", "--metric", "cosine"]
    assert "another width" in words(*verb, "--queries", captions.folder / "queries.npy")
    message = refused(*verb, "--like", "3")
    assert f"items of {D} columns" in message
    assert "--queries" in message
    message = refused(*verb, "--queries", captions.folder / "items.npy")
    assert f"queries have {D} columns" in message
    assert f"queries of {E}" in message


def test_previews_of_a_column(captions, column):
    store = open_store(captions.folder / "items.npy", metric="l2", items=captions.items)
    (preview,) = preview_index(column, store, captions.X[:1] + 0.3, k=5, fetched=N)
    query, moved = captions.X[0] + 0.3, column.move(captions.X)
    after = np.argsort(((moved - np.r_[query, 0]) ** 2).sum(axis=1))[:5]
    assert [item["id"] for item in preview.after] == [captions.ids[i] for i in after]
    before = np.argsort(((captions.X - query) ** 2).sum(axis=1))[:5]
    assert [item["id"] for item in preview.before] == [captions.ids[i] for i in before]


def test_queries_of_another_width_have_no_hubs_and_no_page(captions, monkeypatch):
    def read(*_):
        pytest.fail("items were read")

    monkeypatch.setattr(Store, "batches", read)
    monkeypatch.setattr(type(captions.source), "batches", read)
    with pytest.raises(StoreError, match=f"{E} columns.*have {D}.*hubless fit --pairs"):
        diagnose(captions.source, queries=captions.asked)
    for model in (None, captions.model):
        with pytest.raises(StoreError, match="hubless evaluate"):
            report_index(captions.source, model=model, queries=captions.queries, pairs=captions.pairs)


def test_a_page_of_a_column_says_what_queries_get(captions, column, tmp_path, monkeypatch):
    monkeypatch.setattr("hubless.report.index_report.advises_moving", lambda _: True)
    np.save(tmp_path / "q.npy", captions.X + 0.3)
    store = open_store(captions.folder / "items.npy", metric="l2", items=captions.items)
    asked = open_store(tmp_path / "q.npy", items=captions.names)
    page = report_index(store, model=column, queries=asked, labels="kind", k=1)
    evaluation = evaluate_index(column, store, asked, labels="kind", k=1)
    assert page.evaluation.figures == evaluation.figures
    assert page.figures["apply"]["words"].startswith(column.query_note)


def test_a_moved_index_of_another_width_has_hubs(captions, tmp_path):
    np.save(tmp_path / "v.npy", captions.X)
    store = open_store(tmp_path / "v.npy", metric="cosine")
    result = apply_index(captions.model, store, "moved.npy")
    assert result["notes"] == [captions.model.query_note]
    moved = open_store(tmp_path / "moved.npy", metric="cosine")
    counts = np.bincount(np.concatenate(captions.truth(10)), minlength=N)
    assert diagnose(moved, queries=captions.asked).hubness.largest_occurrence == counts.max()
    with pytest.raises(StoreError, match="the card of that model"):
        diagnose(moved, queries=captions.X)


# --- what is moved and asked --------------------------------------------------------------------------------


def test_classes_by_the_moved_items(captions, tmp_path):
    truth = captions.votes(3)
    options = {"labels": "kind", "n_neighbors": 3}
    found = predict_index(captions.model, captions.asked, captions.source, **options)
    assert found.classes.tolist() == truth
    np.save(tmp_path / "v.npy", captions.X)
    store = open_store(tmp_path / "v.npy", metric="cosine", items=captions.items)
    apply_index(captions.model, store, "moved.npy")
    promote_index(store, "moved.npy")
    assert predict_index(captions.model, captions.asked, store, **options).classes.tolist() == truth
    with pytest.raises(StoreError, match=f"queries have {D} columns"):
        predict_index(captions.model, captions.X, store, **options)


def test_a_faiss_index_with_a_column_is_asked_with_a_0(captions, column, tmp_path):
    index = faiss.IndexHNSWFlat(D, 16)
    index.add(captions.X)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    store = open_store(tmp_path / "v.faiss")
    assert column.query_note in apply_index(column, store, "moved")["notes"]
    promote_index(store, "moved")
    queries = captions.X[:20] + 0.3
    found = faiss.read_index(str(tmp_path / "v.faiss")).search(np.c_[queries, np.zeros(20, np.float32)], 1)[1]
    moved = column.move(captions.X)
    truth = [np.argmin(((moved - np.r_[q, 0]) ** 2).sum(axis=1)) for q in queries]
    assert np.mean(found[:, 0] == truth) >= 0.95


def test_each_index_is_searched_with_vectors_of_its_own_width(tmp_path):
    rng = np.random.default_rng(0)
    stores = []
    for name, width, effort in (("blue", 30, 64), ("wide", 40, 64), ("hasty", 40, 1)):
        index = faiss.IndexHNSWFlat(width, 4)
        index.hnsw.efSearch = effort
        index.add(rng.standard_normal((500, width)).astype(np.float32))
        faiss.write_index(index, str(tmp_path / f"{name}.faiss"))
        stores.append(open_store(tmp_path / f"{name}.faiss"))
    blue, wide, hasty = stores
    assert compare_recall(blue, wide) == []
    (note,) = compare_recall(blue, hasty)
    assert "Widen its search" in note


def test_streams_get_the_width(captions):
    rows = [{"id": name, "vector": x.tolist()} for name, x in zip(captions.ids, captions.X, strict=True)]
    wanted = captions.model.move(captions.X)
    moved = [json.loads(line)["vector"] for line in move_lines(captions.model, map(json.dumps, rows))]
    np.testing.assert_allclose(moved, wanted, rtol=1e-6)
    fixed, lists = pa.list_(pa.float32(), D), pa.list_(pa.float32())
    for kind, becomes in ((fixed, pa.list_(pa.float32(), E)), (lists, lists)):
        table = pa.table({"id": captions.ids, "v": pa.array(captions.X.tolist(), kind)})
        source, sink = io.BytesIO(), io.BytesIO()
        with pa.ipc.new_stream(source, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
        source.seek(0)
        assert move_arrow(captions.model, source, sink) == N
        made = pa.ipc.open_stream(sink.getvalue()).read_all()
        assert made.schema.field("v").type == becomes
        np.testing.assert_array_equal(np.array(made["v"].to_pylist(), np.float32), wanted)
        assert made["id"].to_pylist() == captions.ids


def test_embeddings_of_langchain(captions, column):
    class Embeddings:
        def embed_documents(self, texts):
            return [captions.X[int(text)].tolist() for text in texts]

        def embed_query(self, text):
            return captions.asked[int(text)].tolist()

    moved = MovedEmbeddings(Embeddings(), captions.model)
    np.testing.assert_allclose(moved.embed_documents(["4", "7"]), captions.model.move(captions.X[[4, 7]]))
    assert moved.embed_query("5") == captions.asked[5].tolist()
    assert MovedEmbeddings(Embeddings(), column).embed_query("5") == [*captions.asked[5].tolist(), 0.0]
