"""The report of a model for an index: what it changes for the items of a store."""

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ..candidates import name
from ..evaluation import Evaluation
from ..index.collection import Collection
from ..index.repair import Repair
from .choice import choice_of_facts, with_surface
from .compare import matrix_of
from .figures import NOT_ASKED_FOR, UNIT_FIRST, is_asked_for
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
    given: Sequence[str] = (),
    queries: str = "not told",
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
    given : sequence of str
        Options that go with it there, as --items and a file.
    queries : str
        Where the queries are from.
    folder : str, optional
        Where the model is kept; without it, the page begins with how to learn one.
    """
    asked, learned = evaluation.asked, model.facts.get("learned", {})
    shown = Shown(items.ids.tolist(), query_ids, texts, query_texts, images, _title(items.name))
    choice = choice_of_facts(learned)
    if asked.labels is not None:
        choice = with_surface(choice, asked.stored.before, asked.labels, model.mover, asked.ks.after)
    told = Told(
        str(learned.get("mover") or name(model.mover)),
        matrix_of(model.mover),
        choice,
        _apply(source or items.name, given, folder, learned, evaluation),
        _provenance(model, items, source or items.name, queries),
    )
    return make_report(evaluation, shown, told, drawing)


def _title(name: str) -> str:
    """The last part of where items are: a file without its folders, a table without its server."""
    return name.rstrip("/").split("#")[-1].split("/")[-1].split("\\")[-1] or name


def _apply(
    source: str, given: Sequence[str], folder: str | None, learned: dict[str, Any], evaluation: Evaluation
) -> dict[str, Any]:
    """The commands that build, switch and switch back; none where moving does harm."""
    if evaluation.asked.metric == "ip":
        return {"words": f"Do not move these items as they are. {UNIT_FIRST}", "steps": [], "undo": []}
    if not is_asked_for(evaluation):
        return {"words": NOT_ASKED_FOR, "steps": [], "undo": []}
    place = shlex.join([source, *given])
    kept, moved = shlex.quote(folder or "model"), shlex.quote(moved_name(source))
    steps = [
        (
            "Build the moved index beside the one that serves, which is only read",
            f"hubless apply {kept} {place} -o {moved}",
        ),
        ("Let the name that is served be the moved one", f"hubless promote {place} {moved}"),
    ]
    if folder is None:
        how = (
            f"--labels {shlex.quote(str(learned['column']))}"
            if "column" in learned
            else "--pairs JUDGEMENTS --queries QUERIES"
        )
        steps.insert(0, ("Learn from all items", f"hubless fit {place} {how} -o {kept}"))
    return {
        "words": "Queries stay as they are, and so does the index that serves until it is told to switch.",
        "steps": [{"title": title, "code": code, "language": "sh"} for title, code in steps],
        "undo": [
            {"title": "Serve the original again", "code": f"hubless rollback {place}", "language": "sh"}
        ],
    }


def moved_name(source: str) -> str:
    """A name for the moved items beside the original: a table of the same store, or a file."""
    if "#" in source:
        return source.rsplit("#", 1)[1] + "_moved"
    path = PurePath(source)
    return str(path.with_name(f"{path.stem}-moved{path.suffix}"))


def _provenance(model: Repair, items: Collection, source: str, queries: str) -> list[tuple[str, str]]:
    data, learned = items.about(), model.facts.get("learned", {})
    return [
        ("source", source),
        ("queries", queries),
        ("kind", f"{items.facts.kind}, {items.facts.index}"),
        (
            "stored vectors",
            f"{data['count']:,} × {data['dimension']}, fingerprint {data['fingerprint'][:16]}…",
        ),
        ("metric", str(items.facts.metric or "not told; taken for l2")),
        ("model", model.hash[:16] + "…"),
        ("learned from", f"{learned.get('from', 'not told')}, {learned.get('n', 0):,} of them"),
    ]
