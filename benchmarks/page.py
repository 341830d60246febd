"""docs/speed.md and its drawings, made from the raw results and from nothing else."""

from collections.abc import Mapping
from pathlib import Path

from hubless.download import replacing

from . import plots, tables
from .claims import MISSING, REASONS, claims, is_quick
from .record import Found

DOCS = Path(__file__).parent.parent / "docs"
MARKS = {True: "yes", False: "**no**", None: "?"}
OPENING = """\
# Speed, measured

How long hubless takes beside the matrix products that it cannot do without, and beside its peers. The \
contenders of a case run one after another in every round, in an order that changes from round to round, \
after one round of warm-up. A ratio is taken within each round; its median over the rounds is told, with its \
quartiles. Every figure is made from the raw seconds in `benchmarks/results/speed`.

    make bench                  # measures everything but the GPU, in an environment of its own (two hours)
    python -m benchmarks page   # makes this page and its drawings
"""
SECTIONS = {
    "search": """\
Queries × objects × dimensions, k = 10 and float32 unless the title says otherwise; synthetic, 20 classes, \
objects sorted by class. The bare product multiplies 256 queries at a time with all objects and throws the \
result away. Building an index is left out of the clock. Seconds, and in parentheses the ratio to the bare \
product with its quartiles:""",
    "fit": """\
`MoveLabeled().fit_transform(X, y)` beside the products of Eq. 6 and of the move alone. Seconds, and in \
parentheses the ratio to all bare products with its quartiles:""",
    "select": """\
`MoveLabeledClassifierCV().fit(X, y)` on News: 13 λ × 9 k in 5 folds and the last fit, beside one search for \
50 neighbours per fold and λ. scikit-learn chooses k alone, and runs once. Seconds, and in parentheses the \
ratio to the searches with its quartiles:""",
    "growth": """\
`MoveLabeled().fit` and `nearest` of 1,000 queries. Unless it grows, n is 20,000, d is 128, and classes have \
50 objects. The exponent e of seconds ~ sizeᵉ is fitted by least squares on logarithms over all rounds:""",
    "memory": """\
Peak resident memory beyond input and output in MB, with 50,000 queries, 100,000 stored objects, 300 \
dimensions, float32; each in a process of its own:""",
    "gpu": """\
Data on the device before the clock starts, synchronised before it stops. `tf32` and `float32` are torch's \
own setting (`torch.set_float32_matmul_precision("high")` and `"highest"`), which hubless follows. The \
bare products are those of Eq. 6 and the move, class by class; hubless needs fewer, since products are \
symmetric and many objects are nobody's target. `product and topk` is what one writes without a library.""",
    "gpu-stream": """\
An array of the host with `device="cuda"`: whole on the device, and in blocks while another tensor leaves \
too little room for it; its clock includes the checks and copies of the host.""",
    "gpu-tests": """\
The tests of this repository that need an accelerator, run on it (`python -m benchmarks gpu-tests`); the \
same code runs on torch's CPU in every run of the tests:""",
}
TITLES = {"gpu": "GPU", "gpu-stream": "Arrays of the host on the GPU", "gpu-tests": "Tests on the GPU"}
DRAWINGS = {
    "search": "Seconds of every exact search over those of the bare product.",
    "fit": "Seconds of fits and learners over those of the bare products.",
    "growth": "Seconds over size, with fitted exponents.",
}
BLAS = """\
The BLAS of each package as it is installed. hubless, the bare products and argpartition multiply with \
NumPy's, scikit-learn with SciPy's, faiss and torch with their own, usearch with none:"""
QUICK = "A quick look at tiny sizes, which proves nothing.\n"


def markdown(found: Mapping[str, Found], drawings: Mapping[str, bytes]) -> str:
    """The whole page."""
    rows = [(own.what, own.asked, own.reached, MARKS[own.holds]) for own in claims(found)]
    lines = [OPENING, "## What was asked, and what was reached\n"]
    lines += [*tables.grid(("", "asked", "reached", "enough"), rows, "---"), "", *_reasons(found), ""]
    for verb, text in SECTIONS.items():
        lines.append(f"## {TITLES.get(verb, verb.capitalize())}\n")
        if verb not in found:
            lines.append(f"{MISSING.capitalize()}.\n")
            continue
        lines += [QUICK] if is_quick(found[verb]) else []
        lines += [text, "", *tables.of(verb, found[verb]["cases"]), ""]
        if f"speed-{verb}.svg" in drawings:
            lines.append(f"![{DRAWINGS[verb]}](speed-{verb}.svg)\n")
    return "\n".join([*lines, *_machines(found)]) + "\n"


def _reasons(found: Mapping[str, Found]) -> list[str]:
    """Why something was not reached, each reason once."""
    missed = [own for own in claims(found) if own.holds is False]
    return [
        f"- {text}" for text in dict.fromkeys(REASONS[own.asked] for own in missed if own.asked in REASONS)
    ]


def _machines(found: Mapping[str, Found]) -> list[str]:
    """Each machine and its software once, with what was measured there, and the BLAS of each package."""
    where: dict[str, list[str]] = {}
    for verb, own in found.items():
        date = own.get("date") or own["machine"].get("date")
        where.setdefault(tables.machine(own), []).append(f"{verb} ({date})")
    libraries = sorted({line for own in found.values() for line in tables.blas(own)})
    return [
        "## Machines\n",
        *(f"- {', '.join(verbs)}: {text}" for text, verbs in where.items()),
        f"\n{BLAS}\n",
        *(f"- {line}" for line in libraries),
    ]


def write(found: Mapping[str, Found], docs: Path = DOCS) -> list[Path]:
    """Make everything before the first file is replaced, and replace each at once."""
    if not found:
        raise FileNotFoundError("there are no raw results to show; `python -m benchmarks all` makes them.")
    drawings = plots.draw(found)
    files = {"speed.md": markdown(found, drawings).encode(), **drawings}
    docs.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with replacing(docs / name) as file:
            file.write(content)
    return [docs / name for name in files]
