"""On an accelerator: fit, move and search, in the sizes of ImageNet and News, with TF32 and full float32.

The same code runs on torch's CPU with --quick, so that it is tested where there is no accelerator.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch

from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, nearest
from hubless.arrays import devices
from hubless.movers.points import weighted_mean
from hubless.movers.ridge import move
from hubless.solve import Penalty, problem_of_targets
from hubless.targets import same_class_targets

from .record import Options

SHAPES = {  # objects, dimensions, classes, queries
    "imagenet": (1_281_167, 2048, 1000, 8192),
    "news": (13_192, 300, 20, 5654),
}
QUICK = {"imagenet": (600, 32, 10, 100), "news": (300, 16, 6, 50)}
MODES = {"tf32": "high", "float32": "highest"}  # torch's setting: torch.set_float32_matmul_precision
K = 10
TESTS = ("classifiers", "neighbors", "core", "movers", "baselines")  # folders of tests/


def name() -> str:
    """Return the accelerator, or the CPU where there is none."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def measure(options: Options) -> dict[str, Any]:
    """Measure every case, with data on the device, synchronised before the clock is read."""
    _check(options)
    cases: dict[str, Any] = {}
    for title, shape in (QUICK if options.quick else SHAPES).items():
        data = _data(name(), *shape)
        cases |= {f"{title} {what}": case for what, case in _cases(data, options.repeats).items()}
    return cases


def _check(options: Options) -> None:
    """Raise SystemExit without an accelerator, unless a quick look is enough."""
    if name() == "cpu" and not options.quick:
        raise SystemExit("benchmarks: no accelerator here; --quick tries the code on the CPU.")


def _data(device: str, n: int, d: int, classes: int, m: int) -> tuple[Any, ...]:
    """Objects of classes of different sizes, most of them the largest, as ImageNet's are; and queries."""
    generator = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, device=device)

    centres, basis = 0.28 * draw(classes, d), draw(32, d) / 16
    sizes = np.minimum(np.linspace(0.56, 1.6, classes), 1.0)
    y = np.repeat(np.arange(classes), np.maximum(2, np.ceil(sizes / sizes.sum() * n)).astype(int))[:n]
    y = torch.as_tensor(np.random.default_rng(0).permutation(y), device=device)

    def points(labels: Any) -> Any:
        out = torch.empty((len(labels), d), device=device)
        for part in torch.arange(len(labels), device=device).split(1 << 17):
            out[part] = centres[labels[part]] + draw(len(part), 32) @ basis + draw(len(part), d)
        return out

    truth = torch.randint(classes, (m,), generator=generator, device=device)
    return points(y), y, points(truth), truth


