"""Plots with lines and dots over two axes: how busy the items are, and why."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .canvas import COLOURS, DASHES, FAINT, INK, STATES, ZERO, Report, figures_of, key, light, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def skyline(report: Report, ax: "Axes | None" = None) -> "Axes":
    """N10 of every item, the busiest first; both axes are logarithmic, and 0 has a place of its own."""
    given = figures_of(report)
    figures, k = given["skyline"], given["counts"]["hub_k"]
    with panel(ax) as axes:
        for state in STATES:
            heights = [max(value, ZERO) for value in figures[state]]
            axes.plot(figures["rank"], heights, **_line(state, f"{state}: up to {figures[state][0]:,g}"))
        axes.axhline(figures["mean"], color=FAINT, linewidth=0.8, zorder=1)
        axes.annotate(
            f"mean {figures['mean']:.3g}",
            (0, figures["mean"]),
            (3, 2),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=INK,
            fontsize="small",
        )
        axes.set(xscale="log", xlabel="items, the busiest first", ylabel=occurrence_words(k))
        _occurrence_axis(axes.yaxis, max(figures["before"][0], figures["after"][0]))
        axes.xaxis.set_major_formatter("{x:,g}")
        light(axes)
        key(axes, "upper right")
        return axes


def lorenz(report: Report, ax: "Axes | None" = None) -> "Axes":
    """Share of the answers that the least busy items give; the diagonal: all items are equally busy."""
    figures = figures_of(report)["lorenz"]
    with panel(ax, height=3.0) as axes:
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8)
        for state in STATES:
            label = f"{state}: Gini {figures['gini'][state]:.2f}"
            axes.plot(figures["share"], figures[state], **_line(state, label))
        axes.set(xlabel="items, the least busy first", ylabel="share of answers")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25 %", "50 %", "75 %", "100 %"])
        light(axes)
        key(axes, "upper left")
        return axes


def centrality(report: Report, ax: "Axes | None" = None) -> "Axes":
    """Distance of items to their mean against N10: hubs are near the mean."""
    given = figures_of(report)
    figures, k = given["why"]["centrality"], given["counts"]["hub_k"]
    with panel(ax) as axes:
        for state, marker in zip(STATES, ("o", "^"), strict=True):
            own = figures[state]
            heights = [max(value, ZERO) for value in own["occurrence"]]
            axes.plot(
                own["distance"],
                heights,
                linestyle="none",
                marker=marker,
                markersize=2.4,
                markeredgewidth=0,
                alpha=0.55,
                color=COLOURS[state],
                label=f"{state}: correlation {_signed(own['correlation'])}",
                rasterized=True,  # many dots: a small file, and letters stay letters
            )
        axes.set(xlabel="distance of the item to the mean of all", ylabel=occurrence_words(k))
        _occurrence_axis(axes.yaxis, max(max(figures[state]["occurrence"], default=1) for state in STATES))
        light(axes)
        key(axes, "upper right")
        return axes


def variance(report: Report, ax: "Axes | None" = None) -> "Axes":
    """Variance along the principal components of the original items: what moving shrinks."""
    figures = figures_of(report)["why"]["variance"]
    with panel(ax) as axes:
        for name in (*STATES, "queries"):
            total = figures["total"][name]
            amount = f"{total:,.0f}" if total >= 100 else f"{total:.3g}"
            label = f"{'items ' if name in STATES else ''}{name}: {amount} in all"
            axes.plot(figures["component"], figures[name], **_line(name, label))
        axes.set(
            xscale="log", yscale="log", xlabel="principal component of the original items", ylabel="variance"
        )
        axes.xaxis.set_major_formatter("{x:,g}")
        light(axes)
        key(axes, "lower left")
        return axes


def singular_values(report: Report, ax: "Axes | None" = None) -> "Axes":
    """Singular values of the map, the largest first; 1: lengths along it stay as they are."""
    why = figures_of(report)["why"]
    values: Sequence[float] | None = why["singular_values"]
    if values is None:
        raise ValueError(f"this report has no singular values. {why['singular_words']}".strip())
    with panel(ax) as axes:
        axes.axhline(1, color=FAINT, linewidth=0.8)
        axes.plot(range(1, len(values) + 1), values, **_line("after", ""))
        axes.set(xlabel="singular value, the largest first", ylabel="factor on lengths")
        axes.set_ylim(bottom=0)
        axes.annotate(
            "1: length is kept", (1, 1), (-2, 2), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", color=INK, fontsize="small",
        )  # fmt: skip
        light(axes)
        return axes


def occurrence_words(k: int) -> str:
    """What N10 is, short enough for the side of a plot."""
    return f"N{k}: queries that find it"


def _line(state: str, label: str) -> dict[str, Any]:
    return {"color": COLOURS[state], "linestyle": DASHES[state], "label": label}


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}".replace("-", "−")


def _occurrence_axis(axis: Any, most: float) -> None:
    """Logarithmic from 1 on; below it, 0 as a tick of its own."""
    ticks = [1, 3, 10, 30, 100] if most < 300 else [10**power for power in range(12)]
    shown = [tick for tick in ticks if tick <= max(most, 1)]
    axis.axes.set_yscale("log")
    axis.axes.set_ylim(ZERO * 0.8, max(most, 1) * 1.6)
    axis.set_ticks([ZERO, *shown], labels=["0", *(f"{tick:,}" for tick in shown)])
    axis.set_ticks([], minor=True)
