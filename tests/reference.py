"""The truth: every definition written as plain loops over plain numbers, slow and obvious."""

import math
from collections import Counter

import numpy as np
from sklearn.linear_model import LogisticRegression


def plain(points):
    """Numbers as lists of Python floats, which loops read fastest."""
    return np.asarray(points, dtype=float).tolist()


def distance(x, z):
    return list_distance(plain(x), plain(z))


def list_distance(x, z):
    """The distance of two lists of floats."""
    return math.sqrt(math.fsum([(a - b) ** 2 for a, b in zip(x, z, strict=True)]))


def nearest(queries, objects, k, exclude_self=False):
    queries, objects = plain(queries), plain(objects)
    distances, indices = [], []
    for q, x in enumerate(queries):
        near = sorted(
            (list_distance(x, z), i) for i, z in enumerate(objects) if not (exclude_self and i == q)
        )  # tuples: by distance, then by index
        distances.append([pair[0] for pair in near[:k]])
        indices.append([pair[1] for pair in near[:k]])
    return np.array(distances), np.array(indices)


def targets(X, y, n_targets):
    X, y = plain(X), np.asarray(y).tolist()
    rows = []
    for i, x in enumerate(X):
        others = sorted((list_distance(x, z), j) for j, z in enumerate(X) if y[j] == y[i] and j != i)
        near = [j for _, j in others[:n_targets]]
        rows.append(near + [-1] * (n_targets - len(near)))
    return np.array(rows)


def pairs(target_rows):
    return [(i, j) for i, row in enumerate(target_rows) for j in row if j >= 0]


def moments(X, Z, weights=None):
    """A = Σ w x zᵀ and K = Σ w z zᵀ over rows that pair up."""
    weights = np.ones(len(X)) if weights is None else weights
    return outer_products(X, Z, weights), outer_products(Z, Z, weights)


def outer_products(X, Z, weights):
    """Σ w x zᵀ over rows that pair up."""
    total = np.zeros((X.shape[1], Z.shape[1]))
    for x, z, w in zip(X, Z, weights, strict=True):
        for r in range(len(x)):
            for c in range(len(z)):
                total[r, c] += w * x[r] * z[c]
    return total


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


def hubs(counts, n_queries, k, false_alarms=0.05):
    """Counts that chance rarely gives to any object."""
    n = len(counts)
    rare = {c: n * chance_of_occurrence(int(c), n_queries, n, k) <= false_alarms for c in set(counts)}
    return [c for c in counts if rare[c]]


def hub_occurrence(counts, n_queries, k):
    return sum(hubs(counts, n_queries, k)) / sum(counts)


def gini(counts):
    """Mean difference of two counts over twice their mean, by their ranks."""
    apart = sum((2 * rank - len(counts) + 1) * count for rank, count in enumerate(sorted(counts)))
    return apart / (len(counts) * sum(counts))


def busiest_share(counts):
    busiest = sorted(counts, reverse=True)[: math.ceil(len(counts) / 100)]
    return sum(busiest) / sum(counts)


def classify(X, y, queries, k, alpha, n_targets=1, center=True):
    """Move-labeled from end to end; y holds class numbers."""
    mu = X.mean(axis=0) if center else np.zeros(X.shape[1])
    index = pairs(targets(X, y, n_targets))
    A, K = moments(np.array([X[i] - mu for i, _ in index]), np.array([X[j] - mu for _, j in index]))
    moved = move(X, solve(A, K, alpha), mu)
    _, neighbors = nearest(queries, moved, k)
    return vote(np.asarray(y)[neighbors])


def lmnn_loss(X, y, target_rows, push, L):
    """Weinberger & Saul's objective, term by term."""
    Z = plain([L @ x for x in X])
    total = 0.0
    for i, row in enumerate(target_rows):
        for j in (j for j in row if j >= 0):
            pull = list_distance(Z[i], Z[j]) ** 2
            total += (1 - push) * pull
            for other in range(len(Z)):
                if y[other] != y[i]:
                    total += push * max(0.0, 1 + pull - list_distance(Z[i], Z[other]) ** 2)
    return total


