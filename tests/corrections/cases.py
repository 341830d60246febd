"""The one list of corrections and their properties; the tests of corrections and of saving go by it.

A correction is added by three edits: its class in src/hubless/corrections, named in `__all__` of its file;
its plain loops in tests/reference.py; and a row in TABLE. test_correction_table.py fails for each that is
forgotten.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from hubless.corrections import (
    CSLS,
    NNN,
    Correction,
    DisSimLocal,
    DualIS,
    HoldHubs,
    InvertedSoftmax,
    LocalScaling,
    MeanQuery,
    Sinkhorn,
)
from tests import reference

METRICS = ("l2", "cosine", "ip")


@dataclass(frozen=True)
class CorrectionRow:
    """A correction to test, its truth and its properties.

    `truth` takes (queries, objects, later) and the parameters of the correction but `column`, by name; it
    returns g, or None, and b of the later objects.
    """

    correction: Correction
    truth: Callable[..., tuple[Any, list[float]]]
    metrics: tuple[str, ...] = METRICS
    spares: bool = False  # most objects stay exactly where they are
    scales: bool = False  # under L2, exact for queries that are equally far from their mean

    def new(self, metric: str, **parameters: Any) -> Correction:
        """Return the correction, not fitted."""
        return clone(self.correction).set_params(metric=metric, **parameters)

    def of_loops(self, queries: np.ndarray, objects: np.ndarray, later: np.ndarray, metric: str) -> Any:
        """Return the truth for the parameters of this correction."""
        given = {**self.correction.get_params(), "metric": metric}
        del given["column"]
        return self.truth(queries, objects, later, **given)


def _table(*rows: CorrectionRow) -> dict[str, CorrectionRow]:
    return {type(row.correction).__name__: row for row in rows}


BY_DISTANCE = ("l2", "cosine")

TABLE = _table(
    CorrectionRow(NNN(0.6, 4), reference.nnn),
    CorrectionRow(CSLS(0.5, 3), reference.csls),
    CorrectionRow(MeanQuery(0.7), reference.mean_query),
    CorrectionRow(InvertedSoftmax(3.0, 0.8), reference.inverted_softmax),
    CorrectionRow(DualIS(3.0, 0.8), reference.dual_is),
    CorrectionRow(Sinkhorn(2.0, 0.9), reference.sinkhorn),
    CorrectionRow(LocalScaling(0.8, 4), reference.local_scaling, BY_DISTANCE, scales=True),
    CorrectionRow(DisSimLocal(0.6, 4), reference.dis_sim_local, BY_DISTANCE),
    CorrectionRow(HoldHubs(0.05, 5), reference.hold_hubs, spares=True),
)
EACH = [
    pytest.param(row, metric, id=f"{name}-{metric}") for name, row in TABLE.items() for metric in row.metrics
]
each_metric = pytest.mark.parametrize(("row", "metric"), EACH)
each_row = pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
