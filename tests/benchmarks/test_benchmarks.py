"""The benchmarks: timing against hand-computed numbers, every verb at tiny sizes, and the page."""

import contextlib
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    fit,
    learners,
    memory,
    mutations,
    processes,
    record,
    search,
    search_data,
    speed_goals,
    speed_page,
    speed_plots,
    startup,
    timing,
)
from benchmarks.__main__ import SPEED, main, parser
from benchmarks.data import clustered, evenly
from benchmarks.growth import exponent, last_exponent

ROOT = Path(__file__).parents[2]


LOCK = threading.Lock()


def run_here(module, *names, options):
    """Do in this process what a measuring process does: what it prints."""
    work = {"learners": learners, "memory": memory}[module]
    with LOCK, contextlib.redirect_stdout(io.StringIO()) as shown:  # a quick look has several threads
        processes.print_steps(work.steps(*names, *["--quick"] * options.quick))
    lines = shown.getvalue().splitlines()
    return {name: value for line in lines for name, value in json.loads(line).items()}


def start_here(script):
    """Stand in for a process that imports something: it ends at once, and has loaded three modules."""
    return "3"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of raw results of every verb with --quick, measured without other processes."""
    out = tmp_path_factory.mktemp("speed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "run_process", run_here)
        patch.setattr(startup, "run", start_here)
        patch.setattr(startup, "processor_seconds", itertools.count(1).__next__)
        for verb in SPEED:
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                assert main([verb, "--quick", "--out", str(out)]) == 0
            assert shown.getvalue().startswith("|  |")
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


def test_contenders_that_cannot_be_prepared_are_reported():
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
    question = search.Question(np.zeros((3, 1)), np.array([[1.0], [2.0], [-2.0], [2.5]]), 2)
    ours = np.array([[0, 1], [0, 1], [0, 1]])
    theirs = np.array([[1, 0], [0, 2], [0, 3]])  # the same; a tie; 2.5 where 2 is nearer
    result = search.agreement(question, ours, theirs)
    assert result == pytest.approx({"same_rows": 1 / 3, "largest_difference": 0.25, "nearer": 0.0})
    assert search.agreement(question, theirs, ours)["nearer"] == pytest.approx(0.2)


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


@pytest.mark.faults
def test_a_learner_is_ended_at_its_limit():
    options = record.Options(limit=0.01)  # of all digits
    result = processes.run_process("learners", "hubless LMNN", "digits", options=options)
    assert result == {"model": "LMNN()", "more_than": 0.01}


@pytest.mark.slow
def test_what_is_measured_in_other_processes():
    options = record.Options(quick=True)
    result = processes.run_process("learners", "hubless LMNN", "digits", options=options)
    assert result["model"] == "LMNN()"
    assert result["seconds"][0] > 0
    assert "error" in processes.run_process("learners", "no such learner", "digits", options=options)
    assert processes.run_process("memory", "predict", "hubless", options=options)["peak"] > 0
    before = startup.processor_seconds()
    assert int(startup.run(f"import hubless\n{startup.COUNT}")) >= 1
    assert startup.processor_seconds() > before


@pytest.mark.slow
def test_one_verb_as_a_command(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "growth", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar in a pipe, and no warning of ours
    assert done.stdout.startswith("|  |")
    assert [file.name for file in tmp_path.iterdir()] == ["growth.json"]


def test_all_is_every_verb_in_a_process_each(monkeypatch, tmp_path):
    ran = []

    def run(command):
        ran.append(command)
        return subprocess.CompletedProcess(command, returncode=int("fit" in command))

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["all", "--quick", "--repeats", "3", "--out", str(tmp_path)]) == 1  # one failed, all ran
    assert [command[:4] for command in ran] == [[sys.executable, "-m", "benchmarks", verb] for verb in SPEED]
    arguments = ["--limit", "600", "--out", str(tmp_path), "--quick", "--repeats", "3"]
    assert all(command[4:] == arguments for command in ran)


@pytest.mark.parametrize("verb", SPEED)
def test_every_verb_records_machine_and_versions(verb, quick):
    text = (quick / f"{verb}.json").read_text()
    result = json.loads(text)
    assert result["settings"]["quick"]
    assert result["settings"]["repeats"] == 2
    assert result["machine"]["cores"] >= 1
    loaded = {library["package"] for library in result["machine"]["blas"]}
    assert loaded >= ({"numpy", "torch"} if verb == "search" and find_spec("torch") else {"numpy"})
    assert set(result["versions"]) == set(record.PEERS)
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
        assert {"hubless with distances", "scikit-learn brute"} <= set(case["neighbors"])
        assert ("torch topk" in case["neighbors"]) == (find_spec("torch") is not None)
        for agreement in case["neighbors"].values():
            assert agreement["largest_difference"] <= speed_goals.TIES
        precision, settings = case["settings"]["dtype"], case["settings"]
        assert {precision} <= set(case["candidates"]) <= {precision, "bfloat16"}
        assert all(settings["k"] <= left <= settings["objects"] for left in case["candidates"].values())


@pytest.mark.skipif(not os.environ.get("HUBLESS_DATA"), reason="HUBLESS_DATA is not set")
@pytest.mark.parametrize("name", [name for name in search_data.CASES if name.startswith(("bank", "SciFact"))])
def test_real_vectors_have_the_shape_of_their_title(name):
    question = search_data.CASES[name](False)
    settings = question.settings()
    assert name.endswith(" × ".join(f"{settings[size]:,}" for size in ("queries", "objects", "d")))
    assert question.source != search_data.MADE
    assert question.queries.dtype == question.objects.dtype == np.float32


def test_learners_run_or_say_why(quick):
    result = record.read(quick)["fit"]["cases"]["digits"]["learners"]
    assert set(result) == {"hubless LMNN", "metric-learn LMNN", "pylmnn", "scikit-learn NCA"}
    for entry in result.values():
        assert len(entry.keys() & {"seconds", "more_than", "error"}) == 1
    assert result["hubless LMNN"]["seconds"]
    assert result["scikit-learn NCA"]["seconds"]


@pytest.mark.parametrize("name", [name for name in learners.LEARNERS if name.startswith("hubless")])
def test_a_learners_process_prints_its_model_and_its_seconds(name, capsys):
    processes.print_steps(learners.steps(name, "digits", "--quick"))
    model, seconds = map(json.loads, capsys.readouterr().out.splitlines())
    assert model["model"]
    assert seconds["seconds"][0] > 0


def test_select_tries_what_it_says(quick):
    settings = record.read(quick)["select"]["cases"]["news"]["settings"]
    assert settings["grid"] == {"n_targets": 1, "alpha": 13, "n_neighbors": 9}


def test_growth_and_memory_have_figures(quick):
    result = record.read(quick)
    for case in result["growth"]["cases"].values():
        assert np.isfinite([case["exponent"], case["standard_error"], case["last_exponent"]]).all()
        assert all(len(case["seconds"][str(size)]) == 2 for size in case["sizes"])
    for case in result["memory"]["cases"].values():
        measured = case["bytes"]["hubless"]
        assert measured["peak"] >= measured["before"] > measured["input"] > 0
        assert measured["beyond"] == measured["peak"] - measured["before"] - measured["output"]


def test_all_contenders_of_memory_give_the_same_shape():
    data = memory.inputs(*memory.SMALL)
    result = {
        (task, who): memory.TASKS[task][who](data)() for task in memory.TASKS for who in memory.TASKS[task]
    }
    kinds = {"predict": lambda answer: answer.shape, "kneighbors": lambda answer: answer[1].shape}
    for task, shape in kinds.items():
        assert len({shape(answer) for (name, _), answer in result.items() if name == task}) == 1


def test_every_help_is_a_part_of_the_start(monkeypatch):
    ran = []
    monkeypatch.setattr(startup, "run", lambda script: ran.append(script) or "1")
    case = startup.measure(record.Options(repeats=1, pause=0))["startup"]
    helps = {name for name in case["seconds"] if name.endswith("--help")}
    assert {"hubless --help", "hubless fit --help", "hubless reproduce --help"} <= helps
    assert set(case["modules"]) == set(case["seconds"]) == {*startup.IMPORTS, *helps}
    assert len(ran) == 3 * len(case["seconds"])  # a warm-up, a round, and once to count modules
    for script in ran:
        compile(script, "start", "exec")


def test_page_is_made_of_the_raw_results(quick, tmp_path, capsys):
    """Of the committed ones; a quick look makes a page too."""
    assert main(["page", "--out", str(quick), "--docs", str(tmp_path)]) == 0
    page = (tmp_path / "speed.md").read_text()
    assert "quick look" in page
    assert "| hubless |" in page
    assert "| yes |" not in page  # a quick look proves nothing
    assert set(capsys.readouterr().out.split()) == {str(file) for file in tmp_path.iterdir()}
    result = record.read(record.FOLDER)
    assert {*SPEED} <= result.keys()
    drawings = dict.fromkeys(file.name for file in (ROOT / "docs").glob("speed-*.svg"))
    assert set(drawings) == {f"speed-{verb}.svg" for verb in speed_page.DRAWINGS}
    expected = (ROOT / "docs" / "speed.md").read_text()
    assert speed_page.markdown(result, drawings) == expected, "run: python -m benchmarks page"


@pytest.mark.slow
def test_figures_are_the_same_every_time(quick):
    first = speed_plots.draw(record.read(quick))
    assert set(first) == {"speed-search.svg", "speed-fit.svg", "speed-growth.svg"}
    assert first == speed_plots.draw(record.read(quick))


def test_page_needs_raw_results(tmp_path, capsys):
    assert main(["page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 1
    assert "python -m benchmarks all" in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.parametrize("verb", ["gpu", "gpu-stream"])
def test_gpu_verbs_run_on_the_processor(verb, tmp_path, capsys):
    assert main([verb, "--quick", "--out", str(tmp_path)]) == 0
    assert "| seconds |" in capsys.readouterr().out
    cases = record.read(tmp_path)[verb]["cases"]
    if verb == "gpu":
        names = {f"{data} {what}" for data in ("imagenet", "news") for what in ("fit", "search", "choose")}
        assert names == cases.keys()
        assert cases["news search"]["neighbours that TF32 changes"] == 0
    else:
        assert cases["stream"]["same answers"] == 1


@pytest.mark.torch
def test_tests_of_the_gpu_run_on_the_processor(tmp_path, capsys):
    assert main(["gpu-tests", "--quick", "--out", str(tmp_path)]) == 0
    assert "test_devices.py" in capsys.readouterr().out
    outcomes = record.read(tmp_path)["gpu-tests"]["cases"]["test_devices.py"]
    assert outcomes == {"tests": 4, "failure": 0, "error": 0, "skipped": 0}


def test_commands_on_the_pages_are_those_of_the_parser():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *(ROOT / "docs").glob("*.md")]
    commands = [re.findall(r"python -m benchmarks ([^`\n#]+)", page.read_text()) for page in pages]
    assert sum(map(len, commands)) > 10
    for command in itertools.chain(*commands):
        assert parser().parse_args(shlex.split(command)).run


def test_mutations_leave_out_the_tests_of_themselves():
    assert all(name in globals() for name in mutations.NOT_RUN)


def test_every_mutation_can_be_made_and_changes_the_file():
    for mutation in mutations.MUTATIONS:
        text = (ROOT / "src" / "hubless" / mutation.file).read_text()
        assert mutation.applied(text) != text


def test_mutations_noticed_are_those_of_the_page():
    """Every defect of the list was tried, and the page says how many the fast suite noticed."""
    rows = record.read(mutations.FOLDER)["mutations"]["cases"]["core"]["rows"]
    assert [(row["file"], row["old"], row["new"]) for row in rows] == [m[1:] for m in mutations.MUTATIONS]
    assert all(row["noticed by"] for row in rows)
    n = sum(row["noticed by"] == "fast" for row in rows)
    assert (
        f"Of the {len(rows)} in `benchmarks/mutations.py`, the fast suite notices {n}."
        in (ROOT / "CONTRIBUTING.md").read_text()
    )


@pytest.mark.slow
def test_a_mutation_is_noticed(tmp_path, capsys):
    assert main(["mutations", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "an origin is shifted the wrong way: noticed by fast\n"
    (row,) = record.read(tmp_path)["mutations"]["cases"]["core"]["rows"]
    assert row["fast"]["failed"].startswith("tests/core/")  # of two workers, either may notice first
