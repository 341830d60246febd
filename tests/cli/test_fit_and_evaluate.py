"""`hubless fit` and `hubless evaluate`, compared with plain loops."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import ndcg_score

import hubless
from tests import reference
from tests.cli.shops import D, N, figures_of, lambda_of, unit, write_csv


def test_fit_from_labels_is_the_mover_of_the_paper(shop, model):
    saved = hubless.load(model)
    X = shop.X.astype(np.float64)
    alpha = lambda_of(X, shop.y, saved.mover.alpha.value)
    np.testing.assert_allclose(
        saved.move(shop.X), reference.move_labeled(X, shop.y, alpha), rtol=1e-4, atol=1e-5
    )
    assert np.abs(saved.move(shop.X) - shop.X).max() > 0.1  # so the line above can fail


def test_fit_chooses_by_itself_and_says_why(run, words, shop):
    out = shop.folder / "auto"
    found = run("fit", *shop.source, "--labels", "category", "-o", out)
    assert found["learned"]["n"] == N
    assert found["learned"]["classes"] == 4
    assert found["learned"]["column"] == "category"
    (figure,) = found["figures"]
    assert 0 < figure["before"] <= figure["after"] <= 1
    assert hubless.load(out).hash == found["hash"]
    assert run("fit", *shop.source, "--labels", "category", "-o", out)["hash"] == found["hash"]  # no chance
    said = words("fit", *shop.source, "--labels", "category", "-o", out)
    assert "held-out" in said
    assert f"next: hubless apply {out}" in said or "keep the index as it is" in said


def test_printed_commands_run_as_printed(words, shop, tmp_path):
    """From fit to rollback, each verb prints the next command; names with spaces are quoted."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    index, items = (Path(shutil.copy(path, folder)) for path in (shop.index, shop.items))
    source = [index, "--items", items, "--id", "id"]
    said = words("fit", *source, "--labels", "category", "--mover", "ridge", "-o", folder / "a model")
    (look,) = re.findall(r"To see it: hubless (.*)", said)
    assert "(was " in words(*shlex.split(look))
    for verb in ("apply", "promote", "rollback"):
        (command,) = re.findall(rf"hubless ({verb} .*)", said)
        said = words(*shlex.split(command))
    assert "serves the original again" in said


def test_a_folder_may_be_the_current_one(words, shop, tmp_path, monkeypatch):
    parts = tmp_path / "parts"
    parts.mkdir()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(shop.X.reshape(-1)), D)
    pq.write_table(pa.table({"v": vectors, "category": shop.y.tolist()}), parts / "0.parquet")
    monkeypatch.chdir(parts)
    model = tmp_path / "m"
    line = words("fit", ".", "--labels", "category", "--mover", "ridge", "-o", model).splitlines()[-1]
    assert line == f"next: hubless apply {model} . -o parts-moved"
    words(*shlex.split(line.removeprefix("next: hubless ")))
    assert (tmp_path / "parts-moved" / "0.parquet").exists()


def test_items_without_a_label_are_not_learned_from(run, shop):
    y = ["" if row % 5 == 0 else value for row, value in enumerate(shop.y)]
    write_csv(shop.items, id=shop.ids, category=y)
    options = ["--labels", "category", "--mover", "ridge", "-o", shop.folder / "some"]
    found = run("fit", *shop.source, *options)
    assert found["learned"]["n"] == sum(value != "" for value in y)
    known = np.array([value != "" for value in y])
    X, saved = shop.X[known].astype(np.float64), hubless.load(shop.folder / "some")
    alpha = lambda_of(X, shop.y[known], saved.mover.alpha.value)
    expected = reference.move_labeled(X, shop.y[known], alpha)
    np.testing.assert_allclose(saved.move(shop.X[known]), expected, rtol=1e-4, atol=1e-5)


