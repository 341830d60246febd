"""The committed raw results: complete, the paper's verdicts on them, and the page made of them."""

from pathlib import Path

import numpy as np
import pytest

from hubless.hubness import k_occurrence, skewness
from hubless.neighbors.knn import vote
from hubless.neighbors.search import search
from hubless.paper import datasets, tables
from hubless.paper.claims import REASONS, verdicts
from hubless.paper.demo import CLOSING
from hubless.paper.experiment import fitted, measure
from hubless.paper.names import KINDS, LARGE_DATASETS, PAPER_DATASETS, PAPER_METHODS
from hubless.paper.published import TABLES
from hubless.paper.reproduce import plan, split_of
from hubless.paper.results import read

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "results" / "paper"


@pytest.fixture(scope="module")
def results():
    return read(FOLDER)


def cells_of(results, dataset, method):
    """The cells of 300 dimensions, by split."""
    entries = [e for e in results.cells if (e["dataset"], e["method"], e["dim"]) == (dataset, method, 300)]
    return sorted(entries, key=lambda entry: entry["split"])


def test_the_whole_grid_is_there(results):
    done = {(e["dataset"], e["dim"], e["method"], e["split"]) for e in results.cells if e["status"] == "done"}
    wanted = {tuple(cell) for cell in plan(PAPER_DATASETS, PAPER_METHODS, 4, 300)}
    assert wanted <= done
    assert all(entry["rows"] is None for entry in results.cells + results.times)


def test_times_are_of_one_machine_and_of_all_methods(results):
    where = {(e["machine"]["processor"], e["machine"]["cores"], e["threads"]) for e in results.times}
    assert len(where) == 1
    assert {entry["device"] for entry in results.times} == {"cpu"}
    timed = {(entry["dataset"], entry["method"]) for entry in results.times}
    assert {(name, method) for name in LARGE_DATASETS for method in TABLES[4]} <= timed


def test_every_verdict_holds_or_has_its_reason(results):
    result = verdicts(results)
    assert len(result) == 3 * 8 + 3 + 4
    assert all(verdict.holds is not None for verdict in result)
    failing = [verdict for verdict in result if not verdict.holds]
    assert all(any(reason in verdict.detail for reason in REASONS.values()) for verdict in failing)
    assert len(failing) == len(REASONS)  # a reason for what holds would be stale


def test_page_is_made_of_the_raw_results(results):
    pictures = tuple(number for number in range(9) if (ROOT / "docs" / f"table{number}.svg").exists())
    assert pictures == (1, 2, 3, 4)
    for name, text in tables.texts(results, pictures).items():
        assert text == (ROOT / "docs" / name).read_text(), (
            "run: hubless tables benchmarks/results/paper --out docs"
        )


def test_the_demo_quotes_the_raw_results(results):
    before, after = (
        np.mean([[e["accuracy"], e["skewness"]] for e in cells_of(results, "news", method)], axis=0)
        for method in ("original-metric", "move-labeled")
    )
    text = " ".join(CLOSING.split())
    assert f"lifts accuracy from {100 * before[0]:.0f} to {100 * after[0]:.0f} %" in text
    assert f"skewness falls from {before[1]:.0f} to {after[1]:.0f}" in text


def assert_same_cell(data_dir, results, name, method):
    split = split_of(datasets.load(name, 300, data_dir), 0)
    result = measure(method, split, 0)
    committed = cells_of(results, name, method)[0]
    assert result["accuracy"] == pytest.approx(committed["accuracy"], abs=0.005)
    assert result["skewness"] == pytest.approx(committed["skewness"], rel=0.1)
    assert result["chosen"].pop("n_neighbors") == committed["chosen"]["n_neighbors"]
    for parameter, value in result["chosen"].items():
        assert value == pytest.approx(committed["chosen"][parameter], rel=1e-3)


@pytest.mark.parametrize("name", KINDS["UCI"])
@pytest.mark.parametrize("method", ["original-metric", "move-labeled", "move-query"])
def test_a_cell_run_again_is_the_committed_one(data_dir, results, name, method):
    assert_same_cell(data_dir, results, name, method)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"), [("news", "original-metric"), ("news", "move-labeled"), ("reuters", "move-labeled")]
)
def test_a_large_cell_run_again_is_the_committed_one(data_dir, results, name, method):
    assert_same_cell(data_dir, results, name, method)


@pytest.mark.slow
def test_news_moved_again_as_it_was_chosen_is_the_committed_cell(data_dir, results):
    """The whole choice takes half a minute; its outcome is fitted and measured."""
    split = split_of(datasets.load("news", 300, data_dir), 0)
    committed = cells_of(results, "news", "move-labeled")[0]
    k, setting = committed["chosen"]["n_neighbors"], {"alpha": committed["chosen"]["alpha"]}
    indices = neighbours("move-labeled", setting, split, max(k, 10))
    accuracy = np.mean(vote(split.y[indices[:, :k]]) == split.truth)
    assert accuracy == pytest.approx(committed["accuracy"], abs=0.005)
    skew = skewness(k_occurrence(indices[:, :10], len(split.X)))
    assert skew == pytest.approx(committed["skewness"], rel=0.1)


def neighbours(method, setting, split, k):
    stored, model = fitted(method, setting, split.X, split.y, 0)
    return search(model.transform(split.queries), stored, k, return_distance=False)


@pytest.mark.slow
def test_the_reason_of_apy_is_true(data_dir):
    """Twins make the skewness: shared among identical objects, it is below 1."""
    split = split_of(datasets.load("apy", 300, data_dir), 0)
    counts = k_occurrence(neighbours("original-metric", {}, split, 10), len(split.X)).astype(float)
    _, group = np.unique(split.X, axis=0, return_inverse=True)
    shared = (np.bincount(group.ravel(), counts) / np.bincount(group.ravel()))[group.ravel()]
    assert skewness(counts) > 10
    assert skewness(shared) < 1


@pytest.mark.slow
def test_the_reason_of_cub_is_true(data_dir, results):
    """With 3 neighbours Move-labeled is ahead of the original metric, with the λ that was chosen."""
    split = split_of(datasets.load("cub", 300, data_dir), 0)
    cell = cells_of(results, "cub", "move-labeled")[0]
    right = {}
    for method, setting in (("original-metric", {}), ("move-labeled", {"alpha": cell["chosen"]["alpha"]})):
        right[method] = np.mean(vote(split.y[neighbours(method, setting, split, 3)]) == split.truth)
    assert right["move-labeled"] > right["original-metric"]
