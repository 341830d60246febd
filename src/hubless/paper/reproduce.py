"""The harness: every data set × method × split, one small raw file each, resumed where it was stopped.

A cell is chosen, fitted and measured (split-I.json). Its training time is measured once more in a pass of
its own (split-I.time.json), alone on the machine, with what was chosen: cells may run side by side or on
different machines, times may not. A file is written when its work is done, in one step, so a run that is
killed loses no more than the cells it was at.
"""

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from tqdm import tqdm

from .. import datasets
from ..arrays import place, synchronize
from ..download import replacing
from . import published
from .contest import CONTENDERS, measure
from .experiment import METHODS, Split, fitted, run, split_at_random
from .machine import cores, describe
from .results import UNTRAINED

PASSES = ("cells", "times")
REPEATS = 3  # of a fit that takes less than REPEAT_BELOW seconds
REPEAT_BELOW = 10.0


class Cell(NamedTuple):
    """One entry of the tables, before the mean over the splits is taken."""

    dataset: str
    dim: int
    method: str
    split: int

    def path(self, out: Path, of_time: bool = False) -> Path:
        """Where its raw result is."""
        name = f"split-{self.split}.time.json" if of_time else f"split-{self.split}.json"
        return out / self.dataset / f"dim-{self.dim}" / self.method / name


class Options(NamedTuple):
    """What all cells of a run share."""

    out: Path
    data_dir: Path | None = None
    rows: int | None = None  # a random part of each data set, for a quick look
    device: str = "cpu"
    threads: int | None = None  # of each job; None leaves it to the libraries


def plan(names: Iterable[str], methods: Iterable[str], n_splits: int, dim: int) -> list[Cell]:
    """The cells, split by split, so that a stopped run has whole splits."""
    names, methods = list(names), list(methods)
    found = [Cell(d, dim, m, s) for s in range(n_splits) for d in names for m in methods]
    for cell in found:
        if cell.method not in (*METHODS, *CONTENDERS):
            raise ValueError(f"methods are {', '.join((*METHODS, *CONTENDERS))}; got {cell.method!r}.")
        if cell.dataset not in datasets.RECIPES:
            raise ValueError(f"data sets are {', '.join(datasets.RECIPES)}; got {cell.dataset!r}.")
    return found


def reproduce(cells: list[Cell], options: Options, jobs: int = 1, passes: Iterable[str] = PASSES) -> None:
    """Run what is not yet there: first the cells, `jobs` at a time, then their times, one at a time."""
    passes = list(passes)
    _check_device(options.device)
    if "cells" in passes:
        _work(run_cell, [cell for cell in cells if not is_done(cell, options)], options, jobs, "cells")
    if "times" in passes:
        untimed = (*UNTRAINED, *CONTENDERS)  # a contender's time is in its cell
        timed = [cell for cell in cells if cell.method not in untimed and is_done(cell, options)]
        waiting = [cell for cell in timed if not is_done(cell, options, of_time=True)]
        _work(time_cell, waiting, options, 1, "times")


