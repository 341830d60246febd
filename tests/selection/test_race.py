"""The race behind mover="auto": who answers whom, what is chosen and why, and what must not change it."""

import re
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from hubless import MoveLabeledClassifierCV, classifier_cv
from hubless.arrays import to_numpy
from hubless.movers import (
    MOVERS,
    Balance,
    Chain,
    Denoise,
    MoveLabeled,
    Mover,
    Regress,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Whiten,
    WithoutColumn,
)
from hubless.selection import kept_points, race, validation
from hubless.selection.candidates import (
    PENALTIES,
    STRENGTHS,
    balanced,
    movers_in_parts,
    name,
    simple_movers,
    steered,
    to_steer,
    unchosen,
)
from hubless.selection.folds import NEIGHBORS, folds
from hubless.selection.race import Race
from hubless.selection.trial import Trial
from hubless.selection.validation import CrossValidation
from hubless.solve import Penalty
from hubless.targets import Labeled, labeled_objects
from tests import reference

FEW = [Stay(), Scale(0.5), Shrink(0.4), Chain([Whiten(0.3), Shrink(0.7)]), Balance(0.6), Steer(1.5)]
COLUMNS = [
    "mover",
    "n_neighbors",
    "n_steps",
    "n_queries",
    "mean_test_score",
    "behind_choice",
    "standard_error",
]


@pytest.fixture
def overlapping(rng):
    """150 objects of 3 classes in 4 dimensions, about a quarter of them on the wrong side."""
    y = np.arange(150) % 3
    return 1.1 * rng.standard_normal((3, 4))[y] + rng.standard_normal((150, 4)), y


@pytest.fixture
def races(monkeypatch):
    """Every race that is run, as it was at the end."""
    run = []

    class Kept(Race):
        def run(self, movers):
            run.append(self)
            return super().run(movers)

    monkeypatch.setattr(classifier_cv, "Race", Kept)
    return run


@pytest.fixture
def short_rounds(monkeypatch):
    """A race in which 40 queries are many."""
    monkeypatch.setattr(race, "FIRST_ROUND", 40)
    monkeypatch.setattr(race, "LAST_ROUND", 120)
    monkeypatch.setattr("hubless.selection.trial.EARLIEST", 10)
    monkeypatch.setattr(validation, "EARLIEST", 10)


def auto(mover="auto", **settings):
    return MoveLabeledClassifierCV(mover=mover, **{"cv": 3} | settings)


def without_seconds(model):
    return pd.DataFrame(model.cv_results_).drop(columns="seconds")


class Broken(Mover):
    """Refuses to learn."""

    def _estimate(self, points):
        raise ValueError("it is broken")


# --- who answers whom ---------------------------------------------------------------------------------------


LEARNED_FROM = []


class Spy(Mover):
    """Stays, and keeps what it is given."""

    def _learn(self, points):
        LEARNED_FROM.append(points.X[:, 0].astype(int).tolist())
        return points


def test_no_query_is_answered_by_its_own_fold(overlapping, monkeypatch):
    X, y = overlapping
    X = np.column_stack([np.arange(150.0), X])  # the first column is the row number
    answered_by, answer = [], CrossValidation._answer

    def spied(self, moved, space, points, test):
        answered_by.append((moved[:, 0].astype(int).tolist(), test.tolist()))
        return answer(self, moved, space, points, test)

    monkeypatch.setattr(CrossValidation, "_answer", spied)
    LEARNED_FROM.clear()
    auto([Spy()]).fit(X, y)
    assert all(not set(stored) & set(test) and len(stored) == 100 for stored, test in answered_by)
    assert sorted(row for _, test in answered_by for row in test) == list(range(150))
    *parts, whole = LEARNED_FROM
    assert sorted(parts) == sorted({tuple(stored): stored for stored, _ in answered_by}.values())
    assert whole == list(range(150))


