"""The harness, run as a researcher runs it: cells, times, a kill half way, a failing cell, tables."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from hubless import cli
from hubless.paper import datasets, names, raw, reproduce, tables
from hubless.paper.download import FILES
from hubless.paper.experiment import METHODS
from hubless.paper.reproduce import Cell, Options, plan
from hubless.paper.results import read

FAST = ("original-metric", "move-labeled", "move-query", "scale")


def files(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*.json")}


# ends itself by SIGKILL while it writes its seventh result
KILLED = """
import os, sys
from hubless import cli
from hubless.paper import raw

replace, written = os.replace, []

def replace_or_die(part, path):
    written.append(path)
    if len(written) == 7:
        os.kill(os.getpid(), 9)
    replace(part, path)

os.replace = replace_or_die
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.faults
def test_whole_harness_killed_half_way_and_resumed(data_dir, tmp_path, capfd):
    """Iris and 200 objects of ionosphere, five methods, two splits; killed in the middle of a write."""
    out, methods = tmp_path / "raw", (*FAST, "lmnn")
    work = ["reproduce", "--out", str(out), "--datasets", "iris", "ionosphere", "--rows", "200"]
    work += ["--splits", "2", "--dim", "20", "--methods", *methods]
    killed = subprocess.run([sys.executable, "-c", KILLED, *work])
    assert killed.returncode == -signal.SIGKILL
    before = {name: path.stat().st_mtime_ns for name, path in files(out).items()}
    assert len(before) == 6
    for path in files(out).values():
        json.loads(path.read_text())  # none is cut short

    assert cli.main(work) == 0
    shown = capfd.readouterr()
    assert "20 of 20 cells and 12 of 12 training times finished, in " in shown.out
    assert shown.err == ""  # no bar in a pipe
    after = files(out)
    assert {name: after[name].stat().st_mtime_ns for name in before} == before  # nothing was done twice
    cells = plan(["iris", "ionosphere"], methods, 2, 20)
    trained = [cell for cell in cells if cell.method not in ("original-metric", "scale")]
    assert set(after) == {cell.name() for cell in cells} | {cell.name(of_time=True) for cell in trained}
    entries = [json.loads(path.read_text()) for path in after.values()]
    assert {entry["status"] for entry in entries} == {"done"}
    assert {entry["n_objects"] for entry in entries} == {150, 200}

    written = tables.write(out, tmp_path / "tables")
    assert {path.name for path in written} >= {"results.md", "tables.tex", "tables.csv", "tables.json"}
    page = (tmp_path / "tables" / "results.md").read_text()
    assert "ionosphere" in page
    assert "20 dimensions" in page


@pytest.mark.slow
def test_every_method_on_sparse_documents_and_on_tables(data_dir, tmp_path, capfd):
    """300 objects of RCV, which are sparse, and Iris, by every method of the paper."""
    out = tmp_path / "raw"
    work = ["reproduce", "--out", str(out), "--datasets", "iris", "rcv", "--rows", "300", "--splits", "1"]
    assert cli.main([*work, "--dim", "20", "--methods", *METHODS]) == 0
    assert capfd.readouterr().err == ""
    cells = plan(["iris", "rcv"], METHODS, 1, 20)
    trained = [cell for cell in cells if cell.method not in ("original-metric", "scale")]
    results = files(out)
    assert set(results) == {cell.name() for cell in cells} | {cell.name(of_time=True) for cell in trained}
    entries = [json.loads(path.read_text()) for path in results.values()]
    assert {entry["status"] for entry in entries} == {"done"}
    assert {(entry["dataset"], entry["n_objects"]) for entry in entries} == {("iris", 150), ("rcv", 300)}
    tables.write(out, tmp_path / "tables")
    page = (tmp_path / "tables" / "results.md").read_text()
    assert "RCV" in page
    assert "20 dimensions" in page


def test_a_cell_records_settings_machine_and_versions(data_dir, tmp_path):
    cells = plan(["wine"], ["move-labeled"], 1, 300)
    reproduce.reproduce(cells, Options(tmp_path, data_dir))
    entry = json.loads((tmp_path / cells[0].name()).read_text())
    assert entry["n_train"] + entry["n_test"] == entry["n_objects"] == 178
    assert entry["n_test"] == pytest.approx(0.3 * 178, abs=1)
    assert entry["seed"] == entry["split"] == 0
    assert entry["threads"] >= 1
    assert set(entry["chosen"]) == {"n_neighbors", "alpha"}
    assert {"processor", "cores", "memory_gib", "python", "numpy", "date", "hubless"} <= set(entry["machine"])
    timed = json.loads((tmp_path / cells[0].name(of_time=True)).read_text())
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


