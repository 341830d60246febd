"""The verbs that look at an index and learn for it: doctor, fit, evaluate, preview, predict, move, export."""

import argparse
import sys
from pathlib import Path

import numpy as np

from .. import model_dir
from ..classifier import MovedNeighbors
from ..index.doctor import diagnose
from ..index.export import FORMS, export
from ..index.predict import predict
from ..index.preview import FETCHED, preview
from ..index.stream import move_arrow, move_lines
from ..stores.store import StoreError
from . import fit_verb
from .options import (
    SOURCE,
    Verbs,
    add_queries,
    add_source,
    add_verb,
    as_repair,
    ids_like,
    model_of,
    positive,
    queries_of,
    show,
    source_of,
    vectors_of,
)
from .report_verbs import add_drawing, asked_of, check_outputs, drawn, shown_columns, write, written_words


def add_verbs(verbs: Verbs) -> None:
    """All of them, in the order in which a user meets them."""
    for add in (
        _add_doctor,
        fit_verb.add_verbs,
        _add_evaluate,
        _add_preview,
        _add_predict,
        _add_move,
        _add_export,
    ):
        add(verbs)


def _add_doctor(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "doctor",
        "look at an index: its metric, its vectors, its hubs, and whether moving is safe",
        _doctor,
        [
            "hubless doctor index.faiss --items items.csv --text title",
            "hubless doctor postgresql://me@localhost/shop#products --json",
        ],
        "Nothing is written.",
    )
    add_source(verb)
    add_queries(verb, required=False)
    verb.add_argument("--text", metavar="COLUMN", help='column to show of the worst hubs (default: "text" …)')
    verb.add_argument("-k", type=positive, default=10, help="neighbours that are counted (default: 10)")


def _doctor(options: argparse.Namespace) -> None:
    asked = None if options.queries is None else vectors_of(queries_of(options))[0]
    show(options, diagnose(source_of(options), queries=asked, text=options.text, k=options.k))


