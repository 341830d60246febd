"""The Mahalanobis learners that the paper compares its method with."""

from .dml_eig import DMLeig
from .itml import ITML
from .lmnn import LMNN
from .mmc import MMC
from .nca import NCA

__all__ = ["ITML", "LMNN", "MMC", "NCA", "DMLeig"]
