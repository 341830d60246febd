"""The goals of auto, and what it reached, from the raw results of all methods."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from hubless.paper.names import PAPER_DATASETS
from hubless.paper.published import DIMENSION
from hubless.paper.raw import Entry
from hubless.paper.results import mean_over_splits, read

SPLITS = 4
LEARNERS = {"lmnn": "LMNN", "itml": "ITML", "dml-eig": "DML-eig", "nca": "NCA"}
TARGETS = {
    "news": 84.5,
    "cub": 69.5,
    "reuters": 92.7,
    "tdt": 97.0,
    "rcv": 94.4,
    "banking77": 92.0,
    "sun": 20.0,
}
SLACK = 0.3  # points that auto may be behind the paper's mover
GAIN = 2.0  # points that it must be ahead on average
WINS = 11  # data sets of the paper's 13 on which no learner may be ahead
COST = 50  # plain fits and predicts that choosing may cost
HARM = 0.5  # points that it may be behind Euclidean on UCI data
UCI_SPLITS = 20

RIDGE = f"auto is at or above the paper's ridge minus {SLACK} point on every data set"
LEARNED = f"auto is at or above the best of LMNN, ITML, DML-eig and NCA on {WINS} of 13 data sets"
OFTEN = f", with {UCI_SPLITS} splits of the UCI data"
CHEAP = f"auto costs at most {COST} × one plain fit and predict of the same data"
SMALL = """\
The test parts of these UCI sets have 45 to 188 objects: one object is up to 0.6 point of a mean over 4 \
splits. With so few training objects auto finds no difference beyond chance and does not move; requiring one \
standard error instead of two gained 0.4 points on iris and 0.9 on wine and lost 2.5 on glass, over 20 \
splits."""
REASONS = {  # why a goal was not reached
    RIDGE: SMALL,
    RIDGE + OFTEN: SMALL,
    LEARNED + OFTEN: """\
On balance-scale, where the class depends on which of two products of features is larger, NCA is far ahead \
of every other method, movers included. On the other UCI sets auto seldom moves, for lack of evidence.""",
    CHEAP: """\
Logistic regressions of `Steer` take most of the time, the more so the more classes there are: CUB has 200. \
On the UCI sets a plain fit and predict takes 2 to 8 milliseconds, and the time for about 100 settings, less \
than a second, is mostly the fixed cost of calls.""",
}


class Mean(NamedTuple):
    """A mean over splits."""

    mean: float
    error: float | None
    n_splits: int


class Standings(NamedTuple):
    """The raw results of one dimension, by data set, method and split."""

    cells: dict[tuple[str, str, int], Entry]

    def figures(self, dataset: str, method: str, field: str, n_splits: int = SPLITS) -> Mean | None:
        """Return the mean over the first splits, or None where there are none."""
        cells = [self.cells.get((dataset, method, split), {}) for split in range(n_splits)]
        values = [cell[field] for cell in cells if cell.get(field) is not None]
        return Mean(*mean_over_splits(values), len(values)) if values else None

    def accuracy(
        self, dataset: str, method: str, n_splits: int = SPLITS, of_all: bool = False
    ) -> float | None:
        """Return the mean accuracy in per cent; with `of_all`, None where a split is missing."""
        mean = self.figures(dataset, method, "accuracy", n_splits)
        return None if mean is None or (of_all and mean.n_splits < n_splits) else 100 * mean.mean

    def lead(self, dataset: str, method: str, n_splits: int) -> float | None:
        """Return the points that auto is ahead of a method, None where a split is missing."""
        auto, other = (self.accuracy(dataset, name, n_splits, of_all=True) for name in ("auto", method))
        return None if auto is None or other is None else auto - other

    def best_learner(self, dataset: str, n_splits: int) -> tuple[float, str] | None:
        """Return the accuracy in per cent and the title of the best of LMNN, ITML, DML-eig and NCA."""
        accuracies = {title: self.accuracy(dataset, name, n_splits, True) for name, title in LEARNERS.items()}
        return max(((value, title) for title, value in accuracies.items() if value is not None), default=None)

    def datasets(self, *kinds: str) -> dict[str, str]:
        """Return name → title of the data sets of these kinds, in the paper's order."""
        ordered: dict[str, str] = {}
        for kind in kinds:
            cells = [cell for cell in self.cells.values() if cell["kind"] == kind]
            titles = {cell["dataset"]: cell["title"] for cell in cells}
            order = [*PAPER_DATASETS, *sorted(titles.keys() - PAPER_DATASETS)]
            ordered |= {name: titles[name] for name in order if name in titles}
        return ordered


