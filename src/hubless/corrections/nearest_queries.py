"""Corrections by the logged queries near an object, or by all of them."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from ..arrays import Array, namespace
from ..arrays.inputs import check_count
from ..neighbors.search import search
from .correction import SAMPLE, Correction, check_strength, sample_rows
from .formulas import mean_of_largest, over_objects, spread_about_centroid

__all__ = ["CSLS", "NNN", "DisSimLocal", "LocalScaling", "MeanQuery"]


class _NearestQueries:
    """The parameters of corrections by the k logged queries nearest to an object."""

    _checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {
        "strength": check_strength,
        "n_neighbors": check_count,
    }

    def __init__(
        self,
        strength: float = 0.5,
        n_neighbors: int = 10,
        *,
        metric: str = "cosine",
        column: bool = False,
    ) -> None:
        self.strength = strength
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.column = column


# b = α · mean{s(q, z) : q among the k queries nearest to z}
class NNN(_NearestQueries, Correction):
    """Nearest neighbour normalisation: subtract the mean similarity to the nearest logged queries.

    Of Chowdhury et al., "Nearest Neighbor Normalization Improves Multimodal Retrieval" (EMNLP 2024).

    Parameters
    ----------
    strength : float, default=0.25
        α; 0 does nothing.
    n_neighbors : int, default=16
        Nearest queries, k.
    metric : "cosine", "l2" or "ip"
        How queries and objects are compared.
    column : bool, default=False
        Whether to write b into one more column, exactly, in which queries have a 0; for "l2" only.

    Attributes
    ----------
    bank_ : array of shape (m, d)
        The queries learned from, at most 20,000.
    where_ : directions that b is written onto (`hubless.corrections.directions`)
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import NNN
    >>> queries, objects = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> correction = NNN(0.5, n_neighbors=1).fit(queries, objects)
    >>> correction.bias(objects)[1].tolist()  # half of the similarity to the nearest query
    [0.5, 0.4]
    >>> correction.move(objects).shape
    (2, 2)
    """

    def __init__(
        self,
        strength: float = 0.25,
        n_neighbors: int = 16,
        *,
        metric: str = "cosine",
        column: bool = False,
    ) -> None:
        super().__init__(strength, n_neighbors, metric=metric, column=column)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        formula = partial(mean_of_largest, k=min(self.n_neighbors, int(self.bank_.shape[0])))
        return None, self.strength * over_objects(Z, self.bank_, self.metric, formula)


class CSLS(NNN):
    """Cross-domain similarity local scaling for a fixed query, of Conneau et al. (ICLR 2018).

    2 s(q, z) − r(z) − r(q) orders objects as s(q, z) − r(z) / 2 does: NNN with half strength and k = 10.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import CSLS
    >>> queries, objects = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> CSLS().fit(queries, objects).bias(objects)[1].tolist()  # half of the means of 1, .6 and of 0, .8
    [0.4, 0.2]
    """

    def __init__(
        self,
        strength: float = 0.5,
        n_neighbors: int = 10,
        *,
        metric: str = "cosine",
        column: bool = False,
    ) -> None:
        super().__init__(strength, n_neighbors, metric=metric, column=column)


# b = α · mean_q s(q, z)
class MeanQuery(Correction):
    """Centring by the mean query: subtract the mean similarity to all logged queries.

    (q − c)ᵀ(z − c) orders objects as qᵀz − cᵀz does; of Suzuki et al. (EMNLP 2013). Parameters as for NNN.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import MeanQuery
    >>> queries, objects = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> MeanQuery(1.0).fit(queries, objects).bias(objects)[1].tolist()  # (1 + .6) / 2 and (0 + .8) / 2
    [0.8, 0.4]
    """

    _checks: ClassVar = {"strength": check_strength}

    def __init__(self, strength: float = 0.5, *, metric: str = "cosine", column: bool = False) -> None:
        self.strength = strength
        self.metric = metric
        self.column = column

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        formula = partial(namespace(Z).mean, axis=1)
        return None, self.strength * over_objects(Z, self.bank_, self.metric, formula)


# −½ ‖q − z‖² / σ(z): g = mean σ / σ(z)
class LocalScaling(_NearestQueries, Correction):
    """Measure distances to an object in units of its distance to the queries near it.

    Of Zelnik-Manor & Perona (NIPS 2004), as Schnitzer et al. (JMLR 2012) use it against hubs; for a fixed
    query. σ is the mean distance to the k nearest queries; `strength` is its exponent. Under L2 queries of
    different lengths are taken to be equally far from their mean. Parameters as for NNN.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import LocalScaling
    >>> rng = np.random.default_rng(0)
    >>> queries, objects = rng.standard_normal((60, 8)) + 1, rng.standard_normal((90, 8))
    >>> correction = LocalScaling().fit(queries, objects)
    >>> gain, bias = correction.bias(objects)
    >>> bool(gain.min() > 0)  # similarities are divided by a local scale
    True
    """

    _learned: ClassVar = {"scale_": "number"}
    _by_distance = True

    def _learn(self, objects: Array) -> None:
        mean = float(namespace(objects).mean(self._distance(sample_rows(objects, SAMPLE))))
        self.scale_ = mean or 1.0  # 0 where queries and objects are all the same

    def _distance(self, Z: Array) -> Array:
        xp = namespace(Z)
        bank = xp.astype(self.bank_, Z.dtype, copy=False)
        distances, _ = search(Z, bank, min(self.n_neighbors, int(bank.shape[0])))
        return xp.mean(xp.astype(distances, xp.float64), axis=1)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        xp = namespace(Z)
        gain = (self.scale_ / xp.clip(self._distance(Z), min=0.1 * self.scale_)) ** self.strength
        # of unit vectors −½ ‖q − z‖² = qᵀz − 1
        return gain, gain if self.metric == "cosine" else xp.zeros_like(gain)


# ‖q − z‖² − ‖z − c(z)‖²: b = −½ ‖z − c(z)‖²
class DisSimLocal(_NearestQueries, Correction):
    """Subtract how far an object is from the middle of the queries near it: of Hara et al. (AAAI 2016).

    For a fixed query. Parameters as for NNN.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import DisSimLocal
    >>> queries, objects = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> correction = DisSimLocal(1.0, n_neighbors=2, metric="l2").fit(queries, objects)
    >>> correction.bias(objects)[1].tolist()  # −½ of the squared distance to the queries' middle, (1, 0)
    [-0.5, -2.0]
    """

    _by_distance = True

    def __init__(
        self,
        strength: float = 0.5,
        n_neighbors: int = 16,
        *,
        metric: str = "cosine",
        column: bool = False,
    ) -> None:
        super().__init__(strength, n_neighbors, metric=metric, column=column)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        k = min(self.n_neighbors, int(self.bank_.shape[0]))
        return None, -0.5 * self.strength * spread_about_centroid(Z, self.bank_, k)
