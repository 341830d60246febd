"""Plots of a report: the artists against the figures that were given, in files that stay the same."""

import copy
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from hubless import MoveLabeledClassifier, compare, plot
from hubless.plot import style
from hubless.report.colours import LIGHT

FIGURES = {
    "task": "labels",
    "words": {"measure": "accuracy"},
    "counts": {"items": 6, "queries": 4, "hub_k": 2},
    "skyline": {"rank": [1, 2, 4, 6], "before": [4, 2, 1, 0], "after": [2, 2, 1, 0], "mean": 8 / 6},
    "lorenz": {
        "share": [0, 0.5, 1],
        "before": [0, 0.125, 1],
        "after": [0, 0.25, 1],
        "gini": {"before": 0.52, "after": 0.31},
    },
    "classes": {
        "names": ["ant", "bee", "cat"],
        "queries": [2, 1, 1],
        "wrong": {"before": [[0, 1, 2], [2, 0, 1]], "after": [[0, 1, 1], [1, 2, 1]]},
    },
    "why": {
        "centrality": {
            "before": {"distance": [1.0, 2.0, 3.0], "occurrence": [4, 1, 0], "correlation": -0.9},
            "after": {"distance": [1.0, 1.5, 2.0], "occurrence": [2, 2, 0], "correlation": None},
        },
        "variance": {
            "component": [1, 2],
            "before": [3.0, 1.0],
            "after": [1.0, 0.5],
            "queries": [2.0, 1.5],
            "total": {"before": 4.0, "after": 1.5, "queries": 3500.0},
        },
        "singular_values": [0.9, 0.5, 0.1],
        "singular_words": "",
    },
    "choice": {
        "surface": {
            "x": {"title": "λ", "values": [0.0001, 1, 100000], "log": True},
            "y": {"title": "neighbours k", "values": [1, 5]},
            "score": [[0.5, 0.6, None], [0.7, 0.8, 0.9]],
            "measure": "accuracy",
            "chosen": [2, 1],
        },
        "movers": [
            {"name": "MoveLabeled()", "score": 0.9, "error": 0.01, "chosen": False},
            {"name": "MoveQuery()", "score": 0.8, "error": None, "chosen": True},
            {"name": "failed", "score": None, "error": None, "chosen": False},
        ],
    },
}
DETAILS = {
    "items": {
        "x": np.array([0, 10, 20, 30, 40, 65535], np.uint16),
        "y": np.array([5, 15, 25, 35, 45, 55], np.uint16),
        "n0": np.array([1, 4, 0, 2, 1, 0], np.uint32),
        "n1": np.array([2, 1, 1, 2, 2, 0], np.uint32),
    },
    "queries": {
        "x": np.array([100, 200, 300, 400], np.uint16),
        "y": np.array([50, 60, 70, 80], np.uint16),
        "near0": np.array([1, 0, 1, 3, 3, 1, 4, 1], np.int32),  # 4 queries × 2
        "near1": np.array([1, 0, 0, 3, 3, 2, 4, -1], np.int32),
    },
}
PLOTS = ("skyline", "lorenz", "hub_map", "confusion", "centrality", "variance", "singular_values", "surface",
         "movers")  # fmt: skip


@pytest.fixture
def report():
    return SimpleNamespace(figures=copy.deepcopy(FIGURES), details=copy.deepcopy(DETAILS))


@pytest.fixture
def coarse(monkeypatch):
    """Pictures of few pixels, which are written faster."""
    monkeypatch.setitem(style.PLOT_SETTINGS, "savefig.dpi", 40)


def line(ax, name):
    """x and y of the line whose label starts with the name."""
    return next(one for one in ax.get_lines() if str(one.get_label()).startswith(name)).get_xydata()


@pytest.mark.parametrize("name", PLOTS)
def test_each_draws_on_the_given_axes_or_on_new_ones(report, name):
    draw = getattr(plot, name)
    ax = Figure().add_subplot()
    before = dict(mpl.rcParams)
    assert draw(report, ax=ax) is ax
    new = draw(report)
    assert new is not ax
    assert new.figure.get_figwidth() == 3.3  # one column of a paper
    assert dict(mpl.rcParams) == before
    assert new.get_xlabel()


