"""hubless: better k-nearest-neighbour answers by moving the stored objects, never the queries.

Names are loaded when they are first used, so `import hubless` is fast and a program pays for what it uses.
"""

from typing import TYPE_CHECKING

from .support.imports import lazy_names
from .support.version import __version__

if TYPE_CHECKING:  # what type checkers and editors see; `_HOMES` is what Python does
    from .classifier import MoveLabeledClassifier as MoveLabeledClassifier
    from .classifier_cv import MoveLabeledClassifierCV as MoveLabeledClassifierCV
    from .hubness import Hubness as Hubness
    from .hubness import measure_hubness as measure_hubness
    from .move_query import MoveQuery as MoveQuery
    from .movers import MoveLabeled as MoveLabeled
    from .neighbors import nearest as nearest
    from .outofcore.fit import fit_large as fit_large
    from .report.compare import compare as compare
    from .report.report import Report as Report
    from .saving import load as load
    from .saving import push_to_hub as push_to_hub
    from .saving import save as save
    from .selection.columns import ScaleWarning as ScaleWarning

_HOMES = {
    "Hubness": "hubness",
    "MoveLabeled": "movers",
    "MoveLabeledClassifier": "classifier",
    "MoveLabeledClassifierCV": "classifier_cv",
    "MoveQuery": "move_query",
    "Report": "report.report",
    "ScaleWarning": "selection.columns",
    "compare": "report.compare",
    "fit_large": "outofcore.fit",
    "load": "saving",
    "measure_hubness": "hubness",
    "nearest": "neighbors",
    "push_to_hub": "saving",
    "save": "saving",
}
__all__ = ["__version__", *_HOMES]
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
