"""A Parquet file of points that embedding-atlas opens: every item and query by PCA, else those on the map.

embedding-atlas is a separate viewer (`pip install embedding-atlas`) that hubless does not need. It counts
rows from 0, and its neighbours of a row are {"ids": rows, "distances": …}, nearest first.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation import Answers, BeforeAfter, Evaluation
from ..support.commands import quoted
from ..support.imports import need
from ..support.outputs import check_output, real_path
from ..support.text import encodable
from ..support.writing import new_file
from .details import Captions
from .map_layout import DrawnMap, map_of_all, places_of
from .marks import count_occurrence

KEY, KIND = b"hubless", b"atlas"  # in the metadata of such a file


def check_atlas(path: str | os.PathLike[str]) -> Path:
    """Return where a table is written, links followed; OSError where it cannot be.

    ValueError where the file exists and is not such a table: no data is overwritten.
    """
    parquet, file = need("pyarrow.parquet", "files"), real_path(path)
    if file.exists() and not _is_ours(parquet, file):
        raise ValueError(f"{path} exists and is not a table of hubless: give another name, or remove it.")
    return check_output(path)


def _is_ours(parquet: Any, file: Path) -> bool:
    """Return whether a file is a table for embedding-atlas; a moved index has another value under the key."""
    try:
        return bool((parquet.read_schema(file).metadata or {}).get(KEY) == KIND)
    except (OSError, ValueError):  # a folder, or not a Parquet file
        return False


def write_atlas(
    path: str | os.PathLike[str], evaluation: Evaluation, captions: Captions, drawn: DrawnMap
) -> str:
    """Write the file, replacing an older one of hubless, and return the command that opens it."""
    pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
    file_path = check_atlas(path)
    drawn = map_of_all(evaluation.answers, drawn)
    columns = _describe_points(pyarrow, evaluation.answers, captions, drawn)
    # embedding-atlas draws a chart of each column, in this order
    columns |= _measure_points(pyarrow, evaluation, drawn)
    coordinates = np.vstack(drawn.points).astype(np.float32)
    columns |= {axis: pyarrow.array(coordinates[:, i]) for i, axis in enumerate("xy")}
    columns["neighbors"] = _neighbors(pyarrow, evaluation.answers, drawn)
    table = pyarrow.table(columns).replace_schema_metadata({KEY: KIND})
    file_path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(file_path) as file:
        parquet.write_table(table, file, compression="zstd")
    shown = str(Path(os.path.expanduser(path)))
    shown = f"./{shown}" if shown.startswith("-") else shown
    command = ["embedding-atlas", shown, "--x", "x", "--y", "y"]
    command += ["--text", "text"] if "text" in columns else []
    return " ".join(map(quoted, [*command, "--neighbors", "neighbors"]))


def _describe_points(pyarrow: Any, answers: Answers, captions: Captions, drawn: DrawnMap) -> dict[str, Any]:
    """Return ids, texts and classes of items, then of queries; a column that all lack is left out."""
    columns = {
        "id": (captions.ids, captions.query_ids),
        "kind": (["item"] * len(captions.ids), ["query"] * len(captions.query_ids)),
        "text": (captions.texts, captions.query_texts),
        "label": (answers.labels, answers.truth),
    }
    return {
        name: pyarrow.array(_take(of_items, drawn.items) + _take(of_queries, drawn.queries), pyarrow.string())
        for name, (of_items, of_queries) in columns.items()
        if of_items is not None or of_queries is not None
    }


def _take(values: Any, rows: np.ndarray) -> list[str | None]:
    """Return values of some rows as texts that a file can hold; None for a missing one."""
    chosen = [None if values is None else values[row] for row in rows.tolist()]
    return [None if value is None else encodable(str(value)) for value in chosen]


def _measure_points(pyarrow: Any, evaluation: Evaluation, drawn: DrawnMap) -> dict[str, Any]:
    """Return N10 and wrong answers of items, null for queries, and answers to queries, null for items."""
    counts, columns = count_occurrence(evaluation), dict[str, Any]()
    n, m = len(drawn.items), len(drawn.queries)

    def of_items(values: np.ndarray, **options: Any) -> Any:
        column = pyarrow.array(values[drawn.items], **options)
        return pyarrow.concat_arrays([column, pyarrow.nulls(m, column.type)])

    for i, state in enumerate(BeforeAfter._fields):
        occurrence = counts.all[i]
        is_hub = occurrence >= evaluation.chance.threshold
        wrong_share = (counts.missed[i] / np.maximum(occurrence, 1)).astype(np.float32)
        answers = np.where(evaluation.answers.correct[i][drawn.queries], "right", "wrong")
        columns |= {
            f"n10_{state}": of_items(occurrence.astype(np.int32)),
            f"is_hub_{state}": of_items(is_hub),
            f"wrong_share_{state}": of_items(wrong_share, mask=occurrence[drawn.items] == 0),
            f"answer_{state}": pyarrow.array([None] * n + answers.tolist()),
        }
    return columns


def _neighbors(pyarrow: Any, answers: Answers, drawn: DrawnMap) -> Any:
    """Return the nearest items of queries and the queries that find items; embedding-atlas fails on nulls."""
    n, m = len(drawn.items), len(drawn.queries)
    near = places_of(answers.neighbors.after[drawn.queries], drawn.items)
    query, rank = np.nonzero(near >= 0)
    item, distance = near[query, rank], _distances(answers, drawn.queries)[query, rank]
    start, end = np.concatenate([query + n, item]), np.concatenate([item, query + n])
    distance = np.concatenate([distance, distance])
    order = np.lexsort((end, distance, start))
    offsets = pyarrow.array(np.searchsorted(start[order], np.arange(n + m + 1)).astype(np.int32))
    ids = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(end[order].astype(np.int32)))
    distances = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(distance[order].astype(np.float32)))
    return pyarrow.StructArray.from_arrays([ids, distances], ["ids", "distances"])


def _distances(answers: Answers, rows: np.ndarray) -> np.ndarray:
    """Return distances of queries to their moved neighbours, −⟨x, z⟩ by inner product; (m, h)."""
    after, d = answers.stored.after, answers.queries.shape[1]
    distances = []
    for row in rows.tolist():  # a query at a time: all differences at once would not fit
        near = after[answers.neighbors.after[row]].astype(np.float64)
        if answers.metric == "ip":
            distances.append(-near @ answers.queries[row])
            continue
        near[:, :d] -= answers.queries[row]
        distances.append(np.linalg.norm(near, axis=1))
    return np.array(distances)
