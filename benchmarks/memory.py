"""Peak memory beyond input and output, each measured in a separate process."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hubless import MoveLabeledClassifier

from .data import clustered, evenly
from .processes import measure_apart, print_steps
from .record import Options
from .timing import Contender

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


def hubless_fit(data: Inputs) -> Contender:
    def fit() -> tuple[np.ndarray, ...]:
        model = MoveLabeledClassifier().fit(data.objects, data.y)
        return model.moved_, model.W_, model.codes_

    return fit


def hubless_predict(data: Inputs) -> Contender:
    model = MoveLabeledClassifier(NEIGHBORS).fit(data.objects, data.y)
    return lambda: model.predict(data.queries)


def hubless_neighbors(data: Inputs) -> Contender:
    model = MoveLabeledClassifier(NEIGHBORS).fit(data.objects, data.y)
    return lambda: model.kneighbors(data.queries)


def sklearn_model(data: Inputs) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(NEIGHBORS, algorithm="brute").fit(data.objects, data.y)


def sklearn_predict(data: Inputs) -> Contender:
    model = sklearn_model(data)
    return lambda: model.predict(data.queries)


def sklearn_neighbors(data: Inputs) -> Contender:
    model = sklearn_model(data)
    return lambda: model.kneighbors(data.queries)


def faiss_neighbors(data: Inputs) -> Contender:
    import faiss

    index = faiss.IndexFlatL2(data.objects.shape[1])
    index.add(data.objects)  # its copy is not counted
    return lambda: index.search(data.queries, NEIGHBORS)


TASKS: dict[str, dict[str, Callable[[Inputs], Contender]]] = {
    "predict": {"hubless": hubless_predict, "scikit-learn brute": sklearn_predict},
    "kneighbors": {
        "hubless": hubless_neighbors,
        "scikit-learn brute": sklearn_neighbors,
        "faiss IndexFlatL2": faiss_neighbors,
    },
    "fit": {"hubless": hubless_fit},
}


def status(field: str) -> int:
    """Return VmRSS or VmHWM of this process, in bytes; getrusage's would begin with the parent's peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def forget_peak() -> None:
    """Reset VmHWM, after free memory was given back to the system: reused, it would not be counted."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def peak(build: Callable[[Inputs], Contender], shape: tuple[int, int, int]) -> dict[str, int]:
    """Measure the bytes of input and output, resident before, and at the peak."""
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
    """Measure the bytes of every task, once each."""
    shape = dict(zip(("queries", "objects", "d"), QUICK if options.quick else FULL, strict=True))
    settings = {**shape, "dtype": "float32", "k": NEIGHBORS, "classes": CLASSES}
    jobs = [(task, who) for task in TASKS for who in TASKS[task]]
    cases: dict[str, Any] = {task: {"settings": settings, "bytes": {}} for task in TASKS}
    for (task, who), result in zip(jobs, measure_apart("memory", jobs, options), strict=True):
        cases[task]["bytes"][who] = result
    return cases


def steps(task: str, who: str, *flags: str) -> Iterator[dict[str, int]]:
    """Measure one task."""
    yield peak(TASKS[task][who], QUICK if "--quick" in flags else FULL)


if __name__ == "__main__":
    print_steps(steps(*sys.argv[1:]))