def test_the_skyline_has_the_occurrences_with_a_place_for_0(report):
    ax = plot.skyline(report)
    assert line(ax, "before").tolist() == [[1, 4], [2, 2], [4, 1], [6, 0.5]]
    assert line(ax, "after").tolist() == [[1, 2], [2, 2], [4, 1], [6, 0.5]]
    ticks = dict(zip(ax.get_yticks(), [label.get_text() for label in ax.get_yticklabels()], strict=True))
    assert ticks == {0.5: "0", 1: "1", 3: "3"}
    assert ax.get_ylabel().startswith("N2:")


def test_curves_have_the_figures(report):
    ax = plot.lorenz(report.figures)  # the plain dict does as well
    assert line(ax, "before: Gini 0.52").tolist() == [[0, 0], [0.5, 0.125], [1, 1]]
    assert line(ax, "after: Gini 0.31").tolist() == [[0, 0], [0.5, 0.25], [1, 1]]
    ax = plot.variance(report)
    assert line(ax, "items before: 4 in total").tolist() == [[1, 3], [2, 1]]
    assert line(ax, "queries: 3,500 in total").tolist() == [[1, 2], [2, 1.5]]
    ax = plot.centrality(report)
    assert line(ax, "before: correlation −0.90").tolist() == [[1, 4], [2, 1], [3, 0.5]]
    assert line(ax, "after: correlation unknown").tolist() == [[1, 2], [1.5, 2], [2, 0.5]]
    assert plot.singular_values(report).get_lines()[1].get_xydata().tolist() == [[1, 0.9], [2, 0.5], [3, 0.1]]


@pytest.mark.parametrize("s", [0, 1])
def test_the_map_has_rays_to_the_queries_that_find_the_busiest(report, s):
    ax = plot.hub_map(report, state=("before", "after")[s], hubs=2)
    items, queries = report.details["items"], report.details["queries"]
    rays = []
    for hub in (1, 3):  # the busiest two before, in both states
        for query in range(4):
            if hub in queries[f"near{s}"].tolist()[2 * query : 2 * query + 2]:
                start = [items["x"][hub], items["y"][hub]]
                rays.append([start, [queries["x"][query], queries["y"][query]]])
    (lines,) = [part for part in ax.collections if isinstance(part, LineCollection)]
    assert np.array_equal(lines.get_segments(), rays)
    parts = {part.get_label(): part for part in ax.collections}
    assert np.array_equal(parts["item"].get_offsets(), np.column_stack([items["x"], items["y"]]))
    assert np.array_equal(parts["query"].get_offsets(), np.column_stack([queries["x"], queries["y"]]))
    assert parts["hub"].get_offsets().tolist() == [[items["x"][hub], items["y"][hub]] for hub in (3, 1)]
    assert [text.get_text() for text in ax.texts] == [str(items[f"n{s}"][1])]  # the other is on top of it
    areas = parts["item"].get_sizes()
    assert np.array_equal(np.argsort(areas, kind="stable"), np.argsort(items[f"n{s}"], kind="stable"))


def test_a_report_as_it_is_made_has_what_the_plots_need(tmp_path, coarse):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 3
    made = compare(MoveLabeledClassifier(), X[:40], y[:40], X[40:], y[40:])
    (file,) = plot.save(made, tmp_path / "all.png")
    assert file.stat().st_size > 10_000


def test_both_maps_have_one_box(report):
    maps = [plot.hub_map(report, state=state) for state in ("before", "after")]
    assert maps[0].get_xlim() == maps[1].get_xlim()
    assert maps[0].get_xlim()[1] > 65535  # the farthest item is seen


def test_hubs_apart_each_have_their_number(report):
    report.details["items"]["n0"][5] = 3  # the far one
    assert [text.get_text() for text in plot.hub_map(report, hubs=3).texts] == ["4", "3"]


def test_a_very_busy_hub_stays_a_dot(report):
    report.details["items"]["n0"][1] = 100_000
    assert max(plot.hub_map(report).collections[0].get_sizes()) < 200  # points²: 16 points wide


@pytest.mark.parametrize(
    ("view", "cells"),
    [
        ("before", {(0, 1): 2, (2, 0): 1}),
        ("after", {(0, 1): 1, (1, 2): 1}),
        ("difference", {(0, 1): -1, (2, 0): -1, (1, 2): 1}),
    ],
)
def test_the_confusion_is_the_matrix_of_wrong_answers(report, view, cells):
    ax = plot.confusion(report, view=view)
    (image,) = ax.images
    assert image.get_array().filled(0).tolist() == [
        [cells.get((i, j), 0) for j in range(3)] for i in range(3)
    ]
    assert image.get_clim() == ((-1, 1) if view == "difference" else (0, 2))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ant", "bee", "cat"]


