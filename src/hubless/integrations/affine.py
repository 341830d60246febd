"""The map of a fitted model as one matrix and one offset, with normalisation before and after if needed."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..movers import Chain, MoveLabeled, Mover, Scale, Stay, Unit
from ..repair.repair import Repair

WARNING = "It moves STORED vectors. Queries stay as they are: never put one through it."
INSTEAD = "Use `hubless apply` for an index or `hubless move` for new items, which take ids and classes"


class Affine(NamedTuple):
    """z ↦ W z + b of each row, which is normalised to length 1 before and after where that is set."""

    W: np.ndarray  # (d, d), float64; (e, d) where queries have e columns and items d
    b: np.ndarray  # (d,) or (e,), float64
    normalise_before: bool
    normalise_after: bool

    @property
    def steps(self) -> list[str]:
        """The steps of the map, in order."""
        return ["normalise"] * self.normalise_before + ["linear"] + ["normalise"] * self.normalise_after

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """Return W and b in float32, which most programs take."""
        with np.errstate(over="ignore"):
            W, b = (np.ascontiguousarray(array, dtype=np.float32) for array in (self.W, self.b))
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError('the map has numbers beyond float32; export it as "numpy", in float64.')
        return W, b


def affine(model: Repair | Mover) -> Affine:
    """Return the map of a model, by algebra; ValueError where it depends on more than the vector."""
    repair = model if isinstance(model, Repair) else Repair(model)
    if repair.steps is not None:
        raise ValueError(
            f"the model moves {len(repair.steps.ids)} items by their id, toward their queries, and a map of "
            f"vectors alone has no ids. {INSTEAD}, or fit a model without such steps."
        )
    if repair.correction is not None:
        raise ValueError(
            f"the model corrects items by {type(repair.correction).__name__}, which compares each with the "
            f"queries of a log: that is no map of vectors alone. {INSTEAD}."
        )
    check_is_fitted(repair.mover, "space_")
    if repair.width != repair.query_width:
        raise ValueError(
            "the model adds a column to items, which a map of vectors alone does not give. "
            f"{INSTEAD}, or fit a model without that column."
        )
    steps, d = _leaves(repair.mover), repair.dimension
    before = after = repair.metric == "cosine"
    while steps and type(steps[-1]) is Unit:
        steps, after = steps[:-1], True
    while steps and type(steps[0]) is Unit:
        steps, before = steps[1:], True
    W, b = np.eye(d), np.zeros(d)
    for step in steps:  # V (W z + b) + c = VW z + (V b + c)
        V, c = _parts(step, d)
        W, b = V @ W, V @ b + c
    return Affine(W, b, before, after)


def _leaves(mover: Mover) -> list[Mover]:
    """Return a mover, or all movers of a chain, in order."""
    return [leaf for step in mover.movers_ for leaf in _leaves(step)] if type(mover) is Chain else [mover]


# μ' + W (z − μ) = W z + (μ' − W μ); μ' is μ, or the mean of queries of another width
def _parts(mover: Mover, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return W and b of a mover."""
    kind = type(mover)
    if kind is Stay:
        return np.eye(d), np.zeros(d)
    if kind not in (Scale, MoveLabeled):  # a subclass may move differently
        _refuse(mover)
    W = float(mover.g) * np.eye(d) if kind is Scale else to_numpy(mover.W_).astype(np.float64)
    mean = to_numpy(mover.mean_).astype(np.float64)
    goal = to_numpy(getattr(mover, "query_mean_", mover.mean_)).astype(np.float64)
    return W, goal - W @ mean


def _refuse(mover: Mover) -> None:
    why = "is not known to be an affine map"
    if type(mover) is Unit:
        why = "brings vectors to length 1 between other movers, which is not affine"
    elif mover._uses_labels:
        why = "moves an item by its class, which a map of the vector alone cannot use"
    raise ValueError(f"{type(mover).__name__} {why}, so it cannot be exported. {INSTEAD}.")
