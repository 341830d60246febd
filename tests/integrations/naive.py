"""Models for the tests of LangChain and LlamaIndex, and where plain loops move rows."""

import numpy as np

from hubless.movers import Chain, MoveLabeled, Scale
from hubless.repair.repair import Repair

MODELS = {
    "l2": lambda X, y: Repair(MoveLabeled(1.0).fit(X, y)),
    "cosine": lambda X, y: Repair(MoveLabeled(1.0).fit(unit(X), y), metric="cosine"),
    "scale": lambda X, y: Repair(Scale(0.4).fit(X, y)),
    "chain": lambda X, y: Repair(Chain([Scale(0.7), MoveLabeled(1.0)]).fit(X, y)),
}


def unit(X):
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


def naive(model, Z):
    """Where a model moves rows, one after another, in float64."""
    moved = []
    for z in unit(Z) if model.metric == "cosine" else Z:
        for mover in getattr(model.mover, "movers_", [model.mover]):
            W = mover.g * np.eye(len(z)) if isinstance(mover, Scale) else mover.W_
            z = mover.mean_ + W @ (z - mover.mean_)
        moved.append(z)
    return unit(np.array(moved)) if model.metric == "cosine" else np.array(moved)


def close(found, truth):
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-5)
    return True
