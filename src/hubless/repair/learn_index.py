"""Learn how to move the items of an index: in memory, or block by block, here or on Dask.

Block by block, the mover is chosen on a sample of the items and learned from all of them.
"""

import os
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..arrays.inputs import check_choice
from ..neighbors.knn import unit
from ..outofcore.checkpoints import clear, scratch_folder
from ..outofcore.dask.dask_files import objects_of_store
from ..outofcore.dask.dask_fit import CHOSEN_ON
from ..outofcore.dask.engine import cluster
from ..outofcore.learn import Plan, fit_seen, look, with_sample
from ..outofcore.memory import COPIES, budget, rows_to_choose_on
from ..outofcore.objects import Objects
from ..outofcore.sampling import Drawn, SampledPairs, check_max_pairs
from ..outofcore.sources import StoreObjects, facts_of
from ..outofcore.survey import Survey
from ..selection.candidates import name
from ..stores.checks import check_outside
from ..stores.store import Facts, Store, StoreError
from ..support.progress import reports_steps
from .before_reading import check_asked, check_facts, check_items
from .index_items import (
    IndexItems,
    Source,
    all_batches,
    as_store,
    fingerprint_of,
    read_items,
    read_items_to_correct,
    space_of,
)
from .judgements import match_judgements, read_judgements
from .learn_across import learn_across_spaces
from .learn_from_log import check_column, check_length, check_width, learn_from_log, read_log
from .learn_in_memory import check_classes, learn_from_labels, learn_from_pairs
from .repair import Repair

MOVERS = ("auto", "ridge")


@reports_steps
def fit_index(
    source: Source,
    *,
    labels: str | None = None,
    pairs: str | os.PathLike[str] | None = None,
    queries: Source | None = None,
    mover: str = "auto",
    column: bool = False,
    in_parts: bool | None = None,
    memory: str | int | None = None,
    max_pairs: str | int | None = "auto",
    scratch: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    dask: str | None = None,
    random_state: int = 0,
    progress: bool | None = False,
) -> Repair:
    """Learn how to move the items of an index: from labels, from queries and their answers, or from queries.

    From labels and from answers, parameters are chosen on held-out queries; not moving at all is among the
    choices. From queries alone, items that answer more of them than chance allows are held back, and the
    others stay where they are.

    Parameters
    ----------
    source : name of a store, or Store
    labels : str, optional
        Column with the class of each item. Give this, or `queries`, with or without `pairs`.
    pairs : path, optional
        Relevance judgements: a table with query-id, corpus-id and score, or TREC's four columns.
    queries : name of a store, or Store, optional
        The query vectors that `pairs` names by their ids. Where they have another number of columns than the
        items, as captions for images, items are moved into their space.
    mover : "auto" or "ridge"
        From labels: the best of many movers, or the paper's with λ chosen.
    column : bool
        From queries: whether to write the correction into one more column, exactly, in which queries get a
        0. By default it is written into the columns there are, and queries stay as they are. For L2 only.
    in_parts : bool, optional
        From labels: whether to read the items block by block. By default, where they do not fit in memory or
        where `memory`, `max_pairs`, `skip_bad` or `dask` is given.
    memory : int or str, optional
        Memory limit such as "2GB"; by default half of the memory of this machine.
    max_pairs : int, "auto" or None
        Pairs to learn from at most; None for all. "auto" takes all where that is affordable, else a sample.
    scratch : path, optional
        Folder for intermediate results, from which an interrupted run resumes; it is cleared at the end.
    skip_bad : bool
        Whether to skip parts that cannot be read, and list them in `facts["learned"]["left out"]`.
    dask : str, optional
        Address of a running Dask scheduler; "" starts a cluster on this machine.
    random_state : int
        Seed of the folds and samples.
    progress : bool or None
        Whether to show progress bars; None shows them on a terminal.

    Returns
    -------
    model : Repair
        Save it with `hubless.save`; `model.facts["learned"]` says what was chosen and why.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> from hubless.stores.opening import open_store
    >>> np.save("labels.npy", y)
    >>> items = open_store("items.npy", items="labels.npy")
    >>> model = repair.fit_index(items, labels="label", mover="ridge")
    >>> model.learned["n"], model.learned["classes"]
    (90, 3)
    """
    check_choice("mover", mover, MOVERS)
    store, parts = as_store(source), InParts(memory, max_pairs, skip_bad, dask, scratch)
    _check_given(labels, pairs, queries, column, parts)
    if labels is None:
        options: dict[str, Any] = {"column": column, "random_state": random_state}
        assert queries is not None
        return _fit_queries(store, as_store(queries), pairs, options)
    if memory is not None and dask is not None:
        raise StoreError("memory (--memory) is for one process: leave it out, as Dask has its own limits.")
    limit, facts = budget(memory), check_facts(store, facts_of(store), [labels])
    if in_parts is None:
        in_parts = parts.given() not in ([], ["scratch"]) or is_large(facts, limit)
    if not in_parts:
        items = read_items(store, [labels])
        return learn_from_labels(items, labels, mover=mover, random_state=random_state)
    plan = Plan(check_max_pairs(max_pairs), random_state, scratch_folder(scratch))
    if plan.checkpoints is not None:
        check_outside(store, plan.checkpoints)
    with nullcontext() if dask is None else cluster(dask):
        parts = parts._replace(memory=limit)
        return _fit_in_parts(store, facts, labels, mover, parts, plan)


