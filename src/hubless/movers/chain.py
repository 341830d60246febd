"""Movers one after another."""

from collections.abc import Sequence
from typing import Any, ClassVar

from sklearn.base import clone

from .mover import Mover
from .points import Points, Raised

__all__ = ["Chain"]


class Chain(Mover):
    """Move by one mover, then by the next, and so on.

    Good for combinations. Each learns from the objects as the one before it left them. Order matters: a
    metric (Whiten, Denoise) comes first, as those after it work in its space; then what moves objects
    (Shrink, Smooth, MoveLabeled, …); then Balance, then Steer; WithoutColumn last. Targets are those of the
    input space, or those given, for all of them. Queries without labels, if `fit` is given some, serve the
    movers that use them, in the space of the comparison.

    Parameters
    ----------
    movers : sequence of movers

    Attributes
    ----------
    movers_ : list of the fitted movers
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Chain, Scale, Shrink
    >>> Chain([Shrink(0.5), Scale(0.5)]).fit_transform([[0.0], [4.0], [8.0]], [0, 0, 1]).tolist()
    [[2.5], [3.5], [6.0]]
    """

    _learned: ClassVar = {"movers_": "movers"}

    def __init__(self, movers: Sequence[Mover] = ()) -> None:
        self.movers = movers

    @property
    def _uses_labels(self) -> bool:  # type: ignore[override]
        return any(mover._uses_labels for mover in self.movers)

    @property
    def _uses_queries(self) -> bool:  # type: ignore[override]
        return any(mover._uses_queries for mover in self.movers)

    @property
    def _adds_column(self) -> bool:  # type: ignore[override]
        return self._has_column(False)

    def _has_column(self, before: bool) -> bool:
        for mover in self.movers:
            before = mover._has_column(before)
        return before

    @property
    def _gives_order_alone(self) -> bool:
        return any(mover._gives_order_alone for mover in self.movers)

    @property
    def _ignores_axes(self) -> bool:  # type: ignore[override]
        return all(mover._ignores_axes for mover in self.movers)

    @property
    def _raised(self) -> Raised | None:
        return self.movers_[-1]._raised if self.movers_ else None

    def _check_parameters(self) -> None:
        if not isinstance(self.movers, list | tuple) or not all(isinstance(m, Mover) for m in self.movers):
            raise ValueError(
                f"a chain is made of movers, for example Chain([Whiten(), Shrink(0.5)]); got {self.movers!r}."
            )
        for mover in self.movers:
            mover._check_nested("a chain")

    def _n_targets(self) -> int:
        return max((mover._n_targets() for mover in self.movers), default=0)

    def _learn(self, points: Points) -> Points:
        self.movers_ = [clone(mover) for mover in self.movers]
        for mover in self.movers_:
            points = mover._learn(points)
        return points

    def _apply(self, points: Points) -> Points:
        for mover in self.movers_:
            points = mover._apply(points)
        return points

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = any(
            mover.__sklearn_tags__().non_deterministic for mover in self.movers if isinstance(mover, Mover)
        )
        return tags