def test_failing_cell_is_recorded_stops_nothing_and_is_tried_again(data_dir, tmp_path, monkeypatch, capsys):
    broken = METHODS["scale"]._replace(build=lambda g: 1 / 0)
    arguments = ["reproduce", "--datasets", "iris", "--methods", "scale", "original-metric", "--splits", "1"]
    arguments += ["--out", str(tmp_path), "--data-dir", str(data_dir), "--only", "cells"]
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "scale", broken)
        assert cli.main(arguments) == 1
    entry = json.loads((tmp_path / Cell("iris", 300, "scale", 0).name()).read_text())
    assert entry["status"] == "failed"
    assert entry["error"] == "ZeroDivisionError: division by zero"
    shown = capsys.readouterr()
    assert f"in {tmp_path}; next: hubless tables {tmp_path}\n" in shown.out
    assert "1 of 2 cells finished, in " in shown.out
    assert "split-0.json: ZeroDivisionError" in shown.err
    assert cli.main([*arguments, "--json"]) == 0
    assert {entry["status"] for entry in json.loads(capsys.readouterr().out)} == {"done"}


def die_of_scale(cell, options):
    if cell.method == "scale":
        os._exit(1)  # as a process ends that the system kills for its memory
    return reproduce.run_cell(cell, options)


@pytest.mark.faults
def test_killed_job_is_recorded_and_the_others_finish(data_dir, tmp_path):
    cells = plan(["iris"], ["original-metric", "scale"], 1, 300)
    result = list(reproduce._finished(die_of_scale, cells, Options(tmp_path, data_dir), 2))
    assert sorted(result) == sorted(cells)
    entries = {cell.method: json.loads((tmp_path / cell.name()).read_text()) for cell in cells}
    assert entries["original-metric"]["status"] == "done"
    assert entries["scale"]["status"] == "failed"
    message = "ChildProcessError: its process was killed, perhaps for lack of memory"
    assert entries["scale"]["error"] == message


