"""The verbs of reliability: faults, loads, and the page of both. What a verb needs is loaded when it runs."""

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from .record import DOCS


def add(verbs: Any) -> None:
    """Add these verbs to the command line."""
    _add_faults(verbs)
    _add_loads(verbs)
    page = verbs.add_parser("reliability-page", help="make docs/reliability.md from the raw results")
    page.add_argument("--out", type=Path, help="folder of raw results (default: results/reliability)")
    page.add_argument("--docs", type=Path, default=DOCS, help="folder of the page (default: docs)")
    page.set_defaults(run=_page)


def _add_faults(verbs: Any) -> None:
    verb = verbs.add_parser(
        "faults",
        help="disturb every operation on every store, one raw result per store, operation and fault",
        description="Kill apply, promote, rollback, save, update and fit, fill their disk, take away "
        "their rights, cut their connection, set the clock back, run two at once; then look with the "
        "store's own client. Finished cells are skipped, so an interrupted run resumes; "
        "`reliability-page` makes the page.",
        epilog="example: python -m benchmarks faults --stores npy --faults kill --count 3 --out look",
    )
    several: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    verb.add_argument("--stores", **several, help="default: all; `model` stands for model folders")
    verb.add_argument("--faults", **several, help="default: all")
    verb.add_argument("--count", type=int, help="trials of a cell (default: 20, with --quick 2)")
    verb.add_argument("--quick", action="store_true", help="2 trials a cell, of .npy and a folder of parts")
    verb.add_argument("--again", action="store_true", help="measure finished cells again")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/reliability)")
    verb.set_defaults(run=_faults)


def _add_loads(verbs: Any) -> None:
    verb = verbs.add_parser(
        "loads",
        help="put a million rows through every store while it is asked, one raw result each",
        description="Load rows as the store's users do, apply, promote and roll back, each in a process of "
        "its own, while the store's own client asks. Finished stores are skipped, so an interrupted run "
        "resumes; `reliability-page` makes the page.",
        epilog="example: python -m benchmarks loads --stores .npy --rows 10000 --out look",
    )
    verb.add_argument("--stores", nargs="+", metavar="NAME", help="default: all")
    verb.add_argument("--rows", type=int, help="default: 1000000, with --quick 3000")
    verb.add_argument("--columns", type=int, help="default: 128, with --quick 16")
    verb.add_argument("--quick", action="store_true", help="few rows of .npy and FAISS, to see that it runs")
    verb.add_argument("--again", action="store_true", help="measure finished stores again")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/reliability)")
    verb.set_defaults(run=_loads)


def _faults(options: argparse.Namespace) -> int:
    from . import reliability_faults as faults

    stores = options.stores or (["npy", "parts"] if options.quick else None)
    count = options.count or (faults.QUICK if options.quick else faults.COUNT)
    if count < 1:
        raise ValueError(f"--count must be at least 1, got {count}.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the small disk is given back
    keys, kept = faults.plan(stores, options.faults), faults.cells_of(options.out or faults.FOLDER)
    faults.run(keys, kept, count, options.again)
    broken = list(faults.failures(kept))
    print(f"{len(keys) - len(broken)} of {len(keys)} cells held; all are in {kept.folder}")
    print(*broken, sep="\n", end="\n" if broken else "", file=sys.stderr)
    return int(bool(broken))


def _loads(options: argparse.Namespace) -> int:
    from . import reliability_loads as loads

    names = options.stores or ([".npy", "FAISS Flat"] if options.quick else [*loads.LOADS])
    rows = options.rows or (loads.TINY if options.quick else loads.ROWS)
    columns = options.columns or (16 if options.quick else loads.COLUMNS)
    kept = loads.cells_of(options.out or loads.FOLDER)
    loads.run(names, kept, rows, columns, options.again)
    failed = {key: entry for key, entry in kept.entries.items() if entry["status"] == "failed"}
    print(f"{len(kept.entries) - len(failed)} of {len(kept.entries)} stores are in {kept.folder}")
    for key, entry in failed.items():
        print(f"benchmarks: {key.store}: {entry['error']}", file=sys.stderr)
    return int(bool(failed))


def _page(options: argparse.Namespace) -> None:
    from . import reliability_page as page

    print(*page.write(options.out or page.FOLDER, options.docs), sep="\n")
