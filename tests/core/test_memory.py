"""Peak memory: no matrix of all pairs of a class, however many cores there are; and that of a race."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.arrays import products
from hubless.neighbors import ranking, search, within
from hubless.selection import kept_points

SCRIPT = """
import sys
import numpy as np
from hubless import MoveLabeledClassifier
from hubless.arrays import products

products.blas_threads = lambda: 8  # as on a machine of many cores

def peak():  # bytes; not getrusage's, which on Linux begins with what the parent, pytest, had when it forked
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

rng, large, d = np.random.default_rng(0), int(sys.argv[1]), int(sys.argv[2])
small = rng.standard_normal((600, d), dtype=np.float32)
MoveLabeledClassifier().fit(small, np.arange(600) % 2)  # everything is imported and every thread started
y = np.repeat(np.arange(11), [large, *[1_000] * 10])
X = rng.standard_normal((len(y), d), dtype=np.float32)
before = peak()
MoveLabeledClassifier().fit(X, y)
print(peak() - before, X.nbytes)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("large", "d", "more"), [(30_000, 128, 300e6), (100_000, 16, 350e6)])
def test_fit_with_one_huge_class_needs_little_more_than_its_input(large, d, more):
    """All pairs of the large class would take 3,600e6 and 40,000e6; 1,000 rows of the latter, 400e6."""
    command = [sys.executable, "-c", SCRIPT, str(large), str(d)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    growth, data = map(int, done.stdout.split())
    assert growth < 2 * data + more


def test_fit_with_one_large_class_holds_a_few_blocks_of_pairs(rng, monkeypatch):
    monkeypatch.setattr(products, "blas_threads", lambda: 8)
    monkeypatch.setattr(search, "QUERY_ROWS", 1024)
    monkeypatch.setattr(search, "OBJECT_ROWS", 1024)
    monkeypatch.setattr(within, "CELLS", 1 << 18)
    monkeypatch.setattr(ranking, "MAX_CANDIDATES", 1 << 16)
    monkeypatch.setattr(products, "NUMBERS", 1 << 16)
    X = rng.standard_normal((5_000, 16), dtype=np.float32)
    y = np.repeat([0, 1, 2], [4_000, 500, 500])
    tracemalloc.start()
    try:
        MoveLabeledClassifier().fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * X.nbytes + 15e6  # all pairs of the large class would take 64e6


def traced_peak_of_auto(X, y):
    """Return bytes; the race before it imports everything and starts every thread."""
    MoveLabeledClassifierCV(mover="auto").fit(X[:60, :3], y[:60])
    tracemalloc.start()
    try:
        MoveLabeledClassifierCV(mover="auto", lift=False).fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_race_holds_a_few_copies_of_its_objects(rng, monkeypatch):
    monkeypatch.setattr(kept_points, "LEAST", 0)
    monkeypatch.setattr(search, "QUERY_ROWS", 64)
    monkeypatch.setattr(search, "OBJECT_ROWS", 512)
    y = np.arange(1_500) % 3
    X = rng.standard_normal((1_500, 100)) + y[:, None]
    assert traced_peak_of_auto(X, y) < 12 * X.nbytes + 15e6  # with all that it moves, 50 times X


def test_a_race_among_few_objects_holds_nothing_of_columns_by_columns(rng):
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 3_000)) + 0.05 * y[:, None]
    assert traced_peak_of_auto(X, y) < 8 * X.nbytes + 1e6  # one matrix of columns by columns takes 50 X