def _check_given(labels: Any, pairs: Any, queries: Any, column: bool, parts: "InParts") -> None:
    """Refuse arguments that do not go together."""
    if labels is not None and pairs is not None:
        raise StoreError("give the column of classes (labels, --labels) or judgements (pairs, --pairs).")
    for option in parts.given() if labels is None else []:
        typed = option.replace("_", "-")
        raise StoreError(f"{option} (--{typed}) is for labels (--labels): queries are learned in memory.")
    if pairs is not None and queries is None:
        raise StoreError("pairs (--pairs) need the vectors of their queries: queries, --queries SOURCE.")
    if labels is None and queries is None:
        raise StoreError(
            "give what to learn from: the column of classes (labels, --labels), queries and their answers "
            "(queries and pairs, --queries and --pairs), or queries alone (--queries)."
        )
    if labels is not None and (queries is not None or column):
        name = "column" if queries is None else "queries"
        raise StoreError(f"{name} (--{name}) is not used with labels (--labels): leave one of them out.")


def _fit_queries(store: Store, queries: Store, pairs: Any, options: dict[str, Any]) -> Repair:
    """Learn from queries: with some answers, a map and a correction; without any, a correction alone."""
    facts = check_items(store)
    d = facts.dimension
    check_column(options["column"], facts.metric, store.name)
    n_queries, width = check_asked(queries)
    if pairs is None:
        check_width(queries.name, width, d)
        check_length(n_queries)
        log, missing = read_log(queries)
        check_length(len(log))
        items = read_items_to_correct(store)
        model = learn_from_log(items, log, **options)
    else:
        judged = read_judgements(pairs)
        batches = all_batches(queries, count=n_queries)
        log, missing = read_log(queries, batches=batches)
        items = read_items(store)
        judgements = match_judgements(queries, pairs, items, batches, judged)
        learn = learn_from_pairs if judgements.queries.shape[1] == d else learn_across_spaces
        model = learn(items, judgements, log, **options)
    model.facts["learned"] |= {"items without a vector": items.missing, "queries without a vector": missing}
    return model


class InParts(NamedTuple):
    """How items are read block by block; parameters of `fit_index`."""

    memory: Any = None
    max_pairs: Any = "auto"
    skip_bad: bool = False
    dask: str | None = None
    scratch: Any = None

    def given(self) -> list[str]:
        """Return which of these parameters were given."""
        return [name for name, default in self._field_defaults.items() if getattr(self, name) != default]


# --- block by block -----------------------------------------------------------------------------------------


def is_large(facts: Facts, memory: int) -> bool:
    """Return whether items should be read block by block: learning in memory holds several copies."""
    return 2 * COPIES * facts.count * facts.dimension * facts.itemsize > memory


def _fit_in_parts(store: Store, facts: Facts, label: str, mover: str, parts: InParts, plan: Plan) -> Repair:
    """Choose a mover on a sample of the items, and fit it to all; the scratch is cleared at the end."""
    started, metric = perf_counter(), facts.metric or "l2"
    prepare = None if metric == "l2" else partial(directions, metric, store.name)
    options: dict[str, Any] = {"skip_bad": parts.skip_bad}
    most = CHOSEN_ON
    if parts.dask is not None:
        objects: Objects = objects_of_store(store, label, prepare, **options)
    else:
        objects = StoreObjects(store, label, parts.memory, prepare, **options)
        most = rows_to_choose_on(
            parts.memory, facts.dimension, facts.itemsize, min(most, max(1, facts.count))
        )
    seen = look(objects, plan.seed, n=facts.count, per_class=True)
    no_rows = np.empty((0, facts.dimension))
    check_classes(len(seen.classes), label, seen.n)
    items = IndexItems(store.name, facts, "l2" if metric == "l2" else "cosine", no_rows[:, 0], no_rows, {}, 0)
    chosen = partial(choose_on_sample, items, label, mover, plan.seed, seen.n)
    model: Repair = with_sample(objects, seen, most, plan.seed, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SampledPairs)  # the facts say so
        fit_seen(model.mover, objects, seen, plan)
    if plan.checkpoints is not None:
        clear(plan.checkpoints)
    _note(model, seen, perf_counter() - started)
    return model


def directions(metric: str, name: str, vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1; a zero has no direction, and becomes NaN.

    StoreError where vectors of other lengths than 1 are compared by inner product, which moving would harm.
    """
    space_of(metric, vectors[np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)], name)
    units = unit(vectors)
    units[~vectors.any(axis=1)] = np.nan
    return units


def choose_on_sample(items: IndexItems, label: str, mover: str, seed: int, n: int, sample: Drawn) -> Repair:
    """Return the mover that is best on a sample of n items, to be fitted to all; `items` has no rows yet."""
    X, labels, every_nth = sample
    items = replace(items, ids=np.arange(len(X)), vectors=X, columns={label: labels.tolist()})
    model = learn_from_labels(items, label, mover=mover, random_state=seed)
    model.facts["learned"]["chosen on"] = len(X)
    model.facts["data"]["fingerprint"] = fingerprint_of(n, every_nth)
    for figure in model.facts["figures"]:
        figure["measure"] += f", on a sample of {len(X):,}"
    # an index of more items than the sample has nearer ones: what was learned of distances is not kept
    return replace(model, mover=clone(model.mover), scores=model.scores if len(X) == n else None)


def _note(model: Repair, seen: Survey, seconds: float) -> None:
    """Note in a model what it was learned from."""
    all_pairs = seen.n_pairs(getattr(model.mover, "n_targets", 0))
    model.facts["data"]["count"] = seen.n
    model.facts["learned"] |= {
        "n": seen.n,
        "classes": len(seen.classes),
        "mover": name(model.mover),
        "pairs": model.mover.n_pairs_,
        "all pairs": all_pairs,
        "sampled": model.mover.n_pairs_ < all_pairs,
        "left out": [{"part": part, "why": why} for part, why in seen.skipped],
        "without a vector or a label": seen.n_missing,
        "seconds": seconds,
    }
