"""Learning from a log of queries and moving all objects, beside the bare product of the two.

Goal: HoldHubs and NNN within 3 times the product, in bounded memory.
"""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np

from hubless.arrays.devices import device_name, place, synchronize
from hubless.corrections import CORRECTIONS

from .markdown import grid
from .memory import forget_peak, status
from .record import Options
from .timing import Contender, race, ratio

FULL, QUICK = (100_000, 5_000, 384), (600, 80, 16)  # objects, queries, columns
NAMES = ("HoldHubs", "NNN", "InvertedSoftmax", "Sinkhorn")
METRICS = ("cosine", "l2", "ip")
ROWS = 8192  # objects of one product
BARE = "bare product"


def unit_rows(n: int, d: int, seed: int) -> np.ndarray:
    """Return vectors of length 1 about a common direction, in float32."""
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(0).standard_normal((40, d))
    X = (rng.standard_normal((n, 40)) @ basis + 2 * rng.standard_normal((n, d)) + 1).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def bare_product(queries: Any, objects: Any) -> Contender:
    """The product that any correction by the whole log needs, thrown away block by block."""

    def multiply() -> None:
        for start in range(0, objects.shape[0], ROWS):
            objects[start : start + ROWS] @ queries.T
        synchronize(objects)

    return multiply


def learn_and_move(name: str, metric: str, queries: Any, objects: Any) -> Contender:
    """Fit a correction and move all objects."""

    def run() -> None:
        CORRECTIONS[name](metric=metric).fit(queries, objects).move(objects)
        synchronize(objects)

    return run


def peak_bytes(run: Contender, objects: Any) -> int:
    """Return the bytes that a run holds at its peak beyond what was there before it."""
    if isinstance(objects, np.ndarray):
        forget_peak()
        before = status("VmRSS")
        run()
        return status("VmHWM") - before
    import torch

    if not objects.is_cuda:
        return 0  # torch does not count those of the processor
    torch.cuda.reset_peak_memory_stats(objects.device)
    held = torch.cuda.memory_allocated(objects.device)
    run()
    return int(torch.cuda.max_memory_allocated(objects.device) - held)


def measure(options: Options, device: str = "cpu") -> dict[str, Any]:
    """Measure seconds, their ratio to the bare product, and peak memory, by metric."""
    n, m, d = QUICK if options.quick else FULL
    queries, objects = (place(unit_rows(rows, d, seed), device) for seed, rows in ((1, m), (2, n)))
    cases: dict[str, Any] = {}
    for metric in METRICS:
        contenders: dict[str, Callable[[], Any]] = {BARE: bare_product(queries, objects)}
        contenders |= {name: learn_and_move(name, metric, queries, objects) for name in NAMES}
        seconds = race(contenders, options.repeats, title=f"log-speed {metric}", pause=options.pause)
        cases[metric] = {
            "settings": {
                "objects": n,
                "queries": m,
                "d": d,
                "dtype": "float32",
                "device": device_name(device),
            },
            "reference": BARE,
            "seconds": seconds,
            "ratio": {name: ratio(seconds, name, BARE) for name in NAMES if isinstance(seconds[name], list)},
            "peak bytes": {name: peak_bytes(contenders[name], objects) for name in NAMES},
            "input bytes": 4 * (n + m) * d,
        }
    return cases


# --- a section of docs/log-results.md -----------------------------------------------------------------------


WORDS = """\
Learning a correction from {queries:,} logged queries and moving {objects:,} objects of {d} columns, in \
float32, as multiples of the bare product of the log and the objects, with quartiles over rounds side by \
side; then the most memory that it takes beyond its input. The goal is at most 3 for `HoldHubs` and `NNN`. \
On a GPU the product takes a few milliseconds; the exact search of the log among the objects, which \
`HoldHubs` needs, takes several times that.
"""


def section(raw: Mapping[str, Any]) -> list[str]:
    """Return the lines of a section: a row for each device and metric."""
    rows, words = [], ""
    for result in raw.values():
        for metric, case in result["cases"].items():
            words = WORDS.format(**case["settings"])
            product = f"{1000 * median(case['seconds'][BARE]):,.0f} ms"
            cells = [_cell(case, name) for name in NAMES]
            rows.append([f"{case['settings']['device']}, {metric}", product, *cells])
    head = ["", BARE, *(f"`{name}`" for name in NAMES)]
    return ["## Speed\n", words, *grid(head, rows), ""] if rows else []


def _cell(case: Mapping[str, Any], name: str) -> str:
    middle, low, high = case["ratio"][name]
    return f"{middle:.2f} ({low:.2f} to {high:.2f}); {case['peak bytes'][name] / 1e6:,.0f} MB"
