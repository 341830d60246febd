"""The command line: one verb per job, each a thin call of one function."""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from .. import __version__, demo
from . import index_verbs, life_verbs, paper_verbs, report_verbs, switch_verbs
from .options import Verbs, positive

CODES = "exit codes: 0 done; 1 it could not be done, the message says why; 2 a senseless line; 130 stopped"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb: 0 when it did its job, 1 when it could not, 2 for a senseless line, 130 for Ctrl-C."""
    options = parser().parse_args(arguments)
    warnings.filterwarnings("ignore", "The number of unique classes")  # many classes are no mistake here
    try:
        return options.run(options) or 0
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        sys.stderr.close()
        return 0
    except (OSError, ValueError, ImportError) as error:
        print(f"hubless: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # ours to repair: one line for the user, all of it for a report
        if os.environ.get("HUBLESS_TRACEBACK"):
            raise
        print(
            f"hubless: {type(error).__name__}: {error}. This should have been said better; set "
            "HUBLESS_TRACEBACK=1 to see where it comes from.",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("hubless: stopped; what was finished is kept, and the same command goes on", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """Every verb and its options."""
    parser = argparse.ArgumentParser(
        prog="hubless",
        description="Better k-nearest-neighbour answers: move the stored vectors, never the queries.",
        epilog=CODES,
    )
    parser.add_argument("--version", action="version", version=f"hubless {__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    _add_demo(verbs)
    index_verbs.add_verbs(verbs)
    report_verbs.add_verbs(verbs)
    switch_verbs.add_verbs(verbs)
    life_verbs.add_verbs(verbs)
    paper_verbs.add_verbs(verbs)
    return parser


def _add_demo(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "demo",
        help="compare Euclidean, Move-query, Move-labeled and auto on data that comes with scikit-learn",
        description="Compare Euclidean, Move-query, Move-labeled and auto on digits, wine, iris and blobs.",
        epilog="example: hubless demo --splits 5 --json",
    )
    verb.add_argument("--splits", type=positive, default=3, help="random 70 : 30 splits (default: 3)")
    verb.add_argument("--report", type=Path, metavar="FILE", help="also write the page of the blobs there")
    verb.add_argument("--json", action="store_true", help="print the rows as JSON")
    verb.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> None:
    rows = demo.compare(options.splits)
    print(json.dumps(rows, indent=1) if options.json else demo.table(rows))
    if options.report is not None:
        page = demo.report().save(options.report)
        words = f"\nThe hubs of the blobs, before and after, to look at: {page}"
        print(words, file=sys.stderr if options.json else sys.stdout)
