"""The page: `hubless report`, and what other verbs share to write one."""

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..evaluation import Evaluation
from ..index.collection import Collection, are_known, collect, columns_for
from ..index.evaluate import evaluate_labels, evaluate_pairs
from ..index.learn import learn_from_labels
from ..index.pairs import judged
from ..index.rehearsal import rehearse_labels, rehearse_pairs
from ..index.repair import Repair
from ..report.atlas import check_atlas
from ..report.of_index import report_of_index
from ..report.page import check_ours
from ..report.places import LAYOUTS, Drawing
from ..report.report import Report
from ..stores.store import Store, StoreError
from .options import (
    Verbs,
    add_queries,
    add_source,
    add_verb,
    model_of,
    positive,
    queries_of,
    show,
    source_of,
    vectors_of,
)

TEXTS = ("text", "title", "name")  # columns that are shown without being named


def add_verbs(verbs: Verbs) -> None:
    """report."""
    verb = add_verb(
        verbs,
        "report",
        "write a page that shows the hubs of an index and what moving changes",
        _report,
        [
            "hubless report index.faiss --items items.csv --labels category --open",
            "hubless report docs.npy --metric cosine --items docs.csv --id doc_id --text title \\",
            "    --pairs qrels.tsv --queries queries.npy --query-items queries.json -o page.html",
            "hubless report index.faiss --items items.csv --labels category --model model \\",
            "    --queries test.npy --query-items test.csv -o page.html",
        ],
        "One HTML file that opens without a network. Without --model, a quarter of the items (or of the "
        "judged queries) is held out, the rest is learned from, and the page shows what that changes for "
        "those held out; with --labels and --queries, all items are learned from and these queries asked. "
        "Nothing else is written.",
    )
    add_source(verb)
    verb.add_argument("--model", metavar="MODEL", help="folder that `hubless fit` wrote; needs --queries")
    add_queries(verb, required=False)
    kind = verb.add_mutually_exclusive_group(required=True)
    kind.add_argument("--labels", metavar="COLUMN", help="column with the class of each item")
    kind.add_argument("--pairs", type=Path, metavar="FILE", help="judgements: query-id, corpus-id, score")
    verb.add_argument("--query-labels", metavar="COLUMN", help="column of queries (default: as --labels)")
    verb.add_argument("-k", type=positive, help="answers that count (default: 10), or neighbours that vote")
    verb.add_argument("--seed", type=int, default=0, help="of what is held out and drawn (default: 0)")
    verb.add_argument(
        "-o", "--out", type=Path, default=Path("report.html"), help="file to write (default: report.html)"
    )
    verb.add_argument("--open", action="store_true", help="show the page in the browser")
    add_drawing(verb)


def add_drawing(verb: Any) -> None:
    """How a page is drawn, and of which columns."""
    verb.add_argument("--text", metavar="COLUMN", help='column of items to show (default: "text" …)')
    verb.add_argument("--query-text", metavar="COLUMN", help="column of queries to show (default: as --text)")
    verb.add_argument("--image", metavar="COLUMN", help="column of items with paths of pictures")
    verb.add_argument("--layout", choices=LAYOUTS, default="pca", help="of the map (default: pca)")
    verb.add_argument(
        "--points", type=positive, default=10_000, help="items on the map at most (default: 10000)"
    )
    verb.add_argument("--parquet", type=Path, metavar="FILE", help="also write this for embedding-atlas")


def check_outputs(options: argparse.Namespace, out: Path) -> None:
    """Refuse what could not be drawn or written, before anything is read or learned."""
    Drawing(options.layout, options.points)
    check_ours(out.expanduser())
    if options.parquet is None:
        return
    check_atlas(options.parquet)
    if options.parquet.expanduser().resolve() == out.expanduser().resolve():
        raise StoreError(f"the page and the table cannot both be {out}.")


