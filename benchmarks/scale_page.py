"""docs/scale.md: a plan for a billion vectors, made from what was measured here and from nothing else."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from hubless.outofcore.dask.dask_objects import ROOM
from hubless.outofcore.pair_sums import group_size
from hubless.outofcore.sampling import PAIRS, n_sources
from hubless.support.writing import new_file

from .markdown import MISSING, QUICK, grid, is_quick, shown
from .record import DOCS, RawFile
from .skew import ITEM, OBJECTS, D, zipf_sizes
from .timing import is_timed, ratio

FOLDER = Path(__file__).parent / "results" / "scale"
PEERS = ("scikit-learn", "dask", "distributed", "pandas", "pyarrow")
CLASSES = 1000
FEWER = 50  # pairs per column, for comparison
OPENING = """\
# A billion vectors

What fitting and moving {n:,} vectors of {d} columns takes: bytes, operations and machine-hours, and what \
dominates. The rates were measured on one small machine, described at the end; the rest is arithmetic. Raw \
results are in `benchmarks/results/scale`, and one command measures them again:

    python -m benchmarks scale        # ten million vectors: needs room for 10 GB of files
    python -m benchmarks scale-page   # makes this page

[More data than memory](large.md) says how to do it.
"""
PLAN = """\
{n:,} × {d} numbers of float32 are {tera:.2f} TB; {classes:,} classes whose sizes follow Zipf's law (s = \
1), the largest of {largest:,} objects. {pairs} pairs per column are {sources:,} sources. A worker holds \
{group:,} of them at a time, so there are {groups} groups, and for each group all files are read twice: to \
search for targets, and to add up. Disk-hours and core-hours are those of this machine, at the rates \
below, and add up where one waits for the other:"""
BEYOND = """\
{n:,} × {d} numbers of float32 ({gigabytes:.1f} GB) in {classes:,} classes whose sizes follow Zipf's law, \
written by `benchmarks/beyond_data.py`: 24 directions separate the classes, and directions of larger \
variance do not. `hubless fit vectors.npy --items labels.npy --labels label --mover ridge --memory \
{memory}` and `hubless apply` run in processes that the system limits to {limit:.1f} GB ({by}); cached \
files count, and are dropped when the limit is reached. For comparison, the bare work reads the bytes \
once, writes them once, and does the matrix products of the search and of the move, within the same limit:"""
LARGE = """\
`fit_large(MoveLabeled())` of {n:,} × {d} numbers of float32 in a mapped file, {classes:,} classes, \
{pairs:,} pairs. The bare work reads the file twice, multiplies sources with all objects of their class, \
and sums up A and K. Medians over {rounds} rounds, on a machine that others use too: ratios are of one \
round each. A copy on disk, for sources in several groups, is not counted as a read of the data:"""
LARGE_GOAL = """\
The goal is two reads, and at most {most} times the seconds of the bare work; it is {verdict}. For sources \
in several groups the second read writes the copy, in order of class, so that each group is compared with \
the blocks that have its classes. The bare work writes no copy, checks nothing and looks for nothing in its \
products."""
IN_ORDER = "2026-11-20"  # the day from which the copy is in order of class
BEFORE = f"""
These figures are older than the order of that copy. In processor seconds on one thread, several groups took \
2.4 times the bare work without it, and take 1.5 times with it, as one group does ({IN_ORDER}, medians of \
two to four fits). The machine was too busy for seconds."""
LARGE_MOST = 2, 2.5  # reads, and times the seconds of the bare work
WORKERS = """\
{n:,} × {d} numbers in {classes} classes, all pairs, objects held by the workers, one thread each; rounds \
with one worker and with two alternate. A look (classes, mean, digests) reads all objects once; the search \
for targets takes most of the time of a fit to all pairs:"""
SAMPLED = """\
Noisy data, where a sample of pairs costs most: {n:,} × {d} numbers, {informative} columns of which are \
informative, {flipped:.0%} of the labels random, {classes} classes, {seeds} data sets each. Accuracy of {k} \
neighbours in per cent, for λ of {alphas} times the mean eigenvalue, minus that of a map learned from all \
pairs:"""
SKEW = """\
Not measured but computed: sizes follow Zipf's law n_c ∝ c^(−s), objects are sorted by class, a task is the \
search in one block of 64 MB for one group of sources, and each task goes to the worker that is free first, \
of {workers}, the heaviest last. No class is too large for a worker, since classes are not kept together:"""


class Rates(NamedTuple):
    """What one core or one disk did here, per second."""

    read: float  # bytes
    write: float
    look: float  # bytes, by a core: read and checked by a worker
    search: float  # operations, by a core
    move: float  # operations, by a core


