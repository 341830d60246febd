"""From evidence to probabilities: a logit for each class, and a curve; `learn_probability` learns both."""

from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, namespace, to_numpy
from ..neighbors.knn import with_largest
from .evidence import Evidence


class Curve(NamedTuple):
    """A rising curve, straight between its knots."""

    knots: np.ndarray  # (q,), ascending
    values: np.ndarray  # (q,), not descending


class Probability(NamedTuple):
    """What turns evidence into probabilities."""

    coefficients: np.ndarray  # (4,), of `features`
    unit: float  # of squared distances
    power: float  # the only coefficient where votes alone are known
    doubt: float  # the share of a probability that goes by the sizes of the classes
    curve: Curve | None = None  # from the probability of an answer to that it is right


# f_1 = −g_c / u,   f_2 = −g_c / σ,   f_3 = log s_c,   f_4 = log t_c
# with the gap g_c of evidence, its unit u, its standard deviation σ over the classes of this query, and the
# shares s_c and t_c of the votes of the k and of the WIDE nearest. f_2 has the scale of each query: on some
# data the distances of one query differ ten times as much as those of another.
def features(evidence: Evidence, unit: float) -> list[Array]:
    """Return four numbers for each class, larger for likelier ones; each of shape (m, c)."""
    xp, gaps = namespace(evidence.gaps), evidence.gaps
    spread = xp.std(gaps, axis=1, keepdims=True)
    spread = xp.where(spread > 0, spread, 1.0)
    return [-gaps / unit, -gaps / spread, xp.log(evidence.votes), xp.log(evidence.wide)]


# p_c = exp(Σ_j w_j f_jc) / Σ_c' exp(Σ_j w_j f_jc')
def softmax(parts: list[Array], coefficients: np.ndarray) -> Array:
    """Return probabilities from features; shape (m, c)."""
    xp = namespace(*parts)
    pairs = zip(coefficients.tolist(), parts, strict=True)
    logits = sum((w * part for w, part in pairs), xp.zeros_like(parts[0]))
    powers = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


# q = the distribution nearest to p (by Σ p log(p / q), and by squares) in which no class exceeds the winner:
# q_w = ℓ and q_c = min(p_c, ℓ), where ℓ is the mean of p_w and of those that exceed ℓ
def make_likeliest(p: Array, winners: Array) -> Array:
    """Return probabilities, the largest for the class voted for; shapes (m, c) and (m,)."""
    xp, n_classes = namespace(p, winners), p.shape[1]
    classes = xp.arange(n_classes, dtype=winners.dtype, device=compat.device(p))
    won = winners[:, None] == classes
    own = xp.sum(xp.where(won, p, 0.0), axis=1, keepdims=True)
    others = xp.sort(xp.where(won, 0.0, p), axis=1, descending=True)
    sums = own + xp.cumulative_sum(others, axis=1)
    levels = sums / xp.arange(2, n_classes + 2, dtype=p.dtype, device=compat.device(p))
    level = xp.maximum(own, xp.max(levels, axis=1, keepdims=True))  # pooling raises it while it helps
    return xp.where(won, level, xp.minimum(p, level))


def probabilities_of(evidence: Evidence, model: Probability, prior: Array, dtype: Any) -> Array:
    """Return the probability of each class, the largest for the class voted for; shape (m, c)."""
    p = softmax(features(evidence, model.unit), model.coefficients)
    return _finished(p, evidence.winners, model, prior, dtype)


def probabilities_of_votes(
    shares: Array, winners: Array, model: Probability, prior: Array, dtype: Any
) -> Array:
    """Return probabilities from smoothed shares of votes alone, where no distances are known."""
    p = softmax([namespace(shares).log(shares)], np.array([model.power]))
    return _finished(p, winners, model._replace(curve=None), prior, dtype)


# p ← (1 − ε) p + ε π, then the curve, then the class voted for on top
def _finished(p: Array, winners: Array, model: Probability, prior: Array, dtype: Any) -> Array:
    xp = namespace(p)
    p = make_likeliest((1 - model.doubt) * p + model.doubt * prior, winners)
    if model.curve is not None:
        p = make_likeliest(_along(model.curve, p, winners), winners)
    return with_largest(xp.astype(p, dtype), winners)


# p_w ← g(p_w), and the others share 1 − g(p_w) as they shared 1 − p_w
def _along(curve: Curve, p: Array, winners: Array) -> Array:
    xp = namespace(p)
    own = xp.take_along_axis(p, winners[:, None], axis=1)
    new = convert(np.interp(to_numpy(own), curve.knots, curve.values), p)
    rest = xp.where(own < 1, (1 - new) / xp.where(own < 1, 1 - own, 1.0), 0.0)
    classes = xp.arange(p.shape[1], dtype=winners.dtype, device=compat.device(p))
    return xp.where(winners[:, None] == classes, new, p * rest)
