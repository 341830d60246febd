"""A linear mover that learns again from the moments of its pairs: with another λ, or with another party."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, convert, to_numpy
from ..inputs import check_alpha, check_squares
from ..moments import Moments
from .linear import RidgeProblem, learned
from .mover import Exit, Mover


class NoMoments(ValueError, AttributeError):
    """There is nothing to learn from again, so methods that would are not there: `hasattr` tells."""


class LearnsAgain(Mover):
    """What MoveLabeled does with the moments that it kept."""

    alpha: Any
    toward: str

    def with_alpha(self, alpha: Any) -> "LearnsAgain":
        """A mover fitted to the same pairs with another λ, from the moments alone: no data is needed.

        Parameters
        ----------
        alpha : float or "scale"
        """
        self._check_moments()
        check_alpha(alpha)
        return self._solved(clone(self).set_params(alpha=alpha), self.moments_, self.mean_weight_, self.exit_)

    # μ = (n₁ μ₁ + n₂ μ₂) / (n₁ + n₂); about it, moments add up
    def merge(self, other: "LearnsAgain") -> "LearnsAgain":
        """A mover learned from the pairs of two parties, from their moments alone: no data is exchanged.

        It is what one fit to the pairs of both would give, about the mean of the objects of both: after
        `fit_pairs`, what `fit_pairs` of the pairs of both in one array gives; after `fit`, targets are those
        that each party found among its own objects, and an object of the other party is never a target.

        Parameters
        ----------
        other : MoveLabeled, fitted with `keep_moments` and the same `n_targets`, `center` and `toward`
            More than two merge one after another, in any order. λ is that of `alpha` of this one.

        Notes
        -----
        `classes_`, which moving asks nothing of, is left out.
        """
        self._check_moments()
        self._check_partner(other)
        found = self._together(other)
        found.__dict__.pop("classes_", None)
        return found

    def _together(self, other: "LearnsAgain") -> "LearnsAgain":
        """A mover learned from the pairs of both."""
        weight, centre, exit = self._common(other)
        moments = self.moments_.about(centre) + other.moments_
        check_squares(float(np.trace(moments.K)))
        found = self._solved(clone(self), moments, weight, exit, other)
        found.n_singletons_ = self.n_singletons_ + other.n_singletons_
        return found

    def _common(self, other: "LearnsAgain", sign: int = 1) -> tuple[float, np.ndarray, Exit]:
        """Weight, centre and exit of both; with sign = -1, of this one without the other."""
        own, others = self.mean_weight_, sign * other.mean_weight_
        total = own + others

        def mean(first: Array, second: Array) -> np.ndarray:
            return np.asarray((own * to_numpy(first) + others * to_numpy(second)) / total)

        exit = Exit(convert(mean(self.exit_.mean, other.exit_.mean), self.exit_.mean), 1.0, None)
        return total, mean(self.moments_.origin, other.moments_.origin), exit

    def _solved(
        self, found: "LearnsAgain", moments: Moments, weight: float, exit: Exit, *others: "LearnsAgain"
    ) -> "LearnsAgain":
        """A new mover fitted by moments, in the library of this one and in the finest precision of all."""
        dtype = np.result_type(*(to_numpy(mover.W_).dtype for mover in (self, *others)))
        like = np.empty(0, dtype=dtype)
        found._keep(RidgeProblem(moments, None, None), moments.origin, like)
        found.W_, found.mean_ = convert(found.W_, self.W_), convert(found.mean_, self.mean_)
        found.moments_, found.mean_weight_, found.exit_ = moments, weight, exit
        for name in {"n_features_in_", "feature_names_in_", "n_singletons_", "classes_"} & vars(self).keys():
            setattr(found, name, getattr(self, name))
        return found

    def _check_moments(self) -> None:
        check_is_fitted(self, "exit_")
        if not hasattr(self, "moments_"):
            raise NoMoments(
                "this mover did not keep the moments of its pairs, so there is nothing to learn from again. "
                "Fit it with MoveLabeled(keep_moments=True)."
            )

    def _check_partner(self, other: Any) -> None:
        if not isinstance(other, type(self)):
            raise ValueError(f"what can be merged with it is another {type(self).__name__}; got {other!r}.")
        other._check_moments()
        for name in ("n_targets", "center", "toward", "n_features_in_", "feature_names_in_"):
            own: Any = getattr(self, name, None)
            others: Any = getattr(other, name, None)
            if not np.array_equal(own, others):
                raise ValueError(
                    f"both parties must have the same {name}; got {own!r} and {others!r}. Fit one again."
                )

    def _keep_moments(self, found: Moments, X: Array, weights: Array | None) -> None:
        """Keep moments on the host, where those of all libraries and devices can be merged and saved."""
        arrays = (to_numpy(array) for array in (found.x_sum, found.z_sum, found.A, found.K))
        self.moments_ = Moments(to_numpy(found.origin), float(found.weight), *arrays)
        self.mean_weight_ = float(X.shape[0] if weights is None else to_numpy(weights).sum())

    def _keep(self, problem: RidgeProblem, mean: Array, like: Array) -> None:
        self.W_, self.mean_, self.alpha_ = learned(problem, mean, check_alpha(self.alpha), like, self.toward)
        for name in ("moments_", "mean_weight_", "n_pairs_", "skipped_"):  # those of an earlier fit go
            self.__dict__.pop(name, None)