def collect(folders: Sequence[str | Path], dim: int = DIMENSION) -> Standings:
    """Return the finished cells of several folders; the first folder that has a cell gives it."""
    cells: dict[tuple[str, str, int], Entry] = {}
    for folder in folders:
        for cell in read(folder).cells:
            if cell["dim"] == dim and cell["status"] == "done":
                cells.setdefault((cell["dataset"], cell["method"], cell["split"]), cell)
    return Standings(cells)


class MoverGoal(NamedTuple):
    """Something to reach, whether it was reached, and the figures."""

    text: str
    holds: bool
    figures: str


def goals(standings: Standings, wide: Standings) -> list[MoverGoal]:
    """Return the goals that there are results for; `wide` has CUB's 1280 columns."""
    made = [*_by_splits(standings, SPLITS), *_by_splits(standings, UCI_SPLITS)]
    large = [standings.lead(name, "move-labeled", SPLITS) for name in standings.datasets("document", "image")]
    if gains := [gain for gain in large if gain is not None]:
        text = f"at least {GAIN:g} points above the paper's ridge on average over documents and images"
        made.append(MoverGoal(text, fmean(gains) >= GAIN, f"{fmean(gains):+.2f}"))
    for name, target in TARGETS.items():
        is_wide = name == "cub" and bool(wide.cells)
        value = (wide if is_wide else standings).accuracy(name, "auto")
        if value is not None:
            where = ", with all 1280 columns" if is_wide else ""
            text = f"auto reaches {target} on {name}{where}"
            made.append(MoverGoal(text, round(value, 1) >= target, f"{value:.2f}"))
    return [*made, *_cost_goal(standings), *_harm_goal(standings)]


def _by_splits(standings: Standings, n_splits: int) -> list[MoverGoal]:
    """Compare auto with the paper's mover and with the learners, with `n_splits` for the UCI data.

    Their test parts have 45 to 188 objects: with 4 splits, chance decides.
    """
    often = "" if n_splits == SPLITS else OFTEN
    leads, compared, lost = {}, 0, []
    uci = standings.datasets("UCI")
    for name in standings.datasets("UCI", "document", "image", "extra"):
        n = n_splits if name in uci else SPLITS
        if (lead := standings.lead(name, "move-labeled", n)) is not None:
            leads[name] = lead
        auto, best = standings.accuracy(name, "auto", n), standings.best_learner(name, n)
        if name in PAPER_DATASETS and auto is not None and best is not None:
            compared += 1
            lost += [f"{name} ({auto:.2f}, {best[1]} {best[0]:.2f})"] if auto < best[0] else []
    if not leads or not compared:
        return []
    behind = ", ".join(f"{name} {lead:+.2f}" for name, lead in leads.items() if lead < -SLACK)
    won = compared - len(lost)
    ridge = f"behind on {behind}" if behind else f"worst {min(leads.values()):+.2f}"
    learners = f"{won} of {compared}" + (f"; behind on {', '.join(lost)}" if lost else "")
    return [MoverGoal(RIDGE + often, not behind, ridge), MoverGoal(LEARNED + often, won >= WINS, learners)]


def _cost_goal(standings: Standings) -> list[MoverGoal]:
    ratios: dict[str, list[float]] = {}
    for (dataset, method, split), cell in standings.cells.items():
        if method == "auto" and split < SPLITS:
            ratios.setdefault(dataset, []).append(cell["total_seconds"] / cell["plain_seconds"])
    medians = {name: median(values) for name, values in sorted(ratios.items())}
    shown = ", ".join(f"{name} {value:.0f}" for name, value in medians.items())
    holds = max(medians.values(), default=0) <= COST
    return [MoverGoal(CHEAP, holds, f"median over the splits: {shown}")] if medians else []


def _harm_goal(standings: Standings) -> list[MoverGoal]:
    leads = {name: standings.lead(name, "original-metric", UCI_SPLITS) for name in standings.datasets("UCI")}
    known = {name: lead for name, lead in leads.items() if lead is not None}
    text = f"on UCI data auto is never more than {HARM} point below Euclidean, over {UCI_SPLITS} splits"
    shown = ", ".join(f"{name} {lead:+.2f}" for name, lead in known.items())
    return [MoverGoal(text, min(known.values()) >= -HARM, shown)] if known else []
