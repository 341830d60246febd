"""Ten million objects within two gigabytes: fit and apply by the command line, confined by the system.

`python -m benchmarks.beyond bare FOLDER CLASSES` is the process that does the bare reading, writing and
multiplying of the same bytes, as confined as the others.
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
from hubless.large.sampling import PAIRS, Sample
from hubless.large.top import top_of_all, top_of_block, winners_of

from .beyond_data import TELLING, Made, make, objects, zipf
from .record import Options

ROOT = Path(__file__).parent.parent
CGROUPS = (  # where a limit is set and the peak is read, of the two versions of control groups
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    ("/sys/fs/cgroup", "memory.max", "memory.peak"),
)
ROWS = 1 << 17  # rows read at once


class Shape(NamedTuple):
    """How much there is, and how much may be used."""

    n: int
    d: int
    classes: int
    limit: int  # bytes that the system allows
    memory: str  # what `hubless fit` is told
    queries: int


FULL = Shape(10_000_000, 128, 1000, 2_000_000_000, "1.5GB", 1000)
QUICK = Shape(30_000, 16, 40, 1_500_000_000, "1GB", 100)


@contextmanager
def confinement(limit: int) -> Iterator[tuple[Any, Any, str]]:
    """What confines a child, what tells its peak, and how: by a control group, or by a limit on its data."""
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
        told = ["--items", str(made.labels), "--labels", "label", "--mover", "ridge", "--json"]
        fit = ["hubless", "fit", str(made.vectors), *told, "--memory", shape.memory, "-o", model]
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
    """How much of the directions that tell classes apart W keeps, and of the others."""
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
            here = top_of_block(queries, np.array(vectors[part]), np.array(labels[part]), start, k)
            best = here if best is None else top_of_all([best, here])
        votes = winners_of(best, np.arange(shape.classes), None)
        found[name] = float((votes == truth).mean())
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
    return {"seconds": {**clock, "search": _search_products(sizes, X)}, "comparisons": _comparisons(sizes, d)}


def _comparisons(sizes: np.ndarray, d: int) -> int:
    sample = Sample.of(sizes, PAIRS * d, 1, 0)
    return int((sample.sizes * sample.counts).sum())


def _search_products(sizes: np.ndarray, X: np.ndarray) -> float:
    """Seconds of the products of the sampled sources with all objects of their class, from rows at hand."""
    sample, took = Sample.of(sizes, PAIRS * X.shape[1], 1, 0), 0.0
    for size, count in zip(sample.sizes.tolist(), sample.counts.tolist(), strict=True):
        sources = X[: max(1, count)]
        for start in range(0, size, len(X)):
            started = perf_counter()
            np.matmul(sources, X[: min(len(X), size - start)].T)
            took += perf_counter() - started
    return took


if __name__ == "__main__":
    print(json.dumps(bare(Path(sys.argv[2]), int(sys.argv[3]))))
