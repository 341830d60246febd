"""The verbs that change what a model has learned, without the data it learned from: update, merge."""

import argparse
from functools import reduce
from pathlib import Path
from typing import Any

from .. import model_dir
from ..index.collection import collect
from ..index.life import merged, updated, without
from ..index.repair import Repair
from ..stores.store import StoreError
from .options import Verbs, add_source, add_verb, model_of, show, source_of


def add_verbs(verbs: Verbs) -> None:
    """Both, in the order in which a user meets them."""
    _add_update(verbs)
    _add_merge(verbs)


def _add_update(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "update",
        "let a model learn from new labeled items besides, or forget items, without its old data",
        _update,
        [
            "hubless update model new.npy --items new.csv --labels category -o model-2",
            "hubless update model-2 new.npy --items new.csv --labels category --remove -o model-3",
        ],
        "For models of `hubless fit --mover ridge`. The old model stays; the strength of the move is not "
        "chosen again.",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote")
    add_source(verb)
    verb.add_argument("--labels", required=True, metavar="COLUMN", help="column with the class of each item")
    verb.add_argument("--remove", action="store_true", help="forget these items instead")
    _add_out(verb)


def _update(options: argparse.Namespace) -> None:
    _check_free(options.out)
    model = model_of(options.model)
    items = collect(source_of(options), [options.labels], progress=None)
    change = without if options.remove else updated
    _save(options, change(model, items, options.labels))


def _add_merge(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "merge",
        "make one model of several that learned from different items, without any of the data",
        _merge,
        ["hubless merge model-of-paris model-of-tokyo -o model"],
        "The strength of the move is that of the first.",
    )
    verb.add_argument("model", help="folder that `hubless fit --mover ridge` wrote")
    verb.add_argument("others", nargs="+", metavar="model", help="one or more of the same kind")
    _add_out(verb)


def _merge(options: argparse.Namespace) -> None:
    _check_free(options.out)
    _save(options, reduce(merged, [model_of(folder) for folder in (options.model, *options.others)]))


def _add_out(verb: Any) -> None:
    verb.add_argument("-o", "--out", required=True, metavar="MODEL", help="folder to write, a new one")


def _check_free(out: str) -> None:
    """Refuse to write over a model: the old one is what an error is undone with."""
    if (Path(out).expanduser() / model_dir.CONFIG).exists():
        raise StoreError(f"{out} holds a model already, and stays as it is. Give -o another name.")


def _save(options: argparse.Namespace, model: Repair) -> None:
    model_dir.save(model, options.out)
    learned, event = model.facts["learned"], model.facts["life"][-1]
    lines = [f"{options.out}: learned from {learned['n']:,} in all; since `fit`: {learned['since then']}."]
    if not event.get("exact", True):
        lines.append(
            "These items were not learned as one batch: what they have to do with other items stays learned, "
            "and this model may be farther from one that never saw them than before. Rather fit again."
        )
    lines.append(f"next: hubless evaluate {options.out} …, as its figures are not known yet")
    show(options, {"model": str(options.out), "hash": model.hash, **model.facts}, "\n".join(lines))
