"""The Parquet for embedding-atlas, read back by pyarrow, against loops over the same arrays."""

import shlex
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.decomposition import PCA

from hubless.evaluation import Answers, BeforeAfter, Evaluation
from hubless.hubness import measure_occurrence
from hubless.report.atlas import write_atlas
from hubless.report.details import Captions
from hubless.report.map_layout import DrawnMap, MapPoints
from tests import reference

N, M, D = 5, 4, 2
NEAR = BeforeAfter(np.array([[0, 1], [0, 1], [0, 1], [0, 2]]), np.array([[1, 0], [2, 1], [4, 3], [2, 3]]))
LABELS, TRUTH = (
    np.array(["x", "x", "y", "y", "y"], dtype=object),
    np.array(["x", "y", "y", "x"], dtype=object),
)


def evaluation_of(occurrence, near=NEAR):
    """5 items and 4 queries of two classes with these neighbours; N10 as it is given."""
    rng = np.random.default_rng(0)
    stored = BeforeAfter(rng.normal(size=(N, D)), rng.normal(size=(N, D)))
    wrong = BeforeAfter(*(LABELS[indices] != TRUTH[:, None] for indices in near))
    correct = BeforeAfter(np.array([True, False, True, False]), np.array([True, True, False, False]))
    queries = rng.normal(size=(M, D))
    ks = BeforeAfter(1, 1)
    answers = Answers(stored, queries, near, wrong, correct, None, LABELS, TRUTH, ks, "l2")
    hubness = BeforeAfter(*(measure_occurrence(np.array(counts), None, 2, M) for counts in occurrence))
    return Evaluation([], 1, 1, "", hubness, [], answers)


@pytest.fixture
def evaluation():
    return evaluation_of([reference.k_occurrence(indices, N) for indices in NEAR])


@pytest.fixture
def captions():
    return Captions(
        ids=[10, "b", "c", "d", "e"],
        query_ids=["q0", "q1", "q2", "q3"],
        texts=["one", "<script>", None, "half \udc80", "five"],
    )


def drawn_map(items=range(N), queries=range(M), layout="tsne"):
    """A map of these rows, at random places."""
    items, queries, rng = np.array([*items]), np.array([*queries]), np.random.default_rng(1)
    points = MapPoints(*(rng.normal(size=(len(rows), 2)) for rows in (items, queries)))
    components = PCA(2).fit(rng.normal(size=(9, D)))
    return DrawnMap(layout, "", components, items, queries, None, points)


@pytest.fixture
def write(evaluation, captions, tmp_path):
    """Write the file, and return its columns."""

    def write_file(evaluation=evaluation, captions=captions, drawn=None):
        write_atlas(tmp_path / "page.parquet", evaluation, captions, drawn or drawn_map())
        return pq.read_table(tmp_path / "page.parquet").to_pydict()

    return write_file


def test_rows_are_items_then_queries(write):
    drawn = drawn_map()
    table = write(drawn=drawn)
    assert table["id"] == ["10", "b", "c", "d", "e", "q0", "q1", "q2", "q3"]
    assert table["kind"] == ["item"] * N + ["query"] * M
    assert table["text"] == ["one", "<script>", None, "half ?", "five"] + [None] * M
    assert table["label"] == ["x", "x", "y", "y", "y", "x", "y", "y", "x"]
    assert table["n10_before"] == [4, 3, 1, 0, 0] + [None] * M
    assert table["n10_after"] == [1, 2, 2, 2, 1] + [None] * M
    assert table["wrong_share_before"] == [0.5, pytest.approx(2 / 3), 1, None, None] + [None] * M
    assert table["wrong_share_after"] == [0, 0.5, 0.5, 0.5, 0] + [None] * M
    assert table["is_hub_before"] == [False] * N + [None] * M  # in 5 × 0.4⁴ of such answers, one is in all 4
    assert table["is_hub_after"] == [False] * N + [None] * M
    assert table["answer_before"] == [None] * N + ["right", "wrong", "right", "wrong"]
    assert table["answer_after"] == [None] * N + ["right", "right", "wrong", "wrong"]
    for side, letter in enumerate("xy"):
        points = [*drawn.points.items[:, side], *drawn.points.queries[:, side]]
        assert table[letter] == pytest.approx(points, rel=1e-6)


