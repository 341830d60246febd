"""Plain k-NN: what a repair is compared with."""

from typing import Any

import numpy as np

from ..classifier_cv import MoveLabeledClassifierCV
from ..movers import Stay
from ..selection.candidates import name


def plain_neighbors(model: MoveLabeledClassifierCV, X: Any, y: Any) -> int:
    """Return the number of neighbours that is best without moving the objects that a model was fitted to."""
    movers = model.cv_results_.get("mover", np.array([], dtype=str))
    rows = np.flatnonzero(movers == name(Stay()))
    if len(rows):
        return int(model.cv_results_["n_neighbors"][rows[0]])
    tried = model.grid_["n_neighbors"] if hasattr(model, "grid_") else model.n_neighbors
    plain = MoveLabeledClassifierCV(
        tried, mover=Stay(), weights=model.weights, cv=model.cv, random_state=model.random_state
    )
    return int(plain.fit(X, y, sample_weight=model.weights_).n_neighbors_)
