"""What `mover="auto"` chooses among: simple movers, and what they are extended by."""

from collections.abc import Iterable
from inspect import signature
from typing import Any

import numpy as np

from ..arrays import Array
from ..arrays.inputs import check_choice
from ..movers import (
    MOVERS,
    Balance,
    Chain,
    MoveLabeled,
    Mover,
    Shrink,
    Stay,
    Steer,
    Whiten,
    WithoutColumn,
)
from ..solve import Penalty
from .columns import NAMED, largest_share

MAX_ITER = 30  # steps of the logistic regressions of Steer
# Chains that a race starts with. The last one is the paper's map of objects that are near the means of their
# classes, in the metric of discriminant analysis.
CHAINS: tuple[tuple[Mover, ...], ...] = (
    (Whiten(0.3), Shrink(0.7)),
    (Whiten(3.0), Shrink(0.4)),
    (Whiten(0.1), Shrink(0.9)),
    (Whiten(1.0), Shrink(0.9), MoveLabeled(Penalty(0.1, relative=True), 10)),
)
# What a race starts with besides where one column dwarfs the others: penalties in units of the mean variance
# are then far above the variance of every other column, and all other settings see that column alone.
STRETCHED: tuple[Mover, ...] = (Whiten(1e-7), Shrink(0.7))
# Chains that are followed by Steer. Of 51 that were compared, the first two made up for all others; with few
# objects per class, the metric of the second is too uncertain, and the third takes its place.
TO_STEER: tuple[tuple[Mover, ...], ...] = (
    (Whiten(3.0), Shrink(0.4), Balance(0.3)),
    (Whiten(0.3), Shrink(0.7)),
    (Shrink(0.5), Balance(0.3)),
)
FEW = 20  # objects per class on average
# What is taken where folds are too thin to choose by, as with two objects per class.
UNCHOSEN: tuple[Mover, ...] = (Shrink(0.5), Balance(0.3), Steer(0.3, 0.01, max_iter=MAX_ITER))
PENALTIES, STRENGTHS = (1e-2, 2e-3, 3e-4), (0.01, 0.02, 0.04, 0.08, 0.15, 0.3)  # of Steer that are tried
MAX_SCORES = 4_000_000  # objects × classes, above which logistic regression costs more than all the rest


def check_movers(mover: Any) -> list[Mover] | None:
    """Return the movers that a parameter names: an empty list for "auto", None for "ridge"."""
    if isinstance(mover, str):
        check_choice("mover", mover, ("ridge", "auto"))
        return None if mover == "ridge" else []
    movers = [*mover] if np.iterable(mover) else [mover]
    if not movers or not all(isinstance(mover, Mover) for mover in movers):
        raise ValueError(
            'mover must be "ridge", "auto", or movers of hubless.movers, such as Shrink(0.3) or '
            f"[Stay(), Shrink(0.3)]; got {mover!r}."
        )
    for mover in movers:
        mover._check_nested("a classifier")
    return movers


def simple_movers() -> list[Mover]:
    """Return what a race starts with, simplest first: settings that each mover names, and a few chains."""
    return [
        *(kind(**setting) for kind in MOVERS.values() for setting in kind._tried),
        *(Chain(list(movers)) for movers in CHAINS),
    ]


def movers_for(X: Array) -> list[Mover]:
    """Return what a race on these objects tries besides: a chain where one column dwarfs the others."""
    return [Chain(list(STRETCHED))] if largest_share(X)[1] > NAMED else []


def movers_in_parts() -> list[Mover]:
    """Return movers that need neither one more column nor all objects at once: for indexes, and for Dask."""
    movers: list[Mover] = []
    for kind in MOVERS.values():
        if kind._learns_in_parts():
            settings = kind._tried if kind._tried_in_parts is None else kind._tried_in_parts
            movers += [kind(**setting) for setting in settings]
    return movers


def balanced(mover: Mover) -> list[Mover]:
    """Return a mover followed by Balance, unless it has that already, or Steer, which comes after it."""
    if any(isinstance(step, Balance | Steer) for step in steps(mover)):
        return []
    return [_then(mover, Balance(0.3))]


def unchosen() -> Mover:
    """Return the mover to take where there is too little to choose by."""
    return Chain(list(UNCHOSEN))


def without_column(mover: Mover) -> Mover:
    """Return a mover that needs no column; held-out queries judge what that costs."""
    return _then(mover, WithoutColumn(1.0)) if mover._adds_column else mover


def with_column(mover: Mover) -> Mover:
    """Return the mover that `without_column` was made of."""
    return Chain([step for step in steps(mover) if not isinstance(step, WithoutColumn)])


def to_steer(best: Mover, n_per_class: float) -> list[Mover]:
    """Return the movers to be followed by Steer: two known ones, and the best of a race so far."""
    chains = TO_STEER[:2] if n_per_class >= FEW else TO_STEER[::2]
    return list(
        {name(mover): mover for mover in (*(Chain(list(movers)) for movers in chains), best)}.values()
    )


def steered(mover: Mover) -> list[Mover]:
    """Return a mover followed by Steer, in all settings that are tried."""
    return [
        _then(mover, Steer(strength, alpha, max_iter=MAX_ITER))
        for alpha in PENALTIES
        for strength in STRENGTHS
    ]


def settings_by_name(X: Array, given: Iterable[Mover] = ()) -> dict[str, Mover]:
    """Return every setting that a race on these objects can try, by the name it has in the race's table."""
    movers = [*given]
    if not movers:
        simple = [*simple_movers(), *movers_for(X)]
        bases = [*simple, *(new for mover in simple for new in balanced(mover)), unchosen()]
        bases += [Chain(list(chain)) for chain in TO_STEER]
        movers = [*bases, *(new for base in bases for new in steered(base))]
        movers += [new for mover in simple for new in balanced(without_column(mover))]
    return {name(mover): mover for mover in [*movers, *map(without_column, movers)]}


def _then(mover: Mover, last: Mover) -> Mover:
    return Chain([*steps(mover), last]) if steps(mover) else last


def steps(mover: Mover) -> list[Mover]:
    """Return the movers of a chain, or the one mover; none for Stay."""
    if isinstance(mover, Chain):
        return [step for inside in mover.movers for step in steps(inside)]
    return [] if isinstance(mover, Stay) else [mover]


def name(mover: Mover) -> str:
    """Name a mover by what differs from its defaults, for example "Whiten(alpha=3.0) + Shrink()".

    A penalty that was chosen is written as everywhere in words: "MoveLabeled(λ = 0.3 × mean eigenvalue)".
    """
    if isinstance(mover, Chain):
        return " + ".join(name(step) for step in steps(mover)) or "Stay()"
    defaults = {key: given.default for key, given in signature(type(mover)).parameters.items()}
    changed = [
        str(value) if isinstance(value, Penalty) else f"{key}={value!r}"
        for key, value in mover.get_params(deep=False).items()
        if value is not defaults[key] and value != defaults[key]
    ]
    return f"{type(mover).__name__}({', '.join(changed)})"
