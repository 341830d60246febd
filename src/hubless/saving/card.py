"""README.md of a saved model: what it is, what it was learned from, how good it is, how to use it."""

import html
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..corrections import Correction
from ..moved_neighbors import MovedNeighbors
from ..movers import Mover
from ..support.version import __version__

LONGEST = 1000  # characters of an untrusted text


def card(model: Any) -> str:
    """Return README.md, in Markdown."""
    # a model that is not an estimator describes itself
    parts = model._card() if hasattr(model, "_card") else [*heading(model, model), *_how_to_use(model)]
    end = "`config.json` has its parameters, `model.safetensors` what it learned."
    return "\n\n".join([*parts, f"{end} Loading runs no code of this folder."]) + "\n"


def escape(text: Any) -> str:
    """Return an untrusted text as one line that is shown as it is: no markup, no link, no end of a cell."""
    line = " ".join(str(text).split())
    line = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
    return re.sub(r"([\\`*_{}\[\]()#+!|~:@])", r"\\\1", html.escape(line, quote=False))


def heading(model: Any, shown: Any) -> list[str]:
    """Return the title, the first line of the docstring, and the model as Python shows it."""
    code = repr(shown)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return [
        f"# {type(model).__name__}",
        (type(model).__doc__ or "").strip().splitlines()[0],
        f"{fence}\n{code}\n{fence}",
        f"Saved by hubless {__version__}, for objects of {shown.n_features_in_} columns{_queries(shown)}.",
    ]


def _queries(shown: Any) -> str:
    """Return words about queries where they have another width than objects."""
    is_other = isinstance(shown, Mover) and hasattr(shown, "query_mean_")
    return f", which it moves into the space of queries of {shown._width} columns" if is_other else ""


def python_code(*lines: str) -> str:
    """Return a block of Python that imports hubless."""
    return "\n".join(["```python", "import hubless", "", *lines, "```"])


def _how_to_use(model: Any) -> list[str]:
    if isinstance(model, Mover):
        return _use_mover(model)
    if isinstance(model, MovedNeighbors):
        return [
            *([escape(model.explain())] if hasattr(model, "explain") else []),
            f"It holds {model.moved_.shape[0]} moved objects and answers with them:",
            python_code(
                'model = hubless.load("path/to/this/folder")',
                "classes = model.predict(queries)",
                "stored = model.moved_  # for your own index, which is searched with unchanged queries",
            ),
        ]
    if isinstance(model, Correction):
        zeros = " with a 0 in one more column" if model.column else " as they are"
        return [
            f"Load it, store the corrected objects in an index that compares by {model.metric}, and search "
            f"that index with queries{zeros}:",
            python_code(
                'correction = hubless.load("path/to/this/folder")',
                "stored = correction.move(Z)  # objects, one per row",
            ),
        ]
    code = python_code('model = hubless.load("path/to/this/folder")', "transformed = model.transform(X)")
    return ["Load it as a transformer of scikit-learn:", code]


def _use_mover(mover: Mover) -> list[str]:
    unmoved = "as they are"
    if mover.space_.floor is not None:
        unmoved += ", with a 0 in the additional column that moved objects have"
    arguments, classes = ("Z, y", ", and their classes") if mover._uses_labels else ("Z", "")
    return [
        "Load it, store the moved objects in an index that compares by Euclidean distance, and search that "
        f"index with queries {unmoved}:",
        python_code(
            'mover = hubless.load("path/to/this/folder")',
            f"stored = mover.move({arguments})  # objects, one per row{classes}",
            f"unmoved = mover.transform(queries)  # {unmoved}",
        ),
    ]


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def shown_value(value: Any) -> str:
    """Return a number or a text for a table; an empty text for what is not known."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}" if np.isfinite(value) else ""
    return escape("" if value is None else value)
