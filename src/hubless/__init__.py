"""hubless: better k-nearest-neighbour answers by moving the stored objects, never the queries.

Names are loaded when they are first used, so `import hubless` is fast and a program pays for what it uses.
"""

from typing import TYPE_CHECKING

from .support.imports import lazy_names
from .support.version import __version__

if TYPE_CHECKING:  # what type checkers and editors see; `_HOMES` is what Python does
    from .classifier import MoveLabeledClassifier
    from .classifier_cv import MoveLabeledClassifierCV
    from .hubness import Hubness, measure_hubness
    from .move_query import MoveQuery
    from .movers import MoveLabeled
    from .neighbors import nearest
    from .outofcore.fit import fit_large
    from .report.compare import compare
    from .report.report import Report
    from .saving import load, save

_HOMES = {
    "Hubness": "hubness",
    "MoveLabeled": "movers",
    "MoveLabeledClassifier": "classifier",
    "MoveLabeledClassifierCV": "classifier_cv",
    "MoveQuery": "move_query",
    "Report": "report.report",
    "compare": "report.compare",
    "fit_large": "outofcore.fit",
    "load": "saving",
    "measure_hubness": "hubness",
    "nearest": "neighbors",
    "save": "saving",
}

__all__ = [
    "Hubness",
    "MoveLabeled",
    "MoveLabeledClassifier",
    "MoveLabeledClassifierCV",
    "MoveQuery",
    "Report",
    "__version__",
    "compare",
    "fit_large",
    "load",
    "measure_hubness",
    "nearest",
    "save",
]


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
