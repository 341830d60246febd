"""The verbs that build a moved index and switch to it: apply, promote, rollback, status."""

import argparse
from typing import Any

from ..index.apply import apply, promote, rollback, status
from .options import Verbs, add_dask, add_source, add_verb, cluster_of, model_of, show, source_of


def add_verbs(verbs: Verbs) -> None:
    """All of them, in the order in which a user meets them."""
    _add_apply(verbs)
    _add_promote(verbs)
    _add_rollback(verbs)
    _add_status(verbs)


def _add_apply(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "apply",
        "build the moved index beside the one that serves, which is only read",
        _apply,
        [
            "hubless apply model index.faiss -o moved.faiss",
            "hubless apply model postgresql://me@localhost/shop#products -o products_moved",
        ],
        "Stopped or killed, the same command goes on; run after rows were added, it writes what is new.",
    )
    verb.add_argument("model", help="folder that `hubless fit` wrote")
    add_source(verb)
    verb.add_argument(
        "-o", "--out", required=True, metavar="TARGET", help="file, table or collection to make"
    )
    add_dask(verb)


def _apply(options: argparse.Namespace) -> None:
    with cluster_of(options) as on_dask:
        found = apply(
            model_of(options.model), source_of(options), options.out, progress=None, on_dask=on_dask
        )
    lines = [
        f"{found['target']}: {found['rows']:,} rows, {found['written']:,} written and {found['removed']:,} "
        f"removed in this run.",
        *found["notes"],
        f"{options.source} serves as before. Next: hubless promote {options.source} {options.out}",
    ]
    show(options, found, "\n".join(lines))


def _add_promote(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "promote",
        "let the name that is served be the moved index; the original is kept",
        _promote,
        ["hubless promote index.faiss moved.faiss", "hubless promote lancedb:shop#products products_moved"],
        "One step: whoever asks finds the one or the other.",
    )
    add_source(verb)
    verb.add_argument("target", help="what `hubless apply -o` made")


def _promote(options: argparse.Namespace) -> None:
    found = promote(source_of(options), options.target)
    words = (
        f"{found['serving']} is moved now; the original is kept as {found['original']}.\n"
        f"To undo: hubless rollback {options.source}"
    )
    show(options, found, words)


def _add_rollback(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "rollback",
        "let the name that is served be the original again; the moved index is kept",
        _rollback,
        ["hubless rollback index.faiss"],
    )
    add_source(verb)


def _rollback(options: argparse.Namespace) -> None:
    found = rollback(source_of(options))
    words = f"{found['serving']} is the original again; the moved index is kept as {found['moved_kept_as']}."
    if found["added_since"]:
        words += f"\n{found['added_since']:,} rows were added since; they are in that one alone."
    show(options, found, words)


def _add_status(verbs: Verbs) -> None:
    verb = add_verb(
        verbs,
        "status",
        "tell whether a name serves its original or a moved index, and by which model",
        _status,
        ["hubless status index.faiss"],
    )
    add_source(verb)


def _status(options: argparse.Namespace) -> None:
    found = status(source_of(options))
    show(options, found, _status_words(found))


def _status_words(found: dict[str, Any]) -> str:
    head = (
        f"{found['name']}: {found['status']}, {found['count']:,} rows, metric {found['metric'] or 'not told'}"
    )
    if found["model"] is None:
        return head
    lines = [head, f"moved by model {found['model'][:12]}, from {found['source']}"]
    if found["original"] is not None:
        there = (
            "" if found["original_is_there"] else ", which is not there any more: it cannot be rolled back"
        )
        lines.append(f"original kept as {found['original']}{there}")
    return "\n".join(lines)
