"""A Repair as plain data, JSON and named arrays, and back with every check: it is not an estimator."""

from typing import Any

import numpy as np

from ..arrays.inputs import check_choice
from ..calibration.item_scores import ItemScores
from ..movers import Mover
from ..saving.state import describe, restore
from ..saving.values import check_names, expect, plain
from ..support.text import short
from .item_steps import packed_ids, steps_of
from .plain_facts import plain_facts

METRICS = ("l2", "cosine", "ip")  # inner product of unit vectors is cosine
OPTIONAL = ("correction", "scores")  # estimators that a model may lack; those of older versions do


def describe_repair(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what JSON holds of a Repair, and its arrays."""
    mover, arrays = describe(model.mover)
    arrays = {f"mover.{name}": array for name, array in arrays.items()}
    if model.steps is not None:
        arrays |= {"steps.ids": packed_ids(model.steps.ids), "steps.means": np.asarray(model.steps.means)}
    node = {
        "class": "Repair",
        "mover": mover,
        "metric": model.metric,
        "label": model.label,
        "step": None if model.steps is None else plain(model.steps.step),
        "facts": plain_facts(model.facts),
    }
    for name in OPTIONAL:
        if getattr(model, name) is not None:
            node[name], more = describe(getattr(model, name))
            arrays |= {f"{name}.{key}": array for key, array in more.items()}
    return node, arrays


def restored_parts(node: Any, arrays: dict[str, np.ndarray], device: str) -> dict[str, Any]:
    """Return the arguments of the Repair that `describe_repair` was given; ValueError where it is not one."""
    if device != "cpu":
        raise ValueError(f'a Repair moves NumPy arrays; load it with device="cpu", not {device!r}.')
    has = [name for name in OPTIONAL if isinstance(node, dict) and name in node]
    check_names(node, ("class", "mover", "metric", "label", "step", "facts", *has), "a repair")
    check_choice("metric", node["metric"], METRICS)
    if node["label"] is not None and not isinstance(node["label"], str):
        raise ValueError(f"label is {short(node['label'])}; expected the name of a column.")
    if not isinstance(node["facts"], dict):
        raise ValueError(f"facts are {short(node['facts'])}; expected names and values.")
    known = ("mover", "steps", *has)
    parts: dict[str, dict[str, np.ndarray]] = {name: {} for name in known}
    for name, array in arrays.items():
        owner, _, field_name = name.partition(".")
        parts.setdefault(owner, {})[field_name] = array
    check_names(parts, known, "the arrays")
    mover = restore(node["mover"], parts["mover"], device)
    if not isinstance(mover, Mover):
        raise ValueError(f"its mover is {short(mover)}; expected a mover of hubless.movers.")
    more = {name: restore(node[name], parts[name], device) for name in has}
    if (scores := more.get("scores")) is not None:
        is_right = isinstance(scores, ItemScores) and scores.n_features_in_ == mover._width
        expect(is_right, "scores", scores, f"those of answers of {mover._width} columns")
    return {
        "mover": mover,
        "metric": node["metric"],
        "label": node["label"],
        "steps": steps_of(node["step"], parts["steps"], mover._width),
        "facts": node["facts"],
        **more,
    }