def nca_objective(X, y, L):
    """Goldberger et al.'s objective, pair by pair."""
    Z = plain([L @ x for x in X])
    total = 0.0
    for i in range(len(Z)):
        others = [j for j in range(len(Z)) if j != i]
        squared = {j: list_distance(Z[i], Z[j]) ** 2 for j in others}
        weights = {j: math.exp(min(squared.values()) - squared[j]) for j in others}
        total += sum(weights[j] for j in others if y[j] == y[i]) / sum(weights.values())
    return total


# Movers


def class_means(X, y, weights=None):
    """Mean of each class by number; weights count objects several times."""
    weights = np.ones(len(X)) if weights is None else weights
    means = {}
    for c in sorted(set(np.asarray(y).tolist())):
        members = [i for i in range(len(X)) if y[i] == c]
        means[c] = sum(weights[i] * X[i] for i in members) / sum(weights[i] for i in members)
    return means


def total_mean(X, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return sum(w * x for w, x in zip(weights, X, strict=True)) / sum(weights)


def stay(X, y, sample_weight=None, later=None):
    return X if later is None else later[0]


def scale(X, y, g, sample_weight=None, later=None):
    mu = total_mean(X, sample_weight)
    return np.array([mu + g * (z - mu) for z in (X if later is None else later[0])])


def unit(X, y, sample_weight=None, later=None):
    Z = X if later is None else later[0]
    return np.array([z / np.sqrt(sum(value**2 for value in z)) if any(z) else z for z in Z])


def shrink(X, y, step, sample_weight=None, later=None):
    means = class_means(X, y, sample_weight)
    Z, classes = (X, y) if later is None else later
    return np.array([(1 - step) * z + step * means[c] for z, c in zip(Z, classes, strict=True)])


def smooth(X, y, n_neighbors, weights="uniform", step=None, sample_weight=None, later=None):
    """Weights of objects are ignored: a neighbour counts by its distance alone."""
    Z, classes = (X, y) if later is None else later
    moved = []
    for i, (z, c) in enumerate(zip(Z, classes, strict=True)):
        near = sorted(
            (distance(z, X[j]), j) for j in range(len(X)) if y[j] == c and not (later is None and i == j)
        )[:n_neighbors]
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


def move_labeled(
    X, y, alpha, n_targets=1, *, center=True, toward="zero", sample_weight=None, later=None, target_rows=None
):
    """W of min Σ w ‖x − Wz‖² + λ ‖W − B‖², B = 0 or I: (A + λB) (K + λI)⁻¹."""
    mu = total_mean(X, sample_weight) if center else np.zeros(X.shape[1])
    x, z, w = weighted_pairs(X, y, n_targets, sample_weight, target_rows)
    return move(X if later is None else later[0], ridge_toward(x - mu, z - mu, alpha, w, toward), mu)


def weighted_pairs(X, y, n_targets, sample_weight=None, target_rows=None):
    """Objects, their targets and the weights of the objects; a row per pair."""
    index = pairs(targets(X, y, n_targets) if target_rows is None else target_rows)
    w = np.ones(len(X)) if sample_weight is None else sample_weight
    return np.array([X[i] for i, _ in index]), np.array([X[j] for _, j in index]), [w[i] for i, _ in index]


def ridge_toward(x, z, alpha, weights=None, toward="zero"):
    A, K = moments(x, z, weights)
    pull = alpha * np.eye(len(K)) if toward == "identity" else 0 * K
    return (A + pull) @ np.linalg.inv(K + alpha * np.eye(len(K)))


def label_ridge(X, y, alpha, n_targets=1, keep=1.0, sample_weight=None, later=None):
    mu, means = total_mean(X, sample_weight), class_means(X, y, sample_weight)
    within = np.array([x - means[c] for x, c in zip(X, y, strict=True)])
    x, z, w = weighted_pairs(within, y, n_targets, sample_weight, targets(X, y, n_targets))
    W = ridge_toward(x, z, alpha, w)
    Z, classes = (X, y) if later is None else later
    return np.array(
        [mu + keep * (means[c] - mu) + W @ (row - means[c]) for row, c in zip(Z, classes, strict=True)]
    )


def kernel_move(X, y, alpha, n_targets, gamma, n_landmarks, sample_weight=None, later=None):
    """f of min Σ w ‖(x − z) − f(z)‖² + λ‖f‖² among the functions of the kernel, by its dual."""
    assert n_landmarks >= len(X), "with fewer landmarks than objects, f is another one"
    mu = total_mean(X, sample_weight)
    width = gamma / (2 * mean([distance(row, mu) ** 2 for row in X]))
    x, z, w = weighted_pairs(X, y, n_targets, sample_weight)
    penalty = alpha * sum(w) / len(X)  # in mean eigenvalues: the kernel of an object with itself is 1
    G = np.array([[math.exp(-width * distance(a, b) ** 2) for b in z] for a in z])
    C = np.linalg.solve(G + penalty * np.diag(1 / np.array(w)), x - z)
    Z = X if later is None else later[0]
    return np.array(
        [q + sum(math.exp(-width * distance(q, b) ** 2) * c for b, c in zip(z, C, strict=True)) for q in Z]
    )


def regress(X, y, regressor, n_targets, sample_weight=None, later=None):
    """Ridge regression with an intercept from each target to its object."""
    x, z, w = weighted_pairs(X, y, n_targets, sample_weight)
    x_mean, z_mean = total_mean(x, w), total_mean(z, w)
    W = ridge_toward(x - x_mean, z - z_mean, regressor.alpha, w)
    return np.array([x_mean + W @ (row - z_mean) for row in (X if later is None else later[0])])


def chain(X, y, movers, sample_weight=None, later=None):
    """A Shrink, then a Scale about the mean of the objects before any move."""
    first, second = movers
    Z = shrink(X, y, first.step, sample_weight, later)
    mu = total_mean(X, sample_weight)
    return np.array([mu + second.g * (z - mu) for z in Z])


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


def scores(
    queries,
    X,
    y,
    *,
    L=None,
    step=0.0,
    g=0.0,
    k=5,
    strength=0.0,
    alpha=0.1,
    classifier="ridge",
    weights=None,
    later=None,
    proxies=None,
):
    """What queries are compared by, ‖L'x − z‖² − g r(z) − c u ℓ_y(x); shape (queries, objects).

    z is L' times an object, shrunk toward its class. `later` holds objects and classes to compare with that
    were not learned from. r is over the other objects, or over `proxies`, which are queries without labels.
    """
    target_rows, n = targets(X, y, 1), len(X)
    w = np.ones(n) if weights is None else weights
    believe = ridge_beliefs if classifier == "ridge" else logistic_beliefs
    belief = believe(queries, X, y, alpha, w) if strength else None
    L = np.eye(X.shape[1]) if L is None else L
    queries, X = queries @ L, X @ L
    Z = shrink(X, y, step, w)
    if proxies is None:
        near = [near_spread(Z[i], X, k, leave_out=i) for i in range(n)]
    else:
        near = [near_spread(z, proxies @ L, k) for z in Z]
    cap, classes = sorted(near)[math.ceil(0.99 * (n - 1))], y
    if later is not None:
        classes = later[1]
        Z = shrink(X, y, step, w, (later[0] @ L, classes))
        near = [near_spread(z, X if proxies is None else proxies @ L, k) for z in Z]
    u = mean([distance(X[i], X[j]) ** 2 for i, j in pairs(target_rows)])
    if classifier == "logistic":
        u = sum(v * distance(x, total_mean(X, w)) ** 2 for v, x in zip(w, X, strict=True)) / sum(w)
    table = np.empty((len(queries), len(Z)))
    for q, x in enumerate(queries):
        for i, z in enumerate(Z):
            table[q, i] = distance(x, z) ** 2 - g * min(near[i], cap)
            if belief is not None:
                table[q, i] -= strength * u * belief[q][classes[i]]
    return table


def logistic_beliefs(queries, X, y, alpha, weights):
    """Log-odds by scikit-learn, of objects scaled to a variance of 1 per column on average; by query."""
    mu, shares = total_mean(X, weights), weights / weights.sum()
    variance = sum(v * distance(x, mu) ** 2 for v, x in zip(shares, X, strict=True)) / X.shape[1]
    scaled = (X - mu) / math.sqrt(variance)
    model = LogisticRegression(C=1 / alpha, tol=1e-10, max_iter=10_000).fit(scaled, y, sample_weight=shares)
    table = (queries - mu) / math.sqrt(variance) @ model.coef_.T + model.intercept_
    if len(model.classes_) == 2:  # scikit-learn has one score, the difference of two
        model = LogisticRegression(C=2 / alpha, tol=1e-10, max_iter=10_000)
        model.fit(scaled, y, sample_weight=shares)
        half = ((queries - mu) / math.sqrt(variance) @ model.coef_.T + model.intercept_) / 2
        table = np.hstack([-half, half])
    return [dict(zip(model.classes_.tolist(), row, strict=True)) for row in table]


def ridge_beliefs(queries, X, y, alpha, weights):
    """Ridge regression of class indicators, λ in units of the mean eigenvalue of the scatter; by query."""
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


# Movers with a column: what queries are compared by


def balance(X, y, queries, strength, n_neighbors, n_proxies, sample_weight=None, later=None, proxies=None):
    assert n_proxies >= len(X if proxies is None else proxies), "all of them stand for the queries here"
    how = {"g": strength, "k": n_neighbors, "proxies": proxies}
    return scores(queries, X, y, **how, weights=sample_weight, later=later)


def steer(X, y, queries, strength, alpha, classifier, sample_weight=None, later=None):
    how = {"strength": strength, "alpha": alpha, "classifier": classifier}
    return scores(queries, X, y, **how, weights=sample_weight, later=later)


def whiten(X, y, queries, alpha, sample_weight=None, later=None):
    L = whitener(X, y, alpha, sample_weight)
    return scores(queries, X, y, L=L, weights=sample_weight, later=later)


def denoise(X, y, queries, power, n_targets, whiten, alpha, n_iter, sample_weight=None, later=None):
    L = denoiser(X, y, power, n_targets, whiten, alpha, n_iter, sample_weight)
    return scores(queries, X, y, L=L, weights=sample_weight, later=later)


# Without a column


def least_direction(X, weights=None):
    """(T / t̄ + 1e-6 I)^(−20) v at length 1, T the scatter of X and v drawn at random with the seed 0."""
    mu, d = total_mean(X, weights), X.shape[1]
    T = scatter_matrix(X, [mu] * len(X), weights)
    power = matrix_power(T * d / np.trace(T) + 1e-6 * np.eye(d), -20)
    n = power @ np.random.default_rng(0).standard_normal(d)
    return n / math.sqrt(sum(a * a for a in n))


def onto_direction(Z, bias, n, mu, learned_from=None):
    """Objects moved along n until c'² = c² + b − κ, with κ 100 standard deviations below the least c² + b."""
    Z0, bias0 = (Z, bias) if learned_from is None else learned_from
    wanted = [sum(n * (z - mu)) ** 2 + b for z, b in zip(Z0, bias0, strict=True)]
    middle = mean(wanted)
    floor = min(wanted) - 100 * math.sqrt(mean([(h - middle) ** 2 for h in wanted]))
    rows = []
    for z, b in zip(Z, bias, strict=True):
        c = sum(n * (z - mu))
        rows.append(z + (math.sqrt(max(c * c + b - floor, 0.0)) - c) * n)
    return np.array(rows)


def without_column(X, y, max_changed, sample_weight=None, later=None):
    """Alone, it has no column to do without."""
    return stay(X, y, sample_weight, later)


def handicapped_without_column(X, y, movers, sample_weight=None, later=None, proxies=None):
    """Balance(0.7, n_neighbors=3), then WithoutColumn."""
    near = [near_spread(x, X, 3, leave_out=i) for i, x in enumerate(X)]
    if proxies is not None:
        near = [near_spread(x, proxies, 3) for x in X]
    cap = sorted(near)[math.ceil(0.99 * (len(X) - 1))]
    n, mu = least_direction(X, sample_weight), total_mean(X, sample_weight)
    learned_from = X, [-0.7 * min(r, cap) for r in near]
    if later is None:
        return onto_direction(*learned_from, n, mu)
    bias = [-0.7 * min(near_spread(z, X if proxies is None else proxies, 3), cap) for z in later[0]]
    return onto_direction(later[0], bias, n, mu, learned_from)


def chance_of_occurrence(least, n_queries, n_objects, k):
    """Sum the probabilities of a binomial, each by its definition, in whole numbers until the end."""
    ways = [
        math.comb(n_queries, j) * k**j * (n_objects - k) ** (n_queries - j)
        for j in range(max(0, least), n_queries + 1)
    ]
    return sum(ways) / n_objects**n_queries


def apartness(X, queries, n_nearest, by_direction):
    """‖z − c‖² / median ‖q − c‖² over the nearest queries of each item."""
    _, found = nearest(X, queries, n_nearest)
    values = []
    for x, near in zip(plain(X), found, strict=True):
        asked = [plain(queries[q]) for q in near]
        middle = [mean(column) for column in zip(*asked, strict=True)]
        if by_direction:
            length = math.sqrt(math.fsum(number**2 for number in middle))
            middle = [number / length for number in middle]
        theirs = sorted(list_distance(q, middle) ** 2 for q in asked)
        half = len(theirs) // 2
        median = theirs[half] if len(theirs) % 2 else (theirs[half - 1] + theirs[half]) / 2
        values.append(list_distance(x, middle) ** 2 / median)
    return np.array(values)


def even_direction(log):
    """u of min Σ (uᵀq − 1)² + λ‖u‖², with λ the mean eigenvalue of Σ q qᵀ, by its normal equations."""
    d = len(log[0])
    gram = [[math.fsum(q[i] * q[j] for q in plain(log)) for j in range(d)] for i in range(d)]
    penalty = math.fsum(gram[i][i] for i in range(d)) / d
    sides = [math.fsum(q[i] for q in plain(log)) for i in range(d)]
    return np.linalg.solve(np.array(gram) + penalty * np.eye(d), sides)


def held_steps(before, log, own, step, *, shrink, share, fewest, rounds):
    """Items of length 1 after a step toward their queries, each held for the nearest queries of others."""
    u, unit = even_direction(log), lambda z: z / np.linalg.norm(z)
    apart = [np.mean([log[q] for q in queries], axis=0) - z for z, queries in zip(before, own, strict=True)]
    common, k, held = np.mean(apart, axis=0), min(max(fewest, round(share * len(log))), len(log)), []
    for z, queries, way in zip(before, own, apart, strict=True):
        n = len(queries)
        after = unit(z + step * n / (n + shrink) * (way - common))
        for _ in range(rounds):
            others = [q for i, q in enumerate(log) if i not in queries]
            near = sorted(others, key=lambda q, after=after: distance(q, after))[:k]
            gain = mean([q @ after - q @ z for q in near]) if near else 0.0
            after = unit(after - max(gain, 0.0) * u)
        held.append(after)
    return np.array(held)


# Corrections from logged queries: g and b of later objects, so that queries compare by g s(q, z) − b


def similarity(q, z, metric):
    """qᵀz, or −½ ‖q − z‖²; plain lists."""
    if metric == "l2":
        return -0.5 * list_distance(q, z) ** 2
    return math.fsum([a * b for a, b in zip(q, z, strict=True)])


def in_space(points, metric):
    """Lists of floats, of length 1 under cosine."""
    return plain(unit(np.asarray(points, dtype=float), None)) if metric == "cosine" else plain(points)


def distinct(rows):
    """The different rows, in the order of their first."""
    return [list(row) for row in dict.fromkeys(map(tuple, rows))]


def corrected(queries, later, gain, bias, metric):
    """g s(q, z) − b; shape (queries, objects)."""
    queries, later = in_space(queries, metric), in_space(later, metric)
    gain = [1.0] * len(later) if gain is None else gain
    return np.array(
        [
            [g * similarity(q, z, metric) - b for z, g, b in zip(later, gain, bias, strict=True)]
            for q in queries
        ]
    )


def bank_table(queries, later, metric):
    """Similarities of later objects to the different logged queries; a list per object."""
    bank = distinct(in_space(queries, metric))
    return [[similarity(q, z, metric) for q in bank] for z in in_space(later, metric)]


def nnn(queries, objects, later, metric, strength, n_neighbors):
    near = [sorted(row, reverse=True)[:n_neighbors] for row in bank_table(queries, later, metric)]
    return None, [strength * mean(row) for row in near]


def csls(queries, objects, later, metric, strength, n_neighbors):
    """2 s(q, z) − r(z) − r(q), halved, without r(q), which is the same for all objects."""
    return nnn(queries, objects, later, metric, strength, n_neighbors)


def mean_query(queries, objects, later, metric, strength):
    return None, [strength * mean(row) for row in bank_table(queries, later, metric)]


def similarity_beta(queries, objects, metric, sharpness):
    """β: the sharpness over the standard deviation of all similarities."""
    values = [s for row in bank_table(queries, objects, metric) for s in row]
    middle = mean(values)
    return sharpness / math.sqrt(mean([(s - middle) ** 2 for s in values]))


def soft_max(values, beta):
    """(1/β) log mean exp(β v)."""
    top = max(values)
    return top + math.log(mean([math.exp(beta * (v - top)) for v in values])) / beta


def inverted_softmax(queries, objects, later, metric, sharpness, strength):
    beta = similarity_beta(queries, objects, metric, sharpness)
    return None, [strength * soft_max(row, beta) for row in bank_table(queries, later, metric)]


def dual_is(queries, objects, later, metric, sharpness, strength):
    beta = similarity_beta(queries, objects, metric, sharpness)
    gallery, bias = in_space(objects, metric), []
    for z, row in zip(in_space(later, metric), bank_table(queries, later, metric), strict=True):
        places = [i for i, other in enumerate(gallery) if other == z][:1]  # itself
        others = [similarity(other, z, metric) for i, other in enumerate(gallery) if i not in places]
        bias.append(strength * (soft_max(row, beta) + soft_max(others, beta)) / 2)
    return None, bias


def potentials(table, beta, rounds):
    """f of each query and b of each object of a table of similarities, by Sinkhorn's iterations."""
    n, m = len(table), len(table[0])
    b = [max(row) for row in table]
    for _ in range(rounds):
        f = [soft_max([table[i][j] - b[i] for i in range(n)], beta) for j in range(m)]
        b = [soft_max([table[i][j] - f[j] for j in range(m)], beta) for i in range(n)]
    return [soft_max([table[i][j] - b[i] for i in range(n)], beta) for j in range(m)], b


def sinkhorn(queries, objects, later, metric, sharpness, strength):
    beta = similarity_beta(queries, objects, metric, sharpness)
    f, _ = potentials(bank_table(queries, objects, metric), beta, 30)
    rows = bank_table(queries, later, metric)
    return None, [strength * soft_max([s - g for s, g in zip(row, f, strict=True)], beta) for row in rows]


def near_distance(z, bank, k):
    return mean(sorted(list_distance(z, q) for q in bank)[:k])


def local_scaling(queries, objects, later, metric, strength, n_neighbors):
    """−½ ‖q − z‖² g, of unit vectors g qᵀz − g; g = (mean σ / σ(z))^strength, σ at least mean σ / 10."""
    bank = distinct(in_space(queries, metric))
    middle = mean([near_distance(z, bank, n_neighbors) for z in in_space(objects, metric)])
    sigma = [max(near_distance(z, bank, n_neighbors), 0.1 * middle) for z in in_space(later, metric)]
    gain = [(middle / s) ** strength for s in sigma]
    return gain, gain if metric == "cosine" else [0.0] * len(gain)


def dis_sim_local(queries, objects, later, metric, strength, n_neighbors):
    bank, bias = distinct(in_space(queries, metric)), []
    for z in in_space(later, metric):
        near = sorted((list_distance(z, q), i) for i, q in enumerate(bank))[:n_neighbors]
        middle = [mean([bank[i][column] for _, i in near]) for column in range(len(z))]
        bias.append(-0.5 * strength * list_distance(z, middle) ** 2)
    return None, bias


def binomial_limit(rate, n, p):
    """The least whole number that a binomial variable is above with a probability of at most `rate`."""
    tail, c = 1.0, -1
    while tail > rate:
        c += 1
        tail = math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(c + 1, n + 1))
    return c


