"""docs/scale.md: a plan for a billion vectors, made from what was measured here and from nothing else."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hubless.distributed.learn import BIN
from hubless.download import replacing
from hubless.large.plan import pack
from hubless.large.sampling import PAIRS, Sample

from .claims import MISSING, is_quick, shown
from .page import DOCS, QUICK
from .record import Found
from .skew import zipf_sizes
from .tables import grid
from .timing import is_timed, ratio

FOLDER = Path(__file__).parent / "results" / "scale"
PEERS = ("scikit-learn", "dask", "distributed", "pandas", "pyarrow")
PASSES = 4  # over the bytes, by `hubless fit`
N, D, CLASSES = 1_000_000_000, 768, 1000
OPENING = """\
# A billion vectors

What fitting and moving {n:,} vectors of {d} columns takes: bytes, operations, shuffles and machine-hours, \
and what dominates. The rates are those measured on one small machine, told below; the rest is arithmetic. \
Raw results are in `benchmarks/results/scale`, and one command measures them again:

    python -m benchmarks scale        # ten million vectors: needs room for 15 GB of files
    python -m benchmarks scale-page   # makes this page

How to do it is told in [more data than memory](large.md).
"""
BEYOND = """\
{n:,} × {d} numbers of float32 ({gigabytes:.1f} GB) with {classes:,} classes of Zipf's sizes, written by \
`benchmarks/beyond_data.py`: {telling}. `hubless fit vectors.npy --items labels.npy --labels label --mover \
ridge --memory {memory}` and `hubless apply` run in processes that the system confines to {limit:.1f} GB \
({by}); cached files count in it, and are given up when it is full. The bare work beside them reads the \
bytes once, writes them once, and does the two matrix products, confined in the same way:"""
STRUCTURE = "24 directions tell the classes apart, and louder ones do not"
WORKERS = """\
{n:,} × {d} numbers in {classes} classes, all pairs, objects held by the workers, one thread each; rounds \
with one worker and with two take turns. The search inside classes is what a fit of all pairs spends its \
time with:"""
SKEW = """\
Not measured but computed: sizes follow Zipf's law n_c ∝ c^(−s), tasks are those that \
`hubless.large.plan.pack` makes, and each goes to the worker that is free first, of {workers}. *A class a \
task* is what grouping by class alone would do: its busiest worker has the largest class, and all others \
wait. Work counts comparisons of a source with an object:"""


class Rates(NamedTuple):
    """What one core or one disk did here, per second."""

    read: float  # bytes
    write: float
    look: float  # bytes, by a core: all that fit computes in a pass
    shuffle: float  # bytes, by a worker
    search: float  # comparisons of an object with another, times columns, by a core
    move: float  # operations, by a core


class Step(NamedTuple):
    """What a step costs."""

    name: str
    read: float  # bytes
    written: float
    shuffles: int
    operations: float
    core_seconds: float


def rates(found: Mapping[str, Found]) -> Rates | None:
    """Rates from the raw results; None where one is missing."""
    if not {"beyond", "workers"} <= found.keys():
        return None
    case, search = found["beyond"]["cases"]["streaming"], found["workers"]["cases"]["search"]
    seconds, settings = case["bare"]["seconds"], case["settings"]
    cores = found["beyond"]["machine"]["cores"]
    if not is_timed(search["seconds"], "1 worker", "shuffle, 1 worker"):
        return None
    one = median(search["seconds"]["1 worker"])
    return Rates(
        settings["bytes"] / seconds["read"],
        settings["bytes"] / seconds["write"],
        PASSES * settings["bytes"] / case["runs"]["fit"]["processor seconds"],
        search["bytes"] / median(search["seconds"]["shuffle, 1 worker"]),
        search["comparisons"] * search["settings"]["d"] / one,
        2 * settings["n"] * settings["d"] ** 2 / seconds["move"] / cores,
    )


def markdown(found: Mapping[str, Found]) -> str:
    """The whole page."""
    lines = [OPENING.format(n=N, d=D)]
    for title, verb, section in (
        ("The plan", "", _plan),
        ("Ten million within two gigabytes", "beyond", _beyond),
        ("Two workers", "workers", _workers),
        ("Classes of very different sizes", "skew", _skew),
        ("Machine", "", _machine),
    ):
        lines.append(f"## {title}\n")
        if verb and verb not in found:
            lines.append(f"{MISSING.capitalize()}.\n")
            continue
        lines += [QUICK] if verb and is_quick(found[verb]) else []
        lines += [*section(found), ""]
    return "\n".join(lines).rstrip() + "\n"


