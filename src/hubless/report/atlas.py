"""The points of the page as a Parquet file that embedding-atlas opens, items first, then queries.

embedding-atlas is a viewer of its own (`pip install embedding-atlas`); hubless does not need it. It counts
rows from 0, and its neighbours of a row are {"ids": rows, "distances": …}, nearest first.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..download import replacing
from ..plain import encodable
from ..stores.store import need

OURS = b"hubless"  # in the metadata of what we wrote
Texts = Sequence[str | None]
Pair = tuple[np.ndarray, np.ndarray]  # before, after


class AtlasItems(NamedTuple):
    """The stored vectors, n of them."""

    ids: Sequence[Any]
    places: Pair  # (n, 2) each: where they are drawn
    occurrence: Pair  # (n,) each: N10, over all queries
    wrong: Pair | None = None  # (n,) each: of these, for how many queries it is a wrong answer
    texts: Texts | None = None
    labels: Texts | None = None
    mean: float | None = None  # N10 of all items on average, where these are only some of them


class AtlasQueries(NamedTuple):
    """The queries, m of them, which stay where they are."""

    ids: Sequence[Any]
    places: np.ndarray  # (m, 2)
    neighbors: np.ndarray  # (m, k), after moving: places among the items, nearest first; −1: none
    distances: np.ndarray  # (m, k), of these
    right: Pair | None = None  # (m,) booleans each: whether it is answered rightly
    texts: Texts | None = None
    labels: Texts | None = None


def check_atlas(path: str | Path) -> Path:
    """The file to write; ValueError where there is one that is not ours: nobody's data is written over."""
    parquet, path = need("pyarrow.parquet", "files"), Path(path).expanduser()
    if not path.exists():
        return path
    try:
        ours = OURS in (parquet.read_schema(path).metadata or {})
    except (OSError, ValueError):  # a folder, or no Parquet at all
        ours = False
    if not ours:
        raise ValueError(f"{path} is there and no table of hubless: give another name, or remove it.")
    return path


def write_atlas(path: str | Path, items: AtlasItems, queries: AtlasQueries | None = None) -> str:
    """Write the file, over one of ours that is there, and return the command that opens it."""
    pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
    path = check_atlas(path)
    _check(items)
    if queries is not None:
        _check(queries)
    columns = _columns(pyarrow, items, queries)
    table = pyarrow.table(columns).replace_schema_metadata({OURS: b"atlas"})
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        parquet.write_table(table, file, compression="zstd")
    command = ["embedding-atlas", str(path), "--x", "x_after", "--y", "y_after"]
    command += ["--text", "text"] if "text" in columns else []
    command += ["--neighbors", "neighbors"] if "neighbors" in columns else []
    return shlex.join(command)


def _columns(pyarrow: Any, items: AtlasItems, queries: AtlasQueries | None) -> dict[str, Any]:
    """Columns of n + m rows; what a row does not have is null, what nobody has is no column."""
    n, m = len(items.ids), len(queries.ids) if queries else 0
    columns = {
        "id": pyarrow.array([_writable(key) for key in [*items.ids, *(queries.ids if queries else [])]]),
        "kind": pyarrow.array(["item"] * n + ["query"] * m),
    }
    for name in ("text", "label"):
        of_items = getattr(items, f"{name}s")
        of_queries = getattr(queries, f"{name}s", None)
        if of_items is not None or of_queries is not None:
            values = [None] * n if of_items is None else list(of_items)
            values += [None] * m if of_queries is None else list(of_queries)
            columns[name] = pyarrow.array([_writable(value) for value in values], pyarrow.string())
    # embedding-atlas draws a chart of each column, in this order
    for state, name in enumerate(("before", "after")):
        counts = np.asarray(items.occurrence[state])
        columns[f"n10_{name}"] = _of_items(pyarrow, counts.astype(np.int32), m)
        # A hub, as in `hub_occurrence`: N10 of at least twice the mean
        mean = counts.mean() if items.mean is None else items.mean
        columns[f"is_hub_{name}"] = _of_items(pyarrow, (counts > 0) & (counts >= 2 * mean), m)
        if items.wrong is not None:
            columns[f"wrong_share_{name}"] = _wrong_share(pyarrow, items.wrong[state], counts, m)
        if queries is not None and queries.right is not None:
            words = np.where(queries.right[state], "right", "wrong").tolist()
            columns[f"answer_{name}"] = pyarrow.array([None] * n + words)
    for state, name in enumerate(("before", "after")):
        places = np.vstack([items.places[state], *([queries.places] if queries else [])]).astype(np.float32)
        columns[f"x_{name}"], columns[f"y_{name}"] = map(pyarrow.array, places.T)
    if queries is not None:
        columns["neighbors"] = _neighbors(pyarrow, n, queries)
    return columns


def _of_items(pyarrow: Any, values: np.ndarray, m: int) -> Any:
    """A column of the items, null at the m queries."""
    return pyarrow.concat_arrays([(own := pyarrow.array(values)), pyarrow.nulls(m, own.type)])


def _wrong_share(pyarrow: Any, wrong: np.ndarray, counts: np.ndarray, m: int) -> Any:
    """Wrong answers among the answers that an item is; null where it is none."""
    share = np.asarray(wrong) / np.maximum(counts, 1)
    shares = pyarrow.array(share.astype(np.float32), mask=counts == 0)
    return pyarrow.concat_arrays([shares, pyarrow.nulls(m, shares.type)])


def _neighbors(pyarrow: Any, n: int, queries: AtlasQueries) -> Any:
    """Of a query its nearest items, of an item the queries that find it; embedding-atlas fails on nulls."""
    near = np.asarray(queries.neighbors)
    asked, rank = np.nonzero(near >= 0)
    found, apart = near[asked, rank], np.asarray(queries.distances)[asked, rank]
    start, end = np.concatenate([asked + n, found]), np.concatenate([found, asked + n])
    apart = np.concatenate([apart, apart])
    order = np.lexsort((end, apart, start))
    offsets = np.searchsorted(start[order], np.arange(n + len(queries.ids) + 1))
    offsets = pyarrow.array(offsets.astype(np.int32))
    ids = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(end[order].astype(np.int32)))
    distances = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(apart[order].astype(np.float32)))
    return pyarrow.StructArray.from_arrays([ids, distances], ["ids", "distances"])


def _writable(value: Any) -> str | None:
    """As a text that a file can hold."""
    return None if value is None else encodable(str(value))


def _check(part: AtlasItems | AtlasQueries) -> None:
    """Every field has a row per id."""
    for name, value in part._asdict().items():
        for field in value if isinstance(value, tuple) else (value,):
            if name != "mean" and field is not None and len(field) != len(part.ids):
                raise ValueError(
                    f"{name} of {type(part).__name__} has {len(field)} rows, its ids {len(part.ids)}; "
                    "give as many of each."
                )
