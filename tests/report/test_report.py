"""The figures of a report against scikit-learn, SciPy and plain loops."""

import math

import numpy as np
import pytest
from scipy.stats import skew, spearmanr
from sklearn.datasets import make_blobs
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from hubless import MoveLabeledClassifierCV, compare, measure_hubness
from hubless.evaluation import BeforeAfter, evaluate_classes
from hubless.hubness import busiest_share
from hubless.report.details import Captions
from hubless.report.report import ModelDescription, make_report
from tests import reference

STATES = ("before", "after")
KS = (1, 5, 10, 15)


class Case:
    """400 objects of 5 classes in 40 dimensions with hubs, 150 queries, a chosen model and its report."""

    def __init__(self):
        X, y = make_blobs(550, 40, centers=5, cluster_std=2.5, center_box=(-1, 1), random_state=0)
        names = np.array(["ant", "bee", "cat", "dog", "eel"])[y]
        self.X, self.y, self.queries, self.truth = X[:400], names[:400], X[400:], names[400:]
        self.model = MoveLabeledClassifierCV(KS, n_targets=(1, 3)).fit(self.X, self.y)
        self.report = compare(self.model, self.X, self.y, self.queries, self.truth, title="five animals")
        self.figures = self.report.figures
        self.stored = BeforeAfter(self.X, np.asarray(self.model.moved_))
        self.near = BeforeAfter(*(neighbors(points, self.queries, 10) for points in self.stored))
        self.occurrence = BeforeAfter(*(reference.k_occurrence(near, 400) for near in self.near))
        self.ks = BeforeAfter(self.figures["counts"]["k_before"], self.figures["counts"]["k"])
        self.answer = BeforeAfter(
            *(
                reference.vote(self.y[neighbors(points, self.queries, k)])
                for points, k in zip(self.stored, self.ks, strict=True)
            )
        )
        self.tiles = {tile["key"]: tile for tile in self.figures["summary"]["figures"]}


@pytest.fixture(scope="session")
def case():
    return Case()


def neighbors(stored, queries, k):
    """Row numbers of the nearest by scikit-learn."""
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(stored)
    return search.kneighbors(queries, return_distance=False)


def interval(before, after):
    """Mean and 95 % interval of differences query by query, by loops."""
    apart = [float(b) - float(a) for a, b in zip(before, after, strict=True)]
    mean = math.fsum(apart) / len(apart)
    variance = math.fsum((change - mean) ** 2 for change in apart) / (len(apart) - 1)
    spread = 1.96 * math.sqrt(variance / len(apart))
    return mean - spread, mean + spread


class Many:
    """1,000 objects in 6 dimensions, 200 queries: more than a chart shows one by one."""

    def __init__(self):
        rng = np.random.default_rng(5)
        self.X, self.queries = rng.standard_normal((1000, 6)), rng.standard_normal((200, 6))
        self.y, self.truth = rng.integers(0, 3, 1000).astype(str), rng.integers(0, 3, 200).astype(str)
        self.moved = 0.6 * self.X + 0.2
        self.stored = BeforeAfter(self.X, self.moved)
        both = BeforeAfter(self.queries, self.queries)
        self.evaluation = evaluate_classes(self.stored, both, self.y, self.truth, BeforeAfter(3, 7))
        self.figures = make_report(
            self.evaluation, Captions(range(1000), range(200)), ModelDescription("Scale")
        ).figures
        self.near = BeforeAfter(*(neighbors(points, self.queries, 10) for points in self.stored))
        self.occurrence = BeforeAfter(*(np.array(reference.k_occurrence(near, 1000)) for near in self.near))


@pytest.fixture(scope="session")
def many():
    return Many()


# --- the four large figures ---------------------------------------------------------------------------------


def test_score_is_that_of_other_classifiers(case):
    tile = case.tiles["score"]
    assert tile["after"] == pytest.approx(case.model.score(case.queries, case.truth), abs=1e-12)
    rights = [classes == case.truth for classes in case.answer]
    assert (tile["before"], tile["after"]) == tuple(
        pytest.approx(right.mean(), abs=1e-12) for right in rights
    )
    assert (tile["low"], tile["high"]) == pytest.approx(interval(*rights))
    assert case.ks.after == case.model.n_neighbors_
    for state, (stored, k, answer) in enumerate(zip(case.stored, case.ks, case.answer, strict=True)):
        plain = KNeighborsClassifier(k, algorithm="brute").fit(stored, case.y)
        votes = np.sort(plain.predict_proba(case.queries), axis=1)
        clear = (
            votes[:, -1] > votes[:, -2]
        )  # scikit-learn gives a tie to the first class, hubless to the nearest
        assert clear.mean() > 0.6, state
        np.testing.assert_array_equal(answer[clear], plain.predict(case.queries)[clear])


def test_hubs_of_the_figures_are_counted_by_others(case):
    for state, counts in zip(STATES, case.occurrence, strict=True):
        assert case.tiles["skewness"][state] == pytest.approx(skew(counts))
        assert case.tiles["busiest"][state] == pytest.approx(sum(sorted(counts)[-4:]) / 1500)
        assert case.tiles["never"][state] == pytest.approx(counts.count(0) / 400)
    assert case.tiles["skewness"]["before"] > case.tiles["skewness"]["after"]  # so the two differ


