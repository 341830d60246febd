"""Every mover and, as outside references, linear classifiers, on the paper's data and harness.

A contender is a classifier that chooses what it leaves open by itself, on the training part alone. `auto`,
the choice among all movers, is a method of `hubless.paper`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.cross_decomposition import PLSRegression

from hubless import MoveLabeledClassifierCV
from hubless.movers import (
    Balance,
    Chain,
    Denoise,
    KernelMove,
    LabelRidge,
    MoveLabeled,
    Mover,
    Regress,
    Shrink,
    Smooth,
    Steer,
    Whiten,
)
from hubless.paper import names
from hubless.paper.experiment import MEASURES, Measure, Split, measure_classifier, measure_mover
from hubless.paper.raw import Cell
from hubless.paper.reproduce import Options, outcomes, plan, reproduce
from hubless.solve import Penalty

from .linear import LINEAR, linear

FOLDER = Path(__file__).parent / "results" / "movers"
ALPHAS = tuple(Penalty(value, relative=True) for value in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
STRENGTHS = (0.15, 0.3, 0.45, 0.6, 0.8)
WIDTHS = (0.01, 0.1, 1.0, 10.0)


class Contender(NamedTuple):
    """A row of the table of movers."""

    title: str
    build: Callable[[int, int], Any]  # (d, seed) → classifier
    is_neighbors: bool = True  # whether it has neighbours, and so N10


def _of(movers: Callable[[int], Sequence[Mover]]) -> Callable[[int, int], Any]:
    return lambda d, seed: MoveLabeledClassifierCV(mover=movers(d), random_state=seed)


CONTENDERS = {
    "shrink": Contender("Shrink", _of(lambda d: [Shrink(step / 10) for step in range(1, 10)])),
    "smooth": Contender(
        "Smooth",
        _of(
            lambda d: [
                *(Smooth(m, weights) for m in (1, 2, 4, 8, 16) for weights in ("uniform", "distance")),
                *(Smooth(30, step=step) for step in (0.3, 0.6)),
            ]
        ),
    ),
    "ridge-10": Contender("MoveLabeled, 10 targets", _of(lambda d: [MoveLabeled(a, 10) for a in ALPHAS])),
    "ridge-identity": Contender(
        "MoveLabeled toward I", _of(lambda d: [MoveLabeled(a, toward="identity") for a in ALPHAS])
    ),
    "label-ridge": Contender(
        "LabelRidge", _of(lambda d: [LabelRidge(a, keep=keep) for keep in (0.7, 0.85, 1.0) for a in ALPHAS])
    ),
    "balance": Contender("Balance", _of(lambda d: [Balance(strength) for strength in STRENGTHS])),
    "steer": Contender(
        "Steer by ridge regression",
        _of(
            lambda d: [
                Steer(c, a, classifier="ridge") for a in (0.01, 0.1, 1.0) for c in (0.3, 1.0, 3.0, 10.0)
            ]
        ),
    ),
    "steer-logistic": Contender(
        "Steer",
        _of(lambda d: [Steer(c, a) for a in (1e-2, 1e-3, 1e-4) for c in (0.02, 0.04, 0.08, 0.15, 0.3)]),
    ),
    "whiten-shrink": Contender(
        "Whiten + Shrink",
        _of(lambda d: [Chain([Whiten(a), Shrink(s)]) for a in WIDTHS for s in (0.4, 0.7, 0.9)]),
    ),
    "denoise": Contender(
        "Denoise", _of(lambda d: [Denoise(p, whiten=w) for w in (False, True) for p in (0.5, 1.0, 2.0)])
    ),
    "kernel": Contender(
        "KernelMove", _of(lambda d: [KernelMove(a, gamma=g) for g in (0.5, 2.0) for a in (0.01, 0.1, 1.0)])
    ),
    "pls": Contender(
        "Regress(PLS)",
        _of(lambda d: [Regress(PLSRegression(m, scale=False)) for m in sorted({min(d, 10), min(d, 40)})]),
    ),
    **{slug: Contender(title, partial(linear, slug), False) for slug, title in LINEAR.items()},
}


def measure(slug: str, split: Split, seed: int) -> dict[str, Any]:
    """Choose, fit and measure one contender, as the fields of a raw result."""
    contender = CONTENDERS[slug]
    model = contender.build(split.X.shape[1], seed)
    if contender.is_neighbors:
        return measure_mover(model, split)
    return measure_classifier(model, split) | {"chosen": model[-1].best_params_}


# what the harness may run; functions of this module by name, so that other processes find them
ALL: dict[str, Measure] = {**MEASURES, **{slug: partial(measure, slug) for slug in CONTENDERS}}
DEFAULT = ("nca", "auto", *CONTENDERS)


def cells(
    datasets: Iterable[str] | None, methods: Iterable[str] | None, n_splits: int, dim: int
) -> list[Cell]:
    """Return the cells to run; by default of all data sets, NCA, auto and all movers."""
    return plan(datasets or names.DATASETS, methods or DEFAULT, n_splits, dim, known=ALL)


def run(cells: list[Cell], jobs: int, **how: Any) -> list[dict[str, Any]]:
    """Run the cells that are missing, and return the raw results of all of them; `how` are Options."""
    options = Options(measures=ALL, **how)
    reproduce(cells, options, jobs, ["cells"])
    return outcomes(cells, options)
