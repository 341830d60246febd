"""`hubless preview` and `hubless predict`, compared with plain loops."""

import csv
from collections import Counter

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import hubless
from tests import reference
from tests.cli.shops import N, unit


def test_preview_ranks_what_it_fetched(run, words, shop, model):
    moved = hubless.load(model).move(shop.X).astype(np.float64)
    asking = ["--queries", shop.folder / "queries.npy"]
    for fetch in (15, N, 10 * N):
        found = run("preview", model, *shop.source, *asking, "--rows", 7, 2, "--fetch", fetch, "-k", 6)
        for entry, row in zip(found, (7, 2), strict=True):
            query = shop.queries[row]
            distances, nearby = reference.nearest([query], shop.X, min(fetch, N))
            again = sorted((reference.distance(query, moved[i]), i) for i in nearby[0])[:6]
            assert [item["id"] for item in entry["before"]] == [shop.ids[i] for i in nearby[0][:6]]
            assert [item["id"] for item in entry["after"]] == [shop.ids[i] for _, i in again]
            ranks = [1 + nearby[0].tolist().index(i) for _, i in again]
            assert [item["was"] for item in entry["after"]] == ranks
            assert [item["distance"] for item in entry["after"]] == pytest.approx(
                [d for d, _ in again], rel=1e-5
            )
            assert [i["distance"] for i in entry["before"]] == pytest.approx(distances[0][:6], rel=1e-5)
    # with all items fetched, what is shown is exact search over moved vectors
    _, exact = reference.nearest(shop.queries[[7, 2]], moved, 6)
    assert [[item["id"] for item in entry["after"]] for entry in found] == [
        [shop.ids[i] for i in row] for row in exact
    ]
    assert any(item["was"] != rank for entry in found for rank, item in enumerate(entry["after"], 1))
    said = words("preview", model, *shop.source, *asking, "--text", "text")
    assert said.count("query ") == 3
    assert "text of i" in said


@pytest.mark.parametrize("has_numbers", [False, True])
def test_preview_asks_with_items(run, refused, shop, model, has_numbers):
    source = [shop.index] if has_numbers else shop.source
    names = [*range(N)] if has_numbers else shop.ids
    found = run("preview", model, *source, "--like", names[9], names[4], "-k", 3)
    assert [entry["query"] for entry in found] == [names[9], names[4]]
    _, rows = reference.nearest(shop.X[[9, 4]], shop.X, 3)
    assert [[item["id"] for item in entry["before"]] for entry in found] == [
        [names[i] for i in row] for row in rows
    ]
    assert "i99999" in refused("preview", model, *source, "--like", names[9], "i99999")


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_predict_is_a_vote_of_moved_items(run, words, shop, tmp_path, metric):
    """As scikit-learn's classifier on moved vectors; it breaks ties otherwise, so where most agree."""
    np.save(tmp_path / "v.npy", shop.X)
    source = [tmp_path / "v.npy", "--metric", metric, "--items", shop.items]
    run("fit", *source, "--labels", "category", "--mover", "ridge", "-o", tmp_path / "m")
    moved = hubless.load(tmp_path / "m").move(shop.X)
    queries = unit(shop.queries) if metric == "cosine" else shop.queries
    for k in (1, 3):
        votes = KNeighborsClassifier(k, algorithm="brute").fit(moved, shop.y)
        rows = votes.kneighbors(queries, return_distance=False)
        clear = [Counter(shop.y[row]).most_common(1)[0][1] > k // 2 for row in rows]
        assert np.mean(clear) > 0.8
        found = run("predict", tmp_path / "m", shop.folder / "queries.npy", "--source", *source, "-k", k)
        assert [row["query"] for row in found] == [*range(60)]
        classes = np.array([row["class"] for row in found])
        np.testing.assert_array_equal(classes[clear], votes.predict(queries)[clear])
        # the moved index itself, asked as it is, answers alike
        run("apply", tmp_path / "m", *source, "-o", f"moved{k}.npy")
        moved_source = [tmp_path / f"moved{k}.npy", *source[1:]]
        said = words(
            "predict", tmp_path / "m", shop.folder / "queries.npy", "--source", *moved_source, "-k", k
        )
        assert said.split() == classes.tolist()


def test_predict_by_a_saved_classifier(words, shop):
    saved = hubless.MoveLabeledClassifier(alpha=1.0, n_neighbors=3).fit(shop.X, shop.y)
    hubless.save(saved, shop.folder / "classifier")
    said = words("predict", shop.folder / "classifier", shop.folder / "queries.npy")
    assert said.split() == saved.predict(shop.queries).tolist()


def test_predict_does_not_move_twice(run, refused, shop, model, by_class):
    run("apply", model, *shop.source, "-o", "moved.faiss")
    moved = [shop.folder / "moved.faiss", "--items", shop.items]
    queries = shop.folder / "queries.npy"
    assert "already moved" in refused(
        "predict", by_class, queries, "--source", *moved, "--labels", "category"
    )
    assert "--source" in refused("predict", model, queries)


def test_predict_gives_probabilities_and_refuses(run, words, refused, shop, model, tmp_path):
    """As scikit-learn users know it from the classifier; the table and JSON say the same."""
    queries, source = shop.folder / "queries.npy", ["--source", *shop.source]
    far = np.vstack([shop.queries, shop.queries[:5] + 40])
    np.save(tmp_path / "far.npy", far)
    asked = ["predict", model, tmp_path / "far.npy", *source, "--reject", 0.1]
    found = run(*asked, "--unknown", "none, of these")
    assert {*found[0]} == {"query", "class", "probability", "familiarity", "rejected"}
    assert all(row["rejected"] == (row["familiarity"] <= 0.1) for row in found)
    assert all((row["class"] == "none, of these") == row["rejected"] for row in found)
    assert all(row["rejected"] for row in found[60:])
    assert np.mean([row["rejected"] for row in found[:60]]) < 0.3
    table = words(*asked, "--table")
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["class"] for row in rows[60:]] == ["unknown"] * 5
    assert [float(row["probability"]) for row in rows] == [row["probability"] for row in found]
    assert [row["rejected"] for row in rows] == [str(row["rejected"]) for row in found]
    plain = run("predict", model, queries, *source)
    assert {*plain[0]} == {"query", "class", "probability", "familiarity"}
    assert {*run("predict", model, queries, *source, "-k", 1)[0]} == {"query", "class"}
    assert "leave out reject" in refused("predict", model, queries, *source, "-k", 1, "--reject", 0.1)


def test_a_saved_classifier_gives_its_probabilities(run, refused, shop):
    saved = hubless.MoveLabeledClassifierCV().fit(shop.X, shop.y)
    hubless.save(saved, shop.folder / "cv")
    found = run("predict", shop.folder / "cv", shop.folder / "queries.npy", "--reject", 0.2)
    P, familiarity = saved.predict_proba(shop.queries), saved.familiarity(shop.queries)
    assert [row["probability"] for row in found] == pytest.approx(P.max(axis=1))
    assert [row["familiarity"] for row in found] == pytest.approx(familiarity)
    assert [row["class"] for row in found] == saved.predict(shop.queries, reject=0.2).tolist()
    hubless.save(hubless.MoveLabeledClassifier().fit(shop.X, shop.y), shop.folder / "plain")
    queries = shop.folder / "queries.npy"
    assert {*run("predict", shop.folder / "plain", queries)[0]} == {"query", "class"}
    assert "calibrate" in refused("predict", shop.folder / "plain", queries, "--reject", 0.2)
