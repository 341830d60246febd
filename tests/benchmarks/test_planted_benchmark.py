"""Planted hubs measured: attacks are what they say, figures are those of loops, and the page shows them."""

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

from benchmarks import planted, planted_page, record
from benchmarks.__main__ import main
from benchmarks.index_data import folder_of, scifact
from tests import reference

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The raw result of a quick look, and what is printed."""
    out = tmp_path_factory.mktemp("planted")
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert main(["planted", "--quick", "--out", str(out)]) == 0
    return record.read(out)["planted"], shown.getvalue()


@pytest.fixture(scope="module")
def data():
    with folder_of("scifact", quick=True) as folder:
        return scifact(folder)


def test_every_attack_and_clean_set_has_figures(quick):
    raw, shown = quick
    assert set(raw["cases"]["SciFact"]["attacks"]) == set(planted.ATTACKS)
    assert raw["machine"]["cores"] >= 1
    assert raw["date"]
    assert raw["versions"]["scikit-learn"]
    assert all(name in shown for name in (*planted.ATTACKS, *raw["cases"]["clean"]))


@pytest.mark.parametrize("attack", planted.ATTACKS.values(), ids=planted.ATTACKS)
def test_attackers_add_vectors_of_length_1_unless_they_say_so(attack, data, rng):
    made = attack.make(data.items.vectors, data.train.queries[::2], rng)
    assert len(made) in (10, 50, 100)
    lengths = np.linalg.norm(made, axis=1)
    assert (lengths < 0.999).all() if attack.metric == "l2" else np.allclose(lengths, 1)


def test_random_groups_are_means_of_all_that_is_known(data, rng):
    known = data.train.queries[:50]
    made = planted.groups(data.items.vectors, known, rng)
    order = np.random.default_rng(0).permutation(50)  # what the fixture draws first
    for centre, rows in zip(made, np.array_split(order, 10), strict=True):
        mean = [reference.mean(column) for column in zip(*reference.plain(known[rows]), strict=True)]
        np.testing.assert_allclose(centre, mean / np.linalg.norm(mean), rtol=1e-4, atol=1e-6)


def test_what_is_captured_and_hit_is_counted_by_loops(data):
    result = planted.attack_result(data, planted.ATTACKS["10 clusters of the whole log"], 0)
    rng = np.random.default_rng(0)
    rng.permutation(len(data.train.queries))
    X = np.vstack([data.items.vectors, planted.clusters(10)(data.items.vectors, data.train.queries, rng)])
    _, found = reference.nearest(data.test.queries, X, 10)
    assert result["captured"] == np.mean([max(answers) >= 80 for answers in found])
    relevant = data.test.rows(data.items.places)
    right = [bool(set(answers) & set(worth)) for answers, worth in zip(found.tolist(), relevant, strict=True)]
    assert result["hit@10"] == np.mean(right)
    assert result["hubs"] <= result["planted"] == 10


def test_the_committed_figures_keep_what_the_docs_promise():
    cases = record.read(ROOT / "benchmarks" / "results" / "index")["planted"]["cases"]
    case = cases["SciFact"]
    for name, runs in case["attacks"].items():
        assert planted_page.mean(runs, "captured without") <= 0.10, name
        assert planted_page.mean(runs, "hit@10 without") >= case["hit@10"] - 0.005, name
        assert planted_page.mean(runs, "captured held") <= 0.10, name
        assert planted_page.mean(runs, "hit@10 held") >= case["hit@10"] - 0.005, name
    assert case["hit@10 held"] >= case["hit@10"] - 0.005
    for name, clean in cases["clean"].items():
        hubs, alarms = (sum(run[key] for run in clean["runs"]) for key in ("hubs", "false alarms"))
        assert alarms <= 0.05 * hubs, name