class Step(NamedTuple):
    """What a step costs."""

    name: str
    read: float  # bytes
    written: float
    operations: float
    core_seconds: float


def rates(raw: Mapping[str, RawFile]) -> Rates | None:
    """Return the rates of the raw results; None where one is missing."""
    if not {"beyond", "workers"} <= raw.keys():
        return None
    case, search = raw["beyond"]["cases"]["streaming"], raw["workers"]["cases"]["search"]
    seconds, settings = case["bare"]["seconds"], case["settings"]
    if not is_timed(search["seconds"], "1 worker", "look, 1 worker"):
        return None
    return Rates(
        settings["bytes"] / seconds["read"],
        settings["bytes"] / seconds["write"],
        search["bytes"] / median(search["seconds"]["look, 1 worker"]),
        2 * search["comparisons"] * search["settings"]["d"] / median(search["seconds"]["1 worker"]),
        2 * settings["n"] * settings["d"] ** 2 / seconds["move"] / raw["beyond"]["machine"]["cores"],
    )


def markdown(raw: Mapping[str, RawFile]) -> str:
    """Return the whole page."""
    lines = [OPENING.format(n=OBJECTS, d=D)]
    for title, verb, section in (
        ("The plan", "", _plan),
        ("Ten million within two gigabytes", "beyond", _beyond),
        ("Reads of `fit_large`", "large", _large),
        ("Two workers", "workers", _workers),
        ("What a sample of pairs costs", "sampled", _sampled),
        ("Classes of very different sizes", "skew", _skew),
        ("Machine", "", _machine),
    ):
        lines.append(f"## {title}\n")
        if verb and verb not in raw:
            lines.append(f"{MISSING.capitalize()}.\n")
            continue
        lines += [QUICK] if verb and is_quick(raw[verb]) else []
        lines += [*section(raw), ""]
    return "\n".join(lines).rstrip() + "\n"


