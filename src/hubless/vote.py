"""From the labels of neighbours to classes and probabilities."""

from typing import Any

import array_api_compat as compat

from .arrays import Array, blocks, namespace

CELLS = 1 << 22  # numbers compared at once


# w_j = d_1 / d_j, which is proportional to 1 / d_j and cannot overflow; at distance 0, w_j = [d_j = 0]
def distance_weights(distances: Array) -> Array:
    """Weights of neighbours by the inverse of their distance; shape (queries, k), nearest first."""
    xp = namespace(distances)
    first = distances[:, :1]
    positive = distances > 0
    ratio = first / xp.where(positive, distances, 1.0)
    return xp.where(first > 0, ratio, xp.astype(~positive, distances.dtype))


# s_j = Σ_l w_l [y_l = y_j]: the votes for the class of neighbour j. The winner is the class of the first j
# with the largest s_j, so that a tie goes to the class whose nearest member is nearest.
def vote(labels: Array, weights: Array | None = None, ks: tuple[int, ...] | None = None) -> Any:
    """Majority class among the k nearest.

    Parameters
    ----------
    labels : int array of shape (queries, k): classes of the neighbours, nearest first
    weights : array of shape (queries, k), optional
    ks : tuple of int, optional
        Ask for the winner among the first k neighbours for each of these k, at hardly more than the price
        of the largest.

    Returns
    -------
    winners : int array of shape (queries,), or a list of them, one for each of `ks`
    """
    xp, (m, width) = namespace(labels), labels.shape
    sizes = (width,) if ks is None else ks
    found = []
    for rows in blocks(m, max(1, CELLS // width**2)):
        found.append(_winners(xp, labels[rows, :], None if weights is None else weights[rows, :], sizes))
    winners = [xp.concat(part) for part in zip(*found, strict=True)]
    return winners[0] if ks is None else winners


def _winners(xp: Any, labels: Array, weights: Array | None, ks: tuple[int, ...]) -> list[Array]:
    dtype = xp.float32 if weights is None else weights.dtype  # counts are exact in float32
    same = xp.astype(labels[:, :, None] == labels[:, None, :], dtype)
    if weights is not None:
        same = same * weights[:, None, :]
    support = xp.cumulative_sum(same, axis=2)  # [query, j, k − 1]: votes for the class of j among the first k
    first = [xp.argmax(support[:, :k, k - 1], axis=1) for k in ks]
    return [xp.take_along_axis(labels, place[:, None], axis=1)[:, 0] for place in first]


# p_c = Σ_j w_j [y_j = c] / Σ_j w_j; where classes tie, those that lose the vote get the next number below, so
# that the largest probability is that of the class voted for
def probabilities(labels: Array, n_classes: int, weights: Array | None = None, dtype: Any = None) -> Array:
    """Share of the votes of each class; shape (queries, n_classes)."""
    xp, device = namespace(labels), compat.device(labels)
    dtype = weights.dtype if weights is not None else dtype or xp.float64
    classes = xp.arange(n_classes, dtype=labels.dtype, device=device)
    votes = xp.zeros((labels.shape[0], n_classes), dtype=dtype, device=device)
    for column in range(labels.shape[1]):
        hit = xp.astype(labels[:, column, None] == classes, dtype)
        votes = votes + (hit if weights is None else hit * weights[:, column, None])
    shares = votes / xp.sum(votes, axis=1, keepdims=True)
    top = xp.max(shares, axis=1, keepdims=True)
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
