"""The mover that moves nothing."""

from .mover import Mover
from .points import Points
from .totals import Needs

__all__ = ["Stay"]


class Stay(Mover):
    """Do not move: the mover that every other is compared with.

    Good for low dimensions and data without hubs.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Stay
    >>> Stay().fit_transform([[0.0], [4.0]], [0, 1]).tolist()
    [[0.0], [4.0]]
    """

    _uses_labels = False
    _tried = ({},)

    def _needs(self) -> Needs:
        return Needs()

    def _apply(self, points: Points) -> Points:
        return points
