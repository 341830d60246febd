"""hubless: better k-nearest-neighbour answers by moving the stored objects, never the queries."""

from .classifier import MoveLabeledClassifier
from .classifier_cv import MoveLabeledClassifierCV
from .hubness import Hubness, measure_hubness
from .large.fit import fit_large
from .model_dir import load, save
from .movers import MoveLabeled
from .neighbors import nearest
from .report.compare import compare
from .report.report import Report
from .transformer import MoveQuery

__version__ = "0.1.0"

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
