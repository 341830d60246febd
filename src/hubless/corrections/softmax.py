"""Corrections by a softmax over the logged queries: which objects are likely answers to all of them."""

import math
from functools import partial
from typing import ClassVar

import array_api_compat as compat

from ..arrays import Array, namespace
from ..arrays.inputs import check_positive
from ..arrays.library import blocks
from ..neighbors.search import search
from .correction import Correction, check_strength, sample_rows
from .formulas import over_objects, query_potentials, similarities, soft_maximum

__all__ = ["DualIS", "InvertedSoftmax", "Sinkhorn"]

ROUNDS = 30  # of Sinkhorn's iterations
PLAN = 1 << 25  # similarities that Sinkhorn's iterations hold: of many objects, a sample
GALLERY = 2048  # objects that DualIS compares others with
ROWS = 4096  # objects that are compared with them at once


# b = (1/β) log mean_q exp(β s(q, z)), β in units of 1 / (standard deviation of s)
class InvertedSoftmax(Correction):
    """Divide what is most likely for a query by how likely it is for all: of Smith et al. (ICLR 2017).

    Parameters
    ----------
    sharpness : float, default=2.0
        β times the standard deviation of the similarities.
    strength : float, default=0.5
        What b is multiplied by.
    metric, column : as for NNN

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import InvertedSoftmax
    >>> rng = np.random.default_rng(0)
    >>> queries, objects = rng.standard_normal((60, 8)) + 1, rng.standard_normal((90, 8))
    >>> correction = InvertedSoftmax().fit(queries, objects)
    >>> gain, bias = correction.bias(objects)
    >>> bool(np.corrcoef(bias, objects @ queries.mean(axis=0))[0, 1] > 0.5)  # likely answers are held back
    True
    """

    _checks: ClassVar = {"sharpness": check_positive, "strength": check_strength}
    _learned: ClassVar = {"beta_": "number"}

    def __init__(
        self,
        sharpness: float = 2.0,
        strength: float = 0.5,
        *,
        metric: str = "cosine",
        column: bool = False,
    ) -> None:
        self.sharpness = sharpness
        self.strength = strength
        self.metric = metric
        self.column = column

    def _learn(self, objects: Array) -> None:
        self.beta_ = self.sharpness / self._similarity_scale(objects)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        formula = partial(soft_maximum, beta=self.beta_)
        return None, self.strength * over_objects(Z, self.bank_, self.metric, formula)


# b = ½ (1/β) [log mean_q exp(β s(q, z)) + log mean_{z' ≠ z} exp(β s(z', z))]
class DualIS(InvertedSoftmax):
    """Inverted softmax over the logged queries and over the other objects: of Wang et al. (EMNLP 2023).

    The other objects are a sample, `gallery_`, of at most 2,048. Parameters as for InvertedSoftmax.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import DualIS
    >>> rng = np.random.default_rng(0)
    >>> queries, objects = rng.standard_normal((60, 8)) + 1, rng.standard_normal((90, 8))
    >>> correction = DualIS().fit(queries, objects)
    >>> gain, bias = correction.bias(objects)
    >>> bool(np.corrcoef(bias, objects @ queries.mean(axis=0))[0, 1] > 0.5)  # likely answers are held back
    True
    """

    _learned: ClassVar = {"beta_": "number", "gallery_": "gd"}

    def _learn(self, objects: Array) -> None:
        super()._learn(objects)
        self.gallery_ = namespace(objects).asarray(sample_rows(objects, GALLERY), copy=True)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        _, by_queries = super()._correct(Z)
        xp = namespace(Z)
        among = xp.concat([self._among_objects(Z[part, :]) for part in blocks(Z.shape[0], ROWS)])
        return None, 0.5 * by_queries + 0.5 * self.strength * among

    def _among_objects(self, Z: Array) -> Array:
        xp, g = namespace(Z), int(self.gallery_.shape[0])
        gallery = xp.astype(self.gallery_, Z.dtype, copy=False)
        S = similarities(Z, gallery, self.metric)
        if g == 1:
            return xp.astype(soft_maximum(S, self.beta_), xp.float64)
        distances, found = search(Z, gallery, 1)
        numbers = xp.arange(g, dtype=found.dtype, device=compat.device(found))
        itself = (distances == 0) & (found == numbers[None, :])  # (n, 1) with (n, g)
        nothing = xp.min(S, axis=1, keepdims=True) - 1e3 / self.beta_
        others = soft_maximum(xp.where(itself, nothing, S), self.beta_)
        more = math.log(g / (g - 1)) / self.beta_  # a mean over one less
        return xp.astype(others, xp.float64) + more * xp.astype(xp.any(itself, axis=1), xp.float64)


# b = (1/β) log mean_q exp(β (s(q, z) − f_q)) with f of entropic optimal transport
class Sinkhorn(InvertedSoftmax):
    """Give all objects equal shares of the logged queries, softly: entropic optimal transport.

    As in dual bank Sinkhorn normalisation (MM 2025). f, one number per logged query, is learned on a sample
    of the objects where there are many. Parameters as for InvertedSoftmax.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import Sinkhorn
    >>> rng = np.random.default_rng(0)
    >>> queries, objects = rng.standard_normal((60, 8)) + 1, rng.standard_normal((90, 8))
    >>> correction = Sinkhorn().fit(queries, objects)
    >>> gain, bias = correction.bias(objects)
    >>> bool(np.corrcoef(bias, objects @ queries.mean(axis=0))[0, 1] > 0.5)  # likely answers are held back
    True
    """

    _learned: ClassVar = {"beta_": "number", "potentials_": "q"}

    def __init__(
        self,
        sharpness: float = 4.0,
        strength: float = 1.0,
        *,
        metric: str = "cosine",
        column: bool = False,
    ) -> None:
        super().__init__(sharpness, strength, metric=metric, column=column)

    def _learn(self, objects: Array) -> None:
        super()._learn(objects)
        sample = sample_rows(objects, max(100, PLAN // int(self.bank_.shape[0])))
        self.potentials_ = query_potentials(similarities(sample, self.bank_, self.metric), self.beta_, ROUNDS)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        formula = partial(soft_maximum, beta=self.beta_, offsets=self.potentials_)
        return None, self.strength * over_objects(Z, self.bank_, self.metric, formula)
