"""Learn how to move the items of an index, from their labels or from pairs of queries and items.

What is chosen, is chosen on held-out queries: from labels by `MoveLabeledClassifierCV`, where these are items
of another fold; from pairs as `held_out.py` says.
"""

from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from ..candidates import learned_in_parts, name, steps
from ..classifier_cv import MoveLabeledClassifierCV, plain_neighbors
from ..evaluation import NORMAL, Figure, figure
from ..inputs import label_text
from ..movers import Chain, MoveLabeled, Mover, Scale, Stay, Unit
from ..race import tried
from ..solve import Penalty
from ..stores.store import StoreError
from .collection import Collection, are_unit
from .held_out import STAY, K, Lesson, Setting, ask_held_out, choose
from .pairs import Judged
from .repair import Own, Repair

SEEN = 100_000  # ids of items with queries of their own that a model names


def movers_for_labels(metric: str) -> list[Mover]:
    """What is tried: movers that need neither one more column nor the items themselves in the model."""
    if metric == "l2":
        return [Stay(), *learned_in_parts()]
    found = [mover for mover in learned_in_parts() if not isinstance(mover, Scale)]
    return [Stay(), *(Chain([mover, Unit()]) for mover in found)]


def learn_from_labels(items: Collection, label: str, *, mover: str = "auto", random_state: int = 0) -> Repair:
    """The mover that answers held-out items best, learned from all of them.

    Parameters
    ----------
    items : Collection with the column `label`
    label : str
        Items without a label (None or "") are not learned from; a mover that asks for one leaves them.
    mover : "auto" or "ridge"
        The best of a dozen, not to move among them; or the paper's, with λ chosen.
    """
    items = items.labeled(label)
    X, y = items.vectors, np.array([label_text(value) for value in items.columns[label]])
    if len(y) < 2 or len(set(y.tolist())) < 2:
        raise StoreError(f"column {label!r} has {len(set(y.tolist()))} classes; there must be two or more.")
    started = perf_counter()
    movers = movers_for_labels(items.metric) if mover == "auto" else _ridges(items.metric)
    chooser = MoveLabeledClassifierCV(mover=movers, lift=False, random_state=random_state).fit(X, y)
    parts = [step for step in steps(chooser.mover_) if not isinstance(step, Unit)]
    chosen = clone(parts[0]) if parts else Stay()
    if isinstance(chosen, MoveLabeled):
        chosen.set_params(keep_moments=True)
    chosen.fit(X, y)
    facts: dict[str, Any] = {
        "data": items.about(),
        "learned": {
            "from": "labels",
            "column": label,
            "n": len(y),
            "classes": len(chooser.classes_),
            "mover": name(chosen),
            "n_neighbors": int(chooser.n_neighbors_),
            "n_neighbors before": plain_neighbors(chooser) or _plain_neighbors(X, y, random_state),
            "chosen by": chooser.explain(),
            "tried": tried(chooser.cv_results_, name(chooser.mover_)),
            "seconds": perf_counter() - started,
        },
    }
    facts["figures"] = _label_figures(chooser)
    return Repair(chosen, items.metric, label if chosen._uses_labels else None, None, facts)


def _plain_neighbors(X: np.ndarray, y: np.ndarray, random_state: int) -> int:
    """Neighbours that are best where items are not moved."""
    return int(MoveLabeledClassifierCV(mover=Stay(), random_state=random_state).fit(X, y).n_neighbors_)


def _label_figures(chooser: MoveLabeledClassifierCV) -> list[dict[str, Any]]:
    """Held-out accuracy of not moving, on the queries it was asked, and what the choice adds there."""
    table = chooser.cv_results_
    stay = np.flatnonzero(table["mover"] == "Stay()")
    if not len(stay):
        return []
    before, ahead, error, n = (
        table[key][stay[0]].item()
        for key in ("mean_test_score", "behind_choice", "standard_error", "n_queries")
    )
    spread = NORMAL * error
    return [
        asdict(
            Figure(
                "accuracy, held out, chosen by it",
                "all",
                n,
                before,
                before + ahead,
                ahead - spread,
                ahead + spread,
            )
        )
    ]


def _ridges(metric: str) -> list[Mover]:
    """The paper's mover for a grid of λ."""
    grid = [MoveLabeled(Penalty(float(alpha), relative=True)) for alpha in 10.0 ** np.arange(-2, 1.51, 0.5)]
    return [Chain([mover, Unit()]) if metric == "cosine" else mover for mover in grid]


def learn_from_pairs(
    items: Collection,
    judged: Judged,
    *,
    n_folds: int = 5,
    random_state: int = 0,
    progress: bool | None = False,
) -> Repair:
    """The map, and steps of items with queries of their own, that answer held-out queries best.

    Items of length 1 keep it: by L2 too they are learned for as by cosine, which gives them the same answers.
    """
    if are_unit(items.vectors):
        items = items.in_space("cosine")
    started = perf_counter()
    judged = judged._replace(queries=items.comparable(judged.queries))
    answers = ask_held_out(items, judged, n_folds=n_folds, random_state=random_state, progress=progress)
    chosen, why = choose(answers)
    lesson = Lesson(judged, items)
    mover: Mover = Stay().fit(lesson.z, np.zeros(len(lesson.z)))
    if chosen.alpha is not None:
        mover = MoveLabeled(Penalty(chosen.alpha, relative=True), toward="identity", keep_moments=True)
        mover.fit_pairs(lesson.x, lesson.z)
    facts = {
        "data": items.about(),
        "learned": {
            "from": "pairs",
            "n": len(lesson.x),
            "queries": len(judged.queries),
            "items with queries": len(lesson.ids),
            "mover": str(chosen),
            "chosen by": why,
            "tried": answers.tried(chosen),
            "surface": answers.surface(chosen),
            "seconds": perf_counter() - started,
            "seen": lesson.ids if len(lesson.ids) <= SEEN else [],
            "query ids": judged.ids if len(judged.ids) <= SEEN else [],
        },
        "figures": [
            asdict(
                figure(
                    f"nDCG@{K}, held out, chosen by it",
                    part,
                    answers.of(STAY, part),
                    answers.of(chosen, part),
                )
            )
            for part in ("all", "seen", "unseen")
            if len(answers.of(STAY, part)) > 1
        ],
    }
    return Repair(mover, items.metric, None, _own(lesson, items, chosen), facts)


def _own(lesson: Lesson, items: Collection, chosen: Setting) -> Own | None:
    if not chosen.step:
        return None
    ids = np.array([*lesson.ids, None], dtype=object)[:-1]
    goals = lesson.goals(lesson.moved(chosen.alpha, items))
    return Own(ids.astype(items.ids.dtype), goals.astype(np.float32), chosen.step)
