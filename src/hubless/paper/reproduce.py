"""The harness: every data set × method × split, one small raw file each; an interrupted run resumes.

A method is a function of a split and a seed that returns the fields of its raw result, so others can be added
from outside. The training time of the paper's methods is measured again in a second pass, with what was
chosen: cells may run in parallel or on different machines, times may not.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from ..arrays.devices import place
from ..support.outputs import check_output
from ..support.progress import step
from . import datasets, names, raw
from .experiment import MEASURES, METHODS, Measure, Split, fitted, run_seconds, split_at_random
from .published import TABLES
from .raw import Cell, cores, this_machine


class Options(NamedTuple):
    """What all cells of a run share."""

    out: Path
    data_dir: Path | None = None
    rows: int | None = None  # a random part of each data set, for a quick look
    device: str = "cpu"
    threads: int | None = None  # of each job; None leaves it to the libraries
    measures: Mapping[str, Measure] = MEASURES  # methods by name; jobs in other processes must find them


def plan(
    datasets: Iterable[str],
    methods: Iterable[str],
    n_splits: int,
    dim: int,
    known: Iterable[str] = MEASURES,
) -> list[Cell]:
    """Return the cells, split by split, so that a stopped run has whole splits."""
    datasets, methods, known = list(datasets), list(methods), list(known)
    cells = [Cell(d, dim, m, s) for s in range(n_splits) for d in datasets for m in methods]
    for cell in cells:
        if cell.method not in known:
            raise ValueError(f"methods are {', '.join(known)}; got {cell.method!r}.")
        if cell.dataset not in names.DATASETS:
            raise ValueError(f"data sets are {', '.join(names.DATASETS)}; got {cell.dataset!r}.")
    return cells


def reproduce(
    cells: list[Cell], options: Options, jobs: int = 1, passes: Iterable[str] = names.PASSES
) -> None:
    """Run what is missing: first the cells, `jobs` at a time, then their times, one at a time."""
    passes = list(passes)
    _check_device(options.device)
    for cell in cells[:1]:
        check_output(options.out / cell.name())
    if "cells" in passes:
        _work(run_cell, [cell for cell in cells if not is_done(cell, options)], options, jobs, "running")
    if "times" in passes:
        trained = METHODS.keys() - names.UNTRAINED  # the others have their times in their cells, or none
        timed = [cell for cell in cells if cell.method in trained and is_done(cell, options)]
        waiting = [cell for cell in timed if not is_done(cell, options, of_time=True)]
        _work(time_cell, waiting, options, 1, "timing")


def _check_device(device: str) -> None:
    try:
        place(np.zeros(1), device)
    except ImportError as error:  # torch is missing
        raise ImportError(f"device {device!r} cannot be used: {error} Or use --device cpu.") from error
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"device {device!r} cannot be used: {error} Use --device cpu or --device cuda."
        ) from error


def is_done(cell: Cell, options: Options, of_time: bool = False) -> bool:
    """Return whether a cell has a raw result; a failure, or the time of another fit, does not count."""
    name = cell.name(of_time)
    entry = raw.load(options.out, name)
    if entry is None:
        return False
    if entry["rows"] != options.rows:
        raise ValueError(
            f"{raw.place(options.out, name)} was made with rows={entry['rows']}, now rows={options.rows} is "
            "requested: results of different data would mix. Give another --out, or remove that folder."
        )
    if of_time and entry.get("chosen") != (raw.load(options.out, cell.name()) or {}).get("chosen"):
        return False
    return bool(entry["status"] == "done")


def outcomes(cells: list[Cell], options: Options) -> list[dict[str, Any]]:
    """Return the raw results of the cells and of their times, as far as there are any, each with its file."""
    results = []
    for name in (cell.name(of_time) for of_time in (False, True) for cell in cells):
        if (entry := raw.load(options.out, name)) is not None:
            results.append({"file": str(raw.place(options.out, name)), **entry})
    return results


def _work(task: Any, cells: list[Cell], options: Options, jobs: int, name: str) -> None:
    """Run the task on each cell, in this process or in `jobs` others; the step counts expected cost."""
    with step(f"{name} {len(cells)} cell{'s' * (len(cells) != 1)}", sum(map(_cost, cells))) as working:
        for cell in _finished(task, cells, options, jobs):
            working.note = f"{cell.dataset} {cell.method} {cell.split}"
            working.update(_cost(cell))


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
            pool.shutdown(cancel_futures=True)  # after Ctrl-C, do not start waiting cells


def _alone(task: Any, cell: Cell, options: Options) -> Cell:
    """Run one cell in a separate process, so that one which is killed is recorded."""
    try:
        with _pool(1) as pool:
            return pool.submit(task, cell, options).result()
    except BrokenProcessPool:

        def killed(_: Split) -> dict[str, Any]:
            raise ChildProcessError("its process was killed, perhaps for lack of memory")

        return _record(cell, options, killed, of_time=task is time_cell)


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start_job)


def _start_job() -> None:
    """Let a job end at once with Ctrl-C, and with its parent: it would continue, unseen, beside the next run.

    An exception at Ctrl-C could come while the job has the lock of the pool's queue, which would then wait
    for ever.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


