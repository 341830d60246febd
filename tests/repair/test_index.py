"""What the verbs stand on: moving single items, reading pairs, measures, and what is refused."""

import io
import json

import faiss
import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import ndcg_score

from hubless.movers import MoveLabeled, Shrink
from hubless.neighbors.knn import unit
from hubless.repair.apply import apply_index, promote_index
from hubless.repair.evaluate import evaluate_labels, evaluate_pairs
from hubless.repair.index_items import read_items
from hubless.repair.judgements import match_judgements, read_judgements
from hubless.repair.learn_in_memory import learn_from_pairs
from hubless.repair.movable import check_movable
from hubless.repair.move_stream import move_arrow
from hubless.repair.predict import predict_index
from hubless.repair.recall import compare_recall, recall
from hubless.repair.repair import ItemSteps, Repair
from hubless.retrieval import gains, hit, ndcg, reciprocal_rank
from hubless.retrieval import recall as found_share
from hubless.selection import from_pairs
from hubless.stores.faiss import FaissIndex
from hubless.stores.files.file_rows import read_table
from hubless.stores.files.plain_files import NpyFile
from hubless.stores.store import StoreError
from hubless.testing.store_cases import exact, model_for, sample


def test_measures_are_those_of_scikit_learn_and_of_loops(rng):
    found = np.array([rng.permutation(30)[:10] for _ in range(50)])
    relevant = [{int(i): float(rng.integers(1, 4)) for i in rng.permutation(30)[:4]} for _ in range(50)]
    worth = gains(found, relevant)
    for row, answers, got, first, any_hit, share in zip(
        found,
        relevant,
        ndcg(worth, relevant),
        reciprocal_rank(worth, relevant),
        hit(worth, relevant),
        found_share(worth, relevant),
        strict=True,
    ):
        truth, score = np.zeros((1, 30)), np.full((1, 30), -100.0)
        for item, value in answers.items():
            truth[0, item] = value
        for rank, item in enumerate(row):
            score[0, item] = -rank
        assert got == pytest.approx(ndcg_score(truth, score, k=10))
        ranks = [rank for rank, item in enumerate(row, 1) if item in answers]
        assert first == (1 / ranks[0] if ranks else 0)
        assert any_hit == bool(ranks)
        assert share == len(ranks) / 4


def test_an_item_with_queries_goes_a_step_further_by_its_id(rng):
    X, y = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    mover, goals = MoveLabeled(1.0).fit(X, y), rng.standard_normal((2, 3))
    for ids in (np.array([7, 3]), np.array(["7", "3"], dtype=object)):  # of a database, of a table
        moved = Repair(mover, steps=ItemSteps(ids, goals, 0.25)).move(X, range(40))
        plain = mover.mean_ + (X - mover.mean_) @ mover.W_.T
        plain[7], plain[3] = 0.75 * plain[7] + 0.25 * goals[0], 0.75 * plain[3] + 0.25 * goals[1]
        np.testing.assert_allclose(moved, plain)


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_rows_without_a_vector_stay_as_they_are(metric):
    _, X, y, _ = sample()
    model = model_for(X, y, metric)
    strange = X[:4].copy()
    strange[0], strange[1, 2], strange[2, 0] = np.nan, np.inf, np.nan
    moved = model.move(strange)
    np.testing.assert_array_equal(moved[:3], strange[:3])
    np.testing.assert_allclose(moved[3], model.move(X[3:4])[0], rtol=1e-6)


def test_a_zero_has_no_direction_under_cosine(tmp_path):
    """It is nobody's neighbour by cosine, so it must not become one: not by a move, not in a measure."""
    _, X, y, _ = sample()
    X[:5] = 0
    model = model_for(X[5:], y[5:], "cosine")
    assert not model.move(X)[:5].any()
    np.save(tmp_path / "v.npy", X)
    items = read_items(NpyFile(tmp_path / "v.npy", metric="cosine"))
    assert (len(items.ids), items.missing, items.ids[0]) == (295, 5, 5)


