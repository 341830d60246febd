"""What a task does, whatever the engine: look at a block, split it by class, learn from whole classes."""

from typing import Any, NamedTuple

import numpy as np

from hubless import MoveLabeled
from hubless.large.lesson import Sums, learn_classes, taught_in
from hubless.large.plan import pack
from hubless.large.sampling import Sample
from hubless.large.survey import Block, Look, survey_part

AT_ONCE = 8_000  # objects that a task learns from at once, or one class, where it has more


class Work(NamedTuple):
    """What all tasks know."""

    classes: np.ndarray  # (c,), sorted
    bins: np.ndarray  # (c,), the bin of each class
    n_bins: int
    sample: Sample  # who teaches
    lesson: Any  # what is learned


def look(block):
    """What classes a block (number, X, y) has, and where its middle is; a bad block is named in the error."""
    number, X, y = block
    return survey_part([Block(f"block {number}", X, y)], X.shape[1], Look())


def plan(seen, lesson, max_pairs):
    """Whole classes packed into bins of like work."""
    sample = Sample.of(seen.sizes, max_pairs, max(1, lesson.n_targets), seed=0)
    bins = pack(seen.sizes, sample.counts, max(AT_ONCE, seen.sizes.max()), np.inf)
    return Work(seen.classes, bins.first, max(2, bins.n), sample, lesson)  # Ray splits into two at least


def split(block, work):
    """The objects of a block, bin by bin: (number of the block, class numbers, objects)."""
    number, X, y = block
    codes = np.searchsorted(work.classes, y)
    bins = work.bins[codes]
    return [(number, codes[bins == one], X[bins == one]) for one in range(work.n_bins)]


def learn_bin(work, *pieces):
    """What the classes of a bin teach: sums, which are the same in whatever order the pieces come."""
    _, codes, X = zip(*sorted(pieces, key=lambda piece: piece[0]), strict=True)
    codes, X = np.concatenate(codes), np.concatenate(X)
    if not len(X):
        return Sums.none(work.lesson)
    X = X[np.argsort(codes, kind="stable")]
    codes, sizes = np.unique(codes, return_counts=True)
    return learn_classes(X, codes, sizes, taught_in(work.sample, codes, sizes), work.lesson)


def move(block, mover):
    """A block with its objects where the mover moves them."""
    number, X, y = block
    return number, mover.move(X), y


def read(number):
    """A block. This one is made up, of 200 classes of Zipf's sizes; a task of yours reads a file."""
    rng, centres = np.random.default_rng([1, number]), np.random.default_rng(0).standard_normal((200, 64))
    y = np.minimum(rng.zipf(1.3, 5_000), 200) - 1
    return number, centres[y] + rng.standard_normal((5_000, 64)), y


def check(mover, blocks):
    """The largest differences to a fit in memory: of W, and of moved objects. `blocks` are moved ones."""
    whole = [read(number) for number, _, _ in blocks]
    X, y = np.concatenate([X for _, X, _ in whole]), np.concatenate([y for _, _, y in whole])
    truth = MoveLabeled().fit(X, y)
    found = np.concatenate([Z for _, Z, _ in blocks])
    assert np.allclose(mover.W_, truth.W_, rtol=1e-9, atol=1e-12)
    assert np.allclose(found, truth.move(X), rtol=1e-9, atol=1e-9)
    return {
        "largest difference of W": float(abs(mover.W_ - truth.W_).max()),
        "largest difference of a moved object": float(abs(found - truth.move(X)).max()),
    }
