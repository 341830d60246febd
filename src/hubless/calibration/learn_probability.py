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

# the features that a way uses, simplest first
FEATURES = {"shares": slice(2, 3), "temperature": slice(0, 4)}
METHODS = (*FEATURES, "isotonic")  # which has those of "temperature"
FEWEST = 100  # held-out queries from which anything is learned
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
    plain = Probability(np.array([0.0, 0.0, 1.0, 0.0]), unit, power=1.0, doubt=0.0)
    if n < FEWEST:
        return "shares", plain
    # by Laplace's rule of succession: n answers, all right, leave the next one a chance of 1 / (n + 2)
    plain = plain._replace(doubt=1 / (n + 2))
    weights = np.ones(n) if weights is None else weights / weights.mean()
    learner = _Learner(evidence, truth, prior, weights, plain)
    whole, losses = learner.fit(np.ones(n, dtype=bool)), dict.fromkeys(METHODS, 0.0)
    part = np.arange(n) % PARTS
    for i in range(PARTS):
        for method, model in learner.fit(part != i, whole).items():
            losses[method] += learner.loss(model, part == i)
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

    def fit(self, rows: np.ndarray, start: dict[str, Probability] | None = None) -> dict[str, Probability]:
        """Return what each way learns from some of the queries, a mask; a start near the end saves steps."""
        models = {}
        for method, columns in FEATURES.items():
            coefficients = np.zeros(self.features.shape[2])
            F = self.features[rows, :, columns]
            first = np.full(F.shape[2], 0.5) if start is None else start[method].coefficients[columns]
            coefficients[columns] = fit_temperatures(F, self.truth[rows], self.weights[rows], first)
            models[method] = self.plain._replace(coefficients=coefficients)
        p = probabilities_of(self.evidence.take(rows), models["temperature"], self.prior, np.float64)
        is_right = self.evidence.winners[rows] == self.truth[rows]
        curve = fit_curve(p.max(axis=1), is_right, self.weights[rows], self.plain.doubt)
        return {**models, "isotonic": models["temperature"]._replace(curve=curve)}

    def loss(self, model: Probability, rows: np.ndarray) -> float:
        """Return the sum of the log-losses of some of the queries."""
        p = probabilities_of(self.evidence.take(rows), model, self.prior, np.float64)
        weights = self.weights[rows]
        return float(weights.sum()) * log_loss(p, self.truth[rows], weights)


# min_w  Σ_i ω_i (log Σ_c exp(wᵀf_ic) − wᵀf_iy) / Σ ω + PRECISION ‖w‖² / 2n,   which is convex
# gradient  E[f] − f_y and Hessian  E[f fᵀ] − E[f] E[f]ᵀ, means over p_i = softmax(wᵀf_i), averaged over i
def fit_temperatures(F: np.ndarray, truth: np.ndarray, weights: np.ndarray, start: np.ndarray) -> np.ndarray:
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

    return np.asarray(minimize(loss, start, jac=True, hess=hessian, method="trust-exact", tol=1e-6).x)


# g = the non-decreasing function of the least Σ ω (g(p_i) − [right_i])², by pooling adjacent violators
def fit_curve(p: np.ndarray, is_right: np.ndarray, weights: np.ndarray, doubt: float) -> Curve:
    """Return how often answers of a probability are right, never surer than `doubt` allows."""
    fit = IsotonicRegression(y_min=doubt, y_max=1 - doubt, out_of_bounds="clip").fit(p, is_right, weights)
    return Curve(fit.X_thresholds_, fit.y_thresholds_)
