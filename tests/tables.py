"""The one list of movers and their properties; the tests of movers, saving and learning in parts go by it.

A mover is added by three edits: its class in src/hubless/movers, named in `__all__` of its file; its plain
loops in tests/reference.py; and a row in TABLE. tests/movers/test_table.py fails for each that is forgotten.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from hubless.movers import (
    Balance,
    Chain,
    Denoise,
    KernelMove,
    LabelRidge,
    MoveLabeled,
    Mover,
    Regress,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Unit,
    Whiten,
    WithoutColumn,
)
from tests import reference

NOT_LEARNED_FROM = ("max_iter", "device", "keep_moments")  # parameters that do not change where objects go


@dataclass(frozen=True)
class Row:
    """A mover to test, its truth and its properties.

    `truth` takes (X, y), with a column also the queries, and the parameters of the mover by name; it returns
    where objects go or, with a column, what queries are compared by.
    """

    mover: Mover
    truth: Callable[..., np.ndarray]
    uses_labels: bool = False  # `move` needs the class of an object
    uses_queries: bool = False  # it learns from queries without labels, where `fit` is given some
    adds_column: bool = False  # moved objects have one column more
    in_parts: bool = False  # it learns from sums over the objects: from files, and on Dask
    can_be_saved: bool = True
    same_later: bool = True  # an object that was learned from moves as if it came later
    needs_pairs: bool = False  # objects that are all alone in their class are refused
    needs_spread: bool = False  # identical objects are refused
    squares_overflow: bool = True  # it squares numbers, and refuses those whose squares overflow
    has_units: bool = False  # a parameter is in units of the data
    about_origin: bool = False  # the origin of the space matters
    same_bits: bool = True  # array-api-strict gives the numbers of NumPy, by which it computes, bit for bit

    def new(self) -> Mover:
        """Return the mover, not fitted."""
        return clone(self.mover)

    def of_loops(self, *data: np.ndarray, **more: Any) -> np.ndarray:
        """Return the truth for the parameters of this mover."""
        parameters = self.mover.get_params(deep=False)
        given = {name: value for name, value in parameters.items() if name not in NOT_LEARNED_FROM}
        return self.truth(*data, **given, **more)


def _table(*rows: Row) -> dict[str, Row]:
    return {type(row.mover).__name__: row for row in rows}


TABLE = _table(
    Row(Stay(), reference.stay, in_parts=True, squares_overflow=False),
    Row(Scale(0.3), reference.scale, in_parts=True, squares_overflow=False),
    Row(Unit(), reference.unit, about_origin=True),
    Row(Shrink(0.4), reference.shrink, uses_labels=True, in_parts=True, squares_overflow=False),
    Row(Smooth(3), reference.smooth, uses_labels=True, same_later=False, squares_overflow=False),
    Row(
        MoveLabeled(2.0, 3),
        reference.move_labeled,
        in_parts=True,
        needs_pairs=True,
        has_units=True,
        same_bits=False,  # SciPy solves for NumPy arrays
    ),
    Row(
        LabelRidge(2.0, 3, keep=0.8),
        reference.label_ridge,
        uses_labels=True,
        in_parts=True,
        needs_pairs=True,
        has_units=True,
        same_bits=False,
    ),
    Row(
        Balance(0.7, n_neighbors=3),
        reference.balance,
        uses_queries=True,
        adds_column=True,
        same_later=False,
    ),
    Row(Steer(0.3, 0.05), reference.steer, uses_labels=True, adds_column=True, same_bits=False),
    Row(Whiten(0.2), reference.whiten, adds_column=True, needs_pairs=True, needs_spread=True),
    Row(
        Denoise(1.5, 4, alpha=0.05),
        reference.denoise,
        adds_column=True,
        needs_pairs=True,
        needs_spread=True,
    ),
    Row(WithoutColumn(1.0), reference.without_column, squares_overflow=False),
    Row(KernelMove(0.2, 3, gamma=0.8), reference.kernel_move, needs_pairs=True, same_bits=False),
    Row(
        Regress(Ridge(alpha=2.0), 2),
        reference.regress,
        can_be_saved=False,
        needs_pairs=True,
        squares_overflow=False,
        has_units=True,
    ),
    Row(
        Chain([Shrink(0.4), Scale(0.5)]),
        reference.chain,
        uses_labels=True,
        squares_overflow=False,
    ),
)


# --- more settings of the same movers, and chains -----------------------------------------------------------


def _other(kind: str, mover: Mover, **changes: Any) -> Row:
    return replace(TABLE[kind], mover=mover, **changes)


def _chain(*movers: Mover, **how: Any) -> Row:
    """A chain with a column; `how` queries are compared, as `reference.scores` has it."""

    def truth(X, y, queries, movers, sample_weight=None, later=None, proxies=None):
        L = {"L": how["L"](X, y, sample_weight)} if "L" in how else {}
        more = {"weights": sample_weight, "later": later, "proxies": proxies}
        return reference.scores(queries, X, y, **how | L, **more)

    kinds = {type(step).__name__ for mover in movers for step in getattr(mover, "movers", [mover])}
    needs = bool({"Whiten", "Denoise"} & kinds)
    return Row(
        Chain(list(movers)),
        truth,
        uses_labels=bool({"Shrink", "Steer"} & kinds),
        uses_queries="Balance" in kinds,
        adds_column=True,
        same_later="Balance" not in kinds,
        needs_pairs=needs,
        needs_spread=needs,
    )


def _whitened(X, y, weights):
    return reference.whitener(X, y, 0.2, weights)


def _denoised(X, y, weights):
    return reference.denoiser(X, y, 1.5, 4, False, 0.05, 2, weights)


RIDGE = Steer(2.0, 0.1, classifier="ridge")

CASES = {
    **TABLE,
    "Steer by ridge": _other("Steer", Steer(1.5, 0.05, classifier="ridge"), same_bits=True),
    "Chain of nothing": Row(
        Chain(), lambda X, y, movers, **more: reference.stay(X, y, **more), squares_overflow=False
    ),
    "Smooth by distance": _other("Smooth", Smooth(3, "distance"), squares_overflow=True),
    "Smooth by a step": _other("Smooth", Smooth(40, "distance", step=0.2), squares_overflow=True),
    "MoveLabeled toward the identity": _other("MoveLabeled", MoveLabeled(2.0, 3, toward="identity")),
    "MoveLabeled about the origin": _other("MoveLabeled", MoveLabeled(2.0, center=False), about_origin=True),
    "Denoise once": _other("Denoise", Denoise(1.5, 4, alpha=0.05, n_iter=1)),
    "Denoise white": _other("Denoise", Denoise(1.5, 4, whiten=True, alpha=0.05, n_iter=3)),
    "Whiten, Shrink": _chain(Whiten(0.2), Shrink(0.6), L=_whitened, step=0.6),
    "Shrink, Balance": _chain(Shrink(0.3), Balance(0.5), step=0.3, g=0.5),
    "Balance, Steer": _chain(Balance(0.5), RIDGE, g=0.5, strength=2.0),
    "Whiten, Shrink, Balance, Steer": _chain(
        Whiten(0.2),
        Chain([Shrink(0.3), Balance(0.5)]),
        RIDGE,
        L=_whitened,
        step=0.3,
        g=0.5,
        strength=2.0,
    ),
    "Denoise, Shrink, Steer": _chain(
        Denoise(1.5, 4, alpha=0.05), Shrink(0.3), RIDGE, L=_denoised, step=0.3, strength=2.0
    ),
    "Whiten, Shrink, Steer by logistic regression": _chain(
        Whiten(0.2),
        Shrink(0.3),
        Steer(0.3, 0.02),
        L=_whitened,
        step=0.3,
        strength=0.3,
        alpha=0.02,
        classifier="logistic",
    ),
    "Balance, WithoutColumn": Row(
        Chain([Balance(0.7, n_neighbors=3), WithoutColumn(1.0)]),
        reference.handicapped_without_column,
        uses_queries=True,
        same_later=False,
        same_bits=False,  # SciPy solves for NumPy arrays
    ),
}
IN_PARTS = {name: row for name, row in CASES.items() if row.in_parts}


def each(rows: dict[str, Row]) -> pytest.MarkDecorator:
    """Run a test with each row, as its argument `row`."""
    names = [name.replace(", ", "-").replace(" ", "-") for name in rows]
    return pytest.mark.parametrize("row", rows.values(), ids=names)
