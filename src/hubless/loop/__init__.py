"""A loop that keeps learning: from a log of clicks or judgements, promoting only what fresh queries confirm.

`watch_index` makes one step, for a scheduler to call; `read_history` returns what was decided so far.
"""

from typing import TYPE_CHECKING

from ..support.imports import lazy_names

if TYPE_CHECKING:  # what type checkers and editors see; `_HOMES` is what Python does
    from .history import read_history as read_history
    from .history_page import write_history as write_history
    from .watch import watch_index as watch_index

_HOMES = {"read_history": "history", "watch_index": "watch", "write_history": "history_page"}
__all__ = list(_HOMES)
__getattr__ = lazy_names(__name__, _HOMES)
