"""How much may be held at once: a budget in bytes, and what of it is left for objects."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

UNKNOWN = 8_000_000_000  # bytes of a machine that does not tell
CHOOSING = 650_000_000  # bytes of Python, its libraries, and of trying many movers on held-out objects
TRIED = 20  # copies of the objects that a mover is chosen on: folds, moved and searched
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BASE = 450_000_000  # bytes of Python with its libraries, and of the products of a search
MATRICES = 12  # d × d matrices of float64 that learning and solving hold
BESIDE, TARGET = 100, 60  # bytes beside an object, and beside each of its targets
COPIES = 4  # of the objects of a part that are held at once: read, ordered, moved, looked at


def as_bytes(memory: Any) -> int:
    """Bytes from a number or from a text as "2GB", "500 MB", "1.5GiB"."""
    if isinstance(memory, bool) or not isinstance(memory, int | float | str):
        raise ValueError(f'memory must be a number of bytes or a text as "2GB"; got {memory!r}.')
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", memory, re.IGNORECASE)
        if found is None:
            raise ValueError(f'memory must be a number of bytes or a text as "2GB"; got {memory!r}.')
        number, unit, binary = found.groups()
        size = UNITS[unit.lower()]
        memory = float(number) * (1024 ** round(len(str(size)) / 3) if binary and size > 1 else size)
    if not 0 < memory < 1 << 60:
        raise ValueError(f'memory must be more than 0; got {memory!r}. Give a text as "2GB".')
    return int(memory)


def budget(memory: Any = None) -> int:
    """Bytes that may be used: as given, or half of what the machine has."""
    return of_machine() // 2 if memory is None else as_bytes(memory)


def _told(memory: int) -> str:
    return f"{memory / 1e6:,.0f} MB" if memory >= 10**6 else f"{memory:,} bytes, without a unit as 2GB"


def of_machine() -> int:
    """Bytes of memory that this process may use: of the machine, or of the groups that it is confined to."""
    known = hasattr(os, "sysconf")  # not on every system
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else UNKNOWN]
    for file in _limits():
        try:
            found.append(int(file.read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(found)


def _limits() -> Iterator[Path]:
    """Files with the limits of the control groups of this process, of both versions."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, group = line.split(":", 2)
            root = Path("/sys/fs/cgroup/memory" if "memory" in kinds else "/sys/fs/cgroup")
            name = "memory.limit_in_bytes" if "memory" in kinds else "memory.max"
            inside = root / group.lstrip("/")
            yield from (place / name for place in (inside, *inside.parents) if place.is_relative_to(root))


def rows_to_choose_on(memory: int, n_columns: int, itemsize: int, most: int) -> int:
    """How many objects a mover may be chosen on; ValueError where the budget is below the least."""
    rows = (memory - CHOOSING) // (TRIED * n_columns * itemsize)
    if rows < min(most, 1000):
        needed = CHOOSING + TRIED * n_columns * itemsize * 1000
        raise ValueError(
            f"memory must be at least {needed / 1e6:,.0f} MB to choose a mover for {n_columns} columns; got "
            f"{_told(memory)}."
        )
    return int(min(most, rows))


def rows_within(memory: int, n_columns: int, itemsize: int, n_targets: int = 1) -> int:
    """How many objects a part may have; ValueError where the budget is below the least."""
    least = BASE + MATRICES * 8 * n_columns**2
    row = COPIES * n_columns * itemsize + BESIDE + TARGET * n_targets
    rows = (memory - least) // row
    needed = least + row * 1024
    if rows < 1024:
        raise ValueError(
            f"memory must be at least {needed / 1e6:,.0f} MB for {n_columns} columns: Python and its "
            f"libraries take {BASE / 1e6:,.0f}; got {_told(memory)}."
        )
    return int(rows)
