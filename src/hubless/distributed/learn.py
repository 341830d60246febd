"""Learn on Dask: look at blocks, shuffle by class into bins of like work, learn bin by bin, add up in a tree.

A worker that dies costs time and nothing else: every result depends on its input alone. What comes back to
the client is sums.
"""

from collections.abc import Callable
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..large import tasks
from ..large.lesson import Lesson, Sums
from ..large.plan import pack
from ..large.sampling import Draw, Sample
from ..large.survey import Look, Survey, kind_of, refused
from ..large.tasks import Work
from ..progress import bar_of
from ..stores.store import need
from .engine import as_array, as_labels, compute, delayed_blocks, tree

BIN = 1 << 28  # bytes of objects of a bin


class Blocks(NamedTuple):
    """Labeled objects in blocks, each computed where it is needed."""

    blocks: list[Any]  # Delayed Block
    names: list[str]
    n_columns: int
    look: Look


class Ways(NamedTuple):
    """How objects are learned from."""

    max_pairs: int | None
    seed: int = 0
    checkpoint: Path | None = None  # a folder that all workers see
    shuffle: str | None = None  # "p2p" or "tasks"; None lets Dask choose
    progress: bool | None = False  # whether a bar is shown; None shows it on a terminal


def blocks_of(X: Any, y: Any, *, skip_bad: bool = False) -> Blocks:
    """Labeled objects from Dask arrays or data frames."""
    delayed, X = need("dask", "dask").delayed, as_array(X)
    pairs = zip(delayed_blocks(X), delayed_blocks(as_labels(y, X)), strict=True)
    names = [f"block {i} of X" for i in range(X.numblocks[0])]
    blocks = [delayed(tasks.as_block)(x, own, name) for (x, own), name in zip(pairs, names, strict=True)]
    return Blocks(blocks, names, X.shape[1], Look(texts=False, may_miss=False, skip_bad=skip_bad))


def learn(objects: Blocks, lesson_of: Callable[[np.ndarray], Lesson], ways: Ways) -> tuple[Survey, Sums]:
    """What is to be seen of objects, and what they teach."""
    lesson_of(np.zeros(objects.n_columns))  # refuses what cannot be learned so before anything is read
    seen = survey(objects)
    return seen, learn_seen(objects, seen, lesson_of(seen.mean), ways)


