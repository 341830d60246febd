"""Names in SQL: always quoted, whatever a user or a database calls its tables and columns."""

from collections.abc import Iterable


def quoted(name: str) -> str:
    """Return a name for a statement, in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str], before: str = "") -> str:
    """Return names with commas, each after a text such as "t."."""
    return ", ".join(before + quoted(name) for name in names)
