"""The command line: one verb per job, each a thin call of one function."""

import argparse
import json
from collections.abc import Sequence

from . import __version__, demo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 when it did its job, 2 for a command line that makes no sense."""
    parser = argparse.ArgumentParser(
        prog="hubless",
        description="Better k-nearest-neighbour answers: move the stored vectors, never the queries.",
    )
    parser.add_argument("--version", action="version", version=f"hubless {__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")

    verb = verbs.add_parser(
        "demo",
        help="compare Euclidean, Move-query and Move-labeled on data that comes with scikit-learn",
        description="Compare Euclidean, Move-query and Move-labeled on digits, wine, iris and blobs.",
        epilog="example: hubless demo --splits 5 --json",
    )
    verb.add_argument("--splits", type=_positive, default=3, help="random 70 : 30 splits (default: 3)")
    verb.add_argument("--json", action="store_true", help="print the rows as JSON")
    verb.set_defaults(run=_demo)

    parsed = parser.parse_args(arguments)
    parsed.run(parsed)
    return 0


def _demo(options: argparse.Namespace) -> None:
    rows = demo.compare(options.splits)
    print(json.dumps(rows, indent=1) if options.json else demo.table(rows))


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {text}")
    return value
