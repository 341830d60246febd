"""What metric-learn answers, stored for tests: it runs separately, with an older scikit-learn.

    python -m venv oracle && oracle/bin/pip install 'scikit-learn==1.7.*' metric-learn==0.7.0
    oracle/bin/python tests/baselines/oracle/ask.py > tests/baselines/oracle/metric_learn.json

ITML gets pairs and bounds that are stored with its answer, so that the same problem can be solved again. LMNN
gets the data, and its L is stored, so that objectives can be compared. MMC gets all pairs of some objects,
which are stored with its M. On digits, accuracies are stored.
"""

import json
from importlib.metadata import version

import numpy as np
from metric_learn import ITML, LMNN, MMC, ITML_Supervised
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier


def itml(gamma):
    """Iris, 60 random pairs, bounds at two quantiles of the distances."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(X), (2, 60))
    different = np.any(X[a] != X[b], axis=1)
    a, b = a[different], b[different]
    signs = np.where(y[a] == y[b], 1, -1)
    bounds = [1.0, 8.0]
    model = ITML(gamma=gamma, max_iter=20_000, tol=1e-9).fit(
        np.stack([X[a], X[b]], axis=1), signs, bounds=bounds
    )
    return {
        "gamma": gamma,
        "a": a.tolist(),
        "b": b.tolist(),
        "signs": signs.tolist(),
        "bounds": bounds,
        "M": model.get_mahalanobis_matrix().tolist(),
    }


def lmnn(load, n_neighbors):
    """L on z-scores, with equal weights of pull and push."""
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LMNN(n_neighbors=n_neighbors, max_iter=5000, convergence_tol=1e-7, learn_rate=1e-3).fit(X, y)
    return {"n_targets": n_neighbors, "L": model.components_.tolist()}


def mmc(load, diagonal):
    """M from all pairs of 60 z-scored objects."""
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    objects = np.sort(np.random.default_rng(0).choice(len(X), 60, replace=False))
    a, b = (objects[side] for side in np.triu_indices(60, 1))
    model = MMC(max_iter=20_000, tol=1e-8, diagonal=diagonal).fit(
        np.stack([X[a], X[b]], axis=1), np.where(y[a] == y[b], 1, -1)
    )
    return {"objects": objects.tolist(), "diagonal": diagonal, "M": model.get_mahalanobis_matrix().tolist()}


def digits():
    """Accuracy of 3-NN on half of digits after learning from the other half."""
    X, y = load_digits(return_X_y=True)
    X, queries, y, truth = train_test_split(X / 16, y, test_size=0.5, random_state=0)
    models = {
        "euclidean": None,
        "lmnn": LMNN(n_neighbors=1, max_iter=500),
        "itml": ITML_Supervised(n_constraints=2000, random_state=0),
    }
    found = {}
    for name, model in models.items():
        move = (lambda Z: Z) if model is None else model.fit(X, y).transform
        found[name] = KNeighborsClassifier(3).fit(move(X), y).score(move(queries), truth)
    return found


if __name__ == "__main__":
    answers = {
        "versions": {name: version(name) for name in ("metric-learn", "scikit-learn", "numpy")},
        "itml": [itml(gamma) for gamma in (0.1, 1.0, 10.0)],
        "lmnn": {"iris": lmnn(load_iris, 1), "wine": lmnn(load_wine, 3)},
        "mmc": {
            "iris": mmc(load_iris, False),
            "wine": mmc(load_wine, False),
            "iris, diagonal": mmc(load_iris, True),
        },
        "digits": digits(),
    }
    print(json.dumps(answers))
