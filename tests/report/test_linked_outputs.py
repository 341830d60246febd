"""Links as outputs: what one leads to is replaced, and the link stays; one to nothing is refused."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import hubless
from hubless import plot
from hubless.repair.apply import apply_index
from hubless.stores.files.plain_files import NpyFile


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 4)) + 2 * y[:, None]
    return hubless.compare(hubless.MoveLabeledClassifier(), X[:40], y[:40], X[40:], y[40:])


WRITERS = {
    "page.html": lambda report, path: report.save(path),
    "table.parquet": lambda report, path: report.atlas(path),
    "summary.png": plot.save,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_stays_and_what_it_names_is_replaced(report, tmp_path, name):
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / name, tmp_path / name
    WRITERS[name](report, target)
    link.symlink_to(target)
    old = target.stat().st_ino
    with target.open("rb"):  # so that the number of the old file is not used again
        WRITERS[name](report, link)
    assert link.is_symlink()
    assert target.stat().st_ino != old
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [name]  # no temporary file is left


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_to_nothing_is_refused(report, tmp_path, name):
    link = tmp_path / name
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        FileNotFoundError, match=r"is a link to .*nowhere, where there is nothing. Remove the"
    ):
        WRITERS[name](report, link)
    assert list(tmp_path.iterdir()) == [link]


def test_plots_are_not_written_through_a_link_to_nothing(report, tmp_path):
    (tmp_path / "plots").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="is a link to"):
        plot.save(report, tmp_path / "plots")
    assert not (tmp_path / "nowhere").exists()


def test_a_moved_index_is_not_taken_for_a_table(report, tmp_path):
    """Both have metadata of hubless."""
    report.atlas(tmp_path / "table.parquet")
    table = pq.read_table(tmp_path / "table.parquet")
    moved = tmp_path / "moved.parquet"
    pq.write_table(table.replace_schema_metadata({b"hubless": b'{"hubless": 1}'}), moved)
    before = moved.read_bytes()
    with pytest.raises(ValueError, match="not a table of hubless"):
        report.atlas(moved)
    assert moved.read_bytes() == before


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_fitted(tmp_path):
    class Model(hubless.MoveLabeledClassifier):
        def fit(self, *_):
            pytest.fail("it was fitted")

    (tmp_path / "notes").write_text("mine")
    X, y = np.zeros((4, 2)), [0, 0, 1, 1]
    for page in ("notes", "notes/page.html"):
        with pytest.raises((OSError, ValueError), match="notes"):
            hubless.compare(Model(), X, y, X, y, report=tmp_path / page)
    wide, short = np.zeros((4, 3)), [0, 0, 1]
    for queries, truth, words in ((wide, y, "queries have 3 columns"), (X, short, "one class per query")):
        with pytest.raises(ValueError, match=words):
            hubless.compare(Model(), X, y, queries, truth)
    with pytest.raises(ValueError, match="ids"):
        hubless.compare(Model(), X, y, X, y, ids=[1])


def test_apply_goes_through_a_link_to_its_own_copy(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 3)).astype(np.float32)
    model = hubless.movers.MoveLabeled(1.0).fit(X, np.arange(30) % 2)
    np.save(tmp_path / "v.npy", X)
    store = NpyFile(tmp_path / "v.npy")
    apply_index(model, store, "moved")
    (tmp_path / "link.npy").symlink_to("moved.npy")
    np.save(tmp_path / "v.npy", 2 * X)
    apply_index(model, store, "link")
    assert (tmp_path / "link.npy").is_symlink()
    np.testing.assert_allclose(np.load(tmp_path / "moved.npy"), model.move(2 * X), rtol=1e-5)
