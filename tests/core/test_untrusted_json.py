"""JSON that others wrote: read within bounds, or refused with a ValueError of one line."""

import json
import math
import os

import pytest

from hubless.paper import raw
from hubless.repair.move_stream import move_lines
from hubless.stores import file_marks
from hubless.stores.files.file_rows import read_table
from hubless.stores.journal import recover_switch
from hubless.stores.store import Mark, StoreError
from hubless.support.untrusted_json import DEEPEST, parse_json, read_bounded, read_json

DEEP = "[" * 100_000
HOSTILE = {
    "brackets": (DEEP, "nested too deeply"),
    "braces": ('{"a":' * 100_000, "nested too deeply"),
    "closed": ("[" * 500 + "]" * 500, "nested too deeply"),  # which Python reads, but cannot print
    "twice": ('{"a": 1, "b": 2, "a": 3}', "'a' occurs 2 times"),
    "long": ("9" * 4000, "64 bits"),
    "longer": ("9" * 5000, "64 bits"),
    "nan": ("[NaN]", "not finite"),
    "large": ("1e999", "not finite"),
    "cut": ('{"a": ', "Expecting value"),
    "empty": ("", "Expecting value"),
    "letters": (b'"\xff"', "can't decode"),
    "surrogate": (b'"\xed\xa0\x80"', "can't decode"),
    "wide": ('{"a": 1}'.encode("utf-16"), "can't decode"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_plain_data_is_refused(name):
    content, message = HOSTILE[name]
    with pytest.raises(ValueError, match=message) as error:
        parse_json(content)
    assert len(str(error.value)) < 400
    assert str(error.value).isprintable()


def test_plain_data_is_read_as_python_reads_it():
    value = {"a": [1, -2.5, True, None, "grün \U0001f600"], "b": {"": [[]]}, "c": [{} for _ in range(1000)]}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert parse_json(text) == parse_json(text.encode()) == value
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]  # a byte-order mark, which some editors write


def test_numbers_of_users_are_read_as_python_writes_them():
    text = json.dumps([math.nan, math.inf, 10**30, 1.5])
    assert repr(parse_json(text, any_numbers=True)) == "[nan, inf, 1000000000000000000000000000000, 1.5]"
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP, any_numbers=True)
    with pytest.raises(ValueError, match="integer string conversion"):
        parse_json("9" * 5000, any_numbers=True)


def test_the_deepest_value_that_is_read():
    parse_json("[" * DEEPEST + "]" * DEEPEST)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1))


def test_only_plain_files_of_some_size_are_read(tmp_path):
    file = tmp_path / "a.json"
    file.write_text("[1]")
    assert read_json(file, 3) == [1]
    with pytest.raises(ValueError, match="has 3 bytes; at most 2 are read"):
        read_json(file, 2)
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: waiting would never end
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match="is not a file"):
            read_bounded(path, 10)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")


# --- where it is used


@pytest.mark.parametrize("name", HOSTILE)
def test_marks_and_notes_that_cannot_be_read_count_as_none(name, tmp_path):
    content = HOSTILE[name][0]
    content = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / "a.npy"
    path.write_bytes(b"x")
    (tmp_path / "a.npy.hubless.json").write_bytes(content)
    (tmp_path / ".a.npy.hubless-switch").write_bytes(content)
    assert file_marks.marks_of(path) == {}
    assert file_marks.read_mark(path) is None
    assert Mark.from_json(content) is None
    recover_switch(path)
    assert path.read_bytes() == b"x"


def test_a_pipe_in_place_of_marks_is_not_waited_for(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"x")
    os.mkfifo(tmp_path / "a.npy.hubless.json")
    assert file_marks.read_mark(tmp_path / "a.npy") is None


@pytest.mark.parametrize("change", [{"done": "yes"}, {"changed": 1}, {"original": 0}, {"width": True}])
def test_a_mark_with_other_types_is_none(change):
    mark = Mark("abc", "a.npy", "s", done=True, original="a.original.npy", width=3)
    assert Mark.from_json(mark.to_json()) == mark
    assert Mark.from_json(json.dumps({**json.loads(mark.to_json()), **change})) is None


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_tables_of_brackets_are_refused(suffix, tmp_path):
    for name in ("brackets", "braces", "closed", "twice"):
        (tmp_path / f"t{suffix}").write_text(HOSTILE[name][0])
        with pytest.raises(StoreError, match=HOSTILE[name][1]):
            read_table(tmp_path / f"t{suffix}")


def test_streams_and_raw_results_of_brackets_are_refused(tmp_path, blobs):
    from hubless.movers import Shrink

    mover = Shrink(0.5).fit(*blobs[:2])
    with pytest.raises(StoreError, match=r"line 1 is not JSON: .*nested too deeply"):
        list(move_lines(mover, [DEEP]))
    (tmp_path / raw.FOLDED).write_text(DEEP)
    with pytest.raises(ValueError, match=r"line 1 .*nested too deeply"):
        raw.load_all(tmp_path)
