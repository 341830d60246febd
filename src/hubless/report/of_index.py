"""The report of a model for an index: what it changes for the items of a store."""

import shlex
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from ..candidates import name
from ..evaluation import Evaluation
from ..index.collection import Collection
from ..index.repair import Repair
from .choice import choice_of_facts, measured_surface
from .compare import matrix_of
from .places import Drawing
from .report import Report, Told, make_report
from .shown import Shown


def report_of_index(
    evaluation: Evaluation,
    model: Repair,
    items: Collection,
    query_ids: Sequence[Any],
    *,
    texts: Sequence[Any] | None = None,
    query_texts: Sequence[Any] | None = None,
    images: Sequence[Any] | None = None,
    source: str | None = None,
    folder: str | None = None,
    drawing: Drawing | None = None,
) -> Report:
    """The report of an evaluation of a model.

    Parameters
    ----------
    items : Collection of the items that were evaluated, row by row
    texts, images : of the items; images are paths or bytes
    source : str
        The store as it is named on a command line.
    folder : str, optional
        Where the model is kept; without it, the page begins with how to learn one.
    """
    asked, learned = evaluation.asked, model.facts.get("learned", {})
    shown = Shown(items.ids.tolist(), query_ids, texts, query_texts, images, _title(items.name))
    choice = choice_of_facts(learned)
    if choice["surface"] is None and asked.labels is not None:
        started = perf_counter()
        choice["surface"] = measured_surface(asked.stored.before, asked.labels, model.mover, asked.ks.after)
        spent = {"what": "measuring λ × k for this page", "seconds": perf_counter() - started}
        choice["seconds"] = [*choice["seconds"], spent]
    told = Told(
        str(learned.get("mover") or name(model.mover)),
        matrix_of(model.mover),
        choice,
        _apply(source or items.name, folder, learned, asked.metric),
        _provenance(model, items),
    )
    return make_report(evaluation, shown, told, drawing)


def _title(name: str) -> str:
    """The last part of where items are: a file without its folders, a table without its server."""
    return name.rstrip("/").split("#")[-1].split("/")[-1].split("\\")[-1] or name


def _apply(source: str, folder: str | None, learned: dict[str, Any], metric: str) -> dict[str, Any]:
    """The commands that build, switch and switch back."""
    place, kept = shlex.quote(source), shlex.quote(folder or "model")
    steps = [
        (
            "Build the moved index beside the one that serves, which is only read",
            f"hubless apply {kept} {place} -o MOVED",
        ),
        ("Let the name that is served be the moved one", f"hubless promote {place} MOVED"),
    ]
    if folder is None:
        how = (
            f"--labels {shlex.quote(str(learned['column']))}"
            if "column" in learned
            else "--pairs JUDGEMENTS --queries QUERIES"
        )
        steps.insert(0, ("Learn from all items", f"hubless fit {place} {how} -o {kept}"))
    words = "Queries stay as they are, and so does the index that serves until it is told to switch."
    if metric == "ip":
        words = "Do not move these items as they are: bring all vectors to length 1 first, or search by L2."
    return {
        "words": words,
        "steps": [{"title": title, "code": code, "language": "sh"} for title, code in steps],
        "undo": [
            {"title": "Serve the original again", "code": f"hubless rollback {place}", "language": "sh"}
        ],
    }


def _provenance(model: Repair, items: Collection) -> list[tuple[str, str]]:
    data, learned = items.about(), model.facts.get("learned", {})
    return [
        ("source", str(data["source"])),
        ("kind", f"{items.facts.kind}, {items.facts.index}"),
        ("vectors", f"{data['count']:,} × {data['dimension']}, fingerprint {data['fingerprint'][:16]}…"),
        ("metric", str(items.facts.metric or "not told; taken for l2")),
        ("model", model.hash[:16] + "…"),
        ("learned from", f"{learned.get('from', 'not told')}, {learned.get('n', 0):,} of them"),
    ]
