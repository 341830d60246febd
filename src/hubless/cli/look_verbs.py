"""The verbs that look at an index, or at a model and what it finds: doctor, explain, preview, predict."""

from collections.abc import Iterator
from csv import writer
from io import StringIO
from typing import Any

from ..repair.defaults import FETCHED
from .lines import styled
from .options import LABELS, MODEL, SOURCE, TEXT, Verb, VerbOptions, option, positive

# verdicts of the doctor, and their styles
VERDICTS = {"hubs": "doubt", "some hubs": "doubt", "no hubs": "good", "do not move": "bad", "moved": "good"}


def add_doctor(verb: Verb) -> None:
    """Add the options of `hubless doctor`."""
    verb.explain(
        _doctor,
        "hubless doctor index.faiss --items items.csv --text title",
        "hubless doctor index.faiss --queries log.npy --query-items log.csv",
        "hubless doctor postgresql://me@localhost/shop#products --json",
        more="Nothing is written. With --queries, hubs that look planted are named; without, each item is "
        "used as a query.",
    )
    verb.add_source()
    verb.add_queries()
    option(verb, "--text COLUMN", TEXT)
    option(verb, "-k K", "neighbours that are counted (default: 10)", type=positive, default=10)


def _doctor(options: VerbOptions) -> None:
    from ..repair.doctor import diagnose

    queries = options.open_queries()
    diagnosis = diagnose(options.open_source(), queries=queries, **options.given("text", "k"))
    lines, n = str(diagnosis).split("\n"), len(diagnosis.advice)
    advice = [line.replace(" INDEX ", f" {options.source_words()} ") for line in lines[-n:]]
    verdict = styled(VERDICTS[diagnosis.verdict], advice[:2])
    options.show(diagnosis, [*lines[:-n], *verdict, *advice[2:]])


def add_explain(verb: Verb) -> None:
    """Add the options of `hubless explain`."""
    verb.explain(_explain, "hubless explain model", more="It reads the model alone, not the index.")
    option(verb, "model", f"{MODEL}, or one that hubless.save wrote")


def _explain(options: VerbOptions) -> None:
    from ..repair.explanation import explain_model

    options.show(explain_model(options.model))


def add_preview(verb: Verb) -> None:
    """Add the options of `hubless preview`."""
    verb.explain(
        _preview,
        "hubless preview model index.faiss --items items.csv --text title --queries q.npy --rows 0 7",
        "hubless preview model lancedb:shop#products --like 4711",
        more="Nothing is written: the nearest items are fetched, moved in memory and ranked again.",
    )
    option(verb, "model", MODEL)
    verb.add_source()
    verb.add_queries()
    option(verb, "--rows N", "row numbers of queries, from 0 (default: the first 3)", type=int, nargs="+")
    option(verb, "--like ID", "use the vectors of these items as queries", nargs="+")
    option(verb, "--text COLUMN", "column of items to show")
    option(verb, "-k K", "answers to show (default: 10)", type=positive, default=10)
    text = f"items to fetch and rank again for each query (default: {FETCHED})"
    option(verb, "--fetch N", text, type=positive, default=FETCHED, dest="fetched")


def _preview(options: VerbOptions) -> None:
    from ..repair.preview import preview_index

    names = ("rows", "like", "k", "fetched", "text")
    source, queries = options.open_source(), options.open_queries()
    previews = preview_index(options.model, source, queries, **options.given(*names))
    options.show([vars(preview) for preview in previews], "\n\n".join(map(str, previews)).split("\n"))


def add_predict(verb: Verb) -> None:
    """Add the options of `hubless predict`."""
    verb.explain(
        _predict,
        "hubless predict model queries.npy --source index.faiss --items items.csv > classes.txt",
        "hubless predict model queries.npy --source index.faiss --items items.csv --reject 0.05 --table",
        "hubless predict classifier queries.npy  # a classifier that hubless.save wrote",
        more="It prints one class per line, in the order of the queries; control and invisible characters "
        "of a class are printed as spaces, and kept by --json. --json and --table also give the probability "
        "of the class and the familiarity of the query, where the model was calibrated.",
    )
    option(verb, "model", f"{MODEL}, or a classifier that hubless.save wrote")
    verb.add_queries("queries")
    verb.add_source("--source SOURCE", f"the items that vote; {SOURCE}")
    option(verb, "--labels COLUMN-OR-FILE", f"{LABELS} (default: the column that the model learned from)")
    option(verb, "-k K", "items that vote (default: as many as were chosen with the model)", type=positive)
    text = "answer `unknown` for queries unlike anything stored, at this rate of false alarms, e.g. 0.05"
    option(verb, "--reject RATE", text, type=float)
    text = "the answer for such queries where classes are texts (default: unknown; -1 where they are numbers)"
    option(verb, "--unknown CLASS", text)
    text = "print a table, as CSV: query, class, probability, familiarity and, with --reject, rejected"
    option(verb, "--table", text)


def _predict(options: VerbOptions) -> None:
    from ..repair.predict import predict_index

    found = predict_index(
        options.model,
        options.open_queries(),
        options.open_source(),
        labels=options.labels,
        n_neighbors=options.k,
        **options.given("reject", "unknown"),
    )
    columns = {"query": found.ids, "class": found.classes.tolist()}
    for name, values in (
        ("probability", found.probabilities),
        ("familiarity", found.familiarity),
        ("rejected", found.rejected),
    ):
        if values is not None:
            columns[name] = values.tolist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    options.show(rows, csv_lines(columns) if options.table else map(str, found.classes.tolist()))


def csv_lines(columns: dict[str, list[Any]]) -> Iterator[str]:
    """Yield the lines of a table, the names of its columns first."""
    for row in (columns, *zip(*columns.values(), strict=True)):
        line = StringIO()
        writer(line, lineterminator="").writerow(row)
        yield line.getvalue()
