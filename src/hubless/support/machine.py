"""The memory of this machine."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

UNKNOWN = 8_000_000_000  # bytes of memory where the system does not say


def machine_memory() -> int:
    """Return the bytes of RAM that this process may use: of the machine, or of its control groups."""
    known = hasattr(os, "sysconf")  # not on every system
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else UNKNOWN]
    for file in _cgroup_limits():
        with suppress(OSError, ValueError):  # missing, or "max"
            limits.append(int(file.read_text()))
    return min(limits)


def _cgroup_limits() -> Iterator[Path]:
    """Yield the files with the memory limits of the control groups of this process, of both versions."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, group = line.split(":", 2)
            root = Path("/sys/fs/cgroup/memory" if "memory" in kinds else "/sys/fs/cgroup")
            name = "memory.limit_in_bytes" if "memory" in kinds else "memory.max"
            inside = root / group.lstrip("/")
            yield from (place / name for place in (inside, *inside.parents) if place.is_relative_to(root))
