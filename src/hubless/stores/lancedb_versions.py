"""Versions of a LanceDB table: which one it is, how an old one is kept, and how it is served again.

A version is kept by a branch: that keeps its files when old versions are cleaned up, where a tag would make
every such clean-up fail.
"""

import secrets
from typing import Any


def state_of(table: Any) -> str:
    """The version, and when it was made: a table that was dropped and made again counts from 1 again."""
    made = {told["version"]: told["timestamp"] for told in table.list_versions()}
    return f"version {table.version} of {made[table.version].timestamp():.6f}"


def keep(table: Any, word: str, version: int) -> str:
    """The branch that keeps a version, made where there is none."""
    for branch, told in table.branches.list().items():
        if branch.startswith(f"hubless-{word}-") and told["parent_version"] == version:
            return str(branch)
    # never a name twice: one whose making was killed can neither be used nor be made again
    branch = f"hubless-{word}-{version}-{secrets.token_hex(3)}"
    table.branches.create(branch, from_version=version)
    return branch


def kept(table: Any, branch: str) -> int | None:
    """The version that a branch keeps; None where there is no such branch."""
    told = table.branches.list().get(branch)
    return None if told is None else told["parent_version"]


def serve_again(table: Any, version: int) -> str:
    """Restore an old version in one commit; the branch that keeps the one that was served until then."""
    before = table.version
    branch = keep(table, "moved", before)
    table.restore(version)
    if table.version != before + 1:  # others wrote to it until the last moment
        branch = keep(table, "moved", table.version - 1)
    return branch
