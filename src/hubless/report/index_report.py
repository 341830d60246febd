"""The report of an index: learn or load a model, search with queries before and after, and write the page."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..evaluation import Evaluation
from ..repair.before_reading import text_column
from ..repair.evaluate import AnsweredQueries, answer_index, try_index
from ..repair.index_items import Source, as_store
from ..repair.repair import Repair
from ..repair.truth import Truth
from ..selection.candidates import name
from ..stores.checks import check_columns, check_outside, columns_in
from ..stores.store import Store, StoreError
from ..support.commands import command, typed
from ..support.credentials import how_to_supply, without_secrets
from ..support.progress import reports_steps
from .atlas import check_atlas
from .choice import choice_of_repair, with_surface
from .compare_movers import Rivals, rivals_of, with_rivals
from .details import Captions
from .figures import matrix_of
from .links import check_link
from .map_layout import Drawing
from .page import check_page
from .report import ModelDescription, Report, instruction, make_report
from .verdict import NOT_ADVISED, UNIT_FIRST, advises_moving, condition


class Named(NamedTuple):
    """How the stores are named on a command line; a page shows commands for them."""

    source: str = ""  # by default the name that was given, or that of the store
    options: Sequence[str] = ()  # such as ["--items", "items.csv"]
    queries: str | None = None
    query_options: Sequence[str] = ()
    pairs: str = ""  # the file of relevance judgements
    moved: str = ""  # the index to build


class WrittenReport(NamedTuple):
    """A page that was written."""

    report: Report
    files: dict[str, Any]  # "page", "bytes", and "parquet" with the "command" that opens it


@reports_steps
def report_index(
    source: Source,
    *,
    model: Any = None,
    labels: str | None = None,
    pairs: str | os.PathLike[str] | None = None,
    queries: Source | None = None,
    query_labels: str | None = None,
    k: int | None = None,
    text: str | None = None,
    query_text: str | None = None,
    image: str | None = None,
    query_image: str | None = None,
    link: str | None = None,
    title: str | None = None,
    layout: str = "pca",
    max_points: int = 10_000,
    named: Named | None = None,
    random_state: int = 0,
    progress: bool | None = False,
) -> Report:
    """Return the report of an index: its hubs, and what moving changes.

    Without a model, a quarter of the items (or of the judged queries) is held out, the rest is learned from,
    and the report shows what that changes for those held out; with labels and queries, all items are learned
    from, and these queries are used.

    Parameters
    ----------
    source : name of a store, or Store
    model : folder, Repair or mover, optional
        Measure it with `queries` that it has not learned from.
    labels : str, optional
        Column with the class of each item. Give this or `pairs`.
    pairs : path, optional
        Relevance judgements of the queries: a table with query-id, corpus-id and score.
    queries : name of a store, or Store, optional
    query_labels : str, optional
        Column with the class of each query; by default the same as `labels`.
    k : int, optional
        Answers that count, by default 10; from labels, neighbours that vote, by default those chosen.
    text, query_text, image, query_image : str, optional
        Columns to show: texts of items and queries, and paths of their pictures.
    link : str, optional
        Address of an item, with {id} in place of its id; the page links to it.
    title : str, optional
        Of the page; by default made of the data.
    layout : "pca", "tsne" or "umap"
        Layout of the map.
    max_points : int
        Items on the map at most.
    named : Named, optional
        How the stores are named in the commands of the page.
    random_state : int
        Seed of what is held out and drawn.
    progress : bool or None
        Whether to report long steps; None reports them on a terminal.
    """
    drawing, truth = Drawing(layout, max_points, random_state), Truth(labels, pairs, query_labels, k)
    link = None if link is None else check_link(link)
    store, query_store = as_store(source), None if queries is None else as_store(queries)
    if query_store is not None:
        _check_one_space(store, query_store)
    item_text, query_text = text_column(store, text), _query_text(query_store or store, text, query_text)
    query_image = _query_column(query_store or store, image, query_image)
    shown = [column for column in (item_text, image) if column is not None]
    if model is None:
        answered = try_index(store, query_store, truth, columns=shown, random_state=random_state)
    elif query_store is None:
        raise StoreError(
            "a model (--model) needs queries that it has not learned from: queries, --queries SOURCE. "
            "Without a model, some items are held out as queries."
        )
    else:
        answered = answer_index(model, store, query_store, truth, columns=shown)
    captions = Captions(
        answered.items.ids.tolist(),
        answered.query_ids,
        None if item_text is None else answered.items.columns[item_text],
        _values_of_queries(query_store or store, answered.query_ids, query_text),
        None if image is None else answered.items.columns[image],
        title,
        _values_of_queries(query_store or store, answered.query_ids, query_image),
        link,
        link if query_store is None else None,
    )
    typed = named or Named()
    query_name = None if query_store is None else _name(typed.queries, queries, query_store)
    names = typed._replace(
        source=_name(typed.source, source, store),
        queries=query_name,
        pairs="" if pairs is None else os.fspath(pairs),
        moved=store.moved_name,
    )
    folder = os.fspath(model) if isinstance(model, str | os.PathLike) else None
    rivals = None if model is not None else rivals_of(answered, k)
    description = _describe(answered, names, folder, rivals)
    return make_report(answered.evaluation, captions, description, drawing)


def _check_one_space(store: Store, queries: Store) -> None:
    """Refuse queries of another width than the items: a page compares answers before and after."""
    d, e = store.facts().dimension, queries.facts().dimension
    if d != e:
        raise StoreError(
            f"a page compares answers before and after the move, and queries of {e} columns have no answers "
            f"before it among the items of {store.name}, of {d}. `hubless fit --pairs` learns to move the "
            "items into the space of the queries, and `hubless evaluate` gives the figures after that."
        )


def write_index_report(
    source: Source, page: str | os.PathLike[str], *, parquet: Any = None, **options: Any
) -> WrittenReport:
    """Write the page of an index, and a table where one is wanted.

    ValueError, before any work, where a file exists that is not from hubless, and OSError where one cannot
    be written.

    Parameters
    ----------
    source : name of a store, or Store
    page : path
        The HTML file.
    parquet : path, optional
        A table for embedding-atlas.
    **options : as for `report_index`
    """
    if check_page(page) == (None if parquet is None else check_atlas(parquet)):
        raise StoreError(f"the page and the table cannot both be {page}. Give them different names.")
    for given in (source, options.get("queries")):
        for path in (page, parquet):
            if given is not None and path is not None:
                check_outside(as_store(given), path)
    report = report_index(source, **options)
    saved = report.save(page)
    files: dict[str, Any] = {"page": str(saved), "bytes": saved.stat().st_size}
    if parquet is not None:
        files |= {"parquet": str(parquet), "command": report.atlas(parquet)}
    return WrittenReport(report, files)


def _query_text(queries: Store, text: str | None, query_text: str | None) -> str | None:
    """Return the column with the texts of queries."""
    return text_column(queries, _query_column(queries, text, query_text))


def _query_column(queries: Store, of_items: str | None, of_queries: str | None) -> str | None:
    """Return the column of queries to show: the one that is named, else that of the items, if any."""
    columns = queries.facts().columns
    check_columns(columns_in(queries), [] if of_queries is None else [of_queries], columns)
    return of_queries or (of_items if of_items in columns else None)


def _values_of_queries(queries: Store, ids: Sequence[Any], column: str | None) -> list[Any] | None:
    if column is None:
        return None
    batch = queries.fetch([*ids], [column])
    by_id = dict(zip(batch.ids.tolist(), batch.columns[column], strict=True))
    return [by_id.get(value) for value in ids]


def _name(typed: str | None, given: Source | None, store: Store) -> str:
    """Return how a store was typed, or its name."""
    return typed or (os.fspath(given) if isinstance(given, str | os.PathLike) else store.name)


def _describe(
    answered: AnsweredQueries,
    names: Named,
    folder: str | None,
    rivals: Rivals | None,
) -> ModelDescription:
    """Return what the page says of the model, and of its rivals where it was chosen here."""
    model, evaluation = answered.model, answered.evaluation
    answers, learned = evaluation.answers, model.facts.get("learned", {})
    choice = choice_of_repair(learned)
    if answers.labels is not None:
        choice = with_surface(choice, answers.stored.before, answers.labels, model.mover, answers.ks.after)
    if rivals is not None:
        choice = with_rivals(choice, rivals)
    return ModelDescription(
        str(learned.get("mover") or name(model.mover)),
        matrix_of(model.mover),
        choice,
        _apply(evaluation, model, names, folder),
        _provenance(answered, names),
    )


def _apply(evaluation: Evaluation, repair: Repair, names: Named, folder: str | None) -> dict[str, Any]:
    """Return the commands that build, switch and switch back; none where moving does harm."""
    if evaluation.answers.metric == "ip" and not evaluation.answers.is_corrected:
        return {"words": f"Do not move these items as they are. {UNIT_FIRST}"}
    if not advises_moving(evaluation):
        return {"words": NOT_ADVISED}
    source, options, model = without_secrets(names.source), names.options, folder or "model"
    build = command("apply", model, source, options=[*options, *typed("-o", names.moved)])
    steps = {
        "Build the moved index beside the original, which is only read": build,
        "Switch from the original to the moved index": command(
            "promote", source, names.moved, options=options
        ),
    }
    if folder is None:
        truth = typed("--labels", repair.learned.get("column"))
        if names.pairs:
            queries = typed("--queries", without_secrets(str(names.queries)))
            truth = [*typed("--pairs", names.pairs), *queries, *names.query_options]
        learn = command("fit", source, options=[*options, *truth, *typed("-o", model)])
        steps = {"Learn from all items": learn, **steps}
    note = repair.query_note or "Queries are unchanged."
    supply = how_to_supply(names.source, names.queries)
    return {
        "words": " ".join(
            [*condition(evaluation), note, "The original index serves until you switch.", *supply]
        ),
        "steps": [instruction(title, line, "sh") for title, line in steps.items()],
        "undo": [instruction("Serve the original again", command("rollback", source, options=options), "sh")],
    }


def _provenance(answered: AnsweredQueries, names: Named) -> list[tuple[str, str]]:
    items, learned = answered.items, answered.model.facts.get("learned", {})
    data, facts = items.about(), items.facts
    count, fingerprint = f"{data['count']:,} × {data['dimension']}", data["fingerprint"][:16]
    return [
        ("source", without_secrets(names.source)),
        ("queries", without_secrets(names.queries or "held out of the source")),
        ("kind", f"{facts.kind}, {facts.index}"),
        ("stored vectors", f"{count}, fingerprint {fingerprint}…"),
        ("metric", str(facts.metric or "unknown; l2 is assumed")),
        ("model", answered.model.hash[:16] + "…"),
        ("learned from", f"{learned['n']:,} {learned['from']}" if "from" in learned else "unknown"),
    ]
