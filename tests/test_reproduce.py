"""The harness, run as a researcher runs it: cells, times, a kill half way, a failing cell, tables."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hubless import cli, datasets
from hubless.paper import machine, reproduce, tables
from hubless.paper.experiment import METHODS
from hubless.paper.reproduce import Cell, Options, plan

FAST = ("original-metric", "move-labeled", "move-query", "scale")


def files(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*.json")}


def command(out, *more):
    return [sys.executable, "-m", "hubless", "reproduce", "--out", str(out), *more]


def test_whole_harness_killed_half_way_and_resumed(data_dir, tmp_path):
    """Iris and 300 documents of RCV, every method, two splits; SIGKILL once some cells are there."""
    out = tmp_path / "raw"
    work = command(out, "--datasets", "iris", "rcv", "--rows", "300", "--splits", "2", "--dim", "20")
    work += ["--methods", *METHODS]
    started = subprocess.Popen(
        work, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(files(out)) < 9:
        assert started.poll() is None
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    before = {name: path.stat().st_mtime_ns for name, path in files(out).items()}
    assert 9 <= len(before) < 60
    for path in files(out).values():
        json.loads(path.read_text())  # none is cut short

    done = subprocess.run(work, check=True, capture_output=True, text=True)
    assert "results are in" in done.stdout
    assert done.stderr == ""  # no bar in a pipe
    after = files(out)
    assert {name: after[name].stat().st_mtime_ns for name in before} == before  # nothing was done twice
    cells = plan(["iris", "rcv"], METHODS, 2, 20)
    wanted = {str(cell.path(out).relative_to(out)) for cell in cells}
    trained = [cell for cell in cells if cell.method not in ("original-metric", "scale")]
    timed = {str(cell.path(out, of_time=True).relative_to(out)) for cell in trained}
    assert set(after) == wanted | timed
    entries = [json.loads(path.read_text()) for path in after.values()]
    assert {entry["status"] for entry in entries} == {"done"}
    assert {entry["n_objects"] for entry in entries} == {150, 300}

    written = tables.write(out, tmp_path / "tables")
    assert {path.name for path in written} >= {"results.md", "tables.tex", "tables.csv", "tables.json"}
    page = (tmp_path / "tables" / "results.md").read_text()
    assert "RCV" in page
    assert "20 dimensions" in page


def test_cell_says_all_there_is_to_know(data_dir, tmp_path):
    cells = plan(["wine"], ["move-labeled"], 1, 300)
    reproduce.reproduce(cells, Options(tmp_path, data_dir))
    entry = json.loads(cells[0].path(tmp_path).read_text())
    assert entry["n_train"] + entry["n_test"] == entry["n_objects"] == 178
    assert entry["n_test"] == pytest.approx(0.3 * 178, abs=1)
    assert entry["seed"] == entry["split"] == 0
    assert entry["threads"] >= 1
    assert set(entry["chosen"]) == {"n_neighbors", "alpha"}
    assert {"processor", "cores", "memory_gib", "python", "numpy", "date", "hubless"} <= set(entry["machine"])
    timed = json.loads(cells[0].path(tmp_path, of_time=True).read_text())
    assert timed["chosen"] == entry["chosen"]
    assert timed["seconds"] == np.median(timed["repeats"])
    assert len(timed["repeats"]) == 3


def test_wine_is_in_z_scores_of_the_training_part_and_all_are_centred(data_dir):
    for name, unit in (("wine", True), ("iris", False)):
        data = datasets.load(name, data_dir=data_dir)
        split = reproduce.split_of(data, 3)
        np.testing.assert_allclose(split.X.mean(axis=0), 0, atol=1e-9)
        assert np.allclose(split.X.std(axis=0), 1) == unit
        assert len(split.y) == pytest.approx(0.7 * len(data.y), abs=1)
        again = reproduce.split_of(data, 3)
        np.testing.assert_array_equal(again.X, split.X)
        assert not np.array_equal(reproduce.split_of(data, 4).y, split.y)


def test_several_jobs_give_the_same_results(data_dir, tmp_path):
    found = {}
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        reproduce.reproduce(plan(["iris"], FAST, 2, 300), Options(out, data_dir), jobs, ["cells"])
        entries = {name: json.loads(path.read_text()) for name, path in files(out).items()}
        found[jobs] = {name: (e["accuracy"], e["skewness"], e["chosen"]) for name, e in entries.items()}
    assert found[1] == found[2]
    assert len(found[1]) == 8


def test_failing_cell_is_recorded_stops_nothing_and_is_tried_again(data_dir, tmp_path, monkeypatch, capsys):
    broken = METHODS["scale"]._replace(build=lambda g: 1 / 0)
    arguments = ["reproduce", "--datasets", "iris", "--methods", "scale", "original-metric", "--splits", "1"]
    arguments += ["--out", str(tmp_path), "--data-dir", str(data_dir), "--only", "cells"]
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "scale", broken)
        assert cli.main(arguments) == 1
    entry = json.loads(Cell("iris", 300, "scale", 0).path(tmp_path).read_text())
    assert entry["status"] == "failed"
    assert entry["error"] == "ZeroDivisionError: division by zero"
    shown = capsys.readouterr()
    assert "1 of 2 results" in shown.out
    assert "split-0.json: ZeroDivisionError" in shown.err
    assert cli.main([*arguments, "--json"]) == 0
    assert {entry["status"] for entry in json.loads(capsys.readouterr().out)} == {"done"}


def die_of_scale(cell, options):
    if cell.method == "scale":
        os._exit(1)  # as a process ends that the system kills for its memory
    return reproduce.run_cell(cell, options)


def test_killed_job_is_recorded_and_the_others_finish(data_dir, tmp_path):
    cells = plan(["iris"], FAST, 1, 300)
    found = list(reproduce._finished(die_of_scale, cells, Options(tmp_path, data_dir), 2))
    assert sorted(found) == sorted(cells)
    status = {cell.method: json.loads(cell.path(tmp_path).read_text())["status"] for cell in cells}
    assert status == {name: "failed" if name == "scale" else "done" for name in FAST}
    entry = json.loads(cells[-1].path(tmp_path).read_text())
    assert entry["error"] == "ChildProcessError: its process was killed, perhaps for want of memory"


def test_ctrl_c_stops_jobs(data_dir, tmp_path):
    more = ("--datasets", "glass", "wine", "iris", "--jobs", "2", "--only", "cells")
    started = subprocess.Popen(
        command(tmp_path, *more), start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    while len(files(tmp_path)) < 4:
        assert started.poll() is None
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGINT)
    _, told = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "the same command goes on" in told
    stopped = len(files(tmp_path))
    assert stopped < 72
    time.sleep(1)
    assert len(files(tmp_path)) == stopped  # no job works on unseen


def test_stopped_by_hand_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run_cell", interrupt)
    assert cli.main(["reproduce", "--datasets", "iris", "--out", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_spoilt_file_is_made_again(data_dir, tmp_path):
    (cell,) = plan(["iris"], ["original-metric"], 1, 300)
    cell.path(tmp_path).parent.mkdir(parents=True)
    cell.path(tmp_path).write_text('{"status": "do')
    reproduce.reproduce([cell], Options(tmp_path, data_dir))
    assert json.loads(cell.path(tmp_path).read_text())["status"] == "done"


def test_time_of_another_choice_is_taken_again(data_dir, tmp_path):
    (cell,) = plan(["iris"], ["move-query"], 1, 300)
    options = Options(tmp_path, data_dir)
    reproduce.reproduce([cell], options)
    assert reproduce.is_done(cell, options, of_time=True)
    entry = json.loads(cell.path(tmp_path).read_text())
    entry["chosen"]["alpha"] = 0.123
    cell.path(tmp_path).write_text(json.dumps(entry))
    assert not reproduce.is_done(cell, options, of_time=True)


def test_device_that_is_not_there_is_refused(tmp_path, capsys):
    arguments = ["reproduce", "--datasets", "iris", "--out", str(tmp_path), "--device", "cuda:99"]
    assert cli.main(arguments) == 1
    assert "device 'cuda:99' cannot be used" in capsys.readouterr().err
    assert not files(tmp_path)


def test_missing_data_is_recorded_with_its_repair(tmp_path, monkeypatch):
    monkeypatch.setenv("HUBLESS_CACHE", str(tmp_path / "cache"))
    cell = Cell("cub", 300, "original-metric", 0)
    reproduce.run_cell(cell, Options(tmp_path, tmp_path / "nowhere"))
    entry = json.loads(cell.path(tmp_path).read_text())
    assert entry["status"] == "failed"
    assert "cub_effnetlite0_1280.npy" in entry["error"]


def test_results_of_other_rows_do_not_mix(data_dir, tmp_path, capsys):
    arguments = ["reproduce", "--datasets", "iris", "--methods", "original-metric", "--splits", "1"]
    arguments += ["--out", str(tmp_path), "--data-dir", str(data_dir)]
    assert cli.main([*arguments, "--rows", "90"]) == 0
    assert cli.main(arguments) == 1
    assert "made with rows=90, now rows=None is asked for" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"status": "do'])
def test_spoilt_file_is_no_result(tmp_path, content):
    (cell,) = plan(iter(["iris"]), ["scale"], 1, 300)
    cell.path(tmp_path).parent.mkdir(parents=True)
    cell.path(tmp_path).write_text(content)
    assert not reproduce.is_done(cell, Options(tmp_path))
    assert reproduce.outcomes([cell], Options(tmp_path)) == []


@pytest.mark.parametrize(
    "arguments", [["--datasets", "mars"], ["--methods", "magic"], ["--splits", "0"], ["--only", "half"]]
)
def test_senseless_requests_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["reproduce", *arguments])
    assert stop.value.code == 2


def test_plan_names_what_there_is():
    with pytest.raises(ValueError, match=r"data sets are ionosphere, .*; got 'mars'"):
        plan(["mars"], FAST, 1, 300)
    with pytest.raises(ValueError, match=r"methods are original-metric, .*; got 'magic'"):
        plan(["iris"], ["magic"], 1, 300)


def test_tables_of_nothing_say_what_to_do(tmp_path, capsys):
    assert cli.main(["tables", str(tmp_path / "none")]) == 1
    assert "is not a folder" in capsys.readouterr().err


def test_machine_is_described_without_a_name_of_its_own():
    found = machine.describe()
    assert found["cores"] >= 1
    assert found["memory_gib"] >= 1
    assert os.uname().nodename not in json.dumps(found)
