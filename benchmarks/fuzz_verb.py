"""The verb `fuzz` of the command line."""

import argparse
import sys
from pathlib import Path
from typing import Any


def add(verbs: Any) -> None:
    """Add the verb and its options."""
    verb = verbs.add_parser(
        "fuzz",
        help="read damaged and hostile files of every kind, for as long as you like",
        description="Change valid files of every kind that hubless reads, and read them in processes with "
        "limits of memory and time. A crash, an error that is not one of ours, a changed file or code that "
        "runs is a finding: its files are written to FOUND; mended, they are kept in tests/fuzz/corpus.",
        epilog="example: python -m benchmarks fuzz --seconds 3600 --seed 7 --target arrow --target npz",
    )
    verb.add_argument("--seconds", type=float, default=600, help="for all targets together (default: 600)")
    verb.add_argument(
        "--target", action="append", metavar="NAME", help="only this kind of input (default: all)"
    )
    verb.add_argument("--seed", type=int, default=0, help="the same seed makes the same files (default: 0)")
    verb.add_argument("--found", type=Path, help="folder of findings (default: fuzz-found)")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/reliability)")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fuzz, write the raw result and print what was found; 1 where that is a defect of ours."""
    from . import fuzz
    from .record import Options, write

    unknown = set(options.target or ()) - set(fuzz.TARGETS)
    if unknown:
        raise ValueError(
            f"unknown target {', '.join(sorted(unknown))}; targets are {', '.join(fuzz.TARGETS)}"
        )
    found = options.found or Path("fuzz-found")
    cases = fuzz.measure(options.target or list(fuzz.TARGETS), options.seconds, options.seed, found)
    how = Options(limit=options.seconds, repeats=1, out=options.out or fuzz.FOLDER)
    write("fuzz", {"seed": options.seed, "limits": fuzz.LIMITS, "targets": cases}, how, peers=fuzz.PEERS)
    for name, result in cases.items():
        print(f"{name}: {result.get('executions', 'left out')}")
        for one in result.get("findings", ()):
            print(f"  {one['times']} × {one['kind']}, {one['where']}: {one['text']:.200}", file=sys.stderr)
    return int(any(fuzz.defects(result) for result in cases.values()))
