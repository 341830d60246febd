"""Learn from objects that are not all in memory, with the result that a fit in memory would give.

    look      the classes, their sizes, the mean, what is wrong                      every block once
    draw      the sources x: all objects, or a sample of them, a group at a time     blocks that have some
    search    for the nearest objects of the class of each source                    every block, for a group
    sum       the moments of the pairs (x, z) with these targets z                   every block, for a group

Moments add up, and so do the sums of classes. Objects that fit in the memory of one process together are
learned from there. `pair_sums` has the last three steps, `block_steps` what is done with one block, and
`objects` who does it.

Where this process reads the objects itself, it reads them twice at most: a look keeps the rows that may be
sources (`kept`), and the search holds the vectors of their targets (`one_pass`). Sources in several groups
are compared with a copy on disk, in order of class (`copy`), which the second read writes: each group with
the blocks of its classes.
"""

from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..moments import SUMS, Moments
from ..movers import Mover
from ..movers.totals import Needs, Totals
from .block_steps import ClassSums, Rows, Work, all_rows, class_sums, drawn_rows
from .copy import CopiedObjects
from .kept import KeptRows
from .objects import LocalObjects, Objects, changed
from .one_pass import OnePass, kept_sources
from .pair_sums import PairSummation, bytes_of_source, group_size
from .sampling import Draw, Drawn, n_sources, sampled_sources, warn_sampled
from .survey import Survey, survey


class Plan(NamedTuple):
    """How objects are learned from."""

    max_pairs: Any = "auto"  # see `sampling.n_sources`
    seed: int = 0
    checkpoints: Path | None = None  # a folder that every process sees


def fit(mover: Mover, objects: Objects, plan: Plan, feature_names: Any = None) -> None:
    """Fit a mover to objects in blocks, as a fit to all of them in memory would."""
    mover._needs()  # raises for movers that cannot learn in parts, before anything is read
    fit_seen(mover, objects, look(objects, plan.seed), plan, feature_names)


