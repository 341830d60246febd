"""Measures of retrieval: how well the items found for each query are those that answer it.

`gains` turns row numbers of found items into what each is worth to its query; every measure is then one
number per query, so that two ways to search are compared query by query.
"""

from collections.abc import Mapping, Sequence

import numpy as np

Relevant = Sequence[Mapping[int, float]]  # for each query, what each of its relevant items is worth (> 0)


def gains(found: np.ndarray, relevant: Relevant) -> np.ndarray:
    """What each found item is worth to its query; (n_queries, k), 0 for one that is not relevant."""
    return np.array(
        [[worth.get(int(i), 0.0) for i in row] for row, worth in zip(found, relevant, strict=True)],
        dtype=np.float64,
    ).reshape(found.shape)


# DCG = Σ_r gain_r / log₂(1 + r), over that of the best order there is
def ndcg(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Normalised discounted cumulative gain of each query, with linear gains as TREC's tool has it."""
    discount = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
    best = [np.sort(np.fromiter(worth.values(), float))[::-1][: len(discount)] for worth in relevant]
    ideal = np.array([top @ discount[: len(top)] for top in best])
    return gains @ discount / ideal


# 1 / rank of the first relevant item
def reciprocal_rank(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """1 over the rank of the first relevant item, 0 where there is none; its mean is the MRR."""
    right = gains > 0
    return np.asarray(np.where(right.any(axis=1), 1 / (1 + right.argmax(axis=1)), 0.0))


# whether any of the found is relevant
def hit(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """1 where at least one relevant item was found, else 0; its mean is the hit rate."""
    return np.asarray((gains > 0).any(axis=1), dtype=np.float64)


# #relevant found / #relevant
def recall(gains: np.ndarray, relevant: Relevant) -> np.ndarray:
    """Share of the relevant items of each query that were found."""
    return np.asarray((gains > 0).sum(axis=1) / np.array([len(worth) for worth in relevant]))


MEASURES = {"nDCG": ndcg, "MRR": reciprocal_rank, "hit rate": hit, "recall": recall}
