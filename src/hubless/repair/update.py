"""Updating models: add items to what a model has learned, remove items, and merge models.

Each function returns a new model and does not change the given ones. λ is not chosen again: it stays as it
was, in multiples of the mean eigenvalue where it was chosen so.
"""

from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import Any

from ..movers import MoveLabeled
from ..selection.candidates import name
from ..stores.store import StoreError
from ..support.progress import reports_steps, step
from .before_reading import check_model
from .index_items import Model, Source, as_repair, as_store, as_texts, read_items
from .repair import Repair


@reports_steps
def update_model(
    model: Model, source: Source, labels: str, *, remove: bool = False, progress: bool | None = False
) -> Repair:
    """Return a model that has learned from more labeled items, or has forgotten some.

    The data that was learned from before is not read. It is for models that keep their moments: those of
    `fit_index(…, mover="ridge")`. Targets of the items are searched among these items alone.

    Parameters
    ----------
    model : folder, Repair or mover
    source : name of a store, or Store
        The new items, or those to forget. Items without a label are ignored.
    labels : str
        Column with the class of each item.
    remove : bool
        Whether to forget the items. That is exact where they were learned as one batch: the last entry of
        `facts["life"]` says whether they were ("exact"). Of other items, the pairs that they form among
        themselves are removed, which are not the pairs that were learned: W may then be farther than before
        from that of a fit without them. Fit again instead.
    progress : bool or None
        Whether to show a progress bar; None shows one on a terminal.

    Raises
    ------
    StoreError
        Where the model cannot be updated, is for other vectors, or has already learned from those to add.
    ValueError
        Where nothing would be left, or the items to forget cannot have been learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> half = MoveLabeled(keep_moments=True).fit(X[:45], y[:45].astype(str))
    >>> np.save("new.npy", X[45:])
    >>> from hubless.stores.opening import open_store
    >>> np.save("labels.npy", y[45:])
    >>> new = open_store("new.npy", items="labels.npy")
    >>> repair.update_model(half, new, "label").facts["life"][-1]["what"]
    'added'
    """
    repair, store = as_repair(model), as_store(source)
    mover = _updatable_mover(repair)
    if repair.learned.get("from", "labels") != "labels":
        raise StoreError(
            "the model learned from pairs, and cannot also learn from labels. Fit it again to all pairs."
        )
    if remove and repair.learned.get("sampled"):
        raise StoreError(
            "the model learned from a sample of the pairs, of which nothing can be removed. Fit again "
            "without the items; or, from the start, with --max-pairs all."
        )
    check_model(repair, store, [labels])
    items = read_items(store, [labels])
    items = items.labeled(labels).in_space(repair.metric)
    X, y, about = items.vectors, as_texts(items.columns[labels]).astype(str), items.about()
    about_items = {key: about[key] for key in ("source", "count", "fingerprint")}
    entry = {"what": "removed" if remove else "added", **about_items, "column": labels}
    was_learned = about["fingerprint"] in _batches(repair.facts)
    if not remove and was_learned:
        raise StoreError(f"the model has learned from the vectors of {items.name} already. Give new items.")
    with step(f"{'forgetting' if remove else 'learning from'} {len(X):,} items"):
        if not remove:
            return _updated(repair, mover.partial_fit(X, y), entry)
        return _updated(repair, mover.forget(X, y), {**entry, "exact": was_learned})


def merge_models(models: Sequence[Model]) -> Repair:
    """Merge models that learned from different items into one, without any of the data.

    Parameters
    ----------
    models : sequence of folders, Repairs or movers that keep their moments
        λ is that of the first.

    Raises
    ------
    StoreError
        Where one cannot be updated, they are for different metrics, or have learned from the same items.
    ValueError
        Where their movers differ in more than λ.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> halves = [MoveLabeled(keep_moments=True).fit(X[i::2], y[i::2]) for i in (0, 1)]
    >>> repair.merge_models(halves).mover.W_.shape
    (8, 8)
    """
    return reduce(_merge, [as_repair(model) for model in models])


def _merge(first: Repair, second: Repair) -> Repair:
    movers = _updatable_mover(first), _updatable_mover(second)
    for what, one, other in (
        ("metrics", first.metric, second.metric),
        ("kinds of data", first.learned.get("from"), second.learned.get("from")),
    ):
        if None not in (one, other) and one != other:
            raise StoreError(f"the models are for different {what}: {one} and {other}. Fit one again.")
    batches = _batches(second.facts)
    if set(batches) & set(_batches(first.facts)):
        raise StoreError(
            "both models have learned from the same items, which would count twice. Leave one out."
        )
    entry = {
        "what": "merged",
        "source": second.facts.get("data", {}).get("source"),
        "count": _count(movers[1]),
        "with model": second.hash,
        "batches": batches,
    }
    merged = _updated(first, movers[0].merge(movers[1]), entry)
    learned = merged.facts["learned"]
    if second.learned.get("sampled"):
        learned["sampled"] = True
    for key in ("seen", "query ids"):  # what `evaluate` must know was learned from
        if key in learned and key in second.learned:
            learned[key] = list(dict.fromkeys([*learned[key], *second.learned[key]]))
    return merged


def _updatable_mover(model: Repair) -> Any:
    """Return a copy of the mover, which can be updated."""
    mover = model.mover
    if model.steps is not None:
        raise StoreError(
            "the model moves single items toward their queries: it cannot be updated. Fit it again."
        )
    if model.correction is not None:
        raise StoreError(
            "the model corrects items by a log of queries: it cannot be updated. Fit it again, with the log."
        )
    if not isinstance(mover, MoveLabeled) or not hasattr(mover, "moments_"):
        raise StoreError(
            f"the model moves by {name(mover)}, which keeps no moments to update. Fit one with --mover ridge."
        )
    return copy(mover)  # updating gives it new arrays, and does not change those it shares


def _updated(model: Repair, mover: MoveLabeled, entry: dict[str, Any]) -> Repair:
    """Return the model after an update. Its figures are of the model before, and go into the entry."""
    facts = dict(model.facts)
    entry = {**entry, "model before": model.hash, "figures before": facts.pop("figures", [])}
    life = [*facts.get("life", []), entry]
    updates = ", ".join(f"{event['count']:,} {event['what']}" for event in life)
    learned = {**model.learned, "n": _count(mover), "since then": updates}
    learned.pop("classes", None)  # unknown after items were removed or models merged
    return Repair(mover, model.metric, model.label, None, {**facts, "learned": learned, "life": life})


def _count(mover: Any) -> int:
    """Return how many items or pairs a mover has learned from; all have the weight 1 here."""
    return round(mover.mean_weight_)


def _batches(facts: dict[str, Any]) -> list[str]:
    """Return the fingerprints of the batches that a model has learned from."""
    first = facts.get("data", {}).get("fingerprint")
    batches = [] if first is None else [first]
    for event in facts.get("life", []):
        if event["what"] == "merged":
            batches += event["batches"]
        elif event["what"] == "added":
            batches.append(event["fingerprint"])
        elif event["fingerprint"] in batches:
            batches.remove(event["fingerprint"])
    return batches
