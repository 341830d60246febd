"""`fit` says how many items it does not learn from, and `apply` how many it does not move, and why."""

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubless
from hubless.movers import MoveLabeled, Shrink
from hubless.repair.repair import Repair
from tests.cli.shops import D, N, write_csv


def write_parquet(path, rows, **columns):
    """Write vectors, of which some are None, with columns."""
    vectors = pa.array(rows, pa.list_(pa.float32(), D))
    pq.write_table(pa.table({"id": list(range(len(rows))), "v": vectors, **columns}), path)
    return path


@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_fit_counts_what_it_does_not_learn_from(run, words, shop, tmp_path, kind):
    """In memory and in parts: items without a vector, and those whose label is empty, None or NaN."""
    rows = [None if row < 3 else x for row, x in enumerate(shop.X.tolist())]
    missing = [None, ""] if kind == "texts" else [None, float("nan")]
    labels = shop.y.tolist() if kind == "texts" else shop.y.astype(float).tolist()
    labels[2:7] = [*missing, missing[1], missing[0], missing[0]]  # the first of them lacks a vector, too
    path = write_parquet(tmp_path / "v.parquet", rows, category=pa.array(labels, from_pandas=False))
    fit = ["fit", path, "--metric", "l2", "--labels", "category", "--mover", "ridge", "-o", tmp_path / "m"]
    for more in ([], ["--memory", "1GB"]):
        said = words(*fit, *more)
        assert "\n7 items have no finite vector or no label, and were not learned from.\n" in said
        learned = run(*fit, *more)["learned"]
        assert (learned["n"], learned["without a vector or a label"]) == (N - 7, 7)


def test_fit_says_nothing_where_nothing_is_left_out(words, shop, tmp_path):
    fit = ["fit", *shop.source, "--labels", "category", "--mover", "ridge", "-o", tmp_path / "m"]
    assert "learned from" not in words(*fit)


def test_fit_from_queries_counts_items_without_a_vector(run, words, library, tmp_path):
    X = library.X.copy()
    X[5], X[7, 2], X[9] = np.nan, np.nan, 0
    np.save(tmp_path / "docs.npy", X)
    source = [tmp_path / "docs.npy", "--metric", "cosine", *library.asking]
    assert run("fit", *source, "-o", tmp_path / "m")["learned"]["items without a vector"] == 3
    assert "3 items have no finite vector, and were ignored." in words("fit", *source, "-o", tmp_path / "m")


def hurt(X):
    """Make rows of which none can be moved: NaN in all or one column, infinite, zero."""
    X = X.copy()
    X[0], X[1, 3], X[2, 5], X[3, 0], X[4:8] = np.nan, np.nan, np.inf, -np.inf, 0
    return X


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_apply_counts_what_it_does_not_move(run, words, shop, tmp_path, metric):
    X = hurt(shop.X)
    np.save(tmp_path / "v.npy", X)
    hubless.save(Repair(MoveLabeled().fit(shop.X, shop.y), metric), tmp_path / "m")
    verb = ["apply", tmp_path / "m", tmp_path / "v.npy", "--metric", metric, "-o"]
    made = run(*verb, "moved.npy")
    zeros = 4 if metric == "cosine" else 0
    counts = {"no vector": 2, "infinite": 2, "too large": 0, "zero": zeros, "unknown class": 0}
    assert made["unmoved"] == counts
    stays = (np.load(tmp_path / "moved.npy") == X).all(axis=1)
    assert stays[2:4].all()
    assert stays[4:8].all() == (metric == "cosine")
    assert not stays[8:].any()
    said = words(*verb, "again.npy")
    assert "\n2 items are not moved: they have no vector, or NaN in it.\n" in said
    assert "\n2 items are not moved: they have infinite numbers.\n" in said
    assert ("4 items are not moved: they are zero, and have no direction." in said) == (metric == "cosine")


def test_apply_counts_each_item_once(run, shop, tmp_path):
    """An item that lacks a vector and a known class lacks a vector."""
    np.save(tmp_path / "v.npy", hurt(shop.X))
    classes = ["?" if row in (0, 2, 4, 20) else value for row, value in enumerate(shop.y)]
    write_csv(tmp_path / "items.csv", category=classes)
    hubless.save(Repair(Shrink(0.4).fit(shop.X, shop.y), "l2", label="category"), tmp_path / "m")
    source = [tmp_path / "v.npy", "--metric", "l2", "--items", tmp_path / "items.csv"]
    made = run("apply", tmp_path / "m", *source, "-o", "moved.npy")
    assert made["unmoved"] == {"no vector": 2, "infinite": 2, "too large": 0, "zero": 0, "unknown class": 2}
    assert sum("items are not moved" in note for note in made["notes"]) == 3
    again = run("apply", tmp_path / "m", *source, "-o", "moved.npy")
    assert (again["written"], again["unmoved"]) == (0, made["unmoved"])


@pytest.mark.parametrize("kind", ["npy", "faiss"])
def test_an_item_too_large_to_be_compared_is_not_moved(run, words, shop, tmp_path, kind):
    """Its moved vector would be infinite; and an index that compares items could not be compared at all."""
    X, path, metric = shop.X.copy(), tmp_path / f"v.{kind}", []
    X[4], X[5, 2] = 3e38, np.inf
    if kind == "npy":
        np.save(path, X)
        metric = ["--metric", "l2"]
    else:
        index = faiss.IndexHNSWFlat(D, 8)
        index.add(X)
        faiss.write_index(index, str(path))
    hubless.save(Repair(MoveLabeled().fit(shop.X, shop.y), "l2"), tmp_path / "m")
    made = run("apply", tmp_path / "m", path, *metric, "-o", f"moved.{kind}")
    assert made["unmoved"] == {"no vector": 0, "infinite": 1, "too large": 1, "zero": 0, "unknown class": 0}
    with np.errstate(all="raise"):
        said = words("apply", tmp_path / "m", path, *metric, "-o", f"again.{kind}")
    assert "\n1 items are not moved: they are too large: their squares overflow.\n" in said
    if kind == "npy":
        moved = np.load(tmp_path / "moved.npy")
        np.testing.assert_array_equal(moved[4:6], X[4:6])
        assert np.isfinite(np.delete(moved, 5, axis=0)).all()
