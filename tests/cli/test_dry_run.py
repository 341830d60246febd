"""`--dry-run` refuses what the run refuses, says what would be written, and writes nothing: for all verbs."""

import gc
import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from hubless import cli
from hubless.loop import watch_index
from hubless.repair.apply import apply_index, index_status, promote_index
from tests.cli.early_rows import ROWS
from tests.cli.shops import tree
from tests.cli.small_world import make_world

LABELED = "v.npy --items items.csv --labels category"
JUDGED = "v.npy --items items.csv --queries q.npy --query-items q.csv --pairs pairs.tsv"
WRITING = {  # what each verb that writes would do, and a word of what it would write
    "demo": ("demo --splits 1 --report page.html", "page.html"),
    "report": (f"report {LABELED} -o page.html --parquet points.parquet", "points.parquet"),
    "fit": (f"fit {LABELED} -o new", "new"),
    "fit over a model": (f"fit {LABELED} -o model", "model, which exists"),
    "fit from pairs": (f"fit {JUDGED} -o new", "new"),
    "fit in parts": (f"fit {LABELED} --memory 1GB -o new", "new"),
    "fit from queries": ("fit many.npy --queries many.npy -o new", "new"),
    "evaluate": (f"evaluate model {LABELED} --queries q.npy --query-items q.csv --report page.html", "page"),
    "update": ("update model few.npy --items few.csv --labels category -o new", "new"),
    "merge": ("merge model learned -o new", "new"),
    "apply": ("apply model v.npy -o new.npy", "new.npy"),
    "apply again": ("apply model v.npy -o moved.npy", "moved.npy"),
    "promote": ("promote v.npy moved.npy", "v.npy"),
    "rollback": ("rollback w.parquet", "w.parquet"),
    "recover": ("recover v.npy", ""),
    "export": ("export model numpy -o new", "new"),
    "reproduce": ("reproduce --datasets iris --methods original-metric --splits 1 --out new", "new"),
    "tables": ("tables results --out new", "new"),
    "history": ("history watched --page new.html", "new.html"),
}
# have no --dry-run; `watch` writes nothing without --write
READING = {"doctor", "status", "explain", "preview", "predict", "move", "completion", "watch"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    rows = np.load(folder / "v.npy")[::2] + 1
    np.save(folder / "others.npy", rows)
    learned = ["--labels", str(folder / "y.npy"), "--mover", "ridge", "-o", str(folder / "learned")]
    np.save(folder / "y.npy", np.arange(len(rows)) % 2)
    assert cli.main(["fit", str(folder / "others.npy"), *learned]) == 0
    shutil.copy(folder / "v.parquet", folder / "w.parquet")
    apply_index(folder / "model", folder / "w.parquet", "w-moved.parquet")
    promote_index(folder / "w.parquet", "w-moved.parquet")
    rows = [{"query": i, "item": i, "score": 1} for i in range(20)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save(folder / "eye.npy", np.eye(20))
    index = folder / "eye.npy"
    watch_index(index, folder / "log.jsonl", folder / "watched", queries=index, slice_size=20, write=True)
    results = Path(__file__).parents[2] / "benchmarks" / "results" / "paper"
    (folder / "results").symlink_to(results)
    gc.collect()
    return folder


def verbs_with_dry_run():
    verbs = cli.parsers_of(cli.parser())
    return {name for name, verb in verbs.items() if "--dry-run" in verb._option_string_actions}


def test_every_verb_is_in_a_table():
    assert {line.split()[0] for line, _ in WRITING.values()} == verbs_with_dry_run()
    assert verbs_with_dry_run() | READING == {*cli.VERBS}
    assert not verbs_with_dry_run() & READING


@pytest.mark.parametrize(("line", "written"), WRITING.values(), ids=[*WRITING])
def test_nothing_is_written(capsys, world, monkeypatch, line, written):
    monkeypatch.chdir(world)
    before = tree(world), sorted(world.rglob("*"))
    assert cli.main([*shlex.split(line), "--dry-run"]) == 0
    words = capsys.readouterr().out
    assert cli.main([*shlex.split(line), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (tree(world), sorted(world.rglob("*"))) == before
    if not written:
        assert "nothing to recover" in words
        return
    assert "nothing was written" in words
    assert plan["dry_run"] is True
    assert any(written in each for each in plan["writes"])
    assert plan["next_step"] in words
    assert all(each in words for each in [*plan["reads"], *plan["writes"]])


REFUSED = {name: row for name, row in ROWS.items() if row[0].split()[0] in verbs_with_dry_run()}


@pytest.mark.parametrize(("line", "words"), REFUSED.values(), ids=[*REFUSED])
def test_what_the_run_refuses_is_refused(refused, world, monkeypatch, line, words):
    monkeypatch.chdir(world)
    before = tree(world), sorted(world.rglob("*"))
    said = refused(*shlex.split(line), "--dry-run")
    assert [word for word in words if word not in said] == [], said
    assert (tree(world), sorted(world.rglob("*"))) == before


def test_switches_are_checked_as_the_switch_does(refused, world, monkeypatch, tmp_path):
    for name in ("v.npy", "moved.npy", "moved.npy.hubless.json"):
        if (world / name).exists():
            (tmp_path / name).write_bytes((world / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert "was made from" in refused("promote", "v.npy", "moved.npy", "--dry-run")
    monkeypatch.chdir(world)
    kept = Path(index_status("w.parquet")["original"])
    kept.rename(kept.with_suffix(".away"))
    try:
        assert "does not exist" in refused("rollback", "w.parquet", "--dry-run")
    finally:
        kept.with_suffix(".away").rename(kept)
