"""Benchmarks of scale at tiny sizes, the simulation against a plain one, and the page."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import beyond_data, record, scale_page, skew
from benchmarks.__main__ import SCALE, main
from hubless.large.plan import pack

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw results of every verb with --quick."""
    out = tmp_path_factory.mktemp("scale")
    for verb in SCALE:  # in processes of their own: clusters leave sockets to be collected
        command = [sys.executable, "-m", "benchmarks", verb, "--quick", "--out", str(out)]
        json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    return out


def test_fit_and_apply_are_confined_and_move(quick):
    case = record.read(quick)["beyond"]["cases"]["streaming"]
    for run in case["runs"].values():
        assert run["code"] == 0
        assert 0 < run["peak resident bytes"] < run["limit"]
    assert case["kept"]["telling"] > case["kept"]["others"]
    assert 0.5 < case["accuracy"]["before"] <= 1
    assert 0.5 < case["accuracy"]["after"] <= 1


def test_workers_learn_what_one_process_learns(quick):
    case = record.read(quick)["workers"]["cases"]["search"]
    assert case["largest difference of the sums, relative"] < 1e-12
    assert all(len(took) == 2 for took in case["seconds"].values())


def test_made_objects_have_the_structure_that_is_told(tmp_path):
    made = beyond_data.make(tmp_path, 5_000, 64, 20)
    X, y = np.load(made.vectors), np.load(made.labels)
    assert X.dtype == np.float32
    assert X.shape == (5_000, 64)
    sizes = np.bincount(y)
    assert sizes.min() >= 2
    assert sizes[0] > 3 * sizes[5]  # Zipf's: six times, less what chance does
    means = np.stack([X[y == c].mean(axis=0) for c in range(20)])
    telling, others = means[:10, :24].var(axis=0).mean(), means[:10, 24:].var(axis=0).mean()
    assert telling > 5 * others
    inside = (X - means[y]).var(axis=0)
    assert inside[24] > 5 * inside[:24].mean()  # the loudest direction tells nothing


def test_the_busiest_worker_is_that_of_a_plain_simulation():
    rng = np.random.default_rng(0)
    tasks, workers = rng.random(50), 7
    loads = [0.0] * workers
    for work in tasks:
        place = loads.index(min(loads))
        loads[place] += work
    assert skew.busiest(tasks, workers) == pytest.approx(max(loads) / (tasks.sum() / workers))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5])
def test_tasks_have_all_the_work(exponent):
    sizes = skew.zipf_sizes(100_000, 50, exponent)
    assert sizes.sum() == 100_000
    for counts in (sizes, np.maximum(1, sizes // 100)):
        bins = pack(sizes, counts, 3_000, most=1e6)
        tasks = skew.tasks_of(sizes, counts, bins)
        comparisons = float((sizes * counts).sum())
        assert comparisons <= tasks.sum() <= comparisons + skew.READ * 100_000 * 1.001
        assert len(tasks) == bins.n_whole + int((bins.chunks * bins.groups)[bins.chunks > 1].sum())


def test_page_is_made_of_the_raw_results(quick, tmp_path, capsys):
    """Of the committed ones; a quick look makes a page too."""
    assert main(["scale-page", "--out", str(quick), "--docs", str(tmp_path)]) == 0
    assert "proves nothing" in (tmp_path / "scale.md").read_text()
    assert capsys.readouterr().out.split() == [str(tmp_path / "scale.md")]
    found = record.read(scale_page.FOLDER)
    assert {*SCALE} <= found.keys()
    assert not any(found[verb]["settings"]["quick"] for verb in SCALE)
    told = (ROOT / "docs" / "scale.md").read_text()
    assert scale_page.markdown(found) == told, "run: python -m benchmarks scale-page"


def test_page_wants_results(tmp_path, capsys):
    assert main(["scale-page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 1
    assert "python -m benchmarks scale" in capsys.readouterr().err
