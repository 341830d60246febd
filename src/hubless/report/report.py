"""Report: what hubs do to objects and queries and what moving changes, as figures, a page and a table."""

import os
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from time import perf_counter
from typing import Any

import numpy as np

from ..evaluation import Answers, Evaluation
from ..support.progress import step
from ..support.text import as_json, printable_lines
from ..support.version import __version__
from ..support.writing import new_file
from .atlas import write_atlas
from .details import Captions, PageDetails, changed_rows, class_names, cut, cut_texts
from .figures import classes, lorenz, skyline, why
from .map_layout import Drawing, DrawnMap, draw_map
from .marks import count_occurrence
from .page import check_page, notebook_html, render
from .share_card import share_card
from .summary import summary


@dataclass(frozen=True)
class ModelDescription:
    """What a page says about the model, beside what was measured."""

    mover: str  # its name and parameters
    W: np.ndarray | None = None  # (d, d), of a mover that is one matrix
    choice: dict[str, Any] = field(default_factory=dict)  # words, surface, movers, seconds; all optional
    apply: dict[str, Any] = field(default_factory=dict)  # words, steps, undo; all optional
    provenance: list[tuple[str, str]] = field(default_factory=list)


def instruction(title: str, code: str, language: str = "python") -> dict[str, str]:
    """Return a step of `apply` or `undo`: what it does, and the code to run."""
    return {"title": title, "code": code, "language": language}


