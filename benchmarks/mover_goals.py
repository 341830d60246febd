"""The goals of auto, and what it reached, from the raw results of all methods."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from hubless.paper.names import PAPER_DATASETS
from hubless.paper.published import DIMENSION
from hubless.paper.raw import Entry
from hubless.paper.results import mean_over_splits, read

from .linear import LINEAR


def listed(titles: Iterable[str]) -> str:
    """Return a list in words: a, b and c."""
    *first, last = titles
    return f"{', '.join(first)} and {last}" if first else last


SPLITS = 4
LEARNERS = {"lmnn": "LMNN", "itml": "ITML", "dml-eig": "DML-eig", "mmc": "MMC", "nca": "NCA"}
OTHERS = {"original-metric": "Euclidean", "move-labeled": "Move-labeled", **LEARNERS, **LINEAR}
TARGETS = {
    "news": 88.8,
    "reuters": 94.2,
    "tdt": 97.5,
    "rcv": 95.8,
    "awa": 45.5,
    "cub": 73.0,
    "sun": 22.0,
    "apy": 83.3,
    "banking77": 92.8,
}
SLACK = 0.3  # points that auto may be behind the paper's mover
GAIN = 2.0  # points that it must be ahead on average
WINS = 11  # data sets of the paper's 13 on which no learner may be ahead
NEAR = 0.2  # points that it may be behind the best of all others on documents and images
AHEAD = 6  # of documents, images and banking77, on which it must be ahead of all others
COST = 12  # plain fits and predicts that choosing may cost on documents and images
TWICE = 2 * SPLITS  # of the data sets on which 4 splits fall short
UCI_SPLITS, MORE_SPLITS = 20, 40

RIDGE = f"auto is at or above the paper's ridge minus {SLACK} point on every data set"
LEARNED = f"auto is at or above the best of {listed(LEARNERS.values())} on {WINS} of 13 data sets"
OFTEN = f", with {UCI_SPLITS} splits of the UCI data"
HARMLESS = (  # a template: the number of splits is filled in
    f"on UCI data auto is never behind the better of Euclidean and the paper's ridge by more than {SLACK} "
    "point, over {n} splits"
)
CLOSE = f"auto is ahead of the best of all others, or within {NEAR} point, on every document and image set"
FIRST = f"auto is ahead of the best of all others on {AHEAD} of 9 documents, images and banking77"
CHEAP = f"auto costs at most {COST} × one plain fit and predict of the same data on documents and images"

SMALL = """\
The test parts of these UCI sets have 45 to 188 objects: one object is up to 0.6 point of a mean over 4 \
splits. With so few training objects auto finds no difference beyond chance and does not move."""
AFTERWARDS = """\
Which of the two is better is known only afterwards: over 50 other splits, not moving at all would be 0.5 \
behind on iris and 0.3 on glass, auto 0.4 and 0.3, with 1.0 more on balance-scale and 0.5 on wine; asking \
for 2, 2.5 or 3 standard errors in place of 1.5 made none of the four better by more than 0.1."""
HARDER = """\
On nine other splits of Reuters auto had 94.5 on average, on four of aPY 83.6: which objects are in the test \
part matters more than the settings."""
UNREACHED = "No other method measured here reaches it either."
REASONS = {  # why a goal was not reached
    "auto reaches 88.8 on news": UNREACHED,
    "auto reaches 94.2 on reuters": UNREACHED,
    "auto reaches 83.3 on apy": UNREACHED,
    "auto reaches 94.2 on reuters, over 8 splits": HARDER,
    "auto reaches 83.3 on apy, over 8 splits": HARDER,
    HARMLESS.replace("{n}", str(UCI_SPLITS)): AFTERWARDS,
    HARMLESS.replace("{n}", str(MORE_SPLITS)): AFTERWARDS,
    RIDGE: SMALL,
    RIDGE + OFTEN: SMALL,
    LEARNED: SMALL,
    LEARNED + OFTEN: """\
On balance-scale, where the class depends on which of two products of features is larger, NCA is far ahead \
of every other method, movers included. On the other UCI sets auto seldom moves, for lack of evidence.""",
    CHEAP: """\
