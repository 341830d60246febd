"""The verbs that build a moved index and switch to it: apply, promote, rollback, recover, status."""

from typing import Any

from ..support.commands import typed
from ..support.credentials import without_secrets
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
    verb.add_dry_run(lambda options: [options.open_source().sibling(options.out).name])


def _apply(options: VerbOptions) -> None:
    from ..repair.apply import apply_index

    store = options.open_source()
    result = apply_index(options.model, store, options.out, dask=options.dask)
    model = typed("--model", options.model) if store.can_reconcile else []
    lines = [
        f"{result['target']}: {result['rows']:,} rows, {result['written']:,} written and "
        f"{result['removed']:,} removed in this run.",
        *result["notes"],
        f"{without_secrets(options.source)} is unchanged and serves as before.",
        *options.next_command("next:", "promote", options.source, options.out, more=model),
    ]
    options.show(result, lines)


def add_promote(verb: Verb) -> None:
    """Add the options of `hubless promote`."""
    verb.explain(
        _promote,
        "hubless promote index.faiss moved.faiss",
        "hubless promote lancedb:shop#products products_moved",
        "hubless promote postgresql://me@localhost/shop#products products_moved --model model",
        more="The switch is one step: every query finds either the original or the moved index. Only Chroma "
        "has no such step: for a moment, nothing has the name. A DuckDB file must be closed by all other "
        "programs.",
    )
    verb.add_source()
    option(verb, "target", "name that was given to `hubless apply -o`")
    option(
        verb, "--model MODEL", "for PostgreSQL: move rows that changed since `hubless apply`, with its model"
    )
    text = "with --model: longest time that writers may have to wait (default: 30)"
    option(verb, "--max-wait SECONDS", text, type=float, default=30.0)
    verb.add_dry_run(_switched)


def _switched(options: VerbOptions) -> list[str]:
    return [f"{options.source}: what its name serves is switched, and both copies are kept"]


def _promote(options: VerbOptions) -> None:
    from ..repair.apply import promote_index

    given = options.given("model", "max_wait")
    result = promote_index(options.open_source(), options.target, **given)
    head = f"{result['serving']} now serves the moved vectors; the original is kept as {result['original']}."
    note = [result["note"]] if result["note"] else []
    options.show(result, [head, *note, *options.next_command("To undo:", "rollback", options.source)])


def add_rollback(verb: Verb) -> None:
    """Add the options of `hubless rollback`."""
    verb.explain(_rollback, "hubless rollback index.faiss")
    verb.add_source()
    verb.add_dry_run(_switched)


def _rollback(options: VerbOptions) -> None:
    from ..repair.apply import rollback_index

    result = rollback_index(options.open_source())
    kept = f"the moved index is kept as {result['moved_kept_as']}"
    lines = [f"{result['serving']} serves the original again; {kept}."]
    if result["added_since"]:
        lines.append(
            f"{result['added_since']:,} rows were added since the switch; only the moved index has them."
        )
    options.show(result, lines + ([result["note"]] if result["note"] else []))


def add_recover(verb: Verb) -> None:
    """Add the options of `hubless recover`."""
    verb.explain(
        _recover,
        "hubless recover folder-of-parts",
        more="`promote` and `rollback` do this first, too; no other verb does.",
    )
    verb.add_source()
    verb.add_dry_run(_switched)


def _recover(options: VerbOptions) -> None:
    from ..repair.apply import recover_index

    result = recover_index(options.open_source())
    done = "An interrupted switch was recovered." if result["recovered"] else "There was nothing to recover."
    options.show(result, [done, *_status_lines(result)])


def add_status(verb: Verb) -> None:
    """Add the options of `hubless status`."""
    verb.explain(_status, "hubless status index.faiss")
    verb.add_source()


def _status(options: VerbOptions) -> None:
    from ..repair.apply import index_status

    result = index_status(options.open_source())
    options.show(result, _status_lines(result))


def _status_lines(result: dict[str, Any]) -> list[str]:
    metric = result["metric"] or "unknown"
    rows = f"{result['count']:,} rows of {result['dimension']} columns"
    head = f"{result['name']}: {result['status']}, {rows}, metric {metric}"
    if result["interrupted"]:
        recover = "if it was interrupted, `hubless recover` completes or undoes it"
        return [head, f"a switch is happening now or was interrupted: {recover}"]
    if result["model"] is None:
        return [head]
    lines = [head, f"moved by model {result['model'][:12]}, from {result['source']}"]
    if result["original"] is not None:
        missing = ", which no longer exists: there is no way back"
        lines.append(f"original kept as {result['original']}{'' if result['original_is_there'] else missing}")
    return lines
