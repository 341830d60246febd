"""Few labels and data with faults: a figure, tables and goals, made from the raw cells."""

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING

from hubless.paper.results import describe_machine, mean_over_splits
from hubless.paper.table_figures import WIDTH, draw_one
from hubless.plot.style import BLACK, BLUE, GREEN, ORANGE, VERMILION

from .curve_cells import Cells
from .curves import ALL, DATASETS, DRAWS, FAULTS, MADE, TITLES
from .markdown import grid
from .mover_goals import SLACK, MoverGoal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = "learning-curves.svg"
STYLES = {
    "euclidean": (BLACK, "o"),
    "ridge": (VERMILION, "D"),
    "auto": (BLUE, "s"),
    "lda": (GREEN, "^"),
    "logistic": (ORANGE, "v"),
}
SHOWN = DATASETS | {MADE: MADE}  # made data only after a quick look
FAILED = "error"
ALONE = "with 1 object per class auto and Move-labeled answer as Euclidean k-NN"
FEW = f"with 2 or 3 objects per class auto is at or above Move-labeled minus {SLACK} point"
SOUND = "auto is at or above Euclidean k-NN on data with faults, each fault on each data set"
INTRODUCTION = """\
Accuracy in per cent with a few labeled objects of each class, drawn from the training part: mean ± standard \
error of 5 draws, of 2 with 10 objects per class and with all. A draw has the split of its number in the \
tables above, and up to 3,000 queries. LDA needs more objects than classes. Made by

    python -m benchmarks curves
"""
FAULTY = """\
Accuracy in per cent, mean of 2 draws of up to 4,000 labeled objects and 3,000 queries. Wrong labels are in \
the training part alone. With Zipf-sized classes, the class of rank r keeps a share 1/r of its objects, at \
least one, in both parts, ranks at random. The stretched column is a random one, for objects and queries \
alike. Features are given to every method as they are: none standardizes them.
"""


def section(cells: Cells) -> list[str]:
    """Return the lines of the page, without lines where nothing was measured."""
    if not cells.entries:
        return []
    lines = ["## Few labels\n", INTRODUCTION]
    lines.append(f"![Accuracy over the objects per class, a panel for each data set.]({FIGURE})\n")
    for dataset in _datasets(cells):
        lines += [f"**{SHOWN[dataset]}**, objects per class\n", *_labels_table(cells, dataset), ""]
    lines += ["## Data with faults\n", FAULTY, *_faults_table(cells), ""]
    machines = sorted({describe_machine(entry) for entry in cells.entries.values()})
    return [*lines, "Machines of these: " + "; ".join(machines) + ".", ""]


def _datasets(cells: Cells) -> list[str]:
    present = {key.dataset for key in cells.entries}
    return [dataset for dataset in SHOWN if dataset in present]


def _methods(cells: Cells) -> dict[str, str]:
    present = {key.method for key in cells.entries}
    return {method: title for method, title in TITLES.items() if method in present}


def _text(cells: Cells, dataset: str, part: str, setting: str, method: str) -> str:
    """Return mean and error over the draws; the word for an error where one failed."""
    if cells.error(dataset, part, setting, method):
        return FAILED
    values = list(cells.accuracies(dataset, part, setting, method).values())
    if not values:
        return "—"
    mean, error = mean_over_splits(values)
    return f"{mean:.1f}" + ("" if error is None or part == "faults" else f" ± {error:.1f}")


def _labels_table(cells: Cells, dataset: str) -> list[str]:
    known = {key.setting for key in cells.entries if key[:2] == (dataset, "labels")}
    sizes = [size for size in DRAWS if size in known]
    rows = [
        [title, *(_text(cells, dataset, "labels", size, method) for size in sizes)]
        for method, title in _methods(cells).items()
    ]
    return grid(["", *sizes], rows)


def _faults_table(cells: Cells) -> list[str]:
    methods = _methods(cells)
    rows = [
        [f"{SHOWN[dataset]}, {fault.title}"]
        + [_text(cells, dataset, "faults", slug, method) for method in methods]
        for dataset in _datasets(cells)
        for slug, fault in FAULTS.items()
    ]
    return grid(["", *methods.values()], rows)


# --- the figure


