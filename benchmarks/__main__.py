"""The command line: verbs that measure and write raw results, and verbs that make pages from these.

A module is imported when its verb is called, so each verb needs only the packages that it measures.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from hubless.support.progress import reporting

from . import fuzz_verb, log_verbs, loop_verbs, reliability_verbs
from .record import DOCS, FOLDER, PEERS, Options, read, write

# verb → module and function that measures it
SPEED = {
    "search": "search:measure",
    "folding": "folding:measure",
    "fit": "fit:measure",
    "select": "select:measure",
    "growth": "growth:measure",
    "memory": "memory:measure",
    "startup": "startup:measure",
}
# on a machine with an accelerator, so not part of `all`
GPU = {"gpu": "gpu:measure", "gpu-stream": "gpu:stream", "gpu-tests": "gpu:tests"}
INDEX = {
    "pairs": "retrieval:pairs",
    "few": "few_pairs:measure",
    "labels": "retrieval:labels",
    "planted": "planted:measure",
    "stores": "index_stores:measure",
    "clients": "client_stores:measure",
    "client-files": "client_files:measure",
}
SCALE = {
    "beyond": "beyond:measure",
    "large": "large:measure",
    "workers": "workers:measure",
    "skew": "skew:measure",
    "sampled": "sampled:measure",
}
SCORES = {"probabilities": "scores:probabilities", "unknown": "scores:unknown"}


class Group(NamedTuple):
    """Verbs whose raw results are kept in one folder and shown on one page."""

    verbs: Mapping[str, str]
    all: str  # the verb that measures all of them, except the GPU's
    page: str  # the verb that makes the page
    page_module: str  # which has `write`, and for groups other than speed FOLDER and PEERS
    tables: str | None  # the module that shows raw results in the terminal; None prints JSON
    title: str

    def home(self) -> tuple[Path, Sequence[str]]:
        """The folder of the raw results, and the packages whose versions are recorded."""
        if self.all == "all":
            return FOLDER, PEERS
        module = _module(self.page_module)
        return module.FOLDER, module.PEERS


GROUPS = (
    Group({**SPEED, **GPU}, "all", "page", "speed_page", "speed_tables", "docs/speed.md"),
    Group(INDEX, "retrieval", "retrieval-page", "retrieval_page", "index_tables", "docs/index-results.md"),
    Group(SCALE, "scale", "scale-page", "scale_page", None, "docs/scale.md"),
    Group(SCORES, "scores", "scores-page", "scores_page", "scores_page", "docs/probabilities.md"),
)


def parser() -> argparse.ArgumentParser:
    """Every verb and its options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure hubless beside the bare matrix products and its peers. Verbs that measure write "
        "one JSON file of raw results each; `page` and the verbs that end in `-page` make pages from them.",
        epilog="example: python -m benchmarks search --quick --out look",
    )
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    for group in GROUPS:
        for verb in group.verbs:
            _add_measure(verbs, group, verb, f"measure one part of {group.title}")
        _add_measure(verbs, group, group.all, f"measure all parts of {group.title}, a process each")
        page = verbs.add_parser(group.page, help=f"make {group.title} from the raw results")
        page.add_argument("--out", type=Path, help="folder of raw results (default: in results/)")
        page.add_argument("--docs", type=Path, default=DOCS, help="folder of the page (default: docs)")
        page.set_defaults(run=_make_page, group=group)
    _add_movers(verbs)
    _add_curves(verbs)
    _add_standings(verbs)
    _add_fold(verbs)
    _add_mutations(verbs)
    _add_pages(verbs)
    fuzz_verb.add(verbs)
    log_verbs.add(verbs)
    loop_verbs.add(verbs)
    reliability_verbs.add(verbs)
    return parser


def _add_measure(verbs: Any, group: Group, verb: str, help: str) -> None:
    verb_parser = verbs.add_parser(verb, help=help)
    verb_parser.add_argument(
        "--quick", action="store_true", help="tiny sizes and 2 rounds, to see that it runs"
    )
    verb_parser.add_argument("--repeats", type=int, help="rounds (default: 7, with --quick 2)")
    verb_parser.add_argument(
        "--limit", type=float, default=600, help="seconds a learner may take (default: 600)"
    )
    verb_parser.add_argument("--out", type=Path, help="folder of raw results (default: in results/)")
    verb_parser.set_defaults(run=_measure_all if verb == group.all else _measure, group=group, verb=verb)


