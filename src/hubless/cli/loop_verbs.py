"""The verbs of the loop that keeps learning: watch makes one step, history shows what was decided."""

from pathlib import Path
from typing import Any

from .options import Verb, VerbOptions, files_of, option, positive


def add_watch(verb: Verb) -> None:
    """Add the options of `hubless watch`."""
    verb.explain(
        _watch,
        "hubless watch index.faiss --items items.csv --log clicks.jsonl --queries log.npy",
        "hubless watch index.faiss --items items.csv --log clicks.jsonl --queries log.npy --write",
        more="A scheduler calls it again and again. When the log has grown by a slice, a candidate is "
        "learned from all earlier slices and tested on this one. Without --write, it says what it would do "
        "and changes nothing.",
    )
    verb.add_source()
    text = "what was shown and clicked, or judgements: JSON lines, CSV or Parquet, growing at its end"
    option(verb, "--log FILE", text, required=True, type=Path)
    verb.add_queries()
    option(verb, "--folder FOLDER", "where the journal and the versions are (default: loop)", default="loop")
    option(verb, "--write", "do what is decided, and write it to the journal")
    text = "different queries with an answer that make a slice (default: 100)"
    option(verb, "--slice N", text, type=positive, default=100, dest="slice_size")
    option(verb, "--keep N", "versions that are kept (default: 3)", type=positive, default=3)
    text = "numbers of slices that are not learned from, from now on"
    option(verb, "--leave-out N", text, type=positive, nargs="+", default=())
    text = "attention falls with the rank r as r to the power -ETA (default: 1)"
    option(verb, "--eta ETA", text, type=float, default=1.0)
    verb.add_seed("the folds that settings are chosen by")


def _watch(options: VerbOptions) -> None:
    from ..loop.watch import watch_index

    names = ("folder", "write", "slice_size", "keep", "leave_out", "eta", "random_state")
    result = watch_index(
        options.open_source(),
        options.log,
        queries=options.open_queries(),
        **options.given(*names),
    )
    options.show(result, _watch_lines(options, result))


def _watch_lines(options: VerbOptions, result: dict[str, Any]) -> list[str]:
    serving = f"version {result['serving']}" if result["serving"] else "the original"
    lines = [f"{result['decision']}: {result['why']}", *result["notes"]]
    for figure in [*result["figures"], *result["guards"]]:
        span = "too few questions for an interval"
        if figure["low"] is not None and abs(figure["low"]) != float("inf"):
            span = f"{figure['low']:+.3f} to {figure['high']:+.3f}"
        falls = ", FALLS" if figure.get("falls") else ""
        lines.append(f"  {figure['what']}: {figure['mean']:+.3f} ({span}){falls}")
    if result["written"]:
        return [*lines, f"{options.source} serves {serving}; the journal is in {options.folder}."]
    if result["decision"] == "wait":
        return lines
    return [*lines, f"Nothing was changed: with --write, {options.source} would serve {serving}."]


def add_history(verb: Verb) -> None:
    """Add the options of `hubless history`."""
    verb.explain(_history, "hubless history loop", "hubless history loop --page loop.html")
    option(verb, "folder", "folder of a loop, as of `hubless watch --folder`")
    option(verb, "--page FILE", "also write a page that shows it", type=Path)
    verb.add_dry_run(files_of("page"))


def _history(options: VerbOptions) -> None:
    from ..loop.history import read_history

    history = read_history(options.folder)
    lines = str(history).split("\n")
    if options.page is not None:
        from ..loop.history_page import write_history

        lines.append(f"The page is {write_history(options.folder, options.page)}.")
    options.show(history, lines)
