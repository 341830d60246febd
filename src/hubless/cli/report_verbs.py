"""The verbs that measure what moving changes: evaluate, in figures, and report, as a page."""

import sys
from argparse import ArgumentTypeError
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..report import LAYOUTS
from .options import MODEL, TEXT, Verb, VerbOptions, files_of, option, positive

PAGE = Path("report.html")


def port(text: str) -> int:
    """Return the number of a port."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"must be a port from 1 to 65535; got {text}")
    return int(text)


def add_evaluate(verb: Verb) -> None:
    """Add the options of `hubless evaluate`."""
    verb.explain(
        _evaluate,
        "hubless evaluate model index.faiss --items items.csv --labels category \\",
        "    --queries test.npy --query-items test.csv --query-labels category",
        "hubless evaluate model docs.npy --metric cosine --items docs.csv --id doc_id \\",
        "    --pairs test.tsv --queries queries.npy --query-items queries.json",
        "hubless evaluate model index.faiss --queries new-queries.npy",
        more="The search is exact. Give queries that the model has not learned from. Without --labels or "
        "--pairs, hubs are counted before and after, beside what chance gives.",
    )
    option(verb, "model", MODEL)
    verb.add_source()
    verb.add_queries(required=True)
    verb.add_truth(required=False)
    _add_comparison(verb)
    option(verb, "--report FILE", "also write the page of `hubless report`", type=Path)
    _add_drawing(verb)
    verb.add_dry_run(files_of("report", "parquet", "card"))
    verb.set_defaults(random_state=0)


def _evaluate(options: VerbOptions) -> None:
    if options.report is not None:
        _check_truth(options)
        report, files = _write_page(options, options.report)
        evaluation = report.evaluation
        options.show({**evaluation.as_dict(), **files}, [*str(evaluation).split("\n"), *_page_lines(files)])
        return
    for name in ("parquet", "card"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} is a part of the page: give --report FILE too.")
    if options.labels is None and options.pairs is None:
        from ..repair.log_evaluation import evaluate_log

        stores = {"source": options.open_source(), "queries": options.open_queries()}
        options.show(evaluate_log(options.model, **stores, k=options.k or 10))
        return
    from ..repair.evaluate import evaluate_index

    names = ("model", "labels", "pairs", "query_labels", "k")
    stores = {"source": options.open_source(), "queries": options.open_queries()}
    options.show(evaluate_index(**stores, **options.given(*names)))


def add_report(verb: Verb) -> None:
    """Add the options of `hubless report`."""
    verb.explain(
        _report,
        "hubless report index.faiss --items items.csv --labels category --open",
        "hubless report docs.npy --metric cosine --items docs.csv --id doc_id --text title \\",
        "    --pairs qrels.tsv --queries queries.npy --query-items queries.json -o page.html",
        "hubless report index.faiss --items items.csv --labels category --model model \\",
        "    --queries test.npy --query-items test.csv -o page.html",
        more="The page is one HTML file that opens without a network. Without --model, a quarter of the "
        "items (or of the judged queries) is held out, the rest is learned from, and the page shows what "
        "that changes for those held out; with --labels and --queries, all items are learned from, and "
        "these queries are used. The index is not changed.",
    )
    verb.add_source()
    option(verb, "--model MODEL", f"{MODEL}; needs --queries")
    verb.add_queries()
    verb.add_truth(required=False)
    _add_comparison(verb)
    verb.add_seed("what is held out and drawn")
    where = verb.add_mutually_exclusive_group()
    option(where, "-o --out FILE", f"file to write (default: {PAGE})", type=Path)
    text = "write nothing, and show the page by a server for this computer alone (default: any free port)"
    option(where, "--serve PORT", text, nargs="?", type=port, const=0)
    text = "with --serve: embed what one types, by a command (text on stdin, numbers on stdout) or st:MODEL"
    option(verb, "--embed COMMAND", text)
    option(verb, "--open", "show the page in the browser")
    _add_drawing(verb)
    verb.add_dry_run(_page_files)


def _page_files(options: VerbOptions) -> list[str]:
    """Return the files that would be written."""
    files = [] if options.serve is not None else files_of("out")(options) or [str(PAGE)]
    return [*files, *files_of("parquet", "card")(options)]


def _check_truth(options: VerbOptions) -> None:
    """Refuse a page without known answers, and lead to what can be done without."""
    if options.labels is None and options.pairs is None:
        options.usage_error(
            "the page shows which answers are right: give classes (--labels COLUMN), or queries and their "
            "answers (--queries SOURCE --pairs FILE). With a log of queries alone, `hubless doctor INDEX "
            "--queries LOG` shows the hubs, `hubless fit INDEX --queries LOG -o MODEL` holds them back, and "
            "`hubless evaluate MODEL INDEX --queries LOG` shows what that changes. With items alone, "
            "`hubless doctor INDEX` shows the hubs among them"
        )


def _report(options: VerbOptions) -> None:
    import webbrowser

    _check_truth(options)
    if options.serve is not None:
        _serve(options)
        return
    if options.embed is not None:
        options.usage_error("--embed answers what one types, which needs a server: give --serve too")
    report, files = _write_page(options, options.out or PAGE)
    summary = report.figures["summary"]
    verdict = f"{summary['verdict']['title']}. {summary['verdict']['words']}"
    options.show({**report.figures, **files}, [summary["sentence"], verdict, *_page_lines(files)])
    if options.open:
        webbrowser.open(Path(files["page"]).resolve().as_uri())


def _serve(options: VerbOptions) -> None:
    """Serve the page until Ctrl-C."""
    import webbrowser

    from ..report.serve import page_server

    if options.parquet is not None or options.card is not None:
        options.usage_error("--serve writes nothing: leave out --parquet and --card")
    report, server = page_server(
        options.open_source(), embed=options.embed, port=options.serve, **_page_options(options)
    )
    with server:
        lines = [f"The page is at {server.address}", "Only this computer can open it. Ctrl-C ends it."]
        options.show({**report.figures, "page": server.address}, lines)
        sys.stdout.flush()
        if options.open:
            webbrowser.open(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _add_comparison(verb: Verb) -> None:
    """Add the options that say how answers are compared with the truth."""
    text = "column with the class of each query, or a file with one per row (default: as --labels)"
    option(verb, "--query-labels COLUMN-OR-FILE", text)
    text = (
        "answers that count (default: 10); with --labels, neighbours that vote (default: as the model chose)"
    )
    option(verb, "-k K", text, type=positive)


def _add_drawing(verb: Verb) -> None:
    """Add the options that say how a page is drawn, and what it shows."""
    option(verb, "--title TEXT", "title of the page (default: made of the data)")
    option(verb, "--text COLUMN", TEXT)
    option(verb, "--query-text COLUMN", "column of queries to show (default: as --text)")
    option(verb, "--image COLUMN", "column of items with the paths of their pictures")
    option(verb, "--query-image COLUMN", "column of queries with the same (default: as --image)")
    option(verb, "--link URL", "address of an item, with {id}, such as https://example.org/items/{id}")
    option(verb, "--layout", "layout of the map (default: pca)", choices=LAYOUTS, default="pca")
    text = "items on the map at most (default: 10000)"
    option(verb, "--points N", text, type=positive, default=10_000, dest="max_points")
    option(verb, "--parquet FILE", "also write a table for embedding-atlas", type=Path)
    option(verb, "--card FILE", "also write the verdict as a picture to share (.png, 1200 × 630)", type=Path)


def _write_page(options: VerbOptions, page: Path) -> Any:
    """Write the page, and the table and the picture where they are wanted; return a WrittenReport."""
    from ..plot import check_card, save_card
    from ..report.index_report import write_index_report

    if options.card is not None:
        check_card(options.card)
    source = options.open_source()
    written = write_index_report(source, page, parquet=options.parquet, **_page_options(options))
    if options.card is not None:
        written.files["card"] = str(save_card(written.report, options.card))
    return written


def _page_options(options: VerbOptions) -> dict[str, Any]:
    """Return what is measured and shown."""
    from ..report.index_report import Named

    truth = ("labels", "pairs", "query_labels", "k")
    shown = ("title", "text", "query_text", "image", "query_image", "link", "layout", "max_points")
    names = Named(options.source, options.source_options(), options.queries, options.query_options())
    return {
        "queries": options.open_queries(),
        "named": names,
        **options.given("model", *truth, *shown, "random_state"),
    }


def _page_lines(files: dict[str, Any]) -> list[str]:
    """Return where the page is, and the command that opens the table."""
    lines = [f"{files['page']} ({files['bytes'] / 1e6:.1f} MB) opens in any browser."]
    if "command" in files:
        lines.append(f"{files['parquet']} opens with: {files['command']}")
        lines.append("embedding-atlas is a separate program: pip install embedding-atlas")
    if "card" in files:
        lines.append(f"{files['card']} is a picture to share.")
    return lines
