"""The verbs that make models: fit learns one, update adds and removes items, merge joins several."""

import argparse
import os
from pathlib import Path
from typing import Any

from ..support.commands import typed
from ..support.credentials import without_secrets
from .options import LABELS, MODEL, Verb, VerbOptions, add_dask, files_of, option, positive

LEFT_OUT = {  # facts of a model that count what it was not learned from, in words for one and for many
    "without a vector or a label": (
        "item has no finite vector or no label, and was not learned from.",
        "items have no finite vector or no label, and were not learned from.",
    ),
    "items without a vector": (
        "item has no finite vector, and was ignored.",
        "items have no finite vector, and were ignored.",
    ),
    "queries without a vector": (
        "query has no finite vector, and was ignored.",
        "queries have no finite vector, and were ignored.",
    ),
    "pairs left out": (
        "pair was ignored: its query or item is unknown, or has no vector.",
        "pairs were ignored: their query or item is unknown, or has no vector.",
    ),
}


def add_fit(verb: Verb) -> None:
    """Add the options of `hubless fit`."""
    verb.explain(
        _fit,
        "hubless fit index.faiss --items items.csv --labels category -o model",
        "hubless fit docs.npy --metric cosine --items docs.csv --id doc_id --pairs qrels.tsv \\",
        "    --queries queries.npy --query-items queries.json -o model",
        "hubless fit index.faiss --queries log.npy -o model",
        "hubless fit folder-of-parts --labels category --memory 2GB -o model",
        more="From labels and from answers (--pairs), the mover is chosen on held-out queries; not moving "
        "at all is one of the choices. From queries alone, items that answer more of them than chance allows "
        "are held back.",
    )
    verb.add_source()
    verb.add_truth(required=False)
    verb.add_queries()
    option(verb, "-o --out MODEL", "folder to write (default: model)", default="model")
    text = "from queries, L2 only: keep the exact correction in one more column; queries then need a 0 there"
    option(verb, "--column", text)
    text = "from labels: the best of many movers (auto, the default), or the paper's (ridge)"
    option(verb, "--mover", text, choices=("auto", "ridge"), default="auto")
    verb.add_seed("the folds and samples")
    verb.add_dry_run(files_of("out"))
    group = verb.add_argument_group(
        "more items than memory",
        "From labels, items are read block by block where they do not fit in memory,\n"
        "or where one of these is given.",
    )
    option(group, "--memory SIZE", "memory limit, e.g. 2GB (default: half of RAM)")
    text = 'pairs to learn from at most, or "all" (default: all where affordable, else a sample)'
    option(group, "--max-pairs N", text, type=_max_pairs, default="auto")
    text = "folder for intermediate results (default: MODEL.scratch), from which interrupted runs resume"
    option(group, "--scratch FOLDER", text, type=Path)
    add_dask(group)
    option(group, "--skip-bad", "skip unreadable parts and list them")


def _max_pairs(text: str) -> Any:
    if text.lower() in ("all", "auto"):
        return None if text.lower() == "all" else "auto"
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'must be a whole number of at least 1, or "all"; got {text}')
    return positive(text)


def _fit(options: VerbOptions) -> None:
    if options.labels is None and options.queries is None and options.pairs is None:
        options.usage_error(
            "give what to learn from: --labels COLUMN, --queries LOG --pairs FILE, or --queries LOG alone"
        )
    from ..repair.learn_index import fit_index
    from ..saving import save

    _check_out(options)
    store, scratch = options.open_source(), options.scratch
    names = ("labels", "pairs", "mover", "column", "memory", "max_pairs", "skip_bad", "dask", "random_state")
    model = fit_index(
        store,
        queries=options.open_queries(),
        in_parts=None if scratch is None else True,
        scratch=f"{options.out}.scratch" if scratch is None and options.labels is not None else scratch,
        **options.given(*names),
    )
    save(model, options.out)
    learned = {name: value for name, value in model.facts["learned"].items() if name != "seen"}
    result = {"model": str(options.out), "hash": model.hash, **model.facts, "learned": learned}
    options.show(result, _fit_lines(options, learned, model, store.moved_name))


def _check_out(options: VerbOptions) -> None:
    """Refuse, before anything is learned, a folder that the model could not be saved in."""
    from ..saving.folder import check_replaceable
    from ..stores.checks import check_outside

    check_replaceable(options.out)
    check_outside(options.open_source(), options.out)
    if getattr(options, "queries", None) is not None:
        check_outside(options.open_queries(), options.out)


def _fit_lines(options: VerbOptions, learned: dict[str, Any], model: Any, moved: str) -> list[str]:
    """Return what was learned, and what to do next; `moved` is a name for the moved index."""
    lines = [f"{options.out}: {learned['mover']}", learned["chosen by"], *_part_lines(learned)]
    lines += _correction_lines(learned)
    for name, (one, many) in LEFT_OUT.items():
        n = learned.get(name)
        lines += [f"{n:,} {one if n == 1 else many}"] if n else []
    if model.moves_nothing:
        measured = "Moving does not help measurably here: keep the index as it is."
        return [*lines, "Keep the index as it is." if learned["from"] == "log" else measured]
    lines += [] if model.query_note is None else [model.query_note]
    return [
        *lines,
        *_preview_lines(options),
        "`hubless evaluate` measures it, with queries of your own.",
        *options.next_command("next:", "apply", options.out, options.source, more=typed("-o", moved)),
    ]


