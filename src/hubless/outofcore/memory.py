"""How much may be held at once: a memory limit in bytes, and what of it is left for objects."""

import re
from typing import Any

from ..support.machine import machine_memory

CHOOSING = 650_000_000  # bytes of Python, its libraries, and of trying many movers on held-out objects
TRIED = 20  # copies of the objects that a mover is chosen on: folds, moved and searched
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BASE = 450_000_000  # bytes of Python with its libraries, and of the products of a search
MATRICES = 12  # d × d matrices of float64 that learning and solving hold
BESIDE = 160  # bytes beside an object: its label, its class, its nearest
COPIES = 4  # of the objects of a block that are held at once: read, checked, by class, shifted
LEAST_ROWS = 512  # of a block
MEANS = 3  # copies of the means of all classes that are held at once


def as_bytes(memory: Any) -> int:
    """Return bytes from a number or from a text such as "2GB", "500 MB" or "1.5GiB"."""
    if isinstance(memory, bool) or not isinstance(memory, int | float | str):
        raise ValueError(f'memory must be a number of bytes or a text such as "2GB"; got {memory!r}.')
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", memory, re.IGNORECASE)
        if match is None:
            raise ValueError(f'memory must be a number of bytes or a text such as "2GB"; got {memory!r}.')
        number, unit, binary = match.groups()
        size = UNITS[unit.lower()]
        memory = float(number) * (1024 ** round(len(str(size)) / 3) if binary and size > 1 else size)
    if not 0 < memory < 1 << 60:
        raise ValueError(f'memory must be more than 0; got {memory!r}. Give a text such as "2GB".')
    return int(memory)


def budget(memory: Any = None) -> int:
    """Return the bytes that may be used: as given, or half of RAM."""
    return machine_memory() // 2 if memory is None else as_bytes(memory)


def _format_bytes(memory: int) -> str:
    return f"{memory / 1e6:,.0f} MB" if memory >= 10**6 else f"{memory:,} bytes, without a unit such as GB"


def rows_and_room(memory: int, n_columns: int, itemsize: int, label: int = 0) -> tuple[int, int]:
    """Return the rows of a block, and the bytes of objects that may be held beside it.

    `label` are the bytes of a label, where they are known. ValueError where the memory limit is too low.
    """
    least = BASE + MATRICES * 8 * n_columns**2
    row = COPIES * n_columns * itemsize + BESIDE + label
    rows = (memory - least) // (2 * row)
    needed = least + 2 * row * LEAST_ROWS
    if rows < LEAST_ROWS:
        raise ValueError(
            f"memory must be at least {needed / 1e6:,.0f} MB for {n_columns} columns: Python and its "
            f"libraries take {BASE / 1e6:,.0f}; got {_format_bytes(memory)}."
        )
    return int(rows), (memory - least) // 2


def check_means(memory: int, n_columns: int, n_classes: int) -> None:
    """Refuse means of more classes than the memory limit has room for beside a block; ValueError."""
    least = BASE + MATRICES * 8 * n_columns**2
    needed = least + 2 * MEANS * bytes_of_means(n_columns, n_classes)
    if memory < needed:
        raise ValueError(
            f"memory must be at least {needed / 1e6:,.0f} MB for the means of {n_classes:,} classes of "
            f"{n_columns} columns; got {_format_bytes(memory)}. MoveLabeled needs no means."
        )


def bytes_of_means(n_columns: int, n_classes: int) -> int:
    """Return how many bytes the means of all classes take, in float64."""
    return 8 * n_columns * n_classes


def rows_to_choose_on(memory: int, n_columns: int, itemsize: int, most: int) -> int:
    """Return how many objects a mover may be chosen on; ValueError where the memory limit is too low."""
    least = CHOOSING + MATRICES * 8 * n_columns**2
    rows = (memory - least) // (TRIED * n_columns * itemsize)
    if rows < min(most, 1000):
        needed = least + TRIED * n_columns * itemsize * min(most, 1000)
        raise ValueError(
            f"memory must be at least {needed / 1e6:,.0f} MB to choose a mover for {n_columns} columns; got "
            f"{_format_bytes(memory)}."
        )
    return int(min(most, rows))
