"""Repair: what `hubless fit` learns for an index, and all that moving another item takes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..inputs import label_text
from ..movers import Mover
from ..state import describe
from ..stores.store import Batch

METRICS = ("l2", "cosine")  # inner product of unit vectors is cosine


# x / ‖x‖
def unit(X: np.ndarray) -> np.ndarray:
    """Rows of length 1, in their precision; a zero stays one."""
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return (X / np.where(norms > 0, norms, 1.0)[:, None]).astype(X.dtype, copy=False)


# z'' = (1 − s) z' + s q̄
def own_step(moved: np.ndarray, means: np.ndarray, step: float) -> np.ndarray:
    """Items part of the way to the mean of their own queries; in the precision of `moved`."""
    return ((1 - step) * moved + step * means).astype(moved.dtype, copy=False)


@dataclass(frozen=True)
class Own:
    """Items with training queries of their own: they go a step further, toward these."""

    ids: np.ndarray  # (m,), int64 or texts (object), no two alike
    means: np.ndarray  # (m, d), where each would go: q̄ below
    step: float  # from 0 to 1: how much of the way


def _without_moments(told: Any) -> Any:
    if isinstance(told, list):
        return [_without_moments(value) for value in told]
    if not isinstance(told, dict):
        return told
    return {
        name: _without_moments(value)
        for name, value in told.items()
        if not any(word in name for word in ("moments", "mean_weight_"))
    }


@dataclass
class Repair:
    """A fitted mover for the items of an index; queries stay as they are.

    Parameters
    ----------
    mover : a fitted mover without a column of its own
    metric : "l2" or "cosine"
        How the index compares. Under cosine, items are brought to length 1 before and after they are moved.
    label : str or None
        Name of the column with the class of an item, where the mover asks for it.
    own : Own or None
    facts : dict
        What it was learned from and how well it does: plain JSON, for the card.
    """

    mover: Mover
    metric: str = "l2"
    label: str | None = None
    own: Own | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        return int(self.mover.n_features_in_)

    @property
    def hash(self) -> str:
        """What stands for it in the mark of all it moved: that of what it learned and does with it.

        Moments are kept for others to learn from, and change nothing here.
        """
        config, arrays = describe(self.mover)
        told: list[Any] = [config["mover"], config["numbers"], config["classes_"], self.metric, self.label]
        told, arrays = _without_moments(told), _without_moments(arrays)
        if self.own is not None:
            told.append({"ids": self.own.ids.tolist(), "step": self.own.step})
            arrays = {**arrays, "own": self.own.means}
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    # z' = μ + W (z − μ), or as the mover does;  z'' = (1 − s) z' + s q̄ for an item with queries of its own
    def move(self, vectors: Any, ids: Sequence[Any] | None = None, labels: Any = None) -> np.ndarray:
        """Where items go; shape (n, d), in the precision of the input (float32 or float64).

        Parameters
        ----------
        vectors : array of shape (n, d); rows with NaN or infinite numbers stay, under cosine zeros too
        ids : sequence of n ids, needed where items have steps of their own; others go without one
        labels : sequence of n classes, where the mover asks for them; an item of another class stays
        """
        Z = np.asarray(vectors)
        Z = Z if Z.dtype in (np.float32, np.float64) else Z.astype(np.float32)
        there = np.isfinite(Z).all(axis=1)
        if self.metric == "cosine":
            there &= Z.any(axis=1)  # a zero has no direction to move in
        if not there.any():
            return Z.copy()
        if not there.all():
            moved = Z.copy()
            pick = np.flatnonzero(there).tolist()
            some = None if ids is None else [ids[i] for i in pick]
            own_labels = None if labels is None else [labels[i] for i in pick]
            moved[there] = self.move(Z[there], some, own_labels)
            return moved
        Z = unit(Z) if self.metric == "cosine" else Z
        moved = self._by_class(Z, labels) if self.mover._uses_labels else self.mover.move(Z)
        moved = np.asarray(moved, dtype=Z.dtype)
        moved = unit(moved) if self.metric == "cosine" else moved
        return moved if self.own is None else self._step(moved, self.own, ids)

    def move_batch(self, batch: Batch) -> np.ndarray:
        """Where the items of a batch go, which has the column of classes where that is asked for."""
        labels = None if self.label is None else batch.columns[self.label]
        return self.move(batch.vectors, batch.ids.tolist(), labels)

    def n_strange(self, batch: Batch) -> int:
        """Items of a batch that stay, since their class is not known."""
        return 0 if self.label is None else int((~self.knows(batch.columns[self.label])).sum())

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a batch must have to be moved."""
        return () if self.label is None else (self.label,)

    def _by_class(self, Z: np.ndarray, labels: Any) -> np.ndarray:
        """Moved by a mover that asks for classes; they are texts where it learned from texts."""
        if labels is None:
            return np.asarray(self.mover.move(Z))  # which says what it lacks
        known = self.knows(labels)
        is_text = isinstance(self.mover.classes_[0], str)
        y = [
            label_text(value) if is_text else value for value, kept in zip(labels, known, strict=True) if kept
        ]
        moved = Z.copy()
        if known.any():
            moved[known] = self.mover.move(Z[known], np.array(y))
        return moved

    def knows(self, labels: Sequence[Any]) -> np.ndarray:
        """Whether each class is one that the mover learned from; bool (n,). All, where it asks for none."""
        if not self.mover._uses_labels:
            return np.ones(len(labels), dtype=bool)
        classes = set(self.mover.classes_.tolist())
        is_text = any(isinstance(value, str) for value in classes)
        return np.array(
            [(label_text(value) if is_text else value) in classes for value in labels], dtype=bool
        )

    def _step(self, moved: np.ndarray, own: Own, ids: Sequence[Any] | None) -> np.ndarray:
        if ids is None:
            raise ValueError("this model moves some items by their id: give ids, one for each row.")
        places = {
            str(value): i for i, value in enumerate(own.ids.tolist())
        }  # the 7 of JSON is the "7" of CSV
        found = np.array([places.get(str(value), -1) for value in ids], dtype=np.int64)
        rows = found >= 0
        stepped = own_step(moved[rows], own.means[found[rows]], own.step)
        moved = moved.copy()
        moved[rows] = unit(stepped) if self.metric == "cosine" else stepped
        return moved