def _add_movers(verbs: Any) -> None:
    verb = verbs.add_parser(
        "movers",
        help="run every mover on the paper's data, one raw result per data set, mover and split",
        description="Run movers and linear classifiers on the harness of `hubless reproduce`. Finished cells "
        "are skipped, so an interrupted run resumes; `standings` makes the page.",
        epilog="example: python -m benchmarks movers --datasets iris --methods shrink auto --out look",
    )
    several: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    verb.add_argument("--quick", action="store_true", help="one split of 60 objects of iris")
    verb.add_argument("--datasets", **several, help="default: all")
    verb.add_argument("--methods", **several, help="default: NCA, auto and all movers")
    verb.add_argument("--splits", type=int, default=4, help="random 70 : 30 splits (default: 4)")
    verb.add_argument("--dim", type=int, default=300, help="principal components (default: 300)")
    verb.add_argument("--jobs", type=int, default=1, help="cells to run at the same time (default: 1)")
    verb.add_argument("--rows", type=int, help="only this many objects of each data set, for a quick look")
    verb.add_argument("--device", default="cpu", help='where to compute: "cpu" (default) or "cuda"')
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/movers)")
    verb.set_defaults(run=_movers)


def _add_curves(verbs: Any) -> None:
    verb = verbs.add_parser(
        "curves",
        help="run auto and others with few labels and on data with faults, one raw result each",
        description="Run Euclidean k-NN, Move-labeled, auto, LDA and logistic regression with 1 to 10 and "
        "all objects per class, and on data with faults: wrong labels, Zipf-sized classes, a column that "
        "dwarfs the others, every object twice. Finished cells are skipped, so an interrupted run resumes; "
        "`standings` makes the page.",
        epilog="example: python -m benchmarks curves --quick --out look",
    )
    verb.add_argument("--quick", action="store_true", help="one draw of made data")
    verb.add_argument("--methods", nargs="+", metavar="NAME", help="default: all")
    verb.add_argument("--again", action="store_true", help="measure finished cells again")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/curves)")
    verb.set_defaults(run=_curves)


def _add_standings(verbs: Any) -> None:
    verb = verbs.add_parser(
        "standings",
        help="make docs/movers-results.md and the short tables of README.md and docs/movers.md",
        description="Make the tables of movers (accuracy, skewness, seconds, what auto chose, which goals "
        "are met) from raw results. With --out, write to that folder only.",
        epilog="example: python -m benchmarks standings look --out tables",
    )
    verb.add_argument(
        "folders", type=Path, nargs="*", metavar="FOLDER", help="raw results; the first has priority"
    )
    verb.add_argument(
        "--curves",
        type=Path,
        metavar="FOLDER",
        help="raw results of `curves` (default: ours, without FOLDER)",
    )
    verb.add_argument("--out", type=Path, help="folder to write to (default: docs, and the short tables)")
    verb.add_argument("--json", action="store_true", help="print the tables as JSON and write nothing")
    verb.set_defaults(run=_standings)


def _add_fold(verbs: Any) -> None:
    verb = verbs.add_parser(
        "fold",
        help="collect the files that `hubless reproduce` wrote, one per cell, in results.jsonl",
        description="Collect the files of all cells in FOLDER/results.jsonl, one line per cell, and remove "
        "them when it is on the disk. `hubless tables` and `hubless reproduce` read both forms alike.",
        epilog="example: python -m benchmarks fold benchmarks/results/paper",
    )
    verb.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="folder of raw results")
    verb.set_defaults(run=_fold)


def _add_mutations(verbs: Any) -> None:
    verb = verbs.add_parser(
        "mutations",
        help="put defects into the source, one at a time, and run the tests until one notices",
        description="Run the fast tests, and where they notice nothing the others, on copies of the "
        "repository with one defect each: an hour or two.",
        epilog="example: python -m benchmarks mutations --quick --out look",
    )
    verb.add_argument("--quick", action="store_true", help="one defect, and the tests of tests/core alone")
    verb.add_argument("--out", type=Path, help="folder of raw results (default: results/tests)")
    verb.set_defaults(run=_mutations)


