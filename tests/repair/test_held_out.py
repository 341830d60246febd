"""A repair tried before there is a model: what is held out, what is learned from, what is measured."""

import json

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from hubless.neighbors.knn import unit
from hubless.repair import evaluate as module
from hubless.repair.evaluate import try_labels, try_pairs
from hubless.repair.index_items import read_items
from hubless.repair.judgements import Judgements, match_judgements
from hubless.repair.learn_in_memory import learn_from_labels, learn_from_pairs
from hubless.selection import from_pairs
from hubless.stores.files.plain_files import NpyFile
from hubless.stores.store import StoreError
from tests import reference

SIZES = {"ant": 60, "bee": 40, "cat": 12, "dog": 4, "eel": 2, "fox": 1}
D, WIDE = 6, 40


def labeled(folder, sizes=SIZES, *, labels=None, metric="l2", lengths=None):
    """Items of classes of these sizes in a file, with a table beside it."""
    rng = np.random.default_rng(0)
    names = rng.permutation(np.repeat([*sizes], [*sizes.values()]))
    centres = {name: 0.5 * rng.standard_normal(WIDE) for name in sizes}
    X = np.array([centres[name] + rng.standard_normal(WIDE) for name in names])
    X = (X if lengths is None else X * lengths(rng, len(X))).astype(np.float32)
    np.save(folder / "items.npy", X)
    table = {
        "id": [f"i{i}" for i in range(len(X))],
        "kind": names.tolist() if labels is None else labels(names),
        "text": [f"text {i}" for i in range(len(X))],
    }
    (folder / "items.json").write_text(json.dumps(table))
    store = NpyFile(folder / "items.npy", metric=metric, id="id", items=folder / "items.json")
    return read_items(store, ["kind", "text"], may_harm=True)


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    return labeled(tmp_path_factory.mktemp("items"))


@pytest.fixture(scope="module")
def found(items):
    return try_labels(items, "kind")


# --- from labels --------------------------------------------------------------------------------------------


def test_no_query_is_stored(items, found):
    stored, query_ids = found.items.ids.tolist(), [*found.query_ids]
    assert sorted(stored + query_ids) == sorted(items.ids.tolist())
    assert not set(stored) & set(query_ids)
    assert len(query_ids) == pytest.approx(len(items.ids) / 4, abs=1)
    rows = [items.places[item] for item in query_ids]
    np.testing.assert_array_equal(found.evaluation.answers.queries, items.vectors[rows])
    kinds = [items.columns["kind"][row] for row in rows]
    assert found.evaluation.answers.truth.tolist() == kinds
    stored_rows = [items.places[item] for item in stored]
    assert found.items.columns["text"] == [items.columns["text"][row] for row in stored_rows]


def test_every_class_that_can_be_is_in_both_parts(found):
    for name, size in SIZES.items():
        stored = found.items.columns["kind"].count(name)
        n_queries = found.evaluation.answers.truth.tolist().count(name)
        assert stored + n_queries == size
        if size >= 4:
            assert n_queries == pytest.approx(size / 4, abs=1)
            assert min(stored, n_queries) >= 1


def test_the_model_learns_only_from_stored_items(items):
    found = try_labels(items, "kind", mover="ridge")  # which always moves
    mask = np.isin(items.ids, found.items.ids)
    again = learn_from_labels(items.take(mask), "kind", mover="ridge")
    learned = found.model.facts["learned"]
    assert learned["n"] == mask.sum() == len(found.items.ids)
    assert learned["mover"] == again.facts["learned"]["mover"]
    before, after = found.evaluation.answers.stored
    np.testing.assert_array_equal(before, items.vectors[mask])
    np.testing.assert_array_equal(after, found.items.moved(again))
    assert np.abs(after - before).max() > 0.1


def test_what_is_measured_is_so_by_loops(found):
    learned, answers = found.model.facts["learned"], found.evaluation.answers
    kinds = np.array(found.items.columns["kind"])
    ks = (learned["n_neighbors before"], learned["n_neighbors"])
    rights = []
    for stored, k in zip(answers.stored, ks, strict=True):
        _, near = reference.nearest(answers.queries, stored, k)
        rights.append(np.mean(reference.vote(kinds[near]) == answers.truth))
    accuracy = found.evaluation.figures[0]
    assert (accuracy.before, accuracy.after) == pytest.approx(tuple(rights))


def test_a_note_says_what_was_held_out(items, found):
    numbers = f"{len(found.query_ids)} of {len(items.ids)}"
    assert found.evaluation.notes[-1].startswith(f"{numbers} items were held out as queries")


def test_another_seed_holds_out_others_and_the_same_the_same(items, found):
    assert [*try_labels(items, "kind", mover="ridge").query_ids] == [*found.query_ids]
    other = try_labels(items, "kind", mover="ridge", random_state=1)
    assert {*other.query_ids} != {*found.query_ids}
    assert other.model.facts["learned"]["mover"].startswith("MoveLabeled")


def test_a_number_of_voters_counts_in_both_states(items):
    evaluation = try_labels(items, "kind", k=2).evaluation
    assert evaluation.answers.ks == (2, 2)


def test_items_without_a_class_are_ignored(tmp_path):
    items = labeled(
        tmp_path, labels=lambda names: [None if i % 3 == 0 else name for i, name in enumerate(names)]
    )
    found = try_labels(items, "kind")
    known = [item for item, kind in zip(items.ids.tolist(), items.columns["kind"], strict=True) if kind]
    assert sorted([*found.items.ids.tolist(), *found.query_ids]) == sorted(known)
    assert f"of {len(known)} items" in found.evaluation.notes[-1]


