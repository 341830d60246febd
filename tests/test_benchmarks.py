"""The benchmarks: timing against hand-computed numbers, every verb at tiny sizes, and the page."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import claims, fit, learners, page, plots, record, search, timing
from benchmarks.__main__ import VERBS, main
from benchmarks.data import clustered, evenly
from benchmarks.growth import exponent, last_exponent

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw results of `all --quick`."""
    out = tmp_path_factory.mktemp("speed")
    command = [sys.executable, "-m", "benchmarks", "all", "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar in a pipe, and no warning of ours
    return out


class Stopwatch:
    """A clock that contenders of known durations move on."""

    def __init__(self):
        self.now, self.ran = 0.0, []

    def contender(self, name, *durations):
        waiting = list(durations)

        def run():
            self.ran.append(name)
            self.now += waiting.pop(0)

        return run


def test_race_turns_the_order_and_leaves_the_warm_up_out():
    watch = Stopwatch()
    contenders = {
        "a": watch.contender("a", 9, 1, 2, 3, 4),
        "b": watch.contender("b", 9, 5, 6, 7, 8),
        "c": watch.contender("c", 9, 2, 2, 2, 2),
    }
    seconds = timing.race(contenders, 4, clock=lambda: watch.now)
    assert "".join(watch.ran) == "abc" + "abc" + "cba" + "bca" + "acb"
    assert seconds == {"a": [1, 2, 3, 4], "b": [5, 6, 7, 8], "c": [2, 2, 2, 2]}


def test_slow_contenders_run_once_and_failing_ones_drop_out():
    watch = Stopwatch()
    contenders = {
        "a": watch.contender("a", 1, 1, 1),
        "slow": watch.contender("slow", 60),
        "fails": lambda: 1 / 0,
    }
    seconds = timing.race(contenders, 2, once=("slow",), clock=lambda: watch.now)
    assert seconds == {"a": [1, 1], "slow": [60], "fails": {"error": "ZeroDivisionError: division by zero"}}
    assert timing.is_timed(seconds, "a", "slow")
    assert not timing.is_timed(seconds, "a", "fails")
    assert not timing.is_timed(seconds, "not there")


def test_contenders_that_cannot_be_prepared_are_told():
    def absent(_):
        raise ModuleNotFoundError("No module named 'peer'")

    contenders, errors = timing.ready({"here": lambda x: lambda: x, "peer": absent}, 7)
    assert contenders["here"]() == 7
    assert errors == {"peer": {"error": "ModuleNotFoundError: No module named 'peer'"}}


def test_ratio_is_taken_round_by_round():
    seconds = {"a": [2.0, 4.0, 6.0, 8.0], "b": [1.0, 1.0, 3.0, 2.0], "once": [10.0]}
    assert timing.ratio(seconds, "a", "b") == (3.0, 2.0, 4.0)  # of 2, 4, 2, 4; not that of the medians, 10/3
    assert timing.ratio(seconds, "once", "a") == (5.0, 5.0, 5.0)


def test_exponent_of_power_laws():
    sizes = np.repeat([100, 200, 400, 800], 3)
    slope, error = exponent(sizes, 3e-6 * sizes**1.7)
    assert slope == pytest.approx(1.7)
    assert error == pytest.approx(0, abs=1e-7)
    assert last_exponent([100, 200, 800], [[9.0], [1.0, 2.0, 7.0], [32.0]]) == pytest.approx(2)


def test_standard_error_of_an_exponent():
    # logarithms 0, 1, 2 and 0, 1, 5: slope 5/2, residuals 1/2, −1, 1/2, variance 3/2 / 2
    assert exponent(np.exp([0, 1, 2]), np.exp([0, 1, 5])) == pytest.approx((2.5, 0.75**0.5))


def test_agreement_counts_rows_and_measures_the_others():
    asked = search.Question(np.zeros((3, 1)), np.array([[1.0], [2.0], [-2.0], [2.5]]), 2)
    ours = np.array([[0, 1], [0, 1], [0, 1]])
    theirs = np.array([[1, 0], [0, 2], [0, 3]])  # the same; a tie; 2.5 where 2 is nearer
    found = search.agreement(asked, ours, theirs)
    assert found == pytest.approx({"same_rows": 1 / 3, "largest_difference": 0.25, "nearer": 0.0})
    assert search.agreement(asked, theirs, ours)["nearer"] == pytest.approx(0.2)


def test_data_is_sorted_by_class_and_seeded():
    X, y, _ = clustered(evenly(11, 3), 4, seed=5)
    assert y.tolist() == [0] * 4 + [1] * 4 + [2] * 3
    assert X.dtype == np.float32
    assert np.array_equal(X, clustered([4, 4, 3], 4, seed=5).X)
    assert not np.array_equal(X, clustered([4, 4, 3], 4, seed=6).X)


def test_bare_products_are_those_of_the_paper(rng):
    X, y = rng.standard_normal((8, 3)), np.array([0, 1] * 4)
    parts = fit.bare_products(X, y)
    assert parts["bare: A"]() == pytest.approx(X.T @ X[::-1])
    assert parts["bare: K"]() == pytest.approx(X.T @ X)
    assert parts["bare: move"]() == pytest.approx(X)
    assert parts["bare: classes"]() == pytest.approx(np.stack([X[::2] @ X[::2].T, X[1::2] @ X[1::2].T]))


def test_a_learner_is_ended_at_its_limit():
    found = learners.time_one("hubless LMNN", "digits", record.Options(quick=True, limit=0.01))
    assert found == {"model": "LMNN()", "more_than": 0.01}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_tells_machine_and_versions(verb, quick):
    text = (quick / f"{verb}.json").read_text()
    found = json.loads(text)
    assert found["settings"]["quick"]
    assert found["settings"]["repeats"] == 2
    assert found["machine"]["cores"] >= 1
    loaded = {library["package"] for library in found["machine"]["blas"]}
    assert loaded >= ({"numpy", "torch"} if verb == "search" else {"numpy"})
    assert set(found["versions"]) == set(record.PEERS)
    for path in (ROOT, Path(sys.prefix), Path.home()):
        assert f"{path}/" not in text


@pytest.mark.parametrize("verb", ["search", "fit", "select"])
def test_every_contender_has_its_seconds_or_its_error(verb, quick):
    for case in record.read(quick)[verb]["cases"].values():
        assert timing.is_timed(case["seconds"], "hubless", case["reference"])
        for seconds in case["seconds"].values():
            assert isinstance(seconds, list) or set(seconds) == {"error"}
        assert len(case["seconds"]["hubless"]) == 2


def test_searches_agree(quick):
    for case in record.read(quick)["search"]["cases"].values():
        assert set(case["seconds"]) == set(search.CONTENDERS)
        assert {"hubless with distances", "scikit-learn brute", "torch topk"} <= set(case["neighbors"])
        for seen in case["neighbors"].values():
            assert seen["largest_difference"] <= claims.TIES


def test_learners_run_or_say_why(quick):
    found = record.read(quick)["fit"]["cases"]["digits"]["learners"]
    assert set(found) == {"hubless LMNN", "metric-learn LMNN", "pylmnn", "scikit-learn NCA"}
    for entry in found.values():
        assert len(entry.keys() & {"seconds", "more_than", "error"}) == 1
    assert found["hubless LMNN"]["seconds"]
    assert found["scikit-learn NCA"]["seconds"]


@pytest.mark.parametrize("name", [name for name in learners.LEARNERS if name.startswith("hubless")])
def test_a_learners_process_prints_its_model_and_its_seconds(name, capsys):
    learners.main(name, "digits", "--quick")
    model, seconds = map(json.loads, capsys.readouterr().out.splitlines())
    assert model["model"]
    assert seconds["seconds"][0] > 0


def test_select_tries_what_it_says(quick):
    settings = record.read(quick)["select"]["cases"]["news"]["settings"]
    assert settings["grid"] == {"n_targets": 1, "alpha": 13, "n_neighbors": 9}


def test_growth_and_memory_have_figures(quick):
    found = record.read(quick)
    for case in found["growth"]["cases"].values():
        assert np.isfinite([case["exponent"], case["standard_error"], case["last_exponent"]]).all()
        assert all(len(case["seconds"][str(size)]) == 2 for size in case["sizes"])
    for case in found["memory"]["cases"].values():
        own = case["bytes"]["hubless"]
        assert own["peak"] >= own["before"] > own["input"] > 0
        assert own["beyond"] == own["peak"] - own["before"] - own["output"]


def test_page_is_made_of_the_raw_results(quick, tmp_path, capsys):
    """Of the committed ones, where there are some; a quick look makes a page too."""
    assert main(["page", "--out", str(quick), "--docs", str(tmp_path)]) == 0
    told = (tmp_path / "speed.md").read_text()
    assert "quick look" in told
    assert "| hubless |" in told
    assert "| yes |" not in told  # a quick look proves nothing
    assert set(capsys.readouterr().out.split()) == {str(file) for file in tmp_path.iterdir()}
    if found := record.read(record.FOLDER):
        drawings = dict.fromkeys(file.name for file in (ROOT / "docs").glob("speed-*.svg"))
        assert set(drawings) == {f"speed-{verb}.svg" for verb in page.DRAWINGS if verb in found}
        expected = (ROOT / "docs" / "speed.md").read_text()
        assert page.markdown(found, drawings) == expected, "run: python -m benchmarks page"


def test_drawings_are_the_same_every_time(quick):
    found = record.read(quick)
    first = plots.draw(found)
    assert set(first) == {"speed-search.svg", "speed-fit.svg", "speed-growth.svg"}
    assert first == plots.draw(found)


def test_page_wants_results(tmp_path, capsys):
    assert main(["page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 1
    assert "python -m benchmarks all" in capsys.readouterr().err


def measured(**verbs):
    return {verb: {"cases": cases} for verb, cases in verbs.items()}


def verdicts(found):
    return {(own.what, own.asked): (own.reached, own.holds) for own in claims.claims(found)}


def test_nothing_is_claimed_without_a_measurement():
    assert {own.holds for own in claims.claims({})} == {None}
    looked = measured(memory={"predict": {"bytes": {"hubless": {"beyond": 1}}}})
    looked["memory"]["settings"] = {"quick": True}
    assert {own.holds for own in claims.claims(looked)} == {None}


def test_claims_on_search():
    shape = claims.SHAPES[0]
    seconds = {"bare product": [1.0, 1.0], "hubless": [1.1, 1.3], "scikit-learn brute": [2.2, 2.6]}
    seconds["faiss IndexFlatL2"] = {"error": "ModuleNotFoundError: No module named 'faiss'"}
    seen = {"scikit-learn brute": {"same_rows": 0.999, "largest_difference": 1e-3, "nearer": 0.0}}
    told = verdicts(measured(search={shape: {"seconds": seconds, "neighbors": seen}}))
    what = f"search, {shape}"
    assert told[what, "at most 1.25 × bare product"] == ("1.2 × (quartiles 1.15 to 1.25)", True)
    assert told[what, "at least 2.5 × faster than scikit-learn brute"][1] is False
    assert told[what, "at least 2.5 × faster than faiss IndexFlatL2"] == (
        "not measured: ModuleNotFoundError: No module named 'faiss'",
        None,
    )
    assert told[what, "the neighbours of scikit-learn brute"][1] is False


def test_a_limit_is_a_lower_bound():
    seconds = {"hubless": [0.2], "bare products": [0.1]}
    rivals = {"hubless LMNN": {"seconds": [100.0]}, "metric-learn LMNN": {"more_than": 600}}
    told = verdicts(measured(fit={"news": {"seconds": seconds, "learners": rivals}}))
    own, other = (f"at least 1,000 × faster than {who} LMNN" for who in ("our", "metric-learn's"))
    assert told["fit and move, News", own] == ("500 ×", False)
    assert told["fit and move, News", other] == ("more than 3,000 ×", True)
    rivals["metric-learn LMNN"] = {"more_than": 100}  # it might have taken longer
    told = verdicts(measured(fit={"news": {"seconds": seconds, "learners": rivals}}))
    assert told["fit and move, News", other] == ("more than 500 ×", None)


def test_claims_on_growth_memory_and_gpu():
    lines = {
        "fit by n": {"exponent": 0.93, "standard_error": 0.01, "last_exponent": 1.04},
        "fit by d": {"exponent": 1.5, "standard_error": 0.1, "last_exponent": 2.2},
    }
    gpu = {"imagenet fit and move": {"tf32": [0.3, 0.2, 0.24], "float32": [0.8]}}
    memory = {"predict": {"bytes": {"hubless": {"beyond": 250_000_000}}}}
    told = verdicts(measured(growth=lines, memory=memory, gpu=gpu))
    assert told["growth of fit with n", "an exponent of about 1.1 at most"][1] is True
    assert told["growth of fit with d", "an exponent of about 2.1 at most"][1] is False
    assert told["memory of predict", "at most 300 MB beyond input and output"] == ("250 MB", True)
    assert told["GPU, imagenet fit and move, tf32", "at most 0.250 s"] == ("0.2400 s", True)
    assert told["GPU, imagenet fit and move, float32", "at most 0.700 s"] == ("0.8000 s", False)
    assert told["GPU, imagenet search, tf32", "at most 0.300 s"] == (claims.MISSING, None)