def draw(cells: Cells) -> dict[str, bytes]:
    """Draw the learning curves; return the figure by the name of its file, nothing without cells."""
    return {FIGURE: draw_one(_panels, cells)} if cells.entries else {}


def _panels(figure: "Figure", cells: Cells) -> None:
    """Accuracy over the objects per class, on a logarithmic axis; a panel per data set."""
    datasets, methods = _datasets(cells), _methods(cells)
    figure.set_size_inches(WIDTH, 3.6)
    for axes, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
        places = _places(cells, dataset)
        for method in methods:
            values = {
                place: [*cells.accuracies(dataset, "labels", size, method).values()]
                for size, place in places.items()
            }
            points = [(place, *mean_over_splits(drawn)) for place, drawn in values.items() if drawn]
            colour, marker = STYLES[method]
            errors = [error or 0 for _, _, error in points]
            axes.errorbar(
                [place for place, _, _ in points],
                [mean for _, mean, _ in points],
                yerr=errors,
                color=colour,
                marker=marker,
                markersize=4,
                lw=2.2 if method == "auto" else 1.2,
                label=methods[method],
            )
        axes.set_xscale("log")
        axes.set_xticks([*places.values()], labels=[*places])
        axes.xaxis.minorticks_off()
        axes.grid(visible=True, axis="y")
        axes.set_title(SHOWN[dataset], loc="left", fontsize=10, fontweight="bold")
        axes.set_xlabel("objects per class")
    figure.axes[0].set_ylabel("accuracy in per cent")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(methods), frameon=False)


def _places(cells: Cells, dataset: str) -> dict[str, float]:
    """Return the place of each number of objects on the axis: all are as many as there are on average."""
    places: dict[str, float] = {}
    for size in DRAWS:
        found = [e for key, e in cells.entries.items() if key[:3] == (dataset, "labels", size)]
        if found:
            per_class = fmean(entry["n_train"] / entry["n_classes"] for entry in found)
            places[size] = per_class if size == ALL else float(size)
    return places


# --- goals


def curve_goals(cells: Cells) -> list[MoverGoal]:
    """Return the goals that auto was measured for."""
    datasets = [d for d in _datasets(cells) if any(k[0] == d and k.method == "auto" for k in cells.entries)]
    if not datasets:
        return []
    alone = [lead for d in datasets for lead in _differences(cells, d, "labels", ["1"], "euclidean")]
    paper = [lead for d in datasets for lead in _differences(cells, d, "labels", ["1"], "euclidean", "ridge")]
    few = [lead for d in datasets for lead in _differences(cells, d, "labels", ["2", "3"], "ridge")]
    sound = [lead for d in datasets for lead in _differences(cells, d, "faults", FAULTS, "euclidean")]
    is_same = all(lead is not None and abs(lead) < 0.05 for _, lead in [*alone, *paper])
    texts = [f"auto {_shown(alone)}", f"Move-labeled {_shown(paper)}"]
    return [
        MoverGoal(ALONE, is_same, "; ".join(texts)),
        MoverGoal(FEW, all(lead is not None and lead >= -SLACK for _, lead in few), _shown(few)),
        MoverGoal(SOUND, all(lead is not None and lead >= 0 for _, lead in sound), _shown(sound)),
    ]


def _differences(
    cells: Cells,
    dataset: str,
    part: str,
    settings: "Mapping[str, object] | list[str]",
    base: str,
    method: str = "auto",
) -> list[tuple[str, float | None]]:
    """Return what it is and the mean difference over the draws that both have; None where one failed."""
    result: list[tuple[str, float | None]] = []
    for setting in settings:
        ours, other = (cells.accuracies(dataset, part, setting, name) for name in (method, base))
        label = f"{SHOWN[dataset]} {FAULTS[setting].title if part == 'faults' else f'with {setting}'}:"
        failed = any(cells.error(dataset, part, setting, name) for name in (method, base))
        if failed or (ours and ours.keys() == other.keys()):
            result.append((label, None if failed else fmean(ours[draw] - other[draw] for draw in ours)))
    return result


def _shown(leads: list[tuple[str, float | None]]) -> str:
    return ", ".join(f"{label} {FAILED if lead is None else f'{lead:+.1f}'}" for label, lead in leads)
