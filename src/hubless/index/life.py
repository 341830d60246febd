"""Models that live: items are added to what a model has learned or taken away, and two models become one.

Each gives a new model and leaves the old ones as they are. λ is not chosen again: it stays what it was, in
multiples of the mean eigenvalue where it was chosen so.
"""

from copy import copy
from typing import Any

import numpy as np

from ..candidates import name
from ..inputs import label_text
from ..movers import MoveLabeled
from ..stores.store import StoreError
from .collection import Collection
from .repair import Repair


def updated(model: Repair, items: Collection, label: str) -> Repair:
    """A model that has learned from more items besides, without those it learned from before.

    Parameters
    ----------
    model : Repair of a MoveLabeled that kept its moments, learned from labels
    items : Collection with the column `label`
        Items without a label are not learned from. Targets are found among these items alone.
    label : str

    Raises
    ------
    StoreError
        Where the model cannot learn again, is for other vectors, or has learned from these already.
    """
    mover, X, y, entry = _lesson(model, items, label, "added")
    if entry["fingerprint"] in _batches(model.facts):
        raise StoreError(
            f"the model has learned from the vectors of {items.name} already; none is added twice."
        )
    return _next(model, mover.partial_fit(X, y), entry)


def without(model: Repair, items: Collection, label: str) -> Repair:
    """A model without what it learned from some items: exactly so where they were learned as one batch.

    The last entry of `facts["life"]` tells whether they were ("exact"). Of other items the pairs are taken
    away that they have among themselves, and not those that were learned: measured, W is then farther from
    that of a fit without them than before. Rather fit again.

    Parameters
    ----------
    model, items, label : as for `updated`

    Raises
    ------
    StoreError
        Where the model cannot learn again or is for other vectors.
    ValueError
        Where nothing would be left, or these items were visibly never learned from.
    """
    mover, X, y, entry = _lesson(model, items, label, "removed")
    learned = model.facts.get("learned", {})
    if learned.get("sampled"):
        raise StoreError(
            f"the model learned from a sample of {learned['pairs']:,} pairs, of which nothing can be taken "
            "away. Fit again without the items; or, from the start, with --max-pairs all."
        )
    entry["exact"] = entry["fingerprint"] in _batches(model.facts)
    return _next(model, mover.forget(X, y), entry)


def merged(first: Repair, second: Repair) -> Repair:
    """A model of what two have learned, each from items of its own; with the λ of the first.

    Raises
    ------
    StoreError
        Where one cannot learn again, they are for different metrics, or have learned from the same items.
    ValueError
        Where their movers differ in more than λ.
    """
    movers = _mover(first), _mover(second)
    for told, own, others in (
        ("metrics", first.metric, second.metric),
        ("kinds of lessons", _kind(first), _kind(second)),
    ):
        if None not in (own, others) and own != others:
            raise StoreError(f"the models are for different {told}: {own} and {others}. Fit one again.")
    batches = _batches(second.facts)
    if set(batches) & set(_batches(first.facts)):
        raise StoreError("both models have learned from the same items, which would count twice.")
    learned = second.facts.get("learned", {})
    entry = {
        "what": "merged",
        "source": second.facts.get("data", {}).get("source"),
        "count": _count(movers[1]),
        "with model": second.hash,
        "batches": batches,
    }
    found = _next(first, movers[0].merge(movers[1]), entry)
    for key in ("seen", "query ids"):  # what `evaluate` must know was seen
        if key in learned and key in found.facts["learned"]:
            both = dict.fromkeys([*found.facts["learned"][key], *learned[key]])
            found.facts["learned"][key] = list(both)
    return found


def _mover(model: Repair) -> Any:
    """A copy of the mover, which can learn again."""
    mover = model.mover
    if model.own is not None:
        raise StoreError(
            "the model moves some items by steps of their own, which do not add up. Fit a new one to all the "
            "pairs."
        )
    if not isinstance(mover, MoveLabeled) or not hasattr(mover, "moments_"):
        raise StoreError(
            f"the model moves by {name(mover)}, which keeps no moments to learn from again. Fit one that "
            "does: hubless fit … --mover ridge."
        )
    return copy(mover)  # learning again gives it other arrays, and leaves those it shares as they are


def _lesson(model: Repair, items: Collection, label: str, what: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The mover, items in its space (n, d), their classes (n,), and what the model will tell of this."""
    mover = _mover(model)
    if _kind(model) not in (None, "labels"):
        raise StoreError(
            "the model was learned from pairs of queries and items; labels teach something else."
        )
    if model.dimension != items.vectors.shape[1]:
        raise StoreError(
            f"{items.name} has vectors of {items.vectors.shape[1]} columns, the model moves "
            f"{model.dimension}."
        )
    items = items.labeled(label).in_space(model.metric)
    about = items.about()
    entry = {key: about[key] for key in ("source", "count", "fingerprint")}
    y = np.array([label_text(value) for value in items.columns[label]])
    return mover, items.vectors, y, {"what": what, **entry, "column": label}


def _next(model: Repair, mover: MoveLabeled, entry: dict[str, Any]) -> Repair:
    """The model after an event of its life. Figures are of the model before, and go with the event."""
    facts = dict(model.facts)
    entry = {**entry, "model before": model.hash, "figures before": facts.pop("figures", [])}
    life = [*facts.get("life", []), entry]
    told = ", ".join(f"{event['count']:,} {event['what']}" for event in life)
    learned = dict(facts.get("learned", {}))
    learned |= {"n": _count(mover), "since then": told}
    learned.pop("classes", None)  # after some were removed or merged, nobody knows how many there are
    return Repair(mover, model.metric, model.label, None, {**facts, "learned": learned, "life": life})


def _count(mover: Any) -> int:
    """Items or pairs that a mover has learned from; all have the weight 1 here."""
    return round(mover.mean_weight_)


def _kind(model: Repair) -> str | None:
    """What a model was learned from, "labels" or "pairs", where it tells."""
    found = model.facts.get("learned", {}).get("from")
    return None if found is None else str(found)


def _batches(facts: dict[str, Any]) -> list[str]:
    """Fingerprints of the batches that a model has learned from."""
    first = facts.get("data", {}).get("fingerprint")
    found = [] if first is None else [first]
    for event in facts.get("life", []):
        if event["what"] == "merged":
            found += event["batches"]
        elif event["what"] == "added":
            found.append(event["fingerprint"])
        elif event["fingerprint"] in found:
            found.remove(event["fingerprint"])
    return found
