"""Classes of queries, by the vote of the moved items nearest to them."""

import numpy as np

from ..evaluation import winners
from ..inputs import label_text
from ..neighbors import nearest
from ..stores.store import Store, StoreError
from .collection import check_queries, collect, columns_for
from .repair import Repair


def predict(
    model: Repair,
    store: Store,
    queries: np.ndarray,
    label: str | None = None,
    n_neighbors: int | None = None,
    *,
    progress: bool | None = False,
) -> np.ndarray:
    """The class of each query; (n,), texts.

    A store that this model moved is asked as it is, by its own index. Of any other, the items are read, moved
    in memory and compared one by one.

    Parameters
    ----------
    label : str, optional
        Column with the classes of items, by default the one that the model was learned from.
    n_neighbors : int, optional
        Items that vote, by default as many as were chosen with the model.
    """
    learned = model.facts.get("learned", {})
    label = label or learned.get("column")
    if label is None:
        raise StoreError("the model was not learned from labels: name the column of classes (--labels).")
    k = n_neighbors or int(learned.get("n_neighbors", 5))
    mark = store.mark()
    if mark is not None and mark.model == model.hash:
        check_queries(queries, model.dimension, store.name)
        found = store.search(queries, k)
        ids = list(dict.fromkeys(value for row in found.tolist() for value in row if value is not None))
        batch = store.fetch(ids, [label])
        by_id = dict(zip(batch.ids.tolist(), batch.columns[label], strict=True))
        votes = [
            [by_id[value] for value in row if by_id.get(value) not in (None, "")] for row in found.tolist()
        ]
        if not all(votes):
            raise StoreError(
                f"{votes.count([])} queries have no neighbour with a {label} among {k}: ask for more."
            )
        return np.array([winners(np.array([[str(vote) for vote in row]]))[0] for row in votes])
    items = collect(store, columns_for(model, label), progress=progress).labeled(label)
    items = items.in_space(model.metric)
    moved, classes = items.moved(model), items.columns[label]
    rows = nearest(items.comparable(queries), moved, min(k, len(moved)), return_distance=False)
    return winners(np.array([label_text(value) for value in classes])[rows])
