"""The demo, on data that comes with scikit-learn: the paper's methods and the best mover, side by side."""

from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs

from ..classifier_cv import MoveLabeledClassifierCV
from ..report.compare import compare as compare_with_plain
from ..report.report import Report
from ..support.progress import step
from .experiment import MEASURES, Split, split_at_random
from .results import mean_over_splits


def _load_blobs(return_X_y: bool = True) -> Any:  # the signature of scikit-learn's loaders
    return make_blobs(1200, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)


def _load_some_digits(return_X_y: bool = True) -> Any:  # all of them take three times as long
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


DATASETS = {"digits": _load_some_digits, "wine": load_wine, "iris": load_iris, "blobs": _load_blobs}
SHOWN = {
    "original-metric": "Euclidean",
    "move-query": "Move-query",
    "move-labeled": "Move-labeled",
    "auto": "auto",
}

CLOSING = """\
Accuracy is that of k-NN on 30 % of the objects, mean ± standard error over the
splits ({n_splits}); k and λ are chosen by cross-validation on the other 70 %, and
"fit" is the time to learn and move with them chosen. "auto" chooses among some
70 settings of the movers of hubless, including not moving at all.

N10 skewness measures hubs: how unevenly the stored objects occur among the
10 nearest of the queries. Around 1 or below there are hardly any hubs, and
little to repair: digits, wine and iris, with few dimensions. The blobs, ten
Gaussian classes made in 200 dimensions, have hubs: moving the stored objects
removes most of them and answers better; moving the queries makes them worse.
The same was measured on text: on 20 Newsgroups in 300 dimensions, Move-labeled
lifts accuracy from 76 to 81 %, and skewness falls from 22 to 2; auto lifts
accuracy to 89 %.

Next, with your own vectors (one row each, as NumPy saves them; or an index):
  hubless doctor vectors.npy                             are there hubs?
  hubless report vectors.npy --labels labels.npy --open  would moving help?

Read on:
  README.md       ten lines to use this in Python
  docs/repair.md  repair an index: FAISS, LanceDB, pgvector, Qdrant, files
  docs/report.md  what the page shows
  docs/guide.md   every formula beside its function, how to read each measure
  docs/movers.md  the movers, and what each is good for
  docs/results.md the paper's tables, reproduced; hubless reproduce runs them"""


def compare(n_splits: int = 2) -> list[dict[str, Any]]:
    """Return one row per data set and method: mean and standard error over the splits."""
    rows = []
    with step(
        "comparing on digits, wine, iris and blobs", len(DATASETS) * len(SHOWN) * n_splits, "fits"
    ) as comparing:
        for name, method in product(DATASETS, SHOWN):
            splits = [_split(name, seed) for seed in range(n_splits)]
            cells = []
            for seed, split in enumerate(splits):
                cells.append(MEASURES[method](split, seed))
                comparing.update()
            rows.append(_row(name, method, splits[0].X.shape, cells))
    return rows


def report(name: str = "blobs", seed: int = 0) -> Report:
    """Return the report of what hubs do to one of the data sets, and what the paper's map changes."""
    X, y, queries, truth = _split(name, seed)
    title = f"Ten Gaussian classes in {X.shape[1]} dimensions" if name == "blobs" else name
    model = MoveLabeledClassifierCV(random_state=seed)
    return compare_with_plain(model, X, y, queries, truth, title=title)


def _split(name: str, seed: int) -> Split:
    """Return a random split of a data set; wine in z-scores, as in the paper."""
    X, y = DATASETS[name](return_X_y=True)
    return split_at_random(X, y, seed, standardize=name == "wine")


def _row(name: str, method: str, shape: tuple[int, int], cells: list[dict[str, Any]]) -> dict[str, Any]:
    accuracy, error = mean_over_splits([cell["accuracy"] for cell in cells])
    return {
        "dataset": name,
        "objects": shape[0],
        "dimension": shape[1],
        "method": SHOWN[method],
        "accuracy": accuracy,
        "accuracy_standard_error": error,
        "skewness": float(np.mean([cell["skewness"] for cell in cells])),
        "fit_seconds": float(np.median([cell["fit_seconds"] for cell in cells])),
        "splits": len(cells),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as text for a terminal of 80 columns."""
    lines = [f"{'dataset':<8}{'stored':>10}   {'method':<13}{'accuracy':>14}{'N10 skewness':>14}{'fit':>9}"]
    for i, row in enumerate(rows):
        first = i == 0 or rows[i - 1]["dataset"] != row["dataset"]
        name, stored = (row["dataset"], f"{row['objects']} × {row['dimension']}") if first else ("", "")
        error = row["accuracy_standard_error"]
        accuracy = f"{100 * row['accuracy']:.1f}" + ("" if error is None else f" ± {100 * error:.1f}") + " %"
        fit = "none" if row["method"] == "Euclidean" else f"{1000 * row['fit_seconds']:.0f} ms"
        lines += [""] if first else []
        lines.append(
            f"{name:<8}{stored:>10}   {row['method']:<13}{accuracy:>14}{row['skewness']:>14.2f}{fit:>9}"
        )
    return "\n".join([*lines, "", CLOSING.format(n_splits=rows[0]["splits"])])
