"""A repair tried before there is a model: what is held out, what is learned from, what is measured."""

import json

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import reference
from hubless.index import rehearsal as module
from hubless.index.collection import collect
from hubless.index.learn import learn_from_labels, learn_from_pairs
from hubless.index.pairs import Judged, judged
from hubless.index.rehearsal import rehearse_labels, rehearse_pairs
from hubless.index.repair import unit
from hubless.stores.files import NpyFile
from hubless.stores.store import StoreError

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
    return collect(store, ["kind", "text"], may_harm=True)


@pytest.fixture(scope="session")
def items(tmp_path_factory):
    return labeled(tmp_path_factory.mktemp("items"))


@pytest.fixture(scope="session")
def found(items):
    return rehearse_labels(items, "kind")


# --- from labels --------------------------------------------------------------------------------------------


def test_no_query_is_stored(items, found):
    stored, asked = found.items.ids.tolist(), [*found.query_ids]
    assert sorted(stored + asked) == sorted(items.ids.tolist())
    assert not set(stored) & set(asked)
    assert len(asked) == pytest.approx(len(items.ids) / 4, abs=1)
    rows = [items.places[own] for own in asked]
    np.testing.assert_array_equal(found.evaluation.asked.queries, items.vectors[rows])
    kinds = [items.columns["kind"][row] for row in rows]
    assert found.query_columns["kind"] == found.evaluation.asked.truth.tolist() == kinds
    assert found.query_columns["text"] == [items.columns["text"][row] for row in rows]


def test_every_class_that_can_be_is_in_both_parts(found):
    for name, size in SIZES.items():
        stored = found.items.columns["kind"].count(name)
        asked = found.query_columns["kind"].count(name)
        assert stored + asked == size
        if size >= 4:
            assert asked == pytest.approx(size / 4, abs=1)
            assert min(stored, asked) >= 1


def test_the_model_knows_the_stored_ones_alone(items):
    found = rehearse_labels(items, "kind", mover="ridge")  # which always moves
    mask = np.isin(items.ids, found.items.ids)
    again = learn_from_labels(items.take(mask), "kind", mover="ridge")
    learned = found.model.facts["learned"]
    assert learned["n"] == mask.sum() == len(found.items.ids)
    assert learned["mover"] == again.facts["learned"]["mover"]
    before, after = found.evaluation.asked.stored
    np.testing.assert_array_equal(before, items.vectors[mask])
    np.testing.assert_array_equal(after, found.items.moved(again))
    assert np.abs(after - before).max() > 0.1


def test_what_is_measured_is_so_by_loops(found):
    learned, asked = found.model.facts["learned"], found.evaluation.asked
    kinds = np.array(found.items.columns["kind"])
    ks = (learned["n_neighbors before"], learned["n_neighbors"])
    rights = []
    for stored, k in zip(asked.stored, ks, strict=True):
        _, near = reference.nearest(asked.queries, stored, k)
        rights.append(np.mean(reference.vote(kinds[near]) == asked.truth))
    told = found.evaluation.figures[0]
    assert (told.before, told.after) == pytest.approx(tuple(rights))


def test_words_tell_the_numbers(items, found):
    assert found.words.startswith(
        f"{len(found.query_ids)} of {len(items.ids)} items were held out as queries"
    )


def test_another_seed_holds_out_others_and_the_same_the_same(items, found):
    assert [*rehearse_labels(items, "kind", mover="ridge").query_ids] == [*found.query_ids]
    other = rehearse_labels(items, "kind", mover="ridge", random_state=1)
    assert {*other.query_ids} != {*found.query_ids}
    assert other.model.facts["learned"]["mover"].startswith("MoveLabeled")


def test_a_number_of_voters_counts_in_both_states(items):
    told = rehearse_labels(items, "kind", k=2).evaluation
    assert told.asked.ks == (2, 2)


def test_items_without_a_class_play_no_part(tmp_path):
    some = labeled(
        tmp_path, labels=lambda names: [None if i % 3 == 0 else own for i, own in enumerate(names)]
    )
    found = rehearse_labels(some, "kind")
    known = [own for own, kind in zip(some.ids.tolist(), some.columns["kind"], strict=True) if kind]
    assert sorted([*found.items.ids.tolist(), *found.query_ids]) == sorted(known)
    assert f"of {len(known)} items" in found.words


def test_many_items_are_not_all_asked(items, monkeypatch):
    monkeypatch.setattr(module, "QUERIES", 10)
    found = rehearse_labels(items, "kind", mover="ridge")
    assert (len(found.query_ids), len(found.items.ids)) == (10, len(items.ids) - 10)


