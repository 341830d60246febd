"""Raw results → the hubness page of a data set: the original metric beside Move-labeled, on one split."""

from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..datasets import RECIPES
from ..evaluation import Pair, evaluate_classes
from ..report.choice import with_surface
from ..report.report import Report, Told, make_report
from ..report.shown import Shown
from .blocks import LABELS
from .experiment import fitted
from .reproduce import Cell, Options, loaded, raw_result, split_of

PLAIN, MOVED = "original-metric", "move-labeled"


def page_of(dataset: str, dim: int, options: Options, split: int = 0) -> Report:
    """The report of one split, with what the raw results say was chosen; its figures are theirs."""
    raw = _results(dataset, dim, options, split)
    data = loaded(dataset, dim, options.data_dir, options.rows)
    X, y, queries, truth = (np.asarray(to_numpy(own)) for own in split_of(data, split))
    names = np.array(data.classes)
    alpha = {"alpha": raw[MOVED]["chosen"]["alpha"]}
    stored, model = fitted(MOVED, alpha, X, y, split)
    ks = Pair(*(int(raw[method]["chosen"]["n_neighbors"]) for method in (PLAIN, MOVED)))
    stored = Pair(X, np.asarray(stored))
    evaluation = evaluate_classes(stored, Pair(queries, queries), names[y], names[truth], ks)
    if RECIPES[dataset].note:
        evaluation.notes.append(RECIPES[dataset].note)
    choice = {
        "words": f"λ and k were chosen by cross-validation on the {len(X):,} stored objects of this split.",
        "surface": None,
        "movers": _methods(raw),
        "seconds": [
            {"what": f"choosing, {LABELS[MOVED]}", "seconds": raw[MOVED]["choice_seconds"]},
            {"what": f"learning, {LABELS[MOVED]}", "seconds": raw[MOVED]["fit_seconds"]},
        ],
    }
    choice = with_surface(choice, X, y, model, ks.after)
    title = f"{RECIPES[dataset].title}, split {split}"
    shown = Shown(range(len(X)), range(len(queries)), title=title)
    W = np.asarray(to_numpy(model.W_))
    told = Told(LABELS[MOVED], W, choice, _apply(dataset), _provenance(dataset, dim, split, raw[MOVED]))
    return make_report(evaluation, shown, told)


def _results(dataset: str, dim: int, options: Options, split: int) -> dict[str, dict[str, Any]]:
    """The raw results of every method on a split; ValueError without those that a page compares."""
    cells = {method: Cell(dataset, dim, method, split) for method in LABELS}
    found = {method: raw_result(cell.path(options.out)) for method, cell in cells.items()}
    raw = {method: own for method, own in found.items() if own is not None and own["status"] == "done"}
    for method in (PLAIN, MOVED):
        if method not in raw:
            raise ValueError(
                f"the page of {dataset} needs the results of {PLAIN} and {MOVED} on split {split}; "
                f"{cells[method].path(options.out)} is not there. Add them to --methods."
            )
    return raw


def write_pages(names: list[str], dim: int, options: Options, folder: Path) -> list[Path]:
    """One page per data set."""
    return [page_of(name, dim, options).save(folder / f"{name}.html") for name in names]


def _methods(raw: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Every method of the tables on this split, by its accuracy in cross-validation."""
    rows = [
        {
            "name": LABELS[method],
            "k": found["chosen"].get("n_neighbors"),
            "score": found.get("cv_accuracy"),
            "error": None,
            "queries": found["n_train"],
            "seconds": found.get("fit_seconds"),
            "chosen": method == MOVED,
            "why_not": "",
        }
        for method, found in raw.items()
    ]
    return sorted(rows, key=lambda row: -(row["score"] or 0))


def _apply(dataset: str) -> dict[str, Any]:
    code = (
        "from hubless import MoveLabeledClassifierCV\n\n"
        "model = MoveLabeledClassifierCV().fit(X, y)\nclasses = model.predict(queries)"
    )
    return {
        "words": "The same on data of your own.",
        "steps": [
            {"title": "In Python", "code": code, "language": "python"},
            {
                "title": "This page again",
                "code": f"hubless reproduce --datasets {dataset} --splits 1 --report pages",
                "language": "sh",
            },
        ],
        "undo": [],
    }


def _provenance(dataset: str, dim: int, split: int, raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("data set", RECIPES[dataset].title),
        ("components", str(dim)),
        ("split", f"{split}, 70 : 30 at random"),
        ("chosen", ", ".join(f"{name} {value:.4g}" for name, value in raw["chosen"].items())),
        ("machine", f"{raw['machine']['processor']}, {raw['machine']['date']}"),
    ]
