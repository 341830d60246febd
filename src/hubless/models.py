"""Every model as plain data, and back: movers, the other estimators, and repairs of an index."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from .estimators import ESTIMATOR_KEYS, KINDS, LEARNS, describe_estimator, restore_estimator
from .index.repair import METRICS, Own, Repair
from .inputs import check_choice, check_fraction
from .plain import check_names, plain, short, value_of
from .state import KEYS, check_array, describe, restore

COMMON = ("kind", "metric", "dimension", "fingerprint")
REPAIR_KEYS = ("mover", "label", "own", "facts")
KEYS_OF = {
    "mover": KEYS,
    "repair": REPAIR_KEYS,
    **dict.fromkeys(KINDS.values(), ESTIMATOR_KEYS),
}
IDS = ("numbers", "texts")


def describe_model(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What JSON can hold of a fitted model, under COMMON and the keys of its kind, and its arrays."""
    metric, fingerprint = "l2", None
    if type(model) is Repair:
        kind, metric, fingerprint = "repair", model.metric, _fingerprint(model.facts)
        config, arrays = _describe_repair(model)
    elif type(model) in LEARNS:
        kind = KINDS[type(model)]
        config, arrays = describe_estimator(model)
    else:  # a mover, or it says what can be saved
        kind = "mover"
        config, arrays = describe(model)
    common = {"kind": kind, "metric": metric, "dimension": dimension_of(model), "fingerprint": fingerprint}
    return common | config, arrays


def restore_model(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Any:
    """The model that `describe_model` was given, on a device; ValueError for what describes none."""
    kind = config["kind"]
    if kind == "repair":
        model: Any = _restore_repair(config, arrays, device)
        expected = (kind, model.metric, dimension_of(model), _fingerprint(model.facts))
    elif kind == "mover":
        model = restore(config, arrays, device)
        expected = (kind, "l2", dimension_of(model), None)
    else:
        model = restore_estimator(config, arrays, device)
        expected = (KINDS[type(model)], "l2", dimension_of(model), None)
    for name, value in zip(COMMON, expected, strict=True):
        if config[name] != value:
            raise ValueError(f"{name} is {short(config[name])}; expected {short(value)}.")
    return model


def keys_of(kind: Any) -> tuple[str, ...]:
    """Names of all that is told of a model of a kind."""
    if not isinstance(kind, str) or kind not in KEYS_OF:
        raise ValueError(f"its kind is {short(kind)}; allowed are {', '.join(KEYS_OF)}.")
    return (*COMMON, *KEYS_OF[kind])


def dimension_of(model: Any) -> int:
    """Columns of the objects that a model is for."""
    return int(model.dimension if isinstance(model, Repair) else model.n_features_in_)


def _fingerprint(facts: Any) -> str | None:
    """What stands for the data that a repair was learned from, where its facts tell it."""
    data = facts.get("data") if isinstance(facts, dict) else None
    found = data.get("fingerprint") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


def _describe_repair(model: Repair) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    config, own = describe(model.mover)
    arrays = {f"mover.{name}": array for name, array in own.items()}
    told = None
    if model.own is not None:
        ids = np.asarray(model.own.ids)
        texts = ids.tolist() if ids.dtype.kind in "UO" else None
        told = {"ids": IDS[texts is not None], "step": plain(model.own.step)}
        arrays["own.means"] = np.asarray(model.own.means)
        arrays |= {"own.ids": _int64(ids)} if texts is None else _packed(texts)
    return {"mover": config, "label": model.label, "own": told, "facts": _plain_facts(model.facts)}, arrays


def _restore_repair(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Repair:
    if device != "cpu":
        raise ValueError(f'a repair moves arrays of NumPy; load it with device="cpu", not {device!r}.')
    check_choice("metric", config["metric"], METRICS)
    check_names(config["mover"], KEYS, "mover")
    if config["label"] is not None and not isinstance(config["label"], str):
        raise ValueError(f"label is {short(config['label'])}; expected the name of a column.")
    if not isinstance(config["facts"], dict):
        raise ValueError(f"facts are {short(config['facts'])}; expected names and values.")
    parts: dict[str, dict[str, np.ndarray]] = {"mover": {}, "own": {}}
    for name, array in arrays.items():
        owner, _, own_name = name.partition(".")
        parts.setdefault(owner, {})[own_name] = array
    check_names(parts, ("mover", "own"), "the arrays")
    mover = restore(config["mover"], parts["mover"], device)
    if mover.exit_.floor is not None:
        raise ValueError(f"{type(mover).__name__} has a column of its own, which no index has room for.")
    own = _restore_own(config["own"], parts["own"], mover.n_features_in_)
    return Repair(mover, config["metric"], config["label"], own, config["facts"])


def _restore_own(found: Any, arrays: dict[str, np.ndarray], d: int) -> Own | None:
    if found is None:
        check_names(arrays, [], "the arrays of own")
        return None
    check_names(found, ("ids", "step"), "own")
    check_choice("ids of own", found["ids"], IDS)
    step = value_of(found["step"])
    check_fraction("step of own", step)
    names = ("means", "ids") if found["ids"] == "numbers" else ("means", "text", "ends")
    check_names(arrays, names, "the arrays of own")
    sizes = {"d": d}
    check_array("own.means", arrays["means"], "nd", sizes)
    if found["ids"] == "numbers":
        check_array("own.ids", arrays["ids"], "n", sizes)
        ids = arrays["ids"]
    else:
        check_array("own.ends", arrays["ends"], "n", sizes)
        check_array("own.text", arrays["text"], "t", sizes)
        ids = _unpacked(arrays["text"], arrays["ends"])
    if len(set(ids.tolist())) != len(ids):
        raise ValueError("ids of own are not all different.")
    return Own(ids, arrays["means"], step)


def _int64(ids: np.ndarray) -> np.ndarray:
    whole = ids.astype(np.int64) if ids.dtype.kind in "iu" else None
    if whole is None or whole.tolist() != ids.tolist():
        raise TypeError(f"ids are whole numbers of 64 bits or texts; got {short(ids)}.")
    return whole


def _packed(texts: list[Any]) -> dict[str, np.ndarray]:
    """Texts, of which there may be millions, end to end, and where each ends."""
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"ids are whole numbers of 64 bits or texts; got {short(texts)}.")
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return {
        "own.text": np.frombuffer(b"".join(parts), dtype=np.uint8),
        "own.ends": np.cumsum([len(part) for part in parts], dtype=np.int64),
    }


def _unpacked(text: np.ndarray, ends: np.ndarray) -> np.ndarray:
    limits = [0, *ends.tolist()]
    if limits[-1] != len(text) or limits != sorted(limits):
        raise ValueError("ends of own are not those of its texts.")
    whole = text.tobytes()
    ids = np.empty(len(ends), dtype=object)
    ids[:] = [whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(limits)]
    return ids


def _plain_facts(value: Any, where: str = "facts") -> Any:
    """Facts as JSON has them; a number that is not finite, as that of no query at all, becomes None."""
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
