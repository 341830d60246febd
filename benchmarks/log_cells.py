"""Corrections from a log of queries: every method with every bank, one raw result each.

A cell is a data set, a method, the size and the kind of the bank, and a draw of it. The test queries of a
cell are answered once, with the setting that the validation queries chose.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_info

from hubless.evaluation import measure_change
from hubless.hubness import measure_hubness
from hubless.paper.raw import this_machine
from hubless.support.progress import step

from .curve_cells import Cells
from .log_data import LOADERS, Asked, LogTask, largest, load
from .log_methods import METHODS, PLAIN, QUERY_SIDE, Ranked, plain_change, rank

FOLDER = Path(__file__).parent / "results" / "log"
SIZES = (100, 1000, 5000)
DRAWS = 3  # of a bank that is not all there is
ALL, NO_BANK = "all", "none"
KINDS = ("own", "foreign")


class LogKey(NamedTuple):
    """Which cell it is."""

    dataset: str
    method: str
    bank: str  # "own", "foreign" or "none"
    size: str  # logged queries, or "all"
    draw: int


def plan(dataset: str, task: LogTask, quick: bool = False, draws: int = DRAWS) -> list[LogKey]:
    """Return the cells of a data set: those without a bank, then small banks first."""
    keys = [LogKey(dataset, PLAIN, NO_BANK, "0", 0)]
    keys += [LogKey(dataset, QUERY_SIDE, NO_BANK, "0", 0)] if task.query_side else []
    for kind in KINDS:
        sizes = [size for size in (() if quick else SIZES) if size < len(task.banks[kind])]
        banks = [(str(size), draw) for size in sizes for draw in range(draws)]
        keys += [LogKey(dataset, method, kind, *bank) for bank in [*banks, (ALL, 0)] for method in METHODS]
    return keys


def bank_of(key: LogKey, task: LogTask) -> np.ndarray:
    """Return the logged queries of a cell, the same for every method."""
    bank = task.banks[key.bank]
    if key.size == ALL:
        return bank
    rng = np.random.default_rng([key.draw, int(key.size)])
    return bank[np.sort(rng.choice(len(bank), int(key.size), replace=False))]


def run(datasets: list[str], folder: Path, quick: bool = False, draws: int = DRAWS) -> dict[str, Cells]:
    """Measure the cells that are missing or failed, and save each at once in the file of its data set."""
    if unknown := [name for name in datasets if name not in LOADERS]:
        raise ValueError(f"data sets are {', '.join(LOADERS)}; got {unknown[0]!r}.")
    return {name: _run_one(name, folder, quick, draws) for name in datasets}


def _run_one(dataset: str, folder: Path, quick: bool, draws: int) -> Cells:
    cells, task = cells_of(dataset, folder), load(dataset, quick)
    missing = [
        key for key in plan(dataset, task, quick, draws) if cells.entries.get(key, {}).get("status") != "done"
    ]
    about = {"quick": quick, "device": "cpu", "machine": this_machine()}
    about["threads"] = max((library["num_threads"] for library in threadpool_info()), default=1)
    with step("measuring", len(missing), "cells") as bar:
        for key in missing:
            bar.note = " ".join(map(str, key))
            cells.add(key, _cell(key, task) | about)
            bar.update()
    return cells


def cells_of(dataset: str, folder: Path) -> Cells:
    """Return the cells of a data set that are there."""
    return Cells(folder, LogKey, f"{dataset}.jsonl")


def _cell(key: LogKey, task: LogTask) -> dict[str, Any]:
    try:
        return {"status": "done", **_measure(key, task)}
    except Exception as error:  # a method that cannot answer is a result too
        return {"status": "failed", "error": f"{type(error).__name__}: {error}"}


def _measure(key: LogKey, task: LogTask) -> dict[str, Any]:
    entry: dict[str, Any] = {"n_objects": len(task.test.objects), "n_queries": len(task.test.queries)}
    if key.method == PLAIN:
        sizes = {"n_validation": len(task.validation.queries)}
        banks = {f"n_{kind}": len(bank) for kind, bank in task.banks.items()}
        return entry | sizes | banks | {"about": dict(task.about)} | figures_of(task.test, task.test.plain)
    if key.method == QUERY_SIDE:
        assert task.query_side is not None
        return entry | figures_of(task.test, task.query_side.plain)
    bank = bank_of(key, task)
    ranked = rank(key.method, bank, task)
    seconds = {"choose": ranked.choosing, "learn": ranked.seconds}
    entry |= {"n_bank": len(bank), "setting": ranked.setting, "seconds": seconds}
    entry["validation"] = plain_change(ranked.validation)
    top = largest(ranked.scores)
    return entry | figures_of(task.test, top) | _without_column(task.test, ranked, top)


def figures_of(asked: Asked, top: np.ndarray) -> dict[str, Any]:
    """Return every figure before and after, with the interval of its change, and the skewness of N10."""
    n = len(asked.objects)
    before, after = asked.measure(asked.plain), asked.measure(top)
    return {
        "figures": [asdict(measure_change(name, "all", before[name], after[name])) for name in before],
        "skewness": [float(measure_hubness(answers, n).skewness) for answers in (asked.plain, top)],
    }


def _without_column(asked: Asked, ranked: Ranked, top: np.ndarray) -> dict[str, Any]:
    """Return figures of moved objects and queries as they are, and how many of the answers are the same."""
    if ranked.moved is None:
        return {"no_column": None, "agreement": None}
    found = largest(asked.queries @ ranked.moved.T)
    shared = float((top[:, :, None] == found[:, None, :]).any(axis=2).mean())
    return {"no_column": figures_of(asked, found)["figures"], "agreement": shared}
