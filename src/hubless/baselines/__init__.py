"""The Mahalanobis learners that the paper compares with, and the controls a reviewer would ask for."""

from .dml_eig import DMLeig
from .itml import ITML
from .lmnn import LMNN
from .nca import NCA
from .scale import Scale

__all__ = ["ITML", "LMNN", "NCA", "DMLeig", "Scale"]