def test_labels_by_chance_are_guessed_by_chance(rng):
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)
    assert abs(auto().fit(X, y).best_score_ - 0.5) < 0.1


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize(("weighted", "ks"), [(False, (1, 3, 5)), (True, (1,))])  # scikit-learn: equal votes
def test_scores_same_as_fitting_every_setting(overlapping, rng, weights, weighted, ks):
    X, y = overlapping
    y = y % 2  # two classes and odd numbers of neighbours: no ties
    w = rng.integers(1, 4, 150) if weighted else np.ones(150)
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = auto(FEW, cv=cv, weights=weights, n_neighbors=ks).fit(X, y, sample_weight=w)
    table = pd.DataFrame(model.cv_results_).set_index("mover").query("n_queries == 150")
    assert len(table) >= 3
    for mover in (mover for mover in FEW if name(mover) in table.index):
        k, correct = int(table.n_neighbors[name(mover)]), np.zeros(150)
        for train, test in cv:
            fresh = clone(mover)
            stored = fresh.fit_transform(X[train], y[train], sample_weight=w[train])
            index = KNeighborsClassifier(k, weights=weights).fit(stored, y[train])
            correct[test] = index.predict(fresh.transform(X[test])) == y[test]
        assert table.mean_test_score[name(mover)] == pytest.approx(np.average(correct, weights=w))


def test_the_best_number_of_neighbours_is_the_smallest_of_the_best(overlapping, races):
    auto(FEW, n_neighbors=(1, 3, 5, 9)).fit(*overlapping)
    for trial in races[0].trials:
        shares = trial.correct.mean(axis=0)
        best = next(k for k, share in zip(trial.ks, shares, strict=True) if share >= shares.max() - 1e-12)
        assert (trial.n_neighbors, trial.score) == (best, pytest.approx(shares.max()))


# --- the choice ---------------------------------------------------------------------------------------------


def naive_behind(trial, best, weights):
    """By how much the best is ahead of a trial, query by query, and the standard error of that."""
    m = min(len(trial.correct), len(best.correct))
    w = [weights[q] / sum(weights[:m]) for q in range(m)]
    apart = [int(best.correct[q, best.column]) - int(trial.correct[q, trial.column]) for q in range(m)]
    ahead = sum(a * b for a, b in zip(w, apart, strict=True))
    return ahead, sqrt(sum((a * (b - ahead)) ** 2 for a, b in zip(w, apart, strict=True)))


