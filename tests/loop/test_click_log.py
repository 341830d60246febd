"""Logs: what is read, what is refused and in which words, and what becomes of a log that changes."""

import json
import time

import numpy as np
import pytest

from hubless.loop import click_log
from hubless.loop.click_log import digest_of, read_log_rows
from hubless.stores.store import StoreError
from tests.loop.loop_world import SLICE, D

SEARCH = {"query": "q1", "time": "2026-01-02T03:04:05Z", "shown": ["a", "b"], "clicked": ["b"]}
JUDGED = {"query": 7, "item": 3, "score": 2}


@pytest.fixture
def write(tmp_path):
    def write(*rows, end="\n"):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / "log.jsonl").write_text("\n".join(lines) + end)
        return tmp_path / "log.jsonl"

    return write


def test_rows_of_json_lines(write):
    first, second, third = read_log_rows(write(SEARCH, "", JUDGED, {"vector": [1, 2.5], "shown": [1, 2]}))
    assert (first.query, first.shown, first.clicked) == ("q1", ("a", "b"), {"b"})
    assert first.when == 1767323045
    assert (second.query, second.judged, second.line) == ("7", ("3", 2.0), 3)
    assert third.vector.tolist() == [1, 2.5]
    assert third.query.startswith("vector ")
    assert [row.is_answered for row in (first, second, third)] == [True, True, False]


def test_tables_say_the_same(write, tmp_path):
    expected = read_log_rows(write(SEARCH, {**SEARCH, "query": "q2", "clicked": []}))
    head, rest = "query,time,shown,clicked\n", "2026-01-02T03:04:05Z,a b,"
    (tmp_path / "log.csv").write_text(f'{head}q1,{rest}b\nq2,2026-01-02T03:04:05Z,"[""a"", ""b""]",\n')
    rows = read_log_rows(tmp_path / "log.csv")
    assert [row[1:-1] for row in rows] == [row[1:-1] for row in expected]
    assert [row.line for row in rows] == [2, 3]


