"""Draws docs/idea.svg, the picture in the README:  python docs/idea.py [FILE]"""

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from hubless import MoveLabeled, nearest
from hubless.hubness import k_occurrence, skewness

COLOURS = np.array(["#4053d3", "#ddb310", "#b51d14"])


def gaussian_classes(n: int, d: int, spread: float, seed: int) -> tuple[np.ndarray, ...]:
    """n stored objects of three classes in d dimensions and their classes; as many queries and theirs."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.standard_normal((3, d))
    y, asked = rng.integers(0, 3, n), rng.integers(0, 3, n)
    return centres[y] + rng.standard_normal((n, d)), y, centres[asked] + rng.standard_normal((n, d)), asked


def draw_move(axes: Axes) -> None:
    """Stored objects and where they go; queries, which stay."""
    X, y, queries, asked = gaussian_classes(39, 2, 2.6, seed=11)
    moved = MoveLabeled(0.3 * MoveLabeled().fit(X, y).alpha_).fit_transform(X, y)
    for start, end, colour in zip(X, moved, COLOURS[y], strict=True):
        arrow = {"arrowstyle": "->", "color": colour, "alpha": 0.6, "shrinkA": 3, "shrinkB": 3}
        axes.annotate("", end, start, arrowprops=arrow)
    axes.scatter(*X.T, facecolors="none", edgecolors=COLOURS[y], s=38)
    axes.scatter(*moved.T, c=COLOURS[y], s=38)
    axes.scatter(*queries[:18].T, c=COLOURS[asked[:18]], marker="x", s=34)
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
    """How often each stored object is among the ten nearest, before and after."""
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
    bare = {"axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold"}
    with mpl.rc_context(bare | {"svg.hashsalt": "hubless", "svg.fonttype": "none"}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
        draw_move(left)
        draw_hubs(right)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    mpl.use("Agg")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("idea.svg"))