@pytest.mark.parametrize("mover", ["auto", FEW], ids=["auto", "few"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_surest_gain_over_not_moving_is_chosen(overlapping, races, rng, mover, weighted):
    X, y = overlapping
    w = rng.random(150) + 0.1 if weighted else np.ones(150)
    model = auto(mover).fit(X, y, sample_weight=w if weighted else None)
    (run,) = races
    order = np.concatenate([test for _, test in run.folds.folds])
    finals = [trial for trial in run.trials if len(trial.correct) == 150]
    shares = [np.average(trial.correct[:, trial.column], weights=w[order]) for trial in finals]
    stay = next(trial for trial in run.trials if not trial.steps)
    sure = []
    for trial, share in zip(finals, shares, strict=True):
        _, error = naive_behind(trial, stay, w[order])
        sure.append(share - 1.5 * error * sqrt(len(stay.correct) / 150))
    chosen = next(trial for trial in finals if name(trial.mover) == name(model.mover_))
    assert sure[finals.index(chosen)] == pytest.approx(max(sure), abs=1e-9)
    alike = [trial for trial, value in zip(finals, sure, strict=True) if value > max(sure) - 1e-12]
    assert len(chosen.steps) == min(len(trial.steps) for trial in alike)
    assert model.best_score_ == pytest.approx(shares[finals.index(chosen)])
    one, other = (stay, chosen) if chosen.steps else (chosen, run.best())
    ahead, error = (100 * value for value in naive_behind(one, other, w[order]))
    than = " than not moving at all does" if chosen.steps else ""
    gain = f"{ahead:.2f} percentage points more{than} (standard error {error:.2f})"
    both = min(len(one.correct), len(other.correct))
    assert one is other or f"{gain}, on the {both} queries that both answered" in model.explain()
    for row in pd.DataFrame(model.cv_results_).itertuples():
        trial = next(trial for trial in run.trials if name(trial.mover) == row.mover)
        truth = naive_behind(trial, chosen, w[order])
        assert (row.behind_choice, row.standard_error) == pytest.approx(truth)


def test_easy_data_is_not_moved():
    X, y = make_blobs(300, 2, centers=4, cluster_std=0.6, random_state=0)
    model = auto().fit(X, y)
    assert isinstance(model.mover_, Stay)
    np.testing.assert_array_equal(model.moved_, X)


def test_a_good_mover_is_chosen_on_noisy_data():
    X, y = make_classification(1200, 100, n_informative=8, n_redundant=0, n_classes=4, random_state=0)
    X, y, queries, truth = X[:700], y[:700], X[700:], y[700:]
    model = auto().fit(X, y)
    plain = max(KNeighborsClassifier(k).fit(X, y).score(queries, truth) for k in NEIGHBORS)
    assert model.score(queries, truth) > plain + 0.06
    denoised = KNeighborsClassifier(15).fit(Denoise().fit_transform(X, y), y)
    assert (
        model.score(queries, truth) > denoised.score(np.column_stack([queries, np.zeros(500)]), truth) - 0.03
    )


def test_the_choice_is_fitted_to_all_objects(overlapping):
    X, y = overlapping
    model = auto(n_neighbors=[3]).fit(X, y)
    np.testing.assert_array_equal(model.moved_, clone(model.mover_).fit_transform(X, y))
    pipeline = make_pipeline(clone(model.mover_), KNeighborsClassifier(3, weights=nearest_decides))
    np.testing.assert_array_equal(model.predict(X[:50] + 0.1), pipeline.fit(X, y).predict(X[:50] + 0.1))


def nearest_decides(distances):
    return np.tile([1.2, 1.1, 1.0], (len(distances), 1))  # ties to the class of the nearest


@pytest.mark.parametrize("n_columns", [1, 12])
def test_without_a_lift_there_is_no_column(overlapping, races, rng, n_columns):
    """Movers that need a column do without: at a price with few columns that all matter, which is told."""
    X, y = overlapping
    X = np.column_stack([X, 0.01 * rng.standard_normal((150, n_columns))])
    model = auto(lift=False).fit(X, y)
    assert model.moved_.shape == X.shape
    assert not any(trial.mover._adds_column for trial in races[0].trials)
    kinds = {type(step) for trial in races[0].trials for step in trial.steps}
    assert {Whiten, Balance, Steer, WithoutColumn} <= kinds
    flat = isinstance(model.mover_, Chain) and isinstance(model.mover_.movers[-1], WithoutColumn)
    assert ("Without a column, the nearest object of" in model.explain()) == flat
    far = auto([Chain([Shrink(), Steer()])], lift=False).fit(X, y)
    assert f"{far.mover_.movers_[-1].changed_class_:.1%} of held-out objects is of another" in far.explain()


def test_the_best_are_extended_by_balance_and_steer(overlapping, races):
    auto().fit(*overlapping)
    kinds = {tuple(type(step).__name__ for step in trial.steps) for trial in races[0].trials}
    assert any(kind[-1:] == ("Balance",) for kind in kinds)
    assert ("Whiten", "Shrink", "Balance", "Steer") in kinds
    assert [name(mover) for mover in balanced(Stay())] == ["Balance(strength=0.3)"]
    assert balanced(Chain([Shrink(), Balance()])) == []
    found = [name(mover) for mover in steered(Chain([Whiten(), Shrink()]))]
    assert "Whiten() + Shrink() + Steer(alpha=0.01, max_iter=30, strength=0.04)" in found
    assert len(set(found)) == len(PENALTIES) * len(STRENGTHS)


def test_the_best_so_far_is_steered_besides_two_known_chains():
    many, few = ([name(mover) for mover in to_steer(Smooth(5), n)] for n in (50, 5))
    first = "Whiten(alpha=3.0) + Shrink(step=0.4) + Balance(strength=0.3)"
    assert many == [first, "Whiten(alpha=0.3) + Shrink(step=0.7)", "Smooth(n_neighbors=5)"]
    assert few == [first, "Shrink(step=0.5) + Balance(strength=0.3)", "Smooth(n_neighbors=5)"]
    assert len(to_steer(Chain([Whiten(0.3), Shrink(0.7)]), 50)) == 2


def test_logistic_regressions_of_very_many_classes_are_left_out(overlapping, races, monkeypatch):
    monkeypatch.setattr(race, "MAX_SCORES", 449)  # 150 objects of 3 classes
    auto().fit(*overlapping)
    assert not any(isinstance(step, Steer) for trial in races[0].trials for step in trial.steps)


@pytest.mark.parametrize("before", [Stay(), Shrink(0.4), Chain([Whiten(0.3), Shrink(0.7), Balance(0.5)])])
def test_settings_of_steer_that_share_a_search_answer_as_each_alone(
    overlapping, asarray, before, monkeypatch
):
    """Also in blocks of a few queries."""
    monkeypatch.setattr("hubless.selection.steering.NUMBERS", 700)
    X, y = overlapping
    keep = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:9]])
    X, y = X[keep], y[keep]
    labeled = labeled_objects(asarray(X), asarray(y), None, None, 1)
    steers = [Steer(strength, alpha) for alpha in (1e-2, 1e-4) for strength in (0.05, 0.5, 5.0)]
    movers = [Chain([before, steer]) for steer in steers]

    def trials_of(extend):
        parts = folds(y, np.arange(len(y)), 3, 0)
        shared = CrossValidation(labeled, 3, parts, (1,))
        trials = [shared.new_trial(mover, i) for i, mover in enumerate(movers)]
        extend(shared, trials)
        return [trial.correct for trial in trials]

    together = trials_of(lambda shared, trials: shared.extend_steered(trials, 70))
    alone = trials_of(lambda shared, trials: [shared.extend(trial, 70) for trial in trials])
    np.testing.assert_array_equal(together, alone)
    assert np.shape(together) == (len(movers), 70, 1)
    labeled = labeled_objects(asarray((X + 1e4).astype(np.float32)), asarray(y), None, None, 1)
    far = trials_of(lambda shared, trials: shared.extend_steered(trials, 70))
    assert np.mean(np.array(far) == together) > 0.97  # float32 rounds X itself there
    assert len(np.unique(np.mean(together, axis=1))) > 2  # the settings differ


