"""What `apply` refuses: stores that moving would harm, data of another model, rows that would be lost."""

from collections.abc import Iterable

from ..stores.store import Batch, Facts, Store, StoreError
from .before_reading import check_dimension, check_original
from .index_items import read_items
from .late_rows import check_lengths
from .repair import Repair


def check_movable(
    model: Repair, blue: Store, facts: Facts, batches: Iterable[Batch] | None = None
) -> list[str]:
    """Refuse a store that moving would harm, and return notes for the user.

    `batches` are the rows to check, by default all.
    """
    if model.moves_nothing:
        raise StoreError("this model moves nothing: not moving was the best choice. Keep the index as it is.")
    check_original(blue, facts)
    check_dimension(model, facts.dimension, blue.name)
    notes = [] if model.query_note is None else [model.query_note]
    metric = facts.metric or model.stored_metric
    if model.stored_metric == "l2" != metric:
        raise StoreError(f"{blue.name} compares by {metric}, the model is for l2. Fit one for this metric.")
    check_lengths(model, blue.name, metric, blue.batches() if batches is None else batches)
    if metric == model.metric or model.stored_metric == "l2":  # of corrected items, which have other lengths
        return notes
    by = "inner product" if metric == "ip" else "L2"
    return [f"{blue.name} compares unit vectors by {by}: moved vectors are brought to length 1.", *notes]


def check_same_rows(model: Repair, blue: Store) -> None:
    """Refuse steps of single items by row number in data other than what the model learned from."""
    if model.steps is None or not blue.ids_are_row_numbers():
        return
    if read_items(blue).in_space(model.metric).about()["fingerprint"] != model.fingerprint:
        raise StoreError(
            f"the model moves some items by their row number, and {blue.name} is not the data it was learned "
            "from. Fit again; or give the items ids (--items, --id), then fit."
        )


def check_nothing_is_lost(blue: Store, green: Store) -> None:
    """Refuse to build over a store that has served: rows that were added to it are nowhere else."""
    mark = green.mark() if green.exists() else None
    if mark is None or mark.original is None:
        return
    added = count_missing(green, blue)
    if added:
        raise StoreError(
            f"{green.name} has served, and {added:,} of its rows are not in {blue.name}: they would be lost. "
            "Give another name; or first add them to the original, or remove this one."
        )


def count_missing(store: Store, other: Store) -> int:
    """Count the rows of a store that another one lacks."""
    return sum(int((~other.contains(ids)).sum()) for ids in store.ids())