def _cases(data: tuple[Any, ...], repeats: int) -> dict[str, Any]:
    X, y, queries, truth = data
    fit: dict[str, Any] = {"shape": [*X.shape, int(y.max()) + 1]}
    search: dict[str, Any] = {"shape": [queries.shape[0], *X.shape], "k": K}
    by_mode = {}
    for mode, setting in MODES.items():
        with _precision(setting):
            fit[mode] = _seconds(X, lambda: MoveLabeled().fit_transform(X, y), repeats)
            fit[f"parts {mode}"] = _parts(X, y)
            fit[f"bare products {mode}"] = _seconds(X, lambda: _bare(X, y), repeats)
            moved = MoveLabeled().fit_transform(X, y)

            def answer(moved: Any = moved) -> Any:
                return nearest(queries, moved, K, return_distance=False)

            def answer_in_full(moved: Any = moved) -> Any:
                return nearest(queries, moved, K, return_distance=False, precision="float32")

            search[mode] = _seconds(X, answer, repeats)
            search[f"{mode}, no bfloat16"] = _seconds(X, answer_in_full, repeats)
            search[f"bare product {mode}"] = _seconds(X, lambda: _bare_search(queries, X), repeats)
            search[f"product and topk {mode}"] = _seconds(X, lambda: _plain(queries, X), repeats)
            sample = moved[:: max(1, len(moved) // 1000)].double()
            by_mode[mode] = (same_class_targets(X, y), nearest(queries, X, K, return_distance=False), sample)
            votes = y[answer()].mode(dim=1).values
            search[f"accuracy {mode}"] = float((votes == truth).double().mean())
            del moved
    fit["targets that TF32 changes"] = _changed(*(part[0] for part in by_mode.values()))
    fast, full = (part[2] for part in by_mode.values())
    fit["relative change of moved objects by TF32"] = float((fast - full).norm() / full.norm())
    search["neighbours that TF32 changes"] = _changed(*(part[1] for part in by_mode.values()))
    cases = {"fit and move" if X.shape[0] > 10**5 else "fit": fit, "search": search}
    return cases if X.shape[0] > 10**5 else cases | {"choose": _choose(X, y, repeats)}


def _choose(X: Any, y: Any, repeats: int) -> dict[str, Any]:
    """Seconds of choosing settings by cross-validation."""
    choice: dict[str, Any] = {"shape": [*X.shape, int(y.max()) + 1]}
    for arguments in ("", 'mover="auto"'):
        model = MoveLabeledClassifierCV(**({"mover": "auto"} if arguments else {}))
        choice[f"MoveLabeledClassifierCV({arguments})"] = _seconds(X, lambda m=model: m.fit(X, y), repeats)
    return choice


@contextmanager
def _precision(setting: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _seconds(X: Any, run: Callable[[], Any], repeats: int) -> list[float]:
    """Of every round after one to warm up."""
    seconds = []
    for _ in range(repeats + 1):
        devices.synchronize(X)
        start = perf_counter()
        run()
        devices.synchronize(X)
        seconds.append(perf_counter() - start)
    return seconds[1:]


def _parts(X: Any, y: Any) -> dict[str, float]:
    """Seconds of each step of a fit by itself."""
    made: dict[str, Any] = {}
    seconds = {}
    for name, step in {
        "targets": lambda: same_class_targets(X, y),
        "mean": lambda: weighted_mean(X),
        "moments": lambda: problem_of_targets(X, made["targets"], None, made["mean"]),
        "solve": lambda: made["moments"].best_map(Penalty(1.0, True), X.dtype),
        "move": lambda: move(X, made["solve"].W, made["mean"]),
    }.items():

        def run(name: str = name, step: Callable[[], Any] = step) -> None:
            made[name] = step()

        (seconds[name],) = _seconds(X, run, repeats=1)
    return seconds


def _bare(X: Any, y: Any) -> None:
    """The products of Eq. 6 alone: each class with itself, A and K, and the move."""
    for rows in torch.argsort(y).split(torch.bincount(y).tolist()):
        members = X[rows]
        members @ members.T
    other = X.roll(1, 0)
    X.T @ other
    X.T @ X
    W = torch.eye(X.shape[1], device=X.device)
    torch.mm(X, W, out=other)


def _bare_search(queries: Any, X: Any) -> None:
    for z in X.split(1 << 15):
        for x in queries.split(4096):
            x @ z.T


def _plain(queries: Any, X: Any) -> Any:
    """What one writes without a library: a product and torch.topk, block by block."""
    values, index = [], []
    for start, z in zip(range(0, len(X), 1 << 16), X.split(1 << 16), strict=True):
        squared = (z * z).sum(dim=1) - 2 * queries @ z.T
        best = squared.topk(min(K, len(z)), dim=1, largest=False)
        values.append(best.values)
        index.append(best.indices + start)
    best = torch.cat(values, dim=1).topk(K, dim=1, largest=False)
    return torch.cat(index, dim=1).gather(1, best.indices)


def _changed(a: Any, b: Any) -> float:
    """Share of the neighbours of one that are not among those of the other."""
    return 1 - float((a[:, :, None] == b[:, None, :]).any(dim=2).double().mean())


def stream(options: Options) -> dict[str, Any]:
    """Measure a host array computed on the device: whole, and in blocks when the device is nearly full."""
    _check(options)
    device = name()
    n, d, classes, m = (QUICK if options.quick else SHAPES)["imagenet"]
    X, y, queries, _ = (array.cpu().numpy() for array in _data(device, n, d, classes, m))
    case: dict[str, Any] = {"shape": [n, d, classes], "queries": m, "gigabytes": X.nbytes / 1e9}
    with _precision("high"):
        for way in ("whole", "in blocks"):
            torch.cuda.empty_cache()
            ballast = _ballast(3.5 * X.nbytes) if way == "in blocks" and device != "cpu" else None
            model = MoveLabeledClassifier(device=device)
            anchor = torch.empty(0, device=device)
            case[f"{way}: fits"] = devices.fits(X, anchor)
            case[f"{way}: fit"] = _seconds(anchor, lambda model=model: model.fit(X, y), 2)
            case[f"{way}: predict"] = _seconds(anchor, lambda model=model: model.predict(queries), 2)
            case[f"{way}: answers"] = model.predict(queries).tolist()
            del ballast
    whole, blocks = (np.array(case.pop(f"{way}: answers")) for way in ("whole", "in blocks"))
    return {"stream": case | {"same answers": float(np.mean(whole == blocks))}}


def _ballast(free: float) -> Any:
    """Return a tensor that leaves this many bytes of the device's memory free."""
    return torch.empty(int(max(0, torch.cuda.mem_get_info()[0] - free)), dtype=torch.uint8, device="cuda")


def tests(options: Options) -> dict[str, Any]:
    """Run the tests that need an accelerator: how many ran, failed and were skipped, by file."""
    folder = Path(__file__).parent.parent / "tests"
    places = ["classifiers/test_devices.py::test_neighbours_of_the_host"] if options.quick else TESTS
    with TemporaryDirectory() as place:
        report = Path(place, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-k", "cuda or test_devices", *(str(folder / name) for name in places)]
        subprocess.run(command, capture_output=True)
        ran = list(ElementTree.parse(report).getroot().iter("testcase"))
    cases: dict[str, Any] = {}
    for test in ran:
        file = test.attrib["classname"].split(".")[-1] + ".py"
        outcomes = cases.setdefault(file, dict.fromkeys(("tests", "failure", "error", "skipped"), 0))
        outcomes["tests"] += 1
        for outcome in {child.tag for child in test} & outcomes.keys():
            outcomes[outcome] += 1
    return cases
