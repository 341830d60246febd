"""Mahalanobis learners, ours and others', each once and in a process of its own, which a limit may end.

`python -m benchmarks.learners NAME DATA` is that process: it prints the model, and when that is fitted its
seconds, as a line of JSON each.
"""

import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hubless import baselines

from .data import LABELED
from .record import Options, apart
from .timing import told

ROOT = Path(__file__).parent.parent


def metric_learn_lmnn() -> Any:
    from metric_learn import LMNN

    return LMNN(n_neighbors=1)  # as many targets as ours has


def pylmnn() -> Any:
    """pylmnn 1.6.4 on today's libraries."""
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
    "hubless NCA": baselines.NCA,
    "metric-learn LMNN": metric_learn_lmnn,
    "pylmnn": pylmnn,
    "scikit-learn NCA": scikit_learn_nca,
}


def time_all(data: str, options: Options) -> dict[str, dict[str, Any]]:
    """Seconds of each learner, or the limit that it did not keep, or why it cannot run."""
    names = [] if options.quick and data == "news" else LEARNERS
    if options.quick:  # most of a quick look is the start of processes: one of ours is enough
        names = [name for name in names if name == "hubless LMNN" or not name.startswith("hubless")]
    found = apart(time_one, [(name, data) for name in names], options, f"learners on {data}")
    return dict(zip(names, found, strict=True))


def time_one(name: str, data: str, options: Options) -> dict[str, Any]:
    """One learner in its process; the limit counts from the moment that it begins to fit."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.learners", name, data]
    command += ["--quick"] if options.quick else []
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as child:
        found = _line(child.stdout.readline() if child.stdout else "")
        try:
            found |= _line(child.communicate(timeout=options.limit)[0])
        except subprocess.TimeoutExpired:
            child.kill()
            return found | {"more_than": options.limit}
    if not found.keys() & {"seconds", "error"}:  # killed, perhaps for want of memory
        found["error"] = f"its process ended with code {child.returncode}"
    return found


def _line(text: str) -> dict[str, Any]:
    """What a learner prints; its package may print lines before."""
    lines = text.strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def main(name: str, data: str, *flags: str) -> None:
    """Be that process."""
    try:
        model = LEARNERS[name]()
        X, y, _ = LABELED[data]("--quick" in flags)
        print(json.dumps({"model": " ".join(repr(model).split())}), flush=True)
        start = perf_counter()
        model.fit(X, y)
        print(json.dumps({"seconds": [perf_counter() - start]}))
    except Exception as error:  # a peer that fails is a result too
        print(json.dumps(told(error)))


if __name__ == "__main__":
    main(*sys.argv[1:])
