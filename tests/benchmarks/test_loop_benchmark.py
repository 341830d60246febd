"""Replays of a loop: simulated logs are as the page says, replays have figures, and the page shows them."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import loop_page, replays
from benchmarks.__main__ import main
from benchmarks.curve_cells import Cells
from benchmarks.index_data import folder_of, scifact
from benchmarks.loop_verbs import KINDS
from benchmarks.replays import ReplayKey

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "loop"


@pytest.fixture(scope="module")
def data():
    with folder_of("scifact", quick=True) as folder:
        return scifact(folder)


def test_a_quick_look_has_every_kind_and_a_page(tmp_path, capsys):
    assert main(["loop", "--quick", "--out", str(tmp_path)]) == 0
    assert main(["loop", "--quick", "--out", str(tmp_path)]) == 0  # nothing is measured again
    for kind in KINDS:
        cells = Cells(tmp_path, ReplayKey, f"{kind}.jsonl").entries
        assert [*cells] == sorted(replays.plan(kind, quick=True))
        assert all(len(entry["steps"]) == 4 for entry in cells.values())
    assert main(["loop-page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 0
    page = (tmp_path / "loop-results.md").read_text()
    assert all(name in page for name in replays.POISONS)
    assert "replays are in" in capsys.readouterr().out


def test_the_page_is_made_from_the_committed_results(tmp_path):
    loop_page.write(RESULTS, tmp_path)
    expected = (ROOT / "docs" / "loop-results.md").read_text()
    assert (tmp_path / "loop-results.md").read_text() == expected, "run: python -m benchmarks loop-page"


def test_random_clicks_promote_nothing_and_answers_never_fall():
    random = Cells(RESULTS, ReplayKey, "random.jsonl").entries
    assert sum(loop_page.promotions(entry) > 0 for entry in random.values()) <= 1
    good = Cells(RESULTS, ReplayKey, "good.jsonl").entries
    assert [loop_page.falls(entry) for entry in good.values()] == [0] * len(good)


@pytest.mark.parametrize(
    ("log", "rates"), [("clicks by rank", 0.3 / np.arange(1, 11)), ("clicks anywhere", 0.09)]
)
def test_random_clicks_are_as_frequent_as_the_page_says(log, rates, data, tmp_path, rng):
    world, key = replays.World(tmp_path, data), ReplayKey("random", log, "", 0)
    rows = replays.rows_of(world, key, 1, np.arange(1000), rng)
    counts = np.zeros(10)
    for row in rows:
        counts[[row["shown"].index(item) for item in row["clicked"]]] += 1
    np.testing.assert_allclose(counts / len(rows), np.broadcast_to(rates, 10), atol=0.03)
    assert len({row["query"] for row in rows[:-1]} | {rows[-1]["query"]}) == len({r["query"] for r in rows})


@pytest.mark.parametrize("poison", replays.POISONS.values(), ids=replays.POISONS)
def test_poison_is_wrong(poison, data, rng):
    rows = poison(data, np.arange(100), rng)
    right = dict(zip(data.train.ids, data.train.relevant, strict=True))
    assert {row["query"] for row in rows} == set(data.train.ids[:100])
    assert np.mean([row["item"] in right[row["query"]] for row in rows]) < 0.2
