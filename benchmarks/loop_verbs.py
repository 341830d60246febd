"""The verbs of the loop that keeps learning: its replays, and their page."""

import argparse
from pathlib import Path
from typing import Any

from .record import DOCS

KINDS = ("good", "random", "poison")


def add(verbs: Any) -> None:
    """Add these verbs to the command line."""
    verb = verbs.add_parser(
        "loop",
        help="replay a log in ten slices with `hubless watch`, one raw result a replay",
        description="Replay SciFact's training claims in ten slices: as judgements and as simulated clicks, "
        "as random clicks, and with poisoned slices. Finished replays are skipped, so an interrupted run "
        "resumes; `loop-page` makes the page.",
        epilog="example: python -m benchmarks loop --quick --out look",
    )
    verb.add_argument("--quick", action="store_true", help="tiny data and few slices, to see that it runs")
    verb.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="default: all")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/loop)")
    verb.set_defaults(run=_loop)
    page = verbs.add_parser("loop-page", help="make docs/loop-results.md from the raw results")
    page.add_argument("--out", type=Path, help="folder of raw results (default: results/loop)")
    page.add_argument("--docs", type=Path, default=DOCS, help="folder of the page (default: docs)")
    page.set_defaults(run=_loop_page)


def _loop(options: argparse.Namespace) -> None:
    from . import replays

    out = options.out or replays.FOLDER
    n = sum(len(replays.run(kind, out, options.quick).entries) for kind in options.kinds)
    print(f"{n} replays are in {out}")


def _loop_page(options: argparse.Namespace) -> None:
    from . import loop_page, replays

    print(loop_page.write(options.out or replays.FOLDER, options.docs))
