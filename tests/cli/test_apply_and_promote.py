"""`hubless apply`, `promote`, `rollback` and `status`, and the metric that guards them."""

import os
from pathlib import Path

import faiss
import numpy as np

import hubless
from hubless.movers import Shrink, Stay
from hubless.repair.repair import Repair
from hubless.stores.file_marks import fingerprint
from tests import reference
from tests.cli.shops import D, N, lambda_of, tree, unit, write_csv, write_faiss


def test_apply_promote_and_rollback(run, words, refused, shop, model):
    original = shop.index.read_bytes()
    moved = hubless.load(model).move(shop.X)
    _, before = reference.nearest(shop.queries, shop.X, 5)
    _, after = reference.nearest(shop.queries, moved, 5)
    assert (before != after).any()

    def serves(rows):
        return np.array_equal(faiss.read_index(str(shop.index)).search(shop.queries, 5)[1], rows)

    assert run("status", *shop.source)["status"] == "original"
    made = run("apply", model, *shop.source, "-o", "moved.faiss")
    assert (made["rows"], made["written"], made["removed"]) == (N, N, 0)
    assert run("apply", model, *shop.source, "-o", "moved.faiss")["written"] == 0
    assert shop.index.read_bytes() == original
    assert serves(before)
    assert run("status", shop.folder / "moved.faiss")["status"] == "moved copy"
    assert "nothing to roll back" in refused("rollback", shop.folder / "moved.faiss")
    assert "nothing to roll back" in refused("rollback", shop.index)

    kept = run("promote", *shop.source, "moved.faiss")["original"]
    assert serves(after)
    assert Path(kept).read_bytes() == original
    status = run("status", *shop.source)
    assert status["status"] == "serving moved"
    assert (Path(status["original"]).name, status["original_is_there"]) == (Path(kept).name, True)
    assert status["model"] == hubless.load(model).hash
    assert "serving moved" in words("status", *shop.source)
    assert "already moved" in refused("apply", model, *shop.source, "-o", "again.faiss")
    assert "already moved" in refused("fit", *shop.source, "--labels", "category", "-o", shop.folder / "m2")
    assert "already moved" in refused("preview", model, *shop.source, "--like", shop.ids[0])
    assert "already moved" in refused("evaluate", model, *shop.source, *shop.asking, "--labels", "category")
    assert "does not exist" in refused("promote", *shop.source, "moved.faiss")

    back = run("rollback", *shop.source)
    assert back["added_since"] == 0
    assert serves(before)
    assert shop.index.read_bytes() == original
    assert run("status", *shop.source)["status"] == "original"
    np.testing.assert_array_equal(faiss.read_index(back["moved_kept_as"]).search(shop.queries, 5)[1], after)


def test_promote_and_rollback_can_be_repeated(words, shop, model):
    original = shop.index.read_bytes()
    for _ in range(3):
        assert "serves as before" in words("apply", model, *shop.source, "-o", shop.folder / "moved.faiss")
        assert "the original is kept" in words("promote", *shop.source, "moved.faiss")
        assert shop.index.read_bytes() != original
        assert "serves the original again" in words("rollback", *shop.source)
        assert shop.index.read_bytes() == original


def test_a_target_may_be_a_path(run, shop, model, monkeypatch):
    """A bare name is in the folder of the index, wherever the user is; with a / in it, it is a path."""
    (shop.folder / "elsewhere").mkdir()
    monkeypatch.chdir(shop.folder.parent)
    source = [os.path.relpath(shop.index), "--items", shop.items]
    run("apply", model, *source, "-o", "bare.faiss")
    run("apply", model, *source, "-o", f"{shop.folder.name}/elsewhere/path.faiss")
    assert (shop.folder / "bare.faiss").exists()
    run("promote", *source, f"{shop.folder.name}/elsewhere/path.faiss")
    assert run("status", shop.index)["status"] == "serving moved"


def test_an_index_that_changed_is_not_promoted(run, refused, tmp_path):
    """One row is changed in place where the fingerprint of so large a file does not look; its size stays."""
    X = np.random.default_rng(0).standard_normal((1300, 1024)).astype(np.float32)  # 5.3 MB
    np.save(tmp_path / "v.npy", X)
    hubless.save(Repair(Shrink(0.5).fit(X[:9], ["0", "1", "2"] * 3), "l2", label="c"), tmp_path / "model")
    write_csv(tmp_path / "items.csv", c=[0] * len(X))
    source = [tmp_path / "v.npy", "--metric", "l2", "--items", tmp_path / "items.csv"]
    run("apply", tmp_path / "model", *source, "-o", "moved.npy")
    stored = np.load(tmp_path / "v.npy", mmap_mode="r+")
    content = fingerprint(tmp_path / "v.npy")
    for row in range(10, len(X)):
        stored[row] += 1
        stored.flush()
        if fingerprint(tmp_path / "v.npy") == content:  # between the samples
            break
        stored[row] = X[row]
    assert row < len(X) - 1
    assert "changed since" in refused("promote", *source, "moved.npy")
    assert run("apply", tmp_path / "model", *source, "-o", "moved.npy")["written"] == len(X)
    run("promote", *source, "moved.npy")


def test_a_target_that_is_taken_is_left_alone(refused, run, shop, model, by_class):
    taken = write_faiss(shop.folder / "taken.faiss", shop.X)
    before = taken.read_bytes()
    assert "not made by hubless" in refused("apply", model, *shop.source, "-o", "taken.faiss")
    assert "not made by hubless" in refused("promote", *shop.source, "taken.faiss")
    assert taken.read_bytes() == before
    run("apply", model, *shop.source, "-o", "moved.faiss")
    assert "moved by model" in refused("apply", by_class, *shop.source, "-o", "moved.faiss")