def _add_evaluate(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "evaluate",
        "measure what a model changes for queries with known answers, before and after",
        _evaluate,
        [
            "hubless evaluate model index.faiss --items items.csv --labels category \\",
            "    --queries test.npy --query-items test.csv --query-labels category",
            "hubless evaluate model docs.npy --metric cosine --items docs.csv --id doc_id \\",
            "    --pairs test.tsv --queries queries.npy --query-items queries.json",
        ],
        "By exact search; give queries that the model was not learned from.",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote")
    add_source(verb)
    add_queries(verb)
    kind = verb.add_mutually_exclusive_group(required=True)
    kind.add_argument("--labels", metavar="COLUMN", help="column with the class of each item")
    kind.add_argument("--pairs", type=Path, metavar="FILE", help="judgements: query-id, corpus-id, score")
    verb.add_argument("--query-labels", metavar="COLUMN", help="column of queries (default: as --labels)")
    verb.add_argument("-k", type=positive, help="answers that count (default: 10), or neighbours that vote")
    verb.add_argument("--report", type=Path, metavar="FILE", help="also write the page, as `hubless report`")
    add_drawing(verb)


def _evaluate(options: argparse.Namespace) -> None:
    store = source_of(options)
    if options.parquet is not None and options.report is None:
        raise StoreError("--parquet is a part of the page: give --report FILE too.")
    if options.report is not None:
        check_outputs(options, options.report)
    extra = shown_columns(options, store) if options.report else ()
    found = asked_of(options, model_of(options.model), store, extra)
    if options.report is None:
        show(options, found.evaluation)
        return
    written = write(drawn(options, found), options, options.report)
    result = {**found.evaluation.as_dict(), **written}
    show(options, result, f"{found.evaluation}\n{written_words(written)}")


def _add_preview(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "preview",
        "show what queries find now and would find after an apply",
        _preview,
        [
            "hubless preview model index.faiss --items items.csv --text title --queries q.npy --rows 0 7",
            "hubless preview model lancedb:shop#products --like 4711",
        ],
        f"Nothing is written: the {FETCHED} nearest are taken from the index and ranked again.",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote")
    add_source(verb)
    add_queries(verb, required=False)
    verb.add_argument("--rows", type=int, nargs="+", metavar="N", help="which queries (default: the first 3)")
    verb.add_argument("--like", nargs="+", metavar="ID", help="ask with the vectors of these items instead")
    verb.add_argument("--text", metavar="COLUMN", help="column to show")
    verb.add_argument("-k", type=positive, default=10, help="answers to show (default: 10)")
    verb.add_argument("--fetch", type=positive, default=FETCHED, help=f"items to fetch (default: {FETCHED})")


def _preview(options: argparse.Namespace) -> None:
    model, store = model_of(options.model), source_of(options)
    if (options.queries is None) == (options.like is None):
        raise StoreError("give queries (--queries SOURCE) or items to ask with (--like ID).")
    if options.like is not None:
        batch = store.fetch(ids_like(store, options.like))
        if len(batch.ids) != len(options.like):
            raise StoreError(f"of {options.like}, {store.name} has {batch.ids.tolist()}.")
        vectors, names = batch.vectors, batch.ids.tolist()
    else:
        vectors, names, _ = vectors_of(queries_of(options))
        rows = options.rows or list(range(min(3, len(vectors))))
        if max(rows) >= len(vectors) or min(rows) < 0:
            raise StoreError(f"there are {len(vectors)} queries, numbered from 0; got rows {rows}.")
        vectors, names = vectors[rows], [names[row] for row in rows]
    found = preview(model, store, vectors, names=names, k=options.k, fetched=options.fetch, text=options.text)
    show(options, [vars(entry) for entry in found], "\n\n".join(map(str, found)))


def _add_predict(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "predict",
        "classify queries by the vote of the moved items nearest to them",
        _predict,
        [
            "hubless predict model queries.npy --source index.faiss --items items.csv > classes.txt",
            "hubless predict classifier queries.npy   # a folder that hubless.save wrote of a classifier",
        ],
        "One class a line, in the order of the queries.",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote, or hubless.save of a classifier")
    verb.add_argument("queries", help="query vectors; as a source")
    verb.add_argument("--source", help=f"the items that vote; {SOURCE}")
    for option in ("--vector", "--id", "--query-vector", "--query-id"):
        verb.add_argument(option, metavar="COLUMN", help="as in `hubless fit`")
    verb.add_argument("--metric", help="as in `hubless fit`")
    verb.add_argument("--items", type=Path, metavar="FILE", help="table with a row per item, for files")
    verb.add_argument("--query-items", type=Path, metavar="FILE", help="table with a row per query")
    verb.add_argument("--labels", metavar="COLUMN", help="column of classes (default: the model's)")
    verb.add_argument("-k", type=positive, help="items that vote (default: as chosen by the model)")


def _predict(options: argparse.Namespace) -> None:
    vectors, names, _ = vectors_of(queries_of(options))
    saved = model_dir.load(options.model)
    if isinstance(saved, MovedNeighbors):
        found = np.asarray(saved.predict(vectors.astype(np.asarray(saved.moved_).dtype)))
    elif options.source is None:
        raise StoreError("name the items that vote: --source SOURCE.")
    else:
        model = as_repair(saved, options.model)
        found = predict(model, source_of(options), vectors, options.labels, options.k, progress=None)
    rows = [{"query": name, "class": value} for name, value in zip(names, found.tolist(), strict=True)]
    show(options, rows, "\n".join(map(str, found.tolist())))


def _add_move(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "move",
        help="move new items on their way into the index: stdin to stdout",
        description="Move new items on their way into the index, from stdin to stdout: JSON lines, each an "
        "object with a vector, or an Arrow stream. Queries must not pass through here: they stay.",
        epilog="example: producer | hubless move model --vector embedding | loader",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote")
    verb.add_argument("--arrow", action="store_true", help="an Arrow IPC stream instead of JSON lines")
    verb.add_argument(
        "--vector", metavar="FIELD", help='field of vectors (default: "vector", or the only one)'
    )
    verb.add_argument("--id", default="id", metavar="FIELD", help="field of ids (default: id)")
    verb.add_argument("--label", metavar="FIELD", help="field of classes (default: the model's)")
    verb.set_defaults(run=_move)


def _move(options: argparse.Namespace) -> None:
    model, fields = model_of(options.model), {"id": options.id, "label": options.label}
    if options.arrow:
        move_arrow(model, sys.stdin.buffer, sys.stdout.buffer, vector=options.vector, **fields)
        return
    for line in move_lines(model, sys.stdin, vector=options.vector or "vector", **fields):
        print(line)


def _add_export(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "export",
        "write the map for another program: " + ", ".join(FORMS),
        _export,
        ["hubless export model onnx -o model.onnx", "hubless export model numpy -o mover"],
        "It is for stored vectors; queries stay as they are.",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote")
    verb.add_argument("form", choices=tuple(FORMS))
    verb.add_argument("-o", "--out", type=Path, required=True, metavar="PATH", help="file or folder to write")


def _export(options: argparse.Namespace) -> None:
    written = [str(path) for path in export(model_of(options.model), options.form, options.out)]
    show(options, {"written": written}, "\n".join(written))
