"""Benchmarks of probabilities and of unknown classes: at tiny sizes, and the page from raw results."""

import json

import numpy as np
import pytest

from benchmarks import scores, scores_page
from benchmarks.__main__ import SCORES, main
from benchmarks.record import DOCS, read

FOLDER = scores_page.FOLDER


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw results of both verbs with --quick."""
    out = tmp_path_factory.mktemp("scores")
    for verb in SCORES:
        assert main([verb, "--quick", "--out", str(out)]) == 0
    return out


def test_both_verbs_record_machine_and_figures(quick, capsys):
    raw = read(quick)
    assert {*raw} == {*SCORES}
    for verb in SCORES:
        assert {"processor", "cores"} <= raw[verb]["machine"].keys()
        assert raw[verb]["versions"]["scikit-learn"]
    cells = raw["probabilities"]["cases"]["digits"]["cells"]
    assert [cell["method"] for cell in cells] == [*scores.contenders(quick=True)]
    assert all(0.8 < cell["accuracy"] <= 1 and 0 < cell["log_loss"] < 1 for cell in cells)
    (cell,) = raw["unknown"]["cases"]["digits"]["cells"]
    assert all(0.5 < value <= 1 for value in cell["auroc"].values())
    assert len(cell["left_out"]) == 2


def test_mahalanobis_distance_as_a_loop(rng):
    X, y, queries = rng.standard_normal((40, 3)), np.arange(40) % 4, rng.standard_normal((6, 3))
    means = [X[y == c].mean(axis=0) for c in range(4)]
    within = np.array([x - means[c] for x, c in zip(X, y, strict=True)])
    inverse = np.linalg.inv(scores.LedoitWolf(assume_centered=True).fit(within).covariance_)
    naive = [min((q - m) @ inverse @ (q - m) for m in means) for q in queries]
    np.testing.assert_allclose(scores.mahalanobis(X, y, queries), naive)


def test_the_page_of_a_quick_look_says_so(quick, tmp_path):
    made = scores_page.write(read(quick), tmp_path)
    assert {file.name for file in made} == {scores_page.PAGE, scores_page.FIGURE}
    text = (tmp_path / scores_page.PAGE).read_text()
    assert text.count("proves nothing") == 2
    assert (tmp_path / scores_page.FIGURE).read_bytes().startswith(b"<?xml")
    with_one = scores_page.write({"unknown": read(quick)["unknown"]}, tmp_path)
    assert [file.name for file in with_one] == [scores_page.PAGE]
    assert "Not measured yet." in with_one[0].read_text()


def test_the_page_is_made_from_the_raw_results(tmp_path):
    raw = read(FOLDER)
    assert {*SCORES} == raw.keys()
    assert not any(raw[verb]["settings"]["quick"] for verb in SCORES)
    for file in scores_page.write(raw, tmp_path):
        assert file.read_bytes() == (DOCS / file.name).read_bytes(), "python -m benchmarks scores-page"


def test_raw_results_support_what_the_page_says():
    raw = json.loads((FOLDER / "unknown.json").read_text())
    for case in raw["cases"].values():
        for cell in case["cells"]:
            assert cell["rates"]["hubless, auto"]["false_alarms"] <= cell["rate"] + 0.01
