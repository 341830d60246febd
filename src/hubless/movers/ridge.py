"""The paper's method: labeled objects move toward the objects they should be neighbours of; queries stay.

    targets   each object's nearest objects of its class                                  `targets`
    moments   A = Σ x zᵀ and K = Σ z zᵀ over the pairs (object x, target z), about μ       `moments`
    solve     W = A (K + λI)⁻¹, which minimises Σ ‖x − Wz‖² + λ‖W‖²  (Eq. 5 and 6)         `solve`
    move      z' = μ + W (z − μ), with which queries are compared by ‖x − z'‖  (Eq. 4)     `move`, below

Moments add up, so a mover that keeps them learns from more pairs, forgets some, or takes another λ without
the old data (`updates`).
"""

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .. import solve
from ..arrays import Array, convert, namespace, row_blocks, to_numpy
from ..arrays.devices import host_like, to_device
from ..arrays.inputs import check_choice, check_count, check_weights
from ..arrays.library import Streamed
from ..arrays.products import affine, affine_rows, rows_at_once
from ..arrays.types import ArrayLike, ArrayOrNone, Weights
from ..moments import Moments, moments_of_pairs, moments_of_targets
from ..targets import first_targets
from . import spaces, updates
from .mover import Mover
from .points import Points, QuerySpace, centre
from .totals import Needs, Totals

__all__ = ["MoveLabeled"]


# z' = μ + W (z − μ), so that queries are compared by f(x, z) = ‖x − z'‖  (Eq. 4). Centring belongs to the
# map, so that raw queries stay valid.
def move(Z: Array, W: Array, mean: Array, query_mean: Array | None = None) -> Array:
    """Move the rows of Z; the result has their precision, and is on the host where they came from there.

    Where W has shape (e, d), moved rows are about `query_mean`, (e,), instead of `mean`.
    """
    xp, goal = namespace(Z, W, mean), mean if query_mean is None else query_mean
    W, mean, goal = (xp.astype(array, Z.dtype, copy=False) for array in (W, mean, goal))
    if isinstance(Z, Streamed):
        host = np.empty((Z.shape[0], W.shape[0]), dtype=Z.host.dtype)
        for part, z in row_blocks(Z, rows_at_once(Z)):
            host[part] = to_numpy(affine(z - mean, W, goal))
        return host
    return affine_rows(Z, W, goal, mean)


