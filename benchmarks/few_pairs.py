"""Repairs from few pairs: random draws of SciFact's training pairs, tested with the same test queries."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hubless.repair.judgements import Judgements
from hubless.retrieval import gains, ndcg
from hubless.support.progress import step

from .index_data import Pairs, folder_of, scifact
from .record import Options
from .rivals import NONE, OURS, REFIT, Run, hubless, nudge, stay
from .timing import failure

SIZES = (20, 50, 100)  # pairs of a draw, at least; a query comes with all of its pairs
DRAWS = 12
NUDGE = "NUDGE-N" + REFIT


def measure(options: Options) -> dict[str, Any]:
    """Measure not moving, `hubless fit` and NUDGE-N with few pairs."""
    with folder_of("scifact", options.quick) as folder:
        data = scifact(folder)
    sizes, draws = ((40,), 2) if options.quick else (SIZES, DRAWS)
    cases: dict[str, Any] = {}
    with step("few", len(sizes) * draws, "draws") as bar:
        for size in sizes:
            runs: dict[str, Any] = {name: [] for name in METHODS}
            for draw in range(draws):
                part = data._replace(train=drawn(data.train, size, draw))
                for name, method in METHODS.items():
                    runs[name].append(_scored(method, part, draw))
                bar.update()
            cases[f"{size} pairs"] = {
                "training pairs": size,
                "test queries": len(data.test.queries),
                "methods": runs,
            }
    return cases


def drawn(train: Judgements, size: int, draw: int) -> Judgements:
    """Return queries at random, as many as have `size` pairs together."""
    order = np.random.default_rng([size, draw]).permutation(len(train.queries))
    counts = np.cumsum([len(train.relevant[query]) for query in order])
    return train.take(order[: int(np.searchsorted(counts, size)) + 1])


def _scored(method: Callable[[Pairs, int], Run], data: Pairs, draw: int) -> dict[str, Any]:
    """Return the mean nDCG@10 of all test queries, and of those with seen and with unseen documents."""
    try:
        run = method(data, draw)
    except ImportError as error:  # a peer that is not installed is a result too
        return failure(error)
    relevant = data.test.rows(data.items.places)
    scores, seen = ndcg(gains(run.answers, relevant), relevant), data.seen
    parts = {"all": np.ones_like(seen), "seen": seen, "unseen": ~seen}
    figures = {part: float(scores[mask].mean()) if mask.any() else None for part, mask in parts.items()}
    return {"setting": run.setting, "seconds": run.seconds, "n seen": int(seen.sum()), "nDCG": figures}


METHODS: dict[str, Callable[[Pairs, int], Run]] = {
    NONE: lambda data, draw: stay(data, 1)[NONE].runs[0],
    OURS: lambda data, draw: hubless("cosine", data, [draw])[OURS].runs[0],
    NUDGE: lambda data, draw: nudge("NUDGE-N", data, 1)[NUDGE].runs[0],
}
