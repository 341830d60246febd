"""Say what a saved model is: how it moves, what it was learned from, how good it was, what queries need."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..support.text import printable_lines
from .index_items import as_model
from .repair import Repair

FACTS = {"n_neighbors": "neighbours that vote", "n_neighbors before": "neighbours that vote, without moving"}


class Explanation(NamedTuple):
    """What a model is, in words and as facts."""

    model: str
    lines: list[str]  # what it does, how it was chosen and what queries need
    facts: dict[str, Any]  # what it was learned from
    figures: list[dict[str, Any]]  # measured when it was learned: before and after
    hash: str | None  # identifies the model in everything that it moved

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return self._asdict()

    def __str__(self) -> str:
        facts = [f"  {FACTS.get(name, name)}: {_shown(value)}" for name, value in self.facts.items()]
        learned = ["learned:", *facts] if facts else []
        figures = ["measured on queries that were held out:"] if self.figures else []
        identity = [] if self.hash is None else [f"hash: {self.hash}"]
        lines = [self.model, *self.lines, *learned, *figures, *map(_figure, self.figures), *identity]
        return printable_lines(lines)  # a model may be untrusted


def explain_model(model: Any) -> Explanation:
    """Return what a model is.

    Parameters
    ----------
    model : folder, Repair, mover or classifier

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.movers import MoveLabeled
    >>> from hubless.repair import Repair, explain_model
    >>> model = Repair(MoveLabeled().fit(np.array([[0.0], [1.0], [5.0]]), [0, 0, 1]))
    >>> explain_model(model).lines[0]
    'Items are moved by MoveLabeled().'
    """
    loaded = as_model(model)
    if isinstance(loaded, Repair):
        return _explain_repair(loaded)
    words = loaded.explain().split("\n") if hasattr(loaded, "explain") else []
    lines = [f"{loaded!r}", *words, f"For vectors of {loaded.n_features_in_:,} columns."]
    return Explanation(f"{type(loaded).__name__}, saved by hubless.save", lines, {}, [], None)


def _explain_repair(model: Repair) -> Explanation:
    learned = dict(model.learned)
    chosen = learned.pop("chosen by", None)
    lines = [f"Items are moved by {learned.pop('mover', None) or repr(model.mover)}."]
    if model.correction is not None:
        lines = [*(lines if not model.moves_nothing else []), f"Items are corrected by {model.correction!r}."]
    if model.steps is not None:
        lines.append(
            f"{len(model.steps.ids):,} items take a step of their own; they are recognised by their ids."
        )
    if model.moves_nothing:
        lines = ["Not moving was the best choice: keep the index as it is."]
    lines += [] if chosen is None else [str(chosen)]
    lines.append(model.query_note or f"Queries of {model.query_width:,} columns stay as they are.")
    if model.label is not None:
        lines.append(f"An item is moved by its class, in the column {model.label!r}.")
    data = model.facts.get("data")
    every = {**(data if isinstance(data, Mapping) else {}), **learned}
    facts = {name: value for name, value in every.items() if isinstance(value, str | int | float)}
    figures = model.facts.get("figures")
    rows = [dict(row) for row in figures if isinstance(row, Mapping)] if isinstance(figures, list) else []
    title = f"A model of `hubless fit` for an index that compares by {model.stored_metric}."
    return Explanation(title, lines, facts, rows, model.hash)


def _shown(value: Any) -> str:
    """Return a fact as text; a number that is not whole has three digits."""
    return f"{value:.3g}" if isinstance(value, float) else f"{value}"


def _figure(row: Mapping[str, Any]) -> str:
    """Return a figure before and after, on a line; what is not a number is left out."""
    before, after, low, high = (row.get(name) for name in ("before", "after", "low", "high"))
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return f"  {row.get('measure')}"
    interval = ""
    if isinstance(low, int | float) and isinstance(high, int | float):
        interval = f" (95 % interval of the change {low:+.3f} to {high:+.3f})"
    part = row.get("part")
    where = "" if part in (None, "all") else f", {part}"
    return f"  {row.get('measure')}{where}: {before:.3f} → {after:.3f}{interval}"
