"""Pairs of two spaces: queries that have another number of columns than the objects they should find.

Objects move into the space of the queries, so that queries stay as they are: W has as many rows as queries
have columns. `n_features_in_` and the names of columns are those of the objects.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..arrays.inputs import check_matrix, check_place, check_points
from ..solve import check_toward
from .mover import Mover

# a mixin of Mover, whose methods it extends
Base: Any = Mover if TYPE_CHECKING else object


class BetweenSpaces(Base):
    """What differs for a mover whose `W_` has shape (e, d), where queries have e columns and objects d."""

    @property
    def _width(self) -> int:
        return int(self.W_.shape[0])

    def _check_queries(self, X: Any, method: str) -> Array:
        if not hasattr(self, "query_mean_"):
            return super()._check_queries(X, method)
        X = check_matrix(X, "queries")
        check_place(self, X, method, self.space_.mean)
        if X.shape[1] != self._width:
            raise ValueError(
                f"queries have {X.shape[1]} columns, but {type(self).__name__} learned from queries of "
                f"{self._width} and objects of {self.n_features_in_}."
            )
        return X

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of columns of moved objects: those of X, or movelabeled0, … in another space."""
        if not hasattr(self, "query_mean_"):
            return super().get_feature_names_out(input_features)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{i}" for i in range(self._width)], dtype=object)


def check_pairs_of(mover: Any, queries: Any, objects: Any) -> tuple[Array, Array]:
    """Return queries and objects that pair up, as finite float matrices; objects set the width of a mover."""
    objects = check_points(mover, objects)
    if has_columns(queries, objects.shape[1]):
        queries = check_points(mover, queries, method="fit_pairs", like=objects)
    else:
        queries = check_matrix(queries, "queries")
        check_place(mover, queries, "fit_pairs", objects)
    if queries.shape[0] != objects.shape[0]:
        raise ValueError(
            "queries and objects must pair up row by row; "
            f"got {queries.shape[0]} queries and {objects.shape[0]} objects."
        )
    check_toward(mover.toward, queries.shape[1], objects.shape[1])
    return queries, objects


def has_columns(X: Any, n: int) -> bool:
    """Return whether X is a matrix of n columns; True for what is not a matrix, which is refused later."""
    shape = np.shape(X)
    return len(shape) != 2 or shape[1] == n


def check_loaded(mover: Any) -> None:
    """Refuse a map read from a file that does not fit its spaces."""
    e, d = mover.W_.shape
    if not hasattr(mover, "query_mean_"):
        if e != d:
            raise ValueError(f"W_ has the shape {(e, d)}, and query_mean_ is missing.")
    elif e == d or not hasattr(mover, "space_"):
        raise ValueError(
            "query_mean_ belongs to queries of another width than the objects, outside of chains."
        )
    check_toward(mover.toward, e, d)
    if not mover.keep_moments:
        return
    if mover.moments_.A.shape != (e, d) or (mover.moments_.x_origin is None) != (e == d):
        raise ValueError(f"the moments are not those of W_, whose shape is {(e, d)}.")
