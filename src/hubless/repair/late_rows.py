"""Rows that changed after the moved index was built, which `promote` moves where the store can."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..stores.reconcile import Reconcile
from ..stores.store import Batch, Mark, Store, StoreError
from .index_items import are_unit, space_of
from .repair import Repair


def reconcile_by(
    repair: Repair, blue: Store, mark: Mark, max_rows: int, max_wait: float
) -> tuple[Reconcile, ...]:
    """Return how `promote` moves rows that changed since; nothing for a store that cannot."""
    if repair.hash != mark.model:
        raise StoreError(
            f"the moved index was made by model {mark.model[:12]}; got model {repair.hash[:12]}. Give the "
            "model that was given to `hubless apply`."
        )
    if max_rows < 0 or not max_wait > 0:
        raise StoreError(
            f"max_rows must be at least 0 and max_wait more than 0 seconds; got {max_rows} and {max_wait}."
        )
    if not blue.can_reconcile:
        return ()
    how = reconcile_with(repair, blue, blue.facts().metric or repair.stored_metric)
    return (replace(how, rows=max_rows, seconds=max_wait),)


def reconcile_with(repair: Repair, blue: Store, metric: str) -> Reconcile:
    """Return how to move rows that changed."""

    def move(batch: Batch) -> np.ndarray:
        check_lengths(repair, blue.name, metric, [batch])
        return repair.move_batch(batch)

    return Reconcile(repair.columns, move)


def check_lengths(model: Repair, name: str, metric: str, batches: Iterable[Batch]) -> None:
    """Refuse items whose lengths another metric than the model's would compare."""
    if metric == model.metric:
        return
    all_unit = True
    if metric == "ip" or model.metric == "cosine":  # a model for cosine also serves unit vectors
        for batch in batches:
            whole = batch.vectors[np.isfinite(batch.vectors).all(axis=1) & batch.vectors.any(axis=1)]
            space_of(metric, whole, name)  # refuses inner product of vectors of other lengths
            all_unit &= are_unit(whole)
    if model.metric != "cosine" or not all_unit:
        raise StoreError(
            f"{name} compares by {metric}, the model is for {model.metric}. Fit one for this metric."
        )