def write(report: Report, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Write the page and what else is asked for; what was written."""
    page = report.save(out)
    found: dict[str, Any] = {"page": str(page), "bytes": page.stat().st_size}
    if options.parquet is not None:
        found |= {"parquet": str(options.parquet), "command": report.atlas(options.parquet)}
    return found


def words(report: Report, written: dict[str, Any]) -> str:
    """The result for a person."""
    told = report.figures["summary"]
    verdict = f"{told['verdict']['title']}. {told['verdict']['words']}"
    return "\n".join([told["sentence"], verdict, written_words(written)])


def written_words(written: dict[str, Any]) -> str:
    """Where the page is."""
    told = f"{written['page']} ({written['bytes'] / 1e6:.1f} MB) opens in any browser."
    if "command" in written:
        told += f"\n{written['parquet']} opens with: {written['command']} (pip install embedding-atlas)"
    return told


def _report(options: argparse.Namespace) -> None:
    check_outputs(options, options.out)
    store = source_of(options)
    if options.model is None:
        report = _rehearsed(options, store)
    else:
        if options.queries is None:
            raise StoreError(
                "--model needs queries that it was not learned from: --queries SOURCE. Without --model, some "
                "items are held out as queries."
            )
        model = model_of(options.model)
        report = drawn(options, asked_of(options, model, store, shown_columns(options, store)))
    written = write(report, options, options.out)
    show(options, {**report.figures, **written}, words(report, written))
    if options.open:
        webbrowser.open(Path(written["page"]).resolve().as_uri())


class Answered(NamedTuple):
    """Queries of known answers, asked before and after."""

    evaluation: Evaluation
    model: Repair
    items: Collection
    query_ids: Sequence[Any]
    queries: Store


def asked_of(options: argparse.Namespace, model: Repair, store: Store, extra: Sequence[str] = ()) -> Answered:
    """What a model changes for queries that it has not seen; with further columns of the items."""
    needed = extra if options.labels is None else [options.labels, *extra]
    return answered(options, model, collect(store, columns_for(model, *needed), progress=None))


def answered(options: argparse.Namespace, model: Repair, items: Collection) -> Answered:
    """The same for items that were read, with the column of classes where there is one."""
    queries = queries_of(options)
    if options.pairs is not None:
        pairs, left_out = judged(queries, options.pairs, items)
        found = evaluate_pairs(model, items, pairs, options.k or 10, metric=metric_of(items))
        found.notes.extend(_missing(left_out))
        return Answered(found, model, items, pairs.ids, queries)
    column = options.query_labels or options.labels
    vectors, ids, columns = vectors_of(queries, [column])
    by = metric_of(items)
    found = evaluate_labels(model, items, options.labels, vectors, columns[column], options.k, metric=by)
    kept = [own for own, known in zip(ids, are_known(columns[column]), strict=True) if known]
    return Answered(found, model, items.labeled(options.labels), kept, queries)


def metric_of(items: Collection) -> str | None:
    """Inner product for items that are compared by it and were taken as if by L2; else their own."""
    return "ip" if items.facts.metric == "ip" and items.metric == "l2" else None


def _missing(left_out: int) -> list[str]:
    return [f"{left_out:,} judgements name a query or an item that is not there."] if left_out else []


def _rehearsed(options: argparse.Namespace, store: Store) -> Report:
    """No model yet: some queries are held out."""
    extra = shown_columns(options, store)
    if options.labels is not None:
        extra = [*dict.fromkeys([options.labels, *extra])]
    items = collect(store, extra, progress=None, may_harm=True)
    by = metric_of(items)
    if options.labels is not None and options.queries is not None:
        model = learn_from_labels(items, options.labels, random_state=options.seed)
        return drawn(options, answered(options, model, items))
    if options.labels is not None:
        found = rehearse_labels(items, options.labels, k=options.k, metric=by, random_state=options.seed)
        queries = store
    elif options.queries is None:
        raise StoreError("--pairs needs the vectors of its queries: --queries SOURCE.")
    else:
        queries = queries_of(options)
        pairs, left_out = judged(queries, options.pairs, items)
        how: dict[str, Any] = {"metric": by, "random_state": options.seed, "progress": None}
        found = rehearse_pairs(items, pairs, k=options.k or 10, **how)
        found.evaluation.notes.extend(_missing(left_out))
    found.evaluation.notes.append(found.words)
    return drawn(options, Answered(found.evaluation, found.model, found.items, found.query_ids, queries))


def drawn(options: argparse.Namespace, found: Answered) -> Report:
    """The report, with what is shown of items and queries."""
    evaluation, model, items, query_ids, queries = found
    text = options.text or next((own for own in TEXTS if own in items.columns), None)
    return report_of_index(
        evaluation,
        model,
        items,
        query_ids,
        texts=None if text is None else items.columns[text],
        query_texts=_texts(queries, _query_text(options, queries), query_ids),
        images=None if options.image is None else items.columns[options.image],
        source=_clean(options.source, items.name),
        queries=_clean(options.queries, queries.name) if options.queries else "held out of the source",
        given=_given(options),
        folder=options.model,
        drawing=Drawing(options.layout, options.points, getattr(options, "seed", 0)),
    )


def _clean(given: str, name: str) -> str:
    """A place as it was given, without a password: the name of a store that is asked by an address."""
    return name if "://" in given else given


def _given(options: argparse.Namespace) -> list[str]:
    """What was said of the source, as it is said on a command line."""
    values = {name: getattr(options, name) for name in ("vector", "id", "metric", "items")}
    return [text for name, own in values.items() if own is not None for text in (f"--{name}", str(own))]


def shown_columns(options: argparse.Namespace, store: Store) -> list[str]:
    """Columns of items that the page shows."""
    return [own for own in (text_column(store, options.text), options.image) if own is not None]


def text_column(store: Store, asked: str | None) -> str | None:
    """The column of texts of a store: the one asked for, else one by its name, if there is one."""
    columns = store.facts().columns
    if asked is not None and asked not in columns:
        raise StoreError(f"{store.name} has no column {asked!r} to show; it has {list(columns)}.")
    return asked or next((name for name in TEXTS if name in columns), None)


def _query_text(options: argparse.Namespace, queries: Store) -> str | None:
    """The column of texts of queries: the one asked for, else that of the items where queries have it."""
    named = options.text if options.text in queries.facts().columns else None
    return text_column(queries, options.query_text or named)


def _texts(store: Store, column: str | None, ids: Sequence[Any]) -> list[Any] | None:
    """The texts of rows by their ids."""
    if column is None:
        return None
    batch = store.fetch([*ids], [column])
    by_id = dict(zip(batch.ids.tolist(), batch.columns[column], strict=True))
    return [by_id.get(own) for own in ids]
