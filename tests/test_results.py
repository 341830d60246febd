"""The committed raw results: complete, the paper's verdicts on them, and the page made of them."""

from pathlib import Path

import numpy as np
import pytest

from hubless import datasets
from hubless.demo import CLOSING
from hubless.hubness import k_occurrence, skewness
from hubless.paper import published, tables
from hubless.paper.claims import REASONS
from hubless.paper.experiment import fitted, run
from hubless.paper.reproduce import plan, split_of
from hubless.topk import search
from hubless.vote import vote

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "results" / "paper"


@pytest.fixture(scope="module")
def results():
    return tables.read(FOLDER)


def cells_of(results, dataset, method):
    """The cells of 300 dimensions, by split."""
    own = [e for e in results.cells if (e["dataset"], e["method"], e["dim"]) == (dataset, method, 300)]
    return sorted(own, key=lambda entry: entry["split"])


def test_the_whole_grid_is_there(results):
    done = {(e["dataset"], e["dim"], e["method"], e["split"]) for e in results.cells if e["status"] == "done"}
    wanted = {tuple(cell) for cell in plan(datasets.NAMES, published.METHODS, 4, 300)}
    assert wanted <= done
    assert all(entry["rows"] is None for entry in results.cells + results.times)


def test_times_are_of_one_machine_and_of_all_methods(results):
    where = {(e["machine"]["processor"], e["machine"]["cores"], e["threads"]) for e in results.times}
    assert len(where) == 1
    assert {entry["device"] for entry in results.times} == {"cpu"}
    timed = {(entry["dataset"], entry["method"]) for entry in results.times}
    large = [*published.DATASETS["document"], *published.DATASETS["image"]]
    assert {(name, method) for name in large for method in published.SECONDS} <= timed


def test_every_verdict_holds_or_has_its_reason(results):
    found = tables.verdicts(results)
    assert len(found) == 3 * 8 + 3 + 4
    assert all(verdict.holds is not None for verdict in found)
    failing = [verdict for verdict in found if not verdict.holds]
    assert all(any(reason in verdict.detail for reason in REASONS.values()) for verdict in failing)
    assert len(failing) == len(REASONS)  # a reason for what holds would be stale


def test_page_is_made_of_the_raw_results(results, tmp_path):
    tables.write(FOLDER, tmp_path)
    for name in ("results.md", "tables.csv", "tables.tex", "tables.json"):
        assert (tmp_path / name).read_text() == (ROOT / "docs" / name).read_text(), f"run: {tables.COMMANDS}"
    for number in (1, 2, 3, 4):
        assert (ROOT / "docs" / f"table{number}.svg").exists()


def test_front_page_and_demo_tell_the_raw_results(results):
    readme = (ROOT / "README.md").read_text()
    for number in (2, 3, 4):
        (table,) = tables.tables(results, numbers=(number,))
        (documents,) = (block for block in table.blocks if block.caption.startswith("Documents"))
        assert tables.markdown_block(documents._replace(notes=[])) in readme
    before, after = (
        np.mean([[e["accuracy"], e["skewness"]] for e in cells_of(results, "news", method)], axis=0)
        for method in ("original-metric", "move-labeled")
    )
    told = " ".join(CLOSING.split())
    assert f"lifts accuracy from {100 * before[0]:.0f} to {100 * after[0]:.0f} %" in told
    assert f"skewness falls from {before[1]:.0f} to {after[1]:.0f}" in told


@pytest.mark.parametrize("method", ["original-metric", "move-labeled"])
def test_a_cell_run_anew_is_the_committed_one(data_dir, results, method):
    split = split_of(datasets.load("news", 300, data_dir), 0)
    found = run(method, split, 0)
    committed = cells_of(results, "news", method)[0]
    assert found.accuracy == pytest.approx(committed["accuracy"], abs=0.005)
    assert found.skewness == pytest.approx(committed["skewness"], rel=0.1)
    assert found.n_neighbors == committed["chosen"]["n_neighbors"]


def neighbours(method, setting, split, k):
    stored, model = fitted(method, setting, split.X, split.y, 0)
    return search(model.transform(split.queries), stored, k, return_distance=False)


def test_the_reason_of_apy_is_true(data_dir):
    """Twins make the skewness: shared among identical objects, it is below 1."""
    split = split_of(datasets.load("apy", 300, data_dir), 0)
    counts = k_occurrence(neighbours("original-metric", {}, split, 10), len(split.X)).astype(float)
    _, group = np.unique(split.X, axis=0, return_inverse=True)
    shared = (np.bincount(group.ravel(), counts) / np.bincount(group.ravel()))[group.ravel()]
    assert skewness(counts) > 10
    assert skewness(shared) < 1


def test_the_reason_of_cub_is_true(data_dir, results):
    """With 3 neighbours Move-labeled is ahead of the original metric, with the λ that was chosen."""
    split = split_of(datasets.load("cub", 300, data_dir), 0)
    cell = cells_of(results, "cub", "move-labeled")[0]
    right = {}
    for method, setting in (("original-metric", {}), ("move-labeled", {"alpha": cell["chosen"]["alpha"]})):
        right[method] = np.mean(vote(split.y[neighbours(method, setting, split, 3)]) == split.truth)
    assert right["move-labeled"] > right["original-metric"]
