"""docs/speed.md and its figures, made from the raw results and from nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hubless.paper.raw import write_files

from . import markdown as md
from . import speed_plots, speed_tables
from .record import DOCS, RawFile
from .speed_goals import REASONS, goals

MARKS = {True: "yes", False: "**no**", None: "?"}
OPENING = """\
# Speed, measured

How long hubless takes compared with the matrix products that it needs, and with other packages. The \
contenders of a case run one after another in every round, in an order that changes from round to round, \
after one round of warm-up. A ratio is taken within each round; its median over the rounds is shown, with \
its quartiles. Every figure is made from the raw seconds in `benchmarks/results/speed`.

    make bench                  # measures everything except the GPU, in a separate environment (two hours)
    python -m benchmarks page   # makes this page and its figures
"""
SECTIONS = {
    "search": """\
Queries × objects × dimensions, k = 10 and float32 unless the title says otherwise. Vectors are synthetic, \
Gaussian around 20 classes and sorted by class, unless the title names a data set; jittered banking77 has \
each object ten times, with noise. `hubless, float32` is what processors without fast bfloat16 do. The bare \
product multiplies 256 queries at a time with all objects and throws the result away. Building an index is \
not timed. Seconds, and in parentheses the ratio to the bare product with its quartiles:""",
    "folding": """\
Folding is left out of hubless, since low precision alone is ahead of it. Points are rotated to the \
principal axes of a sample of objects; most columns become one, the length of the rest, so that distances in \
the few columns are lower bounds, and only objects within the k-th distance are compared in all columns. It \
is written with NumPy and with what `nearest` selects, settles and orders by (`benchmarks/folding.py`). \
Processor seconds on one thread, as other programs ran on the machine; in parentheses the ratio to the bare \
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
dimensions, float32; each in a separate process:""",
    "startup": """\
Processor time (user and system) of a new process that imports a package or prints a help text, median \
over the rounds; and how many modules of hubless it loads. `before` was measured on the same machine before \
modules were loaded only when they are used:""",
    "gpu": """\
Data on the device before the clock starts, synchronised before it stops. `tf32` and `float32` are torch's \
setting (`torch.set_float32_matmul_precision("high")` and `"highest"`), which hubless follows. The \
bare products are those of Eq. 6 and the move, class by class; hubless needs fewer, since products are \
symmetric and many objects are not a target of any other. A first pass in bfloat16 finds targets and \
neighbours, so they are exact in both settings; `no bfloat16` is `precision="float32"`. `product and topk` \
is what one would write without a library.""",
    "gpu-stream": """\
An array in host memory with `device="cuda"`: copied to the device as a whole, and in blocks while another \
tensor leaves too little memory for that. The times include checks and copies on the host.""",
    "gpu-tests": """\
The tests of this repository that compute on an accelerator, run on one (`python -m benchmarks gpu-tests`), \
by the names that the files had on that day; `make test-all` runs the same code on torch's CPU:""",
}
TITLES = {
    "startup": "Start-up",
    "gpu": "GPU",
    "gpu-stream": "Arrays in host memory on the GPU",
    "gpu-tests": "Tests on the GPU",
}
DRAWINGS = {
    "search": "Seconds of every exact search over those of the bare product.",
    "fit": "Seconds of fits and learners over those of the bare products.",
    "growth": "Seconds over size, with fitted exponents.",
}
BLAS = """\
The BLAS of each package as it is installed. hubless, the bare products and argpartition multiply with \
NumPy's, scikit-learn with SciPy's, faiss and torch with their own, usearch with none:"""


def markdown(raw: Mapping[str, RawFile], drawings: Mapping[str, bytes]) -> str:
    """Return the whole page."""
    rows = [(goal.what, goal.wanted, goal.reached, MARKS[goal.holds], goal.measured) for goal in goals(raw)]
    lines = [OPENING, "## Goals, and what was reached\n"]
    lines += [*md.grid(("", "goal", "reached", "met", "measured"), rows, "---"), "", *_reasons(raw), ""]

    def section(verb: str, cases: Any) -> list[str]:
        drawn = f"speed-{verb}.svg" in drawings
        picture = ["", f"![{DRAWINGS[verb]}](speed-{verb}.svg)"] if drawn else []
        return [SECTIONS[verb], "", *speed_tables.of(verb, cases), *picture]

    titles = {verb: TITLES.get(verb, verb.capitalize()) for verb in SECTIONS}
    lines += [*md.sections(raw, titles, section), *md.machines(raw), *_libraries(raw)]
    return "\n".join(lines) + "\n"


def _reasons(raw: Mapping[str, RawFile]) -> list[str]:
    """Return why goals were not reached, each reason once."""
    missed = [goal.wanted for goal in goals(raw) if goal.holds is False]
    return [f"- {text}" for text in dict.fromkeys(REASONS[wanted] for wanted in missed if wanted in REASONS)]


def _libraries(raw: Mapping[str, RawFile]) -> list[str]:
    computed = [file for verb, file in raw.items() if verb != "startup"]  # which multiplies nothing
    lines = sorted({line for file in computed for line in md.blas(file)})
    return [f"\n{BLAS}\n", *(f"- {line}" for line in lines)]


def write(raw: Mapping[str, RawFile], docs: Path = DOCS) -> list[Path]:
    """Write the page and its figures, all made before the first file is replaced; return the files."""
    if not raw:
        raise FileNotFoundError("there are no raw results to show; `python -m benchmarks all` makes them.")
    drawings = speed_plots.draw(raw)
    return write_files(docs, {"speed.md": markdown(raw, drawings).encode(), **drawings})