def test_by_inner_product_it_is_measured_by_that(tmp_path):
    items = labeled(tmp_path, metric="ip", lengths=lambda rng, n: rng.uniform(0.2, 3, (n, 1)))
    assert (items.metric, items.facts.metric) == ("l2", "ip")
    found = rehearse_labels(items, "kind", metric="ip")
    asked = found.evaluation.asked
    assert asked.metric == "ip"
    for stored, near in zip(asked.stored, asked.found, strict=True):
        products = asked.queries.astype(float) @ stored.astype(float).T
        np.testing.assert_array_equal(near, np.argsort(-products, axis=1, kind="stable")[:, :10])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"ant": 4, "bee": 3}, "7 items are too few to hold some out: give 8 or more"),
        ({"ant": 20}, "there must be two or more"),
    ],
)
def test_too_little_to_hold_out_is_refused(tmp_path, sizes, message):
    with pytest.raises(StoreError, match=message):
        rehearse_labels(labeled(tmp_path, sizes), "kind")


def test_eight_items_are_enough(tmp_path):
    found = rehearse_labels(labeled(tmp_path, {"ant": 4, "bee": 4}), "kind")
    assert (len(found.query_ids), len(found.items.ids)) == (2, 6)


# --- from pairs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """120 documents by cosine; 80 queries know half of what one or two of them say, so moving helps."""
    folder, rng = tmp_path_factory.mktemp("library"), np.random.default_rng(1)
    X = rng.standard_normal((120, 2 * D)).astype(np.float32)
    answers = [rng.choice(60, 1 + n % 2, replace=False) for n in range(80)]
    queries = np.array([X[rows].mean(axis=0) + 0.3 * rng.standard_normal(2 * D) for rows in answers])
    X[:, D:] *= 2
    queries[:, D:] = 0.3 * rng.standard_normal((80, D))  # of which queries know nothing
    np.save(folder / "docs.npy", X)
    np.save(folder / "queries.npy", queries.astype(np.float32))
    rows = [f"{q}\t{i}\t{1 + place}" for q, own in enumerate(answers) for place, i in enumerate(own)]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    items = collect(NpyFile(folder / "docs.npy", metric="cosine"))
    pairs, left_out = judged(NpyFile(folder / "queries.npy"), folder / "qrels.tsv", items)
    assert left_out == 0
    return items, pairs


@pytest.fixture(scope="session")
def paired(library):
    return rehearse_pairs(*library)


def test_queries_are_held_out_and_all_items_stored(library, paired):
    items, pairs = library
    assert len(paired.query_ids) == 20
    assert len({*paired.query_ids}) == 20
    assert {*paired.query_ids} < {*pairs.ids}
    assert paired.items.ids.tolist() == items.ids.tolist()
    assert paired.words.startswith("20 of 80 judged queries were held out")
    rows = [pairs.ids.index(own) for own in paired.query_ids]
    np.testing.assert_allclose(paired.evaluation.asked.queries, unit(pairs.queries[rows]), rtol=1e-6)


def test_the_model_knows_the_other_queries_alone(library, paired):
    items, pairs = library
    others = [row for row, own in enumerate(pairs.ids) if own not in {*paired.query_ids}]
    again = learn_from_pairs(items, pairs.take(others))
    learned = paired.model.facts["learned"]
    assert learned["queries"] == 60
    assert learned["mover"] != "not to move"
    assert learned["n"] == sum(len(pairs.relevant[row]) for row in others)
    assert again.facts["learned"]["mover"] == learned["mover"]
    np.testing.assert_array_equal(items.moved(again), paired.evaluation.asked.stored.after)


def test_pairs_are_measured_as_scikit_learn_does(library, paired):
    items, pairs = library
    asked = paired.evaluation.asked
    told = paired.evaluation.figures[0]
    for stored, own in zip(asked.stored, (told.before, told.after), strict=True):
        scores = []
        for query, vector in zip(paired.query_ids, asked.queries, strict=True):
            truth = np.zeros((1, len(items.ids)))
            for item, worth in pairs.relevant[pairs.ids.index(query)].items():
                truth[0, items.places[item]] = worth
            apart = np.array([[-reference.distance(vector, z) for z in stored]])
            scores.append(ndcg_score(truth, apart, k=10))
        assert own == pytest.approx(np.mean(scores))
    assert (told.measure, told.n) == ("nDCG@10", 20)


@pytest.mark.parametrize("count", [1, 3, 4, 12])
def test_too_few_judged_queries_are_refused(library, count):
    items, pairs = library
    few = Judged(pairs.queries[:count], pairs.relevant[:count], pairs.ids[:count])
    with pytest.raises(StoreError, match="judged queries are too few"):
        rehearse_pairs(items, few)
