"""Movers that are not linear: a kernel map in closed form, and any multi-output regressor of scikit-learn."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils.validation import has_fit_parameter

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.inputs import check_count, check_positive, check_squares
from ..arrays.library import blocks
from ..solve import check_pairs, mean_eigenvalue, ridge
from ..targets import first_targets, pairs
from .mover import Mover
from .points import Points, squared_norms, weighted_mean

__all__ = ["KernelMove", "Regress"]

ROWS = 2048  # objects or pairs worked on at once


# φ(z) = Q exp(−γ ‖z − c_j‖²)_j over landmarks c_j, with QᵀQ = G⁻¹ of their kernel matrix G
# min_B Σ ‖(x − z) − Bφ(z)‖² + λ‖B‖² over the pairs of Eq. 5: B = A (K + λI)⁻¹, A = Σ (x − z) φᵀ, K = Σ φφᵀ
class KernelMove(Mover):
    """Move labeled objects by kernel ridge regression: z' = z + Bφ(z), φ by Nyström's method.

    Good for experiments: the paper names nonlinear maps as future work. Far from all landmarks φ vanishes and
    objects stay.

    Parameters
    ----------
    alpha : float, default=0.1
        The ridge penalty λ, in units of the mean eigenvalue of K.
    n_targets : int, default=5
        Targets per object: its nearest objects of the same class.
    gamma : float, default=1.0
        γ, in units of 1 / (mean squared distance between two objects).
    n_landmarks : int, default=300
        Objects, drawn at random, that φ compares with.

    Attributes
    ----------
    landmarks_ : array of shape (l, d), where l is n_landmarks, or n if that is less
    B_ : array of shape (d, l)
        With Q in it: an object moves by B_ @ k(landmarks_, z).
    width_ : float
        γ, in the unit of the data.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hubless import MoveLabeledClassifier
    >>> from hubless.movers import KernelMove
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MoveLabeledClassifier(mover=KernelMove()).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _checks: ClassVar = {
        "alpha": check_positive,
        "n_targets": check_count,
        "gamma": check_positive,
        "n_landmarks": check_count,
    }
    _uses_labels = False
    _learned: ClassVar = {"landmarks_": "nd", "B_": "dn", "width_": "number"}

    def __init__(
        self, alpha: float = 0.1, n_targets: int = 5, *, gamma: float = 1.0, n_landmarks: int = 300
    ) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.gamma = gamma
        self.n_landmarks = n_landmarks

    def _estimate(self, points: Points) -> None:
        xp, X, Z = namespace(points.X), points.X, points.Z
        spread = squared_norms(Z - xp.astype(weighted_mean(Z, points.weights), Z.dtype))
        check_squares(float(xp.sum(spread)))
        self.width_ = float(self.gamma) / max(2 * float(xp.mean(spread)), 1e-300)
        drawn = np.sort(np.random.default_rng(0).permutation(Z.shape[0])[: self.n_landmarks])
        self.landmarks_ = xp.take(Z, convert(drawn, Z), axis=0)
        values, V = xp.linalg.eigh(self._kernel(self.landmarks_))
        floor = 1e-9 * float(xp.max(values))  # directions that the landmarks do not show
        Q = xp.where(values > floor, 1 / xp.sqrt(xp.where(values > floor, values, 1.0)), 0.0)[:, None] * V.T
        source, target = pairs(first_targets(points.targets, self.n_targets))
        check_pairs(source.shape[0])
        A, K = 0.0, 0.0
        for part in blocks(source.shape[0], ROWS):
            z = xp.take(Z, target[part], axis=0)
            features = self._kernel(z) @ Q.T  # (pairs, landmarks)
            difference = xp.astype(xp.take(X, source[part], axis=0) - z, xp.float64)
            if points.weights is not None:
                root = xp.sqrt(xp.take(points.weights, source[part]))[:, None]
                features, difference = features * root, difference * root
            A, K = A + difference.T @ features, K + features.T @ features
        self.B_ = ridge(A, K, float(self.alpha) * mean_eigenvalue(K)) @ Q

    def _kernel(self, Z: Array) -> Array:
        """Return exp(−γ ‖z − c‖²) of rows and landmarks in float64; shape (n, landmarks)."""
        xp = namespace(Z, self.landmarks_)
        mean = xp.mean(xp.astype(self.landmarks_, xp.float64), axis=0)  # squares about it lose fewer digits
        z, c = (xp.astype(array, xp.float64) - mean for array in (Z, self.landmarks_))
        squared = squared_norms(z)[:, None] + squared_norms(c)[None, :] - 2 * z @ c.T
        return xp.exp(-self.width_ * xp.clip(squared, min=0.0))

    def _apply(self, points: Points) -> Points:
        xp, Z = namespace(points.Z), points.Z
        moved = [
            Z[rows, :] + xp.astype(self._kernel(Z[rows, :]) @ self.B_.T, Z.dtype)
            for rows in blocks(Z.shape[0], ROWS)
        ]
        return points._replace(Z=xp.concat(moved))


class Regress(Mover):
    """Move labeled objects by a regressor of your choice, fitted from each target to its object.

    Good for trying ideas.

    Parameters
    ----------
    regressor : estimator with fit and predict for several outputs, default=None
        None takes scikit-learn's Ridge. It is cloned and fitted on NumPy arrays: (targets, objects).
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class.

    Attributes
    ----------
    regressor_ : the fitted regressor
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LinearRegression
    >>> from hubless import MoveLabeledClassifier
    >>> from hubless.movers import Regress
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MoveLabeledClassifier(mover=Regress(LinearRegression())).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _uses_labels = False
    _ignores_axes = False  # some regressors look at one column at a time
    _why_unsaved = (
        "Regress cannot be saved: regressors can only be stored by pickle. Use KernelMove or "
        "MoveLabeled, which are such regressions, or keep the objects and fit again."
    )

    def __init__(self, regressor: Any = None, n_targets: int = 1) -> None:
        self.regressor = regressor
        self.n_targets = n_targets

    def _check_parameters(self) -> None:
        check_count("n_targets", self.n_targets)
        if self.regressor is not None and not hasattr(self.regressor, "predict"):
            raise ValueError(
                "regressor must have fit and predict, as regressors of scikit-learn have; "
                f"got {self.regressor!r}."
            )

    def _estimate(self, points: Points) -> None:
        source, target = (to_numpy(a) for a in pairs(first_targets(points.targets, self.n_targets)))
        check_pairs(len(source))
        self.regressor_ = Ridge() if self.regressor is None else clone(self.regressor)
        extra = {}
        if points.weights is not None and has_fit_parameter(self.regressor_, "sample_weight"):
            extra["sample_weight"] = to_numpy(points.weights)[source]
        self.regressor_.fit(to_numpy(points.Z)[target], to_numpy(points.X)[source], **extra)

    def _apply(self, points: Points) -> Points:
        xp, Z = namespace(points.Z), points.Z
        moved = np.reshape(self.regressor_.predict(to_numpy(Z)), Z.shape)
        return points._replace(Z=xp.astype(convert(moved, Z), Z.dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = getattr(self.regressor, "random_state", 0) is None
        return tags
