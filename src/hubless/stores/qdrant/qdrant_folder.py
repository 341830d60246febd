"""Folders of qdrant-client: checked before it opens them, since it would run what a hostile one contains.

qdrant-client keeps each point as a pickle in SQLite, and unpickling can call any function. So every point is
unpickled here first by a reader that knows a few types of data and, in their place, makes objects that do
nothing: a pickle that names anything else is refused. Nothing but reading happens.
"""

import io
import os

# only to refuse pickles: it makes inert objects alone
import pickle  # nosec B403
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ...support.untrusted_json import read_json
from ..store import StoreError

TABLE = "CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)"  # as qdrant-client creates it
MODELS = "qdrant_client.http.models.models"
# what its versions write: points, and values of payloads that older ones did not turn into JSON
POINT = (MODELS, "PointStruct")
DATA = {POINT, (MODELS, "SparseVector"), ("uuid", "UUID"), ("uuid", "SafeUUID"), ("decimal", "Decimal")}
DATA |= {("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")}
BROKEN = (ValueError, TypeError, KeyError, AttributeError, IndexError, EOFError, OverflowError, MemoryError)


class _Inert:
    """What is made in place of a value: it keeps its state, and does nothing."""

    state: Any = None

    def __init__(self, *_: Any) -> None:
        pass

    def __new__(cls, *_: Any) -> "_Inert":
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _InertPoint(_Inert):
    pass


class _Reader(pickle.Unpickler):
    """Unpickles points without calling anything; it raises where another type or a function is named."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in DATA:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return _InertPoint if (module, name) == POINT else _Inert


def check_folder(folder: Path) -> None:
    """Raise a StoreError where a folder contains anything but points, under names inside of it."""
    for name in _collections(folder):
        if name in ("", ".", "..") or not {os.sep, os.altsep, "\0"}.isdisjoint(name):
            raise StoreError(f"{folder} names a collection {name!r}, which leads out of it. Do not open it.")
        file = folder / "collection" / name / "storage.sqlite"
        if file.exists():
            _check_points(file)


def _collections(folder: Path) -> Iterator[str]:
    try:
        names = read_json(folder / "meta.json")["collections"]
        yield from dict(names)
    except (OSError, RecursionError, *BROKEN) as error:
        raise StoreError(f"{folder} is not a readable Qdrant database: its meta.json ({error}).") from error


def _check_points(file: Path) -> None:
    """Read the file as qdrant-client will, and refuse what is not a point."""
    try:
        # mode=rw, as a journal of an interrupted write may have to be undone before anybody can read
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as database:
            made = database.execute("SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            if any(one != ("table", TABLE) for one in made):  # a view could answer differently next time
                raise StoreError(f"{file} has more than the table of points of qdrant-client: {made}.")
            for (value,) in database.execute("SELECT point FROM points") if made else ():
                _check_point(value)
    except sqlite3.Error as error:
        raise StoreError(f"{file} cannot be read: {error}.") from error
    except (pickle.UnpicklingError, RecursionError, *BROKEN) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            f"{file} contains a point that is not plain data ({error}): qdrant-client would run it. Do not "
            "open this folder with any program, unless you know who made it."
        ) from error


def _check_point(value: bytes) -> None:
    point = _Reader(io.BytesIO(value)).load()
    content = point.state["__dict__"] if isinstance(point, _InertPoint) else {}
    is_named = isinstance(content.get("id"), int | str | _Inert)  # the last: a UUID
    if not (is_named and isinstance(content.get("vector"), list | dict)):
        raise ValueError("no id or no vector")
