"""The verbs of the paper: the demo, its experiments, its tables."""

from pathlib import Path
from typing import Any

from ..paper import names
from ..support.commands import command
from .lines import write_error
from .options import Verb, VerbOptions, files_of, option, positive


def add_demo(verb: Verb) -> None:
    """Add the options of `hubless demo`."""
    verb.explain(
        _demo,
        "hubless demo --splits 5 --json",
        more="The data are 600 handwritten digits, wine, iris, and blobs made in 200 dimensions.",
    )
    option(verb, "--splits N", "random 70 : 30 splits (default: 2)", type=positive, default=2)
    option(verb, "--report FILE", "also write a page about the hubs of the blobs", type=Path)
    verb.add_dry_run(files_of("report"))


def _demo(options: VerbOptions) -> None:
    from ..paper import demo
    from ..report.page import check_page

    if options.report is not None:
        check_page(options.report)
    rows = demo.compare(options.splits)
    options.show(rows, demo.table(rows).split("\n"))
    if options.report is not None:
        page = demo.report().save(options.report)
        options.remark("", f"{page} shows the hubs of the blobs, before and after.")


def add_reproduce(verb: Verb) -> None:
    """Add the options of `hubless reproduce`."""
    verb.explain(
        _reproduce,
        "hubless reproduce --datasets iris wine --splits 2",
        "hubless reproduce --jobs 4 --out results",
        more="Each cell (data set × method × split) is one small JSON file; finished cells are skipped, so "
        "an interrupted run resumes. When the cells are done, their training times are measured one at a "
        "time. `hubless tables` makes tables of the files. The exit code is 1 if a cell failed; its file "
        "says why.",
    )
    for what, allowed, default, words in (
        ("datasets", names.DATASETS, names.PAPER_DATASETS, "the paper's 13"),
        ("methods", names.METHODS, names.PAPER_METHODS, "the paper's six"),
    ):
        text = f"one or more of {', '.join(allowed)} (default: {words})"
        option(verb, f"--{what} NAME", text, nargs="+", choices=allowed, default=[*default])
    option(verb, "--splits N", "random 70 : 30 splits (default: 4)", type=positive, default=4)
    option(verb, "--dim N", "principal components (default: 300)", type=positive, default=300)
    folder = Path("results")
    option(verb, "--out FOLDER", f"folder of raw results (default: {folder})", type=Path, default=folder)
    option(verb, "--jobs N", "cells that run in parallel (default: 1)", type=positive, default=1)
    text = "only run the cells, or only measure the times of finished cells"
    option(verb, "--only", text, choices=names.PASSES)
    option(verb, "--rows N", "take N random objects of each data set, for a quick look", type=positive)
    text = "folder with the data files (default: $HUBLESS_DATA, else ~/.cache/hubless/data)"
    option(verb, "--data-dir FOLDER", text, type=Path)
    option(verb, "--device DEVICE", 'where to compute: "cpu" (default) or "cuda"', default="cpu")
    option(verb, "--report FOLDER", "also write a page about the hubs of each data set there", type=Path)
    verb.add_dry_run(files_of("out", "report"))


def _reproduce(options: VerbOptions) -> int:
    from ..paper.pages import MOVED, PLAIN, check_pages, write_pages
    from ..paper.reproduce import Options, outcomes, plan, reproduce

    if options.report is not None and not {PLAIN, MOVED} <= set(options.methods):
        raise ValueError(f"the pages of --report compare {PLAIN} with {MOVED}: add them to --methods.")
    if options.report is not None:
        check_pages(options.datasets, options.report)
    cells = plan(options.datasets, options.methods, options.splits, options.dim)
    shared = Options(options.out, options.data_dir, options.rows, options.device)
    reproduce(cells, shared, options.jobs, names.PASSES if options.only is None else (options.only,))
    results = outcomes(cells, shared)
    options.show(results, [_outcome(results, options.out)])
    if options.report is not None:
        for page in write_pages(options.datasets, options.dim, shared, options.report):
            options.remark(str(page))
    failed = [entry for entry in results if entry["status"] == "failed"]
    for entry in failed:
        write_error(f"{entry['file']}: {entry['error']}")
    return 1 if failed else 0


def _outcome(results: list[dict[str, Any]], out: Path) -> str:
    """Return how many cells and times are finished, and what to do next."""
    from ..paper.raw import is_time

    counts = []
    for what, of_time in (("cells", False), ("training times", True)):
        done = [entry["status"] == "done" for entry in results if is_time(entry["file"]) == of_time]
        counts += [f"{sum(done)} of {len(done)} {what}"] * bool(done)
    is_any_done = any(entry["status"] == "done" for entry in results)
    tables = command("tables", str(out))
    after = f"next: {tables}" if is_any_done else "the same command tries again"
    return f"{' and '.join(counts) or 'no cell'} finished, in {out}; {after}"


def add_tables(verb: Verb) -> None:
    """Add the options of `hubless tables`."""
    verb.explain(
        _tables,
        "hubless tables results --out tables",
        more="It writes Tables 1 to 4 of the paper as Markdown, CSV, LaTeX and JSON, and a figure of each, "
        "which needs matplotlib (pip install 'hubless[plot]'). With --json, it prints them and writes "
        "nothing.",
    )
    option(verb, "results", "folder of raw results of `hubless reproduce`", type=Path)
    option(verb, "--out FOLDER", "folder to write (default: tables)", type=Path, default=Path("tables"))
    verb.add_dry_run(files_of("out"))


def _tables(options: VerbOptions) -> None:
    from ..paper import results, tables

    if options.json and not options.dry_run:
        options.show(tables.as_json(results.read(options.results)))
    else:
        options.show(None, map(str, tables.write(options.results, options.out)))
