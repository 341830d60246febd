"""The verbs that build a moved index and switch to it: apply, promote, rollback, status."""

import shlex
from typing import Any

from .options import MODEL, Verb, VerbOptions, add_dask, option


def add_apply(verb: Verb) -> None:
    """Add the options of `hubless apply`."""
    verb.explain(
        _apply,
        "hubless apply model index.faiss -o moved.faiss",
        "hubless apply model postgresql://me@localhost/shop#products -o products_moved",
        more="After an interruption, run the same command again: it resumes in a database, and starts a "
        "file over. Run it again, too, when rows were added, changed or removed.",
    )
    option(verb, "model", MODEL)
    verb.add_source()
    option(verb, "-o --out TARGET", "file, table or collection to create", required=True)
    add_dask(verb)


def _apply(options: VerbOptions) -> None:
    from ..repair.apply import apply_index

    result = apply_index(options.model, options.open_source(), options.out, dask=options.dask, progress=None)
    lines = [
        f"{result['target']}: {result['rows']:,} rows, {result['written']:,} written and "
        f"{result['removed']:,} removed in this run.",
        *result["notes"],
        f"{options.source} is unchanged and serves as before. "
        f"Next: hubless promote {options.typed_source()} {shlex.quote(options.out)}",
    ]
    options.show(result, "\n".join(lines))


def add_promote(verb: Verb) -> None:
    """Add the options of `hubless promote`."""
    verb.explain(
        _promote,
        "hubless promote index.faiss moved.faiss",
        "hubless promote lancedb:shop#products products_moved",
        more="One step: every query finds either the original or the moved index.",
    )
    verb.add_source()
    option(verb, "target", "name that was given to `hubless apply -o`")


def _promote(options: VerbOptions) -> None:
    from ..repair.apply import promote_index

    result = promote_index(options.open_source(), options.target)
    words = (
        f"{result['serving']} now serves the moved vectors; the original is kept as {result['original']}.\n"
        f"To undo: hubless rollback {options.typed_source()}"
    )
    options.show(result, words)


def add_rollback(verb: Verb) -> None:
    """Add the options of `hubless rollback`."""
    verb.explain(_rollback, "hubless rollback index.faiss")
    verb.add_source()


def _rollback(options: VerbOptions) -> None:
    from ..repair.apply import rollback_index

    result = rollback_index(options.open_source())
    kept = f"the moved index is kept as {result['moved_kept_as']}"
    words = f"{result['serving']} serves the original again; {kept}."
    if result["added_since"]:
        words += (
            f"\n{result['added_since']:,} rows were added since the switch; only the moved index has them."
        )
    options.show(result, words)


def add_status(verb: Verb) -> None:
    """Add the options of `hubless status`."""
    verb.explain(_status, "hubless status index.faiss")
    verb.add_source()


def _status(options: VerbOptions) -> None:
    from ..repair.apply import index_status

    result = index_status(options.open_source())
    options.show(result, _status_words(result))


def _status_words(result: dict[str, Any]) -> str:
    metric = result["metric"] or "unknown"
    rows = f"{result['count']:,} rows of {result['dimension']} columns"
    head = f"{result['name']}: {result['status']}, {rows}, metric {metric}"
    if result["model"] is None:
        return head
    lines = [head, f"moved by model {result['model'][:12]}, from {result['source']}"]
    if result["original"] is not None:
        missing = ", which no longer exists: there is no way back"
        lines.append(f"original kept as {result['original']}{'' if result['original_is_there'] else missing}")
    return "\n".join(lines)