# Only for the estimate of the time left: seconds per 10⁹ numbers n² d on two cores, roughly.
SECONDS = {
    "original-metric": 0.1,
    "lmnn": 10,
    "itml": 3,
    "dml-eig": 6,
    "move-labeled": 1,
    "move-query": 1,
    "mmc": 1,
}


def _cost(cell: Cell) -> float:
    n = TABLES[1]["n_objects"].get(cell.dataset, 10_000)
    return 0.2 + SECONDS.get(cell.method, 10) * (0.7 * n) ** 2 * cell.dim / 1e9


def run_cell(cell: Cell, options: Options) -> Cell:
    """Choose, fit and measure one cell and write its result or its error."""
    method = options.measures[cell.method]
    return _record(cell, options, lambda split: method(split, cell.split), of_time=False)


def time_cell(cell: Cell, options: Options) -> Cell:
    """Time the fit of one finished cell with what was chosen for it, and write it."""
    chosen = (raw.load(options.out, cell.name()) or {})["chosen"]
    setting = {name: value for name, value in chosen.items() if name != "n_neighbors"}

    def timed(split: Split) -> dict[str, Any]:
        repeats = run_seconds(split, lambda: fitted(cell.method, setting, split.X, split.y, cell.split))
        return {"chosen": chosen, "seconds": float(np.median(repeats)), "repeats": repeats}

    return _record(cell, options, timed, of_time=True)


def _record(cell: Cell, options: Options, work: Any, of_time: bool) -> Cell:
    """Do the work with the threads of the options and write its result, or its error, in one step."""
    entry: dict[str, Any] = {**cell._asdict(), "seed": cell.split, "rows": options.rows}
    entry |= {"title": names.DATASETS[cell.dataset], "kind": names.KIND_OF[cell.dataset]}
    entry["note"] = datasets.RECIPES[cell.dataset].note
    try:
        data = loaded(cell.dataset, cell.dim, options.data_dir, options.rows)
        split = split_of(data, cell.split, options.device)
        entry |= _statistics(data, split)
        with threadpool_limits(options.threads):  # of all libraries, which are loaded by now
            entry["threads"] = max((library["num_threads"] for library in threadpool_info()), default=1)
            entry |= {"status": "done", **work(split)}
    except Exception as error:  # one cell that fails is no reason to lose the others
        entry |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    entry |= {"device": options.device, "machine": this_machine(options.device)}
    raw.save(options.out, cell.name(of_time), entry)
    return cell


@lru_cache(maxsize=2)
def loaded(name: str, dim: int, data_dir: Path | None, rows: int | None) -> datasets.Dataset:
    """Return a data set, or a random part of it; kept for the cells that follow."""
    data = datasets.load(name, dim, data_dir)
    if rows is None or rows >= len(data.y):
        return data
    kept = np.sort(np.random.default_rng(0).choice(len(data.y), rows, replace=False))
    present, y = np.unique(data.y[kept], return_inverse=True)
    return data._replace(X=data.X[kept], y=y, classes=tuple(data.classes[i] for i in present))


def split_of(data: datasets.Dataset, seed: int, device: str = "cpu") -> Split:
    """Split a data set at random, on a device."""
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
