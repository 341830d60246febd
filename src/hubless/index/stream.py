"""Move items as they pass by: JSON lines or an Arrow stream in, the same out, with moved vectors."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ..stores.arrow import MARK, as_column, as_matrix, mark_in, vector_column
from ..stores.store import StoreError, need
from .repair import Repair

LINES = 1024  # moved at once
LARGEST = float(np.finfo(np.float32).max)


def move_lines(
    model: Repair, lines: Iterable[str], *, vector: str = "vector", id: str = "id", label: str | None = None
) -> Iterator[str]:
    """JSON objects, one a line, each with its vector moved and the mark of the model."""
    source, number = iter(lines), 0
    label = label or model.label
    while batch := list(islice(source, LINES)):
        texts = [(number + i, line) for i, line in enumerate(batch, 1) if line.strip()]
        number += len(batch)
        rows = [_parsed(line, place, vector) for place, line in texts]
        if not rows:
            continue
        moved = model.move(
            _matrix(rows, texts, vector, model),
            [row.get(id) for row in rows],
            None if label is None else [row.get(label) for row in rows],
        )
        for row, place in zip(rows, moved, strict=True):
            yield json.dumps({**row, vector: place.tolist(), MARK: model.hash[:12]}, ensure_ascii=False)


def _parsed(line: str, place: int, vector: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise StoreError(f"line {place} is not JSON: {error}") from error
    if not isinstance(row, dict) or vector not in row:
        raise StoreError(
            f"line {place} must be an object with {vector!r} (--vector); got {line.strip()[:80]}"
        )
    if MARK in row:
        raise StoreError(f"line {place} was moved already, by model {row[MARK]}. Nothing is moved twice.")
    return row


def _matrix(
    rows: list[dict[str, Any]], texts: list[tuple[int, str]], vector: str, model: Repair
) -> np.ndarray:
    for row, (place, _) in zip(rows, texts, strict=True):
        found = row[vector]
        is_list = isinstance(found, list) and all(
            isinstance(v, int | float) and not isinstance(v, bool) and abs(v) <= LARGEST for v in found
        )
        if not is_list or len(found) != model.dimension:
            raise StoreError(f"line {place}: {vector!r} must be a list of {model.dimension} finite numbers.")
    return np.array([row[vector] for row in rows], dtype=np.float32)


def move_arrow(
    model: Repair,
    source: Any,
    sink: Any,
    *,
    vector: str | None = None,
    id: str = "id",
    label: str | None = None,
) -> int:
    """An Arrow IPC stream moved batch by batch, from a binary file to another; the number of rows."""
    pa = need("pyarrow", "files")
    label, count = label or model.label, 0
    with pa.ipc.open_stream(source) as reader:
        schema = reader.schema
        mark = mark_in(schema, "the stream")
        if mark is not None:
            raise StoreError(f"the stream was moved already, by model {mark.model[:12]}.")
        name = vector_column(schema, vector, "the stream")
        for needed in [label] if model.label is not None else []:
            if needed not in schema.names:
                raise StoreError(f"the model asks for the column {needed!r}; the stream has {schema.names}.")
        place = schema.names.index(name)
        marked = schema.with_metadata({**(schema.metadata or {}), MARK: model.hash[:12]})
        writer = pa.ipc.new_stream(sink, marked)
        for batch in reader:
            vectors = as_matrix(batch.column(place), model.dimension, "the stream")
            if np.isinf(vectors).any():
                raise StoreError(f"a vector after row {count:,} of the stream has infinite numbers.")
            ids = batch.column(id).to_pylist() if id in schema.names else [None] * batch.num_rows
            labels = None if model.label is None else batch.column(label).to_pylist()
            moved = model.move(vectors, ids, labels)
            kind = schema.field(name).type
            column = as_column(pa, moved, kind, str(np.dtype(kind.value_type.to_pandas_dtype())))
            columns = [column if i == place else own for i, own in enumerate(batch.columns)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=marked))
            count += batch.num_rows
        writer.close()  # says that the stream is whole, so only here
    return count
