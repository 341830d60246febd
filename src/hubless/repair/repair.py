"""Repair: the model that `hubless fit` learns for an index; it moves items, now and later."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays.inputs import check_choice, check_fraction, label_text
from ..movers import Mover, Stay
from ..neighbors.knn import unit
from ..saving.state import check_array, describe, restore
from ..saving.untrusted import parse_json
from ..saving.values import array_of, check_names, plain, plain_array, value_of
from ..selection.pair_map import step_toward
from ..stores.store import Batch
from ..support.text import short
from .repair_card import repair_card

METRICS = ("l2", "cosine")  # inner product of unit vectors is cosine


@dataclass(frozen=True)
class ItemSteps:
    """Steps of items that have training queries: they move further, toward these queries."""

    ids: np.ndarray  # (m,), int64 or texts (object), all different
    means: np.ndarray  # (m, d), the goal of each: q̄ in `Repair.move`
    step: float  # from 0 to 1: the share of the way


@dataclass
class Repair:
    """A fitted mover for the items of an index; queries stay as they are.

    Parameters
    ----------
    mover : a fitted mover that adds no column
    metric : "l2" or "cosine"
        How the index compares. Under cosine, items are brought to length 1 before and after they are moved.
    label : str or None
        Name of the column with the class of an item, where the mover needs it.
    steps : ItemSteps or None
        Steps of single items, which are recognised by their ids.
    facts : dict
        What it was learned from and how good it is, in plain JSON, for the card.
    """

    mover: Mover
    metric: str = "l2"
    label: str | None = None
    steps: ItemSteps | None = None
    facts: dict[str, Any] = field(default_factory=dict)

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

    @property
    def dimension(self) -> int:
        """Columns of the vectors that it moves."""
        return int(self.mover.n_features_in_)

    @property
    def width(self) -> int:
        """Columns of moved vectors, and of queries."""
        return self.mover._width

    @property
    def moves_nothing(self) -> bool:
        """Whether not moving was the best choice."""
        return isinstance(self.mover, Stay) and self.steps is None

    @property
    def hash(self) -> str:
        """A hash that identifies the model in the mark of everything it moved.

        It depends on what changes how items are moved; moments and facts do not.
        """
        node, arrays = describe(self.mover)
        content: list[Any] = [node["class"], node["parameters"], node["learned"], node["classes_"]]
        content, arrays = _without_moments([*content, self.metric, self.label]), _without_moments(arrays)
        if self.steps is not None:
            content.append({"ids": self.steps.ids.tolist(), "step": self.steps.step})
            arrays = {**arrays, "steps": self.steps.means}
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

    # z' = μ + W (z − μ), or as the mover does;  z'' = (1 − s) z' + s q̄ for an item that has queries
    def move(self, vectors: Any, ids: Sequence[Any] | None = None, labels: Any = None) -> np.ndarray:
        """Move items; the result has shape (n, d) and the precision of the input (float32 or float64).

        Parameters
        ----------
        vectors : array of shape (n, d)
            Rows with NaN or infinite numbers are not moved, nor are zero rows under cosine.
        ids : sequence of n ids, optional
            Needed where the model has steps of single items.
        labels : sequence of n classes, optional
            Needed where the mover needs them; an item of an unknown class is not moved.
        """
        Z = np.asarray(vectors)
        Z = Z if Z.dtype in (np.float32, np.float64) else Z.astype(np.float32)
        can_move = np.isfinite(Z).all(axis=1)
        if self.metric == "cosine":
            can_move &= Z.any(axis=1)  # a zero has no direction to move in
        if not can_move.any():
            return Z.copy()
        if not can_move.all():
            moved, rows = Z.copy(), np.flatnonzero(can_move).tolist()
            moved[can_move] = self.move(Z[can_move], _take(ids, rows), _take(labels, rows))
            return moved
        Z = unit(Z) if self.metric == "cosine" else Z
        moved = self._by_class(Z, labels) if self.mover._uses_labels else self.mover.move(Z)
        moved = np.asarray(moved, dtype=Z.dtype)
        moved = unit(moved) if self.metric == "cosine" else moved
        return moved if self.steps is None else self._step(moved, self.steps, ids)

    def move_batch(self, batch: Batch) -> np.ndarray:
        """Move the items of a batch, which has the column of classes where the mover needs it."""
        labels = None if self.label is None else batch.columns[self.label]
        return self.move(batch.vectors, batch.ids.tolist(), labels)

    def n_unknown(self, batch: Batch) -> int:
        """Return how many items of a batch are not moved, since their class is unknown."""
        return 0 if self.label is None else int((~self.has_class(batch.columns[self.label])).sum())

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
        known, moved = self.has_class(labels), Z.copy()
        if known.any():
            y = _take(self._as_learned(labels), np.flatnonzero(known).tolist())
            moved[known] = self.mover.move(Z[known], np.array(y))
        return moved

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
        mover, arrays = describe(self.mover)
        arrays = {f"mover.{name}": array for name, array in arrays.items()}
        if self.steps is not None:
            arrays |= {"steps.ids": _packed(self.steps.ids), "steps.means": np.asarray(self.steps.means)}
        return {
            "class": "Repair",
            "mover": mover,
            "metric": self.metric,
            "label": self.label,
            "step": None if self.steps is None else plain(self.steps.step),
            "facts": _plain_facts(self.facts),
        }, arrays

    @staticmethod
    def _restore(node: Any, arrays: dict[str, np.ndarray], device: str) -> "Repair":
        if device != "cpu":
            raise ValueError(f'a Repair moves NumPy arrays; load it with device="cpu", not {device!r}.')
        check_names(node, ("class", "mover", "metric", "label", "step", "facts"), "a repair")
        check_choice("metric", node["metric"], METRICS)
        if node["label"] is not None and not isinstance(node["label"], str):
            raise ValueError(f"label is {short(node['label'])}; expected the name of a column.")
        if not isinstance(node["facts"], dict):
            raise ValueError(f"facts are {short(node['facts'])}; expected names and values.")
        parts: dict[str, dict[str, np.ndarray]] = {"mover": {}, "steps": {}}
        for name, array in arrays.items():
            owner, _, field_name = name.partition(".")
            parts.setdefault(owner, {})[field_name] = array
        check_names(parts, ("mover", "steps"), "the arrays")
        mover = restore(node["mover"], parts["mover"], device)
        if not isinstance(mover, Mover):
            raise ValueError(f"its mover is {short(mover)}; expected a mover of hubless.movers.")
        steps = _steps_of(node["step"], parts["steps"], mover.n_features_in_)
        return Repair(mover, node["metric"], node["label"], steps, node["facts"])

    def _card(self) -> list[str]:
        return repair_card(self)


def _take(values: Any, rows: list[int]) -> list[Any] | None:
    return None if values is None else [values[row] for row in rows]


def _without_moments(content: Any) -> Any:
    """Return content without moments, which do not change how items are moved."""
    if isinstance(content, list):
        return [_without_moments(value) for value in content]
    if not isinstance(content, dict):
        return content
    return {
        name: _without_moments(value)
        for name, value in content.items()
        if not any(word in name for word in ("moments", "mean_weight_"))
    }


def _packed(ids: Any) -> np.ndarray:
    """Return ids, of which there may be millions, as the bytes of a JSON text."""
    ids = np.asarray(ids)
    is_text = ids.dtype.kind in "UO" and all(isinstance(value, str) for value in ids.tolist())
    if not is_text and not np.can_cast(ids.dtype, np.int64):
        raise TypeError(f"ids are whole numbers of 64 bits or texts; got {short(ids)}.")
    text = json.dumps(plain_array(ids.astype(object if is_text else np.int64)))
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _steps_of(step: Any, arrays: dict[str, np.ndarray], d: int) -> ItemSteps | None:
    """Return the steps that were saved; ValueError for invalid ones."""
    check_names(arrays, () if step is None else ("ids", "means"), "the arrays of steps")
    if step is None:
        return None
    step = value_of(step)
    check_fraction("step", step)
    check_array("steps.means", arrays["means"], "nd", {"d": d})
    check_array("steps.ids", arrays["ids"], "b", {}, ["bytes"])
    ids = array_of(parse_json(arrays["ids"].tobytes()), "ids of steps", ("int64", "object"))
    if not len(set(ids.tolist())) == len(ids) == len(arrays["means"]):
        raise ValueError("ids of steps are not all different, one for each of their means.")
    return ItemSteps(ids, arrays["means"], step)


def _plain_facts(value: Any, where: str = "facts") -> Any:
    """Return facts as JSON has them; a number that is not finite (the mean of no query) becomes None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{where} must have texts as names; got {short(list(value))}.")
        return {str(name): _plain_facts(item, f"{where}[{name!r}]") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_facts(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if value is not None and not isinstance(value, str | bool | int | float):
        raise TypeError(f"{where} must be texts, numbers, lists or mappings; got {short(value)}.")
    return None if isinstance(value, float) and not np.isfinite(value) else plain(value)
