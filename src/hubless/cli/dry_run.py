"""`--dry-run`: do what a verb does up to its first step that takes long or writes; say what would follow."""

import os
from typing import Any

from ..support.credentials import without_secrets
from ..support.progress import DryRunEnds, dry_run
from .lines import styled
from .options import VerbOptions

READ = (
    *("model", "others", "source", "target", "items", "queries", "query_items", "pairs", "results"),
    *("datasets", "data_dir"),  # of the paper
)


def run_dry(options: VerbOptions) -> int:
    """Run a verb up to its first long step; what refuses it until then is printed as in the run itself."""
    try:
        with dry_run():
            return options.run(options) or 0  # there was nothing to do
    except DryRunEnds as end:
        writes = [without_secrets(name) for name in options.writes(options)]
        plan = {"dry_run": True, "reads": _read(options), "writes": writes, "next_step": str(end)}
        options.show(plan, _lines(plan))
        return 0


def _read(options: VerbOptions) -> list[str]:
    """Return what would be read, as it was typed, without secrets."""
    given = [getattr(options, name, None) for name in READ]
    names = [name for value in given for name in (value if isinstance(value, list) else [value])]
    return [without_secrets(os.fspath(name)) for name in names if name is not None]


def _lines(plan: dict[str, Any]) -> list[str]:
    lines = []
    for head, names in (("would read", plan["reads"]), ("would write", plan["writes"])):
        lines += [f"{head:<13}{name}" for name in names or ["nothing"]]
    lines.append(f"{'first step':<13}{plan['next_step']}")
    return [*lines, *styled("good", ["Nothing was refused up to there, and nothing was written."])]
