"""The Parquet for embedding-atlas, read back by pyarrow, against loops over the same arrays."""

import shlex
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from hubless.report.atlas import AtlasItems, AtlasQueries, write_atlas

N, M, K = 5, 4, 2


@pytest.fixture
def items():
    rng = np.random.default_rng(0)
    return AtlasItems(
        ids=[10, "b", "c", "d", "e"],
        places=(rng.normal(size=(N, 2)), rng.normal(size=(N, 2))),
        occurrence=(np.array([4, 3, 1, 0, 0]), np.array([1, 2, 2, 1, 1])),
        wrong=(np.array([3, 0, 1, 0, 0]), np.array([1, 1, 0, 0, 0])),
        texts=["one", "<script>", None, "half \udc80", "five"],
        labels=["x", "x", "y", "y", "y"],
    )


@pytest.fixture
def queries():
    return AtlasQueries(
        ids=["q0", "q1", "q2", "q3"],
        places=np.arange(2 * M).reshape(M, 2),
        neighbors=np.array([[1, 0], [2, 1], [4, 3], [2, -1]]),
        distances=np.array([[0.5, 1.0], [0.25, 2.0], [1.5, 3.0], [0.125, np.inf]]),
        right=(np.array([True, False, True, False]), np.array([True, True, False, False])),
        labels=["x", "y", "y", "x"],
    )


def test_rows_are_items_then_queries(items, queries, tmp_path):
    write_atlas(tmp_path / "page.parquet", items, queries)
    table = pq.read_table(tmp_path / "page.parquet").to_pydict()
    assert table["id"] == ["10", "b", "c", "d", "e", "q0", "q1", "q2", "q3"]
    assert table["kind"] == ["item"] * N + ["query"] * M
    assert table["text"] == ["one", "<script>", None, "half ?", "five"] + [None] * M
    assert table["label"] == ["x", "x", "y", "y", "y", "x", "y", "y", "x"]
    assert table["n10_before"] == [4, 3, 1, 0, 0] + [None] * M
    assert table["n10_after"] == [1, 2, 2, 1, 1] + [None] * M
    assert table["wrong_share_before"] == [0.75, 0, 1, None, None] + [None] * M
    assert table["wrong_share_after"] == [1, 0.5, 0, 0, 0] + [None] * M
    assert table["is_hub_before"] == [True, False, False, False, False] + [None] * M  # twice the mean: 3.2
    assert table["is_hub_after"] == [False] * N + [None] * M
    assert table["answer_before"] == [None] * N + ["right", "wrong", "right", "wrong"]
    assert table["answer_after"] == [None] * N + ["right", "right", "wrong", "wrong"]
    for state, name in enumerate(("before", "after")):
        for side, letter in enumerate("xy"):
            expected = [*items.places[state][:, side], *queries.places[:, side]]
            assert table[f"{letter}_{name}"] == pytest.approx(expected, rel=1e-6)


def test_neighbours_are_rows_of_the_file_nearest_first_and_never_null(items, queries, tmp_path):
    write_atlas(tmp_path / "page.parquet", items, queries)
    found = pq.read_table(tmp_path / "page.parquet").column("neighbors").to_pylist()
    pairs = [[] for _ in range(N + M)]
    for query in range(M):
        for rank in range(K):
            item = int(queries.neighbors[query, rank])
            if item >= 0:
                pairs[N + query].append((float(queries.distances[query, rank]), item))
                pairs[item].append((float(queries.distances[query, rank]), N + query))
    expected = [sorted(own) for own in pairs]
    assert [row["ids"] for row in found] == [[row for _, row in own] for own in expected]
    assert [row["distances"] for row in found] == [[apart for apart, _ in own] for own in expected]


def test_the_command_names_the_columns_that_are_there(items, queries, tmp_path):
    path = tmp_path / "my page.parquet"
    for own, asked in [(items, queries), (items._replace(texts=None, labels=None, wrong=None), None)]:
        program, file, *options = shlex.split(write_atlas(path, own, asked))
        given = dict(zip(options[::2], options[1::2], strict=True))
        assert (program, file) == ("embedding-atlas", str(path))
        assert set(given.values()) <= set(pq.read_schema(path).names)
        assert (given["--x"], given["--y"]) == ("x_after", "y_after")
        assert ("--text" in given) == (own.texts is not None)
        assert ("--neighbors" in given) == (asked is not None)


def test_a_file_is_replaced_as_a_whole(items, queries, tmp_path):
    path = tmp_path / "page.parquet"
    write_atlas(path, items)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="occurrence of AtlasItems has 4 rows, its ids 5"):
        write_atlas(path, items._replace(occurrence=(np.zeros(N), np.zeros(N - 1))))
    assert path.read_bytes() == before
    write_atlas(path, items, queries)
    assert pq.read_table(path).num_rows == N + M
    assert list(tmp_path.iterdir()) == [path]


def test_of_some_items_the_hubs_are_those_among_all(items, tmp_path):
    write_atlas(tmp_path / "page.parquet", items._replace(mean=0.5, labels=np.arange(N), ids=["\udc80"] * N))
    table = pq.read_table(tmp_path / "page.parquet").to_pydict()
    assert table["is_hub_before"] == [True, True, True, False, False]
    assert table["label"] == ["0", "1", "2", "3", "4"]


def test_nobody_is_a_hub_where_nothing_is_found(items, tmp_path):
    nothing = (np.zeros(N, int), np.zeros(N, int))
    write_atlas(tmp_path / "page.parquet", items._replace(occurrence=nothing, wrong=nothing))
    table = pq.read_table(tmp_path / "page.parquet").to_pydict()
    assert table["is_hub_before"] == [False] * N
    assert table["wrong_share_after"] == [None] * N


def test_without_pyarrow_the_extra_is_named(items, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow is not installed: pip install 'hubless\[files\]'"):
        write_atlas(tmp_path / "page.parquet", items)
    assert not list(tmp_path.iterdir())
