"""The machine and the software that a result came from."""

import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import __version__
from ..arrays import device_name

PACKAGES = ("numpy", "scipy", "scikit-learn")


def describe(device: str = "cpu") -> dict[str, Any]:
    """Processor, cores, memory and versions; the accelerator too, where one is used."""
    found = {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": _memory(),
        "python": platform.python_version(),
        "hubless": __version__,
    }
    found |= {name: _version(name) for name in PACKAGES}
    return (
        found if device == "cpu" else found | {"accelerator": device_name(device), "torch": _version("torch")}
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The name that the operating system gives, where it gives one."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):  # not on every operating system
        return None
