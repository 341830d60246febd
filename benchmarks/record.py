"""Raw results: one JSON file per verb, with the machine, its BLAS libraries and the versions of all peers."""

import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_info

from hubless.paper.raw import this_machine, versions, write_files

FOLDER = Path(__file__).parent / "results" / "speed"
DOCS = Path(__file__).parent.parent / "docs"
PEERS = ("scikit-learn", "faiss-cpu", "usearch", "torch", "metric-learn", "pylmnn")
LOADED = ("numpy", "scipy.linalg", "faiss", "usearch")  # modules that may bring a BLAS

RawFile = dict[str, Any]  # what one verb measured


class Options(NamedTuple):
    """What the command line says."""

    quick: bool = False
    repeats: int = 7
    limit: float = 600.0  # seconds that a learner may take
    pause: float = 0.1  # seconds before each run
    out: Path = FOLDER


def blas() -> list[dict[str, Any]]:
    """Return the BLAS libraries of this process once its peers are loaded, and the package of each."""
    for module in LOADED:
        with suppress(ImportError):
            import_module(module)
    libraries = []
    if "torch" in sys.modules:  # its BLAS is inside, where threadpoolctl does not see it
        libraries.append({"package": "torch", "file": None, **_blas_of_torch(sys.modules["torch"])})
    for library in threadpool_info():
        if library["user_api"] == "blas":
            file = Path(library["filepath"])
            about = ("internal_api", "version", "architecture", "num_threads")
            shown = {name: library.get(name) for name in about}
            libraries.append({"package": _package(file), "file": file.name, **shown})
    return sorted(libraries, key=lambda library: (library["package"], library["file"] or ""))


def _package(file: Path) -> str:
    """Return the package whose folder a library is in: numpy of …/site-packages/numpy.libs/…"""
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


def write(
    verb: str,
    cases: dict[str, Any],
    options: Options,
    device: str = "cpu",
    peers: Sequence[str] = PEERS,
) -> RawFile:
    """Write the cases, with the machine and all versions, in one step."""
    machine = this_machine(device)
    settings = {name: getattr(options, name) for name in ("quick", "repeats", "limit", "pause")}
    raw = {"verb": verb, "date": machine.pop("date"), "settings": settings}
    raw |= {"machine": machine | {"blas": blas()}, "versions": versions(*peers), "cases": cases}
    text = json.dumps(raw, indent=1, ensure_ascii=False) + "\n"
    write_files(options.out, {f"{verb}.json": text.encode()})
    return raw


def read(folder: Path) -> dict[str, RawFile]:
    """Return the raw files of a folder by their verb."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