def test_the_best_steered_setting_answers_by_every_number_of_neighbours(overlapping, races):
    auto(n_neighbors=(1, 3, 5)).fit(*overlapping)
    steered_trials = [
        trial for trial in races[0].trials if trial.steps and isinstance(trial.steps[-1], Steer)
    ]
    screened = [trial for trial in steered_trials if trial.ks == (1,)]
    (finalist,) = (trial for trial in steered_trials if trial.ks == (1, 3, 5))
    assert len(screened) == len(steered_trials) - 1
    assert finalist.correct[:, 0].mean() >= max(trial.score for trial in screened) - 1e-12
    assert [trial.number for trial in races[0].trials] == list(range(len(races[0].trials)))


def test_only_numbers_of_neighbours_that_were_asked_for_are_chosen(overlapping, races):
    model = auto(n_neighbors=[4, 6]).fit(*overlapping)
    assert model.n_neighbors_ in (4, 6)
    assert {trial.ks for trial in races[0].trials} == {(4, 6)}
    assert any(isinstance(step, Steer) for trial in races[0].trials for step in trial.steps)


def test_two_objects_per_class_take_what_is_known_to_be_good(rng, races):
    """Folds with one object of a query's class cannot show what two are worth."""
    means, y = 2 * rng.standard_normal((15, 40)), np.repeat(np.arange(15), 2)
    X = means[y] + rng.standard_normal((30, 40))
    model = MoveLabeledClassifierCV(mover="auto").fit(X, y)
    assert [name(trial.mover) for trial in races[0].trials] == [name(unchosen()), "Stay()"]
    assert name(model.mover_) == "Shrink(step=0.5) + Balance(strength=0.3) + " + name(unchosen().movers[-1])
    queries, truth = means + 1.5 * rng.standard_normal((15, 40)), np.arange(15)
    assert model.score(queries, truth) >= KNeighborsClassifier(1).fit(X, y).score(queries, truth)
    flat = MoveLabeledClassifierCV(mover="auto", lift=False).fit(X, y)
    assert isinstance(flat.mover_.movers[-1], WithoutColumn)
    assert flat.moved_.shape == X.shape
    assert isinstance(MoveLabeledClassifierCV(mover="auto").fit(X[:18], y[:18]).mover_, Stay)  # too few


