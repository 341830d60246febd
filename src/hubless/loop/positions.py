"""Position bias: what a click, or none, says of an item, given the ranks at which it was shown.

Users look at the first ranks more than at the last (Craswell et al., WSDM 2008), so clicks agree with
whatever was shown first. Each click is therefore divided by the probability that its rank was looked at, as
in Joachims, Swaminathan and Schnabel (WSDM 2017).
"""

from collections.abc import Mapping

import numpy as np
from sklearn.isotonic import IsotonicRegression

ETA = 1.0  # how steeply attention is assumed to fall with the rank
LEAST = 0.1  # propensity at least: one click counts as ten at most


# p(r) = r^{−η}
def assumed_propensities(n_ranks: int, eta: float = ETA) -> np.ndarray:
    """Return the assumed probability that a rank is looked at, relative to the first; (n_ranks,)."""
    return np.arange(1, n_ranks + 1, dtype=np.float64) ** -eta


# C(r) / C(1), C(r) the clicks per impression at rank r, made to fall with r by pooling neighbours
def click_curve(clicks: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Return how many clicks each rank gets, relative to the first; (n_ranks,), all 0 without clicks.

    Parameters
    ----------
    clicks, shown : arrays of shape (n_ranks,), how many clicks and impressions each rank has
    """
    if not clicks.sum():
        return np.zeros(len(clicks))
    rates = clicks / np.maximum(shown, 1)
    falling = IsotonicRegression(increasing=False).fit_transform(
        np.arange(len(rates)), rates, sample_weight=np.maximum(shown, 1e-9)
    )
    return np.asarray(falling / falling[0])


# p̂(r) = max(r^{−η}, C(r) / C(1), 0.1)
def propensities(clicks: np.ndarray, shown: np.ndarray, eta: float = ETA) -> np.ndarray:
    """Return the probability that each rank is looked at: the flatter of an assumption and of the log.

    Relevant items are shown first more often than last, so clicks fall with the rank at least as fast as
    attention does, and a curve below that of the clicks is impossible. Where clicks have nothing to do with
    the items, what remains is the same at all ranks, whatever users look at: no order gains anything.
    """
    curves = [assumed_propensities(len(clicks), eta), click_curve(clicks, shown)]
    return np.maximum(np.maximum(*curves), LEAST)


# ρ̂ = Σ_s c_s / Σ_s p(r_s), over the times s at which an item was shown for a query
def relevance(clicks: Mapping[int, int], expected: Mapping[int, float]) -> dict[int, float]:
    """Return the relevance of each item that was shown: its clicks per click that its ranks let expect.

    Without bias where p is right: E Σ c = ρ Σ p. An item that was shown first and passed over loses a whole
    expected click, one at the tenth rank a tenth of one. Of items that were never shown, nothing is said.
    """
    return {item: clicks.get(item, 0) / total for item, total in expected.items()}
