"""What `mover="auto"` chooses among: simple movers, and what they are extended by."""

from inspect import signature

from .movers import (
    Balance,
    Chain,
    Denoise,
    LabelRidge,
    MoveLabeled,
    Mover,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Whiten,
)
from .solve import Penalty


def simple_movers() -> list[Mover]:
    """What the race starts with, simplest first."""
    return [
        Stay(),
        *(Scale(g) for g in (0.8, 0.6, 0.4)),
        *(Shrink(step) for step in (0.15, 0.3, 0.5)),
        *(Smooth(m) for m in (2, 5, 10)),
        *(MoveLabeled(_relative(alpha)) for alpha in (0.3, 1.0, 3.0)),
        MoveLabeled(_relative(0.5), 10),
        *(LabelRidge(_relative(alpha), keep=keep) for keep in (0.85, 1.0) for alpha in (0.5, 2.0)),
        *(Denoise(power, whiten=whiten) for power, whiten in ((1.0, False), (2.0, True))),
        *(Chain([Whiten(alpha), Shrink(step)]) for alpha in (0.01, 0.3, 3.0) for step in (0.4, 0.7, 0.9)),
        Chain([Balance(0.5), Steer(1.0)]),  # two that are good together where neither is alone
        Chain([Smooth(2), Balance(0.4), Steer(1.0)]),
    ]


def learned_in_parts() -> list[Mover]:
    """Movers that need neither one more column nor all objects at once: for indexes, and for Dask."""
    alphas = [_relative(alpha) for alpha in (0.3, 1.0, 3.0)]
    return [
        *(Scale(g) for g in (0.8, 0.6, 0.4)),
        *(Shrink(step) for step in (0.15, 0.3, 0.5)),
        *(MoveLabeled(alpha, n) for alpha in alphas for n in (1, 10)),
        *(LabelRidge(alpha, keep=keep) for alpha in alphas for keep in (0.85, 1.0)),
    ]


def balanced(mover: Mover) -> list[Mover]:
    """A mover followed by Balance, unless it has that, or Steer, which comes after it."""
    if any(isinstance(step, Balance | Steer) for step in steps(mover)):
        return []
    return [_then(mover, Balance(strength)) for strength in (0.3, 0.6)]


def steered(mover: Mover) -> list[Mover]:
    """A mover followed by Steer, or with another in the place of the one it has."""
    before = Chain([step for step in steps(mover) if not isinstance(step, Steer)])
    settings = ((0.5, 0.1), (1.5, 0.1), (1.5, 0.01), (5.0, 0.01))
    return [_then(before, Steer(strength, alpha)) for strength, alpha in settings]


def _relative(value: float) -> Penalty:
    return Penalty(value, relative=True)


def _then(mover: Mover, last: Mover) -> Mover:
    return Chain([*steps(mover), last]) if steps(mover) else last


def steps(mover: Mover) -> list[Mover]:
    """The movers of a chain, or the one there is; none for Stay."""
    if isinstance(mover, Chain):
        return [step for one in mover.movers for step in steps(one)]
    return [] if isinstance(mover, Stay) else [mover]


def name(mover: Mover) -> str:
    """A mover by what differs from its defaults, as "Whiten(alpha=3.0) + Shrink()"."""
    if isinstance(mover, Chain):
        return " + ".join(name(step) for step in steps(mover)) or "Stay()"
    defaults = {key: own.default for key, own in signature(type(mover)).parameters.items()}
    given = [
        f"{key}={_told(value)}"
        for key, value in mover.get_params(deep=False).items()
        if value is not defaults[key] and value != defaults[key]
    ]
    return f"{type(mover).__name__}({', '.join(given)})"


def _told(value: object) -> str:
    if isinstance(value, Penalty):
        return f"{value.value:g} scale" if value.relative else repr(value.value)
    return repr(value)