def _add_pages(verbs: Any) -> None:
    verb = verbs.add_parser(
        "pages",
        help="make pages of News, banking77, SciFact and Flickr8k, with their pictures to share",
        description="Make the pages of `hubless report` on News, banking77, SciFact and Flickr8k, and a "
        "picture of each to share. The data are read from HUBLESS_DATA.",
        epilog="example: python -m benchmarks pages news banking77 --out pages",
    )
    verb.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    verb.add_argument("--quick", action="store_true", help="tiny made data, to see that it runs")
    verb.add_argument("--out", type=Path, default=Path("pages"), help="folder to write to (default: pages)")
    verb.set_defaults(run=_pages)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb: 0 when it did its job, 1 when it could not."""
    options = parser().parse_args(arguments)
    try:
        with reporting(None):
            return options.run(options) or 0
    except (OSError, ValueError, ImportError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1


def _module(name: str) -> Any:
    return import_module(f".{name}", __package__)


def _movers(options: argparse.Namespace) -> int:
    movers = _module("movers")
    if options.quick:
        options.datasets, options.splits, options.rows = ["iris"], 1, 60
    out = options.out or movers.FOLDER
    cells = movers.cells(options.datasets, options.methods, options.splits, options.dim)
    raw = movers.run(cells, options.jobs, out=out, rows=options.rows, device=options.device)
    failed = [entry for entry in raw if entry["status"] == "failed"]
    print(f"{len(raw) - len(failed)} of {len(raw)} results are in {out}")
    for entry in failed:
        print(f"benchmarks: {entry['file']}: {entry['error']}", file=sys.stderr)
    return int(bool(failed))


def _curves(options: argparse.Namespace) -> None:
    curves, cells = _module("curves"), _module("curve_cells")
    kept = cells.Cells(options.out or cells.FOLDER)
    keys = curves.plan(options.methods or curves.METHODS, options.quick)
    curves.run(keys, kept, options.again)
    failed = [key for key in keys if kept.entries[key]["status"] == "failed"]
    print(f"{len(keys) - len(failed)} of {len(keys)} results are in {kept.folder}; errors are recorded there")


def _standings(options: argparse.Namespace) -> None:
    standings = _module("standings")
    folders = options.folders or standings.FOLDERS
    curves = options.curves or (None if options.folders else _module("curve_cells").FOLDER)
    if options.json:
        print(json.dumps(standings.as_json(folders, curves), indent=1))
        return
    print(*standings.write(folders, options.out or DOCS, curves), sep="\n")
    if options.out is None:
        print(*standings.put_summary(folders), sep="\n")


def _fold(options: argparse.Namespace) -> None:
    fold = _module("fold")
    for folder in options.folders:
        print(f"{fold.fold(folder)} results were folded into {folder / fold.FOLDED}")


def _mutations(options: argparse.Namespace) -> None:
    mutations = _module("mutations")
    how = Options(options.quick, 1, out=options.out or mutations.FOLDER)
    rows = write("mutations", mutations.measure(how), how, peers=mutations.PEERS)["cases"]["core"]["rows"]
    for row in rows:
        print(f"{row['what']}: {'noticed by ' + row['noticed by'] if row['noticed by'] else 'NOT NOTICED'}")


def _pages(options: argparse.Namespace) -> None:
    pages = _module("pages")
    print(*pages.write(options.names or [*pages.PAGES], options.out, options.quick), sep="\n")


def _make_page(options: argparse.Namespace) -> None:
    raw = read(options.out or options.group.home()[0])
    print(*_module(options.group.page_module).write(raw, options.docs), sep="\n")


def _measure_all(options: argparse.Namespace) -> int:
    """Each verb in a process of its own, since what one loads may slow another."""
    out = options.out or options.group.home()[0]
    rest = ["--limit", str(options.limit), "--out", str(out), *["--quick"] * options.quick]
    rest += ["--repeats", str(options.repeats)] if options.repeats else []
    verbs = [verb for verb in options.group.verbs if verb not in GPU]
    command = [sys.executable, "-m", "benchmarks"]
    codes = [subprocess.run([*command, verb, *rest]).returncode for verb in verbs]
    return int(any(codes))


def _measure(options: argparse.Namespace) -> None:
    group, verb = options.group, options.verb
    home, peers = group.home()
    module, function = group.verbs[verb].split(":")
    repeats, pause = (2, 0.0) if options.quick else (7, 0.1)
    how = Options(options.quick, options.repeats or repeats, options.limit, pause, options.out or home)
    device = _module("gpu").name() if verb in GPU else "cpu"
    cases = write(verb, getattr(_module(module), function)(how), how, device, peers)["cases"]
    if group.tables is None:
        print(json.dumps(cases, indent=1))
    else:
        print(*_module(group.tables).of(verb, cases), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
