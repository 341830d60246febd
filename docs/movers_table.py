"""Write the table of movers in docs/movers.md, from their docstrings: python docs/movers_table.py"""

import re
from inspect import cleandoc, signature
from pathlib import Path

from hubless.movers import MOVERS, Chain

PAGE = Path(__file__).parent / "movers.md"
START, END = "<!-- made by docs/movers_table.py; a test compares -->\n", "<!-- end -->\n"
HEAD = "| mover | what it does | good | by label | column | in parts |\n|---|---|---|---|---|---|\n"


def row(name: str, kind: type) -> str:
    """Return the row of one mover: its first sentence, and what it is good for."""
    first = next(iter(signature(kind).parameters), "")
    text = cleandoc(kind.__doc__ or "").partition("Parameters\n---")[0]
    does = text.splitlines()[0].removesuffix(".")
    (good,) = re.search(r"Good ([^.:]*)", " ".join(text.split()), re.DOTALL).groups()
    depends = "as its movers" if kind is Chain else ""
    flags = [depends or "yes" * flag for flag in (kind._uses_labels, kind._adds_column)]
    cells = [f"`{name}({first})`", does, good, *flags, "yes" * kind._learns_in_parts()]
    return f"| {' | '.join(cells)} |\n"


def table() -> str:
    """Return the table in Markdown."""
    return HEAD + "".join(row(name, kind) for name, kind in MOVERS.items())


def page() -> str:
    """Return the page with the table of now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return before + START + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
