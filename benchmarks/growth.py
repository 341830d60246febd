"""How time grows: with the objects, the dimensions and the classes; exponents fitted on logarithms."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from hubless import MoveLabeled, nearest

from .data import Labeled, clustered, evenly
from .record import Options
from .timing import Contender, race

CLASS_SIZE = 50
QUERIES, NEIGHBORS = 1_000, 10

# name: what grows, its sizes, the same for a quick look
CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "fit by n": ("n", (20_000, 40_000, 80_000, 160_000, 320_000), (200, 400, 800)),
    "fit by d": ("d", (128, 256, 512, 1024, 2048), (8, 16, 32)),
    "fit by classes": ("classes", (10, 100, 1_000, 5_000), (5, 20, 80)),
    "nearest by n": ("n", (5_000, 10_000, 20_000, 40_000, 80_000), (400, 800, 1600)),
}


def fit(data: Labeled) -> Contender:
    """Return a fit of the data."""
    return lambda: MoveLabeled().fit(data.X, data.y)


def search(data: Labeled) -> Contender:
    """Return a search of 1,000 queries in the data."""
    queries = clustered(evenly(QUERIES, data.y.max() + 1), data.X.shape[1], seed=1).X
    return lambda: nearest(queries, data.X, min(NEIGHBORS, len(data.y)), return_distance=False)


def contender(name: str, quick: bool, size: int) -> Contender:
    """Return one size of a case; what does not grow is n = 20,000, d = 128 and classes of 50, or tiny."""
    n, d = (400, 16) if quick else (20_000, 128)
    grows = CASES[name][0]
    n, d = (size if grows == "n" else n), (size if grows == "d" else d)
    n_classes = size if grows == "classes" else n // CLASS_SIZE
    build: Callable[[Labeled], Contender] = search if name.startswith("nearest") else fit
    return build(clustered(evenly(n, n_classes), d))


# log t = a + e log n, least squares over all rounds; the variance of e is s² / Σ (log n − mean)²
def exponent(sizes: Iterable[float], seconds: Iterable[float]) -> tuple[float, float]:
    """Return the exponent e of t ~ nᵉ and its standard error; a size is repeated for each of its times."""
    x, y = np.log(list(sizes)), np.log(list(seconds))
    x, y = x - x.mean(), y - y.mean()
    slope = (x @ y) / (x @ x)
    residual = y - slope * x
    return float(slope), float(np.sqrt(residual @ residual / (len(x) - 2) / (x @ x)))


def last_exponent(sizes: list[int], seconds: list[list[float]]) -> float:
    """Return the exponent between the two largest sizes, where fixed costs weigh least."""
    (n, m), (before, after) = sizes[-2:], (np.median(times) for times in seconds[-2:])
    return float(np.log(after / before) / np.log(m / n))


def measure(options: Options) -> dict[str, Any]:
    """Measure the seconds of every size in every case, and their exponents."""
    cases = {}
    for name, (grows, full, few) in CASES.items():
        sizes = list(few if options.quick else full)
        make = partial(contender, name, options.quick)
        contenders = {str(size): make(size) for size in sizes}
        raced = race(contenders, options.repeats, title=name, pause=options.pause)
        seconds = [raced[str(size)] for size in sizes]
        slope, error = exponent(np.repeat(sizes, options.repeats), np.concatenate(seconds))
        cases[name] = {
            "grows": grows,
            "sizes": sizes,
            "seconds": raced,
            "exponent": slope,
            "standard_error": error,
            "last_exponent": last_exponent(sizes, seconds),
        }
    return cases