# --- giving up and running out of time ----------------------------------------------------------------------


def test_a_setting_far_behind_is_given_up(overlapping, races, short_rounds):
    good = [Stay(), *(Shrink(step) for step in (0.02, 0.04, 0.06)), Scale(0.98)]
    X, y = overlapping
    model = auto([*good, Scale(0.0)]).fit(X + 9 * y[:, None], y)  # all objects in one place are no help
    answered = {name(trial.mover): len(trial.correct) for trial in races[0].trials}
    assert answered["Scale(g=0.0)"] < 40
    assert min(answered[name(mover)] for mover in good) == 40
    assert max(answered.values()) == answered["Stay()"] == 120
    assert "6 settings were tried" in model.explain()
    assert "1 was given up early" in model.explain()


def test_a_trial_far_behind_never_leads(overlapping, monkeypatch, short_rounds):
    correct = {  # Shrink is behind on what both answered; the leader had harder queries later
        "Stay": np.array([True] * 20 + [False] * 20),
        "Shrink": np.array([True] * 12 + [False] * 8),
    }

    def extend(self, trial, n_queries, leader=None):
        trial.add(correct[type(trial.mover).__name__][:, None])

    monkeypatch.setattr(CrossValidation, "extend", extend)
    run = Race(of_one_fold(150, (1,)))
    run._try([Stay(), Shrink()])
    assert run.trials[1].score > run.trials[0].score
    assert isinstance(run.leader.mover, Stay)


def of_one_fold(n, ks):
    folds = [(np.arange(n), np.arange(n))]
    labeled = Labeled(np.zeros((n, 1)), np.zeros(n, dtype=int), None, np.zeros((n, 0), dtype=int))
    return CrossValidation(labeled, 1, folds, ks)


def test_a_broken_first_mover_spoils_nothing(overlapping, races, short_rounds):
    X, y = overlapping
    auto([Broken(), Stay(), Shrink(0.1)]).fit(X, y)
    auto([Stay(), Shrink(0.1)]).fit(X, y)
    broken, *others = races[0].trials
    assert (broken.error, len(broken.correct)) == ("it is broken", 0)
    for trial, truth in zip(others, races[1].trials, strict=True):
        np.testing.assert_array_equal(trial.correct, truth.correct)


def test_hardly_any_time_still_gives_a_model(overlapping):
    X, y = overlapping
    model = auto(max_seconds=1e-9).fit(X, y)
    assert list(model.cv_results_["mover"]) == ["Stay()"]
    assert set(model.predict(X)) == {0, 1, 2}
    assert "The race ended at the limit of 1e-09 s." in model.explain()
    assert "limit" not in auto([Stay()], max_seconds=1e9).fit(X, y).explain()


