"""Peak memory beyond input and output, each measured in a process of its own.

`python -m benchmarks.memory TASK` is that process: it prints what it measured as a line of JSON.
"""

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hubless import MoveLabeledClassifier

from .data import clustered, evenly
from .record import Options, apart
from .timing import Contender, told

ROOT = Path(__file__).parent.parent
FULL, QUICK, SMALL = (50_000, 100_000, 300), (500, 1_000, 16), (300, 600, 16)
CLASSES, NEIGHBORS = 20, 5


class Inputs(NamedTuple):
    """Queries, and stored objects with their classes."""

    queries: np.ndarray
    objects: np.ndarray
    y: np.ndarray


def inputs(n_queries: int, n_objects: int, d: int) -> Inputs:
    objects = clustered(evenly(n_objects, CLASSES), d, seed=2)
    return Inputs(clustered(evenly(n_queries, CLASSES), d, seed=1).X, objects.X, objects.y)


def own_fit(data: Inputs) -> Contender:
    def fit() -> tuple[np.ndarray, ...]:
        model = MoveLabeledClassifier().fit(data.objects, data.y)
        return model.moved_, model.W_, model.codes_

    return fit


def own_predict(data: Inputs) -> Contender:
    model = MoveLabeledClassifier(NEIGHBORS).fit(data.objects, data.y)
    return lambda: model.predict(data.queries)


def own_neighbors(data: Inputs) -> Contender:
    model = MoveLabeledClassifier(NEIGHBORS).fit(data.objects, data.y)
    return lambda: model.kneighbors(data.queries)


def their_model(data: Inputs) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(NEIGHBORS, algorithm="brute").fit(data.objects, data.y)


def their_predict(data: Inputs) -> Contender:
    model = their_model(data)
    return lambda: model.predict(data.queries)


def their_neighbors(data: Inputs) -> Contender:
    model = their_model(data)
    return lambda: model.kneighbors(data.queries)


def faiss_neighbors(data: Inputs) -> Contender:
    import faiss

    index = faiss.IndexFlatL2(data.objects.shape[1])
    index.add(data.objects)  # its copy is not counted
    return lambda: index.search(data.queries, NEIGHBORS)


TASKS: dict[str, dict[str, Callable[[Inputs], Contender]]] = {
    "predict": {"hubless": own_predict, "scikit-learn brute": their_predict},
    "kneighbors": {
        "hubless": own_neighbors,
        "scikit-learn brute": their_neighbors,
        "faiss IndexFlatL2": faiss_neighbors,
    },
    "fit": {"hubless": own_fit},
}


def status(field: str) -> int:
    """VmRSS or VmHWM of this process, in bytes; not getrusage's, which begins with the parent's peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def forget_peak() -> None:
    """Let VmHWM begin anew, after what is free went back to the system: reused, it would not be seen."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def peak(build: Callable[[Inputs], Contender], shape: tuple[int, int, int]) -> dict[str, int]:
    """Bytes of input and output, resident before, and at the peak."""
    build(inputs(*SMALL))()  # everything is imported and every thread started
    data = inputs(*shape)
    task = build(data)
    forget_peak()
    before = status("VmRSS")
    result = task()
    highest = status("VmHWM")
    output = sum(part.nbytes for part in (result if isinstance(result, tuple) else (result,)))
    beyond = highest - before - output
    size = sum(part.nbytes for part in data)
    return {"input": size, "output": output, "before": before, "peak": highest, "beyond": beyond}


def measure(options: Options) -> dict[str, Any]:
    """Bytes of every task, once each."""
    shape = dict(zip(("queries", "objects", "d"), QUICK if options.quick else FULL, strict=True))
    settings = {**shape, "dtype": "float32", "k": NEIGHBORS, "classes": CLASSES}
    jobs = [(task, who) for task in TASKS for who in TASKS[task]]
    cases: dict[str, Any] = {task: {"settings": settings, "bytes": {}} for task in TASKS}
    for (task, who), found in zip(jobs, apart(_alone, jobs, options, "memory"), strict=True):
        cases[task]["bytes"][who] = found
    return cases


def _alone(task: str, who: str, options: Options) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", task, who]
    done = subprocess.run(
        command + ["--quick"] * options.quick,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    ended = {"error": f"its process ended with code {done.returncode}"}
    return json.loads(done.stdout) if done.stdout else ended


def main(task: str, who: str, *flags: str) -> None:
    """Be that process."""
    try:
        print(json.dumps(peak(TASKS[task][who], QUICK if "--quick" in flags else FULL)))
    except Exception as error:  # a peer that is not there is a result too
        print(json.dumps(told(error)))


if __name__ == "__main__":
    main(*sys.argv[1:])