def test_fit_from_pairs_is_ridge_toward_the_identity_and_a_held_step(library):
    """By loops: μ + W(z − μ) at length 1, then a step toward its queries, held for those of others."""
    learned, saved = library.fitted["learned"], hubless.load(library.folder / "model")
    assert learned["queries"] == 100
    assert learned["pairs left out"] == 0
    X, queries = unit(library.X), unit(library.queries)
    train = [int(q[1:]) for q in library.parts["train"]]
    pairs = [
        (int(q[1:]), int(d[1:])) for q in library.parts["train"] for d in library.relevant[q]
    ]  # in the order of the file
    assert learned["n"] == len(pairs)
    moved = X.astype(np.float64)
    if "λ" in learned["mover"]:
        x, z = queries[[q for q, _ in pairs]], X[[d for _, d in pairs]]
        mu = reference.total_mean(z)
        scale = np.trace(reference.moments(z - mu, z - mu)[1]) / D
        W = reference.ridge_toward(x - mu, z - mu, saved.mover.alpha.value * scale, toward="identity")
        moved = unit(reference.move(X, W, mu))
    assert saved.steps.step > 0
    rows = [*dict.fromkeys(d for _, d in pairs)]
    own = [[train.index(q) for q, e in pairs if e == d] for d in rows]
    held = {"shrink": 0.5, "share": 0.03, "fewest": 10, "rounds": 2}
    moved[rows] = reference.held_steps(moved[rows], queries[train], own, saved.steps.step, **held)
    got = saved.move(library.X, library.ids)
    np.testing.assert_allclose(got, moved, rtol=1e-4, atol=1e-5)


def test_evaluate_by_labels(run, words, shop, model):
    found = run("evaluate", model, *shop.source, *shop.asking, "--labels", "category", "-k", 5)
    right, same, counts = [], [], []
    for X in (shop.X, hubless.load(model).move(shop.X)):
        _, rows = reference.nearest(shop.queries, X, 10)
        right.append(reference.vote(shop.y[rows[:, :5]]) == shop.truth)
        same.append([np.mean(shop.y[row] == c) for row, c in zip(rows, shop.truth, strict=True)])
        counts.append(reference.k_occurrence(rows, N))
    figures = figures_of(found)
    for name, values in (("accuracy", right), ("precision@10", same)):
        entry = figures[name, "all"]
        assert entry["n"] == 60
        assert entry["before"] == pytest.approx(np.mean(values[0]))
        assert entry["after"] == pytest.approx(np.mean(values[1]))
        apart = np.subtract(values[1], values[0], dtype=float)
        half = 1.96 * np.std(apart, ddof=1) / np.sqrt(60)
        assert entry["low"] == pytest.approx(np.mean(apart) - half)
        assert entry["high"] == pytest.approx(np.mean(apart) + half)
    assert found["fixed"] == sum(after and not before for before, after in zip(*right, strict=True)) > 0
    assert found["broken"] == sum(before and not after for before, after in zip(*right, strict=True))
    for when, count in zip(("before", "after"), counts, strict=True):
        assert found["hubness"][when]["skewness"] == pytest.approx(reference.skewness(count))
    said = words("evaluate", model, *shop.source, *shop.asking, "--labels", "category", "-k", 5)
    assert f"fixed {found['fixed']}, broken {found['broken']}" in said
    assert f"{figures['accuracy', 'all']['after']:.3f}" in said


def test_evaluate_by_pairs(run, words, library):
    where = [library.folder / "model", *library.source, *library.asking]
    found = run("evaluate", *where, "--pairs", library.folder / "test.tsv")
    names = library.parts["test"]
    queries = unit(library.queries)[[int(name[1:]) for name in names]]
    taught = {d for name in library.parts["train"] for d in library.relevant[name]}
    seen = np.array([any(d in taught for d in library.relevant[name]) for name in names])
    assert 5 < seen.sum() < len(seen) - 5
    moved = hubless.load(library.folder / "model").move(library.X, library.ids)
    scores = [loops(queries, X, [library.relevant[name] for name in names]) for X in (library.X, moved)]
    figures = figures_of(found)
    for measure in ("nDCG@10", "MRR@10", "hit rate@10", "recall@10"):
        for part, mask in (("all", seen | True), ("seen", seen), ("unseen", ~seen)):
            entry = figures[measure, part]
            assert entry["n"] == mask.sum()
            for when, score in zip(("before", "after"), scores, strict=True):
                assert entry[when] == pytest.approx(np.mean(np.array(score[measure])[mask])), (measure, part)
    hits = [np.array(score["hit rate@10"], dtype=bool) for score in scores]
    assert found["fixed"] == (hits[1] & ~hits[0]).sum()
    assert found["broken"] == (hits[0] & ~hits[1]).sum()
    assert figures["nDCG@10", "seen"]["after"] > figures["nDCG@10", "seen"]["before"]
    assert "unseen" in words("evaluate", *where, "--pairs", library.folder / "test.tsv")