def test_of_many_classes_those_that_are_confused_most_are_drawn(report):
    names = [f"class_{i}_of_a_long_name_that_{'_'.join('abc')}" for i in range(77)]
    wrong = [[7, 8, 9], [70, 3, 8], [8, 7, 5], *([i, i + 1, 1] for i in range(20, 40))]
    report.figures["classes"] = {"names": names, "wrong": {"before": wrong, "after": [[7, 8, 2]]}}
    ax, difference = plot.confusion(report), plot.confusion(report, view="difference")
    labels = [label.get_text().replace("\n", "").rsplit("  ", 1) for label in ax.get_yticklabels()]
    assert [letter for _, letter in labels] == [label.get_text() for label in ax.get_xticklabels()]
    drawn = [names.index(name) for name, _ in labels]  # whole names
    assert drawn == [3, 7, 8, *range(20, 28), 70]
    counts = ax.images[0].get_array().filled(0)
    assert {(drawn[i], drawn[j]): counts[i, j] for i, j in np.argwhere(counts)} == {
        (i, j): count for i, j, count in wrong if i in drawn and j in drawn
    }
    assert difference.images[0].get_array()[1, 2] == 2 - 9
    same = [[label.get_text() for label in one.get_yticklabels()] for one in (ax, difference)]
    assert same[0] == same[1]
    assert ax.get_xlabel() == "class that they were given\n(most confused 12 of 77)"


@pytest.mark.parametrize("draw", [plot.confusion, plot.movers, plot.surface, plot.variance])
def test_no_text_is_cut_and_no_two_labels_of_an_axis_collide(report, draw):
    names = [f"card_payment_wrong_exchange_rate_{i}" for i in range(77)]
    report.figures["classes"] = {
        "names": names,
        "wrong": {"before": [[i, i + 1, 2] for i in range(76)], "after": []},
    }
    for mover in report.figures["choice"]["movers"]:
        mover["name"] = (
            "W toward the identity, λ = 4 × mean eigenvalue, and a held step of 0.75 toward own queries"
        )
    report.figures["choice"]["surface"]["x"]["values"] = [10.0**power for power in range(-4, 9)]
    report.figures["choice"]["surface"]["score"] = [[0.5 + i / 100 for i in range(13)]] * 2
    ax = draw(report)
    with style.styled():
        ax.figure.draw_without_rendering()
        drawn = ax.figure.get_tightbbox()
    assert drawn.xmin >= 0
    assert drawn.ymin >= 0
    assert drawn.xmax <= ax.figure.get_figwidth()
    assert drawn.ymax <= ax.figure.get_figheight()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        shown = [label.get_window_extent() for label in labels if label.get_text()]
        assert not any(one.overlaps(other) for one, other in pairwise(shown))


def test_the_surface_has_the_scores_and_a_ring_at_the_chosen_one(report):
    ax = plot.surface(report)
    assert np.array_equal(
        ax.images[0].get_array().filled(np.nan), [[0.5, 0.6, np.nan], [0.7, 0.8, 0.9]], equal_nan=True
    )
    assert all(ring.get_xydata().tolist() == [[2, 1]] for ring in ax.get_lines())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["10⁻⁴", "1", "10⁵"]


def test_a_setting_may_be_a_word(report):
    report.figures["choice"]["surface"]["x"]["values"] = [0.0001, 1, "no map"]  # as learned from pairs
    assert [label.get_text() for label in plot.surface(report).get_xticklabels()] == ["10⁻⁴", "1", "no map"]


def test_movers_are_sorted_and_the_chosen_one_is_filled_and_never_left_out(report):
    ax = plot.movers(report)
    assert [dot.get_xydata().tolist() for dot in ax.get_lines()] == [[[0.9, 0]], [[0.8, 1]]]
    assert [dot.get_markerfacecolor() for dot in ax.get_lines()] == ["white", LIGHT["after"]]
    tried = [{"name": f"m{i}", "score": 1 - i / 50, "error": None, "chosen": i == 30} for i in range(40)]
    report.figures["choice"]["movers"] = tried
    labels = [label.get_text() for label in plot.movers(report, most=3).get_yticklabels()]
    assert labels == ["m0", "m1", "m2", "m30", "and 36 more"]


