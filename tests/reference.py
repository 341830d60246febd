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


def busiest_share(counts):
    busiest = sorted(counts, reverse=True)[: math.ceil(len(counts) / 100)]
    return sum(busiest) / sum(counts)


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


# Movers


def class_means(X, y, weights=None):
    """Mean of each class by number; weights count objects several times."""
    weights = np.ones(len(X)) if weights is None else weights
    means = {}
    for c in sorted(set(np.asarray(y).tolist())):
        own = [i for i in range(len(X)) if y[i] == c]
        means[c] = sum(weights[i] * X[i] for i in own) / sum(weights[i] for i in own)
    return means


def total_mean(X, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return sum(w * x for w, x in zip(weights, X, strict=True)) / sum(weights)


def scale(X, g, weights=None, later=None):
    mu = total_mean(X, weights)
    return np.array([mu + g * (z - mu) for z in (X if later is None else later[0])])


def unit(Z):
    return np.array([z / np.sqrt(sum(value**2 for value in z)) if any(z) else z for z in Z])


def shrink(X, y, step, weights=None, later=None):
    means = class_means(X, y, weights)
    Z, classes = (X, y) if later is None else later
    return np.array([(1 - step) * z + step * means[c] for z, c in zip(Z, classes, strict=True)])


def smooth(X, y, m, weights="uniform", step=None, later=None):
    Z, classes = (X, y) if later is None else later
    moved = []
    for i, (z, c) in enumerate(zip(Z, classes, strict=True)):
        near = sorted(
            (distance(z, X[j]), j) for j in range(len(X)) if y[j] == c and not (later is None and i == j)
        )[:m]
        if not near:
            moved.append(z)
            continue
        w = [1.0] * len(near)
        if weights == "distance":
            nearest_first = inverse_distance_weights([value for value, _ in near])
            w = [value / max(nearest_first) for value in nearest_first]
        s = sum(w) / (sum(w) + 1) if step is None else step
        mean_of_near = sum(a * X[j] for a, (_, j) in zip(w, near, strict=True)) / sum(w)
        moved.append((1 - s) * z + s * mean_of_near)
    return np.array(moved)


def move_labeled(X, y, alpha, n_targets=1, weights=None, toward="zero", later=None, found=None):
    """W of min Σ w ‖x − Wz‖² + λ ‖W − B‖², B = 0 or I: (A + λB) (K + λI)⁻¹."""
    mu = total_mean(X, weights)
    index = pairs(targets(X, y, n_targets) if found is None else found)
    x, z = (np.array([X[pair[side]] - mu for pair in index]) for side in (0, 1))
    W = ridge_toward(x, z, alpha, None if weights is None else [weights[i] for i, _ in index], toward)
    return move(X if later is None else later[0], W, mu)


def ridge_toward(x, z, alpha, weights=None, toward="zero"):
    A, K = moments(x, z, weights)
    pull = alpha * np.eye(len(K)) if toward == "identity" else 0 * K
    return (A + pull) @ np.linalg.inv(K + alpha * np.eye(len(K)))


def label_ridge(X, y, alpha, n_targets=1, keep=1.0, weights=None, later=None):
    mu, means = total_mean(X, weights), class_means(X, y, weights)
    index = pairs(targets(X, y, n_targets))
    x, z = (np.array([X[pair[side]] - means[y[pair[side]]] for pair in index]) for side in (0, 1))
    W = ridge_toward(x, z, alpha, None if weights is None else [weights[i] for i, _ in index])
    Z, classes = (X, y) if later is None else later
    return np.array(
        [mu + keep * (means[c] - mu) + W @ (row - means[c]) for row, c in zip(Z, classes, strict=True)]
    )


def scatter_matrix(X, centres, weights=None):
    """Σ w (x − c)(x − c)ᵀ, each row about its own centre."""
    weights = np.ones(len(X)) if weights is None else weights
    return sum(w * np.outer(x - c, x - c) for w, x, c in zip(weights, X, centres, strict=True))


def matrix_power(S, power):
    values, V = np.linalg.eigh(S)
    return V @ np.diag(values**power) @ V.T


def whitener(X, y, alpha, weights=None):
    """L = (S / s̄ + λI)^(−½) with S the scatter about the class means."""
    means = class_means(X, y, weights)
    S = scatter_matrix(X, [means[c] for c in y], weights)
    return matrix_power(S / (np.trace(S) / len(S)) + alpha * np.eye(len(S)), -0.5)


def denoiser(X, y, power, n_targets, whiten, alpha, n_iter, weights=None):
    """L of Denoise; targets are sought anew in its space in each round but the first."""
    d, w = X.shape[1], np.ones(len(X)) if weights is None else weights
    mu = total_mean(X, w)
    T = scatter_matrix(X, [mu] * len(X), w) / sum(w)
    unit = np.trace(T) / d
    K = T / unit + alpha * np.eye(d)
    L = np.eye(d)
    for _ in range(n_iter):
        index = pairs(targets(X @ L, y, n_targets))
        A = sum(w[i] * np.outer(X[i] - mu, X[j] - mu) for i, j in index) / sum(w[i] for i, _ in index)
        half = matrix_power(K, -0.5)
        r, U = np.linalg.eigh(half @ (A + A.T) @ half / (2 * unit))
        faded = np.diag(np.clip(r, 1e-6, 1.0) ** (power / 2))
        L = half @ U @ faded @ (np.eye(d) if whiten else U.T @ matrix_power(K, 0.5))
    return L


def near_spread(z, X, k, leave_out=None):
    """Mean squared distance of z to the nearest of X."""
    squared = sorted(distance(z, x) ** 2 for j, x in enumerate(X) if j != leave_out)
    return mean(squared[:k])


def scores(queries, X, y, *, L=None, step=0.0, g=0.0, k=5, strength=0.0, alpha=0.1, weights=None, later=None):
    """What queries are compared by, ‖L'x − z‖² − g r(z) − c u ŷ_y(L'x); shape (queries, objects).

    z is L' times an object, shrunk toward its class. `later` holds objects and classes to compare with that
    were not learned from.
    """
    found, n = targets(X, y, 1), len(X)
    w = np.ones(n) if weights is None else weights
    L = np.eye(X.shape[1]) if L is None else L
    queries, X = queries @ L, X @ L
    Z = shrink(X, y, step, w)
    near = [near_spread(Z[i], X, k, leave_out=i) for i in range(n)]
    cap, classes = sorted(near)[math.ceil(0.99 * (n - 1))], y
    if later is not None:
        classes = later[1]
        Z = shrink(X, y, step, w, (later[0] @ L, classes))
        near = [near_spread(z, X, k) for z in Z]
    belief = ridge_beliefs(queries, X, y, alpha, w) if strength else None
    u = mean([distance(X[i], X[j]) ** 2 for i, j in pairs(found)])
    table = np.empty((len(queries), len(Z)))
    for q, x in enumerate(queries):
        for i, z in enumerate(Z):
            table[q, i] = distance(x, z) ** 2 - g * min(near[i], cap)
            if belief is not None:
                table[q, i] -= strength * u * belief[q][classes[i]]
    return table


def ridge_beliefs(queries, X, y, alpha, weights):
    """Ridge regression of the indicator of each class, λ in mean eigenvalues of the scatter; by query."""
    mu = total_mean(X, weights)
    T = scatter_matrix(X, [mu] * len(X), weights)
    inverse = np.linalg.inv(T + alpha * np.trace(T) / len(T) * np.eye(len(T)))
    share = {
        c: sum(w for w, label in zip(weights, y, strict=True) if label == c) / sum(weights) for c in set(y)
    }
    coef = {
        c: inverse
        @ sum(w * (x - mu) * ((label == c) - share[c]) for w, x, label in zip(weights, X, y, strict=True))
        for c in share
    }
    return [{c: share[c] + coef[c] @ (x - mu) for c in share} for x in queries]
