"""The verbs of the paper: run its experiments, make its tables."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .. import datasets
from ..paper import published, standings, tables
from ..paper.contest import CONTENDERS
from ..paper.experiment import METHODS
from ..paper.pages import MOVED, PLAIN, write_pages
from ..paper.reproduce import PASSES, Options, outcomes, plan, reproduce
from .options import Verbs, positive


def add_verbs(verbs: Verbs) -> None:
    """reproduce, tables and standings."""
    _add_reproduce(verbs)
    _add_tables(verbs)
    _add_standings(verbs)


def _add_reproduce(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "reproduce",
        help="run the paper's experiments, one raw result per data set, method and split",
        description="Run the paper's experiments. Each cell (data set × method × split) is one small JSON "
        "file; finished cells are skipped, so a stopped run goes on where it was. When the cells are done, "
        "their training times are measured one at a time. `hubless tables` makes tables of the files.",
        epilog="examples: hubless reproduce --datasets iris wine --splits 2   |   "
        "hubless reproduce --jobs 4 --out results   |   exit code 1: a cell failed, its file says why",
    )
    several: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    verb.add_argument(
        "--datasets",
        **several,
        choices=tuple(datasets.RECIPES),
        default=datasets.NAMES,
        help=f"of {', '.join(datasets.RECIPES)} (default: the paper's 13)",
    )
    verb.add_argument(
        "--methods",
        **several,
        choices=(*METHODS, *CONTENDERS),
        default=tuple(published.METHODS),
        help=f"of {', '.join((*METHODS, *CONTENDERS))} (default: the paper's six)",
    )
    verb.add_argument("--splits", type=positive, default=4, help="random 70 : 30 splits (default: 4)")
    verb.add_argument("--dim", type=positive, default=300, help="principal components (default: 300)")
    verb.add_argument("--out", type=Path, default=Path("results"), help="folder of raw results (results)")
    verb.add_argument("--jobs", type=positive, default=1, help="cells side by side (default: 1)")
    verb.add_argument("--only", choices=PASSES, help="run the cells, or time those that are there")
    verb.add_argument("--rows", type=positive, help="a random part of each data set, for a quick look")
    verb.add_argument("--data-dir", type=Path, help="where data files are (default: $HUBLESS_DATA)")
    verb.add_argument("--device", default="cpu", help='where to compute: "cpu" (default) or "cuda"')
    verb.add_argument(
        "--report", type=Path, metavar="FOLDER", help="also write the hubness page of each data set there"
    )
    verb.add_argument("--json", action="store_true", help="print what each cell came to as JSON")
    verb.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    if options.report is not None and not {PLAIN, MOVED} <= set(options.methods):
        raise ValueError(f"the pages of --report compare {PLAIN} with {MOVED}: add them to --methods.")
    cells = plan(options.datasets, options.methods, options.splits, options.dim)
    shared = Options(options.out, options.data_dir, options.rows, options.device)
    reproduce(cells, shared, options.jobs, PASSES if options.only is None else (options.only,))
    found = outcomes(cells, shared)
    failed = [entry for entry in found if entry["status"] == "failed"]
    done = sum(entry["status"] == "done" for entry in found)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{done} of {len(found)} results are in {options.out}; next: hubless tables {options.out}")
    if options.report is not None:
        for page in write_pages(options.datasets, options.dim, shared, options.report):
            print(page, file=sys.stderr if options.json else sys.stdout)
    for entry in failed:
        print(f"hubless: {entry['file']}: {entry['error']}", file=sys.stderr)
    return 1 if failed else 0


def _add_tables(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "tables",
        help="make the paper's tables from raw results, beside the paper's figures",
        description="Make Tables 1 to 4 from the raw results of `hubless reproduce`: Markdown, CSV, LaTeX, "
        "JSON and a figure for each table.",
        epilog="example: hubless tables results --out tables",
    )
    verb.add_argument("results", type=Path, help="folder of raw results")
    verb.add_argument("--out", type=Path, default=Path("tables"), help="folder to write to (tables)")
    verb.add_argument("--json", action="store_true", help="print the tables as JSON and write nothing")
    verb.set_defaults(run=_tables)


def _tables(options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(tables.as_json(tables.read(options.results)), indent=1))
    else:
        print(*tables.write(options.results, options.out), sep="\n")


def _add_standings(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "standings",
        help="make the table of movers from raw results",
        description="Make the table of movers (accuracy, skewness, seconds, what auto chose and what that "
        "proves) from the raw results of `hubless reproduce`.",
        epilog="example: hubless standings results --out tables",
    )
    verb.add_argument("results", type=Path, nargs="+", help="folders of raw results; the first has priority")
    verb.add_argument("--out", type=Path, default=Path("tables"), help="folder to write to (tables)")
    verb.add_argument("--json", action="store_true", help="print the table as JSON and write nothing")
    verb.set_defaults(run=_standings)


def _standings(options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(standings.as_json(options.results), indent=1))
    else:
        print(*standings.write(options.results, options.out), sep="\n")
