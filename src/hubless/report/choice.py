"""How a model was chosen: the scores over λ and k, every mover that was tried, the time."""

from collections.abc import Mapping
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..classifier_cv import MoveLabeledClassifierCV
from ..movers import MoveLabeled, Mover
from ..selection.candidates import check_movers, name, settings_by_name, steps
from ..selection.explain import tried_rows
from ..selection.folds import TIE, mean_and_error, tried_row
from ..solve import Penalty, check_alpha

SAMPLE = 2000  # objects that a surface is measured on, where the model has none


def choice_of(model: Any) -> dict[str, Any]:
    """Return how a fitted classifier was chosen."""
    if not isinstance(model, MoveLabeledClassifierCV):
        return {"words": f"{name(model.mover_)} was given, so nothing had to be chosen."}
    if "mover" not in model.cv_results_:  # a grid of λ and k, not a race of movers
        return {"words": model.explain(), "surface": _surface_of(model), "movers": _penalties(model)}
    rows = tried_rows(model.cv_results_, name(model.mover_))
    seconds = {"what": "trying all settings", "seconds": sum(row["seconds"] for row in rows)}
    return {"words": model.explain(), "movers": rows, "seconds": [seconds]}


def choice_of_repair(learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a model for an index was chosen, from its facts."""
    rows, seconds = learned.get("tried"), learned.get("seconds")
    return {
        "words": str(learned.get("chosen by", "")),
        "surface": learned.get("surface"),
        "movers": rows if isinstance(rows, list) else [],
        "seconds": [] if seconds is None else [{"what": "choosing and learning", "seconds": seconds}],
    }


def _penalties(model: MoveLabeledClassifierCV) -> list[dict[str, Any]]:
    """Return every λ of a grid with its best k, the best first."""
    n_folds, *shape = model.scores_.shape
    is_relative = model.alphas is None  # by default multiples of the mean eigenvalue
    scores = model.cv_results_["mean_test_score"].reshape(shape)  # (targets, alphas, ks)
    errors = model.cv_results_["std_test_score"].reshape(shape) / np.sqrt(n_folds)
    grid, rows = model.grid_, []
    chosen = (grid["n_targets"].index(model.n_targets_), _surface_of(model)["chosen"][0])
    of_folds = to_numpy(model.scores_)  # (folds, targets, alphas, ks)
    of_choice = of_folds[:, *chosen, grid["n_neighbors"].index(model.n_neighbors_)]
    for t, a in np.ndindex(scores.shape[:2]):
        k = int(np.nanargmax(scores[t, a]))
        setting = _setting(Penalty(grid["alpha"][a], is_relative), grid["n_targets"][t])
        apart = of_choice - of_folds[:, t, a, k]
        figures, voters = (scores[t, a, k], errors[t, a, k], None), int(grid["n_neighbors"][k])
        behind = mean_and_error(apart[~np.isnan(apart)])
        rows.append(tried_row(setting, *figures, chosen=(t, a) == chosen, k=voters, behind=behind))
    return sorted(rows, key=lambda row: (-row["score"], not row["chosen"]))


def _setting(penalty: Penalty, n_targets: int) -> str:
    """Return the name of the paper's mover with these parameters."""
    return f"MoveLabeled({penalty}, n_targets={n_targets})"


def tried_settings(model: Any, X: np.ndarray) -> dict[str, Mover]:
    """Return what a classifier chose among, by the names of `choice_of`; nothing where it did not choose."""
    if not isinstance(model, MoveLabeledClassifierCV):
        return {}
    if "mover" in model.cv_results_:
        return settings_by_name(X, check_movers(model.mover) or [])
    is_relative, settings = model.alphas is None, {}
    for alpha, n_targets in product(model.grid_["alpha"], model.grid_["n_targets"]):
        penalty = Penalty(float(alpha), is_relative)
        mover = MoveLabeled(penalty, int(n_targets), center=model.center)
        settings[_setting(penalty, n_targets)] = mover
    return settings


def _surface_of(model: MoveLabeledClassifierCV) -> dict[str, Any]:
    """Return the scores of a fitted model over λ and k, for the number of targets that it chose."""
    grid = model.grid_
    t, k = grid["n_targets"].index(model.n_targets_), grid["n_neighbors"].index(model.n_neighbors_)
    scores = model.cv_results_["mean_test_score"].reshape(model.scores_.shape[1:])[t].T  # (ks, alphas)
    alpha = int(np.flatnonzero(scores[k] >= np.nanmax(scores) - TIE)[-1])  # equal ones go to the larger λ
    penalty = "λ (× mean eigenvalue)" if model.alphas is None else "λ"
    return {
        "x": {"title": penalty, "values": list(grid["alpha"]), "log": True},
        "y": {"title": "neighbours k", "values": list(grid["n_neighbors"])},
        "score": scores,
        "measure": "accuracy of the paper's map, cross-validated",
        "chosen": [alpha, k],
        "words": "The ring marks the setting that was chosen.",
    }


def with_surface(
    choice: dict[str, Any], X: Any, y: Any, mover: Mover, k: int, random_state: int = 0
) -> dict[str, Any]:
    """Return a choice with a surface, measured here where it has none, and the time that took."""
    if choice.get("surface") is not None:
        return choice
    started = perf_counter()
    surface = measure_surface(to_numpy(X), to_numpy(y), mover, k, random_state)
    spent = {"what": "measuring λ × k for this page", "seconds": perf_counter() - started}
    return {**choice, "surface": surface, "seconds": [*choice.get("seconds", []), spent]}


def measure_surface(
    X: np.ndarray, y: np.ndarray, mover: Mover, k: int, random_state: int
) -> dict[str, Any] | None:
    """Measure the surface of the paper's map on a sample of the objects; None if there is nothing to learn.

    The ring is at the setting of the model, or at the best one where the model moves in another way.
    """
    rows = np.arange(len(X))
    if len(X) > SAMPLE:
        rows = np.sort(np.random.default_rng(random_state).choice(len(X), SAMPLE, replace=False))
    try:
        model = MoveLabeledClassifierCV(cv=3, random_state=random_state).fit(X[rows], y[rows])
    except ValueError:  # no two objects of a class
        return None
    if not hasattr(model, "grid_"):  # nothing could be compared
        return None
    surface, movers = _surface_of(model), steps(mover)
    words = f"Measured for this page on {len(rows):,} items. The ring marks the"
    if len(movers) != 1 or not isinstance(movers[0], MoveLabeled):
        return {**surface, "words": f"{words} best setting; the model moves in another way."}
    alphas, ks = (np.array(surface[axis]["values"], dtype=float) for axis in "xy")
    alpha = max(_relative_penalty(movers[0], X, y), alphas[0] / 10)  # a λ of 0 has no place on a log axis
    chosen = [int(np.abs(np.log(alphas / alpha)).argmin()), int(np.abs(ks - k).argmin())]
    return {**surface, "chosen": chosen, "words": f"{words} setting nearest to that of the model."}


# λ over the mean eigenvalue of XKXᵀ
def _relative_penalty(mover: MoveLabeled, X: np.ndarray, y: np.ndarray) -> float:
    """Return λ of a mover relative to the mean eigenvalue, as on the axis of the surface."""
    penalty = check_alpha("alpha", mover.alpha)
    if penalty.relative:
        return float(penalty.value)
    unit = MoveLabeled("scale", mover.n_targets, center=mover.center).fit(X, y).alpha_
    return float(mover.alpha_ / unit)
