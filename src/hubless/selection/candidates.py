"""What `mover="auto"` chooses among: simple movers, and what they are extended by."""

from inspect import signature

from ..movers import MOVERS, Balance, Chain, Mover, Shrink, Stay, Steer, Whiten
from ..solve import Penalty


def simple_movers() -> list[Mover]:
    """Return what a race starts with, simplest first: settings that each mover names, and a few chains."""
    return [
        *(kind(**setting) for kind in MOVERS.values() for setting in kind._tried),
        *(Chain([Whiten(alpha), Shrink(step)]) for alpha in (0.01, 0.3, 3.0) for step in (0.4, 0.7, 0.9)),
    ]


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
    return [_then(mover, Balance(strength)) for strength in (0.3, 0.6)]


PENALTIES, STRENGTHS = (1e-2, 1e-3, 1e-4), (0.01, 0.02, 0.04, 0.08, 0.15, 0.3)  # of Steer that are tried
MIN_OBJECTS = 20  # per class on average, below which logistic regression costs much and gains little


def steered(mover: Mover) -> list[Mover]:
    """Return a mover followed by Steer, in all settings that are tried, unless it ends with Steer already."""
    if any(isinstance(step, Steer) for step in steps(mover)):
        return []
    return [_then(mover, Steer(strength, alpha)) for alpha in PENALTIES for strength in STRENGTHS]


def _then(mover: Mover, last: Mover) -> Mover:
    return Chain([*steps(mover), last]) if steps(mover) else last


def steps(mover: Mover) -> list[Mover]:
    """Return the movers of a chain, or the one mover; none for Stay."""
    if isinstance(mover, Chain):
        return [step for inside in mover.movers for step in steps(inside)]
    return [] if isinstance(mover, Stay) else [mover]


def name(mover: Mover) -> str:
    """Name a mover by what differs from its defaults, for example "Whiten(alpha=3.0) + Shrink()"."""
    if isinstance(mover, Chain):
        return " + ".join(name(step) for step in steps(mover)) or "Stay()"
    defaults = {key: given.default for key, given in signature(type(mover)).parameters.items()}
    changed = [
        f"{key}={_parameter(value)}"
        for key, value in mover.get_params(deep=False).items()
        if value is not defaults[key] and value != defaults[key]
    ]
    return f"{type(mover).__name__}({', '.join(changed)})"


def _parameter(value: object) -> str:
    if isinstance(value, Penalty):
        return f"{value.value:g} scale" if value.relative else repr(value.value)
    return repr(value)
