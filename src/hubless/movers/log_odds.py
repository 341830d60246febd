"""Multinomial logistic regression by L-BFGS: how likely a query is of each class, linear in the query."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.products import affine, keep_threads, rows_at_once, sum_blocks
from ..moments import as_weights
from .points import centred, class_means, squared_norms, weighted_mean

MAX_ITER = 200  # steps of L-BFGS: 30 gave the same accuracy where it was measured
TOLERANCE = 1e-6  # of the largest slope
NUMBERS = 1 << 20  # scores held at once, by each thread


class LogOdds(NamedTuple):
    """ℓ_c(x) = w_cᵀ(x − μ) + b_c, the logarithm of how likely class c is, up to what all classes share."""

    coef: Array  # (c, d), float64
    intercept: Array  # (c,), float64
    mean: Array  # (d,), float64
    n_iter: int = 1  # steps that were taken


@dataclass(frozen=True)
class _Part:
    """What some objects add to the loss and its slopes."""

    loss: Any
    coef: Array
    intercept: Array

    def __add__(self, other: "_Part") -> "_Part":
        return _Part(self.loss + other.loss, self.coef + other.coef, self.intercept + other.intercept)


@dataclass(frozen=True)
class LogisticProblem:
    """Objects whose classes are to be told apart: centred, and scaled to a mean variance of 1 per column."""

    X: Array  # (n, d)
    shares: Array  # (n,), v: weights that sum to 1
    sums: Array  # (c, d), float64: Σ v x of each class that has objects
    sizes: Array  # (c,), float64: Σ v of these classes
    present: np.ndarray  # (c,): their numbers
    n_classes: int  # with those that have none
    mean: Array  # (d,), float64
    unit: float  # what they were divided by

    @staticmethod
    def of(
        X: Array, codes: Array, n_classes: int, weights: Array | None, columns: int | None = None
    ) -> "LogisticProblem":
        """Return the problem of labeled objects in any units; `columns` are those of the input."""
        xp, w = namespace(X), as_weights(X, weights)
        mean, shares = weighted_mean(X, weights), w / xp.sum(w)
        scaled = centred(X, mean)
        unit = (float(xp.sum(shares * squared_norms(scaled))) / (columns or X.shape[1])) ** 0.5 or 1.0
        scaled = scaled / unit
        means, totals = class_means(scaled, codes, n_classes, shares)
        present = np.flatnonzero(to_numpy(totals) > 0)
        rows = convert(present, X)
        sums, sizes = (xp.take(part, rows, axis=0) for part in (totals[:, None] * means, totals))
        return LogisticProblem(scaled, shares, sums, sizes, present, n_classes, mean, unit)

    # f(W, b) = Σ v (log Σ_c exp ℓ_c(x) − ℓ_y(x)) + ½ λ ‖W‖²  with ℓ_c(x) = w_cᵀx + b_c
    # ∂f/∂w_c = Σ v p_c(x) x − Σ_{y = c} v x + λ w_c,   ∂f/∂b_c = Σ v p_c(x) − Σ_{y = c} v
    def loss_and_slopes(self, W: Array, b: Array, alpha: float) -> tuple[float, Array, Array]:
        """Return f and its slopes, (c, d) and (c,), in float64; W and b are in float64."""
        xp, dtype = namespace(self.X), self.X.dtype
        narrow_W, narrow_b = xp.astype(W, dtype, copy=False), xp.astype(b, dtype, copy=False)

        def part(rows: slice) -> _Part:
            x, v = self.X[rows, :], xp.astype(self.shares[rows], dtype, copy=False)
            scores = affine(x, narrow_W, narrow_b)
            top = xp.max(scores, axis=1, keepdims=True)
            scores = xp.exp(scores - top)
            total = xp.sum(scores, axis=1, keepdims=True)
            scores = scores * (v[:, None] / total)  # v p_c(x)
            logs = xp.astype(v, xp.float64) * xp.astype((xp.log(total) + top)[:, 0], xp.float64)
            slopes = xp.astype(scores.T @ x, xp.float64), xp.sum(xp.astype(scores, xp.float64), axis=0)
            return _Part(xp.sum(logs), *slopes)

        size = max(1, min(rows_at_once(self.X), NUMBERS // W.shape[0]))
        whole = sum_blocks(xp, part, self.X.shape[0], size)
        loss = whole.loss - xp.sum(W * self.sums) - xp.sum(b * self.sizes) + 0.5 * alpha * xp.sum(W**2)
        return float(loss), whole.coef - self.sums + alpha * W, whole.intercept - self.sizes

    def solve(
        self,
        alpha: float,
        start: LogOdds | None = None,
        *,
        max_iter: int = MAX_ITER,
        tolerance: float = TOLERANCE,
    ) -> LogOdds:
        """Minimise f from the log-odds of another λ, or from none. SciPy steps, the library of X computes."""
        xp, (c, d) = namespace(self.X), self.sums.shape
        first = np.zeros((c, d + 1))
        if start is not None:
            first[:, :d] = to_numpy(start.coef)[self.present] * self.unit
            first[:, d] = to_numpy(start.intercept)[self.present]

        def of(flat: np.ndarray) -> tuple[float, np.ndarray]:
            given = convert(flat.reshape(c, d + 1), self.sums)
            loss, of_W, of_b = self.loss_and_slopes(given[:, :d], given[:, d], alpha)
            return loss, to_numpy(xp.concat([of_W, of_b[:, None]], axis=1)).ravel()

        options = {"maxiter": max_iter, "gtol": tolerance, "ftol": 1e-10}
        with keep_threads(blas=1):
            found = scipy.optimize.minimize(of, first.ravel(), jac=True, method="L-BFGS-B", options=options)
        best = found.x.reshape(c, d + 1)
        coef, intercept = np.zeros((self.n_classes, d)), np.full(self.n_classes, best[:, d].min())
        coef[self.present], intercept[self.present] = best[:, :d] / self.unit, best[:, d]
        return LogOdds(
            convert(coef, self.sums), convert(intercept, self.sums), self.mean, max(1, int(found.nit))
        )


def log_odds(odds: LogOdds, queries: Array) -> Array:
    """Return ℓ_c(x) of each query and class, in float64; (queries, c)."""
    return (namespace(queries).astype(queries, odds.mean.dtype) - odds.mean) @ odds.coef.T + odds.intercept