def test_a_model_that_moves_nothing_is_not_applied(refused, shop):
    hubless.save(Repair(Stay().fit(shop.X, shop.y)), shop.folder / "stay")
    assert "moves nothing" in refused("apply", shop.folder / "stay", *shop.source, "-o", "moved.faiss")


def test_inner_product_of_unequal_lengths_is_refused(run, refused, shop, tmp_path):
    write_faiss(shop.index, shop.X, faiss.IndexFlatIP(D))
    found = run("doctor", *shop.source)
    assert found["verdict"] == "do not move"
    assert "not all have length 1" in " ".join(found["advice"])
    assert found["advice"][-1].endswith("hubless fit INDEX --queries LOG -o model")  # which is not refused
    said = refused("fit", *shop.source, "--labels", "category", "-o", tmp_path / "m")
    assert "inner product" in said
    assert "hubless fit INDEX --queries LOG" in said
    hubless.save(Repair(Shrink().fit(unit(shop.X), shop.y), "cosine", "category"), tmp_path / "cosine")
    assert "inner product" in refused("apply", tmp_path / "cosine", *shop.source, "-o", "moved.faiss")
    queries = ["--queries", shop.folder / "queries.npy"]
    assert "inner product" in refused("preview", tmp_path / "cosine", *shop.source, *queries)
    assert not (shop.folder / "moved.faiss").exists()


def test_inner_product_of_unit_vectors_is_cosine(run, shop, tmp_path):
    """After promote, the index answers as cosine search over moved vectors does, which are of length 1."""
    X = unit(shop.X).astype(np.float32)
    write_faiss(shop.index, X, faiss.IndexFlatIP(D))
    assert "safe" in run("doctor", *shop.source)["advice"][0]
    options = ["--labels", "category", "--mover", "ridge", "-o", tmp_path / "unit"]
    assert run("fit", *shop.source, *options)["data"]["metric"] == "cosine"
    shown = run(
        "preview", tmp_path / "unit", *shop.source, *shop.asking, "--fetch", N, "-k", 5, "--rows", *range(60)
    )
    made = run("apply", tmp_path / "unit", *shop.source, "-o", "moved.faiss")
    assert "length 1" in made["notes"][0]
    run("promote", *shop.source, "moved.faiss")
    served = faiss.read_index(str(shop.index))
    np.testing.assert_allclose(np.linalg.norm(served.reconstruct_n(0, N), axis=1), 1, atol=1e-6)
    alpha = lambda_of(unit(X), shop.y, hubless.load(tmp_path / "unit").mover.alpha.value)
    moved = unit(reference.move_labeled(unit(X), shop.y, alpha))
    _, expected = reference.nearest(unit(shop.queries), moved, 5)
    np.testing.assert_array_equal(served.search(shop.queries, 5)[1], expected)
    assert [[item["id"] for item in entry["after"]] for entry in shown] == [
        [shop.ids[i] for i in row] for row in expected
    ]


def test_a_model_of_another_metric_or_dimension_is_refused(refused, shop, model, library):
    np.save(shop.folder / "narrow.npy", shop.X[:, :7])
    narrow = [shop.folder / "narrow.npy", "--metric", "l2", "--items", shop.items]
    by_cosine = library.folder / "model"
    for verb, more in {
        "apply": ["-o", "moved.faiss"],
        "preview": ["--queries", shop.folder / "queries.npy"],
        "evaluate": [*shop.asking, "--labels", "category"],
    }.items():
        assert "cosine" in refused(verb, by_cosine, *shop.source, *more), verb
        assert "7 columns" in refused(verb, model, *narrow, *more), verb
    queries = shop.folder / "queries.npy"
    labels = ["--labels", "category"]
    assert "cosine" in refused("predict", by_cosine, queries, "--source", *shop.source, *labels)
    assert "7 columns" in refused("predict", model, queries, "--source", *narrow)


def test_queries_of_another_dimension_are_refused(run, refused, shop, model):
    np.save(shop.folder / "short.npy", shop.queries[:, :5])
    write_csv(shop.folder / "short.csv", category=shop.truth)
    asking = ["--queries", shop.folder / "short.npy", "--query-items", shop.folder / "short.csv"]
    assert "5 columns" in refused("doctor", *shop.source, *asking)
    assert "5 columns" in refused("evaluate", model, *shop.source, *asking, "--labels", "category")
    assert "5 columns" in refused("preview", model, *shop.source, *asking)
    predicting = ["predict", model, shop.folder / "short.npy", "--source", *shop.source]
    assert "5 columns" in refused(*predicting)
    run("apply", model, *shop.source, "-o", "moved.faiss")
    run("promote", *shop.source, "moved.faiss")
    assert "5 columns" in refused(*predicting)


def test_only_the_target_is_written(run, shop, model):
    before = tree(shop.folder)
    run("doctor", *shop.source)
    run("preview", model, *shop.source, *shop.asking)
    run("evaluate", model, *shop.source, *shop.asking, "--labels", "category")
    run("predict", model, shop.folder / "queries.npy", "--source", *shop.source)
    run("status", *shop.source)
    assert tree(shop.folder) == before
    run("apply", model, *shop.source, "-o", "moved.faiss")
    after = tree(shop.folder)
    assert set(after) - set(before) == {"moved.faiss", "moved.faiss.hubless.json"}
    assert {name: after[name] for name in before} == before