def _plan(raw: Mapping[str, RawFile]) -> list[str]:
    speed = rates(raw)
    if speed is None:
        return [f"{MISSING.capitalize()}."]
    size, sizes = ITEM * OBJECTS * D, zipf_sizes(OBJECTS, CLASSES, 1.0)
    m, group = n_sources(sizes, D, 1, "auto"), group_size(ROOM, D, ITEM, 1)
    squares = float((sizes.astype(float) ** 2).sum())
    steps = _steps(speed, size, m, -(-m // group), squares)
    fewer = _steps(speed, size, FEWER * D, -(-FEWER * D // group), squares)
    cores, disks = _hours(steps, speed)
    fewer_cores, fewer_disks = _hours(fewer, speed)
    rows = [
        [step.name, _tera(step.read), _tera(step.written), f"{step.operations:.1e}",
         f"{_disk_seconds(step, speed) / 3600:.1f}", f"{step.core_seconds / 3600:.1f}"]
        for step in steps
    ]  # fmt: skip
    totals = [_tera(sum(step[i] for step in steps)) for i in (1, 2)]
    rows.append(["in all", *totals, "", f"**{disks:.1f}**", f"**{cores:.1f}**"])
    largest = max(steps, key=lambda step: step.core_seconds)
    about = {"n": OBJECTS, "d": D, "tera": size / 1e12, "classes": CLASSES, "largest": sizes.max()}
    about |= {"pairs": PAIRS, "sources": m, "group": group, "groups": -(-m // group)}
    measured = [
        ["read, from the disk or its cache", f"{speed.read / 1e9:.2f} GB/s"],
        ["written and flushed to the disk", f"{speed.write / 1e9:.2f} GB/s"],
        ["read and checked, by a worker with one core", f"{speed.look / 1e9:.2f} GB/s"],
        ["compared, by a worker with one core", f"{speed.search / 1e9:.1f} billion operations/s"],
        ["multiplied, by one core", f"{speed.move / 1e9:.1f} billion operations/s"],
    ]
    return [
        PLAN.format(**about),
        "",
        *grid(["step", "read", "written", "operations", "disk-hours", "core-hours"], rows),
        "",
        *grid(["rate, measured here", ""], measured),
        "",
        f"- **{largest.name.capitalize()} dominates**: {largest.core_seconds / 3600 / cores:.0%} of the "
        f"core-hours. 64 machines of 16 such cores and one such disk each would be busy for "
        f"{cores / (64 * 16) * 60:.0f} minutes with computing and {disks / 64 * 60:.0f} with their disks. "
        "The network of a cluster has not been tried.",
        f"- With {FEWER} pairs per column (`max_pairs={FEWER * D}`), all of it would take {fewer_disks:.1f} "
        f"disk-hours and {fewer_cores:.1f} core-hours; what that costs on noisy data is below.",
        f"- From all pairs, the search alone would be {2 * squares * D:.1e} operations, "
        f"{2 * squares * D / speed.search / 3600:,.0f} core-hours. W has {D**2:,} numbers and does not need "
        "them.",
        "- Nothing is shuffled and no copy of the vectors is written: sources go to every block, and nearest "
        "objects and sums come back.",
        f"- What comes to the client: sums of {2 * D * D * 8 / 1e6:.0f} MB, the classes and their sizes.",
        "- Objects that are added later cost only their own share, since moments add up (`hubless update`).",
    ]


# A source is compared with all objects of its class: m Σ n_c² / n comparisons of 2 d operations
def _steps(speed: Rates, size: float, m: int, groups: int, squares: float) -> list[Step]:
    look, search = size / speed.look, 2 * D * m * squares / OBJECTS
    moments, move = 4 * m * D**2 + 10 * D**3, 2 * OBJECTS * D**2
    return [
        Step("look: classes, mean, bad parts", size, 0, 0.0, look),
        Step("sample, to choose on", size, 0, 0.0, look),
        Step("draw the sources", size, 0, 0.0, look),  # those of a group are in few files
        Step("search for their targets", groups * size, 0, search, groups * look + search / speed.search),
        Step("moments and solving", groups * size, 0, moments, groups * look + moments / speed.move),
        Step("move", size, size, move, move / speed.move),
    ]


def _hours(steps: list[Step], speed: Rates) -> tuple[float, float]:
    """Core-hours and disk-hours of all steps."""
    cores = sum(step.core_seconds for step in steps)
    return cores / 3600, sum(_disk_seconds(step, speed) for step in steps) / 3600


def _disk_seconds(step: Step, speed: Rates) -> float:
    return step.read / speed.read + step.written / speed.write


def _tera(size: float) -> str:
    return f"{size / 1e12:.1f} TB"


def _beyond(raw: Mapping[str, RawFile]) -> list[str]:
    case = raw["beyond"]["cases"]["streaming"]
    settings, runs, bare = case["settings"], case["runs"], case["bare"]["seconds"]
    text = BEYOND.format(
        **{name: settings[name] for name in ("n", "d", "classes", "memory")},
        gigabytes=settings["bytes"] / 1e9,
        limit=settings["limit"] / 1e9,
        by=runs["fit"]["by"],
    )
    rows = [
        [name, f"{run['seconds']:.0f}", f"{run['processor seconds']:.0f}", _size(run["peak resident bytes"]),
         _size(run["peak bytes of the group, cached files included"])]
        for name, run in runs.items()
    ]  # fmt: skip
    accuracy, ours = case["accuracy"], runs["fit"]["seconds"] + runs["apply"]["seconds"]
    return [
        text,
        "",
        *grid(["", "seconds", "processor seconds", "peak, resident", "peak with cached files"], rows),
        "",
        *grid(["bare, once", "seconds"], [[name, shown(took)] for name, took in bare.items()]),
        "",
        "- Apply reads and writes the bytes once; how often a fit reads them is counted below. These figures "
        "are older: the fit still read the bytes five times. Together they took "
        f"{ours / sum(bare.values()):.1f} times the bare work done once.",
        f"- It learned from {settings['pairs']:,} pairs. W multiplies the directions that separate classes "
        f"by {case['kept']['telling']:.2f} and the others by {case['kept']['others']:.2f} (means of its "
        "diagonal).",
        f"- Of {settings['queries']:,} new objects, the 10 nearest of all {settings['n']:,} voted for the "
        f"right class in {accuracy['before']:.1%} before and in {accuracy['after']:.1%} after, by exact "
        "search.",
    ]


def _size(size: int | None) -> str:
    return "—" if size is None else f"{size / 1e9:.2f} GB"


def _large(raw: Mapping[str, RawFile]) -> list[str]:
    case = raw["large"]["cases"]["reads"]
    rounds, settings = case["rounds"], case["settings"]
    rows, missed = [], []
    for name in settings["memory"]:
        shares = [
            [fit[clock] / bare[clock] for fit, bare in zip(rounds[name], rounds["bare"], strict=True)]
            for clock in ("seconds", "processor seconds")
        ]
        reads = max(fit["reads"] for fit in rounds[name])
        rows.append([name, settings["memory"][name], f"{reads:.2f}", *(f"{median(s):.2f}" for s in shares)])
        if reads > LARGE_MOST[0] or median(shares[0]) > LARGE_MOST[1]:
            missed.append(name)
    verdict = f"not reached in {' and in '.join(missed)}" if missed else "reached"
    return [
        LARGE.format(**settings),
        "",
        *grid(["sources in", "memory", "reads", "seconds / bare", "processor seconds / bare"], rows),
        "",
        LARGE_GOAL.format(most=LARGE_MOST[1], verdict=verdict),
        *([BEFORE] if raw["large"]["date"] < IN_ORDER else []),
    ]


def _workers(raw: Mapping[str, RawFile]) -> list[str]:
    case = raw["workers"]["cases"]["search"]
    seconds = case["seconds"]
    rows = [[name, shown(median(took))] for name, took in seconds.items() if isinstance(took, list)]
    lines = [WORKERS.format(**case["settings"]), "", *grid(["", "median seconds"], rows), ""]
    if is_timed(seconds, "1 worker", "2 workers"):
        middle, low, high = ratio(seconds, "1 worker", "2 workers")
        lines.append(
            f"Two workers are {middle:.2f} times as fast as one (quartiles {low:.2f} to {high:.2f}). Their "
            "sums differ from those of one process by at most "
            f"{case['largest difference of the sums, relative']:.0e} of the largest."
        )
    return lines


def _sampled(raw: Mapping[str, RawFile]) -> list[str]:
    case = raw["sampled"]["cases"]["noisy"]
    settings, cells = case["settings"], case["cells"]
    alphas = sorted({cell["alpha"] for cell in cells if cell["alpha"] is not None}, reverse=True)
    text = SAMPLED.format(
        **{name: settings[name] for name in ("n", "d", "informative", "flipped", "seeds", "k")},
        classes=_listed(settings["classes"]),
        alphas=_listed([f"{alpha:g}" for alpha in alphas]),
    )
    rows = [
        [str(pairs), *(text for alpha in alphas for text in _losses(cells, pairs, alpha))]
        for pairs in settings["per_column"]
    ]
    head = ["pairs per column", *(f"λ {alpha:g}, {name}" for alpha in alphas for name in ("mean", "worst"))]
    means = [fmean(cell["accuracy"] for cell in cells if cell["pairs per column"] == p) for p in (0, "all")]
    return [
        text,
        "",
        *grid(head, rows),
        "",
        f"Without moving the mean accuracy is {means[0]:.1%}, with all pairs {means[1]:.1%}. A fit that "
        f"samples by itself takes {PAIRS} pairs per column or more.",
    ]


def _losses(cells: list[dict[str, Any]], pairs: int, alpha: float) -> list[str]:
    """The mean and the worst difference in accuracy to all pairs, in points."""
    scores: dict[Any, dict[Any, float]] = {}
    for cell in cells:
        if cell["alpha"] == alpha:
            data = scores.setdefault((cell["classes"], cell["seed"]), {})
            data[cell["pairs per column"]] = cell["accuracy"]
    points = [100 * (data[pairs] - data["all"]) for data in scores.values()]
    return [f"{value:+.1f}".replace("-", "−") for value in (fmean(points), min(points))]


def _listed(values: list[Any]) -> str:
    *others, last = map(str, values)
    return f"{', '.join(others)} and {last}" if others else last


def _skew(raw: Mapping[str, RawFile]) -> list[str]:
    case = raw["skew"]["cases"]["zipf"]
    rows = [
        [
            f"{row['classes']:,}",
            f"{row['exponent']:g}",
            f"{row['largest class']:,}",
            f"{row['tasks']:,}",
            f"{row['heaviest task over mean']:.1f}",
            f"{row['busiest over mean']:.3f}",
        ]
        for row in case["rows"]
    ]
    head = ["classes", "s", "largest class", "tasks", "heaviest task / mean", "busiest worker / mean"]
    worst = max(row["busiest over mean"] for row in case["rows"])
    return [
        SKEW.format(**case["settings"]),
        "",
        *grid(head, rows),
        "",
        f"In none of these cases does a worker have more than {worst:.3f} times the mean.",
    ]


def _machine(raw: Mapping[str, RawFile]) -> list[str]:
    lines = []
    for verb, file in raw.items():
        if "machine" not in file or "verb" not in file:
            continue
        software = ", ".join(f"{name} {number}" for name, number in file["versions"].items() if number)
        lines.append(f"- `{verb}`: {file['date'][:10]}, {file['machine']['cores']} cores; {software}.")
    return lines


def write(raw: Mapping[str, RawFile], folder: Path = DOCS) -> list[Path]:
    """Write the page."""
    if not raw:
        raise FileNotFoundError("there is nothing measured; run: python -m benchmarks scale")
    with new_file(folder / "scale.md") as file:
        file.write(markdown(raw).encode())
    return [folder / "scale.md"]
