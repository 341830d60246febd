"""Corrections from a log compared: each rule against plain loops, the choice, tiny cells, and the page."""

import json
from math import exp, log, log2
from pathlib import Path

import numpy as np
import pytest

from benchmarks import log_cells, log_data, log_methods, log_page, log_tables
from benchmarks.__main__ import main
from benchmarks.curve_cells import Cells
from benchmarks.log_cells import LogKey
from hubless import corrections

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def task():
    return log_data.tiny("flickr8k")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw cells of all tiny data sets."""
    out = tmp_path_factory.mktemp("log")
    assert main(["log", "--quick", "--out", str(out)]) == 0
    return out


def ordered(scores):
    """Places of the ten largest, by a plain sort."""
    return [sorted(range(len(row)), key=lambda i: -row[i])[:10] for row in scores.tolist()]


def test_the_largest_come_first(rng):
    scores = rng.standard_normal((7, 30))
    assert log_data.largest(scores).tolist() == ordered(scores)
    assert log_data.largest(scores[:, :4]).shape == (7, 4)


def test_measures_are_those_of_plain_loops(rng):
    top = np.array([rng.permutation(20)[:10] for _ in range(30)])
    truth, labels = rng.integers(0, 20, 30), rng.integers(0, 3, 20)
    recalls = log_data.recalls(truth, top)
    for k in (1, 5, 10):
        right = [100.0 * (answer in row[:k]) for row, answer in zip(top.tolist(), truth, strict=True)]
        assert recalls[f"R@{k}"].tolist() == right
    relevant = [{int(i): 1.0, (int(i) + 1) % 20: 1.0} for i in truth]
    ndcg = []
    for row, worth in zip(top.tolist(), relevant, strict=True):
        gain = sum(1 / log2(place + 2) for place, item in enumerate(row) if item in worth)
        ndcg.append(gain / (1 + 1 / log2(3)))
    found = log_data.relevances(relevant, top)
    assert found["nDCG@10"] == pytest.approx(ndcg)
    assert found["hit rate@10"].tolist() == [float(score > 0) for score in ndcg]
    wanted = rng.integers(0, 3, 30)
    votes = log_data.agreements(labels, wanted, top)
    for row, answer, ten, one in zip(top, wanted, votes["10-NN"], votes["1-NN"], strict=True):
        near = labels[row].tolist()
        winner = max(near, key=lambda name, near=near: (near.count(name), -near.index(name)))
        assert (ten, one) == (100.0 * (winner == answer), 100.0 * (near[0] == answer))


def test_qb_norm_corrects_only_queries_whose_nearest_is_nearest_to_a_logged_one(task):
    bank, asked = task.banks["own"][:15], task.test
    active = {max(range(60), key=lambda i, q=q: asked.objects[i] @ q) for q in bank}
    found = log_methods.dynamic_softmax(bank, asked)
    is_active = []
    for query, scores in zip(asked.queries, found, strict=True):
        plain = [float(query @ z) for z in asked.objects]
        is_active.append(plain.index(max(plain)) in active)
        sums = [sum(exp(20 * float(q @ z)) for q in bank) for z in asked.objects]
        if is_active[-1]:  # as exp(20 s) divided by that sum orders them
            plain = [value - log(total) / 20 for value, total in zip(plain, sums, strict=True)]
        assert scores == pytest.approx(plain, abs=1e-5)
    assert {True, False} == set(is_active)


def test_the_sweep_has_means_of_the_largest_similarities(task):
    bank, objects = task.banks["own"], task.test.objects
    means = log_methods.mean_of_largest(objects, bank, [1, 4, 128])
    for k in (1, 4, 128):
        for z, mean in zip(objects, means[k], strict=True):
            similar = sorted((float(q @ z) for q in bank), reverse=True)[:k]
            assert mean == pytest.approx(sum(similar) / k, abs=1e-5)


@pytest.mark.parametrize("name", [name for name, family in log_methods.FAMILIES.items() if family.strengths])
def test_any_strength_follows_from_strength_1(name, task):
    family, bank, objects = log_methods.FAMILIES[name], task.banks["own"], task.test.objects
    values = family.settings(len(bank))[0]
    full = family.build(**values, strength=1.0).fit(bank, objects).bias(objects)
    wanted = family.build(**values, strength=0.25).fit(bank, objects).bias(objects)
    for ours, theirs in zip(log_methods.at_strength(*full, 0.25), wanted, strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or ours == pytest.approx(theirs)


def test_every_correction_is_compared():
    assert set(log_methods.FAMILIES) == set(corrections.CORRECTIONS)


def test_no_more_neighbours_are_tried_than_there_are_logged_queries():
    family = log_methods.FAMILIES["NNN"]
    assert [values["n_neighbors"] for values in family.settings(100)] == [8, 32, 100]


def test_doing_nothing_competes(task):
    asked, nothing = task.validation, task.validation.similarity
    right = np.array(
        [np.flatnonzero(asked.measure(np.full((40, 1), i))["R@1"]).tolist() for i in range(60)], object
    )
    perfect = np.zeros_like(nothing)
    for item, queries in enumerate(right):
        perfect[queries, item] = 1
    as_good, worse = ({"strength": 1.0}, nothing), ({"strength": 2.0}, -nothing)
    setting, change = log_methods.choose(asked, iter([as_good, worse]))
    assert setting is None
    assert change.after == change.before
    setting, change = log_methods.choose(asked, iter([worse, ({"strength": 3.0}, perfect), as_good]))
    assert setting == {"strength": 3.0}
    assert change.after == 100
    assert log_methods.choose(asked, iter([worse]), stay=False)[0] == {"strength": 2.0}


def test_small_banks_are_drawn_several_times_the_same_for_every_method():
    rng = np.random.default_rng(0)
    task = log_data.tiny("scifact")
    banks = {"own": rng.standard_normal((1500, 2)), "foreign": rng.standard_normal((900, 2))}
    task = log_data.LogTask(task.validation, task.test, banks, {})
    keys = log_cells.plan("scifact", task)
    sizes = {(key.bank, key.size, key.draw) for key in keys if key.method == "NNN"}
    draws = range(log_cells.DRAWS)
    small = {("own", size, draw) for size in ("100", "1000") for draw in draws}
    assert sizes == small | {("foreign", "100", draw) for draw in draws} | {
        ("own", "all", 0),
        ("foreign", "all", 0),
    }
    first, other, same = (
        log_cells.bank_of(LogKey("scifact", method, "own", "100", draw), task)
        for method, draw in (("NNN", 0), ("NNN", 1), ("CSLS", 0))
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert {row.tobytes() for row in first} <= {row.tobytes() for row in banks["own"]}
    assert len(np.unique(first, axis=0)) == 100


def test_a_quick_look_measures_every_cell(quick):
    for name in log_data.LOADERS:
        cells = log_cells.cells_of(name, quick).entries
        kinds = {(key.method, key.bank) for key in cells}
        wanted = {(method, kind) for method in log_methods.METHODS for kind in log_cells.KINDS}
        assert wanted <= kinds
        assert ((log_methods.QUERY_SIDE, "none") in kinds) == (name == "flickr8k")
        assert {entry["status"] for entry in cells.values()} == {"done"}


def test_figures_of_a_cell_are_those_of_its_correction(quick, task):
    entry = log_cells.cells_of("flickr8k", quick).entries[LogKey("flickr8k", "NNN()", "own", "all", 0)]
    bank, asked = task.banks["own"], task.test
    bias = [0.25 * np.mean(sorted((bank @ z).tolist())[-16:]) for z in asked.objects]
    top = np.array(ordered(asked.similarity - np.array(bias)))
    for name, wanted in asked.measure(top).items():
        assert log_tables.figure(entry, name)["after"] == pytest.approx(wanted.mean())
    moved = corrections.NNN().fit(bank, asked.objects).move(asked.objects)
    found = ordered(asked.queries @ moved.T)
    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(top.tolist(), found, strict=True)])
    assert entry["agreement"] == pytest.approx(shared)


def test_finished_cells_are_skipped_and_failures_are_recorded(quick, tmp_path, monkeypatch, capsys):
    def fail(method, bank, task):
        raise ArithmeticError("no")

    monkeypatch.setattr(log_cells, "rank", fail)
    before = (quick / "scifact.jsonl").read_text()
    assert main(["log", "--quick", "--datasets", "scifact", "--out", str(quick)]) == 0
    assert (quick / "scifact.jsonl").read_text() == before
    monkeypatch.setattr(log_cells, "METHODS", ("NNN",))
    assert main(["log", "--quick", "--datasets", "scifact", "--out", str(tmp_path)]) == 1
    lines = [json.loads(line) for line in (tmp_path / "scifact.jsonl").read_text().splitlines()]
    failed = [line for line in lines if line.get("status") == "failed"]
    assert [line["error"] for line in failed] == ["ArithmeticError: no"] * 2
    assert main(["log", "--datasets", "sciFact", "--out", str(tmp_path)]) == 1
    assert "data sets are flickr8k, scifact, banking77" in capsys.readouterr().err


# --- the page


def change(measure, after, low, high, before=50.0):
    return {"measure": measure, "before": before, "after": after, "low": low, "high": high}


def entry(after, low, high, *, valid=(1.0, 2.0), setting=None, measure="R@10", apart=0.0):
    """A cell with one figure, of a change that validation queries gave this interval."""
    return {
        "status": "done",
        "figures": [change(measure, after, low, high)],
        "no_column": [change(measure, after + apart, low, high)],
        "validation": change(measure, 50 + sum(valid) / 2, *valid),
        "setting": setting,
        "agreement": 0.9,
        "machine": {"cores": 1},
    }


def cells_with(dataset, **entries):
    """Cells of doing nothing, with R@1 of 18.2, and of methods with the whole bank."""
    cells = Cells(None)
    plain = {"figures": [change("R@10", 50, 0, 0), change("R@1", 18.2, 0, 0)], "status": "done"}
    cells.entries[LogKey(dataset, log_methods.PLAIN, "none", "0", 0)] = plain
    for method, found in entries.items():
        name = log_methods.DEFAULT if method == "default" else method
        cells.entries[LogKey(dataset, name, "own", "all", 0)] = found
    return cells


STRONG = {"strength": 1.0}


@pytest.mark.parametrize(
    ("best", "holds"),
    [
        (entry(53.2, 2, 4, setting=STRONG, apart=-0.2), [True, True, True]),
        (entry(52.9, 2, 4, setting=STRONG, apart=-0.2), [True, False, True]),
        (entry(53.2, 2, 4, setting=STRONG, apart=0.4), [True, True, False]),
        (entry(50, 0, 0, valid=(0, 0)), [True]),  # nothing was chosen
    ],
)
def test_goals_of_flickr_are_those_of_the_best_by_validation(best, holds):
    liked_less = entry(60, 5, 15, valid=(0.1, 0.2), setting=STRONG) if best["setting"] else best
    cells = cells_with("flickr8k", NNN=liked_less, Sinkhorn=best)
    assert [goal.holds for goal in log_page.goals({"flickr8k": cells})] == holds


@pytest.mark.parametrize(
    ("best", "default", "holds"),
    [
        (entry(49, -2, 0.5, setting=STRONG), entry(50, -0.1, 0.1), [True, True]),
        (entry(49, -2, -0.5, setting=STRONG), entry(50, -0.1, 0.1), [False, True]),
        (entry(49, -2, -0.5, setting=STRONG, valid=(-1, 2)), entry(50, -0.1, 0.1), [True, True]),
        (entry(50, 0, 0, valid=(0, 0)), entry(49, -2, -0.5), [True, False]),
    ],
)
def test_scifact_must_not_lose_visibly(best, default, holds):
    cells = cells_with("scifact", NNN=best, default=default)
    assert [goal.holds for goal in log_page.goals({"scifact": cells})] == holds


@pytest.mark.parametrize(
    ("low", "high", "valid", "side", "careful"),
    [
        (0.1, 0.3, (0.1, 1), 1, 1),
        (0.1, 0.3, (-0.1, 1), 1, 0),
        (-0.3, -0.1, (0.1, 1), -1, -1),
        (-0.3, 0.1, (0.1, 1), 0, 0),
        (0, 0, (0, 0), 0, 0),
    ],
)
def test_a_change_is_visible_if_its_interval_is_on_one_side(low, high, valid, side, careful):
    found = entry(50, low, high, valid=valid)
    assert log_tables.side(found["figures"][0]) == side
    assert log_tables.cautious(found, "R@10") == careful


def test_what_the_lack_of_a_column_costs_is_named():
    cells = cells_with("flickr8k", NNN=entry(52, 1, 3, apart=-0.29), Sinkhorn=entry(53, 2, 4, apart=-0.4))
    line = log_tables.column_line(cells)
    assert line == "- Without a column more than 0.3 points away, own bank, all of it: `Sinkhorn` (-0.40)."


def test_numbers_are_means_over_the_draws():
    drawn = [change("R@10", 51, 0.5, 1.5), change("R@10", 53, 1.5, 4.5)]
    assert log_tables.interval(drawn, "R@10") == "52.0 (+1.0 to +3.0)"
    assert log_tables.interval([change("nDCG@10", 0.6494, 0, 0)], "nDCG@10") == "0.649"


def test_a_quick_look_makes_a_page_too(quick, tmp_path, capsys):
    assert main(["log-page", "--out", str(quick), "--docs", str(tmp_path)]) == 0
    page = (tmp_path / "log-results.md").read_text()
    assert "quick look" in page
    assert all(title in page for title in log_tables.TITLES.values())
    assert str(tmp_path / "log-results.md") in capsys.readouterr().out


def test_page_is_made_of_the_raw_cells(tmp_path):
    assert main(["log-page", "--docs", str(tmp_path)]) == 0
    expected = (ROOT / "docs" / "log-results.md").read_text()
    assert (tmp_path / "log-results.md").read_text() == expected, "run: python -m benchmarks log-page"
    assert "quick look" not in expected
    assert "Not measured yet" not in expected


def test_page_needs_raw_cells(tmp_path, capsys):
    assert main(["log-page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 1
    assert "python -m benchmarks log" in capsys.readouterr().err