def is_alive(group):
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def wait_for(condition, seconds=300):
    """Wait for something that must happen, however busy the machine is."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.faults
def test_ctrl_c_stops_jobs(data_dir, tmp_path):
    work = ["reproduce", "--out", str(tmp_path), "--datasets", "iris", "--methods", "original-metric"]
    work += ["--splits", "2000", "--jobs", "2", "--only", "cells"]
    started = subprocess.Popen(
        [sys.executable, "-m", "hubless", *work],
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell ignores it
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(files(tmp_path)) >= 4 or started.poll() is not None)
    os.killpg(started.pid, signal.SIGINT)
    _, message = started.communicate()
    assert started.returncode == 130
    assert "the same command resumes" in message
    wait_for(lambda: not is_alive(started.pid))  # no job continues unseen
    assert 4 <= len(files(tmp_path)) < 2000


def test_stopped_by_hand_says_how_to_resume(tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run_cell", interrupt)
    assert cli.main(["reproduce", "--datasets", "iris", "--out", str(tmp_path)]) == 130
    assert "the same command resumes" in capsys.readouterr().err


def test_damaged_file_is_made_again(data_dir, tmp_path):
    (cell,) = plan(["iris"], ["original-metric"], 1, 300)
    (tmp_path / cell.name()).parent.mkdir(parents=True)
    (tmp_path / cell.name()).write_text('{"status": "do')
    reproduce.reproduce([cell], Options(tmp_path, data_dir))
    assert json.loads((tmp_path / cell.name()).read_text())["status"] == "done"


def test_time_of_another_choice_is_taken_again(data_dir, tmp_path):
    (cell,) = plan(["iris"], ["move-query"], 1, 300)
    options = Options(tmp_path, data_dir)
    reproduce.reproduce([cell], options)
    assert reproduce.is_done(cell, options, of_time=True)
    entry = json.loads((tmp_path / cell.name()).read_text())
    entry["chosen"]["alpha"] = 0.123
    (tmp_path / cell.name()).write_text(json.dumps(entry))
    assert not reproduce.is_done(cell, options, of_time=True)


@pytest.mark.torch
def test_device_that_is_not_there_is_refused(tmp_path, capsys):
    arguments = ["reproduce", "--datasets", "iris", "--out", str(tmp_path), "--device", "cuda:99"]
    assert cli.main(arguments) == 1
    assert "device 'cuda:99' cannot be used" in capsys.readouterr().err
    assert not files(tmp_path)


def test_missing_data_is_recorded_with_its_repair(tmp_path, monkeypatch):
    monkeypatch.setenv("HUBLESS_CACHE", str(tmp_path / "cache"))
    cell = Cell("cub", 300, "original-metric", 0)
    reproduce.run_cell(cell, Options(tmp_path, tmp_path / "nowhere"))
    entry = json.loads((tmp_path / cell.name()).read_text())
    assert entry["status"] == "failed"
    assert "cub_effnetlite0_1280.npy" in entry["error"]


def test_results_of_other_rows_do_not_mix(data_dir, tmp_path, capsys):
    arguments = ["reproduce", "--datasets", "iris", "--methods", "original-metric", "--splits", "1"]
    arguments += ["--out", str(tmp_path), "--data-dir", str(data_dir)]
    assert cli.main([*arguments, "--rows", "90"]) == 0
    assert cli.main(arguments) == 1
    assert "made with rows=90, now rows=None is requested" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"status": "do'])
def test_a_damaged_file_does_not_count_as_done(tmp_path, content):
    (cell,) = plan(iter(["iris"]), ["scale"], 1, 300)
    (tmp_path / cell.name()).parent.mkdir(parents=True)
    (tmp_path / cell.name()).write_text(content)
    assert not reproduce.is_done(cell, Options(tmp_path))
    assert reproduce.outcomes([cell], Options(tmp_path)) == []


@pytest.mark.parametrize(
    "arguments", [["--datasets", "mars"], ["--methods", "magic"], ["--splits", "0"], ["--only", "half"]]
)
def test_usage_errors_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["reproduce", *arguments])
    assert stop.value.code == 2


def test_plan_names_what_there_is():
    with pytest.raises(ValueError, match=r"data sets are ionosphere, .*; got 'mars'"):
        plan(["mars"], FAST, 1, 300)
    with pytest.raises(ValueError, match=r"methods are original-metric, .*; got 'magic'"):
        plan(["iris"], ["magic"], 1, 300)


def test_names_are_those_of_recipes_and_methods_and_load_nothing():
    assert list(names.DATASETS) == list(datasets.RECIPES) == list(FILES)
    assert list(reproduce.MEASURES) == list(names.METHODS)
    assert [name for kind in names.KINDS.values() for name in kind] == list(names.DATASETS)
    script = "import sys; import hubless.paper.names; assert not {'numpy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def outside(strength, split, seed):
    """A method that the harness does not know, with the fields that tables need."""
    share = float(np.mean(split.truth == split.y[0]))
    return {"accuracy": share, "skewness": None, "chosen": {"strength": strength, "seed": seed}}


MEASURES = {**reproduce.MEASURES, "weak": partial(outside, 1), "strong": partial(outside, 2)}


def test_methods_from_outside_run_on_the_same_splits(data_dir, tmp_path):
    cells = plan(["iris"], ["weak", "strong"], 2, 300, known=MEASURES)
    reproduce.reproduce(cells, Options(tmp_path, data_dir, measures=MEASURES))
    assert set(files(tmp_path)) == {cell.name() for cell in cells}  # the pass of times leaves them out
    for cell in cells:
        entry = json.loads((tmp_path / cell.name()).read_text())
        assert entry["status"] == "done"
        assert entry["chosen"] == {"strength": 1 if cell.method == "weak" else 2, "seed": cell.split}
    assert "weak" in tables.markdown(read(tmp_path))
    with pytest.raises(ValueError, match=r"methods are original-metric, .*, auto; got 'weak'"):
        plan(["iris"], ["weak"], 1, 300)


@pytest.mark.slow
def test_several_jobs_give_the_same_results(data_dir, tmp_path):
    result = {}
    for jobs in (1, 2):
        options = Options(tmp_path / str(jobs), data_dir, measures=MEASURES)
        cells = plan(["iris"], [*FAST, "weak"], 2, 300, known=MEASURES)
        reproduce.reproduce(cells, options, jobs, ["cells"])
        entries = {name: json.loads(path.read_text()) for name, path in files(options.out).items()}
        result[jobs] = {name: (e["accuracy"], e["skewness"], e["chosen"]) for name, e in entries.items()}
    assert result[1] == result[2]
    assert len(result[1]) == 10


def test_tables_of_nothing_say_what_to_do(tmp_path, capsys):
    assert cli.main(["tables", str(tmp_path / "none")]) == 1
    assert "is not a folder" in capsys.readouterr().err


def test_machine_is_described_without_its_host_name():
    result = raw.this_machine()
    assert result["cores"] >= 1
    assert result["memory_gib"] >= 1
    assert os.uname().nodename not in json.dumps(result)
