"""The control: labeled objects shrink toward their mean by one factor, and nothing is learned."""

from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, namespace
from ..inputs import check_points
from ..movers import centre


class Scale(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Move labeled objects to μ + g (z − μ), and leave queries as they are: Move-labeled with W = g · I.

    What of Move-labeled's gain is due to shorter vectors alone, this control has too.

    Parameters
    ----------
    g : float, default=0.5
        The factor; 1 leaves objects where they are.

    Attributes
    ----------
    mean_ : array of shape (d,)
        μ.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.baselines import Scale
    >>> scale = Scale(0.5)
    >>> scale.fit_transform([[0.0], [4.0]]).tolist(), scale.transform([[4.0]]).tolist()
    ([[1.0], [3.0]], [[4.0]])
    """

    def __init__(self, g: float = 0.5) -> None:
        self.g = g

    def fit(self, X: Any, y: Any = None) -> "Scale":
        """Learn the mean of the labeled objects; y plays no part."""
        self._fit(X)
        return self

    def _fit(self, X: Any) -> Array:
        X = check_points(self, X)
        self.mean_ = centre(X, None, True)
        return X

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The labeled objects, moved: what a k-NN should store."""
        X = self._fit(X)
        mean = namespace(X).astype(self.mean_, X.dtype)
        return mean + self.g * (X - mean)

    def transform(self, X: Any) -> Array:
        """Queries as a k-NN should be asked: as they are."""
        check_is_fitted(self)
        return check_points(self, X, method="transform", like=self.mean_)
