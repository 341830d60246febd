"""Measures of retrieval: how many of the items returned for a query are relevant, and how early.

`gains` turns the row numbers of returned items into what each is worth to its query; every measure is then
one number per query, so that two searches are compared query by query.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

Relevant = Sequence[Mapping[int, float]]  # for each query, what each of its relevant items is worth (> 0)


def gains(indices: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Return what each item is worth to its query; shape (n_queries, k), 0 where it is not relevant.

    Examples
    --------
    >>> import numpy as np
    >>> indices, relevant = np.array([[0, 3], [1, 2]]), [{3: 1.0}, {1: 2.0, 5: 1.0}]
    >>> gains(indices, relevant).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    return np.array(
        [[worth.get(int(i), 0.0) for i in row] for row, worth in zip(indices, relevant, strict=True)],
        dtype=np.float64,
    ).reshape(indices.shape)


# DCG = Σ_r gain_r / log₂(1 + r), over that of the best order there is
def ndcg(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Return the normalised discounted cumulative gain of each query, with linear gains as in trec_eval.

    Examples
    --------
    >>> import numpy as np
    >>> ndcg(np.array([[0.0, 1.0, 0.0]]), [{3: 1.0}]).round(3).tolist()  # 1 / log₂ 3, of 1 at best
    [0.631]
    """
    discount = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
    best = [np.sort(np.fromiter(worth.values(), float))[::-1][: len(discount)] for worth in relevant]
    ideal = np.array([top @ discount[: len(top)] for top in best])
    return gains @ discount / ideal


# 1 / rank of the first relevant item
def reciprocal_rank(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Return 1 over the rank of the first relevant item, 0 where there is none; its mean is the MRR.

    Examples
    --------
    >>> import numpy as np
    >>> reciprocal_rank(np.array([[0.0, 1.0], [0.0, 0.0]]), [{3: 1.0}, {7: 1.0}]).tolist()
    [0.5, 0.0]
    """
    right = gains > 0
    return np.asarray(np.where(right.any(axis=1), 1 / (1 + right.argmax(axis=1)), 0.0))


# 1 if any returned item is relevant
def hit(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Return 1 where at least one returned item is relevant, else 0; its mean is the hit rate.

    Examples
    --------
    >>> import numpy as np
    >>> hit(np.array([[0.0, 1.0], [0.0, 0.0]]), [{3: 1.0}, {7: 1.0}]).tolist()
    [1.0, 0.0]
    """
    return np.asarray((gains > 0).any(axis=1), dtype=np.float64)


# #relevant returned / #relevant
def recall(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Return the share of the relevant items of each query that are among the returned ones.

    Examples
    --------
    >>> import numpy as np
    >>> recall(np.array([[2.0, 0.0]]), [{1: 2.0, 5: 1.0}]).tolist()  # one of two
    [0.5]
    """
    return np.asarray((gains > 0).sum(axis=1) / np.array([len(worth) for worth in relevant]))


MEASURES = {"nDCG": ndcg, "MRR": reciprocal_rank, "hit rate": hit, "recall": recall}


def rejected_among(indices: np.ndarray, rejected: Sequence[Collection[int]] | None) -> np.ndarray:
    """Return whether returned items were judged not to be relevant; shape (n_queries, k)."""
    known = [()] * len(indices) if rejected is None else rejected
    judged = [[int(i) in items for i in row] for row, items in zip(indices, known, strict=True)]
    return np.array(judged, dtype=bool).reshape(indices.shape)


def in_the_way(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Return whether returned items are not relevant, while a relevant one that has room is not returned."""
    found, wanted = (gains > 0).sum(axis=1), np.array([len(worth) for worth in relevant])
    return np.asarray((gains <= 0) & (found < np.minimum(wanted, gains.shape[1]))[:, None])
