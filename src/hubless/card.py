"""README.md of a saved model: what it is, what it was learned from, how well it does and how to use it."""

import html
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from .classifier import MovedNeighbors
from .classifier_cv import MoveLabeledClassifierCV
from .index.repair import Repair
from .movers import Mover

LONGEST = 1000  # characters of a text that is not ours


def own_version() -> str:
    """The version of hubless."""
    try:
        return version("hubless")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def card(model: Any) -> str:
    """README.md, in Markdown."""
    if isinstance(model, Repair):
        parts = [*_head(model, model.mover), *_learned_from(model.facts), *_figures(model.facts)]
        parts += [_use_repair(model)]
    elif isinstance(model, Mover):
        parts = [*_head(model, model), _use_mover(model)]
    elif isinstance(model, MovedNeighbors):
        parts = [*_head(model, model), *_choice(model), _use_classifier(model)]
    else:
        parts = [*_head(model, model), _use_transformer(model)]
    parts.append(
        "`config.json` has its parameters, `model.safetensors` what it learned. Loading runs no code of this "
        "folder."
    )
    return "\n\n".join(parts) + "\n"


def escape(text: Any) -> str:
    """A text that is not ours as one line that is shown as it is: no markup, no link, no end of a cell."""
    line = " ".join(str(text).split())
    line = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
    return re.sub(r"([\\`*_{}\[\]()#+!|~:@])", r"\\\1", html.escape(line, quote=False))


def _head(model: Any, shown: Any) -> list[str]:
    """Title, the first sentence of the docstring, and the model as Python shows it."""
    told = repr(shown)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", told)), default=0))
    return [
        f"# {type(model).__name__}",
        (type(model).__doc__ or "").strip().splitlines()[0],
        f"{fence}\n{told}\n{fence}",
        f"Saved by hubless {own_version()}, for objects of {shown.n_features_in_} columns.",
    ]


def _python(*lines: str) -> str:
    return "\n".join(["```python", "import hubless", "", *lines, "```"])


def _use_mover(mover: Any) -> str:
    column = "as they are"
    if mover.exit_.floor is not None:
        column += ", with a 0 in the one column more that moved objects have"
    asks, told = ("Z, y", ", and their classes") if mover._uses_labels else ("Z", "")
    code = _python(
        'mover = hubless.load("path/to/this/folder")',
        f"stored = mover.move({asks})  # objects, one a row{told}",
        f"asked = mover.transform(queries)  # {column}",
    )
    return (
        "Load it, store what it moved in an index by Euclidean distance, and ask that index with queries "
        f"{column}:\n\n{code}"
    )


def _use_classifier(model: Any) -> str:
    code = _python(
        'model = hubless.load("path/to/this/folder")',
        "classes = model.predict(queries)",
        "stored = model.moved_  # what an index of yours may hold, to be asked with queries as they are",
    )
    return f"It holds {model.moved_.shape[0]} moved objects and answers by them:\n\n{code}"


def _use_transformer(model: Any) -> str:
    code = _python('model = hubless.load("path/to/this/folder")', "seen = model.transform(X)")
    return f"Load it as a transformer of scikit-learn:\n\n{code}"


def _use_repair(model: Repair) -> str:
    lengths = " Items are brought to length 1 before and after." if model.metric == "cosine" else ""
    asks = ["vectors"]
    if model.own is not None or model.label is not None:
        asks.append("ids" if model.own is not None else "None")
    if model.label is not None:
        asks.append("labels")
    code = _python(
        'model = hubless.load("path/to/this/folder")',
        f"stored = model.move({', '.join(asks)})  # items, one a row",
    )
    label = f" Its classes are in the column {escape(model.label)}." if model.label is not None else ""
    told = f"It moves the items of an index by {model.metric}; queries stay as they are."
    return f"{told}{lengths}{label}\n\n{code}"


def _choice(model: Any) -> list[str]:
    return [escape(model.explain())] if isinstance(model, MoveLabeledClassifierCV) else []


def _learned_from(facts: Mapping[str, Any]) -> list[str]:
    """Lists of what is told of the data and of the learning."""
    parts = []
    for title, name in (("Data", "data"), ("Learned", "learned")):
        told = facts.get(name)
        if isinstance(told, Mapping) and told:
            shown = {key: value for key, value in told.items() if not isinstance(value, list | Mapping)}
            lines = "\n".join(f"- {escape(key)}: {_shown(value)}" for key, value in shown.items())
            parts.append(f"{title}:\n\n{lines}")
    return parts


def _figures(facts: Mapping[str, Any]) -> list[str]:
    """A table of before and after."""
    told = facts.get("figures")
    rows = [row for row in told if isinstance(row, Mapping)] if isinstance(told, list) else []
    if not rows:
        return []
    titles = ("Measure", "Part", "Queries", "Before", "After", "95 % interval of after − before")
    lines = [_row(titles), _row(["---"] * len(titles))]
    for row in rows:
        cells = [_shown(row.get(name)) for name in ("measure", "part", "n", "before", "after")]
        low, high = (_shown(row.get(name)) for name in ("low", "high"))
        lines.append(_row([*cells, f"{low} to {high}" if low and high else ""]))
    return ["\n".join(lines)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(value: Any) -> str:
    """A number or a text; nothing for what is not known."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}" if np.isfinite(value) else ""
    return escape("" if value is None else value)
