"""The card of a Repair: what it was learned from, its figures, and how to use it."""

from collections.abc import Mapping
from typing import Any

from ..movers import Stay
from ..saving.card import escape, heading, python_code, shown_value, table_row


def repair_card(model: Any) -> list[str]:
    """Return the parts of README.md."""
    parts = [*heading(model, _shown(model)), *_learned_from(model.facts), *_figures(model.facts)]
    return [*parts, _use_repair(model)]


def _shown(model: Any) -> Any:
    """Return what moves items: the mover, or the correction where the mover does nothing."""
    alone = isinstance(model.mover, Stay) and model.correction is not None
    return model.correction if alone else model.mover


def _learned_from(facts: Mapping[str, Any]) -> list[str]:
    """Return lists of the facts about the data and about the learning."""
    parts = []
    for title, name in (("Data", "data"), ("Learned", "learned")):
        values = facts.get(name)
        if isinstance(values, Mapping) and values:
            shown = {key: value for key, value in values.items() if not isinstance(value, list | Mapping)}
            lines = "\n".join(f"- {escape(key)}: {shown_value(value)}" for key, value in shown.items())
            parts.append(f"{title}:\n\n{lines}")
    return parts


def _figures(facts: Mapping[str, Any]) -> list[str]:
    """Return a table of figures before and after."""
    figures = facts.get("figures")
    rows = [row for row in figures if isinstance(row, Mapping)] if isinstance(figures, list) else []
    if not rows:
        return []
    titles = ("Measure", "Part", "Queries", "Before", "After", "95 % interval of after − before")
    lines = [table_row(titles), table_row(["---"] * len(titles))]
    for row in rows:
        cells = [shown_value(row.get(name)) for name in ("measure", "part", "n", "before", "after")]
        low, high = (shown_value(row.get(name)) for name in ("low", "high"))
        lines.append(table_row([*cells, f"{low} to {high}" if low and high else ""]))
    return ["\n".join(lines)]


def _use_repair(model: Any) -> str:
    lengths = " Items are brought to length 1 before and after." if model.metric == "cosine" else ""
    arguments = ["vectors"]
    if model.steps is not None or model.label is not None:
        arguments.append("ids" if model.steps is not None else "None")
    if model.label is not None:
        arguments.append("labels")
    code = python_code(
        'model = hubless.load("path/to/this/folder")',
        f"stored = model.move({', '.join(arguments)})  # items, one a row",
    )
    label = f" Its classes are in the column {escape(model.label)}." if model.label is not None else ""
    purpose = f"It moves the items of an index by {model.metric}"
    if model.correction is not None:
        purpose += f", and corrects them by {escape(model.correction)}"
    queries = f". {model.query_note}" if model.query_note else "; queries stay as they are."
    return f"{purpose}{queries}{lengths}{label}\n\n{code}"
