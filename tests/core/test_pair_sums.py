"""Pairs as sums: learning and forgetting batches against sums over all pairs at once."""

import numpy as np
import pytest

from hubless.moments import PairSums, moments_of_pairs
from tests import reference


class Batch:
    """Objects with weights, and pairs of them, each with the weight of its first object."""

    def __init__(self, rng, n, d, n_pairs, shift):
        self.X, self.weights = rng.standard_normal((n, d)) + shift, rng.random(n) + 0.1
        self.source, self.target = rng.integers(0, n, (2, n_pairs))

    def sums(self, centred=True):
        mean = np.average(self.X, axis=0, weights=self.weights)
        centre = mean if centred else np.zeros_like(mean)
        pairs = self.X[self.source], self.X[self.target], self.weights[self.source]
        return PairSums(moments_of_pairs(*pairs, centre), float(self.weights.sum()), mean)


def assert_sums_of(sums, batches, centred=True):
    """Compare with loops over all pairs of these batches, about the mean of all their objects."""
    X, weights = (np.concatenate(parts) for parts in zip(*((b.X, b.weights) for b in batches), strict=True))
    mean = sum(w * x for w, x in zip(weights, X, strict=True)) / sum(weights)
    centre = mean if centred else 0 * mean
    x = np.concatenate([b.X[b.source] for b in batches]) - centre
    z = np.concatenate([b.X[b.target] for b in batches]) - centre
    w = np.concatenate([b.weights[b.source] for b in batches])
    A, K = reference.moments(x, z, w)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(sums.mean, mean, **close)
    np.testing.assert_allclose(sums.moments.origin, centre, **close)
    np.testing.assert_allclose(sums.moments.A, A, **close)
    np.testing.assert_allclose(sums.moments.K, K, **close)
    np.testing.assert_allclose(sums.moments.x_sum, w @ x, **close)
    np.testing.assert_allclose(sums.moments.z_sum, w @ z, **close)
    assert sums.weight == pytest.approx(weights.sum())
    assert sums.moments.weight == pytest.approx(w.sum())


@pytest.fixture
def batches(rng):
    return [Batch(rng, n, 4, n_pairs, shift) for n, n_pairs, shift in ((30, 50, 0), (8, 12, 5), (20, 40, -3))]


@pytest.mark.parametrize("centred", [True, False])
def test_batches_add_up(batches, centred):
    first, second, third = (batch.sums(centred) for batch in batches)
    assert_sums_of(first, batches[:1], centred)
    assert_sums_of(first + second + third, batches, centred)
    assert_sums_of(third + (second + first), batches, centred)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_batch_can_be_forgotten(batches, centred, gone):
    total = batches[0].sums(centred) + batches[1].sums(centred) + batches[2].sums(centred)
    left = [batch for i, batch in enumerate(batches) if i != gone]
    assert_sums_of(total - batches[gone].sums(centred), left, centred)


def test_directions_in_which_nothing_is_left_become_zero(rng):
    flat = Batch(rng, 30, 5, 40, 0)
    flat.X[:, 2:] = 0  # pairs in two dimensions of five
    full = Batch(rng, 30, 5, 40, 0)
    left = (flat.sums(centred=False) + full.sums(centred=False)) - full.sums(centred=False)
    values = np.linalg.eigvalsh(left.moments.K)
    np.testing.assert_allclose(values[:3], 0, atol=1e-15 * values[-1])
    np.testing.assert_allclose(left.moments.A[:, 2:], 0, atol=1e-12)
    assert_sums_of(left, [flat], centred=False)


def test_what_was_never_learned_is_refused(rng, batches):
    total = batches[0].sums() + batches[1].sums()
    larger = Batch(rng, 8, 4, 12, 5)
    larger.X = 9 * larger.X
    with pytest.raises(ValueError, match=r"not learned in this form: .*eigenvalue -.*Nothing was changed"):
        total - larger.sums()


def test_something_must_be_left(batches):
    total = batches[0].sums() + batches[1].sums()
    for part in (total, total + batches[2].sums()):
        with pytest.raises(ValueError, match=r"everything learned has the weight .* nothing would be left"):
            total - part
    few_pairs = PairSums(batches[0].sums().moments, 2 * total.weight, total.mean)
    with pytest.raises(ValueError, match="nothing would be left"):  # objects remain, and no pair of them
        few_pairs - batches[0].sums()
