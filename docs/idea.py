"""Draws docs/idea.svg, the picture in the README:  python docs/idea.py [FILE]"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from hubless import MoveLabeled, nearest
from hubless.hubness import k_occurrence, skewness
from hubless.plot.style import DASHES, SETTINGS, file_of, styled
from hubless.report.colours import DARK, LIGHT

# Of the classes, with the colours in dark mode; orange and blue are before and after, as on the page
CLASSES = {"#007a5a": "#5fd0a5", "#a8457f": "#eba3cd", "#7d6e00": "#d8c64a"}
COLOURS, MARKERS = np.array([*CLASSES]), "os^"
IN_DARK = CLASSES | {LIGHT[name]: DARK[name] for name in ("surface", "text", "muted", "before", "after")}
STYLE = SETTINGS | {  # with both axes and no grid
    "figure.facecolor": LIGHT["surface"],
    "axes.facecolor": LIGHT["surface"],
    "text.color": LIGHT["text"],
    "axes.titlecolor": LIGHT["text"],
    "axes.labelcolor": LIGHT["text"],
    "axes.edgecolor": LIGHT["muted"],
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "legend.labelcolor": LIGHT["text"],
    "axes.spines.left": True,
    "axes.grid": False,
    "axes.axisbelow": "line",
    "axes.titleweight": "bold",
    "ytick.major.size": 3.5,
    "savefig.dpi": 110,
}


def gaussian_classes(n: int, d: int, spread: float, seed: int) -> tuple[np.ndarray, ...]:
    """Make n stored objects of three classes in d dimensions and their classes, and as many queries."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.standard_normal((3, d))
    y, truth = rng.integers(0, 3, n), rng.integers(0, 3, n)
    return centres[y] + rng.standard_normal((n, d)), y, centres[truth] + rng.standard_normal((n, d)), truth


def draw_move(axes: Axes) -> None:
    """Draw stored objects and where they move, and queries, which stay."""
    X, y, queries, truth = gaussian_classes(39, 2, 2.6, seed=11)
    moved = MoveLabeled(0.3 * MoveLabeled().fit(X, y).alpha_).fit_transform(X, y)
    for start, end, colour in zip(X, moved, COLOURS[y], strict=True):
        arrow = {"arrowstyle": "->", "color": colour, "alpha": 0.6, "shrinkA": 3, "shrinkB": 3}
        axes.annotate("", end, start, arrowprops=arrow)
    for code, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        look = {"marker": marker, "edgecolors": colour, "s": 38}
        axes.scatter(*X[y == code].T, facecolors="none", **look)
        axes.scatter(*moved[y == code].T, facecolors=colour, **look)
        axes.scatter(*queries[:18][truth[:18] == code].T, c=colour, marker="x", s=34)
    ink = LIGHT["text"]
    for marker, face, name in (
        ("o", "none", "stored, before"),
        ("o", ink, "stored, moved"),
        ("x", ink, "query"),
    ):
        edge = {"edgecolors": ink} if marker == "o" else {}
        axes.scatter([], [], marker=marker, facecolors=face, s=34, label=name, **edge)
    axes.set(
        title="Stored objects move, queries stay",
        xticks=[],
        yticks=[],
        xlabel="three classes, a shape and a colour each",
    )
    axes.legend(frameon=False, fontsize=8.5, loc="best")


def draw_hubs(axes: Axes) -> None:
    """Draw how often each stored object is among the ten nearest, before and after."""
    X, y, queries, _ = gaussian_classes(1500, 200, 0.35, seed=0)
    for objects, name, colour in (
        (X, "before", LIGHT["before"]),
        (MoveLabeled().fit_transform(X, y), "after", LIGHT["after"]),
    ):
        counts = np.sort(k_occurrence(nearest(queries, objects, 10, return_distance=False), len(X)))[::-1]
        never = f"never found {np.mean(counts == 0):.0%}"
        label = f"{name}: worst hub {counts[0]:,}, {never}, skewness {skewness(counts):.1f}"
        axes.plot(np.arange(1, len(X) + 1), counts, color=colour, lw=2.2, ls=DASHES[name], label=label)
    axes.axhline(10, color=LIGHT["muted"], lw=0.8, ls=":")
    axes.set(
        title="1,500 Gaussian vectors in 200 dimensions",
        xlabel="stored objects, most often found first",
        ylabel="queries that find it among their 10 nearest",
        xscale="log",
        yscale="symlog",
    )
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")
    axes.set_ylim(-0.1, counts[0] * 60)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,g}")


def with_dark_mode(drawing: str) -> str:
    """Return an SVG file with a style by which its colours change where the reader's screen is dark."""
    rules = [
        f'[style*="{part}: {light}"] {{ {part}: {dark} !important }}'
        for light, dark in IN_DARK.items()
        for part in ("fill", "stroke")
    ]
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    return drawing.replace("<defs>", f"<defs>{style}", 1)


def main(file: Path) -> None:
    """Draw both panels into a file, .svg or .png."""
    with styled(STYLE, "drawings") as figure_class:
        figure = figure_class(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_move(left)
        draw_hubs(right)
        content = file_of(figure, file.suffix[1:])
    file.write_bytes(with_dark_mode(content.decode()).encode() if file.suffix == ".svg" else content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("idea.svg"))
