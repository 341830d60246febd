"""Queries without labels: what is drawn, the cells on tiny data, and the section of the page made of them."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from benchmarks import transductive, transductive_page
from benchmarks.__main__ import main
from benchmarks.curve_cells import Cells, Key
from benchmarks.record import DOCS
from hubless.movers import Balance, Shrink, Stay
from hubless.paper.experiment import split_at_random

N_METHODS = 4 * len(transductive.MOVERS)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 100)
    return rng.standard_normal((600, 4)) * [5, 1, 1, 1] + 9 * rng.standard_normal((6, 4))[y], y


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick look."""
    out = tmp_path_factory.mktemp("transductive")
    assert main(["transductive", "--quick", "--out", str(out)]) == 0
    return out


# --- what is drawn ------------------------------------------------------------------------------------------


def test_queries_are_on_the_other_side_of_their_class(data):
    split = split_at_random(*data, 0)
    part, sides = transductive.one_side(split, np.random.default_rng(0)), []
    for c in range(6):
        objects, queries = part.X[part.y == c][:, 0], part.queries[part.truth == c][:, 0]
        assert len(objects) == pytest.approx(np.sum(split.y == c) / 2, abs=1)
        assert len(queries) > 5
        sides.append(objects.mean() - queries.mean())  # the wide column is nearly the axis
    assert min(map(abs, sides)) > 4
    assert len({side > 0 for side in sides}) == 1


def test_queries_have_other_shares_and_objects_stay(data):
    split = split_at_random(*data, 0)
    part = transductive.other_shares(split, np.random.default_rng(0))
    assert part.X is split.X
    assert part.y is split.y
    shares = np.sort(np.bincount(part.truth) / np.bincount(split.truth))[::-1]
    np.testing.assert_allclose(shares, 1 / np.arange(1, 7), atol=0.02)


def test_asked_queries_and_the_log_are_disjoint_and_the_same_for_every_method(data):
    keys = [Key("x", "labels", "5", 101, method) for method in ("balance none", "auto asked")]
    first, second = (transductive.split_for(key, *data) for key in keys)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(first.y) == 30
    assert len(first.queries) == len(first.log) == 90
    assert not {*map(tuple, first.queries)} & {*map(tuple, first.log)}
    assert first.proxies("objects") is first.proxies("none") is None
    assert first.proxies("log") is first.log
    assert first.proxies("asked") is first.queries


def test_no_draw_is_of_another_table():
    keys = transductive.plan()
    assert min(key.draw for key in keys) >= 100
    assert {key.dataset for key in keys} == {*transductive.DATASETS}
    assert len(keys) == len({*keys})


def test_a_chain_without_balance():
    assert isinstance(transductive.without_balance(Balance()), Stay)
    steps = transductive.without_balance(transductive.MOVERS["shrink"]).movers
    assert [type(step) for step in steps] == [Shrink]


# --- cells --------------------------------------------------------------------------------------------------


def test_a_cell_without_balance_is_that_of_scikit_learn(data):
    part = transductive.split_for(Key("x", "labels", "all", 100, ""), *data)
    cell = transductive.measure("balance none", part, 100)
    plain = KNeighborsClassifier(1).fit(part.X, part.y)
    right = plain.predict(part.queries) == part.truth
    assert cell["accuracy"] == np.mean(right)
    assert cell["class_accuracy"] == pytest.approx(np.mean([right[part.truth == c].mean() for c in range(6)]))
    near = plain.kneighbors(part.queries, 10, return_distance=False)
    counts = np.bincount(near.ravel(), minlength=len(part.y)).astype(float)
    apart = counts - counts.mean()
    assert cell["skewness"] == pytest.approx(np.mean(apart**3) / np.mean(apart**2) ** 1.5)
    others = {
        kind: transductive.measure(f"balance {kind}", part, 100) for kind in ("objects", "log", "asked")
    }
    assert len({cell["skewness"] for cell in others.values()}) == 3  # each learns from other points


def test_every_cell_of_a_quick_look_is_measured_once(quick, monkeypatch, capsys):
    cells = Cells(quick)
    assert len(cells.entries) == len(transductive.SETTINGS) * N_METHODS + 6  # of auto
    assert all(0 <= cell["accuracy"] <= 1 for cell in cells.entries.values())
    monkeypatch.setattr(transductive, "measure", lambda *_: pytest.fail("measured again"))
    assert main(["transductive", "--quick", "--out", str(quick)]) == 0
    assert f"{len(cells.entries)} results" in capsys.readouterr().out
    assert main(["transductive", "--datasets", "mnist", "--out", str(quick)]) == 1
    assert "data sets are rcv, news, reuters" in capsys.readouterr().err


# --- the section --------------------------------------------------------------------------------------------


