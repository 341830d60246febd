"""Ways to move labeled objects while queries stay: one class each, all of them alike (see `mover.py`)."""

from .bias import Balance, Steer
from .chain import Chain
from .metrics import Denoise, Whiten
from .mover import Mover, Stay
from .prototypes import Scale, Shrink, Smooth, Unit
from .regressors import KernelMove, Regress
from .ridge import LabelRidge, MoveLabeled

__all__ = [
    "Balance",
    "Chain",
    "Denoise",
    "KernelMove",
    "LabelRidge",
    "MoveLabeled",
    "Mover",
    "Regress",
    "Scale",
    "Shrink",
    "Smooth",
    "Stay",
    "Steer",
    "Unit",
    "Whiten",
]
