"""Raw results on disk: files and folded lines are read alike, and folding loses nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fold as folding
from benchmarks.__main__ import main
from benchmarks.fold import dump, fold
from hubless.paper import raw, tables
from hubless.paper.reproduce import Options, is_done, outcomes, plan, reproduce, time_cell
from hubless.paper.results import gains, read, rows
from hubless.support.locks import locked
from tests.paper.raw_files import MACHINE, put, put_time

ROOT = Path(__file__).parents[2]
XEON = MACHINE | {"processor": "Xeon", "date": "2026-11-20"}


@pytest.fixture
def folder(tmp_path):
    """Six cells of two machines, one of them failed, and a time."""
    for split in range(4):
        put(tmp_path, "iris", "lmnn", split, machine=MACHINE | {"date": f"2026-11-1{split}"})
    put(tmp_path, "news", "itml", machine=XEON, note="naïve λ \u2028")
    put(tmp_path, "news", "lmnn", status="failed", error="no\nmemory", accuracy=None, machine=None)
    put_time(tmp_path, "news", "itml", 2.5)
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def entries_of(folder):
    """Files as they are, read without our reader."""
    files = folder.rglob("split-*.json")
    return {file.relative_to(folder).as_posix(): json.loads(file.read_text()) for file in files}


def pages_of(folder):
    """Every text that is made of results; figures are made of the same rows."""
    results = read(folder)
    cases = (tables.markdown, tables.latex, tables.csv, tables.as_json, rows, gains)
    return [results, *(make(results) for make in cases)]


def test_folded_results_are_the_files_and_give_the_same_tables(folder, capsys):
    before, pages = entries_of(folder), pages_of(folder)
    assert main(["fold", str(folder)]) == 0
    assert capsys.readouterr().out == f"7 results were folded into {folder / raw.FOLDED}\n"
    assert [path.name for path in folder.iterdir()] == [raw.FOLDED]  # no file and no empty folder is left
    assert raw.load_all(folder) == before
    assert pages_of(folder) == pages
    once = contents(folder)
    assert fold(folder) == 0
    assert contents(folder) == once


def test_a_line_per_cell_and_each_machine_once(folder):
    fold(folder)
    lines = [json.loads(line) for line in (folder / raw.FOLDED).read_text(encoding="utf-8").split("\n")[:-1]]
    machines = {line["machine_id"]: line for line in lines if "machine_id" in line}
    assert sorted(machine["processor"] for machine in machines.values()) == ["AMD EPYC", "Xeon"]
    cells = [line for line in lines if "dataset" in line]
    assert len(cells) + len(machines) == len(lines) == 9
    assert {line["date"] for line in cells if "machine" in line} == {
        *(f"2026-11-1{split}" for split in range(4)),
        "2026-11-15",
        "2026-11-20",
    }
    assert all(line["machine"] in machines for line in cells if "machine" in line)


def test_later_files_join_the_folded_ones(folder):
    fold(folder)
    put(folder, "cub", "itml")
    put(folder, "news", "lmnn", rows=0)  # run again, and done
    assert raw.load(folder, "news/dim-300/lmnn/split-0.json")["status"] == "done"
    both = raw.load_all(folder)
    assert list(both) == sorted(both, key=lambda name: name.split("/"))
    assert len(both) == 8
    assert both["news/dim-300/lmnn/split-0.json"]["status"] == "done"
    assert fold(folder) == 2
    assert raw.load_all(folder) == both


def test_two_results_of_one_cell_are_refused(folder, capsys):
    fold(folder)
    put(folder, "iris", "lmnn", 2, accuracy=0.4)
    before = contents(folder)
    for verb in (raw.load_all, fold):
        with pytest.raises(ValueError, match=r"split-2\.json and its line in .* are different results"):
            verb(folder)
    assert main(["fold", str(folder)]) == 1
    assert "Remove the file to keep the line" in capsys.readouterr().err
    assert contents(folder) == before


def test_equal_lines_count_once_and_different_ones_are_refused(folder):
    fold(folder)
    file = folder / raw.FOLDED
    *lines, last = file.read_text().rstrip("\n").split("\n")
    file.write_text("\n".join([*lines, last, last]))  # as a merge of two branches may leave it
    assert len(raw.load_all(folder)) == 7
    file.write_text("\n".join([*lines, last, last.replace("failed", "done")]))
    with pytest.raises(ValueError, match=r"line 10 of .*results\.jsonl is damaged .*another line has a diff"):
        raw.load_all(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "[]",
        lambda line: "{}",
        lambda line: line.replace('"pass": "cells"', '"pass": "half"'),
        lambda line: line.replace('"machine": "', '"machine": "0'),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_run_again(folder, damage):
    fold(folder)
    file = folder / raw.FOLDED
    lines = file.read_text().split("\n")
    lines[3] = damage(lines[3])
    file.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 4 of .*results\.jsonl is damaged .*remove the line and run"):
        raw.load_all(folder)
    (cell,) = plan(["iris"], ["lmnn"], 1, 300)
    with pytest.raises(ValueError, match="line 4"):
        is_done(cell, Options(folder))


def test_a_damaged_file_stops_the_fold_before_anything_changes(folder):
    put(folder, "cub", "itml").write_text('{"status": "do')
    before = contents(folder)
    with pytest.raises(ValueError, match=r"cub/dim-300/itml/split-0\.json is not readable JSON"):
        fold(folder)
    assert contents(folder) == before


def test_a_folded_line_that_lacks_something_is_named(folder):
    fold(folder)
    file = folder / raw.FOLDED
    file.write_text(file.read_text().replace('"accuracy": 0.5, ', "", 1))
    with pytest.raises(ValueError, match=r"results\.jsonl, iris/dim-300/lmnn/split-0\.json lacks accuracy"):
        raw.load_all(folder)


def test_nothing_to_fold_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        fold(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"and no results\.jsonl"):
        fold(tmp_path)
    assert not contents(tmp_path)


def test_files_are_removed_only_when_the_folded_one_is_written(folder, monkeypatch):
    before = contents(folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            fold(folder)
    assert contents(folder) == before


@pytest.mark.faults
def test_fold_killed_between_writing_and_removing_is_finished_by_the_next(folder):
    before = entries_of(folder)
    script = (
        "import os, pathlib, sys; from benchmarks import fold\n"
        "fold._remove = lambda *_: os.kill(os.getpid(), 9)\n"
        "fold.fold(pathlib.Path(sys.argv[1]))"
    )
    assert subprocess.run([sys.executable, "-c", script, str(folder)], cwd=ROOT).returncode == -9
    assert entries_of(folder) == before
    assert raw.load_all(folder) == before
    assert fold(folder) == 7
    assert not entries_of(folder)
    assert raw.load_all(folder) == before


def test_a_file_written_again_while_folding_is_kept(folder, monkeypatch):
    def write_again(text, source):
        put(folder, "news", "lmnn", accuracy=0.9)
        return parse(text, source)

    parse = raw.parse
    monkeypatch.setattr(folding, "parse", write_again)
    fold(folder)
    assert list(entries_of(folder)) == ["news/dim-300/lmnn/split-0.json"]
    assert raw.load_all(folder)["news/dim-300/lmnn/split-0.json"]["accuracy"] == 0.9


def test_two_folds_at_once_are_refused(folder):
    with locked(folder / raw.FOLDED), pytest.raises(ValueError, match="another process is working on"):
        fold(folder)


def test_folded_cells_count_as_done_and_are_timed(data_dir, tmp_path):
    cells = plan(["iris"], ["move-labeled", "original-metric"], 1, 300)
    options = Options(tmp_path, data_dir)
    reproduce(cells, options, passes=["cells"])
    fold(tmp_path)
    folded = contents(tmp_path)
    reproduce(cells, options, passes=["cells"])
    assert contents(tmp_path) == folded  # nothing was done twice
    time_cell(cells[0], options)
    assert is_done(cells[0], options, of_time=True)
    assert fold(tmp_path) == 1
    assert is_done(cells[0], options, of_time=True)
    shown = outcomes(cells, options)
    assert [entry["method"] for entry in shown] == ["move-labeled", "original-metric", "move-labeled"]
    assert {entry["file"] for entry in shown} == {str(tmp_path / raw.FOLDED)}
    with pytest.raises(ValueError, match=r"results\.jsonl was made with rows=None, now rows=90 is requested"):
        is_done(cells[0], options._replace(rows=90))


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
MACHINES = st.dictionaries(st.text(), VALUES, max_size=3)


@given(st.lists(st.tuples(st.booleans(), st.dictionaries(st.text(), VALUES, max_size=3), MACHINES)))
def test_lines_give_back_what_they_were_made_of(cases):
    entries = {}
    for split, (of_time, fields, machine) in enumerate(cases):
        cell = raw.Cell("iris", 300, "lmnn", split)
        entries[cell.name(of_time)] = {"error": 1, **fields, **cell._asdict(), "machine": machine}
    entries = {name: entry for name, entry in entries.items() if not {"pass", "date"} & set(entry)}
    result = raw.parse(dump(entries), "here")
    assert result == entries
    for name, entry in entries.items():  # pages show a machine in the order of its fields
        fields_of_machine = [item for item in entry["machine"].items() if item[0] != "date"]
        assert [item for item in result[name]["machine"].items() if item[0] != "date"] == fields_of_machine


# --- files as a run writes them


def test_a_folder_without_results(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"has no DATASET/dim-DIM/METHOD/split-I\.json"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"accuracy": None}, r"split-0\.json lacks accuracy"),
        ({"kind": None, "note": None}, r"split-0\.json lacks kind, note"),
        ({"status": "failed"}, r"split-0\.json lacks error"),
        ({"skewness": float("nan")}, r"split-0\.json: skewness must be a finite number, got nan"),
        ({"accuracy": "high"}, r"accuracy must be a finite number, got 'high'"),
        ({"kind": "music"}, r"kind must be one of UCI, document, image, extra; got 'music'"),
        ({"seconds": None, "suffix": ".time"}, r"split-0\.time\.json lacks seconds"),
        ({"machine": None}, r"split-0\.json lacks machine"),
    ],
)
def test_a_file_that_lacks_something_is_named(folder, fields, message):
    put(folder, "iris", "lmnn", **fields)
    with pytest.raises(ValueError, match=message):
        read(folder)


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe", b"[1]"])
def test_a_file_that_is_not_a_json_object_is_named(folder, content):
    put(folder, "iris", "lmnn").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"iris/dim-300/lmnn/split-0\.json (is not readable JSON|contains a list)"
    ):
        read(folder)


def test_a_file_at_the_wrong_place_is_named(folder):
    file = put(folder, "iris", "lmnn")
    file.rename(file.with_name("split-3.json"))
    with pytest.raises(ValueError, match=r"split-3\.json contains the result of iris/dim-300/lmnn/split-0"):
        read(folder)


def test_cells_of_different_data_are_refused(folder):
    put(folder, "iris", "lmnn", n_objects=150)
    put(folder, "iris", "itml", n_objects=149)
    with pytest.raises(ValueError, match=r"cells of iris disagree on n_objects \(149, 150\)"):
        rows(read(folder))
