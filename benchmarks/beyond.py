"""Ten million objects within two gigabytes: fit and apply by the command line, in limited processes.

`python -m benchmarks.beyond bare FOLDER CLASSES` is the process that does the bare reading, writing and
multiplying of the same bytes, within the same limit.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from resource import RLIMIT_DATA, setrlimit
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hubless import load
from hubless.neighbors.blocks import nearest_in_block, nearest_of_blocks
from hubless.neighbors.knn import vote
from hubless.outofcore.sampling import n_sources

from .beyond_data import TELLING, Made, make, objects, zipf
from .record import Options

ROOT = Path(__file__).parent.parent
CGROUPS = (  # where a limit is set and the peak is read, of the two versions of control groups
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    ("/sys/fs/cgroup", "memory.max", "memory.peak"),
)
ROWS = 1 << 17  # rows read at once
SOURCES = 1 << 9  # sources that are multiplied at once


class Shape(NamedTuple):
    """How much there is, and how much may be used."""

    n: int
    d: int
    classes: int
    limit: int  # bytes that the system allows
    memory: str  # option --memory of `hubless fit`
    queries: int


FULL = Shape(10_000_000, 128, 1000, 2_000_000_000, "1.5GB", 1000)
QUICK = Shape(30_000, 16, 40, 1_500_000_000, "1GB", 100)


@contextmanager
def confinement(limit: int) -> Iterator[tuple[Any, Any, str]]:
    """Give what limits a child process, what returns its peak, and the kind of limit."""
    for root, limits, peak in CGROUPS:
        group = Path(root) / f"hubless-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            (group / limits).write_text(str(limit))
            try:
                yield (
                    lambda group=group: (group / "cgroup.procs").write_text(str(os.getpid())),
                    lambda group=group, peak=peak: int((group / peak).read_text()),
                    f"control group, {limits}",
                )
            finally:
                with suppress(OSError):
                    group.rmdir()
            return
    yield (lambda: setrlimit(RLIMIT_DATA, (limit, limit))), (lambda: None), "RLIMIT_DATA"


def confined(command: list[str], limit: int) -> dict[str, Any]:
    """Run a command within a limit on its memory; what it took, and what it printed."""
    with confinement(limit) as (confine, group_peak, by):
        started = perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=confine, text=True, cwd=ROOT)
        printed = child.stdout.read() if child.stdout else ""
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return {
            "seconds": perf_counter() - started,
            "processor seconds": used.ru_utime + used.ru_stime,
            "peak resident bytes": used.ru_maxrss * 1024,
            "peak bytes of the group, cached files included": group_peak(),
            "limit": limit,
            "by": by,
            "code": child.returncode,
            "printed": printed,
        }


def measure(options: Options) -> dict[str, Any]:
    """Seconds and bytes of fit, apply and the bare work; and what moving does to queries."""
    shape = QUICK if options.quick else FULL
    with TemporaryDirectory(prefix="hubless-beyond-") as folder:
        made = make(Path(folder), shape.n, shape.d, shape.classes)
        python, model, moved = [sys.executable, "-m"], f"{folder}/model", f"{folder}/moved.npy"
        labels = ["--items", str(made.labels), "--labels", "label", "--mover", "ridge", "--json"]
        fit = ["hubless", "fit", str(made.vectors), *labels, "--memory", shape.memory, "-o", model]
        apply = ["hubless", "apply", model, str(made.vectors), "-o", moved, "--json"]
        runs = {
            name: confined(python + command, shape.limit)
            for name, command in (
                ("fit", fit),
                ("apply", apply),
                ("bare", ["benchmarks.beyond", "bare", folder, str(shape.classes)]),
            )
        }
        bare = json.loads(runs["bare"].pop("printed"))
        learned = json.loads(runs["fit"].pop("printed"))["learned"]
        runs["apply"].pop("printed")
        case = {
            "settings": {**shape._asdict(), "bytes": made.vectors.stat().st_size, "pairs": learned["pairs"]},
            "runs": runs,
            "bare": bare,
            "kept": kept(model, shape),
            "accuracy": accuracy(made, Path(moved), shape),
        }
    return {"streaming": case}


def kept(model: str, shape: Shape) -> dict[str, float]:
    """Return the mean factor of W along directions that separate classes, and along the others."""
    diagonal = np.diag(load(model).mover.W_)
    telling = min(TELLING, shape.d // 2)
    return {"telling": float(diagonal[:telling].mean()), "others": float(diagonal[telling:].mean())}


def accuracy(made: Made, moved: Path, shape: Shape, k: int = 10) -> dict[str, float]:
    """Share of new objects whose class the 10 nearest vote for, before and after; by exact search."""
    rng = np.random.default_rng(99)
    truth = rng.choice(shape.classes, shape.queries, p=zipf(shape.classes))
    queries = objects(rng, truth, shape.d, shape.classes)
    labels = np.load(made.labels, mmap_mode="r")
    found = {}
    for name, file in (("before", made.vectors), ("after", moved)):
        vectors, best = np.load(file, mmap_mode="r"), None
        for start in range(0, shape.n, ROWS):
            part = slice(start, min(start + ROWS, shape.n))
            near = nearest_in_block(queries, np.array(vectors[part]), np.array(labels[part]), start, k)
            best = near if best is None else nearest_of_blocks([best, near])
        found[name] = float((vote(best.codes) == truth).mean())
    return found


# --- the bare work -----------------------------------------------------------------------------------------


def bare(folder: Path, n_classes: int) -> dict[str, Any]:
    """Seconds to read, write and multiply what fit and apply read, write and multiply, once each."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    sizes = np.bincount(np.load(folder / "labels.npy"), minlength=n_classes)
    (n, d), offset, dtype = vectors.shape, vectors.offset, vectors.dtype
    W, clock = np.eye(d, dtype=dtype), dict.fromkeys(("read", "write", "move"), 0.0)
    with (folder / "bare.bin").open("wb") as copy:
        for start in range(0, n, ROWS):
            rows = min(ROWS, n - start)
            times = [perf_counter()]
            place = offset + start * d * dtype.itemsize
            X = np.fromfile(folder / "vectors.npy", dtype, rows * d, offset=place).reshape(rows, d)
            times.append(perf_counter())
            moved = X @ W
            times.append(perf_counter())
            copy.write(moved.data)
            times.append(perf_counter())
            for name, took in zip(("read", "move", "write"), np.diff(times), strict=True):
                clock[name] += float(took)
        started = perf_counter()
        os.fsync(copy.fileno())
        clock["write"] += perf_counter() - started
    (folder / "bare.bin").unlink()
    comparisons = int((sizes * _sources(sizes, d)).sum())
    return {"seconds": {**clock, "search": _search_products(sizes, X)}, "comparisons": comparisons}


def _sources(sizes: np.ndarray, d: int) -> np.ndarray:
    """How many objects of each class are sources, about; at least one."""
    share = n_sources(sizes, d, 1, "auto") / sizes.sum()
    return np.maximum(1, np.round(share * sizes)).astype(np.int64)


def _search_products(sizes: np.ndarray, X: np.ndarray) -> float:
    """Seconds of the products of the sources with all objects of their class, from rows at hand."""
    took = 0.0
    for size, count in zip(sizes.tolist(), _sources(sizes, X.shape[1]).tolist(), strict=True):
        for first in range(0, count, SOURCES):
            sources = X[: min(SOURCES, count - first)]
            for start in range(0, size, len(X)):
                started = perf_counter()
                np.matmul(sources, X[: min(len(X), size - start)].T)
                took += perf_counter() - started
    return took


if __name__ == "__main__":
    print(json.dumps(bare(Path(sys.argv[2]), int(sys.argv[3]))))
