"""Probabilities that hold on new queries, and queries unlike anything stored: learned on held-out queries.

neighbours → evidence for each class → probabilities → how familiar a query is
"""

from .reliability import Reliability, expected_calibration_error, log_loss, reliability

__all__ = ["Reliability", "expected_calibration_error", "log_loss", "reliability"]
