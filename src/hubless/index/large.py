"""Learn how to move the items of an index beyond memory: chosen on a sample, learned from all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..candidates import name
from ..classifier_cv import CHOSEN_ON
from ..distributed.files import blocks_of_store
from ..distributed.learn import Ways, learn_seen, some, survey
from ..large.checkpoints import clear
from ..large.fit import learn
from ..large.memory import COPIES, budget, rows_to_choose_on
from ..large.sampling import Drawn, check_max_pairs
from ..large.sources import OfStore
from ..large.stream import Plan, gathered
from ..large.survey import Survey
from ..movers import Mover
from ..stores.store import Facts, Store
from .collection import Collection, check_original, fingerprint_of, space_of
from .learn import learn_from_labels
from .repair import Repair, unit

FEW = 10  # pairs per column, below which W is rough


def is_large(facts: Facts, memory: int) -> bool:
    """Whether the items are better read part by part: learning in memory holds several copies of them."""
    return 2 * COPIES * facts.count * facts.dimension * facts.itemsize > memory


def directions(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; a zero has no direction, and becomes NaN."""
    found = unit(vectors)
    found[~vectors.any(axis=1)] = np.nan
    return found


def _prepared(metric: str, name: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """What brings vectors into the space that they are moved in; StoreError where moving would harm."""
    if metric == "l2":
        return None

    def prepared(vectors: np.ndarray) -> np.ndarray:
        there = vectors[np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)]
        space_of(metric, there, name)  # refuses inner product of vectors of other lengths
        return directions(vectors)

    return prepared


def learn_large(
    store: Store,
    label: str,
    *,
    mover: str = "auto",
    max_pairs: Any = "auto",
    memory: Any = None,
    scratch: Path | None = None,
    skip_bad: bool = False,
    random_state: int = 0,
    progress: bool | None = False,
    on_dask: bool = False,
) -> Repair:
    """What `learn_from_labels` learns, from items part by part; the mover is chosen on a sample of them.

    Parameters
    ----------
    store : of any kind; label : its column of classes
    mover : "auto" or "ridge", as in `learn_from_labels`
    max_pairs, memory, scratch, skip_bad : as in `hubless.fit_large`; the scratch is cleared at the end
    on_dask : whether the workers of the current client read the files of the store, and learn
    """
    started = perf_counter()
    facts = OfStore.facts_of(store)
    metric = check_original(store, facts)
    prepared = _prepared(metric, store.name)
    choice = Choice(store.name, facts, label, "l2" if metric == "l2" else "cosine", mover, random_state)
    pairs = check_max_pairs(max_pairs, facts.dimension)
    source = OfStore(store, label, prepared)
    if scratch is not None:
        source.check_scratch(scratch)
    if on_dask:
        folder = None if scratch is None else scratch.absolute()
        ways = Ways(pairs, random_state, folder, progress=progress)
        model, seen = _on_dask(store, prepared, choice, ways, skip_bad)
    else:
        memory = budget(memory)
        at_most = min(CHOSEN_ON, max(1, facts.count))
        most = rows_to_choose_on(memory, facts.dimension, facts.itemsize, at_most)
        plan = Plan(pairs, memory, scratch, random_state, skip_bad, progress)
        with gathered(source, plan) as objects:
            seen, sample = objects.seen, objects.some(most)
            with plan.bar(None, "choose"):
                model = choose([sample], choice, seen.n)
            learn(model.mover, objects)
    if scratch is not None:
        clear(scratch)
    _tell(model, seen, perf_counter() - started)
    return model


def _on_dask(
    store: Store, prepared: Any, choice: "Choice", ways: Ways, skip_bad: bool
) -> tuple[Repair, Survey]:
    """The same on Dask: chosen by one worker, learned by all."""
    state = store.state()
    objects = blocks_of_store(store, choice.label, prepared, skip_bad=skip_bad)
    seen = survey(objects)
    model: Repair = some(objects, seen, CHOSEN_ON, ways.seed, choose, choice, seen.n)
    lesson = model.mover._lesson(seen.mean)
    model.mover._fit_sums(seen, learn_seen(objects, seen, lesson, ways))
    if store.state() != state:
        raise OSError(f"{store.name} changed while it was read. Start again.")
    return model, seen


class Choice(NamedTuple):
    """What the choice of a mover goes by."""

    name: str
    facts: Facts
    label: str
    metric: str
    mover: str
    seed: int


def choose(sample: Sequence[Drawn], choice: Choice, n: int) -> Repair:
    """The mover that is best on some of n items, to be fitted to all."""
    X, labels, every = Drawn.joined(sample)
    facts, columns = replace(choice.facts, count=len(X)), {choice.label: labels.tolist()}
    items = Collection(choice.name, facts, choice.metric, np.arange(len(X)), X, columns, 0)
    model = learn_from_labels(items, choice.label, mover=choice.mover, random_state=choice.seed)
    model.facts["learned"]["chosen on"] = len(X)
    model.facts["data"]["fingerprint"] = fingerprint_of(n, every)
    for figure in model.facts["figures"]:
        figure["measure"] += f", on a sample of {len(X):,}"
    return replace(model, mover=clone(model.mover))


def _tell(model: Repair, seen: Survey, seconds: float) -> None:
    """Keep what the model was learned from."""
    model.facts["data"]["count"] = seen.n
    model.facts["learned"] |= {
        "n": seen.n,
        "classes": len(seen.counts),
        "mover": name(model.mover),
        "pairs": model.mover.n_pairs_,
        "sampled": model.mover.n_pairs_ < _all_pairs(seen, model.mover),
        "left out": [{"part": part, "why": why} for part, why in seen.skipped],
        "without a vector or a label": seen.n_missing,
        "seconds": seconds,
    }


def _all_pairs(seen: Survey, mover: Mover) -> int:
    """How many pairs there are."""
    sizes = seen.sizes
    return int((sizes * np.minimum(getattr(mover, "n_targets", 0), sizes - 1)).sum())


def words(learned: dict[str, Any], n_columns: int) -> list[str]:
    """What a user should know of a model that was learned part by part."""
    lines = [
        f"Chosen on {learned['chosen on']:,} items, of which the figure is; learned from "
        f"{learned['pairs']:,} pairs of {learned['n']:,} items."
    ]
    if 0 < learned["pairs"] < FEW * n_columns < learned["n"]:
        lines.append(
            f"That is less than {FEW} pairs per column: expect less of it, or give --max-pairs more."
        )
    if learned["without a vector or a label"]:
        lines.append(f"{learned['without a vector or a label']:,} items lack a vector or a label.")
    lines += [f"left out: {entry['why']}" for entry in learned["left out"]]
    if learned["left out"]:
        lines.append("Repair or remove these parts before `hubless apply`, which moves all or none.")
    return lines
