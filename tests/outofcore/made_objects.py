"""Labeled objects, movers that learn in parts, and what it means that two of them are the same."""

import numpy as np

from hubless import MoveLabeled
from hubless.movers import LabelRidge, Scale, Shrink, Stay

SIZES = [90, 40, 9, 3, 2, 2, 1, 1]
MOVERS = {
    "one target": MoveLabeled(),
    "three targets": MoveLabeled(n_targets=3),
    "more targets than objects": MoveLabeled(n_targets=200),
    "no centre": MoveLabeled(center=False),
    "toward identity": MoveLabeled(2.0, toward="identity"),
    "label ridge": LabelRidge(n_targets=2, keep=0.7),
    "shrink": Shrink(0.4),
    "scale": Scale(0.3),
    "stay": Stay(),
}
LABELS = {
    "ints": lambda codes: 7 * codes - 9,
    "texts": lambda codes: np.array(["é", "b", "aa", "ab", "z z", "10", "9", "Z"])[codes],
    "truth": lambda codes: codes > 0,
    "whole floats": lambda codes: codes * 2.0,
}


def objects(rng, sizes=SIZES, d=5, *, grid=False, dtype=np.float64):
    """Return rows of classes in no order, far from the origin; on a grid with many ties and copies."""
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = 3 + 2 * rng.standard_normal((len(sizes), d))[codes] + rng.standard_normal((len(codes), d))
    X = np.round(X) if grid else X
    X[1::7] = X[codes.tolist().index(0)] if grid else X[1::7]  # copies, also across classes
    return X.astype(dtype), codes


def fresh(mover, **changes):
    """Return a mover with the same parameters, not fitted."""
    return type(mover)(**{**mover.get_params(), **changes})


def assert_same(got, want, X, y, rounding):
    """Compare what two movers learned, and where they move objects."""
    for name in ("W_", "mean_", "means_", "alpha_"):
        assert hasattr(got, name) == hasattr(want, name)
        if hasattr(want, name):
            ours, theirs = np.asarray(getattr(got, name)), np.asarray(getattr(want, name))
            assert ours.dtype == theirs.dtype
            assert np.linalg.norm(ours - theirs) <= rounding * np.linalg.norm(theirs), name
    np.testing.assert_array_equal(got.classes_, want.classes_)
    assert got.classes_.dtype.kind == want.classes_.dtype.kind
    assert got.n_singletons_ == want.n_singletons_
    assert got.n_features_in_ == want.n_features_in_
    there, here = got.move(X[:30] + 1, y[:30]), want.move(X[:30] + 1, y[:30])
    assert np.abs(there - here).max() <= rounding * np.abs(here).max()


def searches(y, size, group):
    """Return the blocks that each group of sources is compared with: those that have objects of its classes.

    Blocks of the copy hold `size` objects in order of class, each block as they came.
    """
    n = len(y)
    in_order = sorted(range(n), key=lambda i: (y[i], i))
    block = {i: place // size for place, i in enumerate(in_order)}
    copied = sorted(range(n), key=lambda i: (block[i], i))
    groups = [{y[i] for i in copied[first : first + group]} for first in range(0, n, group)]
    return [sorted({block[i] for i in range(n) if y[i] in classes}) for classes in groups]


def n_pairs(sizes, k):
    """Return how many pairs classes of these sizes have."""
    return sum(n * min(k, n - 1) for n in sizes)


def naive_moments(X, y, sources, k, about="mean"):
    """Return A, K and the number of pairs of sources with the nearest of their whole class, by a loop.

    Pairs are taken about the mean of all objects, or of their class; each counts as n / sources pairs.
    """
    A, K, count, weight = 0.0, 0.0, 0, len(X) / len(sources)
    for i in sources:
        others = np.flatnonzero(y == y[i])
        centre = X.mean(axis=0) if about == "mean" else X[others].mean(axis=0)
        others = others[others != i]
        squared = ((X[others] - X[i]) ** 2).sum(axis=1)
        for j in others[np.lexsort((others, squared))[:k]]:
            x, z = X[i] - centre, X[j] - centre
            A, K, count = A + weight * np.outer(x, z), K + weight * np.outer(z, z), count + 1
    return A, K, count
