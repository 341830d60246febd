"""What a race keeps in memory: bounded, what is expensive to learn again, and nothing twice."""

import numpy as np
import pytest

from hubless.movers.points import Points
from hubless.selection import kept_points
from hubless.selection.kept_points import KeptPoints


@pytest.fixture
def clock(monkeypatch):
    """A clock that only learning advances."""
    now = [0.0]
    monkeypatch.setattr(kept_points, "perf_counter", lambda: now[0])
    return now


@pytest.fixture
def room_for_three(monkeypatch):
    """Objects of 800 bytes, and room for three arrays like them."""
    monkeypatch.setattr(kept_points, "TIMES", 3)
    monkeypatch.setattr(kept_points, "LEAST", 0)
    return np.zeros((10, 10))


class Learner:
    """Ask for points by number, each of which takes some seconds to learn."""

    def __init__(self, kept, objects, clock):
        self.kept, self.clock, self.learned = kept, clock, []
        self.start = Points(objects, objects, None, 1, inputs=objects)

    def ask(self, key, seconds):
        def learn(points):
            self.learned.append(key)
            self.clock[0] += seconds
            return points._replace(Z=np.full((10, 10), float(key)))

        points = self.kept.get(key, lambda: self.start, learn)
        assert points.Z[0, 0] == key
        assert self.kept.n_bytes() <= 2400


def test_the_cheap_are_dropped_and_learned_again(room_for_three, clock):
    ask = Learner(KeptPoints(room_for_three), room_for_three, clock)
    for key, seconds in ((1, 9.0), (2, 1.0), (3, 8.0), (4, 7.0)):  # 2 is dropped for 4
        ask.ask(key, seconds)
    for key in (1, 3, 4):
        ask.ask(key, 0.0)
    assert ask.learned == [1, 2, 3, 4]
    ask.ask(2, 1.0)
    assert ask.learned == [1, 2, 3, 4, 2]


def test_the_expensive_do_not_stay_forever(room_for_three, clock):
    ask = Learner(KeptPoints(room_for_three), room_for_three, clock)
    ask.ask(0, 5.0)
    for key in range(1, 30):
        ask.ask(key, 1.0)
    assert 0 not in ask.kept.kept


def test_shared_arrays_count_once_and_objects_that_have_not_moved_never(room_for_three):
    X, kept = room_for_three, KeptPoints(room_for_three)
    start = Points(X, X, None, 1, inputs=X)
    space, bias = np.ones((10, 10)), np.ones(10)
    kept.get("stay", lambda: start, lambda points: points)
    assert kept.n_bytes() == 0
    kept.get("metric", lambda: start, lambda points: points._replace(X=space, Z=space))
    kept.get("after", lambda: start, lambda points: points._replace(X=space, bias=bias))
    assert kept.n_bytes() == space.nbytes + bias.nbytes


def test_more_than_fits_is_returned_and_not_kept(monkeypatch, clock):
    monkeypatch.setattr(kept_points, "TIMES", 0)
    monkeypatch.setattr(kept_points, "LEAST", 0)
    X = np.zeros((10, 10))
    ask = Learner(KeptPoints(X), X, clock)
    ask.ask(1, 1.0)
    ask.ask(1, 1.0)
    assert ask.learned == [1, 1]
    assert not ask.kept.kept