def test_hubness_is_that_of_the_library(case):
    for state, near in zip(STATES, case.near, strict=True):
        hubness = measure_hubness(near, 400, object_labels=case.y, query_labels=case.truth)
        assert case.figures["hubness"][state] == pytest.approx(hubness.as_dict())
        bad = sum(reference.bad_k_occurrence(near, case.y, case.truth)) / 1500
        assert case.figures["hubness"][state]["bad_share"] == pytest.approx(bad)


@pytest.mark.parametrize("n", [1, 99, 100, 101, 250, 1000])
def test_busiest_share_same_as_sorting(asarray, rng, n):
    counts = rng.integers(0, 50, n) ** 2
    counts[0] += 1
    top = sorted(counts.tolist())[::-1][: math.ceil(n / 100)]
    assert busiest_share(asarray(counts)) == pytest.approx(sum(top) / sum(counts.tolist()))


def test_busiest_of_no_answers_take_nothing(asarray):
    assert busiest_share(asarray(np.zeros(7, dtype=np.int64))) == 0


def test_summary_has_the_same_numbers(case):
    summary, more = case.figures["summary"], case.figures["summary"]["more"]
    assert [change["measure"] for change in more] == ["accuracy", "precision@10"]
    rights = [(case.y[near] == case.truth[:, None]).mean(axis=1) for near in case.near]
    assert (more[1]["before"], more[1]["after"]) == pytest.approx(tuple(right.mean() for right in rights))
    assert (more[1]["low"], more[1]["high"]) == pytest.approx(interval(*rights))
    assert {change["n"] for change in more} == {150}
    for share in (more[0]["before"], more[0]["after"]):
        assert f"{100 * share:.1f} %" in summary["sentence"]
    assert "150 queries" in summary["sentence"]
    assert "MoveLabeled(" in summary["mover"]
    assert "MoveLabeled" not in summary["sentence"]
    signs = [(change["low"] > 0) - (change["high"] < 0) for change in more]
    assert signs == [0, 1]  # accuracy may stay, precision rises
    assert summary["verdict"]["kind"] == "mixed"
    counts = {"items": 400, "queries": 150, "dimension": 40, "classes": 5, "hub_k": 10, "metric": "l2"}
    assert counts.items() <= case.figures["counts"].items()
    assert (case.figures["title"], case.figures["task"]) == ("five animals", "labels")


# --- skyline, Lorenz, classes, changes ----------------------------------------------------------------------


def test_skyline_is_n10_in_falling_order(case, many):
    for figures, occurrence in ((case.figures, case.occurrence), (many.figures, many.occurrence)):
        line, n = figures["skyline"], len(occurrence.before)
        ranks = list(line["rank"])
        assert ranks[0] == 1
        assert ranks[-1] == n
        assert len(ranks) <= 400
        assert sorted(set(ranks)) == ranks
        for state, counts in zip(STATES, occurrence, strict=True):
            falling = sorted(map(int, counts), reverse=True)
            assert list(line[state]) == [falling[rank - 1] for rank in ranks]
        assert line["mean"] == pytest.approx(sum(occurrence.before) / n)


def test_lorenz_and_gini_by_loops(case):
    lorenz = case.figures["lorenz"]
    shares = list(lorenz["share"])
    assert (shares[0], shares[-1]) == (0, 1)
    for state, counts in zip(STATES, case.occurrence, strict=True):
        rising = sorted(counts)
        apart = sum(abs(a - b) for a in counts for b in counts)
        gini = apart / (2 * len(counts) ** 2 * reference.mean(counts))
        assert lorenz["gini"][state] == pytest.approx(gini)
        # 400 objects and 100 steps: each share is a whole number of objects
        truth = [sum(rising[: round(400 * share)]) / sum(rising) for share in shares]
        np.testing.assert_allclose(lorenz[state], truth, atol=1e-12)


def test_confused_classes_are_the_confusion_matrix(case):
    classes = case.figures["classes"]
    assert classes["names"] == ["ant", "bee", "cat", "dog", "eel"]
    assert list(classes["queries"]) == [int((case.truth == name).sum()) for name in classes["names"]]
    for state, answer in zip(STATES, case.answer, strict=True):
        truth = confusion_matrix(case.truth, answer, labels=classes["names"])
        np.fill_diagonal(truth, 0)
        counts = np.zeros_like(truth)
        for i, j, count in classes["wrong"][state]:
            assert counts[i, j] == 0
            counts[i, j] = count
        np.testing.assert_array_equal(counts, truth)
        assert all(count > 0 for _, _, count in classes["wrong"][state])


def test_changed_queries_are_counted(case):
    pairs = [(a == t, b == t) for a, b, t in zip(*case.answer, case.truth, strict=True)]
    changed = case.figures["changed"]
    truth = {"fixed": (False, True), "broken": (True, False), "unchanged_right": (True, True)}
    for name, pair in {**truth, "unchanged_wrong": (False, False)}.items():
        assert changed[name] == pairs.count(pair), name
        assert changed[name] > 0  # else it would prove nothing
    assert changed["shown"] == {"fixed": changed["fixed"], "broken": changed["broken"]}