def test_texts_of_users_are_no_formulas_and_break_no_file(report, coarse, tmp_path):
    hostile = "$\\frac{1$ <script>\n\x00\x1b \udc80 \u202e 😀 漢字 " + "long " * 1000
    report.figures["classes"]["names"] = [hostile, "$x$", "__"]
    report.figures["choice"]["movers"][0]["name"] = hostile
    report.figures["choice"]["surface"]["x"]["title"] = "$\\lambda"
    report.figures["choice"]["surface"]["measure"] = hostile
    files = plot.save(report, tmp_path / "plots")
    text = (tmp_path / "plots" / "confusion-before.svg").read_text()
    assert "$x$" in text
    assert "$\\frac{1$ &lt;s" in text
    assert plot.save(report, tmp_path / "all.pdf")[0].read_bytes().startswith(b"%PDF")
    assert all(file.stat().st_size for file in files)


def test_a_folder_gets_every_plot_twice_and_a_file_the_summary(report, coarse, tmp_path):
    files = plot.save(report, tmp_path / "new" / "plots")
    names = ["skyline", "lorenz", "map-before", "map-after", "confusion-before", "confusion-after"]
    names += ["confusion-difference", "centrality", "variance", "singular-values", "surface", "movers"]
    assert [file.name for file in files] == [name + end for name in names for end in (".svg", ".png")]
    assert sorted(files) == sorted((tmp_path / "new" / "plots").iterdir())
    starts = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    for end, start in starts.items():
        given = report if end == ".svg" else report.figures  # these have no map, and take less time
        (file,) = plot.save(given, tmp_path / f"all{end}")
        content = file.read_bytes()
        assert content.startswith(start)
        plot.save(given, file)
        assert file.read_bytes() == content  # no date, no chance
    with pytest.raises(ValueError, match=r"\.gif; plots are written as \.pdf, \.png, \.svg, or to a folder"):
        plot.save(report, tmp_path / "all.gif")


def test_a_picture_is_fine_enough_for_print(report, tmp_path):
    (file,) = plot.save(report, tmp_path / "all.png")
    with Image.open(file) as image:
        assert image.width == 6.9 * 300  # two columns


def test_the_summary_leaves_out_what_is_missing(report):
    def panels(given):
        return [ax.get_title(loc="left") for ax in plot.summary(given).axes if ax.get_title(loc="left")]

    assert panels(report) == list("abcdef")
    report.figures["classes"] = None
    assert panels(report.figures) == list("abcd")  # without points: no map


def test_arrays_do_as_well_as_lists_and_what_has_no_score_is_not_saved(report, coarse, tmp_path):
    report.figures["why"]["singular_values"] = np.array([0.9, 0.5])
    report.figures["skyline"]["before"] = np.array([4, 2, 1, 0])
    report.figures["choice"]["movers"] = report.figures["choice"]["movers"][2:]  # the failed one
    report.figures["choice"]["surface"] = report.figures["classes"] = None
    names = {file.stem for file in plot.save(report.figures, tmp_path)}
    assert names == {"skyline", "lorenz", "centrality", "variance", "singular-values"}


def test_what_a_report_lacks_is_named(report):
    figures = report.figures
    figures["classes"], figures["choice"]["surface"], figures["choice"]["movers"] = None, None, []
    figures["why"]["singular_values"], figures["why"]["singular_words"] = None, "It has no matrix."
    for draw, message in [
        (plot.confusion, "not classes"),
        (plot.surface, "no grid of settings"),
        (plot.movers, "no movers"),
        (plot.singular_values, "no singular values. It has no matrix."),
    ]:
        with pytest.raises(ValueError, match=message):
            draw(report)
    with pytest.raises(ValueError, match="give the report itself"):
        plot.hub_map(figures)
    with pytest.raises(ValueError, match="state must be one of 'before', 'after'; got 'between'"):
        plot.hub_map(report, state="between")
    with pytest.raises(ValueError, match="'before', 'after', 'difference'"):
        plot.confusion(report, view="both")
    with pytest.raises(TypeError, match="got list"):
        plot.skyline([1, 2])


def test_without_matplotlib_the_extra_is_named(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (plot.skyline, plot.summary):
        with pytest.raises(ImportError, match=r"pip install 'hubless\[plot\]'"):
            draw(report)


def test_matplotlib_is_loaded_late_and_pyplot_never():
    code = (
        "import sys; from hubless import plot; assert 'matplotlib' not in sys.modules; "
        "plot.lorenz({'skyline': 0, 'lorenz': {'share': [0, 1], 'before': [0, 1], 'after': [0, 1], "
        "'gini': {'before': 0, 'after': 0}}}); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