def _plan(found: Mapping[str, Found]) -> list[str]:
    own = rates(found)
    if own is None:
        return [f"{MISSING.capitalize()}."]
    size = 4 * N * D
    sizes = zipf_sizes(N, CLASSES, 1.0)
    sample = Sample.of(sizes, PAIRS * D, 1, 0)
    bins = pack(sizes, sample.counts, BIN // (4 * D))
    comparisons = float((sample.sizes * sample.counts).sum())
    every = float((sizes.astype(float) ** 2).sum())
    search, moments, move = 2 * comparisons * D, (4 * PAIRS + 10) * D**3, 2 * N * D**2
    steps = [
        Step("look: classes, mean, bad parts", size, 0, 0, 0.0, size / own.look),
        Step("sample, to choose on", size, 0, 0, 0.0, size / own.look),
        Step("shuffle by class", 2 * size, 0, 1, 0.0, size / own.shuffle),
        Step("search inside classes, sampled", 0, 0, 0, search, search / 2 / own.search),
        Step("moments and solving", 0, 0, 0, moments, moments / own.move),
        Step("move", size, size, 0, move, move / own.move),
    ]
    disk = [step.read / own.read + step.written / own.write for step in steps]
    rows = [
        [step.name, _tera(step.read), _tera(step.written), str(step.shuffles), f"{step.operations:.1e}",
         f"{took / 3600:.1f}", f"{step.core_seconds / 3600:.1f}"]
        for step, took in zip(steps, disk, strict=True)
    ]  # fmt: skip
    cores, disks = sum(step.core_seconds for step in steps) / 3600, sum(disk) / 3600
    rows.append(["in all", *(_tera(sum(step[i] for step in steps)) for i in (1, 2)), "1", "",
                 f"**{disks:.1f}**", f"**{cores:.1f}**"])  # fmt: skip
    largest = max(steps, key=lambda step: step.core_seconds)
    return [
        f"{N:,} × {D} of float32 are {size / 1e12:.2f} TB; {CLASSES:,} classes of Zipf's sizes (s = 1), the "
        f"largest of {sizes.max():,} objects. {PAIRS} pairs per column are {PAIRS * D:,} sources, "
        f"{PAIRS * D * D * 4 / 1e6:.0f} MB of them; every class has one or more. Dask reads the files to "
        "look, to draw a sample, to count the classes that are cut and to sort into bins (the last two are "
        "in the shuffle). Disk-hours and core-hours are those of this machine, at the rates below, and add "
        "up where one does not wait for the other:",
        "",
        *grid(
            ["step", "read", "written", "shuffles", "operations", "disk-hours", "core-hours"],
            rows,
        ),
        "",
        *grid(
            ["rate, measured here", ""],
            [
                ["read, the disk or its cache", f"{own.read / 1e9:.2f} GB/s"],
                ["written, and on the disk", f"{own.write / 1e9:.2f} GB/s"],
                ["looked at, a core: `fit` below over its passes", f"{own.look / 1e9:.2f} GB/s"],
                ["shuffled by Dask, a worker of one core", f"{own.shuffle / 1e9:.3f} GB/s"],
                ["compared, a core", f"{2 * own.search / 1e9:.1f} billion operations/s"],
                ["multiplied, a core", f"{own.move / 1e9:.1f} billion operations/s"],
            ],
        ),
        "",
        f"- **{largest.name.capitalize()} dominates**: {largest.core_seconds / 3600 / cores:.0%} of the "
        f"core-hours. 64 machines of 16 such cores and one such disk each would be busy for "
        f"{cores / (64 * 16) * 60:.0f} minutes with computing and {disks / 64 * 60:.0f} with their disks: "
        f"{(cores / (64 * 16) + disks / 64) * 64:.0f} machine-hours. "
        "The network of a cluster has not been tried.",
        f"- Of all pairs instead of a sample, the search alone would be {2 * every * D:.1e} operations, "
        f"{every * D / own.search / 3600:,.0f} core-hours. W has {D**2:,} numbers and does not need them.",
        f"- The plan has {bins.n:,} bins of at most {BIN / 1e6:.0f} MB; a class is cut into "
        f"{int(bins.chunks.max()):,} chunks at most. A task holds about four times its bin.",
        f"- What comes to the client: sums of {2 * D * D * 8 / 1e6:.0f} MB, the classes and their sizes.",
        f"- A sample needs no shuffle in principle: its {PAIRS * D:,} sources could be sent to all blocks "
        "instead. That is not built, since all pairs and the means of classes need the shuffle.",
        "- New objects later cost their own share alone: moments add up (`hubless update`).",
    ]


def _tera(size: float) -> str:
    return f"{size / 1e12:.1f} TB"


def _beyond(found: Mapping[str, Found]) -> list[str]:
    case = found["beyond"]["cases"]["streaming"]
    own, runs, bare = case["settings"], case["runs"], case["bare"]["seconds"]
    told = BEYOND.format(
        **{name: own[name] for name in ("n", "d", "classes", "memory")},
        gigabytes=own["bytes"] / 1e9,
        limit=own["limit"] / 1e9,
        telling=STRUCTURE,
        by=runs["fit"]["by"],
    )
    rows = [
        [name, f"{run['seconds']:.0f}", f"{run['processor seconds']:.0f}", _size(run["peak resident bytes"]),
         _size(run["peak bytes of the group, cached files included"])]
        for name, run in runs.items()
    ]  # fmt: skip
    reads = bare["read"] + bare["write"]
    products = bare["search"] + bare["move"]
    after, ours = case["accuracy"], runs["fit"]["seconds"] + runs["apply"]["seconds"]
    return [
        told,
        "",
        *grid(["", "seconds", "processor seconds", "peak, resident", "peak with cached files"], rows),
        "",
        *grid(["bare, once", "seconds"], [[name, shown(took)] for name, took in bare.items()]),
        "",
        "- Fit reads the bytes four times (a look, a sample to choose λ on, gathering, learning) and writes "
        f"them once; apply reads and writes them once. Together they took {ours / (reads + products):.1f} "
        "times the bare work done once.",
        f"- It learned from {own['pairs']:,} pairs. W keeps {case['kept']['telling']:.2f} of the directions "
        f"that tell classes apart and {case['kept']['others']:.2f} of the others (means of its diagonal).",
        f"- Of {own['queries']:,} new objects, the 10 nearest of all {own['n']:,} voted for the right class "
        f"in {after['before']:.1%} before and in {after['after']:.1%} after, by exact search.",
    ]


def _size(size: int | None) -> str:
    return "—" if size is None else f"{size / 1e9:.2f} GB"


def _workers(found: Mapping[str, Found]) -> list[str]:
    case = found["workers"]["cases"]["search"]
    seconds = case["seconds"]
    rows = [[name, shown(median(took))] for name, took in seconds.items() if isinstance(took, list)]
    lines = [WORKERS.format(**case["settings"]), "", *grid(["", "median seconds"], rows), ""]
    if is_timed(seconds, "1 worker", "2 workers"):
        middle, low, high = ratio(seconds, "1 worker", "2 workers")
        lines.append(
            f"Two workers are {middle:.2f} times as fast as one (quartiles {low:.2f} to {high:.2f}); 1.6 was "
            "asked. Their sums differ from those of one process by at most "
            f"{case['largest difference of the sums, relative']:.0e} of the largest."
        )
    return lines


def _skew(found: Mapping[str, Found]) -> list[str]:
    case = found["skew"]["cases"]["zipf"]
    most = max(row["workers"] for row in case["rows"])
    rows = [
        [
            f"{row['classes']:,}",
            f"{row['exponent']:g}",
            str(row["pairs"]) if row["pairs"] == "all" else f"{row['pairs']:,}",
            f"{row['largest class']:,}",
            f"{row['tasks']:,}",
            f"{row['busiest over mean']:.3f}",
            f"{row['busiest over mean, a class a task']:.1f}",
        ]
        for row in case["rows"]
        if row["workers"] == most
    ]
    head = ["classes", "s", "pairs", "largest class", "tasks", "busiest worker / mean", "a class a task"]
    worst = max(row["busiest over mean"] for row in case["rows"])
    return [
        SKEW.format(workers=most),
        "",
        *grid(head, rows),
        "",
        f"No worker has more than {worst:.3f} times the mean, whatever the skew. With all pairs the number "
        "of tasks grows with the square of the largest class, into the millions: another reason to sample.",
    ]


def _machine(found: Mapping[str, Found]) -> list[str]:
    lines = []
    for verb, own in found.items():
        if "machine" not in own or "verb" not in own:
            continue
        machine = own["machine"]
        told = ", ".join(f"{name} {number}" for name, number in own["versions"].items() if number)
        lines.append(f"- `{verb}`: {own['date'][:10]}, {machine['cores']} cores; {told}.")
    return lines


def write(found: Mapping[str, Found], folder: Path = DOCS) -> list[Path]:
    """Write the page."""
    if not found:
        raise FileNotFoundError("there is nothing measured; run: python -m benchmarks scale")
    with replacing(folder / "scale.md") as file:
        file.write(markdown(found).encode())
    return [folder / "scale.md"]
