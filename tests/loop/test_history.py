"""The journal as a table and as a page, and the verbs that make a step and show it."""

import json
import re

import pytest

from hubless.loop import read_history, write_history
from hubless.loop.history import History
from hubless.loop.history_page import history_page
from hubless.stores.store import StoreError

FIGURE = {"what": "candidate over the original, this slice", "n": 40, "mean": 0.1, "low": 0.05, "high": 0.15}


def decision(number, what="keep", serving=0, **more):
    part = {"number": number, "lines": [1, 40], "questions": 40, "pairs": 41}
    head = {"number": number, "time": "2026-05-01T09:30:00+00:00", "decision": what, "why": f"why {number}"}
    return {**head, "serving": serving, "slices": [part], "figures": [], "guards": [], "notes": [], **more}


@pytest.fixture
def history():
    guard = {**FIGURE, "what": "hubness", "falls": True}
    return History(
        [
            decision(1),
            decision(2, "promote", 1, figures=[FIGURE], candidate={"learned from": [1, 2]}),
            decision(3, figures=[{**FIGURE, "mean": -0.02, "low": None, "high": None}], guards=[guard]),
            decision(4, "roll back", state={"left_out": [2, 3]}, notes=["a note"]),
        ]
    )


def test_the_table_has_a_line_and_a_sentence_a_decision(history):
    lines = str(history).split("\n")
    assert lines[3] == "  2 2026-05-01 09:30 2       promote   version 1 +0.100 (+0.050 to +0.150)"
    assert lines[4] == "    why 2"
    assert lines[-2:] == ["    a note", "The original serves."]


def test_the_page_shows_every_decision_and_interval(history):
    page = history_page(history)
    assert page.count("<article") == 4
    assert page.count('class="bar"') == 1  # one has no interval
    assert [f"why {number}" in page for number in range(1, 5)] == [True] * 4
    assert "4 decisions, of which 1 promotion and 1 way back" in page
    assert "left out: slice 2, 3" in page
    assert "version learned from slices 1, 2; its figures are from before slice 2 was learned from" in page
    assert page.count("<tr class=falls>") == 1
    served = re.findall(r'<rect class="(\w+)"', page)
    assert served == ["none", "serves", "none", "none"]


def test_nothing_in_a_journal_becomes_markup(history):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    bad = decision(5, why=evil, notes=[evil], index=f"/{evil}", time=evil)
    bad["figures"] = [{**FIGURE, "what": evil}]
    page = history_page(History([*history.decisions, bad]))
    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_many_decisions_are_drawn_without_words(history):
    page = history_page(History([decision(i, figures=[FIGURE]) for i in range(1, 101)]))
    assert page.count("<rect") == 60
    assert "The newest 60 decisions are drawn." in page


def test_a_page_replaces_no_other_file(world):
    world.steps(2)
    (world.folder / "mine.html").write_text("mine")
    with pytest.raises(ValueError, match="is not a hubless page"):
        write_history(world.loop, world.folder / "mine.html")
    for _ in range(2):  # its own page, it does
        write_history(world.loop, world.folder / "page.html")
    with pytest.raises(StoreError, match="no journal of a loop"):
        read_history(world.folder)


def test_the_verbs_make_steps_and_show_them(world, run, words):
    world.judge(n=80)
    how = [
        "--log",
        world.log,
        "--queries",
        world.folder / "queries.npy",
        "--folder",
        world.loop,
        "--slice",
        40,
    ]
    told = words("watch", world.index, *how)
    assert told.startswith("promote: The candidate is ahead of the original by ")
    assert f"Nothing was changed: with --write, {world.index} would serve version 1." in told
    done = run("watch", world.index, *how, "--write")
    assert (done["decision"], done["serving"], done["written"]) == ("promote", 1, True)
    assert words("watch", world.index, *how, "--write").startswith("wait: 0 of 40 questions")
    page = world.folder / "page.html"
    assert f"The page is {page}." in words("history", world.loop, "--page", page)
    (only,) = run("history", world.loop)["decisions"]
    assert only == json.loads((world.loop / "journal.jsonl").read_text())
