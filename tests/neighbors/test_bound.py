"""The bound of the first pass in bfloat16 under attack: no neighbour is left out, whatever the points."""

import importlib

import numpy as np
import pytest

from hubless.arrays import bfloat16, namespace
from hubless.neighbors import bfloat16_pass, nearest
from hubless.neighbors.bfloat16_pass import Bfloat16Pass
from hubless.neighbors.frame import Frame, ignore_overflow
from tests import reference

pytestmark = pytest.mark.torch
CASES = 25  # of each kind and seed
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]


@pytest.fixture(params=["squared length", "chosen"], autouse=True)
def constant(request, monkeypatch):
    """What is added to the values of a query; chosen by a sample only where there are many objects."""
    if request.param == "chosen":
        monkeypatch.setattr(bfloat16_pass, "SAMPLED", 2)
        monkeypatch.setattr(bfloat16_pass, "BEYOND", 0.2)  # so that many values are below 0


def one_rounding_apart(rng, points):
    """Each point is another one, with some numbers replaced by the next one that there is."""
    points = points[rng.integers(0, 3, len(points))]
    return np.where(rng.random(points.shape) < 0.3, np.nextafter(points, np.float32(np.inf)), points)


def with_constant_columns(rng, points):
    points[:, rng.random(points.shape[1]) < 0.5] = 1234.5
    return points


KINDS = {
    "plain": lambda rng, points: points,
    "norms from 1e-10 to 1e10": lambda rng, points: points * 10.0 ** rng.uniform(-10, 10, (len(points), 1)),
    "far away": lambda rng, points: points + 1e4,
    "one rounding apart": one_rounding_apart,
    "denormal": lambda rng, points: points * 1e-39,
    "nearly denormal": lambda rng, points: points * 1e-19,  # their squares are
    "huge": lambda rng, points: points * 1e30,
    "one is huge": lambda rng, points: points * np.where(np.arange(len(points)) == 2, 1e30, 1)[:, None],
    "constant columns": with_constant_columns,
    "clusters": lambda rng, points: (
        points * 1e-3 + rng.standard_normal((4, points.shape[1]))[np.arange(len(points)) % 4]
    ),
    "identical rows": lambda rng, points: points[rng.integers(0, 4, len(points))],
    "unit vectors": lambda rng, points: points / np.linalg.norm(points, axis=1, keepdims=True),
    "half way between two bfloat16": lambda rng, points: 1 + np.round(points) * 2.0**-8,
    "one number is long": lambda rng, points: np.where(np.arange(points.shape[1]) == 0, 1e3, 1e-3) * points,
}


def draw(seed, kind, dtype):
    """Yield queries, objects and k."""
    rng = np.random.default_rng([seed, *kind.encode()])
    for _ in range(CASES):
        m, n, d = rng.integers(1, 6), rng.integers(4, 50), rng.integers(1, 40)
        points = KINDS[kind](rng, rng.standard_normal((m + n, d)).astype(np.float32)).astype(dtype)
        order = rng.permutation(m + n)  # queries and objects are of one kind
        k = int(rng.integers(1, n + 1)) if rng.random() < 0.5 else 1
        yield points[order[:m]], points[order[m:]], k


