"""`hubless fit` of items beyond memory: the model that a fit in memory gives, and what it prints."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubless import load
from hubless.cli import main
from hubless.outofcore.checkpoints import Checkpoint
from hubless.repair import learn_index
from hubless.repair.learn_index import is_large
from hubless.stores.store import Facts


@pytest.fixture
def parts(tmp_path):
    """A folder of four Parquet files with vectors of 8 columns and labels, one of them missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 1200)
    X = (2 * rng.standard_normal((5, 8))[y] + rng.standard_normal((1200, 8)) * 2).astype(np.float32)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(1200), 4)):
        labels = [None if row == 7 else f"class {y[row]}" for row in rows]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].reshape(-1)), 8)
        pq.write_table(pa.table({"vector": vectors, "label": labels}), folder / f"{i}.parquet")
    return folder


def test_all_pairs_give_the_model_of_a_fit_in_memory(parts, tmp_path, run):
    in_memory = run("fit", parts, "--labels", "label", "--mover", "ridge", "-o", tmp_path / "a")
    how = ("--memory", "1GB", "--max-pairs", "all")
    other = run("fit", parts, "--labels", "label", "--mover", "ridge", *how, "-o", tmp_path / "b")
    a, b = load(tmp_path / "a").mover, load(tmp_path / "b").mover
    assert a.alpha == b.alpha
    np.testing.assert_allclose(b.W_, a.W_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(b.moments_.K, a.moments_.K, rtol=1e-9)
    assert in_memory["learned"]["n"] == other["learned"]["n"] == other["learned"]["pairs"] == 1199
    assert other["learned"]["without a vector or a label"] == 1
    assert other["learned"]["chosen on"] == 1199
    assert not (tmp_path / "b.scratch").exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b", "parts"]


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_the_best_of_many_is_chosen_and_applied(parts, tmp_path, run, metric):
    model, moved = tmp_path / "model", tmp_path / "moved"
    result = run("fit", parts, "--labels", "label", "--metric", metric, "--memory", "1GB", "-o", model)
    assert result["data"]["metric"] == metric
    assert result["learned"]["tried"]
    repair = load(model)
    assert repair.metric == metric
    assert "Stay" not in result["learned"]["mover"]  # or there is nothing to apply
    run("apply", model, parts, "--metric", metric, "-o", moved)
    rows = pq.read_table(parts / "2.parquet")
    Z = np.stack(rows["vector"].to_numpy(zero_copy_only=False))
    expected = repair.move(Z, list(range(len(Z))), rows["label"].to_pylist())
    found = np.stack(pq.read_table(moved / "2.parquet")["vector"].to_numpy(zero_copy_only=False))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    if metric == "cosine":
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5, atol=1e-6)


def test_inner_product_of_other_lengths_is_refused(parts, tmp_path, refused):
    message = refused(
        "fit", parts, "--labels", "label", "--metric", "ip", "--memory", "1GB", "-o", tmp_path / "m"
    )
    assert "inner product" in message
    assert not (tmp_path / "m").exists()


def test_bad_parts_are_named_or_skipped(parts, tmp_path, words, refused):
    (parts / "1.parquet").write_bytes(b"no Parquet at all")
    content = {file.name: file.read_bytes() for file in parts.iterdir()}
    how = ("fit", parts, "--labels", "label", "--memory", "1GB", "--mover", "ridge", "-o", tmp_path / "m")
    assert "1.parquet" in refused(*how)
    message = words(*how, "--skip-bad")
    assert "skipped: " in message
    assert "1.parquet" in message
    assert content == {file.name: file.read_bytes() for file in parts.iterdir()}
    assert load(tmp_path / "m").facts["learned"]["left out"][0]["part"].endswith("1.parquet")


def test_invalid_options_are_refused(parts, tmp_path, refused):
    how = ("fit", parts, "--labels", "label", "-o", tmp_path / "m")
    assert "at least" in refused(*how, "--memory", "10MB")
    assert "2GB" in refused(*how, "--memory", "much")
    assert "no column 'nothing'" in refused("fit", parts, "--labels", "nothing", "--memory", "1GB")
    assert "among the items" in refused(*how, "--scratch", parts / "scratch")
    (tmp_path / "pairs.tsv").write_text("query-id\tcorpus-id\tscore\n")
    message = refused("fit", parts, "--pairs", tmp_path / "pairs.tsv", "--memory", "1GB")
    assert "memory (--memory) is for labels" in message


