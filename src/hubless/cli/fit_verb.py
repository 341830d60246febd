"""The verb that learns: fit, from items in memory, part by part from disk, or on Dask."""

import argparse
from pathlib import Path
from typing import Any

from .. import model_dir
from ..index.collection import collect
from ..index.large import is_large, learn_large, words
from ..index.learn import learn_from_labels, learn_from_pairs
from ..index.pairs import judged
from ..index.repair import Repair
from ..large.memory import budget
from ..large.sources import OfStore
from ..stores.store import Store, StoreError
from .options import (
    Verbs,
    add_dask,
    add_queries,
    add_source,
    add_verb,
    cluster_of,
    positive,
    queries_of,
    show,
    source_of,
)

# options that ask for items part by part, and what they are where nobody gave them
LARGE: dict[str, Any] = {
    "memory": None,
    "max_pairs": "auto",
    "scratch": None,
    "skip_bad": False,
    "dask": None,
}


def add_verbs(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "fit",
        "learn how to move the items of an index, from their labels or from queries and their answers",
        _fit,
        [
            "hubless fit index.faiss --items items.csv --labels category -o model",
            "hubless fit docs.npy --metric cosine --items docs.csv --id doc_id --pairs qrels.tsv \\",
            "    --queries queries.npy --query-items queries.json -o model",
            "hubless fit folder-of-parts --labels category --memory 2GB -o model",
        ],
        "Parameters are chosen on held-out queries; not to move is among the choices.",
    )
    add_source(verb)
    kind = verb.add_mutually_exclusive_group(required=True)
    kind.add_argument("--labels", metavar="COLUMN", help="column with the class of each item")
    kind.add_argument("--pairs", type=Path, metavar="FILE", help="judgements: query-id, corpus-id, score")
    add_queries(verb, required=False)
    verb.add_argument(
        "-o", "--out", default="model", metavar="MODEL", help="folder to write (default: model)"
    )
    verb.add_argument(
        "--mover",
        choices=("auto", "ridge"),
        default="auto",
        help="from labels: the best of many, or the paper's",
    )
    verb.add_argument("--seed", type=int, default=0, help="of the folds and samples (default: 0)")
    _add_large(verb)


def _add_large(verb: Any) -> None:
    group = verb.add_argument_group(
        "more items than memory",
        "From labels, items are read part by part where they do not fit, or where one of these is given.",
    )
    group.add_argument("--memory", metavar="SIZE", help="the most to use, as 2GB (default: half of all)")
    group.add_argument(
        "--max-pairs",
        type=_pairs,
        default="auto",
        metavar="N",
        help='pairs to learn from at most, or "all" (default: 50 per column)',
    )
    group.add_argument(
        "--scratch",
        type=Path,
        metavar="FOLDER",
        help="for the items by class, as large as they are (default: MODEL.scratch); what is killed goes on",
    )
    add_dask(group)
    group.add_argument("--skip-bad", action="store_true", help="leave bad parts out, and tell of them")


def _pairs(text: str) -> Any:
    if text.lower() in ("all", "auto"):
        return None if text.lower() == "all" else "auto"
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'must be a number of at least 1, or "all"; got {text}')
    return positive(text)


def _fit(options: argparse.Namespace) -> None:
    store = source_of(options)
    if options.labels is not None:
        model = _from_labels(options, store)
    else:
        asked = [name for name, default in LARGE.items() if getattr(options, name) != default]
        if asked:
            raise StoreError(f"--{asked[0].replace('_', '-')} is for --labels: pairs are learned in memory.")
        if options.queries is None:
            raise StoreError("--pairs needs the vectors of its queries: --queries SOURCE.")
        items = collect(store, progress=None)
        pairs, left_out = judged(queries_of(options), options.pairs, items)
        model = learn_from_pairs(items, pairs, random_state=options.seed, progress=None)
        model.facts["learned"]["pairs left out"] = left_out
    model_dir.save(model, options.out)
    learned = {name: value for name, value in model.facts["learned"].items() if name != "seen"}
    result = {"model": str(options.out), "hash": model.hash, **model.facts, "learned": learned}
    show(options, result, _words(options, learned, model.dimension))


def _from_labels(options: argparse.Namespace, store: Store) -> Repair:
    how = {"mover": options.mover, "random_state": options.seed}
    memory = budget(options.memory)
    if options.memory is not None and options.dask is not None:
        raise StoreError(
            "--memory is for one process; workers of Dask have limits of their own: leave it out."
        )
    asked = any(getattr(options, name) != default for name, default in LARGE.items())
    if not asked and not is_large(OfStore.facts_of(store), memory):
        return learn_from_labels(collect(store, [options.labels], progress=None), options.labels, **how)
    with cluster_of(options) as on_dask:
        return learn_large(
            store,
            options.labels,
            **how,
            max_pairs=options.max_pairs,
            memory=memory,
            scratch=options.scratch or Path(f"{options.out}.scratch"),
            skip_bad=options.skip_bad,
            progress=None,
            on_dask=on_dask,
        )


def _words(options: argparse.Namespace, learned: dict[str, Any], n_columns: int) -> str:
    lines = [f"{options.out}: {learned['mover']}", learned["chosen by"]]
    if "chosen on" in learned:
        lines += words(learned, n_columns)
    if learned.get("pairs left out"):
        lines.append(f"{learned['pairs left out']} pairs were left out: their query or item is not there.")
    moves = not learned["mover"].startswith(("Stay", "not to move"))
    given = {name: getattr(options, name) for name in ("vector", "id", "metric", "items")}
    source = " ".join([options.source, *(f"--{name} {value}" for name, value in given.items() if value)])
    lines.append(
        f"next: hubless preview {options.out} {source} …, then hubless apply {options.out} {source} -o NAME"
        if moves
        else "Moving does not help measurably here: keep the index as it is."
    )
    return "\n".join(lines)
