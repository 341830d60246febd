"""Few labels and data with faults: what is drawn, the cells on tiny data, and the page made of them."""

import json
from collections import Counter

import numpy as np
import pytest

from benchmarks import curves, curves_page, standings
from benchmarks.__main__ import main
from benchmarks.curve_cells import Cells, Key
from hubless.paper.experiment import split_at_random


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 100)
    return split_at_random(rng.standard_normal((600, 4)) + y[:, None], y, 0)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick look."""
    out = tmp_path_factory.mktemp("curves")
    assert main(["curves", "--quick", "--out", str(out)]) == 0
    return out


def is_part(rows, whole):
    return {tuple(row) for row in rows.tolist()} <= {tuple(row) for row in whole.tolist()}


@pytest.mark.parametrize("per_class", ["1", "3"])
def test_a_few_objects_of_each_class_are_drawn(split, per_class):
    part = curves.few(split, per_class, np.random.default_rng(0))
    assert Counter(part.y.tolist()) == dict.fromkeys(range(6), int(per_class))
    assert is_part(np.c_[part.X, part.y], np.c_[split.X, split.y])
    other = curves.few(split, per_class, np.random.default_rng(1))
    assert not np.array_equal(part.X, other.X)
    assert curves.few(split, curves.ALL, np.random.default_rng(0)) is split


def test_a_class_with_fewer_objects_gives_all(split):
    rows = np.append(np.flatnonzero(split.y != 5), np.flatnonzero(split.y == 5)[:2])
    part = curves.few(curves._rows(split, rows), "10", np.random.default_rng(0))
    assert Counter(part.y.tolist()) == {**dict.fromkeys(range(5), 10), 5: 2}


def test_ranks_count_the_objects_of_a_class_before():
    assert curves.ranks(np.array([7, 2, 7, 7, 2])).tolist() == [0, 0, 1, 2, 1]


def test_a_fifth_of_the_labels_is_wrong(split):
    noisy = curves.mislabel(split, np.random.default_rng(0))
    is_wrong = noisy.y != split.y
    assert 0.15 < is_wrong.mean() < 0.25
    assert set(noisy.y[is_wrong]) == set(range(6))
    assert noisy.X is split.X
    assert noisy.truth is split.truth


def test_zipf_sized_classes_shrink_by_their_rank(split):
    part = curves.zipf(split, np.random.default_rng(0))
    for before, after in ((split.y, part.y), (split.truth, part.truth)):
        old, new = Counter(before.tolist()), Counter(after.tolist())
        share = sorted((new[c] / old[c] for c in range(6)), reverse=True)
        assert share == pytest.approx([1 / rank for rank in range(1, 7)], abs=0.03)
    assert is_part(np.c_[part.X, part.y], np.c_[split.X, split.y])
    assert is_part(np.c_[part.queries, part.truth], np.c_[split.queries, split.truth])


def test_one_column_dwarfs_the_others(split):
    part = curves.stretch(split, np.random.default_rng(0))
    factors = part.X[0] / split.X[0]
    assert sorted(factors) == pytest.approx([1, 1, 1, 1e4])
    assert np.allclose(part.X, split.X * factors)
    assert np.allclose(part.queries, split.queries * factors)


def test_every_object_is_there_twice(split):
    part = curves.double(split, np.random.default_rng(0))
    assert len(part.y) == len(split.y)
    assert set(Counter(map(tuple, np.c_[part.X, part.y].tolist())).values()) == {2}


def test_every_method_has_the_same_objects(split):
    keys = [Key("x", "faults", "wrong", 1, method) for method in curves.METHODS]
    X, y = np.concatenate([split.X, split.queries]), np.concatenate([split.y, split.truth])
    first, *others = (curves.split_for(key, X, y) for key in keys)
    assert all(np.array_equal(first.y, other.y) for other in others)
    assert not np.array_equal(first.y, curves.split_for(keys[0]._replace(draw=2), X, y).y)


def test_a_quick_look_measures_every_cell(quick):
    lines = [json.loads(line) for line in (quick / "results.jsonl").read_text().splitlines()]
    cells = [line for line in lines if "method" in line]
    assert len(cells) == len(curves.METHODS) * (2 + len(curves.FAULTS))
    for cell in cells:
        assert 0 <= cell["accuracy"] <= 1 if cell["status"] == "done" else cell["error"]
    assert all(cell["status"] == "done" for cell in cells if cell["setting"] not in ("1", "zipf"))
    impossible = [cell for cell in cells if cell["method"] == "lda" and cell["setting"] == "1"]
    assert "number of samples must be more than" in impossible[0]["error"]  # recorded, and the run goes on


def test_finished_cells_are_skipped_unless_asked_for_again(quick, monkeypatch, capsys):
    counted = []
    monkeypatch.setitem(
        curves.METHODS, "euclidean", lambda *_: counted.append(1) or {"accuracy": 0.5, "chosen": {}}
    )
    before = (quick / "results.jsonl").read_text()
    options = ["curves", "--quick", "--methods", "euclidean", "--out"]
    assert main([*options, str(quick)]) == 0
    assert not counted
    assert (quick / "results.jsonl").read_text() == before
    keys = curves.plan(["euclidean"], quick=True)
    cells = Cells(quick)
    cells.folder = None  # keep what the other tests read
    curves.run(keys, cells, again=True)
    assert len(counted) == len(keys)
    assert {cells.entries[key]["accuracy"] for key in keys} == {0.5}
    assert main(["curves", "--quick", "--methods", "euclid", "--out", str(quick)]) == 1
    assert "methods are euclidean, ridge" in capsys.readouterr().err


def made(accuracies):
    """Cells of News with these accuracies in per cent, by part, setting and method; None is a failure."""
    cells = Cells(None)
    for (part, setting, method), values in accuracies.items():
        for draw, value in enumerate(values):
            state = (
                {"status": "failed", "error": "no"}
                if value is None
                else {"status": "done", "accuracy": value / 100}
            )
            sizes = {"n_train": 100, "n_classes": 20, "threads": 1, "device": "cpu", "machine": {"cores": 2}}
            cells.add(Key("news", part, setting, draw, method), state | sizes)
    return cells


GOOD = {
    ("labels", "1", "euclidean"): [30, 40],
    ("labels", "1", "ridge"): [30, 40],
    ("labels", "1", "auto"): [30, 40],
    ("labels", "2", "ridge"): [50, 52],
    ("labels", "2", "auto"): [49.8, 51.8],
    ("faults", "wrong", "euclidean"): [60, 62],
    ("faults", "wrong", "auto"): [59, 63],
}


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({("labels", "1", "auto"): [30, 41]}, [curves_page.ALONE]),
        ({("labels", "1", "ridge"): [None, None]}, [curves_page.ALONE]),
        ({("labels", "2", "auto"): [49.6, 51.6]}, [curves_page.FEW]),
        ({("faults", "wrong", "auto"): [59, 62.8]}, [curves_page.SOUND]),
    ],
)
def test_goals_are_reached_or_not(change, failing):
    goals = curves_page.curve_goals(made(GOOD | change))
    assert [goal.text for goal in goals if not goal.holds] == failing


def test_there_are_no_goals_without_auto():
    assert curves_page.curve_goals(made({("labels", "1", "euclidean"): [30]})) == []


def test_the_page_shows_means_errors_and_failures():
    lines = curves_page.section(made(GOOD | {("labels", "1", "lda"): [None, 5]}))
    assert "| Euclidean | 35.0 ± 5.0 | — |" in lines
    assert "| LDA | error | — |" in lines
    assert any(line.startswith("| News, 20 % of labels wrong | 61.0 | — | 61.0 |") for line in lines)
    assert curves_page.section(Cells(None)) == []


def test_a_quick_look_has_a_page_and_a_figure(quick, tmp_path):
    folders = [standings.FOLDER]
    files = {file.name: file for file in standings.write(folders, tmp_path, quick)}
    assert set(files) == {"movers-results.md", "movers.json", curves_page.FIGURE}
    assert curves_page.draw(Cells(quick))[curves_page.FIGURE] == files[curves_page.FIGURE].read_bytes()
    figure = files[curves_page.FIGURE].read_text()
    assert all(title in figure for title in curves.TITLES.values())
    assert f"]({curves_page.FIGURE})" in files["movers-results.md"].read_text()
