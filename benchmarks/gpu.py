"""On an accelerator: fit and move, search and News' shape, with TF32 and in full float32.

The same code runs on torch's CPU with --quick, so that it is tried where there is no accelerator.
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

from hubless import MoveLabeled, MoveLabeledClassifier, arrays, nearest
from hubless.movers.linear import learned, move, problem_of_targets, weighted_mean
from hubless.solve import Penalty
from hubless.targets import same_class_targets

from .record import Options

SHAPES = {  # objects, dimensions, classes, queries
    "imagenet": (1_281_167, 2048, 1000, 8192),
    "news": (13_192, 300, 20, 5654),
}
QUICK = {"imagenet": (3000, 64, 30, 200), "news": (1000, 30, 20, 100)}
MODES = {"tf32": "high", "float32": "highest"}  # torch's own setting: torch.set_float32_matmul_precision
K = 10
TESTS = [
    "test_devices.py",
    "test_neighbors.py",
    "test_targets.py",
    "test_within.py",
    "test_moments.py",
    "test_solve.py",
    "test_vote.py",
    "test_hubness.py",
    "test_movers.py",
    "test_baselines.py",
    "test_nca.py",
]


def name() -> str:
    """The accelerator, or the CPU where there is none."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def measure(options: Options) -> dict[str, Any]:
    """Seconds of every case, resident on the device, synchronised before the clock is read."""
    torch = _torch(options)
    cases: dict[str, Any] = {}
    for title, shape in (QUICK if options.quick else SHAPES).items():
        data = _data(torch, name(), *shape)
        cases |= {f"{title} {what}": case for what, case in _cases(torch, data, options.repeats).items()}
    return cases


def _torch(options: Options) -> Any:
    """torch, if there is an accelerator or a quick look is enough."""
    import torch

    if name() == "cpu" and not options.quick:
        raise SystemExit("benchmarks: no accelerator here; --quick tries the code on the CPU.")
    return torch


def _data(torch: Any, device: str, n: int, d: int, classes: int, m: int) -> tuple[Any, ...]:
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