def test_time_that_runs_out_in_the_finals_does_not_decide():
    """A setting that answered more queries, harder ones, is compared by those that all answered."""
    run = Race(of_one_fold(150, (1,)))
    run.compared = 40
    further, other = (run.folds.new_trial(Shrink(step), place) for place, step in enumerate((0.1, 0.2)))
    further.add(np.array([True] * 36 + [False] * 4 + [True, False] * 40)[:, None])
    other.add(np.array([True] * 34 + [False] * 6)[:, None])
    run.trials = [further, other]
    assert further.score < other.score
    assert run.choice().mover is further.mover


@pytest.mark.parametrize(("gained", "lost", "stays"), [(9, 4, True), (11, 4, False)])
def test_moving_needs_a_gain_beyond_chance(gained, lost, stays):
    """Of 100 queries, some are right with Shrink alone, some with Stay alone: 1.5 standard errors decide."""
    run = Race(of_one_fold(150, (1,)))
    run.compared = 100
    stay, shrink = run.folds.new_trial(Stay(), 0), run.folds.new_trial(Shrink(), 1)
    both, neither = [True] * 50, [False] * (50 - gained - lost)
    stay.add(np.array([*both, *[False] * gained, *[True] * lost, *neither])[:, None])
    shrink.add(np.array([*both, *[True] * gained, *[False] * lost, *neither])[:, None])
    run.trials = [stay, shrink]
    apart = np.array([1.0] * gained + [-1.0] * lost + [0.0] * (100 - gained - lost))
    assert (apart.mean() <= 1.5 * apart.std() / 10) == stays
    assert isinstance(run.choice().mover, Stay) == stays


# --- what must not change the choice ------------------------------------------------------------------------


