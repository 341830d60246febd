"""Learn probabilities from held-out queries: which of three ways, by log-loss, and its few numbers.

shares        the smoothed share of the votes, at one temperature
temperature   a softmax of four numbers for each class, each at its own temperature
isotonic      the same, and the probability of the answer read off a rising curve
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.isotonic import IsotonicRegression

from .evidence import Evidence
from .probability import Curve, Probability, features, probabilities_of
from .reliability import log_loss

# ways and the features that they use, simplest first
METHODS = {"shares": (2,), "temperature": (0, 1, 2, 3), "isotonic": (0, 1, 2, 3)}
FEWEST = 30  # held-out queries from which anything is learned
PARTS = 3  # of these queries, for the choice: each is answered by what was learned from the others
PRECISION = 0.01  # of the normal prior of a coefficient; it is felt only where queries are few


def learn_probability(
    evidence: Evidence, truth: np.ndarray, prior: np.ndarray, weights: np.ndarray | None = None
) -> tuple[str, Probability]:
    """Return the way of the least log-loss and what it has learned.

    Parameters
    ----------
    evidence : of n held-out queries, in NumPy
    truth : int array of shape (n,), class numbers
    prior : array of shape (c,), shares of the classes among the stored objects
    weights : array of shape (n,), optional
    """
    n = len(truth)
    gaps = evidence.gaps[evidence.gaps > 0]
    unit = float(np.median(gaps)) if len(gaps) else 1.0
    # by Laplace's rule of succession: n answers, all right, leave the next one a chance of 1 / (n + 2)
    plain = Probability(np.array([0.0, 0.0, 1.0, 0.0]), unit, power=1.0, doubt=1 / (n + 2))
    if n < FEWEST:
        return "shares", plain
    weights = np.ones(n) if weights is None else weights / weights.mean()
    learn = _Learner(evidence, truth, prior, weights, plain)
    everything = np.ones(n, dtype=bool)
    whole = {method: learn.fit(method, everything) for method in METHODS}
    losses = {method: learn.loss(method, whole[method].coefficients) for method in METHODS}
    method = min(METHODS, key=lambda method: losses[method])  # of equal ones the first, which is the simplest
    return method, whole[method]._replace(power=float(whole["shares"].coefficients[2]))


class _Learner:
    """Held-out queries and their features, from parts of which is learned."""

    def __init__(
        self,
        evidence: Evidence,
        truth: np.ndarray,
        prior: np.ndarray,
        weights: np.ndarray,
        plain: Probability,
    ) -> None:
        self.evidence, self.truth, self.prior, self.weights = evidence, truth, prior, weights
        self.plain = plain
        self.features = np.stack(features(evidence, plain.unit), axis=2)  # (n, c, 4)

    def fit(self, method: str, rows: np.ndarray, start: np.ndarray | None = None) -> Probability:
        """Return what a way learns from some of the queries, a mask."""
        columns = [*METHODS[method]]
        first = None if start is None else start[columns]
        coefficients = np.zeros(self.features.shape[2])
        coefficients[columns] = fit_temperatures(
            self.features[rows][:, :, columns], self.truth[rows], self.weights[rows], first
        )
        model = self.plain._replace(coefficients=coefficients)
        if method != "isotonic":
            return model
        p = probabilities_of(self.evidence.take(rows), model, self.prior, np.float64)
        is_right = self.evidence.winners[rows] == self.truth[rows]
        return model._replace(curve=fit_curve(p.max(axis=1), is_right, self.weights[rows], model.doubt))

    def loss(self, method: str, start: np.ndarray) -> float:
        """Return the log-loss on queries that were not learned from."""
        part, total = np.arange(len(self.truth)) % PARTS, 0.0
        for i in range(PARTS):
            rows = part == i
            p = probabilities_of(
                self.evidence.take(rows), self.fit(method, ~rows, start), self.prior, np.float64
            )
            total += self.weights[rows].sum() * log_loss(p, self.truth[rows], self.weights[rows])
        return total / self.weights.sum()


# min_w  Σ_i ω_i (log Σ_c exp(wᵀf_ic) − wᵀf_iy) / Σ ω + PRECISION ‖w‖² / 2n,   which is convex
# gradient  E[f] − f_y and Hessian  E[f fᵀ] − E[f] E[f]ᵀ, means over p_i = softmax(wᵀf_i), averaged over i
def fit_temperatures(
    F: np.ndarray, truth: np.ndarray, weights: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return the coefficients of the least log-loss; shapes (n, c, j), (n,), (n,) → (j,)."""
    n, _, j = F.shape
    share, flat = weights / weights.sum(), F.reshape(-1, j)
    seen = share @ F[np.arange(n), truth]
    penalty = PRECISION / n

    def softmax(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = F @ w
        total = logsumexp(logits, axis=1)
        return total, np.exp(logits - total[:, None]) * share[:, None]  # (n, c), of sum 1 over all

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        total, p = softmax(w)
        value = share @ total - seen @ w + penalty * (w @ w) / 2
        return float(value), p.reshape(-1) @ flat - seen + penalty * w

    def hessian(w: np.ndarray) -> np.ndarray:
        _, p = softmax(w)
        means = np.einsum("nc,ncj->nj", p, F)  # Σ_c ω p f
        squares = (flat * p.reshape(-1, 1)).T @ flat
        return squares - (means / share[:, None]).T @ means + penalty * np.eye(j)

    first = np.full(j, 0.5) if start is None else start
    return np.asarray(minimize(loss, first, jac=True, hess=hessian, method="trust-exact", tol=1e-6).x)


# g = the non-decreasing function of the least Σ ω (g(p_i) − [right_i])², by pooling adjacent violators
def fit_curve(p: np.ndarray, is_right: np.ndarray, weights: np.ndarray, doubt: float) -> Curve:
    """Return how often answers of a probability are right, never surer than `doubt` allows."""
    fit = IsotonicRegression(y_min=doubt, y_max=1 - doubt, out_of_bounds="clip").fit(p, is_right, weights)
    return Curve(fit.X_thresholds_, fit.y_thresholds_)
