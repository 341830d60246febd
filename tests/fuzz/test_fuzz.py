"""Fuzzing with a fixed seed, for a minute: no kind of input may show a defect. For hours: benchmarks fuzz."""

import json
import os
import pickle
import subprocess
import sys

import pytest

from benchmarks import fuzz, fuzz_child
from benchmarks.__main__ import main
from benchmarks.fuzz_targets import TARGETS
from hubless.stores.store import StoreError


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name):
    result = fuzz.fuzz(name, seconds=300, seed=2026, most=200)
    assert result["executions"] == 200
    assert fuzz.defects(result) == []


# --- the watch itself: each of these must be found


def unpickle(folder, name):
    pickle.loads(pickle.dumps(print))


def write(folder, name):
    (folder / "new.txt").write_text("x")
    (folder / "new.txt").unlink()


def rename(folder, name):
    os.rename(folder / name, folder / "other")


def run_text(folder, name):
    exec("1 + 1")


def start(folder, name):
    os.system("true")


def fill(folder, name):
    return bytearray(4 << 30)


def fail(folder, name):
    raise KeyError("x")


def steer(folder, name):
    raise StoreError("a\x1b[2Jb")


def two_lines(folder, name):
    raise ValueError("a\nb")


def tell(folder, name):
    raise StoreError(f"postgresql://me:{fuzz_child.SECRET}@host")


WATCHED = {
    unpickle: {"event"},
    write: {"event"},
    rename: {"event", "files"},
    run_text: {"event"},
    start: {"event"},
    fill: {"memory"},
    fail: {"exception"},
    steer: {"message"},
    two_lines: {"message"},
    tell: {"secret"},
}
SCRIPT = """
import json
import sys
from pathlib import Path
from benchmarks import fuzz_child, fuzz_targets
from tests.fuzz import test_fuzz
content, watch = dict(fuzz_targets.valid("marks")[0]), fuzz_child.Watch()
fuzz_child.limit()
for read in test_fuzz.WATCHED:
    fuzz_targets.TARGETS["marks"] = fuzz_targets.TARGETS["marks"]._replace(read=read)
    found = fuzz_child.examine("marks", content, Path(sys.argv[1]), watch)
    print(json.dumps([finding["kind"] for finding in found]))
"""


@pytest.mark.slow
def test_the_watch_sees_what_it_watches_for(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, cwd=fuzz.ROOT, check=True)
    kinds = [set(json.loads(line)) for line in child.stdout.splitlines()]
    assert dict(zip(WATCHED, kinds, strict=True)) == WATCHED


def test_a_crash_is_a_finding_and_the_next_case_follows(monkeypatch):
    ran = []

    def run(name, seed, first, most, seconds):
        ran.append(first)
        return ([], {"kind": "crash", "where": "SIGSEGV", "text": ""}, 7) if first == 0 else ([], None, 92)

    monkeypatch.setattr(fuzz, "_run", run)
    result = fuzz.fuzz("npy", 60, seed=0, most=100)
    assert ran == [0, 8]
    assert result["executions"] == 100
    assert [(one["case"], one["times"]) for one in fuzz.defects(result)] == [(7, 1)]


def test_the_verb_writes_findings_and_the_raw_result(monkeypatch, tmp_path, capsys):
    found = {"case": 3, "kind": "exception", "where": "KeyError in x", "text": "'x'", "times": 2}
    result = {"executions": 50, "seconds": 1.0, "findings": [found]}
    monkeypatch.setattr(fuzz, "fuzz", lambda *_: dict(result))
    folders = ["--found", str(tmp_path / "found"), "--out", str(tmp_path)]
    assert main(["fuzz", "--seconds", "1", "--target", "npy", *folders]) == 1
    raw = json.loads((tmp_path / "fuzz.json").read_text())
    assert raw["cases"]["targets"] == {"npy": result}
    assert raw["machine"]["python"]
    assert (tmp_path / "found" / "npy-0-3" / "v.npy").exists()
    assert "KeyError in x" in capsys.readouterr().err
    assert main(["fuzz", "--target", "none"]) == 1
