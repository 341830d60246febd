"""Steps of single items: those that have training queries move further, toward these queries."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.inputs import check_fraction
from ..saving.state import check_array
from ..saving.values import array_of, check_names, plain_array, value_of
from ..support.text import short
from ..support.untrusted_json import parse_json


@dataclass(frozen=True)
class ItemSteps:
    """Steps of items that have training queries: they move further, toward these queries.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.movers import Stay
    >>> from hubless.repair import ItemSteps, Repair
    >>> steps = ItemSteps(np.array(["a"], dtype=object), np.array([[4.0, 0.0]]), step=0.25)
    >>> model = Repair(Stay().fit(np.eye(2), [0, 1]), steps=steps)
    >>> model.move(np.array([[0.0, 0.0], [1.0, 1.0]]), ids=["a", "b"]).tolist()  # a quarter of the way
    [[1.0, 0.0], [1.0, 1.0]]
    """

    ids: np.ndarray  # (m,), int64 or texts (object), all different
    means: np.ndarray  # (m, d), or (m, width) where it differs: the goal of each, q̄ in `Repair.move`
    step: float  # from 0 to 1: the share of the way


def packed_ids(ids: Any) -> np.ndarray:
    """Return ids, of which there may be millions, as the bytes of a JSON text."""
    ids = np.asarray(ids)
    is_text = ids.dtype.kind in "UO" and all(isinstance(value, str) for value in ids.tolist())
    if not is_text and not np.can_cast(ids.dtype, np.int64):
        raise TypeError(f"ids are whole numbers of 64 bits or texts; got {short(ids)}.")
    text = json.dumps(plain_array(ids.astype(object if is_text else np.int64)))
    return np.frombuffer(text.encode(), dtype=np.uint8)


def steps_of(step: Any, arrays: dict[str, np.ndarray], d: int) -> ItemSteps | None:
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
