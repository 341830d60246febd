"""Learning more, forgetting and merging: what MoveLabeled does with the moments that it kept.

Sums of pairs are added and subtracted (`moments.PairSums`), and a mover is solved for again from the result:
no data is needed.
"""

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, convert, to_numpy
from ..arrays.inputs import check_points
from ..moments import Moments, PairSums
from ..solve import RidgeProblem
from .points import QuerySpace

F = TypeVar("F", bound=Callable[..., Any])
MOMENTS = {  # what a mover that keeps its moments learns besides (see `saving.state`); always in NumPy
    **{f"moments_.{name}": "d host" for name in ("origin", "z_sum")},
    "moments_.x_origin": "e host optional",
    "moments_.x_sum": "e host",
    "moments_.A": "ed host",
    "moments_.K": "dd host",
    "moments_.weight": "number",
    "mean_weight_": "number",
}
SHARED = ("n_targets", "center", "toward", "n_features_in_", "feature_names_in_")  # by movers that merge


class NoMoments(ValueError, AttributeError):
    """The mover kept no moments; an AttributeError too, so that `hasattr` is false for what needs them."""


def check_moments(mover: Any) -> None:
    """Refuse a mover that cannot learn more or forget."""
    check_is_fitted(mover, "space_")
    if not hasattr(mover, "moments_"):
        raise NoMoments(
            "this mover did not keep the moments of its pairs, so it cannot learn more or forget. Fit it "
            "with MoveLabeled(keep_moments=True)."
        )


class MethodWithMoments:
    """A method of a new mover, or of one that was fitted and kept its moments.

    scikit-learn's checks want a method that does not work to be missing. Its `available_if` does that too,
    but raises an AttributeError that only says "has no attribute": what to do is in the cause of that error.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, mover: Any, kind: Any = None) -> Any:
        if mover is None:
            return self.function
        if hasattr(mover, "space_"):
            check_moments(mover)
        return MethodType(self.function, mover)


def available_with_moments(method: F) -> F:
    """Let a method be there for a new mover, or for one that kept its moments; its types stay."""
    return cast(F, MethodWithMoments(method))


def check_batch(mover: Any, method: str, X: Any) -> Any:
    """Check objects against those learned from; before the first batch there is nothing to check against."""
    if not hasattr(mover, "space_"):
        return X
    if hasattr(mover, "query_mean_"):
        raise ValueError(
            f"this mover learned from pairs of two spaces, of {mover._width} and {mover.n_features_in_} "
            f"columns, and {method} takes labeled objects of one. Use {method}_pairs(queries, objects)."
        )
    return check_points(mover, X, method=method, like=mover.space_.mean)


def check_pair_batch(mover: Any, method: str, queries: Any, objects: Any) -> tuple[Any, Any]:
    """Check pairs against those learned from, as `check_batch` does."""
    if not hasattr(mover, "space_"):
        return queries, objects
    objects = check_points(mover, objects, method=method, like=mover.space_.mean)
    return mover._check_queries(queries, method), objects


def check_partner(mover: Any, other: Any) -> None:
    """Refuse to merge movers that differ in more than λ."""
    check_moments(mover)
    if not isinstance(other, type(mover)):
        raise ValueError(f"a {type(mover).__name__} can only be merged with another one; got {other!r}.")
    check_moments(other)
    for name in SHARED:
        first: Any = getattr(mover, name, None)
        second: Any = getattr(other, name, None)
        if not np.array_equal(first, second):
            raise ValueError(
                f"both movers must have the same {name}; got {first!r} and {second!r}. Fit one again."
            )
    if mover._width != other._width:
        raise ValueError(
            f"both movers must have queries of the same width; got {mover._width} and {other._width} columns."
        )


def keep_moments(mover: Any, moments: Moments, X: Array, weights: Array | None) -> None:
    """Keep moments on the host, where those of all libraries and devices can be merged and saved."""
    x_sum, z_sum, A, K = (to_numpy(sums) for sums in (moments.x_sum, moments.z_sum, moments.A, moments.K))
    x_origin = None if moments.x_origin is None else to_numpy(moments.x_origin)
    origin, weight = to_numpy(moments.origin), float(moments.weight)
    mover.moments_ = Moments(origin, weight, x_sum, z_sum, A, K, x_origin)
    mover.mean_weight_ = float(X.shape[0] if weights is None else to_numpy(weights).sum())


def sums_of(mover: Any) -> PairSums:
    """Return all that a mover learned from, as sums."""
    return PairSums(mover.moments_, mover.mean_weight_, to_numpy(mover.space_.mean), mover.n_singletons_)


def solve_from_sums(mover: Any, sums: PairSums, *others: Any, **parameters: Any) -> Any:
    """Return a copy of a mover, solved from sums that may include those of others.

    It is in the library of `mover`, and in the highest precision of all of them. `parameters` are those that
    differ.
    """
    solved = clone(mover).set_params(**parameters)
    dtype = np.result_type(*(to_numpy(each.W_).dtype for each in (mover, *others)))
    problem = RidgeProblem(sums.moments.origin, sums.moments, query_mean=sums.moments.x_origin)
    solved._solve(problem, dtype)
    for name in {"W_", "mean_", "query_mean_"} & vars(solved).keys():
        setattr(solved, name, convert(getattr(solved, name), mover.W_))
    solved.moments_, solved.mean_weight_ = sums.moments, sums.weight
    solved.space_ = QuerySpace(convert(sums.mean, mover.space_.mean))
    solved.n_singletons_ = sums.n_singletons
    for name in {"n_features_in_", "feature_names_in_", "classes_"} & vars(mover).keys():
        setattr(solved, name, getattr(mover, name))
    return solved


def learn_batch(mover: Any, batch: Any) -> Any:
    """Let a mover learn what another one learned from a batch."""
    if not hasattr(mover, "space_"):
        return _copy_learned(mover, batch)
    joined = solve_from_sums(mover, sums_of(mover) + sums_of(batch), batch)
    if hasattr(mover, "classes_") and hasattr(batch, "classes_"):
        joined.classes_ = _union(mover.classes_, batch.classes_)
    return _copy_learned(mover, joined)


def forget_batch(mover: Any, batch: Any) -> Any:
    """Let a mover forget what another one learned from a batch; ValueError where it never learned that."""
    return _copy_learned(mover, solve_from_sums(mover, sums_of(mover) - sums_of(batch)))


def _copy_learned(mover: Any, other: Any) -> Any:
    """Copy what another mover learned to this one, and return it."""
    mover.__dict__.update({name: value for name, value in vars(other).items() if name.endswith("_")})
    return mover


def _union(first: Array, second: Array) -> Array:
    """Return the classes of both, sorted; in the library of the first."""
    hosts = to_numpy(first), to_numpy(second)
    if len({host.dtype.kind in "biuf" for host in hosts}) == 2:
        got = " and ".join(repr(host[0].item() if hasattr(host[0], "item") else host[0]) for host in hosts)
        raise ValueError(f"labels of all batches must be texts, or numbers; got {got}. Convert one kind.")
    return convert(np.unique(np.concatenate(hosts)), first)
