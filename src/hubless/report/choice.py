"""How a model was chosen, as a page tells it: the surface of λ and k, every mover tried, the time."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..candidates import name, steps
from ..classifier_cv import MoveLabeledClassifierCV
from ..movers import MoveLabeled, Mover
from ..race import tried
from ..solve import Penalty

SAMPLE = 2000  # objects that a surface is measured on, where the model has none of its own
PAPER = "accuracy of the paper's map, cross-validated"


def choice_of(model: Any) -> dict[str, Any]:
    """What a fitted classifier tells of its choice."""
    if not isinstance(model, MoveLabeledClassifierCV):
        words = f"{name(model.mover_)} was given; nothing was chosen."
        return {"words": words, "surface": None, "movers": [], "seconds": []}
    table = model.cv_results_
    if "mover" not in table:
        return {
            "words": model.explain(),
            "surface": surface_of(model),
            "movers": _penalties(model),
            "seconds": [],
        }
    rows = tried(table, name(model.mover_))
    seconds = [{"what": "trying all settings", "seconds": sum(row["seconds"] for row in rows)}]
    return {"words": model.explain(), "surface": None, "movers": rows, "seconds": seconds}


def _penalties(model: MoveLabeledClassifierCV) -> list[dict[str, Any]]:
    """Of a grid of λ, each with its best k; the best first."""
    scores = np.nanmean(to_numpy(model.scores_), axis=0)  # (targets, alphas, ks)
    errors = np.nanstd(to_numpy(model.scores_), axis=0) / np.sqrt(len(model.scores_))
    grid = model.grid_
    rows: list[dict[str, Any]] = []
    chosen = (model.n_targets_, surface_of(model)["chosen"][0])
    for t, a in np.ndindex(scores.shape[:2]):
        k = int(np.nanargmax(scores[t, a]))
        rows.append(
            {
                "name": f"MoveLabeled(alpha={grid['alpha'][a]:.3g} scale, n_targets={grid['n_targets'][t]})",
                "k": int(grid["n_neighbors"][k]),
                "score": float(scores[t, a, k]),
                "error": float(errors[t, a, k]),
                "queries": None,
                "seconds": None,
                "chosen": (grid["n_targets"][t], a) == chosen,
                "why_not": "",
            }
        )
    return sorted(rows, key=lambda row: (-row["score"], not row["chosen"]))


def surface_of(model: MoveLabeledClassifierCV) -> dict[str, Any]:
    """The scores of a grid of λ and k that a fitted model has, for the number of targets it chose."""
    grid = model.grid_
    place = grid["n_targets"].index(model.n_targets_)
    scores = np.nanmean(to_numpy(model.scores_), axis=0)[place].T  # (ks, alphas)
    k = grid["n_neighbors"].index(model.n_neighbors_)
    alpha = int(np.flatnonzero(scores[k] >= np.nanmax(scores) - 1e-12)[-1])  # equal ones go to the larger λ
    relative = model.alphas is None
    return surface(
        ("λ / mean eigenvalue" if relative else "λ", grid["alpha"], True),
        ("neighbours k", grid["n_neighbors"]),
        scores,
        PAPER,
        (alpha, k),
        "The ringed point was chosen.",
    )


def with_surface(
    choice: dict[str, Any], X: Any, y: Any, mover: Mover, k: int, seed: int = 0
) -> dict[str, Any]:
    """A choice with a surface, measured here where it has none, and the time that took."""
    if choice["surface"] is not None:
        return choice
    started = perf_counter()
    found = measured_surface(X, y, mover, k, seed)
    spent = {"what": "measuring λ × k for this page", "seconds": perf_counter() - started}
    return {**choice, "surface": found, "seconds": [*choice["seconds"], spent]}


def measured_surface(X: Any, y: Any, mover: Mover, k: int, random_state: int = 0) -> dict[str, Any] | None:
    """The surface of the paper's map on some of the objects, for a model that has none; None if there is
    nothing to learn from. The ring is at what the model uses, or at the best where it moves another way.
    """
    X, y = to_numpy(X), to_numpy(y)
    rows = np.arange(len(X))
    if len(X) > SAMPLE:
        rows = np.sort(np.random.default_rng(random_state).choice(len(X), SAMPLE, replace=False))
    try:
        model = MoveLabeledClassifierCV(cv=3, random_state=random_state).fit(X[rows], y[rows])
    except ValueError:  # no two objects of a class
        return None
    found, own = surface_of(model), steps(mover)
    told = f"Measured for this page on {len(rows):,} items."
    if len(own) == 1 and isinstance(own[0], MoveLabeled):
        alphas, ks = (np.array(found[axis]["values"], dtype=float) for axis in "xy")
        alpha = max(_relative(own[0], X, y), alphas[0] / 10)  # a λ of 0 has no place on a log axis
        nearest = [np.abs(np.log(alphas / alpha)).argmin(), np.abs(ks - k).argmin()]
        return {
            **found,
            "chosen": [int(i) for i in nearest],
            "words": f"{told} The ring is the point nearest to the model.",
        }
    return {**found, "words": f"{told} The ring is the best point; the model moves another way."}


# λ over the mean eigenvalue of XKXᵀ
def _relative(mover: MoveLabeled, X: np.ndarray, y: np.ndarray) -> float:
    """λ of a mover as the surface counts it."""
    if isinstance(mover.alpha, Penalty) and mover.alpha.relative:
        return float(mover.alpha.value)
    if mover.alpha == "scale":
        return 1.0
    unit = MoveLabeled("scale", mover.n_targets, center=mover.center).fit(X, y).alpha_
    return float(mover.alpha_ / unit)


def surface(
    x: tuple[str, Any, bool], y: tuple[str, Any], scores: np.ndarray, measure: str, chosen: Any, words: str
) -> dict[str, Any]:
    """Scores over two axes; `scores` has a row per value of y."""
    return {
        "x": {"title": x[0], "values": list(x[1]), "log": x[2]},
        "y": {"title": y[0], "values": list(y[1])},
        "score": scores,
        "measure": measure,
        "chosen": [int(place) for place in chosen],
        "words": words,
    }


def choice_of_facts(learned: Mapping[str, Any]) -> dict[str, Any]:
    """What a model for an index tells of its choice; models of before kept less."""
    rows = learned.get("tried")
    seconds = learned.get("seconds")
    return {
        "words": str(learned.get("chosen by", "")),
        "surface": learned.get("surface"),
        "movers": rows if isinstance(rows, list) else [],
        "seconds": [] if seconds is None else [{"what": "choosing and learning", "seconds": seconds}],
    }
