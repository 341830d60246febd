"""The command line: every verb measures and writes one raw file; two of them make pages of the files."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import (
    beyond,
    fit,
    gpu,
    growth,
    index_stores,
    index_tables,
    memory,
    page,
    retrieval,
    retrieval_page,
    scale_page,
    search,
    select,
    skew,
    tables,
    workers,
)
from .record import FOLDER, PEERS, Options, read, write

VERBS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "search": search.measure,
    "fit": fit.measure,
    "select": select.measure,
    "growth": growth.measure,
    "memory": memory.measure,
}
# on a machine with an accelerator, so no part of `all`
ELSEWHERE: dict[str, Callable[[Options], dict[str, Any]]] = {
    "gpu": gpu.measure,
    "gpu-stream": gpu.stream,
    "gpu-tests": gpu.tests,
}
# of repaired indexes, with raw files and a page of their own
INDEX: dict[str, Callable[[Options], dict[str, Any]]] = {
    "pairs": retrieval.pairs,
    "labels": retrieval.labels,
    "stores": index_stores.measure,
}
# of more data than memory, and more workers than one
SCALE: dict[str, Callable[[Options], dict[str, Any]]] = {
    "beyond": beyond.measure,
    "workers": workers.measure,
    "skew": skew.measure,
}
GROUPS = {"all": VERBS, "retrieval": INDEX, "scale": SCALE}
PAGES = {"page": page.write, "retrieval-page": retrieval_page.write, "scale-page": scale_page.write}


def parser() -> argparse.ArgumentParser:
    """Every verb and its options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time hubless beside the bare matrix products and its peers. Each verb writes its raw "
        "seconds to one JSON file; `page` makes docs/speed.md of the files of `all`, and `retrieval-page` "
        "docs/index-results.md of those of `retrieval`, `scale-page` docs/scale.md of those of `scale`.",
        epilog="example: python -m benchmarks search --quick --out look",
    )
    verbs = (*VERBS, *ELSEWHERE, *INDEX, *SCALE, *GROUPS, *PAGES)
    parser.add_argument("verb", choices=verbs, help="what to measure or make")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and 2 rounds, to see that it runs")
    parser.add_argument("--repeats", type=int, help="rounds (default: 7)")
    parser.add_argument("--limit", type=float, default=600, help="seconds a learner may take (default: 600)")
    parser.add_argument("--out", type=Path, help="folder of raw results (default: in results/)")
    parser.add_argument("--docs", type=Path, default=page.DOCS, help="folder of the page (docs)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; all of them in a process each, as what one loads may slow another."""
    told = parser().parse_args(arguments)
    is_index = told.verb in (*INDEX, "retrieval", "retrieval-page")
    is_scale = told.verb in (*SCALE, "scale", "scale-page")
    home = retrieval_page.FOLDER if is_index else scale_page.FOLDER if is_scale else FOLDER
    out = told.out or home
    if told.verb in PAGES:
        try:
            print(*PAGES[told.verb](read(out), told.docs), sep="\n")
        except FileNotFoundError as error:
            print(f"benchmarks: {error}", file=sys.stderr)
            return 1
        return 0
    if told.verb in GROUPS:
        rest = ["--limit", str(told.limit), "--out", str(out), *["--quick"] * told.quick]
        rest += ["--repeats", str(told.repeats)] if told.repeats else []
        command = [sys.executable, "-m", "benchmarks"]
        codes = [subprocess.run([*command, verb, *rest]).returncode for verb in GROUPS[told.verb]]
        return int(any(codes))
    repeats, pause = (2, 0.0) if told.quick else (7, 0.1)
    options = Options(told.quick, told.repeats or repeats, told.limit, pause, out)
    device = gpu.name() if told.verb in ELSEWHERE else "cpu"
    peers = retrieval_page.PEERS if is_index else scale_page.PEERS if is_scale else PEERS
    measure = {**VERBS, **ELSEWHERE, **INDEX, **SCALE}[told.verb]
    cases = write(told.verb, measure(options), options, device, peers)["cases"]
    if is_scale:
        print(json.dumps(cases, indent=1))
    else:
        print(*(index_tables.of if is_index else tables.of)(told.verb, cases), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
