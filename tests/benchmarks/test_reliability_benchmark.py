"""Reliability measured: the plan, tiny runs of both commands, and the page, which shows what was measured."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks import reliability_faults as faults
from benchmarks import reliability_loads as loads
from benchmarks import reliability_page
from benchmarks.__main__ import main
from tests.repair.fault_stores import KINDS

ROOT = Path(__file__).parents[2]
MACHINE = {"processor": "a processor", "cores": 2, "memory_gib": 8, "python": "3.11"}
ABOUT = {"machine": MACHINE, "versions": {"faiss-cpu": "1.2"}, "commit": "abc", "date": "2026-01-01"}


def test_every_kind_of_store_is_in_the_plan():
    assert set(faults.STORES) == set(KINDS) == set(reliability_page.NAMES)
    keys = faults.plan()
    for operation, others in faults.BESIDE.items():
        for store in faults.STORES:
            found = {key.fault for key in keys if key[:2] == (store, operation)}
            assert {"kill", "clock set back", *(f"beside {other}" for other in others)} <= found
            assert ("full disk" in found) == KINDS[store].in_folder
            assert ("lost connection" in found) == (not KINDS[store].in_folder)
    assert {key.operation for key in keys if key.store == faults.MODELS} >= {"save", "update", "fit --memory"}


def test_unknown_names_are_refused(tmp_path, capsys):
    assert main(["faults", "--stores", "tape", "--out", str(tmp_path)]) == 1
    assert "no store is named tape" in capsys.readouterr().err
    assert main(["loads", "--stores", "tape", "--out", str(tmp_path)]) == 1
    assert "no store is named tape" in capsys.readouterr().err


def test_gaps_are_between_answers():
    moments = [0.0, 1.0, 1.5, 4.0, 4.5, 9.0]
    assert loads.gaps(moments, 1.2, 4.2) == {"answers": 2, "longest_gap_ms": 2500.0}
    assert loads.gaps(moments, 5.0, 6.0) == {"answers": 0, "longest_gap_ms": 4500.0}  # none in between
    assert loads.gaps([], 1.0, 3.0) == {"answers": 0, "longest_gap_ms": 2000.0}


def test_the_page_shows_counts_and_what_did_not_hold(tmp_path):
    kept = faults.cells_of(tmp_path)
    kept.add(faults.FaultKey("npy", "promote", "kill"), ABOUT | {"trials": 20, "held": 20})
    broken = {"trials": 20, "held": 19, "broken": "left behind: a\n`file`"}
    unforeseen = {"unforeseen": {"count": 3, "first": "broke: RuntimeError: full"}}
    kept.add(faults.FaultKey("lance", "promote", "full disk"), ABOUT | broken | unforeseen)
    step = {"seconds": 1.5, "peak_bytes": 10**8, "answers": 7, "longest_gap_ms": 12.25}
    load = dict.fromkeys(("own load", "apply", "promote", "rollback", "quiet"), step)
    load |= {"status": "done", "rows moved": 1000, "rows back": 999, "client": {"errors": 1}}
    loads.cells_of(tmp_path).add(loads.LoadKey(".npy", 1000, 4), ABOUT | load)
    fuzzed = {"target": "marks", "executions": 12345, "seconds": 60, "findings": 0, "date": "2026-01-01"}
    (tmp_path / "fuzz.jsonl").write_text(json.dumps(fuzzed) + "\n")
    text = reliability_page.page(tmp_path)
    assert "Of 40 trials, 39 held." in text
    assert "| `.npy` | 20 of 20 | — |" in text
    assert "| LanceDB | — | **19 of 20** |" in text
    assert "`lance / promote / full disk: 19 of 20: left behind: a 'file'`" in text
    assert "In 3 trials" in text
    assert "| .npy | 1.5 | 1.5 | 1.5 | 1.5 | 100 | 100 | 100 | 1,000 | 999 |" in text
    assert "| .npy | 7 | 7 | 7 | 12.2 | 12.2 | 12.2 | 12.2 | 1 |" in text
    assert "| marks | 12,345 | 60 | 0 | 2026-01-01 |" in text
    assert "commit abc" in text


def test_the_committed_page_is_made_from_the_raw_results():
    page = (ROOT / "docs" / reliability_page.PAGE).read_text()
    assert page == reliability_page.page(reliability_page.FOLDER), "run python -m benchmarks reliability-page"


@pytest.mark.faults
def test_a_few_faults(tmp_path, capsys):
    line = ["faults", "--quick", "--stores", "npy", "--out", str(tmp_path)]
    assert main([*line, "--faults", "kill", "clock set back", "beside apply"]) == 0, capsys.readouterr().err
    kept = faults.cells_of(tmp_path)
    assert len(kept.entries) == 7
    assert all(entry["held"] == entry["trials"] == 2 for entry in kept.entries.values())
    before = (tmp_path / faults.FILE).read_bytes()
    assert main([*line, "--faults", "kill"]) == 0  # finished cells are skipped
    assert (tmp_path / faults.FILE).read_bytes() == before


@pytest.mark.faults
def test_a_store_that_loses_rows_is_noticed(tmp_path, monkeypatch):
    """A kind whose own library reads one row too few, as if it were lost."""

    class Loses(KINDS["npy"]):
        def items(self):
            ids, X = super().items()
            return ids[:-1], X[:-1]

    monkeypatch.setitem(KINDS, "npy", Loses)
    assert main(["faults", "--quick", "--stores", "npy", "--faults", "kill", "--out", str(tmp_path)]) == 1
    assert all(entry["held"] == 0 for entry in faults.cells_of(tmp_path).entries.values())


@pytest.mark.faults
def test_a_worker_is_killed_in_the_step_with_the_fewest_blocks(tmp_path):
    """Trial 8 is of a step that only two blocks have; the trial itself fails where no worker was killed."""
    pytest.importorskip("distributed")
    from benchmarks.reliability_models import DaskFit
    from tests.outofcore import test_dask_faults

    with ExitStack() as stack:
        dask = DaskFit(test_dask_faults, tmp_path, stack)
        assert min(dask.events) < max(dask.events)
        dask.trial(8)


@pytest.mark.slow
def test_a_small_load(tmp_path):
    assert main(["loads", "--quick", "--out", str(tmp_path)]) == 0
    kept = loads.cells_of(tmp_path)
    assert {key.store for key in kept.entries} == {".npy", "FAISS Flat"}
    for entry in kept.entries.values():
        assert entry["rows moved"] == entry["rows back"] == loads.TINY
        assert entry["client"]["errors"] == 0
        assert entry["client"]["different"] == 2
        assert entry["promote"]["peak_bytes"] > 0
    assert main(["reliability-page", "--out", str(tmp_path), "--docs", str(tmp_path)]) == 0
    assert "FAISS Flat" in (tmp_path / reliability_page.PAGE).read_text()
