"""Two workers beside one, on the part of a fit that searches; and the rates that a plan for more rests on."""

import logging
from contextlib import ExitStack
from typing import Any

import dask
import numpy as np
from threadpoolctl import threadpool_limits

from hubless.distributed.learn import Ways, blocks_of, lessons_of, shuffled, survey
from hubless.large import tasks
from hubless.large.lesson import Lesson, Sums, Taught, learn_classes
from hubless.large.plan import pack
from hubless.large.sampling import Sample
from hubless.large.tasks import Work

from .data import clustered, evenly
from .record import Options
from .timing import race

FULL, QUICK = (160_000, 128, 16), (3_000, 16, 4)
BLOCKS = 8
WORKERS = (1, 2)


def measure(options: Options) -> dict[str, Any]:
    """Seconds of every round: the search with one worker and with two, both of a shuffle, one core alone."""
    from distributed import Client, LocalCluster

    n, d, n_classes = QUICK if options.quick else FULL
    data = clustered(evenly(n, n_classes), d, seed=3)
    order = np.random.default_rng(4).permutation(n)  # so that there is something to shuffle
    X, y = data.X[order], data.y[order]
    how = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.ERROR}
    with ExitStack() as open_ones:
        clients = [
            open_ones.enter_context(
                Client(open_ones.enter_context(LocalCluster(n_workers=k, **how)), set_as_default=False)
            )
            for k in WORKERS
        ]
        names = [f"{k} worker{'s' * (k > 1)}" for k in WORKERS]
        ready = [Ready(client, X, y) for client in clients]
        told = {name: one.search for name, one in zip(names, ready, strict=True)}
        told |= {f"shuffle, {name}": one.shuffle for name, one in zip(names, ready, strict=True)}
        seconds = race(told, options.repeats, title="workers", pause=options.pause)
        same = max(_apart(one.total, _in_memory(X, y)) for one in ready)
    with threadpool_limits(1):
        alone = {"one core, in memory": lambda: _in_memory(X, y)}
        seconds |= race(alone, options.repeats, title="alone", pause=options.pause)
    return {
        "search": {
            "settings": {"n": n, "d": d, "classes": n_classes, "dtype": "float32", "blocks": BLOCKS},
            "seconds": seconds,
            "bytes": X.nbytes,
            "comparisons": int((np.bincount(y).astype(np.int64) ** 2).sum()),
            "largest difference of the sums, relative": same,
        }
    }


class Ready:
    """A fit on a cluster whose objects are there, to be shuffled; or shuffled, to be searched."""

    def __init__(self, client: Any, X: np.ndarray, y: np.ndarray) -> None:
        import dask.array as da

        self.client, self.total = client, Sums.none(Lesson(np.zeros(X.shape[1]), 1))
        size = -(-len(X) // BLOCKS)
        with client.as_current():
            blocks = client.persist([da.from_array(X, (size, -1)), da.from_array(y, size)])
            self.objects = blocks_of(*blocks)
            self.seen = survey(self.objects)
            sample = Sample.of(self.seen.sizes, None, 1, 0)
            bins = pack(
                sample.sizes, sample.counts, at_once=len(X), most=float((sample.sizes**2).max()) * 1.1
            )
            lesson = Lesson(self.seen.mean, 1)
            self.work = Work(
                X.shape[1], X.dtype, self.seen.classes, sample, bins, lesson, self.objects.look, None
            )
            self.shared = client.persist(dask.delayed(self.work, pure=True))
            self.parts = client.persist(self._shuffled())
            client.gather(client.compute([dask.delayed(len)(part) for part in self.parts]))

    def _shuffled(self) -> list[Any]:
        return shuffled(self.objects, self.seen, self.work, self.shared, Ways(None))

    def shuffle(self) -> None:
        """Bring the objects together by class."""
        with self.client.as_current():
            parts = [dask.delayed(len)(part) for part in self._shuffled()]
            self.client.gather(self.client.compute(parts))

    def search(self) -> None:
        """Find the targets inside classes, and add up."""
        with self.client.as_current():
            lessons = lessons_of(self.parts, self.work, self.shared)
            total = dask.delayed(tasks.add_sums)(lessons)
            self.total = self.client.compute(total).result()


def _in_memory(X: np.ndarray, y: np.ndarray) -> Sums:
    order = np.argsort(y, kind="stable")
    sizes = np.bincount(y)
    lesson = Lesson(X.mean(axis=0, dtype=np.float64), 1)
    return learn_classes(X[order], np.arange(len(sizes)), sizes, Taught(np.arange(len(X)), None), lesson)


def _apart(a: Sums, b: Sums) -> float:
    """The largest difference of A and K over their largest number."""
    own, other = a.moments, b.moments.about(a.moments.origin)
    pairs = ((own.A, other.A), (own.K, other.K))
    return max(float(np.abs(one - two).max() / np.abs(two).max()) for one, two in pairs)
