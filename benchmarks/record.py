"""Raw results: one JSON file per verb, with the machine, its BLAS libraries and the versions of all peers."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_info
from tqdm import tqdm

from hubless.download import replacing
from hubless.paper.machine import cores, describe

FOLDER = Path(__file__).parent / "results" / "speed"
PEERS = ("scikit-learn", "faiss-cpu", "usearch", "torch", "metric-learn", "pylmnn")
LOADED = ("numpy", "scipy.linalg", "faiss", "usearch")  # modules that may bring a BLAS

Found = dict[str, Any]  # one raw file


class Options(NamedTuple):
    """What the command line says."""

    quick: bool = False
    repeats: int = 7
    limit: float = 600.0  # seconds that a learner may take
    pause: float = 0.1  # seconds before each run
    out: Path = FOLDER


def apart(
    task: Callable[..., Any], jobs: Sequence[tuple[str, str]], options: Options, title: str
) -> list[Any]:
    """A task in a process of its own for each job: one at a time, unless a quick look measures nothing."""
    with ThreadPoolExecutor(cores() if options.quick else 1) as pool:
        done = pool.map(lambda job: task(*job, options), jobs)
        return list(tqdm(done, title, len(jobs), leave=False, disable=None))


def blas() -> list[dict[str, Any]]:
    """The BLAS libraries of this process once its peers are loaded, and the package that brought each."""
    for module in LOADED:
        with suppress(ImportError):
            import_module(module)
    found = []
    if "torch" in sys.modules:  # it has its own inside, where threadpoolctl does not see it
        found.append({"package": "torch", "file": None, **_blas_of_torch(sys.modules["torch"])})
    for library in threadpool_info():
        if library["user_api"] == "blas":
            file = Path(library["filepath"])
            about = ("internal_api", "version", "architecture", "num_threads")
            shown = {name: library.get(name) for name in about}
            found.append({"package": _package(file), "file": file.name, **shown})
    return sorted(found, key=lambda library: (library["package"], library["file"] or ""))


def _package(file: Path) -> str:
    """The package whose folder a library is in: numpy of …/site-packages/numpy.libs/…"""
    parts = file.parts
    inside = "site-packages" in parts
    return parts[parts.index("site-packages") + 1].split(".")[0] if inside else "system"


def _blas_of_torch(torch: Any) -> dict[str, Any]:
    shown = torch.__config__.show()
    name = re.search(r"BLAS_INFO=(\w+)", shown)
    kernel = re.search(r"Math Kernel Library Version (\S+)", shown)
    return {
        "internal_api": name and name[1],
        "version": kernel and kernel[1],
        "architecture": torch.backends.cpu.get_cpu_capability(),
        "num_threads": torch.get_num_threads(),
    }


def versions(peers: Sequence[str] = PEERS) -> dict[str, str | None]:
    """Of every peer, None where it is not installed."""
    found: dict[str, str | None] = {}
    for name in peers:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def write(
    verb: str,
    cases: dict[str, Any],
    options: Options,
    device: str = "cpu",
    peers: Sequence[str] = PEERS,
) -> Found:
    """Put everything that a reader needs beside the cases, and write it in one step."""
    machine = describe(device)
    settings = {name: getattr(options, name) for name in ("quick", "repeats", "limit", "pause")}
    found = {"verb": verb, "date": machine.pop("date"), "settings": settings}
    found |= {"machine": machine | {"blas": blas()}, "versions": versions(peers), "cases": cases}
    options.out.mkdir(parents=True, exist_ok=True)
    with replacing(options.out / f"{verb}.json") as file:
        file.write((json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())
    return found


def read(folder: Path) -> dict[str, Found]:
    """The raw files that are there, by their verb."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