def learn_seen(objects: Blocks, seen: Survey, lesson: Lesson, ways: Ways) -> Sums:
    """What objects teach that were looked at."""
    if not lesson.n_targets and not lesson.means:
        return Sums.none(lesson)
    sample = Sample.of(seen.sizes, ways.max_pairs, max(1, lesson.n_targets), ways.seed)
    at_once = max(1, BIN // (objects.n_columns * np.dtype(seen.dtype).itemsize))
    bins = pack(sample.sizes, sample.counts if lesson.n_targets else 0 * sample.counts, at_once)
    work = Work(
        objects.n_columns,
        np.dtype(seen.dtype),
        seen.classes,
        sample,
        bins,
        lesson,
        objects.look,
        ways.checkpoint,
    )
    shared = need("dask", "dask").delayed(work, pure=True)  # once, not in every task
    lessons = lessons_of(shuffled(objects, seen, work, shared, ways), work, shared)
    with bar_of(ways.progress, len(lessons), unit=" parts", desc="learn") as bar:
        found: Sums = compute(tree(tasks.add_sums, lessons), lessons, bar)
        return found


def some(objects: Blocks, seen: Survey, most: int, seed: int, use: Callable[..., Any], *others: Any) -> Any:
    """What a worker makes of about `most` objects by chance, a list of Drawn, and of what else is given."""
    delayed = need("dask", "dask").delayed
    classes, draw = (delayed(own, pure=True) for own in (seen.classes, Draw.of(seen.sizes, most, seed)))
    sample = [
        delayed(tasks.some_of)(block, objects.n_columns, objects.look, first, classes, draw)
        for block, first in _kept(objects, seen)
    ]
    return compute(delayed(use)(sample, *others))


def _kept(objects: Blocks, seen: Survey) -> list[tuple[Any, int]]:
    """The blocks that were not left out, and how many objects come before each."""
    left_out = {part.part for part in seen.skipped}
    starts = np.cumsum([0, *seen.lengths])[:-1].tolist()
    found = zip(objects.blocks, starts, objects.names, strict=True)
    return [(block, first) for block, first, name in found if name not in left_out]


def survey(objects: Blocks) -> Survey:
    """What is to be seen of all blocks; BadPart where one is bad, unless such are left out."""
    delayed = need("dask", "dask").delayed
    looks = [delayed(tasks.look_at)(block, objects.n_columns, objects.look) for block in objects.blocks]
    if not objects.look.texts:  # labels are all texts or all numbers, as those of the first block
        kind = tree(tasks.first_kind, [delayed(kind_of)(look) for look in looks])
        named = zip(looks, objects.names, strict=True)
        looks = [delayed(tasks.of_kind)(look, kind, name) for look, name in named]
    seen: Survey = compute(tree(tasks.add_surveys, [delayed(tasks.add_surveys)([look]) for look in looks]))
    if seen.skipped and not objects.look.skip_bad:
        seen.skipped = seen.skipped[:1]
        raise refused(seen)
    left_out = {part.part for part in seen.skipped}
    good = [name not in left_out for name in objects.names]
    if sum(good) and len(seen.skipped) < len(good) - sum(good):  # a file is left out as a whole
        blocks, names = (list(compress(own, good)) for own in (objects.blocks, objects.names))
        rest = survey(objects._replace(blocks=blocks, names=names))
        lengths = iter(rest.lengths)
        rest.lengths = [next(lengths) if there else 0 for there in good]
        rest.skipped = list({part.part: part for part in reversed(seen.skipped)}.values())[::-1]
        seen = rest
    seen.check()
    return seen


def lessons_of(parts: list[Any], work: Work, shared: Any) -> list[Any]:
    """Sums of all bins and chunks, to be computed."""
    delayed = need("dask", "dask").delayed
    found = [delayed(tasks.learn_bin)(part, shared) for part in parts[: work.bins.n_whole]]
    for code in work.bins.cut.tolist():
        first = int(work.bins.first[code])
        own = parts[first : first + int(work.bins.chunks[code])]
        found += _chunks(own, code, work, shared)
    return found


def shuffled(objects: Blocks, seen: Survey, work: Work, shared: Any, ways: Ways) -> list[Any]:
    """The objects of each bin as a data frame, brought together by Dask's own shuffle."""
    delayed, frames = need("dask", "dask").delayed, need("dask.dataframe", "dask")
    kept = _kept(objects, seen)
    before: Any = [None] * len(kept)
    if len(work.bins.cut):  # ranks inside a class that is cut, from how many of it each block has
        counts = [delayed(tasks.counts_of)(block, shared) for block, _ in kept]
        before = delayed(tasks.counts_before)(counts)
    sorted_blocks = [
        delayed(tasks.sorted_into_bins)(block, shared, start, before[i])
        for i, (block, start) in enumerate(kept)
    ]
    none = np.zeros(0, dtype=np.int64)
    meta = tasks.as_frame(none, none, none, np.empty((0, work.n_columns), work.dtype))
    together = frames.from_delayed(sorted_blocks, meta=meta, verify_meta=False)
    divisions = tuple(range(work.bins.n + 1))
    return list(together.set_index("bin", divisions=divisions, shuffle_method=ways.shuffle).to_delayed())


def _chunks(parts: list[Any], code: int, work: Work, shared: Any) -> list[Any]:
    """Sums of a class that is cut: each group of its sources meets each of its chunks."""
    delayed = need("dask", "dask").delayed
    chunks = [delayed(tasks.chunk_of)(part, shared, code, i) for i, part in enumerate(parts)]
    found, whole = [], None
    if work.lesson.means:
        whole = delayed(tasks.class_sum)(code, [delayed(tasks.sum_of)(chunk) for chunk in chunks], shared)
        found.append(whole)
    if work.lesson.n_targets:
        contents = [delayed(tasks.content)(chunk) for chunk in chunks]
        sources = [delayed(tasks.sources_in)(chunk, shared) for chunk in chunks]
        for group in np.array_split(np.arange(len(chunks)), int(work.bins.groups[code])):
            own = [sources[i] for i in group]
            asking = delayed(tasks.asking)(code, own, contents, shared)
            nearest = [delayed(tasks.nearest_of)(asking, chunk, shared) for chunk in chunks]
            found.append(delayed(tasks.learn_asking)(asking, tree(tasks.nearer, nearest), whole, shared))
    return found
