"""The best settings of a race side by side, against the same settings fitted by the public API."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, compare
from hubless.evaluation import BeforeAfter
from hubless.movers import MoveLabeled, Scale, Shrink, Smooth, Stay
from hubless.neighbors.knn import unit
from hubless.repair.evaluate import try_labels, try_pairs
from hubless.repair.index_items import IndexItems
from hubless.repair.judgements import Judgements
from hubless.repair.learn_in_memory import movers_for_metric
from hubless.report import choice
from hubless.report.compare_movers import LabelRivals, best_settings, compare_movers, rivals_of
from hubless.report.verdict import deciding
from hubless.selection.candidates import name, settings_by_name
from hubless.solve import Penalty
from hubless.stores.store import Facts
from tests import reference


@pytest.fixture(scope="module")
def trees():
    """Objects, their classes, queries, their classes: five classes in 30 columns that overlap."""
    rng = np.random.default_rng(3)
    centres, y, truth = 0.5 * rng.standard_normal((5, 30)), rng.integers(0, 5, 200), rng.integers(0, 5, 150)
    X, queries = (centres[codes] + rng.standard_normal((len(codes), 30)) for codes in (y, truth))
    return X, np.array(["a", "b", "c", "d", "e"])[y], queries, np.array(["a", "b", "c", "d", "e"])[truth]


@pytest.fixture(autouse=True)
def _no_surface(monkeypatch):
    monkeypatch.setattr(choice, "measure_surface", lambda *given: None)


def check_setting(setting, stored, trees, k, chosen):
    """Every figure of a setting, from its moved objects by scikit-learn's search and loops."""
    X, y, queries, truth = trees

    def right(points, k):
        return np.array(reference.vote(y[search(points, k)])) == truth

    def search(points, k):
        return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points).kneighbors(queries)[1]

    correct, before = right(stored, setting["k"]), right(X, k)
    counts = reference.k_occurrence(search(stored, 10), len(X))
    assert setting["value"] == pytest.approx(correct.mean())
    assert setting["skewness"] == pytest.approx(reference.skewness(counts))
    assert setting["never"] == pytest.approx(np.mean(np.array(counts) == 0))
    assert setting["fixed"] == sum(correct & ~before)
    assert setting["broken"] == sum(before & ~correct)
    if setting["chosen"]:
        assert setting["here"] is None
        return
    apart = correct.astype(float) - right(*chosen)
    error = apart.std(ddof=1) / len(apart) ** 0.5
    assert setting["here"]["mean"] == pytest.approx(apart.mean())
    assert setting["here"]["error"] == pytest.approx(error)
    assert setting["here"]["within"] == (abs(apart.mean()) <= error)


def test_the_best_of_a_race_are_fitted_to_the_same_objects(trees):
    X, y, _, _ = trees
    tried = {name(mover): mover for mover in (Stay(), Shrink(0.3), Shrink(0.4), Scale(0.6), Smooth(5))}
    model = MoveLabeledClassifierCV((1, 3, 5), mover=list(tried.values())).fit(X, y)
    figures = compare(model, *trees).figures
    settings = figures["choice"]["compared"]["settings"]
    assert figures["choice"]["compared"]["measure"] == "Accuracy"
    assert len({setting["name"] for setting in settings}) == 4
    assert [setting["name"] for setting in settings if setting["chosen"]] == [name(model.mover_)]
    stored = {
        setting["name"]: MoveLabeledClassifier(1, mover=tried[setting["name"]]).fit(X, y).moved_
        for setting in settings
    }
    plain = next(setting["k"] for setting in settings if setting["name"] == "Stay()")
    for setting in settings:
        check_setting(setting, stored[setting["name"]], trees, plain, (model.moved_, model.n_neighbors_))
        row = model.cv_results_["mover"].tolist().index(setting["name"])
        assert setting["score"] == model.cv_results_["mean_test_score"][row]
        if not setting["chosen"]:
            assert setting["in_race"]["mean"] == -model.cv_results_["behind_choice"][row]
            assert setting["in_race"]["error"] == model.cv_results_["standard_error"][row]


def test_the_best_penalties_of_a_grid(trees):
    X, y, _, _ = trees
    model = MoveLabeledClassifierCV((1, 3, 5), n_targets=(1, 3)).fit(X, y)
    report = compare(model, *trees)
    *settings, stay = report.figures["choice"]["compared"]["settings"]
    assert (stay["name"], stay["score"], stay["fixed"], stay["broken"]) == ("Stay()", None, 0, 0)
    assert settings[0]["chosen"]
    assert all(one["score"] >= other["score"] for one, other in pairwise(settings))
    for setting in settings:
        alpha, n_targets = re.fullmatch(
            r"MoveLabeled\(λ = (.*) × mean eigenvalue, n_targets=(.*)\)", setting["name"]
        ).groups()
        near = min(model.grid_["alpha"], key=lambda value: abs(value - float(alpha)))
        mover = MoveLabeled(Penalty(near, relative=True), int(n_targets))
        stored = MoveLabeledClassifier(3, mover=mover).fit(X, y).moved_
        k_plain = report.figures["counts"]["k_before"]
        check_setting(setting, stored, trees, k_plain, (model.moved_, model.n_neighbors_))


