"""The hubness page of a data set, from raw results: the original metric beside Move-labeled, one split."""

from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..evaluation import BeforeAfter, evaluate_classes
from ..report.choice import with_surface
from ..report.details import Captions
from ..report.page import check_page
from ..report.report import ModelDescription, Report, instruction, make_report
from ..selection.folds import tried_row
from .datasets import RECIPES
from .experiment import METHODS, fitted
from .names import DATASETS
from .names import METHODS as TITLES
from .raw import Cell, Entry, load
from .reproduce import Options, loaded, split_of

PLAIN, MOVED = "original-metric", "move-labeled"
CODE = """\
from hubless import MoveLabeledClassifierCV

model = MoveLabeledClassifierCV().fit(X, y)
classes = model.predict(queries)"""


def check_pages(names: list[str], folder: Path) -> None:
    """Refuse a folder in which the page of a data set cannot be written."""
    for name in names:
        check_page(folder / f"{name}.html")


def write_pages(names: list[str], dim: int, options: Options, folder: Path) -> list[Path]:
    """Write one page per data set, and return the files."""
    return [page_of(name, dim, options).save(folder / f"{name}.html") for name in names]


def page_of(dataset: str, dim: int, options: Options, split: int = 0) -> Report:
    """Return the report of one split, with the settings of the raw results; its figures are theirs."""
    raw = _results(dataset, dim, options, split)
    data = loaded(dataset, dim, options.data_dir, options.rows)
    X, y, queries, truth = map(to_numpy, split_of(data, split))
    names = np.array(data.classes)
    moved, model = fitted(MOVED, {"alpha": raw[MOVED]["chosen"]["alpha"]}, X, y, split)
    ks = BeforeAfter(*(int(raw[method]["chosen"]["n_neighbors"]) for method in (PLAIN, MOVED)))
    stored = BeforeAfter(X, np.asarray(moved))
    evaluation = evaluate_classes(stored, BeforeAfter(queries, queries), names[y], names[truth], ks)
    if RECIPES[dataset].note:
        evaluation.notes.append(RECIPES[dataset].note)
    description = ModelDescription(
        TITLES[MOVED],
        to_numpy(model.W_),
        with_surface(_choice(raw, len(X)), X, y, model, ks.after),
        _apply(dataset),
        _provenance(dataset, dim, split, raw[MOVED]),
    )
    title = f"{DATASETS[dataset]}, split {split}"
    return make_report(evaluation, Captions(range(len(X)), range(len(queries)), title=title), description)


def _results(dataset: str, dim: int, options: Options, split: int) -> dict[str, Entry]:
    """Return the raw results of every method on a split; ValueError without those that a page compares."""
    cells = {method: Cell(dataset, dim, method, split) for method in METHODS}
    entries = {method: load(options.out, cell.name()) for method, cell in cells.items()}
    raw = {method: entry for method, entry in entries.items() if entry and entry["status"] == "done"}
    for method in (PLAIN, MOVED):
        if method not in raw:
            raise ValueError(
                f"the page of {dataset} needs the results of {PLAIN} and {MOVED} on split {split}; "
                f"{options.out / cells[method].name()} has none. Run both: --methods {PLAIN} {MOVED}."
            )
    return raw


def _choice(raw: dict[str, Entry], n: int) -> dict[str, Any]:
    """Return what the page says of the choice: every method on this split, by its accuracy in the folds."""
    tried = [
        tried_row(
            TITLES[method],
            entry["cv_accuracy"],
            nan,
            entry["n_train"],
            chosen=method == MOVED,
            k=entry["chosen"]["n_neighbors"],
            seconds=entry["fit_seconds"],
        )
        for method, entry in raw.items()
    ]
    return {
        "words": f"λ and k were chosen by cross-validation on the {n:,} stored objects of this split.",
        "movers": sorted(tried, key=lambda row: -row["score"]),
        "seconds": [
            {"what": f"{what}, {TITLES[MOVED]}", "seconds": raw[MOVED][field]}
            for what, field in (("choosing", "choice_seconds"), ("learning", "fit_seconds"))
        ],
    }


def _apply(dataset: str) -> dict[str, Any]:
    command = f"hubless reproduce --datasets {dataset} --splits 1 --report pages"
    return {
        "words": "To do the same with your data:",
        "steps": [instruction("In Python", CODE), instruction("Make this page again", command, "sh")],
    }


def _provenance(dataset: str, dim: int, split: int, raw: Entry) -> list[tuple[str, str]]:
    return [
        ("data set", DATASETS[dataset]),
        ("components", str(dim)),
        ("split", f"{split}, 70 : 30 at random"),
        ("chosen", ", ".join(f"{name} {value:.4g}" for name, value in raw["chosen"].items())),
        ("machine", f"{raw['machine']['processor']}, {raw['machine']['date']}"),
    ]