# --- why it works -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["case", "many"])
def test_centrality_by_loops_and_scipy(name, request):
    data = request.getfixturevalue(name)
    central, n = data.figures["why"]["centrality"], len(data.X)
    assert (central["shown"], central["of"]) == (min(n, 800), n)
    mean = [reference.mean(column) for column in data.X.T.tolist()]
    for state, stored, counts in zip(STATES, data.stored, data.occurrence, strict=True):
        apart = [reference.distance(mean, z) for z in stored]
        assert central[state]["correlation"] == pytest.approx(spearmanr(apart, counts).statistic)
        points = {(round(a, 9), int(c)) for a, c in zip(apart, counts, strict=True)}
        drawn = zip(central[state]["distance"], central[state]["occurrence"], strict=True)
        drawn = [(round(float(a), 9), int(c)) for a, c in drawn]
        assert len(drawn) == len(set(drawn)) == central["shown"]
        assert set(drawn) <= points
        assert max(c for _, c in drawn) == max(counts)  # the worst hub is never left out


def test_variances_along_components_by_eigh(case):
    variances = case.figures["why"]["variance"]
    values, vectors = np.linalg.eigh(np.cov(case.X.T, bias=True))
    vectors = vectors[:, ::-1]
    np.testing.assert_allclose(variances["before"], values[::-1])
    assert list(variances["component"]) == list(range(1, 41))
    for state, points in zip((*STATES, "queries"), (*case.stored, case.queries), strict=True):
        spread = np.cov(points.T, bias=True)
        np.testing.assert_allclose(variances[state], [v @ spread @ v for v in vectors.T])
        assert variances["total"][state] == pytest.approx(np.trace(spread))


def test_singular_values_by_eigenvalues(case):
    why = case.figures["why"]
    W = np.asarray(case.model.W_)
    truth = np.sqrt(np.clip(np.linalg.eigvalsh(W.T @ W), 0, None))[::-1]
    np.testing.assert_allclose(why["singular_values"], truth, atol=1e-7)
    assert f"The largest is {truth[0]:.2f}, the smallest" in why["singular_words"]


def test_no_singular_values_without_a_matrix(many):
    assert many.figures["why"]["singular_values"] is None
    assert "not a single matrix" in many.figures["why"]["singular_words"]


# --- how it was chosen --------------------------------------------------------------------------------------


def grid_means(model):
    """Mean over the folds of every setting, by loops: (n_targets, λ, k) → score."""
    folds = np.asarray(model.scores_)
    return {place: reference.mean([fold[place] for fold in folds]) for place in np.ndindex(folds.shape[1:])}


def test_surface_has_the_scores_of_the_model(case):
    surface, model, means = case.figures["choice"]["surface"], case.model, grid_means(case.model)
    t = model.grid_["n_targets"].index(model.n_targets_)
    assert len(surface["score"]) == len(surface["y"]["values"]) == len(KS)
    for k, row in enumerate(surface["score"]):
        assert list(row) == pytest.approx([means[t, a, k] for a in range(13)])
    x, y = surface["chosen"]
    assert surface["y"]["values"][y] == model.n_neighbors_
    assert surface["x"]["values"][x] == pytest.approx(model.mover_.alpha.value)
    assert surface["score"][y][x] == pytest.approx(model.best_score_) == pytest.approx(max(means.values()))


def check_movers(figures, model):
    rows, means = figures["choice"]["movers"], grid_means(model)
    best = {}
    for (t, a, _), score in means.items():
        best[t, a] = max(score, best.get((t, a), 0))
    assert [row["score"] for row in rows] == pytest.approx(sorted(best.values(), reverse=True))
    chosen = [row for row in rows if row["chosen"]]
    assert len(chosen) == 1
    setting = f"λ = {model.mover_.alpha.value:.3g} × mean eigenvalue, n_targets={model.n_targets_}"
    assert chosen[0]["name"] == f"MoveLabeled({setting})"
    assert chosen[0]["k"] == model.n_neighbors_
    assert chosen[0]["score"] == pytest.approx(model.best_score_)


def test_every_penalty_is_listed_and_the_chosen_one_marked(case):
    check_movers(case.figures, case.model)
    assert len(case.figures["choice"]["movers"]) == 26


def test_of_equal_penalties_the_one_that_was_chosen_is_marked():
    X, y = make_blobs(60, 3, centers=[[0, 0, 0], [50, 0, 0]], random_state=0)
    model = MoveLabeledClassifierCV((1, 3, 5)).fit(X, y)
    figures = compare(model, X, y, X[:9] + 0.1, y[:9]).figures
    place = figures["choice"]["surface"]["chosen"]
    assert figures["choice"]["surface"]["x"]["values"][place[0]] == model.mover_.alpha.value
    assert figures["choice"]["surface"]["y"]["values"][place[1]] == model.n_neighbors_
    check_movers(figures, model)
