"""Work in blocks, on several threads: the same results for any number of them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import array_api_compat as compat
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from hubless import MoveLabeledClassifierCV
from hubless.arrays import products
from hubless.arrays.library import blocks
from hubless.arrays.products import (
    blas_threads,
    even_size,
    keep_threads,
    limit_blas,
    map_blocks,
    map_items,
    sum_blocks,
)
from hubless.moments import moments_of_targets
from hubless.movers import Stay
from hubless.neighbors import differences, nearest, ranking, search, within
from hubless.targets import same_class_targets
from tests import reference

XP = compat.array_namespace(np.ones(1))


@pytest.fixture(params=[1, 3, 8])
def cores(request, monkeypatch):
    """A machine with this many cores."""
    monkeypatch.setattr(products, "blas_threads", lambda: request.param)
    return request.param


@pytest.mark.parametrize(("n", "size"), [(0, 3), (1, 3), (3, 3), (10, 3), (10, 100)])
def test_blocks_cover_everything_once(n, size):
    parts = list(blocks(n, size))
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n))
    assert all(0 < part.stop - part.start <= size for part in parts)


@pytest.mark.parametrize(("n", "size"), [(1, 5), (40, 5), (41, 5), (1000, 7), (1000, 5000)])
def test_even_blocks_give_every_thread_as_many(n, size, cores):
    even = even_size(n, size)
    assert 1 <= even <= size
    rounds = -(-n // (even * products.workers()))
    assert rounds == -(-n // (size * products.workers()))  # no more rounds than blocks of the largest size


@pytest.mark.usefixtures("cores")
def test_results_come_in_order():
    squares = [i**2 for i in range(50)]
    assert list(map_items(XP, lambda i: i**2, range(50))) == squares
    assert list(map_items(XP, lambda i: i**2, range(50))) == squares
    assert map_blocks(XP, lambda part: part.start, 50, 7) == [0, 7, 14, 21, 28, 35, 42, 49]


def test_sums_do_not_depend_on_the_number_of_threads(rng, monkeypatch):
    X = rng.standard_normal((1000, 3)) * 10.0 ** rng.integers(-8, 8, (1000, 1))
    totals = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(products, "blas_threads", lambda cores=cores: cores)
        totals.append(sum_blocks(XP, lambda part: X[part].sum(axis=0), 1000, 13))
    for total in totals[1:]:
        np.testing.assert_array_equal(total, totals[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_searches_and_sums_on_four_threads_are_those_of_loops(seed, dtype, monkeypatch):
    """On a grid, where ties abound; blocks are small, so that every thread has many, one after another."""
    monkeypatch.setattr(products, "blas_threads", lambda: 4)
    sizes, pool = [], products.ThreadPoolExecutor
    monkeypatch.setattr(
        products, "ThreadPoolExecutor", lambda size, **rest: sizes.append(size) or pool(size, **rest)
    )
    for owner, name, size in (
        *((search, "QUERY_ROWS", 7), (search, "OBJECT_ROWS", 40), (within, "CELLS", 400)),
        *((ranking, "BLOCK", 4), (differences, "PAIR_NUMBERS", 64), (ranking, "MAX_CANDIDATES", 300)),
        *((products, "NUMBERS", 52), (products, "MIN_ROWS", 1)),
    ):
        monkeypatch.setattr(owner, name, size)
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (200, 3)).astype(dtype), rng.integers(0, 9, 200)
    distances, indices = nearest(X, X, 6, exclude_self=True)
    truth = reference.nearest(X, X, 6, exclude_self=True)
    np.testing.assert_array_equal(indices, truth[1])
    np.testing.assert_allclose(distances, truth[0], rtol=1e-6)
    targets = same_class_targets(X, y, 3)
    np.testing.assert_array_equal(targets, reference.targets(X, y, 3))
    moments = moments_of_targets(X, targets)
    A, K = reference.indicator_moments(X.astype(float), targets)
    np.testing.assert_allclose(moments.A, A, rtol=1e-12)
    np.testing.assert_allclose(moments.K, K, rtol=1e-12)
    assert set(sizes) == {4}
    assert len(sizes) >= 3


def test_kept_threads_serve_all_calls_inside(monkeypatch):
    monkeypatch.setattr(products, "blas_threads", lambda: 2)
    made, pool = [], products.ThreadPoolExecutor
    monkeypatch.setattr(
        products, "ThreadPoolExecutor", lambda size, **rest: made.append(pool(size, **rest)) or made[-1]
    )
    with keep_threads(blas=1) as kept:
        for _ in range(3):
            assert list(map_items(XP, lambda i: i**2, range(5))) == [0, 1, 4, 9, 16]
        with keep_threads() as inner:
            assert inner is kept
        # a block that is cut into blocks does not wait for the threads that it runs on
        assert list(map_items(XP, lambda i: list(map_items(XP, abs, [-i, i])), range(9)))[8] == [8, 8]
        with ThreadPoolExecutor(1) as other:
            assert other.submit(lambda: keep_threads().__enter__()).result() is None
    assert made == [kept]
    with pytest.raises(RuntimeError, match="shutdown"):
        kept.submit(abs, 1)
    with keep_threads() as new:
        assert new is not kept


@pytest.mark.usefixtures("three_threads")
def test_blas_has_one_thread_in_a_race_and_blocks_run_on_ours(rng, monkeypatch):
    """Those of BLAS spin while they wait: beside a busy process, a race took 10 times as long."""
    seen = []

    class Watched(Stay):
        def _apply(self, points):
            seen.append((blas_threads(), products.workers(), even_size(90, 90)))
            return points

    y = np.arange(90) % 3
    MoveLabeledClassifierCV(mover=[Watched()]).fit(rng.standard_normal((90, 4)), y)
    assert set(seen) == {(1, 3, 30)}
    assert (blas_threads(), products.workers()) == (3, 3)


def test_blocks_run_at_the_same_time_and_errors_are_raised(monkeypatch):
    monkeypatch.setattr(products, "blas_threads", lambda: 2)
    barrier = Barrier(2, timeout=60)  # passed only by two at once
    assert len(list(map_items(XP, lambda i: barrier.wait(), range(2)))) == 2
    with pytest.raises(ZeroDivisionError):
        list(map_items(XP, lambda i: 1 / i, range(3)))
    assert list(map_items(XP, lambda i: i, range(3))) == [0, 1, 2]  # the next call is not blocked


@pytest.fixture
def three_threads():
    """BLAS has three threads, also where the workers of `make test` have one each."""
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        yield


@pytest.mark.usefixtures("three_threads")
def test_threads_of_blas_are_limited_for_a_while():
    before = blas_threads()
    assert before == 3  # else nothing below could fail
    seen = []
    with limit_blas(1):
        seen.append(blas_threads())
        with limit_blas(before):
            seen.append(blas_threads())
        seen.append(blas_threads())

        def elsewhere():
            with limit_blas(before + 1):  # another thread leaves our limit alone
                seen.append(blas_threads())

        thread = Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert seen == [1, before, 1, 1]
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), limit_blas(1):
        raise ZeroDivisionError
    assert blas_threads() == before


def test_the_blas_of_other_packages_is_not_counted():
    """faiss brings a second OpenBLAS, which keeps a limit for each thread: another thread sees none."""
    script = (
        "import faiss\n"
        "from threading import Thread\n"
        "from hubless.arrays.products import blas_threads, limit_blas\n"
        "seen = []\n"
        "with limit_blas(1):\n"
        "    thread = Thread(target=lambda: seen.append(blas_threads()))\n"
        "    thread.start(); thread.join()\n"
        "assert seen == [1], seen\n"
    )
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, "2")  # with one thread it could not fail
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
