"""Report: what hubs do to objects and queries and what moving changes, as figures, a page and a table."""

from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from time import perf_counter
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..download import replacing
from ..evaluation import Evaluation, Pair
from ..plain import as_json
from . import figures as numbers
from .details import changed_rows, counts, details
from .page import LENGTHS, check_ours, render, small
from .places import Drawing, axes_of, draw, lay_out
from .points import DrawnWith, write_points
from .shown import Shown, bounded, cut

STATES = ("before", "after")
PACKAGES = ("hubless", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Told:
    """What a page tells beside what was measured."""

    mover: str  # in words
    W: np.ndarray | None = None  # (d, d), of a map that is one matrix
    choice: dict[str, Any] = field(default_factory=dict)
    apply: dict[str, Any] = field(default_factory=dict)
    provenance: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """Figures before and after, and all that a page of them draws.

    Print it, show it in a notebook, `save` it as a page, or hand it to `hubless.plot`.
    """

    figures: dict[str, Any]  # every number of the page, as JSON has them inside of it
    details: dict[str, Any] = field(repr=False)  # points, texts, cards; arrays are NumPy's
    evaluation: Evaluation = field(repr=False)
    drawn: DrawnWith = field(repr=False)
    model: Any = field(default=None, repr=False)  # fitted, where `compare` was asked

    def save(self, path: Any) -> Path:
        """Write the page: one HTML file that opens without a network.

        A page that is there is replaced; ValueError where the file is another one.
        """
        file = Path(path).expanduser()
        check_ours(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        page = self.html().encode()
        with replacing(file) as new:
            new.write(page)
        return file

    def html(self) -> str:
        """The page."""
        return render(self.figures, self.details)

    def atlas(self, path: Any) -> str:
        """Write a Parquet file for embedding-atlas; the command that opens it. By PCA, of all there is."""
        return write_points(path, self.evaluation, self.drawn)

    def _repr_html_(self) -> str:
        return small(self.figures)

    def __str__(self) -> str:
        told = self.figures["summary"]
        return (
            f"{told['sentence']}\n{told['verdict']['title']}. {told['verdict']['words']}\n{self.evaluation}"
        )


def make_report(evaluation: Evaluation, shown: Shown, told: Told, drawing: Drawing | None = None) -> Report:
    """The report of an evaluation."""
    started, drawing, asked = perf_counter(), drawing or Drawing(), evaluation.asked
    m = len(asked.queries)
    shown.check(len(asked.stored.before), m)
    occurrence = Pair(*(to_numpy(own.occurrence) for own in evaluation.hubness))
    broken, fixed = changed_rows(asked)
    axes = axes_of(asked)
    drawn = draw(occurrence, m, np.concatenate([broken, fixed]), drawing.max_points, drawing.random_state)
    places = lay_out(asked, drawn, axes, drawing.layout, drawing.random_state)
    inside = details(asked, shown, counts(asked, occurrence), drawn, places, drawing.layout, LENGTHS[0][0])
    found = {
        **_about(evaluation, shown),
        "summary": numbers.summary(evaluation, told.mover),
        "hubness": {state: own.as_dict() for state, own in zip(STATES, evaluation.hubness, strict=True)},
        "skyline": numbers.skyline(occurrence),
        "lorenz": numbers.lorenz(occurrence),
        "classes": numbers.classes(asked),
        "changed": numbers.changed(evaluation) | {"shown": {"fixed": len(fixed), "broken": len(broken)}},
        "why": numbers.why(asked, occurrence, axes, told.W),
        "choice": {"words": "", "surface": None, "movers": [], "seconds": [], **told.choice},
        "apply": {"words": "", "steps": [], "undo": [], **told.apply},
        "provenance": told.provenance,
        "versions": versions(),
        "made": datetime.now().strftime("%Y-%m-%d %H:%M"),
    }
    found["choice"]["seconds"] = [
        *found["choice"]["seconds"],
        {"what": "asking all queries, before and after", "seconds": asked.seconds},
        {"what": "measuring and drawing this page", "seconds": perf_counter() - started},
    ]
    found["summary"]["notes"] = [*found["summary"]["notes"], *_without_picture(shown, inside["hubs"])]
    return Report(bounded(as_json(found)), inside, evaluation, DrawnWith(shown, drawing, axes, drawn))


def _without_picture(shown: Shown, hubs: list[dict[str, Any]]) -> list[str]:
    """A note where hubs should have a picture and have none that can be shown."""
    missing = 0 if shown.images is None else sum(hub["thumbnail"] is None for hub in hubs)
    told = f"{missing} of {len(hubs)} hubs on cards have no picture that can be read (PNG, JPEG, GIF, WebP)."
    return [told] if missing else []


def _about(evaluation: Evaluation, shown: Shown) -> dict[str, Any]:
    """What was asked of what, and how much of it there is."""
    asked = evaluation.asked
    n, d = asked.stored.before.shape
    return {
        "format": 1,
        "title": cut(shown.title, 200) or "hubless",
        "task": "pairs" if asked.labels is None else "labels",
        "words": {
            "item": "items",
            "measure": evaluation.figures[0].measure,
            "answered": evaluation.answered,
        },
        "counts": {
            "items": n,
            "queries": len(asked.queries),
            "dimension": d,
            "classes": None if asked.labels is None else len(numbers.class_names(asked)),
            "k": asked.ks.after,
            "k_before": asked.ks.before,
            "hub_k": asked.found.before.shape[1],
            "metric": asked.metric,
        },
    }


def versions() -> dict[str, str]:
    """Versions of what computed the page."""
    found = {"python": python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a checkout that is not installed
            found[package] = "unknown"
    return found
