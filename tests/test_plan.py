"""Classes spread over tasks: every object in one bin, no bin too large, no task that others wait for."""

import numpy as np
import pytest

from hubless.large.plan import LITTLE, READ, TASKS, pack
from hubless.large.sampling import allot


def zipf(n_classes, n_objects, power):
    """Sizes n_c ∝ c^−power, of at least 1."""
    share = np.arange(1, n_classes + 1) ** -float(power)
    return np.maximum(1, n_objects * share / share.sum()).astype(np.int64)


def check_bins(bins, sizes, at_once):
    """Every class is in one bin of whole classes, or in bins of its own; no bin holds too many objects."""
    held, owners = np.zeros(bins.n, dtype=np.int64), [[] for _ in range(bins.n)]
    for code, size in enumerate(sizes.tolist()):
        first, chunks = int(bins.first[code]), int(bins.chunks[code])
        assert 1 <= chunks <= max(1, size)
        assert 1 <= bins.groups[code] <= chunks
        assert (first < bins.n_whole) == (chunks == 1)
        rows = int(bins.chunk_rows(sizes)[code])
        for i in range(chunks):
            held[first + i] += max(0, min(size - i * rows, rows)) if chunks > 1 else size
            owners[first + i].append(code)
    assert held.sum() == sizes.sum()
    assert held.max() <= at_once
    assert all(len(codes) == 1 for codes in owners[bins.n_whole :])
    return held


def loads(bins, sizes, counts):
    """Comparisons of each task, as n · s and what reading costs: of bins, and of groups that meet chunks."""
    work = sizes * (counts + READ)
    whole = np.bincount(bins.first[bins.chunks == 1], work[bins.chunks == 1], minlength=bins.n_whole)
    rows = bins.chunk_rows(sizes)
    cut = bins.chunks > 1
    asked = -(-counts // bins.groups) + -(-counts // bins.chunks)  # a group is whole chunks
    return whole, (rows * asked)[cut]


@pytest.mark.parametrize("seed", range(40))
def test_bins_of_any_classes(seed):
    rng = np.random.default_rng(seed)
    sizes = np.ceil(10 ** rng.uniform(0, rng.uniform(0.1, 5), rng.integers(1, 300))).astype(np.int64)
    counts = (sizes * rng.choice([0.0, 0.01, 0.5, 1.0])).astype(np.int64)
    at_once = int(10 ** rng.uniform(0.5, 5))
    most = float(10 ** rng.uniform(3, 8))
    bins = pack(sizes, counts, at_once, most)
    check_bins(bins, sizes, at_once)
    work = sizes * (counts + READ)
    whole, _ = loads(bins, sizes, counts)
    if len(whole):  # longest first, into the bin with the least: at most the mean and the last one put in
        assert whole.max() <= most + work[bins.chunks == 1].max() + 1e-6
        assert work[bins.chunks == 1].max() <= most + 1e-6


def test_whole_classes_are_balanced_as_graham_proved():
    """Where nothing but work counts, the longest bin is within 4/3 of the best that any packing could do."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        sizes = rng.integers(1, 400, rng.integers(5, 200))
        work = sizes * (sizes + READ)
        most = float(max(work.max(), work.sum() / 7))
        bins = pack(sizes, sizes, 10**9, most)
        whole, _ = loads(bins, sizes, sizes)
        ordered = np.sort(work)[::-1]
        best = max(work.mean() * len(work) / bins.n, ordered[0])
        if len(ordered) > bins.n:  # two of the longest n + 1 share a bin
            best = max(best, ordered[bins.n - 1] + ordered[bins.n])
        assert whole.max() <= 4 / 3 * best + 1e-9
        assert whole.sum() == work.sum()


@pytest.mark.parametrize("power", [0.0, 0.8, 1.1, 2.0])
@pytest.mark.parametrize("all_teach", [False, True])
def test_stragglers_of_zipf_classes_stay_bounded(power, all_teach):
    """A thousand classes of ten million objects: no task is much more than 1/64 of the work."""
    sizes = zipf(1000, 10**7, power)
    counts = allot(sizes, None if all_teach else 50 * 128)
    at_once = (1 << 26) // (128 * 4)
    bins = pack(sizes, counts, at_once)
    check_bins(bins, sizes, at_once)
    most = max(LITTLE, (sizes * (counts + READ)).sum() / TASKS)
    whole, cut = loads(bins, sizes, counts)
    assert whole.max(initial=0) <= 2 * most
    assert cut.max(initial=0) <= 3 * most
    needed = max(sizes.sum() / at_once, 1)
    assert bins.n <= 4 * needed + 4 * TASKS  # and there are not far more bins than it takes


def test_the_same_bins_each_time():
    sizes = zipf(50, 10_000, 1.0)
    first, second = (pack(sizes, sizes, 700, 1e5) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_class_of_one_object():
    bins = pack(np.array([1]), np.array([0]), 10)
    assert (bins.n, bins.n_whole, bins.chunks.tolist()) == (1, 1, [1])
