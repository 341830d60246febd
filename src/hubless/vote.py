"""From the labels of neighbours to classes and probabilities."""

from typing import Any

import array_api_compat as compat

from .arrays import Array, namespace, tally
from .threads import blocks

CELLS = 1 << 22  # votes held at once


# w_j = d_1 / d_j, which is proportional to 1 / d_j and cannot overflow; at distance 0, w_j = [d_j = 0]
def distance_weights(distances: Array) -> Array:
    """Weights of neighbours by the inverse of their distance, that of the nearest 1; shape (queries, k)."""
    xp = namespace(distances)
    first = xp.min(distances, axis=1, keepdims=True)
    positive = distances > 0
    ratio = first / xp.where(positive, distances, 1.0)
    return xp.where(first > 0, ratio, xp.astype(~positive, distances.dtype))


# v_c = Σ_j w_j [y_j = c]
def _tally(xp: Any, labels: Array, n_classes: int, weights: Array | None) -> Array:
    """Votes of each class; shape (queries, n_classes)."""
    m = labels.shape[0]
    row = xp.arange(m, dtype=labels.dtype, device=compat.device(labels))[:, None]
    cell = xp.reshape(row * n_classes + labels, (-1,))
    weights = None if weights is None else xp.reshape(weights, (-1,))
    return xp.reshape(tally(cell, m * n_classes, weights), (m, n_classes))


# ŷ = y_j for the first neighbour j whose class has the most votes, so that a tie goes to the class whose
# nearest member is nearest
def vote(labels: Array, weights: Array | None = None, ks: tuple[int, ...] | None = None) -> Any:
    """Majority class among the k nearest.

    Parameters
    ----------
    labels : int array of shape (queries, k): classes of the neighbours, nearest first
    weights : array of shape (queries, k), optional
    ks : tuple of int, optional
        Ask for the winner among the first k neighbours for each of these k.

    Returns
    -------
    winners : int array of shape (queries,), or a list of them, one for each of `ks`
    """
    xp, (m, width) = namespace(labels), labels.shape
    n_classes = int(xp.max(labels)) + 1
    winners = []
    for k in (width,) if ks is None else ks:
        found = []
        for rows in blocks(m, max(1, CELLS // (n_classes + k))):
            own = labels[rows, :k]
            votes = _tally(xp, own, n_classes, None if weights is None else weights[rows, :k])
            first = xp.argmax(xp.take_along_axis(votes, own, axis=1), axis=1)
            found.append(xp.take_along_axis(own, first[:, None], axis=1)[:, 0])
        winners.append(xp.concat(found))
    return winners[0] if ks is None else winners


# p_c = v_c / Σ_c v_c; where classes tie, those that lose the vote get the next number below, so that the
# largest probability is that of the class voted for
def probabilities(labels: Array, n_classes: int, weights: Array | None, dtype: Any) -> Array:
    """Share of the votes of each class; shape (queries, n_classes)."""
    xp = namespace(labels)
    votes = xp.astype(_tally(xp, labels, n_classes, weights), xp.float64)
    shares = xp.astype(votes / xp.sum(votes, axis=1, keepdims=True), dtype)
    top = xp.max(shares, axis=1, keepdims=True)
    classes = xp.arange(n_classes, dtype=labels.dtype, device=compat.device(labels))
    won = vote(labels, weights)[:, None] == classes
    below = top * (1 - float(xp.finfo(dtype).eps))
    return xp.where(won, top, xp.where(shares > below, below, shares))


def votes_of(
    indices: Array, distances: Array | None, codes: Array, object_weights: Array | None
) -> tuple[Array, Array | None]:
    """Classes of neighbours and the weight of each vote, from the neighbours; both of shape (queries, k).

    `codes` and `object_weights` belong to the objects. With `distances`, nearer votes count more.
    """
    xp, flat = namespace(indices, codes), namespace(indices).reshape(indices, (-1,))
    labels = xp.reshape(xp.take(codes, flat), indices.shape)
    weights = None if distances is None else distance_weights(distances)
    if object_weights is not None:
        own = xp.reshape(xp.take(object_weights, flat), indices.shape)
        weights = own if weights is None else own * weights
    return labels, weights