def true_squares(queries, objects):
    """Squared distances, in numbers that hold products of float64 that float64 does not."""
    return ((queries[:, None].astype(np.longdouble) - objects.astype(np.longdouble)) ** 2).sum(axis=2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_every_neighbour_is_a_candidate(kind, dtype, seed):
    for queries, objects, k in draw(seed, kind, dtype):
        xp = namespace(queries)
        with ignore_overflow():
            first = Bfloat16Pass.of(xp, objects, Frame.of(xp, queries, objects))
            found = first.candidates(xp, queries, k, at_once=int(len(objects) // 2 + 1))
        kept = np.zeros((len(queries), len(objects)), dtype=bool)
        kept[found.cells.row, found.cells.column] = True
        squares = true_squares(queries, objects)
        limit = np.sort(squares, axis=1)[:, k - 1 : k]
        assert kept[squares <= limit].all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_as_close_to_the_truth_as_they_claim(kind, dtype, seed):
    """Differences of two values of a row, since all of a row may be shifted by one constant."""
    for queries, objects, k in draw(seed, kind, dtype):
        xp = namespace(queries)
        with ignore_overflow():
            frame = Frame.of(xp, queries, objects)
            found = Bfloat16Pass.of(xp, objects, frame).candidates(xp, queries, k, at_once=64)
            row, column, value = found.cells
            truth = true_squares(queries, objects)[row, column] * np.longdouble(frame.scale) ** 2
            for query in range(len(queries)):
                here = np.flatnonzero((row == query) & np.isfinite(value.astype(np.float64)))
                gap = value[here].astype(np.longdouble) - truth[here]
                error = found.error[here]
                assert (np.abs(gap[:, None] - gap) <= error[:, None] + error).all()


# --- the worst that rounding can do ------------------------------------------------------------------------

STEP = 2.0**-7  # between the bfloat16 from 1 to 2
TINY = 2.0**-18  # tells which way a number half way between two of them is rounded


def centred(points):
    """Points and their mirror images, so that the mean is exactly 0 and shifts nothing."""
    return np.concatenate([points, -np.asarray(points)]).astype(np.float32)


def objects_rounded_against_the_truth(d):
    """The nearest object is rounded away from the query in all coordinates, and the next one toward it."""
    whole = 1 + STEP * np.random.default_rng(d).integers(20, 40, d)
    near, next_one = whole + STEP / 2 - TINY, whole + STEP / 2 + TINY
    next_one[0] -= STEP
    return np.full((1, d), 1.75, np.float32), centred([near, next_one])


def query_rounded_against_the_truth(d):
    """The query is between two objects, and is rounded away from the nearer one."""
    query = np.full((1, d), 1.5 + STEP / 2 + TINY, np.float32)
    near, next_one = np.full(d, 1.5 - 16 * STEP), np.full(d, 1.5 + 17 * STEP)
    near[0] += STEP
    return query, centred([near, next_one])


@pytest.mark.parametrize("d", [4, 16, 64, 200])
@pytest.mark.parametrize("attack", [objects_rounded_against_the_truth, query_rounded_against_the_truth])
def test_the_worst_case_of_rounding(attack, d):
    queries, objects = attack(d)
    short = [
        bfloat16.round_points(p, np.zeros(d, np.float32), 1.0, right=True).right for p in (queries, objects)
    ]
    x, z = (factor[:, :d].double().numpy() for factor in short)
    assert np.argmin(true_squares(queries, objects)) == 0
    assert np.argmin(((x - z) ** 2).sum(axis=1)) == 1  # rounded, the order is wrong
    found = nearest(queries, objects, 1, return_distance=False, precision="bfloat16")
    np.testing.assert_array_equal(found, [[0]])


def test_codes_bound_the_numbers_that_round_to_them():
    """All codes of finite numbers; the numbers are those that torch rounds to them."""
    torch = importlib.import_module("torch")
    codes = np.arange(0x7F80, dtype=np.int16)
    numbers = torch.from_numpy(codes).view(torch.bfloat16).double().numpy()
    highest = bfloat16.decode_up(codes)
    assert (highest[:-1] > numbers[:-1]).all()
    half_way = torch.from_numpy((numbers[:-1] + numbers[1:]) / 2).float()
    up = torch.nextafter(half_way, torch.tensor(np.inf)).bfloat16().view(torch.int16).numpy()
    np.testing.assert_array_equal(up, codes[1:])  # beyond half way a number has the next code
    np.testing.assert_array_equal(highest[:-1], half_way.double().numpy())
    for number, least in ((numbers, codes), (numbers[:-1] * (1 + 1e-4), codes[1:])):
        assert (bfloat16.encode_up(number) >= least)[number > 0].all()
    assert bfloat16.encode_up(np.array([np.inf, np.nan])).tolist() == [bfloat16.HIGHEST] * 2


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_those_of_loops(kind, dtype, library):
    convert = importlib.import_module("torch").from_numpy if library == "torch" else np.asarray
    for queries, objects, k in draw(0, kind, dtype):
        found = nearest(convert(queries), convert(objects), k, return_distance=False, precision="bfloat16")
        if kind != "norms from 1e-10 to 1e10":  # there, sums of float64 cannot tell short objects apart
            np.testing.assert_array_equal(np.asarray(found), reference.nearest(queries, objects, k)[1])
        squares = true_squares(queries, objects)
        near = np.take_along_axis(squares, np.asarray(found), axis=1)
        np.testing.assert_allclose(near, np.sort(squares, axis=1)[:, :k], rtol=1e-13)