def _preview_lines(options: VerbOptions) -> list[str]:
    """Return a command that shows what would change, for queries that were given or for an item.

    None where no item can be read: parts that were skipped are refused by `hubless preview`, too.
    """
    from ..repair.preview import item_to_ask
    from ..stores.store import StoreError

    if options.queries is not None:
        asked = [*typed("--queries", without_secrets(options.queries)), *options.query_options()]
    else:
        try:
            item = item_to_ask(options.open_source())
        except (StoreError, OSError):  # the model is saved, whatever became of its source
            item = None
        if item is None:
            return []
        asked = typed("--like", item)
    return options.next_command("To see it:", "preview", options.out, options.source, more=asked)[:1]


def _correction_lines(learned: dict[str, Any]) -> list[str]:
    """Return what a user should know of a correction that was learned from a log of queries."""
    lines = []
    if learned["from"] != "log" and "correction" in learned:
        lines += [f"correction: {learned['correction']}", learned["correction chosen by"]]
    for item in learned.get("held items", []):
        lines.append(f"  {item['id']}: {item['before']:,} → {item['after']:,} answers")
    agreement = learned.get("agreement without a column")
    if agreement is not None:
        lines.append(
            f"Without a column, {agreement:.1%} of the answers to held-out queries are those of the exact "
            "correction."
        )
    return lines


def _part_lines(learned: dict[str, Any]) -> list[str]:
    """Return what a user should know of a model that was learned block by block."""
    if "chosen on" not in learned:
        return []
    pairs = f"{learned['pairs']:,} pairs of " if learned["pairs"] else ""
    lines = [f"Learned from {pairs}{learned['n']:,} items."]
    if learned["chosen on"] < learned["n"]:
        lines.insert(
            0, f"Chosen on a sample of {learned['chosen on']:,} items, on which the figure was measured."
        )
    if learned["sampled"]:
        lines.append(f"These are a sample of all {learned['all pairs']:,} pairs; --max-pairs all takes all.")
    lines += [f"skipped: {entry['why']}" for entry in learned["left out"]]
    if learned["left out"]:
        lines.append("Repair or remove these parts before `hubless apply`, which moves all or none.")
    return lines


def add_update(verb: Verb) -> None:
    """Add the options of `hubless update`."""
    verb.explain(
        _update,
        "hubless update model new.npy --items new.csv --labels category -o model-2",
        "hubless update model-2 new.npy --items new.csv --labels category --remove -o model-3",
        more="This works for models of `hubless fit --mover ridge`. The old model is not changed; the "
        "strength λ of the move is not chosen again.",
    )
    option(verb, "model", MODEL)
    verb.add_source()
    option(verb, "--labels COLUMN-OR-FILE", LABELS, required=True)
    option(verb, "--remove", "forget these items instead")
    option(verb, "-o --out MODEL", "new folder to write", required=True)
    verb.add_dry_run(files_of("out"))


def _update(options: VerbOptions) -> None:
    _check_new(options.out)
    _check_out(options)
    from ..repair.update import update_model

    names = ("model", "labels", "remove")
    _save_updated(options, update_model(source=options.open_source(), **options.given(*names)))


def add_merge(verb: Verb) -> None:
    """Add the options of `hubless merge`."""
    verb.explain(
        _merge,
        "hubless merge model-of-paris model-of-tokyo -o model",
        more="The strength λ of the move is that of the first.",
    )
    option(verb, "model", "folder that `hubless fit --mover ridge` wrote")
    option(verb, "others", "one or more other models of the same kind", nargs="+", metavar="model")
    option(verb, "-o --out MODEL", "new folder to write", required=True)
    verb.add_dry_run(files_of("out"))


def _merge(options: VerbOptions) -> None:
    from ..repair.update import merge_models
    from ..saving.folder import check_replaceable

    _check_new(options.out)
    check_replaceable(options.out)

    _save_updated(options, merge_models([options.model, *options.others]))


def _check_new(out: str) -> None:
    """Refuse to overwrite a model: the old one is needed to undo a mistake."""
    from ..saving.folder import CONFIG

    if (Path(os.path.expanduser(out)) / CONFIG).exists():
        raise ValueError(f"{out} contains a model already, and is not changed. Give -o another name.")


def _save_updated(options: VerbOptions, model: Any) -> None:
    from ..saving import save

    save(model, options.out)
    learned, event = model.facts["learned"], model.facts["life"][-1]
    unit = "pairs" if learned.get("from") == "pairs" else "items"
    count = f"learned from {learned['n']:,} {unit} in all"
    lines = [f"{options.out}: {count}; since `fit`: {learned['since then']}."]
    if not event.get("exact", True):
        lines.append(
            "These items were not learned as one batch: their pairs with other items remain, and this model "
            "may differ more from one that never saw them than the old one does. Fit again instead."
        )
    lines.append("It has no figures yet: measure it with `hubless evaluate`.")
    options.show({"model": str(options.out), "hash": model.hash, **model.facts}, lines)
