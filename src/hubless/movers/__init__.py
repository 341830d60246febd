"""Ways to move labeled objects while queries stay: one class each, all of them alike (see `mover`).

A file of this folder names its movers in `__all__`; MOVERS is made of these, in the order of the imports, and
saving, the race of mover="auto" and the tables of the documentation go by it.
"""

# ruff: noqa: F403, I001
from .mover import *
from .stay import *
from .prototypes import *
from .ridge import *
from .label_ridge import *
from .metrics import *
from .bias import *
from .steer import *
from .without_column import *
from .regressors import *
from .chain import *

from .mover import Mover

MOVERS: dict[str, type[Mover]] = {
    name: kind
    for name, kind in globals().items()
    if isinstance(kind, type) and issubclass(kind, Mover) and kind is not Mover and not name.startswith("_")
}
__all__ = [*MOVERS, "Mover"]