@dataclass(frozen=True)
class Report:
    """Figures before and after, and everything that a page shows of them.

    Print it, show it in a notebook, `save` it as a page, or pass it to `hubless.plot`.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> report = demo.report("iris")  # `compare` and `hubless report` return one for your data
    >>> report.save("page.html").name
    'page.html'
    """

    figures: dict[str, Any]  # every number of the page, as in its JSON
    details: dict[str, Any] = field(repr=False)  # points, texts and cards; with NumPy arrays
    evaluation: Evaluation = field(repr=False)
    captions: Captions = field(repr=False)
    drawn: DrawnMap = field(repr=False)
    model: Any = field(default=None, repr=False)  # the fitted one, in the report of `compare`

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page: one HTML file that opens without a network.

        An older page is replaced; ValueError where the file is not a hubless page. A link to a page stays; a
        link to nothing is refused.
        """
        file = check_page(path)
        with step(f"writing {file.name}"):
            file.parent.mkdir(parents=True, exist_ok=True)
            page = self.html().encode()
            with new_file(file) as new:
                new.write(page)
        return Path(os.path.expanduser(path))

    def html(self, *, asks: bool = False) -> str:
        """Return the page; with `asks`, one that asks its server what a typed query finds."""
        return render({**self.figures, "asks": True} if asks else self.figures, self.details)

    def atlas(self, path: str | os.PathLike[str]) -> str:
        """Write a Parquet file for embedding-atlas and return the command that opens it.

        With the layout "pca" it has all items and queries; with other layouts, those on the map.
        """
        return write_atlas(path, self.evaluation, self.captions, self.drawn)

    def _repr_html_(self) -> str:
        return notebook_html(self.figures)

    def __str__(self) -> str:
        summary = self.figures["summary"]
        verdict = f"{summary['verdict']['title']}. {summary['verdict']['words']}"
        return f"{printable_lines([summary['sentence'], verdict])}\n{self.evaluation}"


def make_report(
    evaluation: Evaluation,
    captions: Captions,
    description: ModelDescription,
    drawing: Drawing | None = None,
    model: Any = None,
) -> Report:
    """Return the report of an evaluation."""
    started, answers, counts = perf_counter(), evaluation.answers, count_occurrence(evaluation)
    captions.check(len(answers.stored.before), len(answers.queries))
    changed = changed_rows(answers)
    drawing = drawing or Drawing()
    with step(f"drawing the map by {drawing.layout}"):
        drawn = draw_map(answers, counts.all, np.concatenate([*changed.values()]), drawing)
    details = PageDetails(answers, counts, captions, drawn).as_dict()
    figures = {
        **_sizes(evaluation, captions),
        "summary": summary(evaluation, description.mover),
        "hubness": evaluation.as_dict()["hubness"],
        "skyline": skyline(counts.all),
        "lorenz": lorenz(counts.all),
        "classes": classes(answers),
        "changed": _count_changed(evaluation, changed),
        "why": why(answers, counts.all, drawn.components, description.W),
        "choice": {"words": "", "surface": None, "movers": [], "seconds": [], **description.choice},
        "apply": {"words": "", "steps": [], "undo": [], **description.apply},
        "provenance": description.provenance,
        "versions": _versions(),
        "made": datetime.now().strftime("%Y-%m-%d %H:%M"),
    }
    figures["choice"]["seconds"] = [
        *figures["choice"]["seconds"],
        {"what": "searching for all queries, before and after", "seconds": answers.seconds},
        {"what": "measuring and drawing this page", "seconds": perf_counter() - started},
    ]
    figures["summary"]["notes"] = [*evaluation.notes, *_note_pictures(captions, details["hubs"])]
    figures["share"] = share_card(figures, details["hubs"], evaluation.chance.threshold)
    return Report(cut_texts(as_json(figures)), details, evaluation, captions, drawn, model)


def _sizes(evaluation: Evaluation, captions: Captions) -> dict[str, Any]:
    """Return the title, the task, and how many items, queries and classes there are."""
    answers, measure = evaluation.answers, evaluation.figures[0].measure
    n, d = answers.stored.before.shape
    return {
        "format": 1,
        "title": cut(captions.title, 200) or _made_title(evaluation),
        "task": "pairs" if answers.labels is None else "labels",
        "words": {
            "item": "items",
            "measure": measure,
            "answered": evaluation.answered,
            "asked": evaluation.asked,
            "queries": _query_words(answers),
        },
        "links": {"items": captions.link, "queries": captions.query_link},
        "counts": {
            "items": n,
            "queries": len(answers.queries),
            "dimension": d,
            "classes": None if answers.labels is None else len(class_names(answers)),
            "k": answers.ks.after,
            "k_before": answers.ks.before,
            "hub_k": answers.neighbors.before.shape[1],
            "hub_from": evaluation.chance.threshold,
            "hub_false_alarms": evaluation.chance.false_alarms,
            "metric": answers.metric,
        },
    }


def _query_words(answers: Answers) -> str:
    """Say what becomes of queries."""
    added = answers.stored.after.shape[1] - answers.stored.before.shape[1]
    if not added:
        return "queries are unchanged"
    return "queries get one more column, which is 0" if added == 1 else f"queries get {added} more columns"


def _made_title(evaluation: Evaluation) -> str:
    """Return what the data are, for a page without a title of its own."""
    answers, items = evaluation.answers, f"Hubs among {len(evaluation.answers.stored.before):,} items"
    return items if answers.labels is None else f"{items} in {len(class_names(answers)):,} classes"


def _count_changed(evaluation: Evaluation, shown: dict[str, np.ndarray]) -> dict[str, Any]:
    """Count queries that were fixed, broken or unchanged, and how many of them the page lists."""
    before, after = evaluation.answers.correct
    return {
        "fixed": evaluation.fixed,
        "broken": evaluation.broken,
        "unchanged_right": int((before & after).sum()),
        "unchanged_wrong": int((~before & ~after).sum()),
        "shown": {"fixed": len(shown["fixed"]), "broken": len(shown["broken"])},
    }


def _note_pictures(captions: Captions, hubs: list[dict[str, Any]]) -> list[str]:
    """Return a note where hubs should have a picture and have none that can be shown."""
    missing = 0 if captions.images is None else sum(hub["thumbnail"] is None for hub in hubs)
    note = f"{missing} of {len(hubs)} hubs on cards have no picture that can be read (PNG, JPEG, GIF, WebP)."
    return [note] if missing else []


def _versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that computed the page."""
    packages = {package: version(package) for package in ("numpy", "scipy", "scikit-learn")}
    return {"python": python_version(), "hubless": __version__, **packages}