def look(objects: Objects, seed: int, *, n: int = 0, per_class: bool = False) -> Survey:
    """Look at all objects, and keep rows that may be drawn with this seed where this process reads them.

    With `per_class`, those that `with_sample` may draw are kept too; there should be n objects then.
    """
    if not isinstance(objects, LocalObjects):
        return survey(objects)
    capacity = group_size(objects.room, objects.look.n_columns, objects.itemsize, 1)
    return survey(objects, KeptRows(capacity, seed, n // 1000, per_class=per_class))


def fit_seen(mover: Mover, objects: Objects, seen: Survey, plan: Plan, feature_names: Any = None) -> None:
    """Fit a mover to objects that were looked at; where it raises, the mover has not changed."""
    needs, all_pairs = mover._needs(), seen.n_pairs(mover._needs().n_targets)
    m = n_sources(seen.sizes, objects.look.n_columns, needs.n_targets, plan.max_pairs)
    k, itemsize = min(needs.n_targets, int(seen.sizes.max()) - 1), np.dtype(seen.dtype).itemsize
    size = seen.n * bytes_of_source(objects.look.n_columns, itemsize, k)
    if m == seen.n and size <= objects.room_for_all():
        learned = _with_all(objects, seen, partial(_fit_in_memory, clone(mover)))
        learned |= {"n_pairs_": all_pairs, "skipped_": [(part.part, part.why) for part in seen.skipped]}
    else:
        fitted = clone(mover)
        fitted._fit_totals(sum_up(objects, seen, needs, m, plan))
        learned = _learned(fitted)
    if objects.state() != seen.state:
        raise changed(objects.name)
    if feature_names is not None:
        learned["feature_names_in_"] = np.array(feature_names, dtype=object)
    for name in _learned(mover):
        delattr(mover, name)
    mover.__dict__.update(learned)
    if plan.max_pairs == "auto" and mover.n_pairs_ < all_pairs:
        warn_sampled(mover.n_pairs_, all_pairs)


def _learned(mover: Mover) -> dict[str, Any]:
    """Return what a mover has learned, by name."""
    return {name: value for name, value in vars(mover).items() if name.endswith("_")}


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, where all are texts, as scikit-learn does."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


# --- in the memory of one process --------------------------------------------------------------------------


def with_sample(objects: Objects, seen: Survey, most: int, seed: int, use: Any) -> Any:
    """Return use(Drawn) of about `most` objects at random, which one process draws and uses."""
    work, draw = Work.of(objects.name, objects.look, seen), Draw.of(seen.sizes, most, seed)
    kept = None if seen.kept is None else seen.kept.draw(draw, work.classes)
    if kept is not None:
        return use(kept._replace(X=kept.X.astype(work.dtype), every=kept.every.astype(work.dtype)))
    sample = objects.map(drawn_rows, Drawn.join, work, draw, wanted=seen.filled, title="drawing a sample")
    return objects.take(objects.call(use, sample))


def _with_all(objects: Objects, seen: Survey, use: Any) -> Any:
    """Return use(Rows, classes) of all objects, for which one process has room."""
    work = Work.of(objects.name, objects.look, seen)
    kept = None if seen.kept is None else seen.kept.rows(np.arange(seen.n), work.classes)
    if kept is not None:
        return use(Rows(np.arange(seen.n), kept[0].astype(work.dtype, copy=False), kept[1]), work.classes)
    if seen.kept is not None:
        seen.kept.clear()
    rows = objects.map(all_rows, Rows.join, work, wanted=seen.filled, title="reading the objects")
    return objects.take(objects.call(use, rows, work.classes))


def _fit_in_memory(mover: Mover, rows: Rows, classes: np.ndarray) -> dict[str, Any]:
    # numbers instead of labels: an array of texts takes the length of the longest for each
    return _learned(mover.fit(rows.X, rows.codes)) | {"classes_": classes}


# --- from sums ---------------------------------------------------------------------------------------------


def sum_up(objects: Objects, seen: Survey, needs: Needs, n_sources: int, plan: Plan) -> Totals:
    """Return the sums over objects that a mover learns from; `n_sources` of the objects are sources."""
    work = Work.of(objects.name, objects.look, seen)
    if needs.class_means:
        objects.check_means(len(work.classes))
    pairs = PairSummation(
        objects, seen, work, needs.n_targets, plan.checkpoints, needs.centred, needs.within_classes
    )
    sources = kept_sources(pairs, n_sources, plan.seed) if needs.n_targets else None
    if seen.kept is not None:
        seen.kept.clear()
    if sources is not None:
        one = OnePass(pairs, sources, class_means=needs.class_means)
        moments, means = one.moments(), one.class_means()
    else:
        moments, means = _sum_in_groups(pairs, needs, n_sources, plan)
    return Totals(
        seen.n,
        seen.mean,
        work.dtype,
        work.classes,
        seen.sizes,
        None if moments is None else scaled(moments, seen.n / n_sources),
        0 if moments is None else round(moments.weight),
        means,
        [(part.part, part.why) for part in seen.skipped],
    )


def _sum_in_groups(pairs: PairSummation, needs: Needs, n_sources: int, plan: Plan) -> tuple[Any, Any]:
    """Return moments and means, None where they are not needed, from as many reads as there are groups."""
    seen, sources = pairs.seen, sampled_sources(pairs.seen.n, n_sources, plan.seed)
    means = moments = None
    with ExitStack() as stack:
        if needs.n_targets and isinstance(pairs.objects, LocalObjects):  # then of a copy, if there is room
            copied = CopiedObjects(pairs.objects, seen, pairs.work, sources)
            stack.enter_context(closing(copied))
            if copied.write(plan.checkpoints):
                how: dict[str, Any] = {"objects": copied, "work": copied.work}
                how["blocks_of_classes"] = copied.blocks_of_classes
                pairs, sources = replace(pairs, **how), copied.sources
        objects, work = pairs.objects, pairs.work
        if needs.class_means:
            sums = objects.map(
                class_sums, ClassSums.join, work, wanted=work.filled, title="adding up classes"
            )
            means = objects.call(ClassSums.means, sums, seen.sizes)
        if needs.n_targets:
            pairs = replace(pairs, class_means=means if needs.within_classes else None)
            moments = pairs.moments(sources)
        return moments, None if means is None else objects.take(means)


def scaled(moments: Moments, weight: float) -> Moments:
    """Return moments of pairs that count as `weight` pairs each: what a sample says of all."""
    sums = (getattr(moments, name) for name in SUMS)
    return moments if weight == 1.0 else Moments(moments.origin, *(weight * value for value in sums))