def test_by_pca_all_points_have_a_row(write, evaluation):
    drawn = drawn_map([1, 2], [3], layout="pca")
    table, answers = write(drawn=drawn), evaluation.answers
    assert len(table["id"]) == N + M
    points = drawn.components.transform(np.vstack([answers.stored.before, answers.queries]))
    assert table["x"] == pytest.approx(points[:, 0], rel=1e-5)
    assert table["y"] == pytest.approx(points[:, 1], rel=1e-5)


@pytest.mark.parametrize("items", [range(N), [0, 1, 2, 4]], ids=["all", "a sample"])
def test_neighbours_are_rows_of_the_file_nearest_first_and_never_null(write, evaluation, items):
    rows = write(drawn=drawn_map(items))["neighbors"]
    n, answers = len(items), evaluation.answers
    pairs = [[] for _ in range(n + M)]
    for query in range(M):
        for item in answers.neighbors.after[query].tolist():
            if item in items:  # of the others there is no row
                row = [*items].index(item)
                apart = np.float32(reference.distance(answers.queries[query], answers.stored.after[item]))
                pairs[n + query].append((apart, row))
                pairs[row].append((apart, n + query))
    expected = [sorted(row) for row in pairs]
    assert [row["ids"] for row in rows] == [[other for _, other in row] for row in expected]
    for row, truth in zip(rows, expected, strict=True):
        assert row["distances"] == pytest.approx([apart for apart, _ in truth])


def test_the_command_names_the_columns_of_the_file(evaluation, captions, tmp_path):
    path = tmp_path / "my page.parquet"
    no_classes = replace(evaluation, answers=replace(evaluation.answers, labels=None, truth=None))
    for given, shown in [(evaluation, captions), (no_classes, replace(captions, texts=None))]:
        program, file, *options = shlex.split(write_atlas(path, given, shown, drawn_map()))
        columns = dict(zip(options[::2], options[1::2], strict=True))
        assert (program, file) == ("embedding-atlas", str(path))
        assert set(columns.values()) <= set(pq.read_schema(path).names)
        assert (columns["--x"], columns["--y"]) == ("x", "y")
        assert ("--text" in columns) == (shown.texts is not None)
        assert columns["--neighbors"] == "neighbors"
    assert not {"text", "label"} & set(pq.read_schema(path).names)


def test_a_file_is_replaced_as_a_whole(evaluation, captions, tmp_path, monkeypatch):
    path = tmp_path / "page.parquet"
    write_atlas(path, evaluation, captions, drawn_map([0, 1]))
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *given: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        write_atlas(path, evaluation, captions, drawn_map())
    monkeypatch.undo()
    assert path.read_bytes() == before
    write_atlas(path, evaluation, captions, drawn_map())
    assert pq.read_table(path).num_rows == N + M
    assert list(tmp_path.iterdir()) == [path]


def test_hubs_of_a_sample_are_those_among_all_items(write, captions):
    counts = [5, 3, 2, 0, 0]  # more than the 4 queries: no chance gives that
    evaluation = evaluation_of([counts, counts])
    assert write(evaluation)["is_hub_before"] == [True] + [False] * 4 + [None] * M
    table = write(evaluation, replace(captions, ids=["\udc80"] * N), drawn_map([1, 2, 3, 4]))
    assert table["is_hub_before"] == [False] * 4 + [None] * M
    assert table["id"][:4] == ["?"] * 4


def test_classes_may_be_numbers(write, evaluation):
    numbers = replace(evaluation.answers, labels=np.arange(N), truth=np.arange(M))
    assert write(replace(evaluation, answers=numbers))["label"] == [*"01234", *"0123"]


def test_nothing_is_a_hub_where_no_query_finds_anything(write):
    table = write(evaluation_of(np.zeros((2, N), int), BeforeAfter(*np.zeros((2, M, 0), int))))
    assert table["is_hub_before"] == [False] * N + [None] * M
    assert table["wrong_share_after"] == [None] * (N + M)
    assert [row["ids"] for row in table["neighbors"]] == [[]] * (N + M)


def test_without_pyarrow_the_extra_is_named(evaluation, captions, tmp_path, monkeypatch):
    drawn = drawn_map()  # scikit-learn asks for pyarrow too
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow is not installed: pip install 'hubless\[files\]'"):
        write_atlas(tmp_path / "page.parquet", evaluation, captions, drawn)
    assert not list(tmp_path.iterdir())
