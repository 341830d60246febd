"""Logged queries and stored objects, two of which are hubs; and queries that are alike along a direction."""

from typing import NamedTuple

import numpy as np
import pytest


class Log(NamedTuple):
    """What a correction learns from, and what comes later."""

    queries: np.ndarray  # logged
    objects: np.ndarray  # stored
    later: np.ndarray  # objects that come later
    asked: np.ndarray  # queries that were not logged


def make_log(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    queries, asked = (rng.standard_normal((n, 12)) + 0.8 for n in (40, 15))
    objects = rng.standard_normal((100, 12))
    objects[0] = queries.mean(axis=0)  # a hub under L2 and cosine
    objects[1] = 6 * queries.mean(axis=0) + 0.3 * rng.standard_normal(12)  # by cosine and inner product
    later = np.vstack([objects[0] + 0.01, objects[1] - 0.02, rng.standard_normal((8, 12))])
    return Log(*(part.astype(dtype) for part in (queries, objects, later, asked)))


@pytest.fixture
def log():
    return make_log()


def make_alike(seed=0):
    """As make_log, with queries of one length, of 1 in one column and 0 in another; −x is logged with x."""
    rng = np.random.default_rng(seed)

    def draw(n):
        x = rng.standard_normal((n, 10))
        return np.column_stack([x / np.linalg.norm(x, axis=1, keepdims=True), np.ones(n), np.zeros(n)])

    half = draw(20)
    queries = np.vstack([half, half * ([-1] * 10 + [1, 1])])
    objects = 0.3 * rng.standard_normal((100, 12))
    objects[0] = [*0.05 * rng.standard_normal(10), 0.9, 0.1]  # a hub
    return Log(queries, objects, 0.3 * rng.standard_normal((9, 12)), draw(40))


@pytest.fixture
def alike():
    return make_alike()
