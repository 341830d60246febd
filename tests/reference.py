"""The truth: every definition written as plain loops over plain numbers, slow and obvious."""

import math
from collections import Counter

import numpy as np


def distance(x, z):
    return math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, z, strict=True)))


def nearest(queries, objects, k, exclude_self=False):
    distances, indices = [], []
    for q, x in enumerate(queries):
        found = sorted(
            (distance(x, z), i) for i, z in enumerate(objects) if not (exclude_self and i == q)
        )  # tuples: by distance, then by index
        distances.append([pair[0] for pair in found[:k]])
        indices.append([pair[1] for pair in found[:k]])
    return np.array(distances), np.array(indices)


def targets(X, y, n_targets):
    rows = []
    for i, x in enumerate(X):
        others = sorted((distance(x, z), j) for j, z in enumerate(X) if y[j] == y[i] and j != i)
        found = [j for _, j in others[:n_targets]]
        rows.append(found + [-1] * (n_targets - len(found)))
    return np.array(rows)


def pairs(target_rows):
    return [(i, j) for i, row in enumerate(target_rows) for j in row if j >= 0]


def moments(X, Z, weights=None):
    """A = Σ w x zᵀ and K = Σ w z zᵀ over rows that pair up."""
    d = X.shape[1]
    weights = np.ones(len(X)) if weights is None else weights
    A, K = np.zeros((d, d)), np.zeros((d, d))
    for x, z, w in zip(X, Z, weights, strict=True):
        for r in range(d):
            for c in range(d):
                A[r, c] += w * x[r] * z[c]
                K[r, c] += w * z[r] * z[c]
    return A, K


def indicator_moments(X, target_rows):
    """A = XJXᵀ and XKXᵀ with K = diag(Jᵀe), literally as Eq. 6 has them (X is d × n there)."""
    n = len(X)
    J = np.zeros((n, n))
    for i, j in pairs(target_rows):
        J[i, j] = 1
    K = np.diag(J.T @ np.ones(n))
    return X.T @ J @ X, X.T @ K @ X


def solve(A, K, alpha):
    return A @ np.linalg.pinv(K + alpha * np.eye(len(K)))


def move(Z, W, mean):
    return np.array([mean + W @ (z - mean) for z in Z])


def vote(labels, weights=None):
    winners = []
    for q, row in enumerate(labels):
        votes = Counter()
        for j, label in enumerate(row):
            votes[label] += 1 if weights is None else weights[q][j]
        best = max(votes.values())
        winners.append(next(label for label in row if votes[label] == best))  # nearest member is nearest
    return np.array(winners)


def inverse_distance_weights(row):
    if min(row) == 0:
        return [1.0 if value == 0 else 0.0 for value in row]
    return [1.0 / value for value in row]


def probabilities(labels, n_classes, weights=None):
    shares = []
    for q, row in enumerate(labels):
        votes = [0.0] * n_classes
        for j, label in enumerate(row):
            votes[label] += 1.0 if weights is None else weights[q][j]
        shares.append([v / sum(votes) for v in votes])
    return np.array(shares)


def k_occurrence(neighbors, n_objects):
    return [sum(1 for row in neighbors for j in row if j == i) for i in range(n_objects)]


def bad_k_occurrence(neighbors, object_labels, query_labels):
    return [
        sum(
            1
            for q, row in enumerate(neighbors)
            for j in row
            if j == i and object_labels[j] != query_labels[q]
        )
        for i in range(len(object_labels))
    ]


def mean(values):
    return sum(values) / len(values)


def skewness(counts):
    m = mean(counts)
    variance = mean([(c - m) ** 2 for c in counts])
    return (sum((c - m) ** 3 for c in counts) / len(counts)) / variance**1.5


def antihub_share(counts):
    return sum(1 for c in counts if c == 0) / len(counts)


def robin_hood(counts):
    m = mean(counts)
    return sum(abs(c - m) for c in counts) / 2 / sum(counts)


def hub_occurrence(counts):
    return sum(c for c in counts if c >= 2 * mean(counts)) / sum(counts)


def classify(X, y, queries, k, alpha, n_targets=1, center=True):
    """Move-labeled from end to end; y holds class numbers."""
    mu = X.mean(axis=0) if center else np.zeros(X.shape[1])
    found = targets(X, y, n_targets)
    index = pairs(found)
    A, K = moments(np.array([X[i] - mu for i, _ in index]), np.array([X[j] - mu for _, j in index]))
    moved = move(X, solve(A, K, alpha), mu)
    _, neighbors = nearest(queries, moved, k)
    return vote(np.asarray(y)[neighbors])


def lmnn_loss(X, y, target_rows, push, L):
    """Weinberger & Saul's objective, term by term."""
    Z = [L @ x for x in X]
    total = 0.0
    for i, row in enumerate(target_rows):
        for j in (j for j in row if j >= 0):
            pull = distance(Z[i], Z[j]) ** 2
            total += (1 - push) * pull
            for other in range(len(Z)):
                if y[other] != y[i]:
                    total += push * max(0.0, 1 + pull - distance(Z[i], Z[other]) ** 2)
    return total


def nca_objective(X, y, L):
    """Goldberger et al.'s objective, pair by pair."""
    Z = [L @ x for x in X]
    total = 0.0
    for i in range(len(Z)):
        others = [j for j in range(len(Z)) if j != i]
        squared = {j: distance(Z[i], Z[j]) ** 2 for j in others}
        weights = {j: math.exp(min(squared.values()) - squared[j]) for j in others}
        total += sum(weights[j] for j in others if y[j] == y[i]) / sum(weights.values())
    return total