def test_the_seed_decides(overlapping):
    first, again, other = (auto(FEW, random_state=seed).fit(*overlapping) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(without_seconds(first), without_seconds(again))
    np.testing.assert_array_equal(first.moved_, again.moved_)
    assert not without_seconds(first).equals(without_seconds(other))


@pytest.mark.parametrize("times", [0, 2])
def test_what_is_kept_changes_nothing(overlapping, monkeypatch, times):
    truth = auto().fit(*overlapping)
    monkeypatch.setattr(kept_points, "TIMES", times)
    monkeypatch.setattr(kept_points, "LEAST", 0)
    pd.testing.assert_frame_equal(without_seconds(auto().fit(*overlapping)), without_seconds(truth))


def test_movers_that_differ_in_any_parameter_differ(overlapping):
    relative, absolute = Penalty(3.0, relative=True), 3.0
    assert name(MoveLabeled(relative)) != name(MoveLabeled(absolute))
    scores = [
        auto([mover], n_neighbors=[1]).fit(*overlapping).best_score_
        for mover in map(MoveLabeled, (1e-9, 300.0))
    ]
    both = auto([MoveLabeled(1e-9), MoveLabeled(300.0)], n_neighbors=[1]).fit(*overlapping)
    assert sorted(both.cv_results_["mean_test_score"]) == pytest.approx(sorted(scores))
    assert scores[0] != scores[1]


@pytest.mark.torch
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_torch_chooses_as_numpy_does(overlapping, weights):
    torch = pytest.importorskip("torch")
    X, y = overlapping
    ours, theirs = auto(weights=weights).fit(X, y), auto(weights=weights).fit(*map(torch.as_tensor, (X, y)))
    pd.testing.assert_frame_equal(without_seconds(ours), without_seconds(theirs))
    assert isinstance(theirs.moved_, torch.Tensor)
    np.testing.assert_allclose(to_numpy(theirs.moved_), ours.moved_, atol=1e-6)


def test_names_of_classes_change_nothing(overlapping):
    X, y = overlapping
    names = np.array(["ant", "bee", "cat"])
    named, numbered = auto(FEW).fit(X, names[y]), auto(FEW).fit(X, y)
    pd.testing.assert_frame_equal(without_seconds(named), without_seconds(numbered))
    np.testing.assert_array_equal(named.predict(X), names[numbered.predict(X)])


def test_precomputed_targets_are_those_of_the_fold(overlapping):
    X, y = overlapping
    movers = [Stay(), MoveLabeled(n_targets=3), Denoise(n_targets=2, n_iter=1), Chain([Shrink(), Steer()])]
    truth = auto(movers).fit(X, y)
    given = auto(movers).fit(X, y, targets=reference.targets(X, y, 49))
    pd.testing.assert_frame_equal(without_seconds(given), without_seconds(truth))
    wrong = np.where(y == 0, 1, 0)[:, None] * np.ones(9, dtype=int)  # all of one object, of another class
    assert not without_seconds(auto(movers).fit(X, y, targets=wrong)).equals(without_seconds(truth))


def test_weight_zero_is_absence(overlapping):
    X, y = overlapping
    kept = np.arange(150) % 4 > 0
    cv = list(StratifiedKFold(3).split(X, y))
    place = np.cumsum(kept) - 1
    folds_of_kept = [tuple(place[part[kept[part]]] for part in pair) for pair in cv]
    weighted = auto(FEW, cv=cv).fit(X, y, sample_weight=kept.astype(float))
    truth = auto(FEW, cv=folds_of_kept).fit(X[kept], y[kept])
    pd.testing.assert_frame_equal(without_seconds(weighted), without_seconds(truth))
    np.testing.assert_array_equal(weighted.moved_, truth.moved_)


# --- what cannot be learned ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_movers_that_find_nothing_to_learn_from_are_skipped(rng):
    X, y = rng.standard_normal((40, 3)), np.arange(40)  # every object is alone in its class
    model = auto(simple_movers()).fit(X, y)
    failed = np.isnan(model.cv_results_["mean_test_score"])
    names = model.cv_results_["mover"]
    assert isinstance(model.mover_, Stay)
    assert all(failed[["Ridge" in n or "MoveLabeled" in n or "Whiten" in n or "Denoise" in n for n in names]])
    assert not any(failed[[n.startswith(("Stay", "Scale", "Shrink", "Smooth")) for n in names]])
    assert failed.sum() == sum(
        n.count("Ridge") + n.count("MoveLabeled") + n.count("Whiten") + n.count("Denoise") > 0 for n in names
    )
    with pytest.raises(ValueError, match="no mover could learn from these objects: there is no pair"):
        auto([MoveLabeled(), Regress()]).fit(X, y)


def test_one_class_and_two_objects_work(rng):
    X = rng.standard_normal((30, 3))
    assert set(auto().fit(X, ["only"] * 30).predict(X)) == {"only"}
    assert isinstance(auto(cv=2).fit(X[:2], [1, 1]).mover_, Stay)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mover": "best"}, "mover must be one of 'ridge', 'auto'; got 'best'"),
        ({"mover": None}, 'mover must be "ridge", "auto", or movers of hubless.movers.*got None'),
        ({"mover": []}, r"movers of hubless.movers, such as Shrink\(0.3\).*got \[\]"),
        ({"mover": [Stay(), "auto"]}, r"movers of hubless.movers.*got \[Stay\(\), 'auto'\]"),
        ({"mover": [Shrink(7)]}, "step must be a number from 0 to 1; got 7"),
        ({"max_seconds": 0}, "max_seconds must be a finite number above 0; got 0"),
        ({"mover": [Whiten()], "weights": "distance"}, "no mover could learn.*each gives the order of dist"),
        ({"cv": [(np.arange(150), np.arange(0))]}, "every test part of cv is empty"),
        ({"n_neighbors": [101]}, "n_neighbors may be at most 100"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(overlapping, settings, message):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        auto(**settings).fit(*overlapping)


# --- what is reported ---------------------------------------------------------------------------------------


def test_results_can_be_read_as_a_table(overlapping):
    model = auto().fit(*overlapping)
    assert {len(column) for column in model.cv_results_.values()} == {len(model.cv_results_["mover"])}
    table = pd.DataFrame(model.cv_results_)
    assert list(table.columns) == [*COLUMNS, "seconds", "error"]
    assert len(table) > len(simple_movers())
    assert table.mover.is_unique
    ranks = list(zip(-table.n_queries, -table.mean_test_score, strict=True))
    assert ranks == sorted(ranks)
    chosen = table[table.mover == name(model.mover_)].iloc[0]
    assert (chosen.mean_test_score, chosen.n_neighbors) == (model.best_score_, model.n_neighbors_)
    assert (chosen.behind_choice, chosen.standard_error) == (0.0, 0.0)
    assert (table.seconds > 0).all()


@pytest.mark.parametrize("mover", ["auto", FEW, Shrink(0.4)], ids=["auto", "few", "one"])
def test_the_choice_is_explained(overlapping, mover):
    model = auto(mover).fit(*overlapping)
    text = model.explain()
    n = model.cv_results_["n_queries"].max()
    assert text.startswith(
        f"{name(model.mover_)} with {model.n_neighbors_} neighbours: {model.best_score_:.1%} of {n} held-out "
        "queries are answered correctly."
    )
    n_tried = len(model.cv_results_["mover"])
    assert ("1 setting was tried" if n_tried == 1 else f"{n_tried} settings were tried") in text
    assert "standard error" in text
    if mover == "auto" and model.mover_._n_targets() == 0:
        assert "The paper's ridge: " in text


def test_the_ridge_is_explained_too(overlapping):
    model = auto("ridge").fit(*overlapping)
    text = model.explain()
    assert text.startswith(
        f"MoveLabeled with λ = {model.mover_.alpha.value:.3g} × mean eigenvalue, n_targets=1"
    )
    plural = "s" * (model.n_neighbors_ > 1)
    assert f"{model.n_neighbors_} neighbour{plural}: {model.best_score_:.1%} of held-out queries" in text
    with pytest.raises(NotFittedError):
        auto().explain()


def test_nothing_of_an_earlier_ridge_is_left(overlapping):
    model = auto("ridge").fit(*overlapping)
    fresh = auto([Stay(), Shrink()]).fit(*overlapping)
    model.set_params(mover=[Stay(), Shrink()]).fit(*overlapping)
    assert set(vars(model)) == set(vars(fresh))


def test_trials_compare_the_queries_that_both_answered():
    def trial(correct):
        fresh = Trial(Stay(), 0, (1,), np.array([1.0, 2.0, 1.0, 5.0]), np.zeros((0, 1), dtype=bool))
        fresh.add(np.array(correct, dtype=bool)[:, None])
        return fresh

    long, short = trial([1, 0, 1, 0]), trial([0, 1, 1])
    assert long.score == pytest.approx(2 / 9)
    behind, error = short.behind(long)  # differences 1, -1, 0 of weights 1, 2, 1
    assert behind == pytest.approx(-0.25)
    assert error == pytest.approx(sqrt((0.25 * 1.25) ** 2 + (0.5 * 0.75) ** 2 + (0.25 * 0.25) ** 2))


# --- what is tried ------------------------------------------------------------------------------------------


def test_a_race_starts_with_the_settings_that_movers_name():
    settings = [name(kind(**setting)) for kind in MOVERS.values() for setting in kind._tried]
    assert [name(mover) for mover in simple_movers()][: len(settings)] == settings
    for mover in simple_movers():
        mover._check_parameters()
    assert isinstance(simple_movers()[0], Stay)  # the simplest comes first


def test_indexes_try_movers_that_learn_in_parts_and_add_no_column():
    movers = movers_in_parts()
    assert {type(mover) for mover in movers} == {kind for kind in MOVERS.values() if kind._learns_in_parts()}
    assert not any(mover._adds_column for mover in movers)
