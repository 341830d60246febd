"""A linear mover that goes on learning: batches are added and taken away, without the data of the others."""

from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import clone

from ..arrays import Array, convert, to_numpy
from ..inputs import check_points, check_squares
from ..moments import Moments
from .again import LearnsAgain

NEVER = 1e-9  # of ‖K‖: eigenvalues of K below the negative of that are no rounding
SOME = 1e-12  # of the weight before: what is left below that is rounding


class _GoesOn:
    """A method that a mover has, unless it was fitted and kept no moments to go on from.

    scikit-learn's checks want it so: what is there after a `fit` works, and what does not work is not there.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, mover: Any, kind: Any = None) -> Any:
        if mover is None:
            return self.function
        if hasattr(mover, "exit_"):
            mover._check_moments()
        return MethodType(self.function, mover)


class LearnsOn(LearnsAgain):
    """What MoveLabeled does with batches that come and go. Where a method raises, nothing has changed."""

    # A = Σ_b A_b and K = Σ_b K_b over batches b, all about μ = Σ_b n_b μ_b / Σ_b n_b;  W = A (K + λI)⁻¹
    @_GoesOn
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from a batch of labeled objects beside what was learned before, without the old data.

        The first call fits. After any number of batches, in any order, W and μ are what `merge` of movers
        gives that were fitted to one batch each.

        Parameters
        ----------
        X : array of shape (n, d), in the library of the batches before
        y : array of shape (n,), the class of each object
        sample_weight : array of shape (n,), optional

        Notes
        -----
        Targets are found inside a batch: an object of an earlier batch is never one. Small batches have
        farther targets than one `fit` to all, so the map is another one, with a few objects per class a worse
        one than none; batches of whole classes lose nothing. A batch in which every object is alone in its
        class has no pair, and is refused.

        Moments are kept whatever `keep_moments` says; to save the mover, set it. λ is that of `alpha` now.
        `classes_` are those of all batches; they are left out where those of earlier ones are not known, as
        after `merge`. `n_singletons_` adds up.
        """
        (X,) = self._checked("partial_fit", X)
        return self._learn_on(self._party().fit(X, y, sample_weight))

    @_GoesOn
    def partial_fit_pairs(self, queries: Any, objects: Any, sample_weight: Any = None) -> Any:
        """Learn from a batch of pairs beside what was learned before, without the old data.

        The first call fits. After any number of batches, in any order, W and μ are, up to rounding, what
        `fit_pairs` of all pairs in one array gives.

        Parameters
        ----------
        queries, objects : arrays of shape (pairs, d): objects[i] should move toward queries[i]
        sample_weight : array of shape (pairs,), optional

        Notes
        -----
        Rounding, about 1e-15 of ‖K‖, counts beside λ: a tiny λ with fewer pairs than dimensions loses digits.
        """
        objects, queries = self._checked("partial_fit_pairs", objects, queries)
        return self._learn_on(self._party().fit_pairs(queries, objects, sample_weight))

    # A − A_b, K − K_b about μ = (n μ − n_b μ_b) / (n − n_b)
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Take a batch away that was learned as a batch, by `fit` or `partial_fit`, without the other data.

        W and μ are then, up to rounding, those of a mover that never saw it.

        Parameters
        ----------
        X, y, sample_weight : as they were learned

        Raises
        ------
        ValueError
            Where less than nothing would be left: no weight, or a K with negative eigenvalues. This is a sign
            that something was never learned; that nothing is raised is no proof that it was.

        Notes
        -----
        What is taken away are the pairs that the batch has inside: for some objects of a batch these are not
        the pairs that were learned, and W was measured to be farther from a fit without them than before.
        So it is for `targets` given to `fit`, or with another `n_targets` than they were learned with.
        Rounding is that of the sums before: who forgets all but a millionth loses six digits.

        `classes_` stay, as other batches may have objects of the same classes.
        """
        self._check_moments()
        (X,) = self._checked("forget", X)
        return self._unlearn(self._party().fit(X, y, sample_weight))

    def forget_pairs(self, queries: Any, objects: Any, sample_weight: Any = None) -> Any:
        """Take pairs away that were learned, in any batch; exact up to rounding, also for some of a batch.

        Parameters
        ----------
        queries, objects, sample_weight : as they were learned

        Raises
        ------
        ValueError
            As `forget` does.
        """
        self._check_moments()
        objects, queries = self._checked("forget_pairs", objects, queries)
        return self._unlearn(self._party().fit_pairs(queries, objects, sample_weight))

    def _checked(self, method: str, *points: Any) -> list[Any]:
        """Points like those learned from; as they are, where nothing was learned yet."""
        if not hasattr(self, "exit_"):
            return list(points)
        return [check_points(self, some, method=method, like=self.exit_.mean) for some in points]

    def _party(self) -> Any:
        """A mover that learns from a batch alone, so that what a bad batch breaks is not this one."""
        return clone(self).set_params(keep_moments=True)

    def _learn_on(self, party: Any) -> Any:
        if not hasattr(self, "exit_"):
            return self._become(party)
        found = self._together(party)
        if hasattr(self, "classes_") and hasattr(party, "classes_"):
            found.classes_ = _united(self.classes_, party.classes_)
        return self._become(found)

    def _unlearn(self, party: Any) -> Any:
        weights = [(self.mean_weight_, party.mean_weight_), (self.moments_.weight, party.moments_.weight)]
        for own, gone in weights:
            if own - gone <= SOME * own:
                raise ValueError(
                    f"all that was learned has the weight {own:g}, what is to be forgotten has {gone:g}: "
                    "nothing would be left to learn from. Make a new mover instead."
                )
        singletons = self.n_singletons_ - party.n_singletons_
        if singletons < 0:
            told = f"{party.n_singletons_} of its objects are alone in their class"
            raise _never_learned(f"{told}, of all that was learned {self.n_singletons_}")
        weight, centre, exit = self._common(party, -1)
        moments = _without(self.moments_.about(centre), party.moments_)
        found = self._solved(clone(self), moments, weight, exit)
        found.n_singletons_ = singletons
        return self._become(found)

    def _become(self, found: Any) -> Any:
        """Take over what another one learned."""
        self.__dict__.update({name: value for name, value in vars(found).items() if name.endswith("_")})
        return self


# z lies in the range of K = Σ w z zᵀ for every pair, so A V₀ = Σ w x (zᵀ V₀) = 0 where K V₀ = 0
def _without(before: Moments, gone: Moments) -> Moments:
    """Moments without those of a batch; directions in which nothing but rounding is left become 0."""
    left = before - gone
    size = float(np.linalg.norm(before.K))
    check_squares(size)
    values, V = np.linalg.eigh((left.K + left.K.T) / 2)
    if values[0] < -NEVER * size:
        raise _never_learned(f"the sum K of their squares would get the eigenvalue {values[0]:.3g}")
    V = V[:, values > 10 * len(values) * np.finfo(np.float64).eps * size]
    P = V @ V.T
    return Moments(left.origin, left.weight, left.x_sum, left.z_sum, left.A @ P, P @ left.K @ P)


def _never_learned(why: str) -> ValueError:
    return ValueError(
        f"what is to be forgotten was never learned like this: {why}. Give a batch as it was learned, with "
        "the same labels, weights and n_targets. Nothing was changed."
    )


def _united(first: Array, second: Array) -> Array:
    """Classes of both, in their order; in the library of the first."""
    hosts = to_numpy(first), to_numpy(second)
    if len({host.dtype.kind in "biuf" for host in hosts}) == 2:
        told = " and ".join(repr(host[0].item() if hasattr(host[0], "item") else host[0]) for host in hosts)
        raise ValueError(f"labels must be texts or numbers in all batches; got {told}. Convert those of one.")
    return convert(np.unique(np.concatenate(hosts)), first)
