"""The verbs of queries without labels: corrections from a log, their speed, and Balance with queries.

What a verb needs is loaded when it runs, so that help is fast.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .record import DOCS, FOLDER, Options, write


def add(verbs: Any) -> None:
    """Add these verbs to the command line."""
    _add_log(verbs)
    _add_log_speed(verbs)
    _add_transductive(verbs)


def _add_page(
    verbs: Any, name: str, text: str, folder: str, run: Callable[[argparse.Namespace], None]
) -> None:
    page = verbs.add_parser(name, help=text)
    page.add_argument("--out", type=Path, help=f"folder of raw results (default: results/{folder})")
    page.add_argument("--docs", type=Path, default=DOCS, help="folder of the page (default: docs)")
    page.set_defaults(run=run)


def _add_log(verbs: Any) -> None:
    verb = verbs.add_parser(
        "log",
        help="run every correction from a log of queries with every bank, one raw result each",
        description="Learn corrections from logged queries, without labels or judgements, on Flickr8k, "
        "SciFact and banking77, with banks of 100, 1,000, 5,000 and all logged queries, of the same kind as "
        "the queries or foreign. Finished cells are skipped, so an interrupted run resumes; `log-page` makes "
        "the page.",
        epilog="example: python -m benchmarks log --quick --out look",
    )
    verb.add_argument("--quick", action="store_true", help="tiny data and one draw, to see that it runs")
    verb.add_argument("--datasets", nargs="+", metavar="NAME", help="default: all")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/log)")
    verb.set_defaults(run=_log)
    _add_page(verbs, "log-page", "make docs/log-results.md from the raw results", "log", _log_page)


def _add_log_speed(verbs: Any) -> None:
    verb = verbs.add_parser(
        "log-speed",
        help="time corrections from a log of queries beside the bare product of log and items",
        epilog="example: python -m benchmarks log-speed --quick --out look",
    )
    verb.add_argument("--quick", action="store_true", help="tiny sizes and 2 rounds, to see that it runs")
    verb.add_argument("--repeats", type=int, help="rounds (default: 5, with --quick 2)")
    verb.add_argument("--device", default="cpu", help='where to compute: "cpu" (default) or "cuda"')
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/log)")
    verb.set_defaults(run=_log_speed)


def _add_transductive(verbs: Any) -> None:
    verb = verbs.add_parser(
        "transductive",
        help="compare queries without labels with labeled objects in Balance, one raw result each",
        description="Fit Balance, chains with it and auto, with labeled objects, a log of queries or the "
        "queries asked in the place of queries: with few labels, and with queries of another distribution. "
        "Finished cells are skipped, so an interrupted run resumes; `transductive-page` shows them.",
        epilog="example: python -m benchmarks transductive --quick --out look",
    )
    verb.add_argument("--quick", action="store_true", help="one draw of made data")
    verb.add_argument("--datasets", nargs="+", metavar="NAME", help="default: all")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/transductive)")
    verb.set_defaults(run=_transductive)
    text = "make the section of docs/movers.md on such queries"
    _add_page(verbs, "transductive-page", text, "transductive", _transductive_page)


def _log(options: argparse.Namespace) -> int:
    from . import log_cells, log_data

    out = options.out or log_cells.FOLDER
    found = log_cells.run(options.datasets or [*log_data.LOADERS], out, options.quick)
    entries = [entry for cells in found.values() for entry in cells.entries.values()]
    failed = [entry for entry in entries if entry["status"] == "failed"]
    print(f"{len(entries) - len(failed)} of {len(entries)} results are in {out}; errors are recorded there")
    return int(bool(failed))


def _log_page(options: argparse.Namespace) -> None:
    from . import log_page

    print(*log_page.write(options.out or log_page.FOLDER, options.docs), sep="\n")


def _log_speed(options: argparse.Namespace) -> None:
    from . import log_speed

    how = Options(
        options.quick,
        options.repeats or (2 if options.quick else 5),
        pause=0.0 if options.quick else 0.1,
        out=options.out or FOLDER.parent / "log",
    )
    name = "log-speed" if options.device == "cpu" else f"log-speed-{options.device.partition(':')[0]}"
    cases = write(name, log_speed.measure(how, options.device), how, options.device)["cases"]
    for metric, case in cases.items():
        for who, (middle, low, high) in case["ratio"].items():
            megabytes = case["peak bytes"][who] / 1e6
            print(
                f"{metric} {who}: {middle:.2f} ({low:.2f} to {high:.2f}) × product, {megabytes:.0f} MB more"
            )


def _transductive(options: argparse.Namespace) -> None:
    from . import curve_cells, transductive

    kept = curve_cells.Cells(options.out or transductive.FOLDER)
    keys = transductive.plan(options.datasets, options.quick)
    transductive.run(keys, kept)
    print(f"{len(keys)} results are in {kept.folder}")


def _transductive_page(options: argparse.Namespace) -> None:
    from . import transductive_page as page

    print(*page.put(options.out or page.FOLDER, options.docs / page.PAGE.name), sep="\n")