def test_unit_vectors_by_l2_are_learned_for_as_by_cosine(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(from_pairs, "REPEATS", 1)  # what is chosen is not the point
    documents = unit(rng.standard_normal((120, 12)).astype(np.float32))
    answers = rng.integers(0, 120, 90)
    queries = documents[answers] + 0.5 * rng.standard_normal((90, 12)).astype(np.float32)
    np.save(tmp_path / "q.npy", queries)
    lines = "".join(f"{i}\t{j}\t1\n" for i, j in enumerate(answers))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    index = faiss.IndexFlatL2(12)
    index.add(documents)
    faiss.write_index(index, str(tmp_path / "d.faiss"))
    store = FaissIndex(tmp_path / "d.faiss")
    items = read_items(store)
    pairs = match_judgements(NpyFile(tmp_path / "q.npy"), tmp_path / "qrels.tsv", items)
    assert (len(pairs.queries), pairs.left_out) == (90, 0)
    model = learn_from_pairs(items, pairs)
    assert model.metric == "cosine"
    model.steps = ItemSteps(np.array([3]), documents[:1], 0.5)  # by row number, of this very data
    assert apply_index(model, store, "stepped")["written"] == 120
    model = Repair(MoveLabeled(1.0).fit_pairs(unit(queries), documents[answers]), "cosine")
    assert "L2" in apply_index(model, store, "moved")["notes"][0]
    promote_index(store, "moved")
    served = faiss.read_index(str(tmp_path / "d.faiss"))
    truth = exact(np.arange(120), model.move(documents), unit(queries), 5, "cosine")
    assert served.search(queries, 5)[1].tolist() == truth
    np.save(tmp_path / "long.npy", 2 * documents)
    with pytest.raises(StoreError, match="the model is for cosine"):
        check_movable(model, long := NpyFile(tmp_path / "long.npy", metric="l2"), long.facts())


def test_steps_by_row_number_are_for_the_data_they_were_learned_from(tmp_path, rng):
    _, X, y, _ = sample()
    np.save(tmp_path / "v.npy", X)
    store = NpyFile(tmp_path / "v.npy", metric="l2")
    steps = ItemSteps(np.array([4]), X[:1], 0.5)
    model = Repair(MoveLabeled(1.0).fit(X, y), steps=steps, facts={"data": read_items(store).about()})
    assert apply_index(model, store, "moved")["written"] == 300
    np.save(tmp_path / "v.npy", np.concatenate([X[:1], X]))
    with pytest.raises(StoreError, match="row number"):
        apply_index(model, store, "again")


def test_items_and_queries_without_a_label_are_ignored(tmp_path):
    _, X, y, _ = sample()
    labels = [str(c) if i % 3 else None for i, c in enumerate(y)]
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "items.json").write_text(json.dumps({"label": labels}))
    store = NpyFile(tmp_path / "v.npy", metric="l2", items=tmp_path / "items.json")
    model = Repair(MoveLabeled(1.0).fit(X, y), facts={"learned": {"column": "label", "n_neighbors": 3}})
    evaluation = evaluate_labels(model, read_items(store, ["label"]), "label", X[:60], labels[:60])
    assert evaluation.figures[0].n == 40
    assert evaluation.figures[0].before > 0.9
    assert sum("have no label and are ignored" in note for note in evaluation.notes) == 2
    assert "40 of 40 queries are stored items, and find themselves." in evaluation.notes
    assert set(predict_index(model, X[:60], store).classes) <= set("01234")


