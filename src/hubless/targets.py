"""Targets: for each labeled object, the same-class objects that should move toward it.

A matrix of targets has one row per object and one column per target, nearest first; −1 means none.
"""

from typing import Any, NamedTuple

import array_api_compat as compat

from .arrays import Array, device_of, namespace, subset, take_rows, tally, to_numpy
from .neighbors import check_neighbors
from .neighbors.within import nearest_within


# T_i = the n_targets objects of the class of x_i, other than x_i, nearest to x_i (Sec. 3)
def same_class_targets(X: Array, codes: Array, n_targets: int = 1) -> Array:
    """Find the nearest same-class objects of each object, in Euclidean distance.

    Parameters
    ----------
    X : array of shape (n, d)
    codes : integer array of shape (n,), of the same library: the class of each object, counted from 0
    n_targets : int

    Returns
    -------
    targets : int64 array of shape (n, n_targets)
        Nearest first, ties to the lower index, an object never its own target (but an exact duplicate may
        be). A class of c objects gives c − 1 targets at most; the places left over hold −1.

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array([0, 0, 1, 1])
    >>> same_class_targets(X, codes).tolist()  # the nearest of the same class
    [[1], [0], [3], [2]]
    """
    xp = namespace(X, codes)
    order = xp.argsort(codes, stable=True)  # class by class, and by index inside a class
    sizes = to_numpy(tally(codes, int(xp.max(codes)) + 1))
    return nearest_within(X, order, sizes, n_targets)


def restrict(targets: Array, kept: Array, n_targets: int) -> Array:
    """Return the targets among the kept objects: the first n_targets of each row that are kept, renumbered.

    Parameters
    ----------
    targets : int64 array of shape (n, width), over all n objects
    kept : int64 array of shape (m,), ascending: the objects that remain
    n_targets : int

    Returns
    -------
    targets : int64 array of shape (m, min(n_targets, width))

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([[1, 2], [0, 2], [1, 0]])
    >>> restrict(targets, np.array([0, 2]), 1).tolist()  # object 1 is left out, and 2 becomes 1
    [[1], [0]]
    """
    xp, device = namespace(targets, kept), compat.device(targets)
    n = targets.shape[0]
    place = xp.cumulative_sum(tally(kept, n)) - 1  # new number of each kept object
    is_kept = tally(kept, n) > 0
    rows = take_rows(targets, kept)
    flat = xp.reshape(xp.clip(rows, min=0), (-1,))
    remains = xp.reshape(take_rows(is_kept, flat), rows.shape) & (rows >= 0)
    renumbered = xp.reshape(take_rows(xp.astype(place, xp.int64), flat), rows.shape)
    renumbered = xp.where(remains, renumbered, xp.asarray(-1, dtype=xp.int64, device=device))
    # the targets that remain, in their old order, then the gaps
    order = xp.argsort(xp.astype(~remains, xp.int64), axis=1, stable=True)
    return first_targets(xp.take_along_axis(renumbered, order, axis=1), n_targets)


def first_targets(targets: Array, n_targets: int) -> Array:
    """Return the first n_targets columns, or all where there are fewer."""
    return targets[:, : min(n_targets, targets.shape[1])]


def pairs(targets: Array) -> tuple[Array, Array]:
    """Return the pairs (source i, target j) of a matrix of targets: two int64 arrays of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> source, target = pairs(np.array([[1, 2], [0, -1]]))
    >>> source.tolist(), target.tolist()
    ([0, 0, 1], [1, 2, 0])
    """
    xp, (n, width) = namespace(targets), targets.shape
    rows = xp.arange(n, dtype=xp.int64, device=compat.device(targets))
    source = xp.reshape(xp.broadcast_to(rows[:, None], (n, width)), (-1,))
    target = xp.reshape(targets, (-1,))
    return source[target >= 0], target[target >= 0]


def useful_targets(codes: Array, n_targets: int) -> int:
    """Return n_targets, or as many as an object of the largest class has: all others would be -1."""
    xp = namespace(codes)
    return min(n_targets, max(1, int(xp.max(tally(codes, int(xp.max(codes)) + 1))) - 1))


class Labeled(NamedTuple):
    """Labeled objects to learn from, with their targets, and queries without labels where these are given."""

    X: Array  # (n, d)
    codes: Array  # (n,), class numbers
    weights: Array | None  # (n,), all positive
    targets: Array  # (n, n_targets)
    queries: Array | None = None  # (m, d): of the queries to come

    def take(self, rows: Array) -> "Labeled":
        """Return the objects of these rows, whose targets are still row numbers of all objects."""
        X, codes, weights, targets = (None if array is None else subset(array, rows) for array in self[:4])
        return Labeled(X, codes, weights, targets, self.queries)

    def n_without_target(self) -> int:
        """Count objects without a target: alone in their class, or without one in precomputed targets."""
        xp = namespace(self.targets)
        if self.targets.shape[1] == 0:  # no targets were requested
            sizes = tally(self.codes, int(xp.max(self.codes)) + 1)
            return int(xp.sum(xp.astype(sizes == 1, xp.int64)))
        return int(xp.sum(xp.astype(xp.all(self.targets < 0, axis=1), xp.int64)))


def labeled_objects(
    X: Array,
    codes: Array,
    weights: Array | None = None,
    targets: Any = None,
    n_targets: int = 1,
    queries: Array | None = None,
) -> Labeled:
    """Return labeled objects with their targets, found here or precomputed; weight 0 leaves an object out."""
    xp, n = namespace(X, codes), X.shape[0]
    if targets is not None:
        targets = check_neighbors(targets, n, like=X)
        if targets.shape[0] != n:
            raise ValueError(
                f"targets must have one row per object; got {targets.shape[0]} rows for {n} objects."
            )
        if bool(xp.any(targets == xp.arange(n, dtype=xp.int64, device=device_of(X))[:, None])):
            raise ValueError(
                "an object is its own target; leave it out, as nearest(..., exclude_self=True) does."
            )
    if weights is not None and not bool(xp.all(weights > 0)):
        (kept,) = xp.nonzero(weights > 0)
        X, codes, weights = (subset(array, kept) for array in (X, codes, weights))
        targets = None if targets is None else restrict(targets, kept, targets.shape[1])
    if targets is None:
        if n_targets == 0:
            targets = xp.zeros((X.shape[0], 0), dtype=xp.int64, device=device_of(X))
        else:
            targets = same_class_targets(X, codes, useful_targets(codes, n_targets))
    return Labeled(X, codes, weights, first_targets(targets, n_targets), queries)
