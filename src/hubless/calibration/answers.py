"""Evidence from the answers of an index: its nearest items, their vectors and classes, and nothing else.

An index says nothing about items that it does not return. So the nearest item of a class that is not among
the answers counts as being as far away as the last answer, here as in the held-out queries that were learned
from.
"""

from typing import NamedTuple

import numpy as np

from ..arrays import to_numpy
from ..neighbors.knn import vote
from .evidence import WIDE, Evidence, Stored

QUERIES = 512  # whose answers are held at once
NONE = -1  # the code where an index returned fewer items, always at the end of a row


class FoundItems(NamedTuple):
    """The items that were found for queries, nearest first."""

    vectors: np.ndarray  # (m, w, d)
    codes: np.ndarray  # (m, w), class numbers, or NONE


def wanted(n_neighbors: int) -> int:
    """Return how many answers of each query are used."""
    return max(n_neighbors, WIDE)


def answers_of(indices: np.ndarray, stored: Stored) -> FoundItems:
    """Return the answers with these row numbers, in NumPy."""
    return FoundItems(to_numpy(stored.moved)[indices], to_numpy(stored.codes)[indices])


# ‖x − z'‖², by differences: exact where distances are small
def squared_distances(queries: np.ndarray, answers: FoundItems) -> np.ndarray:
    """Return the squared distances of answers in float64; infinite where there is none; (m, w)."""
    apart = answers.vectors.astype(np.float64) - queries[:, None, :]
    return np.where(answers.codes == NONE, np.inf, np.einsum("mwd,mwd->mw", apart, apart))


def evidence_of_answers(
    queries: np.ndarray, answers: FoundItems, prior: np.ndarray, mean: np.ndarray, k: int
) -> Evidence:
    """Return the evidence for the classes of queries; each has one answer at least.

    Parameters
    ----------
    queries : array of shape (m, d)
    prior : array of shape (c,), shares of the classes
    mean : array of shape (d,), about which directions are compared
    k : int, answers that vote
    """
    D, codes = squared_distances(queries, answers), answers.codes
    known = codes != NONE
    nearest = D.min(axis=1)
    farthest = np.where(known, D, -np.inf).max(axis=1)
    near = np.broadcast_to(farthest[:, None], (len(D), len(prior))).copy()
    rows, places = np.nonzero(known)
    np.minimum.at(near, (rows, codes[rows, places]), D[rows, places])
    return Evidence(
        winners_of(codes, k),
        near - nearest[:, None],
        _smoothed(codes[:, :k], prior),
        _smoothed(codes[:, :WIDE], prior),
        nearest,
        _largest_cosine(queries, answers, mean),
    )


def winners_of(codes: np.ndarray, k: int) -> np.ndarray:
    """Return the class that the first k answers vote for, a tie to that of the nearest; (m,)."""
    near = codes[:, :k]
    return np.asarray(vote(np.where(near == NONE, near[:, :1], near), (near != NONE).astype(np.float64)))


# (n_c + π_c) / (n + 1): one more vote, which is divided by the sizes of the classes, as in `smoothed_shares`
def _smoothed(codes: np.ndarray, prior: np.ndarray) -> np.ndarray:
    counts = np.zeros((len(codes), len(prior)))
    rows, places = np.nonzero(codes != NONE)
    np.add.at(counts, (rows, codes[rows, places]), 1.0)
    return (counts + prior) / (counts.sum(axis=1, keepdims=True) + 1)


# max_i cos(x − μ, z'_i − μ)
def _largest_cosine(queries: np.ndarray, answers: FoundItems, mean: np.ndarray) -> np.ndarray:
    x, z = queries.astype(np.float64) - mean, answers.vectors.astype(np.float64) - mean
    lengths = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(z, axis=2)
    cosines = np.einsum("md,mwd->mw", x, z) / np.where(lengths > 0, lengths, 1.0)
    return np.where(answers.codes == NONE, -np.inf, cosines).max(axis=1)
