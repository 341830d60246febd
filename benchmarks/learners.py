"""Mahalanobis learners, ours and others', each once, in a separate process with a time limit."""

import sys
import types
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from hubless import baselines

from .data import LABELED
from .processes import measure_apart, print_steps
from .record import Options


def metric_learn_lmnn() -> Any:
    from metric_learn import LMNN

    return LMNN(n_neighbors=1)  # as many targets as ours has


def pylmnn() -> Any:
    """Return pylmnn 1.6.4, made to run on today's libraries."""
    search = types.ModuleType("GPyOpt.methods")  # its hyperparameter search, which it imports, is not used
    search.BayesianOptimization = None  # type: ignore[attr-defined]
    sys.modules.setdefault("GPyOpt", types.ModuleType("GPyOpt"))
    sys.modules.setdefault("GPyOpt.methods", search)
    import pylmnn.lmnn as theirs

    minimize = theirs.minimize  # which now refuses a start that is a matrix
    theirs.minimize = lambda fun, x0, **options: minimize(fun, np.ravel(x0), **options)
    return theirs.LargeMarginNearestNeighbor(n_neighbors=1, random_state=0)


def scikit_learn_nca() -> Any:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return NeighborhoodComponentsAnalysis(random_state=0)


LEARNERS: dict[str, Callable[[], Any]] = {
    "hubless LMNN": baselines.LMNN,
    "hubless ITML": lambda: baselines.ITML(random_state=0),
    "hubless DML-eig": baselines.DMLeig,
    "hubless MMC": lambda: baselines.MMC(random_state=0),
    "hubless NCA": baselines.NCA,
    "metric-learn LMNN": metric_learn_lmnn,
    "pylmnn": pylmnn,
    "scikit-learn NCA": scikit_learn_nca,
}


def time_all(data: str, options: Options) -> dict[str, dict[str, Any]]:
    """Measure the seconds of each learner, or the limit that it exceeded, or why it cannot run."""
    names = [] if options.quick and data == "news" else LEARNERS
    if options.quick:  # most of a quick look is the start of processes: one of ours is enough
        names = [name for name in names if name == "hubless LMNN" or not name.startswith("hubless")]
    return dict(zip(names, measure_apart("learners", [(name, data) for name in names], options), strict=True))


def steps(name: str, data: str, *flags: str) -> Iterator[dict[str, Any]]:
    """Fit one learner: give the model when it begins, and its seconds when it is fitted."""
    model = LEARNERS[name]()
    X, y, _ = LABELED[data]("--quick" in flags)
    yield {"model": " ".join(repr(model).split())}
    start = perf_counter()
    model.fit(X, y)
    yield {"seconds": [perf_counter() - start]}


if __name__ == "__main__":
    print_steps(steps(*sys.argv[1:]))
