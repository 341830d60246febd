"""Benchmarks of scale at tiny sizes, the simulation against a plain one, and the page."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import beyond_data, record, scale_page, skew
from benchmarks.__main__ import SCALE, main

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw results of every verb with --quick."""
    out = tmp_path_factory.mktemp("scale")
    for verb in SCALE:
        arguments = [verb, "--quick", "--out", str(out)]
        # in a process of its own: a child's peak of memory begins with its parent's, and a cluster leaves
        # sockets to be collected
        if verb in ("beyond", "workers"):
            command = [sys.executable, "-m", "benchmarks", *arguments]
            json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
        else:
            assert main(arguments) == 0
    return out


def test_fit_and_apply_stay_within_their_limit_and_move(quick):
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


def test_made_objects_have_the_documented_structure(tmp_path):
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
    assert inside[24] > 5 * inside[:24].mean()  # the largest variance separates nothing


def test_the_busiest_worker_is_that_of_a_plain_simulation():
    rng = np.random.default_rng(0)
    tasks, workers = rng.random(50), 7
    loads = [0.0] * workers
    for work in tasks:
        place = loads.index(min(loads))
        loads[place] += work
    assert skew.busiest(tasks, workers) == pytest.approx(max(loads) / (tasks.sum() / workers))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5])
def test_work_of_blocks_is_that_of_their_objects(exponent):
    sizes = skew.zipf_sizes(10_000, 50, exponent)
    assert sizes.sum() == 10_000
    sources = sizes // 100
    work = [sources[c] + skew.READ for c, size in enumerate(sizes) for _ in range(size)]  # of each object
    blocks = [sum(work[start : start + 300]) for start in range(0, 10_000, 300)]
    np.testing.assert_allclose(skew.work_of_blocks(sizes, sources, 300), blocks, rtol=1e-12)


def test_samples_are_compared_with_all_pairs(quick):
    case = record.read(quick)["sampled"]["cases"]["noisy"]
    settings, cells = case["settings"], case["cells"]
    per_data = 1 + 2 * (len(settings["per_column"]) + 1)  # without moving, then every sample at two λ
    assert len(cells) == per_data * len(settings["classes"]) * settings["seeds"]
    assert all(0 <= cell["accuracy"] <= 1 for cell in cells)


def test_losses_are_differences_to_all_pairs():
    cells = [
        {"classes": 2, "seed": seed, "pairs per column": pairs, "alpha": 1.0, "accuracy": accuracy}
        for seed, pairs, accuracy in ((0, 50, 0.7), (0, "all", 0.75), (1, 50, 0.8), (1, "all", 0.79))
    ]
    assert scale_page._losses(cells, 50, 1.0) == ["−2.0", "−5.0"]


def test_page_is_made_of_the_raw_results(quick, tmp_path, capsys):
    """Of the committed ones; a quick look makes a page too."""
    assert main(["scale-page", "--out", str(quick), "--docs", str(tmp_path)]) == 0
    assert "proves nothing" in (tmp_path / "scale.md").read_text()
    assert capsys.readouterr().out.split() == [str(tmp_path / "scale.md")]
    committed = record.read(scale_page.FOLDER)
    assert {*SCALE} <= committed.keys()
    assert not any(committed[verb]["settings"]["quick"] for verb in SCALE)
    expected = (ROOT / "docs" / "scale.md").read_text()
    assert scale_page.markdown(committed) == expected, "run: python -m benchmarks scale-page"


def test_page_needs_raw_results(tmp_path, capsys):
    assert main(["scale-page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 1
    assert "python -m benchmarks scale" in capsys.readouterr().err