def test_of_many_items_a_sample_is_used_as_queries(items, monkeypatch):
    monkeypatch.setattr(module, "QUERIES", 10)
    found = try_labels(items, "kind", mover="ridge")
    assert (len(found.query_ids), len(found.items.ids)) == (10, len(items.ids) - 10)


def test_by_inner_product_it_is_measured_by_that(tmp_path):
    items = labeled(tmp_path, metric="ip", lengths=lambda rng, n: rng.uniform(0.2, 3, (n, 1)))
    assert (items.metric, items.facts.metric) == ("l2", "ip")
    found = try_labels(items, "kind")
    answers = found.evaluation.answers
    assert answers.metric == "ip"
    for stored, near in zip(answers.stored, answers.neighbors, strict=True):
        products = answers.queries.astype(float) @ stored.astype(float).T
        np.testing.assert_array_equal(near, np.argsort(-products, axis=1, kind="stable")[:, :10])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"ant": 4, "bee": 3}, "7 items are too few to hold some out: give 8 or more"),
        ({"ant": 20}, "two or more are needed"),
    ],
)
def test_too_little_to_hold_out_is_refused(tmp_path, sizes, message):
    with pytest.raises(StoreError, match=message):
        try_labels(labeled(tmp_path, sizes), "kind")


def test_eight_items_are_enough(tmp_path):
    found = try_labels(labeled(tmp_path, {"ant": 4, "bee": 4}), "kind")
    assert (len(found.query_ids), len(found.items.ids)) == (2, 6)


# --- from pairs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """120 documents by cosine; 80 queries share half of the columns of one or two, so moving helps."""
    folder, rng = tmp_path_factory.mktemp("library"), np.random.default_rng(1)
    X = rng.standard_normal((120, 2 * D)).astype(np.float32)
    answers = [rng.choice(60, 1 + n % 2, replace=False) for n in range(80)]
    queries = np.array([X[rows].mean(axis=0) + 0.3 * rng.standard_normal(2 * D) for rows in answers])
    X[:, D:] *= 2
    queries[:, D:] = 0.3 * rng.standard_normal((80, D))  # columns in which queries are noise
    np.save(folder / "docs.npy", X)
    np.save(folder / "queries.npy", queries.astype(np.float32))
    rows = [f"{q}\t{i}\t{1 + place}" for q, found in enumerate(answers) for place, i in enumerate(found)]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    items = read_items(NpyFile(folder / "docs.npy", metric="cosine"))
    pairs = match_judgements(NpyFile(folder / "queries.npy"), folder / "qrels.tsv", items)
    assert pairs.left_out == 0
    return items, pairs


@pytest.fixture(scope="module", autouse=True)
def two_repeats():
    """Choose by fewer answers than usual: which setting is chosen is not the point here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_pairs, "REPEATS", 2)
        yield


@pytest.fixture(scope="module")
def paired(library, two_repeats):
    return try_pairs(*library)


def test_queries_are_held_out_and_all_items_stored(library, paired):
    items, pairs = library
    assert len(paired.query_ids) == 20
    assert len({*paired.query_ids}) == 20
    assert {*paired.query_ids} < {*pairs.ids}
    assert paired.items.ids.tolist() == items.ids.tolist()
    assert paired.evaluation.notes[-1].startswith("20 of 80 judged queries were held out")
    rows = [pairs.ids.index(query) for query in paired.query_ids]
    np.testing.assert_allclose(paired.evaluation.answers.queries, unit(pairs.queries[rows]), rtol=1e-6)


def test_the_model_learns_only_from_the_other_queries(library, paired):
    items, pairs = library
    others = [row for row, query in enumerate(pairs.ids) if query not in {*paired.query_ids}]
    again = learn_from_pairs(items, pairs.take(others))
    learned = paired.model.facts["learned"]
    assert learned["queries"] == 60
    assert learned["mover"] != "not moving"
    assert learned["n"] == sum(len(pairs.relevant[row]) for row in others)
    assert again.facts["learned"]["mover"] == learned["mover"]
    np.testing.assert_array_equal(items.moved(again), paired.evaluation.answers.stored.after)


def test_pairs_are_measured_as_scikit_learn_does(library, paired):
    items, pairs = library
    answers = paired.evaluation.answers
    ndcg = paired.evaluation.figures[0]
    for stored, measured in zip(answers.stored, (ndcg.before, ndcg.after), strict=True):
        scores = []
        for query, vector in zip(paired.query_ids, answers.queries, strict=True):
            truth = np.zeros((1, len(items.ids)))
            for item, worth in pairs.relevant[pairs.ids.index(query)].items():
                truth[0, items.places[item]] = worth
            apart = np.array([[-reference.distance(vector, z) for z in stored]])
            scores.append(ndcg_score(truth, apart, k=10))
        assert measured == pytest.approx(np.mean(scores))
    assert (ndcg.measure, ndcg.n) == ("nDCG@10", 20)


@pytest.mark.parametrize("count", [1, 3, 4, 12])
def test_too_few_judged_queries_are_refused(library, count):
    items, pairs = library
    few = Judgements(pairs.queries[:count], pairs.relevant[:count], pairs.ids[:count])
    with pytest.raises(StoreError, match="judged queries are too few"):
        try_pairs(items, few)