def test_without_a_race_nothing_is_compared(trees):
    assert "compared" not in compare(MoveLabeledClassifier(3), *trees).figures["choice"]


# --- of an index --------------------------------------------------------------------------------------------


def items_of(X, **columns):
    facts = Facts("vectors", "cosine", X.shape[1], len(X), "float64", "exhaustive")
    return IndexItems("items", facts, "cosine", np.arange(len(X)), unit(X), columns, 0)


def check_chosen(answered):
    """Fitted again, the chosen setting finds what the saved model of the page found."""
    rivals, rows = rivals_of(answered, None), answered.model.learned["tried"]
    chosen = next(row for row in best_settings(rivals, rows) if row["chosen"])
    again, (before, after) = rivals.find(chosen), rivals.known()
    assert chosen["name"] != rivals.stay
    np.testing.assert_array_equal(again.correct, after.correct)
    np.testing.assert_allclose(again.values, after.values)
    assert again.hubness.skewness == pytest.approx(after.hubness.skewness)
    figure = deciding(answered.evaluation)
    assert (before.values.mean(), after.values.mean()) == pytest.approx((figure.before, figure.after))
    return compare_movers(rivals, rows)


def test_of_an_index_with_labels(trees):
    X, y, _, _ = trees
    compared = check_chosen(try_labels(items_of(X, kind=y.tolist()), "kind"))
    assert len(compared["settings"]) == 4


def test_of_an_index_with_pairs():
    rng = np.random.default_rng(1)
    X, of_query = rng.standard_normal((150, 8)), rng.integers(0, 60, 120)
    queries = unit(X[of_query] @ (np.eye(8) + 0.5 * rng.standard_normal((8, 8))))
    judgements = Judgements(queries, [{int(item): 1.0} for item in of_query], [*range(120)])
    answered = try_pairs(items_of(X), judgements, k=5)
    compared = check_chosen(answered)
    assert compared["measure"].startswith("nDCG@5")
    assert [setting["name"] for setting in compared["settings"]][-1] == "not moving"
    evaluation = answered.evaluation
    many = replace(evaluation, answers=replace(evaluation.answers, ks=BeforeAfter(20, 20)))
    assert rivals_of(answered._replace(evaluation=many), None) is None  # a page keeps ten of each query


# --- which settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lift", [True, False])
@pytest.mark.parametrize("per_class", [2, 40])
def test_every_setting_of_a_race_is_found_by_its_name(trees, lift, per_class):
    X, y, _, _ = trees
    rows = np.concatenate([np.flatnonzero(y == code)[:per_class] for code in np.unique(y)])
    model = MoveLabeledClassifierCV((1, 3), mover="auto", lift=lift, cv=2).fit(X[rows], y[rows])
    names = set(model.cv_results_["mover"].tolist())
    settings = settings_by_name(X[rows])
    assert names <= set(settings)
    assert all(name(settings[one]) == one for one in names)


def row(setting, score, chosen=False):
    return {"name": setting, "score": score, "chosen": chosen, "k": 1}


def test_the_chosen_comes_first_then_other_kinds_then_not_moving():
    movers = {name(mover): mover for mover in movers_for_metric("l2", "auto")}
    shrink = [setting for setting in movers if setting.startswith("Shrink")]
    ridge = [setting for setting in movers if setting.startswith("MoveLabeled")]
    rivals = LabelRivals(None, movers)
    rows = [row(shrink[0], 0.9), row(shrink[1], 0.8), row("Stay()", 0.7), row(ridge[0], 0.6, chosen=True)]
    rows += [row("<unknown>", 0.5), row(ridge[1], 0.4), row("Scale(g=0.6)", None)]
    names = [one["name"] for one in best_settings(rivals, rows)]
    assert names == [ridge[0], shrink[0], shrink[1], "Stay()"]
    assert best_settings(rivals, [row(shrink[0], 0.9)]) == []
    rows[3]["chosen"], rows[2]["chosen"] = False, True
    names = [one["name"] for one in best_settings(rivals, rows)]
    assert names == [shrink[0], ridge[0], shrink[1], "Stay()"]
