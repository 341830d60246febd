"""The linear SVM of scikit-learn's `LinearSVC`, with all classes solved at once by matrix products.

The same problem and the same minimum: one class against the rest, squared hinge loss, L2 penalty on weights
and intercept. liblinear solves a class after another with products of a matrix and a vector; here a step of
all classes is two products of matrices, on NumPy arrays or on tensors of any device.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from hubless.arrays import Array, convert, namespace, take_rows, to_numpy

STEPS, INNER_STEPS, HALVINGS = 100, 300, 20  # at most: Newton's, of conjugate gradients, of a step's length


# min over w of ½ ‖w‖² + C Σᵢ max(0, 1 − sᵢ w·xᵢ)², for every class, with sᵢ = 1 in the class and −1 elsewhere
def squared_hinge(X: Array, signs: Array, cost: float, tol: float) -> Array:
    """Return the weights (d, classes) by Newton's method with conjugate gradients; X is (n, d)."""
    xp = namespace(X, signs)
    W = xp.zeros_like(X[:1, :]).T @ signs[:1, :]
    scores = X @ W
    first = None
    for _ in range(STEPS):
        slack = _positive(xp, 1 - signs * scores)
        gradient = W - 2 * cost * (X.T @ (signs * slack))
        norms = _norms(xp, gradient)
        first = norms if first is None else first
        if bool(xp.all(norms <= tol * first)):
            break
        step = _newton_step(X, slack > 0, cost, gradient, norms)
        moved = X @ step
        length = _step_lengths(W, scores, signs, cost, gradient, step, moved)
        W, scores = W + length * step, scores + length * moved
    return W


# (I + 2 C Xᵀ D X) p = −g, with D the objects inside the margin
def _newton_step(X: Array, is_inside: Array, cost: float, gradient: Array, norms: Array) -> Array:
    """Return the steps of all classes; a class stops at a tenth of its gradient."""
    xp = namespace(X, gradient)
    step, rest = xp.zeros_like(gradient), -gradient
    direction, squares = rest, norms**2
    for _ in range(INNER_STEPS):
        inside = xp.where(is_inside, X @ direction, xp.zeros_like(X[:1, :1]))
        product = direction + 2 * cost * (X.T @ inside)
        is_open = xp.sqrt(squares) > 0.1 * norms
        if not bool(xp.any(is_open)):
            break
        zero = xp.zeros_like(squares)
        curvature = xp.sum(direction * product, axis=0)
        a = xp.where(is_open, squares / xp.where(is_open, curvature, zero + 1), zero)
        step, rest = step + a * direction, rest - a * product
        new = xp.where(is_open, xp.sum(rest * rest, axis=0), squares)
        direction = rest + new / xp.where(squares > 0, squares, zero + 1) * direction
        squares = new
    return step


def _step_lengths(
    W: Array, scores: Array, signs: Array, cost: float, gradient: Array, step: Array, moved: Array
) -> Array:
    """Return the length of each class's step, halved until its loss has fallen enough."""
    xp = namespace(W, scores)

    def loss(length: Array) -> Array:
        slack = _positive(xp, 1 - signs * (scores + length * moved))
        return xp.sum((W + length * step) ** 2, axis=0) / 2 + cost * xp.sum(slack**2, axis=0)

    length = xp.ones_like(W[0, :])
    before, slope = loss(0 * length), xp.sum(gradient * step, axis=0)
    for _ in range(HALVINGS):
        is_enough = loss(length) <= before + 0.01 * length * slope
        if bool(xp.all(is_enough)):
            break
        length = xp.where(is_enough, length, length / 2)
    return length


def _positive(xp: Any, values: Array) -> Array:
    return xp.where(values > 0, values, xp.zeros_like(values))


def _norms(xp: Any, values: Array) -> Array:
    return xp.sqrt(xp.sum(values**2, axis=0))


class SquaredHingeSVC(ClassifierMixin, BaseEstimator):
    """A linear SVM: the classes with the highest w·x + b."""

    def __init__(self, C: float = 1.0, tol: float = 1e-5) -> None:
        self.C = C
        self.tol = tol

    def fit(self, X: Array, y: np.ndarray) -> "SquaredHingeSVC":
        """Solve for every class, in float64; two classes need one solution."""
        self.classes_, codes = np.unique(to_numpy(y), return_inverse=True)
        n_solved = len(self.classes_) if len(self.classes_) > 2 else 1
        is_class = codes[:, None] == np.arange(len(self.classes_) - n_solved, len(self.classes_))
        signs = convert(np.where(is_class, 1.0, -1.0), X)
        self.weights_ = squared_hinge(self._with_one(X), signs, self.C, self.tol)
        return self

    def predict(self, X: Array) -> np.ndarray:
        """Return the class of each query."""
        scores = to_numpy(self._with_one(X) @ self.weights_)
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[best])

    @staticmethod
    def _with_one(X: Array) -> Array:
        """Return the objects in float64 with a column of ones, whose weight is the intercept."""
        xp = namespace(X)
        wide = xp.astype(X, xp.float64)
        return xp.concat([wide, xp.ones_like(wide[:, :1])], axis=1)


def rows_of(X: Array, rows: np.ndarray) -> Array:
    """Return rows by their numbers, where the objects are."""
    return take_rows(X, convert(rows, X))