def _check_device(device: str) -> None:
    try:
        place(np.zeros(1), device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(f'device {device!r} cannot be used: {error} Use --device cpu, or "cuda".') from error


def raw_result(path: Path) -> dict[str, Any] | None:
    """A raw result, or None where there is none; what cannot be read was not written here."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and {"rows", "status"} <= set(found) else None


def is_done(cell: Cell, options: Options, of_time: bool = False) -> bool:
    """Whether the raw file is there, no failure, which is worth another try, nor the time of another fit."""
    path = cell.path(options.out, of_time)
    found = raw_result(path)
    if found is None:
        return False
    if found["rows"] != options.rows:
        raise ValueError(
            f"{path} was made with rows={found['rows']}, now rows={options.rows} is asked for: results of "
            "different data would mix. Give another --out, or remove that folder."
        )
    if of_time and found.get("chosen") != (raw_result(cell.path(options.out)) or {}).get("chosen"):
        return False
    return bool(found["status"] == "done")


def outcomes(cells: list[Cell], options: Options) -> list[dict[str, Any]]:
    """The raw results of the cells and of their times, as far as they are there, each with its file."""
    files = [cell.path(options.out, of_time) for of_time in (False, True) for cell in cells]
    return [{"file": str(file), **found} for file in files if (found := raw_result(file)) is not None]


def _work(task: Any, cells: list[Cell], options: Options, jobs: int, name: str) -> None:
    """Run the task on each cell, in this process or in `jobs` others; the bar counts expected cost."""
    total = sum(map(_cost, cells))
    shape = "{l_bar}{bar}| {elapsed} so far, about {remaining} left{postfix}"
    with tqdm(total=total, desc=name, disable=None if cells else True, bar_format=shape) as bar:
        for cell in _finished(task, cells, options, jobs):
            bar.set_postfix_str(f" {cell.dataset} {cell.method} {cell.split}")
            bar.update(_cost(cell))


def _finished(task: Any, cells: list[Cell], options: Options, jobs: int) -> Iterator[Cell]:
    if jobs == 1:
        yield from (task(cell, options) for cell in cells)
        return
    options = options._replace(threads=options.threads or max(1, cores() // jobs))
    waiting = sorted(cells, key=_cost, reverse=True)  # so that no long one runs alone at the end
    done: set[Cell] = set()
    with _pool(jobs) as pool:
        try:
            for finished in as_completed([pool.submit(task, cell, options) for cell in waiting]):
                done.add(finished.result())
                yield finished.result()
        except BrokenProcessPool:  # a job was killed, and took the others with it
            yield from (_alone(task, cell, options) for cell in waiting if cell not in done)
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C, do not begin what was waiting


def _alone(task: Any, cell: Cell, options: Options) -> Cell:
    """One cell in a process of its own, so that one which is killed is known, recorded and left behind."""
    try:
        with _pool(1) as pool:
            return pool.submit(task, cell, options).result()
    except BrokenProcessPool:

        def killed(_: Split) -> dict[str, Any]:
            raise ChildProcessError("its process was killed, perhaps for want of memory")

        return _record(cell, options, killed, of_time=task is time_cell)


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_die_with_parent)


def _die_with_parent() -> None:
    """A job whose parent was killed would work on, unseen, beside the run that resumes."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


# For the estimate of the time left alone: objects, and seconds per 10⁹ numbers n² d on two cores, roughly.
OBJECTS = dict(zip(datasets.NAMES, published.STATISTICS["n_objects"], strict=True))
SECONDS = {"original-metric": 0.1, "lmnn": 10, "itml": 3, "dml-eig": 6, "move-labeled": 1, "move-query": 1}


def _cost(cell: Cell) -> float:
    n = OBJECTS.get(cell.dataset) or 10_000
    return 0.2 + SECONDS.get(cell.method, 10) * (0.7 * n) ** 2 * cell.dim / 1e9


def run_cell(cell: Cell, options: Options) -> Cell:
    """Choose, fit and measure one cell and write what came of it, be it an error."""

    def measured(split: Split) -> dict[str, Any]:
        if cell.method in CONTENDERS:
            return measure(cell.method, split, cell.split)
        result = run(cell.method, split, cell.split)._asdict()
        return {"chosen": {"n_neighbors": result.pop("n_neighbors"), **result.pop("setting")}, **result}

    return _record(cell, options, measured, of_time=False)


def time_cell(cell: Cell, options: Options) -> Cell:
    """Time the fit of one finished cell with what was chosen for it, and write it."""
    chosen = json.loads(cell.path(options.out).read_text(encoding="utf-8"))["chosen"]
    setting = {name: value for name, value in chosen.items() if name != "n_neighbors"}

    def timed(split: Split) -> dict[str, Any]:
        repeats: list[float] = []
        while not repeats or (len(repeats) < REPEATS and repeats[0] < REPEAT_BELOW):
            start = perf_counter()
            fitted(cell.method, setting, split.X, split.y, cell.split)
            synchronize(split.X)
            repeats.append(perf_counter() - start)
        return {"chosen": chosen, "seconds": float(np.median(repeats)), "repeats": repeats}

    return _record(cell, options, timed, of_time=True)


def _record(cell: Cell, options: Options, work: Any, of_time: bool) -> Cell:
    """Do the work under the options' threads and write its result, or its error, in one step."""
    recipe = datasets.RECIPES[cell.dataset]
    entry: dict[str, Any] = {**cell._asdict(), "seed": cell.split, "rows": options.rows}
    entry |= {"title": recipe.title, "kind": recipe.kind, "note": recipe.note}
    try:
        data = loaded(cell.dataset, cell.dim, options.data_dir, options.rows)
        split = split_of(data, cell.split, options.device)
        entry |= _statistics(data, split)
        with threadpool_limits(options.threads):  # of all libraries, which are loaded by now
            entry["threads"] = max((library["num_threads"] for library in threadpool_info()), default=1)
            entry |= {"status": "done", **work(split)}
    except Exception as error:  # one cell that fails is no reason to lose the others
        entry |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    entry |= {"device": options.device, "machine": describe(options.device)}
    path = cell.path(options.out, of_time)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write((json.dumps(entry, indent=1) + "\n").encode())
    return cell


@lru_cache(maxsize=2)
def loaded(name: str, dim: int, data_dir: Path | None, rows: int | None) -> datasets.Dataset:
    """A data set, or a random part of it; kept for the cells that follow."""
    data = datasets.load(name, dim, data_dir)
    if rows is None or rows >= len(data.y):
        return data
    kept = np.sort(np.random.default_rng(0).choice(len(data.y), rows, replace=False))
    present, y = np.unique(data.y[kept], return_inverse=True)
    return data._replace(X=data.X[kept], y=y, classes=tuple(data.classes[i] for i in present))


def split_of(data: datasets.Dataset, seed: int, device: str = "cpu") -> Split:
    """`split_at_random` of a data set, on a device."""
    return Split(*(place(part, device) for part in split_at_random(data.X, data.y, seed, data.standardize)))


def _statistics(data: datasets.Dataset, split: Split) -> dict[str, Any]:
    return {
        "n_objects": len(data.y),
        "n_classes": int(data.y.max()) + 1,
        "n_features": data.X.shape[1],
        "original_dimension": data.original_dimension,
        "n_train": split.X.shape[0],
        "n_test": split.queries.shape[0],
    }
