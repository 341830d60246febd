"""Choosing λ and k by cross-validation: hubless beside the searches that it needs."""

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from hubless import MoveLabeledClassifierCV, nearest

from .data import Labeled, news
from .record import Options
from .timing import Contender, race

FOLDS, PENALTIES = 5, 13
NEIGHBORS = (1, 3, 5, 7, 10, 15, 20, 30, 50)
SEARCHES = f"the {FOLDS * PENALTIES} searches"
PEER = "scikit-learn GridSearchCV over k alone"


def searches(data: Labeled) -> Contender:
    """Return one search per fold and λ for the largest k, among objects that moved toward their mean."""
    folds = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(data.X, data.y):
        mean = data.X[train].mean(axis=0)
        folds.append((data.X[test], mean + (data.X[train] - mean) / 2))

    def search() -> None:
        for queries, moved in folds:
            for _ in range(PENALTIES):
                nearest(queries, moved, max(NEIGHBORS), return_distance=False)

    return search


def grid_search(data: Labeled) -> Contender:
    """Return the peer, which chooses k and has no λ."""
    model = KNeighborsClassifier(algorithm="brute")
    grid = GridSearchCV(model, {"n_neighbors": list(NEIGHBORS)}, cv=FOLDS)
    return lambda: grid.fit(data.X, data.y)


def measure(options: Options) -> dict[str, Any]:
    """Measure the whole choice, including its last fit, on News or data of its shape."""
    data = news(options.quick)
    models: list[MoveLabeledClassifierCV] = []

    def choose() -> None:
        models[:] = [MoveLabeledClassifierCV(cv=FOLDS, random_state=0).fit(data.X, data.y)]

    contenders = {SEARCHES: searches(data), "hubless": choose, PEER: grid_search(data)}
    seconds = race(contenders, options.repeats, once=(PEER,), title="select", pause=options.pause)
    grid = {name: len(values) for name, values in models[0].grid_.items()} if models else {}
    expected = {"n_targets": 1, "alpha": PENALTIES, "n_neighbors": len(NEIGHBORS)}
    if models and grid != expected:
        raise ValueError(f"the grid of MoveLabeledClassifierCV should be {expected}; got {grid}.")
    shape = {"objects": len(data.y), "d": data.X.shape[1], "classes": len(np.unique(data.y))}
    settings = {"data": data.source, **shape, "dtype": str(data.X.dtype), "folds": FOLDS, "grid": grid}
    return {"news": {"settings": settings, "reference": SEARCHES, "seconds": seconds}}