def _cases(torch: Any, data: tuple[Any, ...], repeats: int) -> dict[str, Any]:
    X, y, queries, truth = data
    fit: dict[str, Any] = {"shape": [*X.shape, int(y.max()) + 1]}
    search: dict[str, Any] = {"shape": [queries.shape[0], *X.shape], "k": K}
    found = {}
    for mode, setting in MODES.items():
        with _precision(torch, setting):
            fit[mode] = _seconds(torch, X, lambda: MoveLabeled().fit_transform(X, y), repeats)
            fit[f"parts {mode}"] = _parts(torch, X, y)
            fit[f"bare products {mode}"] = _seconds(torch, X, lambda: _bare(torch, X, y), repeats)
            moved = MoveLabeled().fit_transform(X, y)

            def ask(moved: Any = moved) -> Any:
                return nearest(queries, moved, K, return_distance=False)

            search[mode] = _seconds(torch, X, ask, repeats)
            search[f"bare product {mode}"] = _seconds(torch, X, lambda: _bare_search(queries, X), repeats)
            search[f"product and topk {mode}"] = _seconds(
                torch, X, lambda: _plain(torch, queries, X), repeats
            )
            sample = moved[:: max(1, len(moved) // 1000)].double()
            found[mode] = (same_class_targets(X, y), nearest(queries, X, K, return_distance=False), sample)
            votes = y[ask()].mode(dim=1).values
            search[f"accuracy {mode}"] = float((votes == truth).double().mean())
            del moved
    fit["targets that TF32 changes"] = _changed(*(part[0] for part in found.values()))
    fast, full = (part[2] for part in found.values())
    fit["relative change of moved objects by TF32"] = float((fast - full).norm() / full.norm())
    search["neighbours that TF32 changes"] = _changed(*(part[1] for part in found.values()))
    return {"fit and move" if X.shape[0] > 10**5 else "fit": fit, "search": search}


@contextmanager
def _precision(torch: Any, setting: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _seconds(torch: Any, X: Any, run: Callable[[], Any], repeats: int) -> list[float]:
    """Of every round after one to warm up."""
    seconds = []
    for _ in range(repeats + 1):
        _wait(torch, X)
        start = perf_counter()
        run()
        _wait(torch, X)
        seconds.append(perf_counter() - start)
    return seconds[1:]


def _wait(torch: Any, X: Any) -> None:
    if X.is_cuda:
        torch.cuda.synchronize()


def _parts(torch: Any, X: Any, y: Any) -> dict[str, float]:
    """Seconds of each step of a fit by itself."""
    found: dict[str, Any] = {}
    seconds = {}
    for name, step in {
        "targets": lambda: same_class_targets(X, y),
        "mean": lambda: weighted_mean(X),
        "moments": lambda: problem_of_targets(X, found["targets"], None, found["mean"]),
        "solve": lambda: learned(found["moments"], found["mean"], Penalty(1.0, True), X),
        "move": lambda: move(X, found["solve"].W, found["mean"]),
    }.items():
        for _ in range(2):  # the second counts
            _wait(torch, X)
            start = perf_counter()
            found[name] = step()
            _wait(torch, X)
            seconds[name] = perf_counter() - start
    return seconds


def _bare(torch: Any, X: Any, y: Any) -> None:
    """The products of Eq. 6 alone: each class with itself, A and K, and the move."""
    for rows in torch.argsort(y).split(torch.bincount(y).tolist()):
        own = X[rows]
        own @ own.T
    other = X.roll(1, 0)
    X.T @ other
    X.T @ X
    W = torch.eye(X.shape[1], device=X.device)
    torch.mm(X, W, out=other)


def _bare_search(queries: Any, X: Any) -> None:
    for z in X.split(1 << 15):
        for x in queries.split(4096):
            x @ z.T


def _plain(torch: Any, queries: Any, X: Any) -> Any:
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
    """A host array computed on the device: whole, and in blocks when the device is nearly full."""
    torch, device = _torch(options), name()
    n, d, classes, m = (QUICK if options.quick else SHAPES)["imagenet"]
    X, y, queries, _ = (array.cpu().numpy() for array in _data(torch, device, n, d, classes, m))
    found: dict[str, Any] = {"shape": [n, d, classes], "queries": m, "gigabytes": X.nbytes / 1e9}
    with _precision(torch, "high"):
        for way in ("whole", "in blocks"):
            torch.cuda.empty_cache()
            ballast = _ballast(torch, 3.5 * X.nbytes) if way == "in blocks" and device != "cpu" else None
            model = MoveLabeledClassifier(device=device)
            anchor = torch.empty(0, device=device)
            found[f"{way}: fits"] = arrays.fits(X, anchor)
            found[f"{way}: fit"] = _seconds(torch, anchor, lambda model=model: model.fit(X, y), 2)
            found[f"{way}: predict"] = _seconds(torch, anchor, lambda model=model: model.predict(queries), 2)
            found[f"{way}: answers"] = model.predict(queries).tolist()
            del ballast
    whole, blocks = (np.array(found.pop(f"{way}: answers")) for way in ("whole", "in blocks"))
    return {"stream": found | {"same answers": float(np.mean(whole == blocks))}}


def _ballast(torch: Any, free: float) -> Any:
    """A tensor that leaves so many bytes of the device's memory free."""
    return torch.empty(int(max(0, torch.cuda.mem_get_info()[0] - free)), dtype=torch.uint8, device="cuda")


def tests(options: Options) -> dict[str, Any]:
    """The tests of this repository that need an accelerator: how many ran, failed, were skipped, by file."""
    folder = Path(__file__).parent.parent / "tests"
    with TemporaryDirectory() as place:
        report = Path(place, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-k", "cuda or test_devices", *(str(folder / file) for file in _files(options))]
        subprocess.run(command, capture_output=True)
        found = list(ElementTree.parse(report).getroot().iter("testcase"))
    cases = {file: dict.fromkeys(("tests", "failure", "error", "skipped"), 0) for file in _files(options)}
    for test in found:
        own = cases[test.attrib["classname"].split(".")[-1] + ".py"]
        own["tests"] += 1
        for outcome in {child.tag for child in test} & own.keys():
            own[outcome] += 1
    return cases


def _files(options: Options) -> list[str]:
    return TESTS[:1] if options.quick else TESTS
