"""Hubs before and after for queries without known answers, compared with plain loops."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from hubless.movers import MoveLabeled
from hubless.repair.learn_index import fit_index
from hubless.repair.log_evaluation import evaluate_log
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests import reference
from tests.repair.planted_items import by_loops, planted

K = 7


def counts(answers, n):
    found = [0] * n
    for row in answers:
        for i in row:
            found[i] += 1
    return found


def shop(folder, metric):
    """Planted items in a file with texts, and a store of them."""
    items = planted(metric, n=300)
    rows = {"id": [f"i{row}" for row in range(len(items.X))], "text": items.texts}
    np.save(folder / "items.npy", items.X)
    (folder / "items.json").write_text(json.dumps(rows))
    kind = "ip" if metric == "any lengths" else metric
    return items, kind, open_store(folder / "items.npy", metric=kind, items=folder / "items.json")


def check(found, items, answers):
    """Compare an evaluation with counts of answers before and after, by loops."""
    n, m = len(items.X), len(items.new)
    by_when = [counts(rows, n) for rows in answers]
    for hubness, wanted in zip(found.hubness, by_when, strict=True):
        assert np.asarray(hubness.occurrence).tolist() == wanted
        assert hubness.skewness == pytest.approx(reference.skewness(wanted))
        assert hubness.antihub_share == pytest.approx(reference.antihub_share(wanted))
    law = binom(m, K / n)
    assert found.chance.skewness == pytest.approx(float(law.stats("s")))
    assert found.chance.antihub_share == pytest.approx(law.pmf(0))
    same = sum(len({*old} & {*new}) for old, new in zip(*answers, strict=True)) / (K * m)
    assert found.same_answers == pytest.approx(same)
    assert same < 1  # so the line above can fail
    changes = sorted((abs(new - old) for old, new in zip(*by_when, strict=True)), reverse=True)[:10]
    assert [abs(item["after"] - item["before"]) for item in found.changed] == [c for c in changes if c]
    for item in found.changed:
        row = int(item["id"][1:])
        assert (item["before"], item["after"]) == (by_when[0][row], by_when[1][row])
        assert item["text"] == items.texts[row]


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip", "any lengths"])
def test_counts_are_those_of_loops(tmp_path, metric):
    items, kind, store = shop(tmp_path, metric)
    np.save(tmp_path / "log.npy", items.log)
    model = fit_index(store, queries=tmp_path / "log.npy")
    found = evaluate_log(model, store, items.new, k=K)
    rows = range(len(items.X))
    check(found, items, [by_loops(rows, X, items.new, kind, K) for X in (items.X, model.move(items.X))])
    assert found.notes == []
    assert found.hubness[1].skewness < found.hubness[0].skewness


def test_queries_without_a_vector_are_ignored_and_counted(tmp_path):
    items, _, store = shop(tmp_path, "cosine")
    np.save(tmp_path / "log.npy", items.log)
    model = fit_index(store, queries=tmp_path / "log.npy")
    gaps = items.new.copy()
    gaps[[0, 5]] = np.nan
    np.save(tmp_path / "new.npy", gaps)
    found = evaluate_log(model, store, tmp_path / "new.npy")
    assert (
        found.as_dict()["hubness"]
        == evaluate_log(model, store, items.new[[*range(1, 5), *range(6, len(gaps))]]).as_dict()["hubness"]
    )
    assert found.notes == ["2 queries have no vector and were ignored."]
    np.save(tmp_path / "new.npy", gaps[[0, 5]])
    with pytest.raises(StoreError, match="has no query with a vector"):
        evaluate_log(model, store, tmp_path / "new.npy")


def test_items_of_another_width_are_refused_as_what_they_are(tmp_path):
    items, _, store = shop(tmp_path, "cosine")
    np.save(tmp_path / "log.npy", items.log)
    model = fit_index(store, queries=tmp_path / "log.npy")
    d = items.X.shape[1]
    np.save(tmp_path / "narrow.npy", items.X[:, :5])
    narrow = open_store(tmp_path / "narrow.npy", metric="cosine")
    for queries in (items.new, items.new[:, :5]):
        with pytest.raises(StoreError, match=f"has vectors of 5 columns, the model is for {d}"):
            evaluate_log(model, narrow, queries)


def test_one_more_column(tmp_path):
    items, _, store = shop(tmp_path, "l2")
    np.save(tmp_path / "log.npy", items.log)
    model = fit_index(store, queries=tmp_path / "log.npy", column=True)
    found, rows = evaluate_log(model, store, items.new, k=K), range(len(items.X))
    asked = np.pad(items.new, ((0, 0), (0, 1)))
    answers = by_loops(rows, items.X, items.new, "l2", K), by_loops(rows, model.move(items.X), asked, "l2", K)
    check(found, items, answers)
    assert found.notes == [model.query_note]


def test_a_model_that_was_learned_from_labels(tmp_path):
    items, _, store = shop(tmp_path, "cosine")
    lengths = np.linalg.norm(items.X, axis=1, keepdims=True)
    mover = MoveLabeled(1.0).fit(items.X / lengths, np.arange(len(items.X)) % 5)
    model, rows = Repair(mover, "cosine"), range(len(items.X))
    answers = [by_loops(rows, X, items.new, "cosine", K) for X in (items.X, model.move(items.X))]
    check(evaluate_log(model, store, items.new, k=K), items, answers)


def test_more_answers_than_items_are_all_items(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "few.npy", rng.normal(size=(6, 3)))
    model = Repair(MoveLabeled(1.0).fit(rng.normal(size=(20, 3)), np.arange(20) % 2))
    found = evaluate_log(model, tmp_path / "few.npy", rng.normal(size=(9, 3)), k=10)
    assert found.hubness[0].k == 6
    assert (found.same_answers, found.changed) == (1.0, [])
    assert "\nNo answer changed." in str(found)


def test_a_model_between_spaces_has_nothing_before(tmp_path):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(40, 4)), rng.normal(size=(40, 3))
    np.save(tmp_path / "items.npy", X)
    with pytest.raises(StoreError, match=r"items have 4 columns and queries 3.*--pairs"):
        evaluate_log(Repair(MoveLabeled(1.0).fit_pairs(Q, X)), tmp_path / "items.npy", Q)
