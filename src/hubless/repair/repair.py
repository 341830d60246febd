"""Repair: the model that `hubless fit` learns for an index; it moves items, now and later."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays.inputs import have_length, label_text
from ..calibration.item_scores import ItemScores
from ..corrections import Correction
from ..movers import Mover, Stay
from ..neighbors.knn import unit
from ..saving.state import describe
from ..selection.pair_map import step_toward
from ..stores.store import Batch
from ..support.text import short
from .item_steps import ItemSteps
from .plain_facts import without_moments
from .repair_card import repair_card
from .repair_state import describe_repair, restored_parts

UNMOVED = ("no vector", "infinite", "too large", "zero", "unknown class")  # why an item may stay as it is


@dataclass
class Repair:
    """A fitted mover for the items of an index; queries are never moved.

    Parameters
    ----------
    mover : a fitted mover that adds no column
    metric : "l2", "cosine" or "ip"
        How the index compares. Under cosine, items are brought to length 1 before and after they are moved;
        under inner product, of vectors of any length, they can be corrected and not moved.
    label : str or None
        Name of the column with the class of an item, where the mover needs it.
    steps : ItemSteps or None
        Steps of single items, which are recognised by their ids.
    facts : dict, in plain JSON: what it was learned from and how good it is, for the card
    correction : Correction or None
        What is written into the vectors last, learned from a log of queries.
    scores : ItemScores or None
        What held-out queries taught about answers: probabilities of classes, and of relevance.

    Examples
    --------
    >>> from hubless.movers import Shrink
    >>> Repair(Shrink(0.5).fit([[0.0], [4.0]], ["a", "a"]), label="kind").move([[0.0]], labels=["a"])
    array([[1.]])
    """

    mover: Mover
    metric: str = "l2"
    label: str | None = None
    steps: ItemSteps | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    correction: Correction | None = None
    scores: ItemScores | None = None

    def __post_init__(self) -> None:
        if self.mover._adds_column:
            raise ValueError(
                f"{self.mover!r} adds a column to stored vectors, which queries of an index lack. A model "
                "for an index is made by `hubless fit`."
            )
        if self.mover._gives_order_alone and self.metric != "l2":
            raise ValueError(
                f"{self.mover!r} moves vectors for an index that compares by Euclidean distance; got "
                f"metric={self.metric!r}. Use a mover without WithoutColumn."
            )
        if self.metric == "ip" and not isinstance(self.mover, Stay):
            raise ValueError(
                f"moved vectors are shorter and lose answers by inner product; got {self.mover!r}. Use L2 or "
                "cosine, or a correction alone."
            )
        if self.correction is not None:
            _check_correction(self.correction, self.metric, self.mover._width)

    @property
    def stored_metric(self) -> str:
        """How an index must compare moved items."""
        return self.metric if self.correction is None else self.correction.metric

    @property
    def dimension(self) -> int:
        """Columns of the vectors that it moves."""
        return int(self.mover.n_features_in_)

    @property
    def query_width(self) -> int:
        """Columns of queries as they are asked."""
        return self.mover._width

    @property
    def width(self) -> int:
        """Columns of moved vectors: as many as queries have, or one more, in which queries get a 0."""
        return self.query_width + (self.correction is not None and self.correction.column)

    @property
    def is_between_spaces(self) -> bool:
        """Whether items are compared with queries only once they are moved: before, widths differ."""
        return self.query_width != self.dimension

    @property
    def query_note(self) -> str | None:
        """What whoever asks must know where items get another width; None where they keep theirs."""
        if self.width > self.query_width:
            return (
                f"Moved items have one column more, {self.width}: append a 0 to every query of "
                f"{self.query_width} columns."
            )
        if self.is_between_spaces:
            return (
                f"Items of {self.dimension} columns become vectors of {self.width}, in the space of the "
                f"queries: ask with queries of {self.width} columns, as they are."
            )
        return None

    def as_queries(self, queries: np.ndarray) -> np.ndarray:
        """Return queries as moved items are compared with them: with a 0 in the column that was added."""
        added = self.width - self.query_width
        return np.pad(queries, ((0, 0), (0, added))) if added else queries

    @property
    def moves_nothing(self) -> bool:
        """Whether not moving was the best choice."""
        return isinstance(self.mover, Stay) and self.steps is None and self.correction is None

    @property
    def hash(self) -> str:
        """A hash that identifies the model in the mark of everything it moved.

        It depends on what changes how items are moved; moments, facts and scores do not.
        """
        node, arrays = describe(self.mover)
        content: list[Any] = [node["class"], node["parameters"], node["learned"], node["classes_"]]
        content, arrays = without_moments([*content, self.metric, self.label]), without_moments(arrays)
        if self.steps is not None:
            content.append({"ids": self.steps.ids.tolist(), "step": self.steps.step})
            arrays = {**arrays, "steps": self.steps.means}
        if self.correction is not None:
            node, more = describe(self.correction)
            content.append([node["class"], node["parameters"], node["learned"]])
            arrays = {**arrays, **{f"correction.{name}": array for name, array in more.items()}}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    @property
    def learned(self) -> dict[str, Any]:
        """Its facts about the learning, where it has some."""
        return dict(self.facts.get("learned", {}))

    @property
    def fingerprint(self) -> str | None:
        """A hash that identifies the data it was learned from, where its facts have one."""
        data = self.facts.get("data")
        value = data.get("fingerprint") if isinstance(data, dict) else None
        return value if isinstance(value, str) else None

    # z' = μ + W (z − μ), or as the mover does;  z'' = (1 − s) z' + s q̄ for an item that has queries;  then
    # the correction, so that queries are compared by g s(q, z'') − b
    def move(self, vectors: Any, ids: Sequence[Any] | None = None, labels: Any = None) -> np.ndarray:
        """Move items; the result has `width` columns and the precision of the input (float32 or float64).

        Parameters
        ----------
        vectors : array of shape (n, d)
            Rows with NaN or infinite numbers, or too large for their squares, are not moved, nor are zero
            rows under cosine; where items get another width, the former become NaN and the latter stay 0.
        ids : sequence of n ids, optional
            Needed where the model has steps of single items.
        labels : sequence of n classes, optional
            Needed where the mover needs them; an item of an unknown class is not moved.
        """
        Z = np.asarray(vectors)
        Z = Z if Z.dtype in (np.float32, np.float64) else Z.astype(np.float32)
        can_move = have_length(Z)
        if self.metric == "cosine":
            can_move &= Z.any(axis=1)  # a zero has no direction to move in
        if not can_move.any():
            return self._unmoved(Z)
        if not can_move.all():
            moved, rows = self._unmoved(Z), np.flatnonzero(can_move).tolist()
            moved[can_move] = self.move(Z[can_move], _take(ids, rows), _take(labels, rows))
            return moved
        Z = unit(Z) if self.metric == "cosine" else Z
        moved = self._by_class(Z, labels) if self.mover._uses_labels else self.mover.move(Z)
        moved = np.asarray(moved, dtype=Z.dtype)
        moved = unit(moved) if self.metric == "cosine" else moved
        moved = moved if self.steps is None else self._step(moved, self.steps, ids)
        return moved if self.correction is None else self.correction.move(moved)

    def move_batch(self, batch: Batch) -> np.ndarray:
        """Move the items of a batch, which has the column of classes where the mover needs it."""
        labels = None if self.label is None else batch.columns[self.label]
        return self.move(batch.vectors, batch.ids.tolist(), labels)

    def count_unmoved(self, batch: Batch) -> np.ndarray:
        """Return how many items of a batch are not moved, for each reason in UNMOVED; int64."""
        Z, none = batch.vectors, np.zeros(len(batch.ids), dtype=bool)
        is_zero = ~Z.any(axis=1) if self.metric == "cosine" else none
        is_unknown = none if self.label is None else ~self.has_class(batch.columns[self.label])
        has_nan, has_infinite = np.isnan(Z).any(axis=1), np.isinf(Z).any(axis=1)
        reasons = [has_nan, has_infinite, ~have_length(Z), is_zero, is_unknown]
        first = np.select(reasons, range(len(reasons)), len(reasons))
        return np.bincount(first, minlength=len(reasons) + 1)[: len(reasons)]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a batch must have to be moved."""
        return () if self.label is None else (self.label,)

    def has_class(self, labels: Sequence[Any]) -> np.ndarray:
        """Return whether the mover learned from each class; bool (n,). All true where it needs none."""
        if not self.mover._uses_labels:
            return np.ones(len(labels), dtype=bool)
        classes = set(self.mover.classes_.tolist())
        return np.array([label in classes for label in self._as_learned(labels)], dtype=bool)

    def _as_learned(self, labels: Sequence[Any]) -> list[Any]:
        """Return labels as texts where the mover learned from texts."""
        is_text = isinstance(self.mover.classes_[0], str)
        return [label_text(label) if is_text else label for label in labels]

    def _by_class(self, Z: np.ndarray, labels: Any) -> np.ndarray:
        """Move by a mover that needs classes."""
        if labels is None:
            return np.asarray(self.mover.move(Z))  # raises an error that says what is missing
        known, moved = self.has_class(labels), self._unmoved(Z)
        if known.any():
            y = _take(self._as_learned(labels), np.flatnonzero(known).tolist())
            moved[known] = self.mover.move(Z[known], np.array(y))
        return moved

    def _unmoved(self, Z: np.ndarray) -> np.ndarray:
        """Return items as they are; of another width, only a zero can be kept."""
        if self.width == Z.shape[1]:
            return Z.copy()
        rows = np.where(Z.any(axis=1, keepdims=True), np.nan, 0)
        return np.broadcast_to(rows, (len(Z), self.width)).astype(Z.dtype)

    def _step(self, moved: np.ndarray, steps: ItemSteps, ids: Sequence[Any] | None) -> np.ndarray:
        if ids is None:
            raise ValueError("this model moves single items by their ids: give ids, one for each row.")
        # as texts, so that the 7 of JSON equals the "7" of CSV
        places = {str(value): i for i, value in enumerate(steps.ids.tolist())}
        goals = np.array([places.get(str(value), -1) for value in ids], dtype=np.int64)
        has_step = goals >= 0
        stepped = step_toward(moved[has_step], steps.means[goals[has_step]], steps.step)
        moved = moved.copy()
        moved[has_step] = unit(stepped) if self.metric == "cosine" else stepped
        return moved

    # --- for saving: it is not an estimator, so it describes itself -----------------------------------------

    def _describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return describe_repair(self)

    @staticmethod
    def _restore(node: Any, arrays: dict[str, np.ndarray], device: str) -> "Repair":
        return Repair(**restored_parts(node, arrays, device))

    def _card(self) -> list[str]:
        return repair_card(self)


def _check_correction(correction: Any, metric: str, width: int) -> None:
    """Refuse what is no correction, or one for other vectors."""
    if not isinstance(correction, Correction):
        raise ValueError(f"its correction is {short(correction)}; expected one of hubless.corrections.")
    # items of length 1 have the same neighbours by L2, where a correction is more exact
    allowed = ("cosine", "l2") if metric == "cosine" else (metric,)
    if correction.metric not in allowed or correction.n_features_in_ != width:
        raise ValueError(
            f"its correction is for {correction.metric} and {correction.n_features_in_} columns; expected "
            f"{metric} and {width}."
        )


def _take(values: Any, rows: list[int]) -> list[Any] | None:
    return None if values is None else [values[row] for row in rows]