def made(accuracies):
    """Cells of Balance on Reuters with 2 objects per class: by proxies, accuracies of the draws."""
    cells = Cells(None)
    for kind, values in accuracies.items():
        for draw, value in enumerate(values):
            entry = {"accuracy": value, "class_accuracy": value / 5, "skewness": 1.0, "machine": {}}
            cells.add(Key("reuters", "labels", "2", draw, f"balance {kind}"), entry)
    return cells


def test_differences_are_paired_by_draw():
    found = transductive_page.Differences(made({"objects": [0.5, 0.7], "asked": [0.6, 0.77], "log": [0.5]}))
    np.testing.assert_allclose(found.of("reuters", "2", "balance asked", "accuracy"), [10, 7])
    np.testing.assert_allclose(found.of("reuters", "2", "balance log", "accuracy"), [0])
    assert found.of("news", "2", "balance asked", "accuracy").shape == (0,)
    assert found.mean("2", "balance asked", "accuracy") == pytest.approx(8.5)
    assert found.mean("5", "balance asked", "accuracy") is None
    assert found.level("2", "balance objects", "accuracy") == pytest.approx(60)


@pytest.mark.parametrize(
    ("differences", "sign"),
    [([1, 1.1, 0.9, 1], 1), ([-1, -1.1, -0.9, -1], -1), ([1, 3, -1, 2], 0), ([0, 0, 0, 0], 0), ([5, 6], 0)],
)
def test_only_intervals_that_exclude_zero_have_a_sign(differences, sign):
    assert transductive_page.sign(np.array(differences, float)) == sign


def test_the_section_says_what_the_cells_have():
    text = transductive_page.section(made({"objects": [0.5, 0.7], "asked": [0.6, 0.77], "none": [0.4, 0.6]}))
    assert "| 2 per class | +8.5 ± 1.5 |" in text
    assert "| the same, mean of the classes | +1.7 ± 0.3 |" in text
    assert "0 gain and 0 lose of 1 with 2 to 10 objects per class" in text
    assert "| 2 per class | 60.0 (−10.0, —, +8.5) | — |" in text
    assert "| 2 per class | 1.00 (0.00, —, 0.00) | — |" in text


def test_the_page_is_made_from_the_raw_results(tmp_path):
    page = tmp_path / transductive_page.PAGE.name
    page.write_text((DOCS / page.name).read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["transductive-page", "--docs", str(tmp_path)]) == 0
    assert page.read_bytes() == (DOCS / page.name).read_bytes(), "python -m benchmarks transductive-page"
    page.write_text("no section", encoding="utf-8")
    assert main(["transductive-page", "--docs", str(tmp_path)]) == 1


@pytest.fixture(scope="module")
def found():
    return transductive_page.Differences(Cells(transductive.FOLDER))


def test_the_raw_results_are_whole(found):
    assert {*transductive.plan()} == {*found.entries}


def test_raw_results_support_what_the_page_says(found):
    for mover in transductive.MOVERS:
        asked, log = (
            {
                setting: found.mean(setting, f"{mover} {kind}", "accuracy")
                for _, setting in transductive.SETTINGS
            }
            for kind in ("asked", "log")
        )
        assert abs(asked["all"]) < 0.25  # a tie
        assert max(asked[size] for size in ("2", "5", "10")) < 0  # a loss
        assert all(found.mean(s, f"{mover} none", "accuracy") < 0 for s in ("2", "5", "10", "all"))
        assert all(abs(asked[setting] - log[setting]) < 0.6 for setting in asked)
    for dataset in ("reuters", "tdt", "apy"):
        for size in ("2", "5", "10"):
            loss, by_class = (
                found.of(dataset, size, "balance asked", field).mean()
                for field in ("accuracy", "class_accuracy")
            )
            assert loss < -3
            assert by_class > loss + 0.5
            assert found.of(dataset, size, "wide asked", "accuracy").mean() < -3
    auto = {name: found.of(name, "5", "auto asked", "accuracy") for name in found.datasets}
    assert np.mean([d.mean() for d in auto.values()]) == pytest.approx(-1.3, abs=0.05)
    assert np.mean([d.mean() if name != "rcv" else d[1] for name, d in auto.items()]) > 0
    lost = found.entries[Key("rcv", "labels", "5", 100, "auto asked")]
    assert (lost["n_train"], lost["chosen"]["mover"]) == (20, "Stay()")


def test_raw_results_support_what_the_page_says_of_the_other_side(found):
    gains = {mover: found.mean("side", f"{mover} asked", "accuracy") for mover in transductive.MOVERS}
    assert min(gains.values()) > 0
    assert max(gains.values()) == pytest.approx(1.1, abs=0.05)
    signs = {
        name: transductive_page.sign(found.of(name, "side", "balance asked", "accuracy"))
        for name in found.datasets
    }
    assert {name: sign for name, sign in signs.items() if sign} == {"awa": 1, "news": -1}
    assert found.mean("side", "balance asked", "skewness") == pytest.approx(-0.5, abs=0.05)
