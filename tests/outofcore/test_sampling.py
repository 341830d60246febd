"""Which objects are sources: all where that is affordable, otherwise a sample of a known size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubless.outofcore import sampling
from hubless.outofcore.sampling import Draw, groups_of, hash_rows, n_sources, sampled_rows, sampled_sources

MASK = 2**64 - 1


def plain_hash(row, seed):
    """The finalizer of splitmix64, in whole numbers of Python."""
    value = (row + 0x9E3779B97F4A7C15 * (seed + 1)) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_hashes_are_those_of_plain_numbers(seed):
    rows = np.array([0, 1, 2, 10**9, 2**62])
    assert hash_rows(rows, seed).tolist() == [plain_hash(row, seed) for row in rows.tolist()]


@given(n=st.integers(1, 3000), share=st.floats(0, 1), seed=st.integers(0, 5), at_once=st.integers(50, 4000))
def test_a_sample_has_the_smallest_hashes(n, share, seed, at_once):
    size = max(1, int(share * n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "AT_ONCE", at_once)
        got = sampled_rows(n, size, seed)
    assert got.tolist() == sorted(sorted(range(n), key=lambda row: plain_hash(row, seed))[:size])


def test_a_sample_that_is_smaller_than_expected_is_drawn_again(monkeypatch):
    """The first bound of the hashes is too low once in a billion times."""
    want = sampled_rows(5000, 400, 3)
    below, bounds = sampling._below, []

    def too_low(first, last, share, seed):
        bounds.append(share)
        return below(first, last, share if len(bounds) > 1 else 0.01, seed)

    monkeypatch.setattr(sampling, "_below", too_low)
    np.testing.assert_array_equal(sampled_rows(5000, 400, 3), want)
    assert len(bounds) == 2


def test_every_object_has_the_same_chance():
    counts = np.zeros(60)
    for seed in range(4000):
        counts[sampled_rows(60, 15, seed)] += 1
    chi_squared = ((counts - 1000) ** 2 / (1000 * 0.75)).sum() * 59 / 60
    assert chi_squared < 110  # 59 are expected; more than 110 once in 20,000 times


@given(n=st.integers(1, 500), m=st.integers(1, 500), size=st.integers(1, 600))
def test_groups_have_every_source_once(n, m, size):
    m = min(n, m)
    groups = list(groups_of(sampled_sources(n, m, 1), m, size))
    want = np.arange(n) if m == n else sampled_rows(n, m, 1)
    np.testing.assert_array_equal(np.concatenate(groups), want)
    assert all(len(group) == size for group in groups[:-1])


# --- how many ----------------------------------------------------------------------------------------------


def test_all_pairs_where_they_are_affordable():
    """The issue: 6,000 objects of 40 columns are learned from as in memory."""
    for sizes, d in [([6000], 40), ([1000] * 6, 40), ([50_000] * 10, 10), ([2] * 100_000, 64)]:
        sizes = np.array(sizes)
        assert n_sources(sizes, d, 1, "auto") == sizes.sum()
        assert n_sources(sizes, d, 10, "auto") == sizes.sum()


@pytest.mark.parametrize("d", [1, 2, 8, 32])
def test_a_comparison_has_a_price_in_few_columns_too(d):
    """Measured: 1 ns with 1, 2, 8 or 32 columns, so a minute has at most 6e10 of them."""
    assert n_sources(np.array([240_000]), d, 1, "auto") == 240_000
    assert n_sources(np.array([1_000_000]), d, 1, "auto") < 70_000


@pytest.mark.parametrize(
    ("sizes", "d"),
    [([10**7], 128), ([10**6] * 100, 128), ([100] * 10**6, 768), ([10**9], 768), ([10**9] + [2] * 1000, 8)],
)
def test_otherwise_as_many_as_are_affordable_and_enough_for_each_column(sizes, d):
    sizes = np.array(sizes)
    n = int(sizes.sum())
    m = n_sources(sizes, d, 1, "auto")
    assert m < n
    assert m >= min(n, sampling.PAIRS * d)
    compared = 2.0 * d * m / n * (sizes.astype(float) ** 2).sum()
    assert compared <= sampling.OPERATIONS or m <= 1.01 * sampling.PAIRS * d * n / (sizes * (sizes > 1)).sum()


@given(
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=30),
    k=st.integers(1, 40),
    max_pairs=st.integers(1, 20_000),
)
def test_no_more_pairs_than_requested(sizes, k, max_pairs):
    sizes = np.array(sizes)
    m, most = n_sources(sizes, 5, k, max_pairs), min(k, sizes.max() - 1)
    every = int((sizes * np.minimum(k, sizes - 1)).sum())
    if every <= max_pairs:
        assert m == sizes.sum()
    else:
        assert 1 <= m <= sizes.sum()
        assert m * most <= max(max_pairs, most)
        assert (m + 1) * most > max_pairs or m == sizes.sum()
    assert n_sources(sizes, 5, k, None) == sizes.sum()


# --- to choose on ------------------------------------------------------------------------------------------


def test_objects_to_choose_on_are_a_share_of_each_class():
    sizes = np.array([60_000, 30_000, 10_000])
    codes = np.repeat(np.arange(3), sizes)
    draw = Draw.of(sizes, 5000, 0)
    drawn = draw.draw_rows(0, np.zeros((100_000, 1)), codes, codes)
    assert np.abs(np.bincount(drawn.labels) - [3000, 1500, 500]).max() < 250
    assert len(drawn.every) == 1000
    parts = [
        draw.draw_rows(i, np.zeros((50_000, 1)), codes[i:][:50_000], codes[i:][:50_000]) for i in (0, 50_000)
    ]
    np.testing.assert_array_equal(drawn.join(parts).labels, drawn.labels)


def test_very_many_classes_are_sampled_and_stay_whole():
    sizes = np.full(10_000, 8)
    draw = Draw.of(sizes, 2000, 0)
    assert set(draw.shares.tolist()) == {0.0, 1.0}
    assert 1500 < (draw.shares * sizes).sum() < 2500


@pytest.mark.parametrize(
    ("sizes", "most"),
    [([10**6] + [100] * 30, 1000), ([10**6] + [1000] * 400, 20_000), ([10**6] + [100] * 10_000, 20_000)],
    ids=["few classes", "hundreds", "thousands"],
)
def test_the_class_of_most_objects_is_never_left_out(sizes, most):
    sizes = np.array(sizes)
    expected = []
    for seed in range(50):
        shares = Draw.of(sizes, most, seed).shares
        assert 0 < shares[0] < 0.1
        assert len(sizes) > 1000 or (shares * sizes).min() > 19.9
        expected.append((shares * sizes).sum())
    assert np.mean(expected) == pytest.approx(most, rel=0.02)


def test_all_objects_are_drawn_where_they_are_few():
    assert Draw.of(np.array([500, 30, 1]), 531, 0).shares.tolist() == [1.0, 1.0, 1.0]