def test_when_items_are_large():
    facts = Facts("npy file", None, 100, 1_000_000, "float32", "exhaustive")
    assert is_large(facts, 10**9)
    assert not is_large(facts, 10**10)


def test_a_stopped_run_resumes_in_its_scratch(parts, tmp_path, run, capsys, monkeypatch):
    """A run that stops at the last moment leaves its results there; the next run computes none again."""
    how = ("fit", parts, "--labels", "label", "--mover", "ridge", "--memory", "1GB", "--max-pairs", "600")
    whole = run(*how, "-o", tmp_path / "whole")

    def stop(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learn_index, "clear", stop)
        assert main([str(part) for part in (*how, "-o", tmp_path / "model")]) == 130
    assert "the same command resumes" in capsys.readouterr().err
    scratch = tmp_path / "model.scratch"
    assert len([*scratch.glob("hubless-*.npz")]) == 1  # the sums of all parts; those of each part are removed
    monkeypatch.setattr(Checkpoint, "save", lambda *given: pytest.fail("computed again"))
    again = run(*how, "-o", tmp_path / "model")
    assert again["hash"] == whole["hash"]
    assert not scratch.exists()


def test_items_are_not_counted_twice(parts, tmp_path, run, refused):
    """A model knows what it was learned from, part by part or not."""
    run("fit", parts, "--labels", "label", "--mover", "ridge", "-o", tmp_path / "a")
    how = ("--memory", "1GB", "--max-pairs", "all")
    run("fit", parts, "--labels", "label", "--mover", "ridge", *how, "-o", tmp_path / "b")
    again = ("update", tmp_path / "b", parts, "--labels", "label", "-o", tmp_path / "c")
    assert "already" in refused(*again)
    assert "twice" in refused("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "c")


def test_a_sample_forgets_nothing(parts, tmp_path, run, refused):
    how = ("--memory", "1GB", "--max-pairs", "100")
    run("fit", parts, "--labels", "label", "--mover", "ridge", *how, "-o", tmp_path / "a")
    message = refused("update", tmp_path / "a", parts, "--labels", "label", "--remove", "-o", tmp_path / "b")
    assert "sample" in message
    assert not (tmp_path / "b").exists()


def test_nor_does_a_model_that_a_sample_was_merged_into(parts, tmp_path, run, refused):
    """In whatever order; the other one learned in memory, from other items."""
    others = tmp_path / "others"
    others.mkdir()
    (parts / "3.parquet").rename(others / "3.parquet")
    how = ("--labels", "label", "--mover", "ridge")
    run("fit", parts, *how, "--memory", "1GB", "--max-pairs", "100", "-o", tmp_path / "sample")
    run("fit", others, *how, "-o", tmp_path / "all")
    for order in (("all", "sample"), ("sample", "all")):
        both = tmp_path / "-".join(order)
        run("merge", *(tmp_path / name for name in order), "-o", both)
        message = refused("update", both, parts, "--labels", "label", "--remove", "-o", tmp_path / "b")
        assert "sample" in message


def test_files_of_a_user_stay_in_the_scratch(parts, tmp_path, run):
    scratch = tmp_path / "own"
    scratch.mkdir()
    content = {"rows.bin": b"mine", "partition.json": b"{}", f"{'0' * 64}.npz": b"mine too"}
    for name, data in content.items():
        (scratch / name).write_bytes(data)
    run("fit", parts, "--labels", "label", "--memory", "1GB", "--scratch", scratch, "-o", tmp_path / "m")
    assert {file.name: file.read_bytes() for file in scratch.iterdir()} == content


def test_many_small_classes_are_chosen_on_as_they_are(tmp_path, run, monkeypatch):
    """Of 400 classes of 8, a sample of 200 rows is 25 classes with neighbours, not 200 single objects."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(400), 8))
    X = (rng.standard_normal((400, 16))[y] + 0.3 * rng.standard_normal((3200, 16))).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    monkeypatch.setattr("hubless.repair.learn_index.CHOSEN_ON", 200)
    items = ("--items", tmp_path / "y.npy", "--labels", "label")
    how = ("--memory", "1GB", "--mover", "ridge", "-o", tmp_path / "m")
    result = run("fit", tmp_path / "x.npy", *items, *how)
    assert 100 < result["learned"]["chosen on"] < 320
    assert result["learned"]["tried"][0]["score"] > 0.9
