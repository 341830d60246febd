"""Draws docs/idea.svg, the picture in the README:  python docs/idea.py [FILE]"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from hubless import MoveLabeled, nearest
from hubless.hubness import k_occurrence, skewness
from hubless.plot.style import SETTINGS, file_of, styled

COLOURS = np.array(["#4053d3", "#ddb310", "#b51d14"])
STYLE = SETTINGS | {  # with both axes and no grid
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
    axes.scatter(*X.T, facecolors="none", edgecolors=COLOURS[y], s=38)
    axes.scatter(*moved.T, c=COLOURS[y], s=38)
    axes.scatter(*queries[:18].T, c=COLOURS[truth[:18]], marker="x", s=34)
    for marker, face, name in (
        ("o", "none", "stored, before"),
        ("o", "k", "stored, moved"),
        ("x", "k", "query"),
    ):
        edge = "k" if marker == "o" else None
        axes.scatter([], [], marker=marker, facecolors=face, edgecolors=edge, s=34, label=name)
    axes.set(
        title="Stored objects move, queries stay",
        xticks=[],
        yticks=[],
        xlabel="three classes, one colour each",
    )
    axes.legend(frameon=False, fontsize=8.5, loc="best")


def draw_hubs(axes: Axes) -> None:
    """Draw how often each stored object is among the ten nearest, before and after."""
    X, y, queries, _ = gaussian_classes(1500, 200, 0.35, seed=0)
    for objects, name, colour in (
        (X, "before", COLOURS[2]),
        (MoveLabeled().fit_transform(X, y), "after", COLOURS[0]),
    ):
        counts = np.sort(k_occurrence(nearest(queries, objects, 10, return_distance=False), len(X)))[::-1]
        never = f"never found {np.mean(counts == 0):.0%}"
        label = f"{name}: worst hub {counts[0]:,}, {never}, skewness {skewness(counts):.1f}"
        axes.plot(np.arange(1, len(X) + 1), counts, color=colour, lw=2.2, label=label)
    axes.axhline(10, color="#888888", lw=0.8, ls=":")
    axes.set(
        title="1,500 Gaussian vectors in 200 dimensions",
        xlabel="stored objects, most often found first",
        ylabel="queries that find it among their 10 nearest",
        xscale="log",
        yscale="symlog",
    )
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")
    axes.set_ylim(-0.1, counts[0] * 60)


def main(file: Path) -> None:
    """Draw both panels into a file, .svg or .png."""
    with styled(STYLE, "drawings") as figure_class:
        figure = figure_class(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_move(left)
        draw_hubs(right)
        file.write_bytes(file_of(figure, file.suffix[1:]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("idea.svg"))
