"""The table of movers: every contender beside the paper's methods, from raw results, and what they prove."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..download import replacing
from . import published as paper
from .blocks import BLOCKS
from .contest import CONTENDERS
from .reached import LEARNERS, REASONS, SPLITS, Standings, best_learner, claims, collect
from .results import KINDS, describe_machine

FIRST = {
    "original-metric": "Stay (Euclidean)",
    "scale": "Scale",
    "move-labeled": "MoveLabeled (the paper)",
}
ROWS = {
    **FIRST,
    **{slug: own.title for slug, own in CONTENDERS.items() if own.is_neighbors and slug != "auto"},
    "auto": "auto",
    **LEARNERS,
    **{slug: f"{own.title} ‡" for slug, own in CONTENDERS.items() if not own.is_neighbors},
}
INTRODUCTION = """\
# The movers, measured

Every way to move labeled objects of `hubless.movers`, the choice among them (`mover="auto"`), the paper's \
methods, NCA and, as outside references (‡), two linear classifiers. [movers.md](movers.md) says what each \
does and what was tried. Protocol and data are those of [results.md](results.md): 70 : 30 splits, 300 \
dimensions, 4 splits, mean ± standard error. What a method leaves open is chosen by cross-validation on the \
training part alone. What auto may choose among was settled on other random splits of the same data sets, \
which the learners were not given. Bold is the best but for the outside references, and all that tie with it \
as printed.

Made by `hubless standings benchmarks/results/movers benchmarks/results/paper --out docs` from raw results; \
those of the movers by

    hubless reproduce --out benchmarks/results/movers --only cells --methods nca {contenders}
    hubless reproduce --out benchmarks/results/movers --only cells --methods auto --datasets cub --dim 1280
    hubless reproduce --out benchmarks/results/movers --only cells --splits 20 --datasets {small} \
--methods auto original-metric move-labeled {learners}
"""


def _table(standings: Standings, kind: str, field: str, scale: float, digits: int, lower: bool) -> list[str]:
    """Methods × data sets as Markdown; bold where a method that competes is the best as printed."""
    columns = standings.datasets(kind)
    shown: dict[tuple[str, str], str] = {}
    best = dict.fromkeys(columns, float("inf") if lower else float("-inf"))
    for method in ROWS:
        for name in columns:
            found = standings.figures(name, method, field)
            if found is None:
                continue
            value = round(scale * found.mean, digits)
            error = "" if found.error is None else f" ± {scale * found.error:.{digits}f}"
            partly = "" if found.n_splits == SPLITS else f" ({found.n_splits} splits)"
            shown[method, name] = f"{value:.{digits}f}{error}{partly}"
            if "‡" not in ROWS[method]:
                best[name] = (min if lower else max)(best[name], value)
    lines = ["|  | " + " | ".join(columns.values()) + " |", "| --- |" + " ---: |" * len(columns)]
    for method, title in ROWS.items():
        cells = []
        for name in columns:
            text = shown.get((method, name), "—")
            is_best = text != "—" and float(text.split()[0]) == best[name] and "‡" not in title
            cells.append(f"**{text}**" if is_best else text)
        if any(cell != "—" for cell in cells):
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def summary(standings: Standings) -> str:
    """Documents, images and embeddings in short: Euclidean, the paper's mover, auto, the best learner."""
    lines = [
        "|  | Euclidean | Move-labeled | auto | best learner |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for kind in ("document", "image", "extra"):
        for name, title in standings.datasets(kind).items():
            cells = []
            for method in ("original-metric", "move-labeled", "auto"):
                value = standings.whole(name, method, SPLITS)
                cells.append("—" if value is None else f"{value:.1f}")
            is_whole = all(standings.whole(name, method, SPLITS) is not None for method in LEARNERS)
            rival = best_learner(standings, name, SPLITS) if is_whole else None
            cells.append("—" if rival is None else f"{rival[1]:.1f} ({rival[0]})")
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown(folders: Sequence[str | Path]) -> str:
    """The whole page."""
    standings, wide = collect(folders), collect(folders, 1280)
    opening = INTRODUCTION.format(
        contenders=" ".join(CONTENDERS), small=" ".join(paper.DATASETS["UCI"]), learners=" ".join(LEARNERS)
    )
    parts = [opening, "## What was to be reached\n"]
    for claim in claims(standings, wide if wide.cells else None):
        why = f" {REASONS[claim.text]}" if not claim.holds and claim.text in REASONS else ""
        parts.append(f"- {'✓' if claim.holds else '✗'} {claim.text}: {claim.figures}.{why}")
    fields = (
        ("Accuracy in per cent", "accuracy", 100.0, 1, False),
        ("Skewness of N10 (smaller is better)", "skewness", 1.0, 2, True),
        ("Seconds to choose and fit", "total_seconds", 1.0, 2, True),
    )
    for title, field, scale, digits, lower in fields:
        parts.append(f"\n## {title}\n")
        if field == "total_seconds":
            parts.append(_TIMES)
        for kind in KINDS:
            if standings.datasets(kind):
                parts += [f"**{BLOCKS[kind]}**\n", *_table(standings, kind, field, scale, digits, lower), ""]
    parts += ["## What auto chose\n", "| data set | split | mover | k |", "| --- | ---: | --- | ---: |"]
    for kind in KINDS:
        for name, title in standings.datasets(kind).items():
            for split in range(SPLITS):
                if cell := standings.cells.get((name, "auto", split)):
                    chosen = cell["chosen"]
                    parts.append(f"| {title} | {split} | {chosen['mover']} | {chosen['n_neighbors']} |")
    machines = sorted(
        {describe_machine(cell) for cell in standings.cells.values() if "plain_seconds" in cell}
    )
    parts += ["", "Machines of the movers: " + "; ".join(machines) + "."]
    return "\n".join(parts) + "\n"


_TIMES = """\
Of the cells that measure it: contenders, each with its own choice, on one or two threads beside other jobs, \
so compare orders of magnitude alone. What auto costs against one plain fit and predict in the same process \
stands above.
"""


def as_json(folders: Sequence[str | Path]) -> dict[str, Any]:
    """Every mean, and the claims."""
    standings = collect(folders)
    figures = [
        {"dataset": name, "method": method, "field": field, **found._asdict()}
        for kind in KINDS
        for name in standings.datasets(kind)
        for method in ROWS
        for field in ("accuracy", "skewness", "total_seconds")
        if (found := standings.figures(name, method, field)) is not None
    ]
    wide = collect(folders, 1280)
    shown = claims(standings, wide if wide.cells else None)
    return {"claims": [claim._asdict() for claim in shown], "figures": figures}


def write(folders: Sequence[str | Path], out: Path) -> list[Path]:
    """movers-results.md and movers.json."""
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "movers-results.md": markdown(folders),
        "movers.json": json.dumps(as_json(folders), indent=1) + "\n",
    }
    for name, text in texts.items():
        with replacing(out / name) as file:
            file.write(text.encode())
    return [out / name for name in texts]
