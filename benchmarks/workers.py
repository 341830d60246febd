"""Two workers beside one, on the part of a fit that searches; and the rates that a plan for more rests on."""

import logging
from contextlib import ExitStack
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hubless.moments import Moments, moments_of_targets
from hubless.outofcore.block_steps import Work
from hubless.outofcore.dask.dask_objects import objects_of_arrays
from hubless.outofcore.pair_sums import PairSummation
from hubless.outofcore.survey import survey
from hubless.targets import same_class_targets

from .data import clustered, evenly
from .record import Options
from .timing import race

FULL, QUICK = (160_000, 128, 16), (3_000, 16, 4)
BLOCKS = 8
WORKERS = (1, 2)


def measure(options: Options) -> dict[str, Any]:
    """Seconds of every round: the search with one worker and with two, a look at all objects, one core."""
    from distributed import Client, LocalCluster

    n, d, n_classes = QUICK if options.quick else FULL
    data = clustered(evenly(n, n_classes), d, seed=3)
    order = np.random.default_rng(4).permutation(n)  # so that every block has objects of every class
    X, y = data.X[order], data.y[order]
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.ERROR}
    with ExitStack() as stack:
        fits = {}
        for k in WORKERS:
            cluster = stack.enter_context(LocalCluster(n_workers=k, **settings))
            client = stack.enter_context(Client(cluster, set_as_default=False))
            fits[f"{k} worker{'s' * (k > 1)}"] = ClusterFit(client, X, y)
        contenders = {name: fit.search for name, fit in fits.items()}
        contenders |= {f"look, {name}": fit.look for name, fit in fits.items()}
        seconds = race(contenders, options.repeats, title="workers", pause=options.pause)
        expected = in_memory(X, y)
        difference = max(relative_difference(fit.moments, expected) for fit in fits.values())
    with threadpool_limits(1):
        alone = {"one core, in memory": lambda: in_memory(X, y)}
        seconds |= race(alone, options.repeats, title="alone", pause=options.pause)
    return {
        "search": {
            "settings": {"n": n, "d": d, "classes": n_classes, "dtype": "float32", "blocks": BLOCKS},
            "seconds": seconds,
            "bytes": X.nbytes,
            "comparisons": int((np.bincount(y).astype(np.int64) ** 2).sum()),
            "largest difference of the sums, relative": difference,
        }
    }


class ClusterFit:
    """A fit on a cluster whose workers hold the objects."""

    moments: Moments

    def __init__(self, client: Any, X: np.ndarray, y: np.ndarray) -> None:
        import dask.array as da

        self.client, size = client, -(-len(X) // BLOCKS)
        with client.as_current():
            # kept, or the workers would let go of the objects
            self.arrays = client.persist([da.from_array(X, (size, -1)), da.from_array(y, size)])
            self.objects = objects_of_arrays(*self.arrays)
            self.seen = survey(self.objects)
        self.work = Work.of(self.objects.name, self.objects.look, self.seen)

    def look(self) -> None:
        """Look at all objects: their classes, their mean, a digest."""
        with self.client.as_current():
            survey(self.objects)

    def search(self) -> None:
        """Find the targets of all objects, and add up the moments."""
        with self.client.as_current():
            pairs = PairSummation(self.objects, self.seen, self.work, 1, None)
            self.moments = pairs.moments(None)


def in_memory(X: np.ndarray, y: np.ndarray) -> Moments:
    """Return the moments of all pairs, from objects in memory."""
    return moments_of_targets(X, same_class_targets(X, y), origin=X.mean(axis=0, dtype=np.float64))


def relative_difference(a: Moments, b: Moments) -> float:
    """Return the largest difference of A and K over their largest number."""
    a = a.about(b.origin)
    pairs = ((a.A, b.A), (a.K, b.K))
    return max(float(np.abs(one - two).max() / np.abs(two).max()) for one, two in pairs)
