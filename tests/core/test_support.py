"""Small things that every room uses: arrays kept in a file, texts, optional packages."""

import io
import json
import sys
import zipfile

import numpy as np
import pytest

from hubless.support.cache import load_arrays, save_arrays
from hubless.support.imports import need
from hubless.support.text import as_json, encodable, printable, short, terminal_json

# Arrays in a file


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "deep" / "arrays.npz"
    save_arrays(path, X=np.arange(6.0).reshape(2, 3), names=np.array(["a", "b"]))
    return path


def test_arrays_come_back(kept):
    names, X = load_arrays(kept, ["names", "X"])
    np.testing.assert_array_equal(X, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(names, ["a", "b"])
    assert [path.name for path in kept.parent.iterdir()] == ["arrays.npz"]


def test_a_missing_file_or_array_gives_none(kept, tmp_path):
    assert load_arrays(tmp_path / "none.npz", ["X"]) is None
    assert load_arrays(kept, ["X", "other"]) is None
    assert load_arrays(tmp_path, ["X"]) is None  # a folder


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
def test_a_truncated_file_counts_as_missing(kept, share):
    content = kept.read_bytes()
    kept.write_bytes(content[: int(share * len(content))])
    assert load_arrays(kept, ["X", "names"]) is None


def test_a_changed_byte_counts_as_missing(kept):
    content = bytearray(kept.read_bytes())
    content[content.index(np.arange(6.0).tobytes()) + 9] ^= 1  # in the numbers, which have a checksum
    kept.write_bytes(content)
    assert load_arrays(kept, ["X"]) is None


def test_other_files_count_as_missing(kept):
    np.save(kept.with_name("one.npy"), np.ones(3))
    assert load_arrays(kept.with_name("one.npy"), ["X"]) is None
    kept.write_text("plain text")
    assert load_arrays(kept, ["X"]) is None


def test_nothing_is_unpickled(kept):
    np.savez(kept, X=np.array([{"a": 1}], dtype=object))
    assert load_arrays(kept, ["X"]) is None


def test_an_unknown_compression_counts_as_missing(kept):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("X.npy", b"")
    version, stored, unknown = b"\x14\x00\x00\x00", b"\x00\x00", b"\x63\x00"
    kept.write_bytes(content.getvalue().replace(version + stored, version + unknown))
    with zipfile.ZipFile(kept) as file, pytest.raises(NotImplementedError):
        file.read("X.npy")
    assert load_arrays(kept, ["X"]) is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    (tmp_path / "file").write_text("")
    save_arrays(tmp_path / "file" / "arrays.npz", X=np.ones(2))
    assert (tmp_path / "file").read_text() == ""


# Texts


def test_values_become_json():
    value = {
        1: np.float32(0.5),
        "list": [np.int64(3), (True, None)],
        "array": np.array([[1.0, np.nan], [np.inf, -np.inf]]),
        "scalar": np.float64("nan"),
        "other": {2},
    }
    expected = {
        "1": 0.5,
        "list": [3, [True, None]],
        "array": [[1.0, None], [None, None]],
        "scalar": None,
        "other": "{2}",
    }
    assert as_json(value) == expected
    assert json.loads(json.dumps(as_json(value), allow_nan=False)) == expected


def test_every_text_has_bytes():
    assert encodable("naïve 日本 🙂") == "naïve 日本 🙂"
    assert encodable("a\ud800b") == "a?b"


def test_no_text_steers_a_terminal():
    assert printable("naïve 日本 🙂") == "naïve 日本 🙂"
    assert printable("a\n\x1b[2J\x9b1m\u202e\u2028\ud800\tb") == "a  [2J 1m" + 4 * " " + "b"
    told = "a\x9b31m\u202e\u200b é🙂"
    written = terminal_json(json.dumps(told, ensure_ascii=False))
    assert json.loads(written) == told
    assert written.isprintable()


def test_long_values_are_cut():
    assert short([1, 2]) == "[1, 2]"
    assert len(short("x" * 10_000)) <= 300
    assert len(short(list(range(10_000)))) < 300
    deep = value = []
    for _ in range(100):
        value.append([])
        value = value[0]
    assert len(short(deep)) < 100


# Optional packages


def test_a_missing_package_names_the_extra(monkeypatch):
    assert need("json", "files") is json
    monkeypatch.setitem(sys.modules, "lancedb", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"lancedb is not installed: pip install 'hubless\[lancedb\]'"):
        need("lancedb", "lancedb")