def test_seen_and_unseen_items_are_measured_apart(tmp_path):
    _, X, y, _ = sample()
    np.save(tmp_path / "v.npy", X)
    items = read_items(NpyFile(tmp_path / "v.npy", metric="l2"))
    lines = "".join(f"{i}\t{i}\t1\n" for i in range(30))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    np.save(tmp_path / "q.npy", X[:30])
    pairs = match_judgements(NpyFile(tmp_path / "q.npy"), tmp_path / "qrels.tsv", items)
    model = Repair(MoveLabeled(1.0).fit(X, y), facts={"learned": {"seen": [*range(12)]}})
    found = evaluate_pairs(model, items, pairs).figures
    assert {(one.part, one.n) for one in found} == {("all", 30), ("seen", 12), ("unseen", 18)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("beir.tsv", "query-id\tcorpus-id\tscore\nq1\t7\t1\nq1\t8\t0\nq2\t9\t2\n"),
        ("trec.tsv", "q1 0 7 1\nq1 0 8 0\nq2 0 9 2\n"),
        ("trec.txt", "q1 0 7 1\n\nq2 0 9 2\n"),
        ("bom.csv", "\ufeffquery-id,corpus-id,score\r\nq1,7,1\r\nq2,9,2\r\n\r\n"),
        ("rows.jsonl", '{"query_id": "q1", "item": 7}\n{"query_id": "q2", "item": 9, "score": 2}\n'),
    ],
)
def test_judgements_are_read_from_what_people_have(tmp_path, name, text):
    (tmp_path / name).write_text(text.replace('"item": 7}', '"item": 7, "score": 1}'), encoding="utf-8")
    assert read_judgements(tmp_path / name) == {"q1": {"7": 1.0}, "q2": {"9": 2.0}}


@pytest.mark.parametrize("score", ["inf", "nan", "good", ""])
def test_scores_are_numbers(tmp_path, score):
    (tmp_path / "x.tsv").write_text(f"query-id\tcorpus-id\tscore\na\tb\t{score}\n")
    with pytest.raises(StoreError, match="score"):
        read_judgements(tmp_path / "x.tsv")


@pytest.mark.parametrize("text", ["null", "7", '{"q1": "text"}', "[]", '[{"a": 1}, 3]', "[" * 10_000])
def test_json_that_is_not_a_table_is_refused(tmp_path, text):
    (tmp_path / "items.json").write_text(text)
    with pytest.raises(StoreError, match="cannot be read"):
        read_table(tmp_path / "items.json")


def test_a_stream_that_fails_is_not_ended_as_if_it_were_whole(rng):
    """Whoever reads it must not take the rows before the failure for all there are."""
    model = Repair(MoveLabeled(1.0).fit(rng.standard_normal((20, 3)), np.repeat([0, 1], 10)))
    schema = pa.schema([("vector", pa.list_(pa.float32(), 3))])
    source, sink = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(source, schema) as writer:
        for numbers in ([1.0, 2.0, 3.0], [1.0, np.inf, 3.0]):
            column = pa.FixedSizeListArray.from_arrays(pa.array(numbers, pa.float32()), 3)
            writer.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))
    source.seek(0)
    with pytest.raises(StoreError):
        move_arrow(model, source, sink)
    assert not sink.getvalue().endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")  # the end of a whole stream


def test_recall_is_what_loops_say_and_a_loss_is_noted(tmp_path, monkeypatch):
    _, X, y, _ = sample(600)
    index = faiss.IndexHNSWFlat(8, 16)
    index.add(X)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    store = FaissIndex(tmp_path / "v.faiss")
    found, truth = index.search(X[:50], 10)[1], exact(np.arange(600), X, X[:50], 10, "l2")
    shared = np.mean([len({*map(int, a)} & {*b}) / 10 for a, b in zip(found, truth, strict=True)])
    assert recall(store, X[:50], "l2") == pytest.approx(shared)
    model = Repair(Shrink(0.3).fit(X, y.astype(str)), label="label")
    (tmp_path / "items.json").write_text(json.dumps({"label": [str(c) for c in y]}))
    store = FaissIndex(tmp_path / "v.faiss", items=tmp_path / "items.json")
    assert apply_index(model, store, "moved")["notes"] == []
    green = store.sibling("moved")
    monkeypatch.setattr(green, "search", lambda queries, k: np.zeros((len(queries), k), dtype=np.int64))
    assert "Widen its search" in compare_recall(store, green)[0]
