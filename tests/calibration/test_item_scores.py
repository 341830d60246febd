"""What a model for an index learns of its answers, beside plain loops; and that it holds on new queries."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_blobs

import hubless
from hubless.calibration.answers import NONE, FoundItems, evidence_of_answers
from hubless.calibration.item_scores import ItemScores
from hubless.calibration.relevance import Relevance, answer_numbers, learn_relevance, threshold
from hubless.movers import Stay
from hubless.repair import apply_index, fit_index, predict_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from tests import reference
from tests.cli.shops import unit, write_csv

# --- formulas -----------------------------------------------------------------------------------------------


def test_evidence_of_answers_as_a_loop(rng):
    queries, vectors = rng.standard_normal((6, 3)), rng.standard_normal((6, 40, 3))
    order = ((vectors - queries[:, None]) ** 2).sum(axis=2).argsort(axis=1)
    vectors = np.take_along_axis(vectors, order[:, :, None], axis=1)
    codes, prior, mean = rng.integers(0, 4, (6, 40)), np.array([0.1, 0.2, 0.2, 0.25, 0.25]), np.ones(3)
    codes[2, 3:] = NONE  # an index that returned three items
    found = evidence_of_answers(queries, FoundItems(vectors, codes), prior, mean, 5)
    for i, x in enumerate(queries):
        items = [(z, c) for z, c in zip(vectors[i], codes[i], strict=True) if c != NONE]
        squares = [sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) for z, _ in items]
        for c in range(5):
            own = [s for s, (_, code) in zip(squares, items, strict=True) if code == c] or [max(squares)]
            assert found.gaps[i, c] == pytest.approx(min(own) - min(squares))
            for votes, k in ((found.votes, 5), (found.wide, 30)):
                near = [code for _, code in items[:k]]
                assert votes[i, c] == pytest.approx((near.count(c) + prior[c]) / (len(near) + 1))
        near = [code for _, code in items[:5]]
        assert found.winners[i] == max(near, key=near.count)  # of several, the first: the nearest
        assert found.nearest[i] == pytest.approx(min(squares))
        cosines = [(x - mean) @ (z - mean) / math.dist(x, mean) / math.dist(z, mean) for z, _ in items]
        assert found.cosine[i] == pytest.approx(max(cosines))


def naive_numbers(squares, unit):
    rows = []
    for j, own in enumerate(squares):
        margin = min(other for i, other in enumerate(squares) if i != j) - own
        rows.append([-own / unit, max(margin, 0) / unit, min(margin, 0) / unit])
    return rows


def test_relevance_as_a_loop(rng):
    squared = np.sort(rng.random((260, 12)), axis=1)
    squared[0, :3] = 0.5  # equal ones
    truth = rng.random((260, 12)) < 1 / (1 + np.exp(4 * squared))
    learned = learn_relevance(squared, truth)
    one, other = squared[::2, :10], squared[1::2, :10]  # of more answers than ten, the first ten
    unit = np.median(squared[:, :10])
    F = np.array([naive_numbers(row, unit) for row in one])
    np.testing.assert_allclose(answer_numbers(one, unit), F)

    def loss(w):
        z = w[0] + F @ w[1:]
        return np.sum(np.logaddexp(0, z) - truth[::2, :10] * z) + w[1:] @ w[1:] / 2 / 1e3

    expected = minimize(loss, np.zeros(4), method="BFGS").x
    np.testing.assert_allclose(learned.coefficients, expected, rtol=1e-2, atol=1e-2)
    w = learned.coefficients
    best = [max(1 / (1 + math.exp(-w[0] - np.dot(w[1:], f))) for f in naive_numbers(r, unit)) for r in other]
    np.testing.assert_allclose(learned.best, sorted(best))
    for reject in (0.05, 0.2):  # as few are below as split conformal prediction allows
        assert sum(p < threshold(learned, reject) for p in best) == int(reject * (len(best) + 1)) - 1
    assert learn_relevance(squared[:99], truth[:99]) == Relevance()  # too few
    assert learn_relevance(squared[:, :1], truth[:, :1]) == Relevance()  # nothing to compare with
    assert learn_relevance(squared, truth | True) == Relevance()


def test_scores_refuse_what_they_cannot_tell(rng):
    squared = rng.random((300, 10))
    scores = ItemScores().fit(squared, rng.random((300, 10)) < 0.5, 4)
    for wrong in (squared[:, :1], squared[0], -squared, squared * np.nan):
        with pytest.raises(ValueError, match=r"squared distances|two or more"):
            scores.relevance(wrong)
    with pytest.raises(ValueError, match="with 150 held-out queries"):
        scores.threshold(0.001)


# --- models for an index ------------------------------------------------------------------------------------


class Place:
    """Items of eight classes by two metrics, new queries of these, and queries of two other classes."""

    def __init__(self, folder, metric):
        X, y = make_blobs(2400, 20, centers=10, cluster_std=2.0, center_box=(-2, 2), random_state=0)
        X = unit(X).astype(np.float32) if metric == "cosine" else X.astype(np.float32)
        items, self.folder = (np.arange(2400) < 800) & (y < 8), folder
        np.save(folder / "v.npy", X[items])
        write_csv(folder / "v.csv", category=y[items])
        self.queries, self.truth = X[800:], y[800:].astype(str)
        self.known = y[800:] < 8
        self.store = open_store(folder / "v.npy", items=folder / "v.csv", metric=metric)
        self.model = fit_index(self.store, labels="category", mover="ridge")
        apply_index(self.model, self.store, "moved.npy")
        self.moved = open_store(folder / "moved.npy", items=folder / "v.csv", metric=metric)


@pytest.fixture(scope="module", params=["l2", "cosine"])
def place(request, tmp_path_factory):
    return Place(tmp_path_factory.mktemp(request.param), request.param)


def test_probabilities_and_refusals_hold_on_new_queries(place):
    found = predict_index(place.model, place.queries, place.store, reject=0.05, unknown="none of these")
    right = found.classes == place.truth
    plain = predict_index(place.model, place.queries, place.store)
    p, right = plain.probabilities[place.known], (plain.classes == place.truth)[place.known]
    bars = np.minimum((p * 10).astype(int), 9)
    for b in range(10):  # within four standard errors
        if (n := np.sum(bars == b)) > 30:
            mean = p[bars == b].mean()
            assert abs(right[bars == b].mean() - mean) < 4 * math.sqrt(max(mean * (1 - mean), 0.01) / n)
    loss = -np.log(np.where(right, p, 1 - p)).mean()
    share = right.mean()
    assert loss < 0.9 * -(share * math.log(share) + (1 - share) * math.log(1 - share))  # that of a constant
    # at most 5 % of false alarms, plus four standard errors of 1,280 queries and of those held out
    assert found.rejected[place.known].mean() < 0.05 + 0.05
    assert found.rejected[~place.known].mean() > 2 * found.rejected[place.known].mean()
    np.testing.assert_array_equal(found.classes == "none of these", found.rejected)
    np.testing.assert_array_equal(found.rejected, found.familiarity <= 0.05)
    np.testing.assert_array_equal(found.classes[~found.rejected], plain.classes[~found.rejected])


def test_a_moved_index_that_searches_exactly_gives_the_same(place):
    for one, other in zip(
        predict_index(place.model, place.queries, place.store, reject=0.1),
        predict_index(place.model, place.queries, place.moved, reject=0.1),
        strict=True,
    ):
        if np.asarray(one).dtype.kind == "f":
            np.testing.assert_allclose(one, other, atol=2e-3)
        else:
            assert np.mean(np.asarray(one) == np.asarray(other)) > 0.998  # but for rounding at a bound


def test_relevance_is_that_of_the_same_class(place):
    """Calibrated on new queries: of each bar of probabilities, so many answers are of the class."""
    stored, (items, _, _) = np.load(place.folder / "moved.npy"), read(place)
    queries = unit(place.queries) if place.model.metric == "cosine" else place.queries
    queries, truth = queries[place.known], place.truth[place.known]
    distances, rows = reference.nearest(queries[:300], stored, 10)
    p = place.model.scores.relevance(np.square(distances))
    right = items[rows] == truth[:300, None]
    assert np.mean(p) == pytest.approx(right.mean(), abs=0.04)
    for column in (0, 9):  # of the nearest answer too, where a single distance would be far off
        assert np.mean(p[:, column]) == pytest.approx(right[:, column].mean(), abs=0.08)
    empty = np.mean(p.max(axis=1) < place.model.scores.threshold(0.1))
    assert empty < 0.1 + 0.1


def read(place):
    labels = np.array((place.folder / "v.csv").read_text().split()[1:])
    return labels, None, None


def test_what_was_not_calibrated_is_refused(place):
    for given, why in (
        ({"n_neighbors": place.model.scores.n_neighbors_ + 1}, "items that vote; got"),
        ({"reject": 0.0001}, "held-out queries to compare"),
        ({"unknown": "3"}, "one of the classes"),
    ):
        with pytest.raises(ValueError, match=why):
            predict_index(place.model, place.queries[:3], place.store, **{"reject": 0.05, **given})
    bare = Repair(place.model.mover, place.model.metric, facts=place.model.facts)
    with pytest.raises(ValueError, match="has no calibration"):
        predict_index(bare, place.queries[:3], place.store, reject=0.05)
    assert predict_index(bare, place.queries[:3], place.store).probabilities is None
    assert bare.hash == place.model.hash  # scores do not change where items go


def test_scores_are_saved_and_models_without_them_load(place, tmp_path):
    hubless.save(place.model, tmp_path / "with")
    again = hubless.load(tmp_path / "with")
    one, other = (predict_index(m, place.queries, place.store, reject=0.1) for m in (place.model, again))
    np.testing.assert_array_equal(one.familiarity, other.familiarity)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert again.scores.threshold(0.1) == place.model.scores.threshold(0.1)
    hubless.save(Repair(place.model.mover, place.model.metric), tmp_path / "without")  # as before scores
    assert hubless.load(tmp_path / "without").scores is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s.relevance_.best.__setitem__(0, 2.0), "relevance_ is not what"),
        (lambda s: setattr(s, "relevance_", s.relevance_._replace(unit=-1.0)), "relevance_ is not what"),
        (lambda s: s.counts_.__setitem__(0, -1.0), "counts_ must be at least 0"),
        (lambda s: s.calibration_.sums.__setitem__(0, 9.0), "calibration_ is not what"),
        (lambda s: delattr(s, "n_neighbors_"), "belong together"),
        (lambda s: setattr(s, "n_features_in_", 7), "expected float32 or float64 of shape"),
    ],
)
def test_scores_that_nothing_learns_are_refused(place, tmp_path, change, why):
    hubless.save(place.model, tmp_path / "m")
    model = hubless.load(tmp_path / "m")
    change(model.scores)
    with pytest.raises(ValueError, match=why):
        hubless.save(model, tmp_path / "again")


def test_a_mover_that_was_chosen_on_a_sample_has_no_scores(place, monkeypatch):
    monkeypatch.setattr("hubless.repair.learn_index.rows_to_choose_on", lambda *_: 300)
    sampled = fit_index(place.store, labels="category", mover="ridge", in_parts=True)
    assert sampled.facts["learned"]["chosen on"] < sampled.facts["learned"]["n"]
    assert sampled.scores is None
    with pytest.raises(ValueError, match="on a sample"):
        predict_index(sampled, place.queries[:3], place.store, reject=0.05)


def test_a_new_class_of_items_can_be_the_answer(place, tmp_path):
    """Items that came after the model was learned may be of a class that it does not know."""
    X = np.load(place.folder / "v.npy")
    labels = (place.folder / "v.csv").read_text().split()[1:]
    late = np.vstack([X, place.queries[~place.known][:60]])
    np.save(tmp_path / "late.npy", late)
    write_csv(tmp_path / "late.csv", category=[*labels, *["new"] * 60])
    source = open_store(tmp_path / "late.npy", items=tmp_path / "late.csv", metric=place.model.metric)
    found = predict_index(place.model, place.queries[~place.known][60:], source)
    is_new = found.classes == "new"
    assert is_new.mean() > 0.2
    assert ((found.probabilities > 0) & (found.probabilities < 1)).all()


def test_a_mover_alone_has_none(place):
    assert Repair(Stay().fit(place.queries, place.truth)).scores is None