class MoveLabeled(spaces.BetweenSpaces, Mover):
    """Move labeled objects toward the objects they should be neighbours of; queries stay (equation 4-7).

    z' = μ + W (z − μ), where W = XJXᵀ (XKXᵀ + λI)⁻¹ solves the ridge regression from each object's nearest
    same-class objects to itself, and μ is the mean of the labeled objects. Good against hubs, and for pairs
    of queries and documents.

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0. "scale" takes the mean eigenvalue of XKXᵀ, which follows the number and the
        scale of the data; ``hubless.solve.Penalty(0.3, relative=True)`` takes 0.3 times that.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class.
    center : bool, default=True
        Move about the mean of the labeled objects, as the paper does, or about the origin.
    toward : "zero" or "identity", default="zero"
        What λ pulls W to: λ‖W‖², the paper's, or λ‖W − I‖², with which objects unlike any learned from stay
        where they are: the choice for pairs of queries and documents.
    device : str, default=None
        "cuda", for example, computes arrays of the host there (with torch), in blocks if they do not fit;
        results are on the host. None computes where the data is.
    keep_moments : bool, default=False
        Keep the moments of the pairs, 2 d² numbers: all that `with_alpha`, `merge`, `partial_fit` and
        `forget` need instead of the data.

    Attributes
    ----------
    W_ : array of shape (d, d), or (e, d) for queries of another width
        A row z moves to mean_ + (z - mean_) @ W_.T, or to query_mean_ + (z - mean_) @ W_.T.
    mean_ : array of shape (d,)
    query_mean_ : array of shape (e,); only after `fit_pairs` with queries of another width
    alpha_ : float
        The λ used.
    moments_ : hubless.moments.Moments; only with `keep_moments`, or after `partial_fit`
        Sums over the pairs about the centre, in NumPy and float64.
    mean_weight_ : float; where there are `moments_`
        How many objects the centre is the mean of, or the sum of their weights.
    n_singletons_ : int
        Objects without a target: alone in their class, or without one in `targets`. They are moved like the
        others.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless import MoveLabeled
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(MoveLabeled(), KNeighborsClassifier())
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _checks: ClassVar = {
        "alpha": solve.check_alpha,
        "n_targets": check_count,
        "center": partial(check_choice, allowed=(True, False)),
        "toward": partial(check_choice, allowed=("zero", "identity")),
    }
    _uses_labels = False
    _learned_types: ClassVar = {**Mover._learned_types, "moments_": Moments}
    _tried: ClassVar = (
        {"alpha": solve.Penalty(0.3, relative=True)},
        {"alpha": solve.Penalty(0.5, relative=True), "n_targets": 10},
    )
    _tried_in_parts: ClassVar = tuple(
        {"alpha": alpha, "n_targets": n} for alpha in solve.relative_penalties(0.3, 1.0, 3.0) for n in (1, 10)
    )

    def __init__(
        self,
        alpha: solve.Alpha = "scale",
        n_targets: int = 1,
        *,
        center: bool = True,
        toward: str = "zero",
        device: str | None = None,
        keep_moments: bool = False,
    ) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.center = center
        self.toward = toward
        self.device = device
        self.keep_moments = keep_moments

    # --- the paper: targets → moments → solve → move --------------------------------------------------------

    # A = Σ x zᵀ and K = Σ z zᵀ over the pairs of objects x and their targets z, about μ  (Eq. 6)
    def _estimate(self, points: Points) -> None:
        mean = centre(points.X, points.weights, self.center)
        pairs = (points.X, first_targets(points.targets, self.n_targets), points.weights, mean)
        problem = solve.problem_of_targets(*pairs, Z=points.Z)._replace(columns=points.n_columns)
        self._solve(problem, points.X.dtype)
        if self.keep_moments:
            moments = problem.moments or moments_of_targets(*pairs, Z=points.Z)
            updates.keep_moments(self, moments, points.X, points.weights)

    # W = A (K + λI)⁻¹, which minimises Σ ‖x − Wz‖² + λ‖W‖²  (Eq. 5 and 6)
    def _solve(self, problem: solve.RidgeProblem, dtype: Any) -> None:
        penalty = solve.check_alpha("alpha", self.alpha)
        self.W_, self.mean_, self.alpha_ = problem.best_map(penalty, dtype, self.toward)
        self._forget_parts()
        for name in ("moments_", "mean_weight_", "query_mean_"):  # those of an earlier fit
            self.__dict__.pop(name, None)
        if problem.query_mean is not None:
            self.query_mean_ = namespace(problem.mean).astype(problem.query_mean, dtype)

    # z' = μ + W (z − μ)  (Eq. 4)
    def _apply(self, points: Points) -> Points:
        centres = (self.mean_, getattr(self, "query_mean_", self.mean_))
        W, mean, goal = (convert(array, points.Z) for array in (self.W_, *centres))
        return points._replace(Z=move(points.Z, W, mean, goal))

    def _needs(self) -> Needs:
        return Needs(self.n_targets, bool(self.center))

    def _learn_totals(self, totals: Totals) -> None:
        moments = totals.moments
        assert moments is not None
        self._solve(solve.problem_of_moments(moments, totals.n_pairs), totals.dtype)
        if self.keep_moments:
            self.moments_, self.mean_weight_ = moments, float(totals.n)

    # --- pairs that the user has ----------------------------------------------------------------------------

    def fit_pairs(self, queries: ArrayLike, objects: ArrayLike, sample_weight: Weights = None) -> Self:
        """Learn the map from given pairs: objects[i] should move toward queries[i].

        Parameters
        ----------
        queries, objects : arrays of shape (pairs, e) and (pairs, d)
            Where e is not d, as for captions and images, `move` takes (n, d) and gives (n, e).
        sample_weight : array of shape (pairs,), optional

        Notes
        -----
        The centre is the mean of `objects` over the pairs; where e is not d, z' = μ_x + W (z − μ_z) with a
        mean of each side. `n_targets` is ignored.
        """
        self._check_parameters()
        Q, Z = (to_device(side, self.device) for side in spaces.check_pairs_of(self, queries, objects))
        weights = check_weights(sample_weight, Z)
        mean = centre(Z, weights, self.center)
        query_mean = centre(Q, weights, self.center) if Q.shape[1] != Z.shape[1] else None
        problem = solve.problem_of_pairs(Q, Z, weights, mean, query_mean)
        self._solve(problem, Z.dtype)
        self.space_, self.n_singletons_ = QuerySpace(mean), 0
        if self.keep_moments:
            moments = problem.moments or moments_of_pairs(Q, Z, weights, mean, query_mean)
            updates.keep_moments(self, moments, Z, weights)
        return host_like(self, self.device)

    # --- learning more, from moments instead of data --------------------------------------------------------

    @property
    def _learned(self) -> dict[str, str]:  # type: ignore[override]
        learned = {"W_": "ed", "mean_": "d", "query_mean_": "e optional", "alpha_": "number"}
        return learned | (updates.MOMENTS if self.keep_moments else {})

    def _check_savable(self) -> None:
        if bool(self.keep_moments) != hasattr(self, "moments_"):
            raise ValueError(f"{self!r} was fitted with another keep_moments. Fit it again, then save.")

    def _check_loaded(self) -> None:
        super()._check_loaded()
        spaces.check_loaded(self)
        if self.keep_moments and not (self.moments_.weight > 0 and self.mean_weight_ > 0):
            raise ValueError("the weights of the moments must be above 0.")

    def with_alpha(self, alpha: solve.Alpha) -> "MoveLabeled":
        """Return a mover fitted to the same pairs with another λ or "scale", from the moments alone."""
        updates.check_moments(self)
        solve.check_alpha("alpha", alpha)
        return updates.solve_from_sums(self, updates.sums_of(self), alpha=alpha)

    def merge(self, other: "MoveLabeled") -> "MoveLabeled":
        """Return a mover learned from the pairs of two parties, from their moments: no data is exchanged.

        It is what one fit to the pairs of both would give, about the mean of the objects of both. After
        `fit`, each party has found targets among its objects alone: an object of the other is never one.
        `classes_`, which this mover does not use, is left out.

        Parameters
        ----------
        other : MoveLabeled, fitted with `keep_moments` and the same `n_targets`, `center` and `toward`
            More than two merge one after another, in any order. λ is that of `alpha` of this one.
        """
        updates.check_partner(self, other)
        sums = updates.sums_of(self) + updates.sums_of(other)
        merged: MoveLabeled = updates.solve_from_sums(self, sums, other)
        merged.__dict__.pop("classes_", None)
        return merged

    @updates.available_with_moments
    def partial_fit(self, X: ArrayLike, y: ArrayOrNone = None, sample_weight: Weights = None) -> Self:
        """Learn from a batch of labeled objects in addition to those before, without the old data.

        The first call fits. After any number of batches, in any order, W and μ are what `merge` of movers
        gives that were fitted to one batch each. Where it raises, nothing has changed.

        Parameters
        ----------
        X : array of shape (n, d), in the library of the batches before
        y : array of shape (n,), the class of each object
        sample_weight : array of shape (n,), optional

        Notes
        -----
        Targets are found inside a batch: an object of an earlier batch is never one. Small batches have
        farther targets than one `fit` to all, so the map differs; with a few objects per class it can be
        worse than no map. Batches of whole classes lose nothing. A batch in which every object is alone in
        its class has no pair, and is refused.

        Moments are kept whatever `keep_moments` is; set it to save the mover. λ is that of `alpha` now.
        `classes_` are those of all batches; they are left out where those of earlier ones are not known, as
        after `merge`. `n_singletons_` adds up.
        """
        X = updates.check_batch(self, "partial_fit", X)
        return updates.learn_batch(self, self._new().fit(X, y, sample_weight))

    @updates.available_with_moments
    def partial_fit_pairs(
        self, queries: ArrayLike, objects: ArrayLike, sample_weight: Weights = None
    ) -> Self:
        """Learn from a batch of pairs, as in `fit_pairs`, in addition to those before, without the old data.

        The first call fits. After any number of batches, in any order, W and μ are, up to rounding, what
        `fit_pairs` of all pairs in one array gives. Where it raises, nothing has changed. Rounding, about
        1e-15 of ‖K‖, counts beside λ: a tiny λ with fewer pairs than dimensions loses digits.
        """
        queries, objects = updates.check_pair_batch(self, "partial_fit_pairs", queries, objects)
        return updates.learn_batch(self, self._new().fit_pairs(queries, objects, sample_weight))

    def forget(self, X: ArrayLike, y: ArrayLike, sample_weight: Weights = None) -> Self:
        """Forget a batch that was learned as a batch, by `fit` or `partial_fit`, without the other data.

        W and μ are then, up to rounding, those of a mover that never saw it. `classes_` stay, as other
        batches may have objects of the same classes. Where what is left would be impossible (no weight, or a
        K with negative eigenvalues) it raises ValueError and changes nothing: the batch was not learned like
        this. If it does not raise, that does not prove that the batch was learned.

        Parameters
        ----------
        X, y, sample_weight : as they were learned

        Notes
        -----
        The pairs inside the batch are subtracted. For a part of a batch these are not the pairs that were
        learned: in measurements, W was then farther from a fit without that part than before. The same is
        true where `fit` was given `targets`, or where `n_targets` has changed. Rounding is that of the sums
        before: forgetting all but a millionth loses six digits.
        """
        updates.check_moments(self)
        X = updates.check_batch(self, "forget", X)
        return updates.forget_batch(self, self._new().fit(X, y, sample_weight))

    def forget_pairs(self, queries: ArrayLike, objects: ArrayLike, sample_weight: Weights = None) -> Self:
        """Forget pairs of any batch, exactly up to rounding, also a part of one; raises as `forget` does."""
        updates.check_moments(self)
        queries, objects = updates.check_pair_batch(self, "forget_pairs", queries, objects)
        return updates.forget_batch(self, self._new().fit_pairs(queries, objects, sample_weight))

    def _new(self) -> "MoveLabeled":
        """Return a mover to fit to one batch alone, so that a bad batch cannot damage this one."""
        return clone(self).set_params(keep_moments=True)