Logistic regressions of `Steer` cost the more the more classes there are: on CUB, with 200, they take the \
time of 6 plain fits and predicts.""",
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

    def best(
        self, dataset: str, methods: Mapping[str, str], n_splits: int = SPLITS
    ) -> tuple[float, str] | None:
        """Return the accuracy in per cent and the title of the best of these methods with all splits."""
        accuracies = {title: self.accuracy(dataset, name, n_splits, True) for name, title in methods.items()}
        return max(((value, title) for title, value in accuracies.items() if value is not None), default=None)

    def costs(self, *kinds: str) -> dict[str, float]:
        """Return the median over the splits of auto's time over that of one plain fit and predict."""
        ratios: dict[str, list[float]] = {name: [] for name in self.datasets(*kinds)}
        for (dataset, method, split), cell in self.cells.items():
            if dataset in ratios and method == "auto" and split < SPLITS:
                ratios[dataset].append(cell["cost"])
        return {name: median(values) for name, values in ratios.items() if values}

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
                if "plain_seconds" in cell:  # what choosing costs, in plain fits and predicts
                    cell = cell | {"cost": cell["total_seconds"] / cell["plain_seconds"]}
                cells.setdefault((cell["dataset"], cell["method"], cell["split"]), cell)
    return Standings(cells)


class MoverGoal(NamedTuple):
    """Something to reach, whether it was reached, and the figures."""

    text: str
    holds: bool
    figures: str


def goals(standings: Standings, wide: Standings) -> list[MoverGoal]:
    """Return the goals that there are results for; `wide` has CUB's 1280 columns."""
    made = [*_target_goals(standings), *_target_goals(wide, ", with all 1280 columns")]
    made += _target_goals(standings, f", over {TWICE} splits", TWICE)
    made += [*_best_goals(standings), *_harm_goal(standings, UCI_SPLITS), *_harm_goal(standings, MORE_SPLITS)]
    made += [*_by_splits(standings, SPLITS), *_by_splits(standings, UCI_SPLITS)]
    large = [standings.lead(name, "move-labeled", SPLITS) for name in standings.datasets("document", "image")]
    if gains := [gain for gain in large if gain is not None]:
        text = f"at least {GAIN:g} points above the paper's ridge on average over documents and images"
        made.append(MoverGoal(text, fmean(gains) >= GAIN, f"{fmean(gains):+.2f}"))
    return [*made, *_cost_goal(standings)]


def _target_goals(standings: Standings, where: str = "", n_splits: int = SPLITS) -> list[MoverGoal]:
    made = []
    for name, target in TARGETS.items():
        value = standings.accuracy(name, "auto", n_splits, of_all=n_splits != SPLITS)
        if value is not None:
            text = f"auto reaches {target} on {name}{where}"
            made.append(MoverGoal(text, round(value, 1) >= target, f"{value:.2f}"))
    return made


def _best_goals(standings: Standings) -> list[MoverGoal]:
    """Compare auto with the best of the learners, the linear classifiers, Euclidean and the paper's mover."""
    leads: dict[str, float] = {}
    figures = []
    large = standings.datasets("document", "image")
    for name, title in standings.datasets("document", "image", "extra").items():
        auto, best = standings.accuracy(name, "auto", of_all=True), standings.best(name, OTHERS)
        if auto is not None and best is not None:
            leads[name] = auto - best[0]
            figures.append(f"{title} {leads[name]:+.2f} ({best[1]} {best[0]:.2f})")
    if not leads:
        return []
    is_close = all(leads[name] >= -NEAR for name in large if name in leads)
    n_ahead = sum(lead > 0 for lead in leads.values())
    shown = f"{n_ahead} of {len(leads)}"
    return [MoverGoal(CLOSE, is_close, ", ".join(figures)), MoverGoal(FIRST, n_ahead >= AHEAD, shown)]


def _harm_goal(standings: Standings, n_splits: int) -> list[MoverGoal]:
    leads = {}
    rivals = {method: OTHERS[method] for method in ("original-metric", "move-labeled")}
    for name in standings.datasets("UCI"):
        auto = standings.accuracy(name, "auto", n_splits, of_all=True)
        best = standings.best(name, rivals, n_splits)
        if auto is not None and best is not None:
            leads[name] = auto - best[0]
    shown = ", ".join(f"{name} {lead:+.2f}" for name, lead in leads.items())
    text = HARMLESS.replace("{n}", str(n_splits))
    return [MoverGoal(text, min(leads.values()) >= -SLACK, shown)] if leads else []


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
        auto, best = standings.accuracy(name, "auto", n), standings.best(name, LEARNERS, n)
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
    costs = standings.costs("document", "image")
    shown = ", ".join(f"{name} {value:.0f}" for name, value in costs.items())
    holds = max(costs.values(), default=0) <= COST
    return [MoverGoal(CHEAP, holds, f"median over the splits: {shown}")] if costs else []
