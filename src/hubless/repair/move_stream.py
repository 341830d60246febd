"""Move a stream of items: JSON lines or an Arrow stream in, the same with moved vectors out."""

import json
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ..stores.arrow_columns import as_column, as_matrix, vector_column, with_width
from ..stores.checks import readable
from ..stores.files.arrow_files import MARK, mark_in
from ..stores.store import StoreError
from ..support.imports import need
from ..support.text import printable, short
from ..support.untrusted_json import parse_json
from .index_items import Model, as_repair
from .repair import Repair

STREAM = "the stream"  # its name in messages
LINES = 1024  # moved at once
LARGEST = float(np.finfo(np.float32).max)


def move_lines(
    model: Model,
    lines: Iterable[str],
    *,
    vector: str | None = None,
    id: str = "id",
    label: str | None = None,
) -> Iterator[str]:
    """Yield JSON objects, one a line, each with its vector moved and the mark of the model.

    Parameters
    ----------
    model : folder, Repair or mover
    lines : iterable of str
        JSON objects, one a line; empty lines are ignored.
    vector, id, label : str
        Fields with the vector, the id and the class; by default "vector", "id" and the one that the model
        learned from.
    """
    repair = as_repair(model)
    source, number, n_unknown = iter(lines), 0, 0
    vector, label = vector or "vector", label or repair.label
    while batch := list(islice(source, LINES)):
        texts = [(number + i, line) for i, line in enumerate(batch, 1) if line.strip()]
        number += len(batch)
        rows = [_parsed(line, place, vector, id, label, repair) for place, line in texts]
        if not rows:
            continue
        labels = None if label is None else [row.get(label) for row in rows]
        is_known = np.ones(len(rows), bool) if labels is None else repair.has_class(labels)
        n_unknown += int((~is_known).sum())
        moved = repair.move(
            np.array([row[vector] for row in rows], dtype=np.float32),
            [row.get(id) for row in rows],
            labels,
        )
        for row, new, was_moved in zip(rows, moved, is_known.tolist(), strict=True):
            mark = {MARK: repair.hash[:12]} if was_moved else {}
            yield json.dumps({**row, vector: new.tolist(), **mark}, ensure_ascii=False)
    _warn_of_unknown(n_unknown, label)


def _warn_of_unknown(count: int, label: str | None) -> None:
    """Warn of items whose class the model does not know."""
    if count:
        items = "1 item is" if count == 1 else f"{count:,} items are"
        warnings.warn(f"{items} not moved: the model does not know the {label} there.", stacklevel=3)


def _parsed(line: str, place: int, vector: str, id: str, label: str | None, model: Repair) -> dict[str, Any]:
    """Return the object of a line; StoreError where it has no vector or class, or is moved already."""
    try:
        row = parse_json(line, any_numbers=True)
    except ValueError as error:
        raise StoreError(f"line {place} is not JSON: {error}") from error
    if not isinstance(row, dict) or vector not in row:
        got = f"it has {short([*row])}" if isinstance(row, dict) else f"got {short(line.strip()[:80])}"
        raise StoreError(f"line {place} must be an object with {vector!r} (--vector); {got}")
    for name in (id, label):
        if isinstance(row.get(name), list | dict):
            raise StoreError(f"line {place}: {name!r} must be a text or a number; got {short(row[name])}.")
    if MARK in row:
        earlier = short(row[MARK])
        raise StoreError(f"line {place} is already moved, by model {earlier}. Nothing is moved twice.")
    values = row[vector]
    is_list = isinstance(values, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and abs(v) <= LARGEST for v in values
    )
    if not is_list or len(values) != model.dimension:
        raise StoreError(f"line {place}: {vector!r} must be a list of {model.dimension} finite numbers.")
    if model.label is not None and label not in row:
        raise StoreError(
            f"line {place} has no {label!r}, the class that the model moves an item by; it has "
            f"{short([*row])}. Name the field of classes: --label FIELD."
        )
    return row


def _batches(reader: Any) -> Iterator[Any]:
    """Yield the batches of a stream, checked: offsets in a damaged one would lead out of it."""
    while True:
        with readable(STREAM):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            batch.validate(full=True)
        yield batch


def move_arrow(
    model: Model,
    source: Any,
    sink: Any,
    *,
    vector: str | None = None,
    id: str = "id",
    label: str | None = None,
) -> int:
    """Move an Arrow IPC stream batch by batch, from a binary file to another; return the number of rows.

    Lists of a fixed size get the width of moved vectors.

    Parameters
    ----------
    model : folder, Repair or mover
    source, sink : binary files
    vector, id, label : str
        Columns with the vectors, the ids and the classes; by default the only column of vectors, "id" and
        the one that the model learned from.
    """
    pa, repair = need("pyarrow", "files"), as_repair(model)
    label, count, n_unknown = label or repair.label, 0, 0
    with readable(STREAM):
        opened = pa.ipc.open_stream(source)
    with opened as reader:
        schema = reader.schema
        if len(set(schema.names)) < len(schema.names):
            raise StoreError(f"{STREAM} has two columns of one name: {short(schema.names)}. Rename one.")
        mark = mark_in(schema, STREAM)
        if mark is not None:
            raise StoreError(
                f"the stream is already moved, by model {printable(mark.model[:12])}. Nothing is moved twice."
            )
        name = vector_column(schema, vector, STREAM)
        if repair.label is not None and label not in schema.names:
            raise StoreError(f"the model needs the column {label!r}; the stream has {schema.names}.")
        place = schema.names.index(name)
        field = with_width(schema.field(name), repair.width)
        marked = schema.set(place, field).with_metadata({**(schema.metadata or {}), MARK: repair.hash[:12]})
        writer = pa.ipc.new_stream(sink, marked)
        for batch in _batches(reader):
            vectors = as_matrix(batch.column(place), repair.dimension, STREAM)
            if np.isinf(vectors).any():
                raise StoreError(
                    f"a vector after row {count:,} of the stream has infinite numbers. Repair or remove it."
                )
            ids = batch.column(id).to_pylist() if id in schema.names else [None] * batch.num_rows
            labels = None if repair.label is None else batch.column(label).to_pylist()
            n_unknown += 0 if labels is None else int((~repair.has_class(labels)).sum())
            moved = repair.move(vectors, ids, labels)
            column = as_column(moved, field.type)
            columns = [column if i == place else other for i, other in enumerate(batch.columns)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=marked))
            count += batch.num_rows
        writer.close()  # writes the end mark, which only a complete stream may have
    _warn_of_unknown(n_unknown, label)
    return count