def test_rows_of_a_parquet_file(write, tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    expected = read_log_rows(write(SEARCH))
    pq.write_table(pa.Table.from_pylist([SEARCH]), tmp_path / "log.parquet")
    assert [row[1:-1] for row in read_log_rows(tmp_path / "log.parquet")] == [row[1:-1] for row in expected]


BAD = {
    "no JSON": ("{", "line 1: "),
    "not an object": ("[1]", "not an object"),
    "a name twice": ('{"query": "a", "query": "b", "item": 1}', "occurs 2 times"),
    "no query": ({"shown": ["a"]}, 'neither "query" nor "vector"'),
    "neither search nor judgement": ({"query": "q"}, 'either "shown"'),
    "both": ({**SEARCH, "item": "a"}, 'either "shown"'),
    "nothing shown": ({"query": "q", "shown": []}, '"shown" is empty'),
    "shown twice": ({"query": "q", "shown": ["a", "a"]}, "an item twice"),
    "clicked and not shown": ({"query": "q", "shown": ["a"], "clicked": ["b"]}, "clicked and not shown"),
    "shown is an object": ({"query": "q", "shown": {"a": 1}}, "not a list of ids"),
    "too much was shown": ({"query": "q", "shown": [*range(1001)]}, "more than 1,000"),
    "an id is a list": ({"query": [1], "item": "a"}, "is no id"),
    "an id is true": ({"query": True, "item": "a"}, "is no id"),
    "NaN": ('{"query": "q", "item": "a", "score": NaN}', "not finite"),
    "a score is a word": ({"query": "q", "item": "a", "score": "good"}, "not a finite number"),
    "an infinite vector": ('{"vector": [1e999], "item": "a"}', "not finite"),
    "a vector that overflows": ({"vector": [1e200], "item": "a"}, "squares overflow"),
    "a vector of words": ({"vector": ["x"], "item": "a"}, "not a finite number"),
    "in the future": ({**SEARCH, "time": time.time() + 3 * 86_400}, "in the future"),
    "a time is a word": ({**SEARCH, "time": "yesterday"}, "not a finite number"),
    "not UTF-8": ("\udcff", "line 1: "),
}


@pytest.mark.parametrize(("row", "words"), BAD.values(), ids=BAD)
def test_a_malformed_row_is_refused_with_its_line(row, words, tmp_path):
    text = row if isinstance(row, str) else json.dumps(row)
    (tmp_path / "log.jsonl").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(StoreError, match="has 1 malformed row:") as refused:
        read_log_rows(tmp_path / "log.jsonl")
    assert words in str(refused.value)
    assert "line 1" in str(refused.value)
    assert len(str(refused.value)) < 1500


def test_at_most_five_rows_are_quoted(write):
    with pytest.raises(StoreError) as refused:
        read_log_rows(write(*[{"query": "q"}] * 900, SEARCH))
    assert "900 malformed rows" in str(refused.value)
    assert "and 895 more" in str(refused.value)
    assert str(refused.value).count("line ") == 5


def test_a_huge_line_is_not_read(write, monkeypatch):
    monkeypatch.setattr(click_log, "LONGEST", 200)
    with pytest.raises(StoreError, match=r"line 2: it has more than 200 bytes"):
        read_log_rows(write(JUDGED, {**SEARCH, "query": "q" * 300}))


def test_a_search_that_was_written_twice_counts_once(write):
    without_time = {name: SEARCH[name] for name in ("query", "shown", "clicked")}
    rows = read_log_rows(write(SEARCH, SEARCH, without_time, without_time))
    assert [row.line for row in rows] == [1, 3, 4]


def test_a_line_without_its_end_is_left_for_the_next_time(write):
    assert len(read_log_rows(write(SEARCH, JUDGED, end=""))) == 1
    assert len(read_log_rows(write(SEARCH, '{"query": ', end=""))) == 1


@pytest.mark.parametrize("name", ["missing.jsonl", "folder.jsonl"])
def test_what_is_no_file_is_refused(name, tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(StoreError, match="Give a log"):
        read_log_rows(tmp_path / name)


def test_the_digest_tells_rows_apart(write):
    first = digest_of(read_log_rows(write(SEARCH, JUDGED)))
    assert first == digest_of(read_log_rows(write(SEARCH, "", {**JUDGED, "more": 1})))  # what is not read
    assert first != digest_of(read_log_rows(write(SEARCH, {**JUDGED, "score": 3})))


# --- with an index ------------------------------------------------------------------------------------------


def test_a_log_that_changed_is_refused(world):
    world.steps(2)
    lines = world.log.read_text().splitlines(keepends=True)
    world.log.write_text("".join([lines[0].replace('"score": 1', '"score": 2'), *lines[1:]]))
    world.judge()
    before = world.tree()
    with pytest.raises(StoreError, match=r"slice 1, lines 1 to 40, is not what it was"):
        world.watch()
    world.log.write_text("".join(lines[:60]))
    with pytest.raises(StoreError, match="slice 2"):
        world.watch()
    assert {**before, "log.jsonl": ""} == {**world.tree(), "log.jsonl": ""}


def test_unknown_queries_and_items_are_left_out_and_most_of_them_refused(world):
    world.judge(n=30)
    world.write([{"query": "unknown", "item": 1}, {"query": 1, "item": "unknown"}] * 10)
    assert world.watch()["why"].startswith("30 of 40 questions")
    world.write([{"query": "unknown", "item": 1}] * 20)
    with pytest.raises(StoreError, match="40 name an unknown query or no known item"):
        world.watch()


def test_vectors_may_be_in_the_rows(world):
    for i in range(2 * SLICE):
        world.write([{"vector": world.queries[i].tolist(), "item": int(world.answers[i])}])
        if i + 1 == SLICE:
            assert world.watch(queries=None)["decision"] == "keep"
    inline = world.watch(queries=None, write=False)
    world.log.unlink()
    world.loop.rename(world.folder / "other")
    world.judge()
    world.watch()
    world.judge()
    assert inline["candidate"]["pairs"] == world.watch(write=False)["candidate"]["pairs"] == 2 * SLICE


def test_a_vector_of_another_width_is_refused(world):
    world.write([{"vector": [0.0] * (D + 1), "item": 1}])
    with pytest.raises(StoreError, match=f"line 1 of the log has a vector of {D + 1} numbers"):
        world.watch(queries=None)


def test_queries_without_vectors_are_refused(world):
    world.judge()
    with pytest.raises(StoreError, match="without their vectors"):
        world.watch(queries=None)


def test_a_query_with_nan_is_unknown(world):
    vectors = world.queries.copy()
    vectors[:5] = np.nan
    np.save(world.folder / "queries.npy", vectors)
    world.judge()
    assert world.watch()["why"].startswith("35 of 40")