def loops(queries, X, relevant):
    """Measures of every query, by loops over exact search; nDCG by scikit-learn."""
    found = {"nDCG@10": [], "MRR@10": [], "hit rate@10": [], "recall@10": []}
    distances, rows = reference.nearest(queries, unit(X), len(X))
    for distance, row, answers in zip(distances, rows, relevant, strict=True):
        worth = [answers.get(f"d{i}", 0) for i in row]
        hits = [place for place, value in enumerate(worth[:10], 1) if value]
        found["nDCG@10"].append(ndcg_score([worth], [-distance], k=10))
        found["MRR@10"].append(1 / hits[0] if hits else 0.0)
        found["hit rate@10"].append(float(bool(hits)))
        found["recall@10"].append(len(hits) / len(answers))
    return found


def test_one_query_has_no_interval_and_unknown_judgements_are_counted(run, library):
    test = library.folder / "one.tsv"
    test.write_text("query-id\tcorpus-id\tscore\nq0\td5\t1\nq0\tnobody\t1\nstranger\td5\t1\n")
    where = [library.folder / "model", *library.source, *library.asking]
    found = run("evaluate", *where, "--pairs", test)
    assert "2 judgements are on an unknown query or item, or one without a vector." in found["notes"]
    assert figures_of(found)["nDCG@10", "all"]["low"] is None


def test_a_model_that_moves_by_class(run, shop, by_class):
    """Shrink by loops: part of the way to the mean of the class, from the column that it learned from."""
    moved = np.array(reference.shrink(shop.X.astype(np.float64), shop.y, 0.4))
    other = write_csv(
        shop.items, id=shop.ids, category=shop.y, kind=["x" if c < "2" else "y" for c in shop.y]
    )
    assert other == shop.items
    write_csv(shop.folder / "queries.csv", kind=["x" if c < "2" else "y" for c in shop.truth])
    found = run("evaluate", by_class, *shop.source, *shop.asking, "--labels", "kind", "-k", 3)
    kinds = np.where(shop.y < "2", "x", "y")
    _, rows = reference.nearest(shop.queries, moved, 3)
    expected = reference.vote(kinds[rows])
    assert figures_of(found)["accuracy", "all"]["after"] == pytest.approx(
        np.mean(expected == np.where(shop.truth < "2", "x", "y"))
    )
    predicted = run(
        "predict",
        by_class,
        shop.folder / "queries.npy",
        "--source",
        *shop.source,
        "--labels",
        "kind",
        "-k",
        3,
    )
    assert [row["class"] for row in predicted] == expected.tolist()


def test_classes_that_are_numbers_or_missing(run, shop, tmp_path, by_class):
    """A column of numbers holds the classes "0" to "3" too; an item without a class stays where it is."""
    y = [None if row % 7 == 0 else int(value) for row, value in enumerate(shop.y)]
    column = pa.FixedSizeListArray.from_arrays(pa.array(shop.X.reshape(-1)), D)
    pq.write_table(pa.table({"id": shop.ids, "v": column, "category": y}), tmp_path / "v.parquet")
    made = run("apply", by_class, tmp_path / "v.parquet", "--metric", "l2", "-o", "moved.parquet")
    assert f"{y.count(None)} items are not moved" in made["notes"][0]
    got = np.array(pq.read_table(tmp_path / "moved.parquet")["v"].to_pylist())
    X = shop.X.astype(np.float64)
    moved = np.array(reference.shrink(X, shop.y, 0.4))
    expected = np.where([[value is None] for value in y], X, moved)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