def question_weights(answers):
    """1 / number of queries that share at least half of their answers with a query."""
    return [1 / sum(1 for b in answers if 2 * len({*a} & {*b}) >= len(a)) for a in answers]


def apart_from_middle(z, answered, metric):
    """‖z − c‖² and mean ‖q − c‖² over the queries that an object answers, c their middle."""
    middle = [mean(column) for column in zip(*answered, strict=True)]
    if metric == "cosine":
        length = math.sqrt(math.fsum(number**2 for number in middle))
        middle = [number / length for number in middle]
    return list_distance(z, middle) ** 2, mean([list_distance(q, middle) ** 2 for q in answered])


def least_bias(row, limits, weights, allowed):
    """The least b ≥ 0 with which an object answers no more than it is allowed."""
    for b in sorted([0.0, *(s - limit for s, limit in zip(row, limits, strict=True) if s > limit)]):
        if sum(w for s, lim, w in zip(row, limits, weights, strict=True) if s - lim > b) <= allowed + 1e-9:
            return b
    raise AssertionError("the largest margin leaves nothing")


def hold_hubs(queries, objects, later, metric, rate, n_answers):
    bank, stored = distinct(in_space(queries, metric)), in_space(objects, metric)
    n, m, k = len(stored), len(bank), min(n_answers, max(1, len(stored) - 1))
    ranked = [sorted((-similarity(q, z, metric), i) for i, z in enumerate(stored)) for q in bank]
    weights = question_weights([[i for _, i in row[:k]] for row in ranked])
    most, most_queries = (binomial_limit(rate / n, round(total), k / n) for total in (sum(weights), m))
    allowed, allowed_queries = (max(1.0, total * k / n) for total in (sum(weights), m))
    thresholds = [-(row[k - 1][0] + row[min(k, n - 1)][0]) / 2 for row in ranked]
    _, spread = apart_from_middle(bank[0], bank, "l2")

    def judged(z, row):
        """Whether an object is a hub by questions, and by queries as one in their middle."""
        answered = [i for i in range(m) if row[i] > thresholds[i]]
        is_hub = sum(weights[i] for i in answered) > most + 1e-9
        if len(answered) <= most_queries:
            return is_hub, False
        own, theirs = apart_from_middle(z, [bank[i] for i in answered], metric)
        return is_hub, own < 0.5 * theirs and theirs > 0.75 * spread

    table = [[similarity(q, z, metric) for q in bank] for z in stored]
    held = {i for i in range(n) if any(judged(stored[i], table[i]))}
    free = [[value for value, i in row if i not in held] for row in ranked]
    limits = [-(row[k - 1] + row[k]) / 2 for row in free]
    bias = []
    for z, row in zip(in_space(later, metric), bank_table(queries, later, metric), strict=True):
        is_hub, in_middle = judged(z, row)
        by_questions = least_bias(row, limits, weights, allowed) if is_hub else 0.0
        by_queries = least_bias(row, limits, [1.0] * m, allowed_queries) if in_middle else 0.0
        bias.append(max(by_questions, by_queries))
    return None, bias
