"""The verbs for an index, run as a user runs them, on data that plain loops can check."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
import termios
from collections import Counter
from contextlib import suppress
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import ndcg_score
from sklearn.neighbors import KNeighborsClassifier

import hubless
from hubless import cli
from hubless.index.repair import Repair
from hubless.movers import Shrink, Stay, Whiten
from hubless.stores.switch import fingerprint
from tests import reference

N, D = 240, 12
RUN = [sys.executable, "-m", "hubless"]


# --- how verbs are run --------------------------------------------------------------------------------------


def write_csv(path, **columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_faiss(path, X, index=None):
    index = faiss.IndexFlatL2(X.shape[1]) if index is None else index
    index.add(X)
    faiss.write_index(index, str(path))
    return path


def unit(X):
    """Rows of length 1, in float64."""
    return np.array([x / np.linalg.norm(x) for x in np.asarray(X, dtype=np.float64)])


def tree(folder):
    """Every file under a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- items with labels, and items with queries --------------------------------------------------------------


class Shop:
    """240 items of 4 classes in an index by L2, with a table beside it; 60 queries with their classes."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((4, D))
        self.y, self.asked = (rng.integers(0, 4, n).astype(str) for n in (N, 60))
        self.X, self.queries = (
            (centres[y.astype(int)] + rng.standard_normal((len(y), D))).astype(np.float32)
            for y in (self.y, self.asked)
        )
        self.ids = [f"i{row}" for row in rng.permutation(N)]
        self.texts = [f"text of {name}, é" for name in self.ids]
        self.index = write_faiss(folder / "index.faiss", self.X)
        self.items = write_csv(folder / "items.csv", id=self.ids, text=self.texts, category=self.y)
        np.save(folder / "queries.npy", self.queries)
        write_csv(folder / "queries.csv", category=self.asked)
        self.source = [self.index, "--items", self.items]
        self.asking = ["--queries", folder / "queries.npy", "--query-items", folder / "queries.csv"]
        self.folder = folder


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder of the paper's mover, learned by the command line from the labels of the shop."""
    shop = Shop(tmp_path_factory.mktemp("shop"))
    arguments = ["fit", *shop.source, "--labels", "category", "--mover", "ridge", "-o", shop.folder / "model"]
    assert cli.main([*map(str, arguments)]) == 0
    return shop.folder / "model"


@pytest.fixture(scope="module")
def by_class(tmp_path_factory):
    """Folder of a model that asks for the class of an item."""
    folder = tmp_path_factory.mktemp("shrink")
    shop = Shop(folder)
    mover = Shrink(0.4).fit(shop.X, shop.y)
    hubless.save(Repair(mover, "l2", label="category"), folder / "model")
    return folder / "model"


class Library:
    """200 documents compared by cosine; queries know half of what a document says, and a thing of its own."""

    def __init__(self, folder):
        rng = np.random.default_rng(1)
        self.X = rng.standard_normal((200, D)).astype(np.float32)
        self.X[:, 6:] *= 2  # what queries know nothing of
        self.ids = [f"d{number}" for number in range(200)]
        answers = [rng.choice(60 + 60 * (n >= 100), 1 + n % 2, replace=False) for n in range(150)]
        meant = self.X + rng.standard_normal(self.X.shape)
        near = np.array([meant[rows].mean(axis=0) for rows in answers])
        near[:, 6:] = 0
        self.queries = (near + 0.3 * rng.standard_normal(near.shape)).astype(np.float32)
        self.relevant = {  # the last of several is worth more; one that answers nothing is worth 0
            f"q{number}": {self.ids[row]: 1 + place for place, row in enumerate(rows)}
            for number, rows in enumerate(answers)
        }
        np.save(folder / "docs.npy", self.X)
        np.save(folder / "queries.npy", self.queries)
        (folder / "docs.json").write_text(json.dumps(self.ids))
        (folder / "queries.json").write_text(json.dumps([*self.relevant]))
        self.parts = {"train": [*self.relevant][:100], "test": [*self.relevant][100:]}
        for part, names in self.parts.items():
            rows = [(q, d, worth) for q in names for d, worth in self.relevant[q].items()]
            rows.append((names[0], "d0" if "d0" not in self.relevant[names[0]] else "d1", 0))
            lines = ["\t".join(map(str, row)) for row in [("query-id", "corpus-id", "score"), *rows]]
            (folder / f"{part}.tsv").write_text("\n".join(lines) + "\n")
        self.source = [folder / "docs.npy", "--metric", "cosine", "--items", folder / "docs.json"]
        self.asking = ["--queries", folder / "queries.npy", "--query-items", folder / "queries.json"]
        self.folder = folder


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library with a model in its folder, learned by the command line, and what `fit` told."""
    library = Library(tmp_path_factory.mktemp("library"))
    arguments = ["fit", *library.source, *library.asking, "--pairs", library.folder / "train.tsv"]
    command = [*RUN, *map(str, arguments), "-o", library.folder / "model", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    library.told = json.loads(ran.stdout)
    return library


# --- doctor -------------------------------------------------------------------------------------------------


def occurrences(X, k):
    """How often each item is among the k nearest of another, by loops."""
    _, found = reference.nearest(X, X, k, exclude_self=True)
    return reference.k_occurrence(found, len(X))


@pytest.fixture
def crowd():
    """150 points of a Gaussian in 20 dimensions, the first few near its middle, everybody's neighbours."""
    X = np.random.default_rng(3).standard_normal((150, 20)).astype(np.float32)
    X[:5] *= 0.3
    return X


def test_doctor_finds_hubs(run, words, tmp_path, crowd):
    counts = occurrences(crowd, 10)
    items = write_csv(tmp_path / "items.csv", title=[f"number {row}" for row in range(150)])
    source = [write_faiss(tmp_path / "v.faiss", crowd), "--items", items]
    found = run("doctor", *source)
    assert found["hubness"]["skewness"] == pytest.approx(reference.skewness(counts), rel=1e-9)
    assert reference.skewness(counts) > 3
    assert found["verdict"] == "hubs"
    assert found["hubness"]["antihub_share"] == pytest.approx(reference.antihub_share(counts))
    worst = sorted(range(150), key=lambda row: (-counts[row], row))[:10]
    assert [hub["id"] for hub in found["hubs"]] == worst
    assert [hub["occurrence"] for hub in found["hubs"]] == [counts[row] for row in worst]
    assert [hub["text"] for hub in found["hubs"]] == [f"number {row}" for row in worst]
    lengths = [reference.distance(x, 0 * x) for x in crowd]
    assert found["norms"]["min"] == pytest.approx(min(lengths))
    assert found["norms"]["max"] == pytest.approx(max(lengths))
    assert found["norms"]["median"] == pytest.approx(np.median(lengths))
    assert (found["facts"]["metric"], found["facts"]["count"]) == ("l2", 150)
    said = words("doctor", *source)
    assert f"{counts[worst[0]]} ×  {worst[0]}  number {worst[0]}" in said
    assert "moving is safe" in said


def test_doctor_asks_with_queries_and_by_cosine(run, tmp_path, crowd):
    np.save(tmp_path / "v.npy", crowd)
    np.save(tmp_path / "q.npy", crowd[:30] + 0.5)
    found = run("doctor", tmp_path / "v.npy", "--metric", "cosine", "--queries", tmp_path / "q.npy", "-k", 5)
    _, rows = reference.nearest(unit(crowd[:30] + np.float32(0.5)), unit(crowd), 5)
    counts = reference.k_occurrence(rows, 150)
    assert found["hubness"]["skewness"] == pytest.approx(reference.skewness(counts))
    assert (found["hubness"]["n_queries"], found["hubness"]["k"]) == (30, 5)


def test_doctor_finds_no_hubs_on_a_line(run, words, tmp_path):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).random((200, 1)).astype(np.float32))
    found = run("doctor", tmp_path / "v.npy", "--metric", "l2")
    assert found["hubness"]["skewness"] < 1
    assert found["verdict"] == "no hubs"
    assert "no hubs to speak of" in words("doctor", tmp_path / "v.npy", "--metric", "l2")


def test_doctor_counts_rows_that_are_not_in_order(run, tmp_path):
    rows = np.random.default_rng(0).standard_normal((40, 3)).tolist()
    rows[3] = rows[7] = None
    rows[5], rows[8], rows[9] = [np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [0.0, 0.0, 0.0]
    rows[11] = rows[12] = rows[10]
    table = pa.table({"v": pa.array(rows, pa.list_(pa.float32(), 3))})
    pq.write_table(table, tmp_path / "v.parquet")
    found = run("doctor", tmp_path / "v.parquet")
    told = {name: found[name] for name in ("nulls", "not_finite", "zeros", "duplicates")}
    assert told == {"nulls": 2, "not_finite": 2, "zeros": 1, "duplicates": 2}
    assert found["facts"]["metric"] is None
    assert found["hubness"]["n_objects"] == 36


@pytest.mark.parametrize("kind", ["SQ8", "IVF4,PQ4x4", "PQ4x4"])
def test_doctor_warns_of_quantised_vectors(run, refused, shop, model, kind):
    index = faiss.index_factory(D, kind)
    index.train(shop.X)
    write_faiss(shop.index, shop.X, index)
    found = run("doctor", *shop.source)
    assert found["verdict"] == "do not move"
    assert "quantised" in " ".join(found["advice"])
    assert "quantised" in refused("fit", *shop.source, "--labels", "category", "-o", shop.folder / "new")
    assert "quantised" in refused("apply", model, *shop.source, "-o", "moved.faiss")
    assert not (shop.folder / "new").exists()


def test_doctor_knows_what_is_moved(run, words, shop, model):
    run("apply", model, *shop.source, "-o", "moved.faiss")
    hash = hubless.load(model).hash
    assert run("doctor", shop.folder / "moved.faiss")["verdict"] == "moved"
    run("promote", shop.index, "moved.faiss")
    assert run("doctor", *shop.source)["verdict"] == "moved"
    assert hash[:12] in words("doctor", *shop.source)


def test_doctor_of_too_few(run, tmp_path):
    np.save(tmp_path / "v.npy", np.eye(4, dtype=np.float32))
    found = run("doctor", tmp_path / "v.npy")
    assert (found["hubness"], found["verdict"]) == (None, "no hubs")


# --- fit ----------------------------------------------------------------------------------------------------


def lambda_of(X, y, relative):
    """λ of the paper's mover, where it is given in mean eigenvalues of K."""
    mu = reference.total_mean(X)
    z = np.array([X[j] - mu for _, j in reference.pairs(reference.targets(X, y, 1))])
    return relative * np.trace(reference.moments(z, z)[1]) / X.shape[1]


def test_fit_from_labels_is_the_mover_of_the_paper(shop, model):
    saved = hubless.load(model)
    X = shop.X.astype(np.float64)
    alpha = lambda_of(X, shop.y, saved.mover.alpha.value)
    np.testing.assert_allclose(
        saved.move(shop.X), reference.move_labeled(X, shop.y, alpha), rtol=1e-4, atol=1e-5
    )
    assert np.abs(saved.move(shop.X) - shop.X).max() > 0.1  # so the line above can fail


def test_fit_chooses_for_itself_and_tells_why(run, words, shop):
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
    assert f"hubless preview {out}" in said or "keep the index as it is" in said


def test_fit_leaves_out_items_without_a_label(run, shop):
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


def test_fit_from_pairs_is_ridge_toward_the_identity_and_a_step(library):
    """By loops: μ + W(z − μ) at length 1, then a step toward the mean of own queries, less what is common."""
    learned, saved = library.told["learned"], hubless.load(library.folder / "model")
    assert learned["queries"] == 100
    assert learned["pairs left out"] == 0
    alpha, step = saved.mover.alpha.value, saved.own.step
    assert step > 0
    X, queries = unit(library.X), unit(library.queries)
    pairs = [
        (int(q[1:]), int(d[1:])) for q in library.parts["train"] for d in library.relevant[q]
    ]  # in the order of the file
    assert learned["n"] == len(pairs)
    x, z = queries[[q for q, _ in pairs]], X[[d for _, d in pairs]]
    mu = reference.total_mean(z)
    scale = np.trace(reference.moments(z - mu, z - mu)[1]) / D
    W = reference.ridge_toward(x - mu, z - mu, alpha * scale, toward="identity")
    moved = unit(reference.move(X, W, mu))
    own = {d: [q for q, e in pairs if e == d] for _, d in pairs}
    means = {d: np.mean([queries[q] for q in asked], axis=0) for d, asked in own.items()}
    common = np.mean([means[d] - moved[d] for d in own], axis=0)
    for d in own:
        moved[d] = (1 - step) * moved[d] + step * (means[d] - common)
    got = saved.move(library.X, library.ids)
    np.testing.assert_allclose(got, unit(moved), rtol=1e-4, atol=1e-5)


# --- evaluate -----------------------------------------------------------------------------------------------


def figures_of(found):
    return {(entry["measure"], entry["part"]): entry for entry in found["figures"]}


def test_evaluate_by_labels(run, words, shop, model):
    found = run("evaluate", model, *shop.source, *shop.asking, "--labels", "category", "-k", 5)
    right, same, counts = [], [], []
    for X in (shop.X, hubless.load(model).move(shop.X)):
        _, rows = reference.nearest(shop.queries, X, 10)
        right.append(reference.vote(shop.y[rows[:, :5]]) == shop.asked)
        same.append([np.mean(shop.y[row] == c) for row, c in zip(rows, shop.asked, strict=True)])
        counts.append(reference.k_occurrence(rows, N))
    told = figures_of(found)
    for name, values in (("accuracy", right), ("precision@10", same)):
        entry = told[name, "all"]
        assert entry["n"] == 60
        assert entry["before"] == pytest.approx(np.mean(values[0]))
        assert entry["after"] == pytest.approx(np.mean(values[1]))
        apart = np.subtract(values[1], values[0], dtype=float)
        half = 1.96 * np.std(apart, ddof=1) / np.sqrt(60)
        assert entry["low"] == pytest.approx(np.mean(apart) - half)
        assert entry["high"] == pytest.approx(np.mean(apart) + half)
    assert found["fixed"] == sum(after and not before for before, after in zip(*right, strict=True)) > 0
    assert found["broken"] == sum(before and not after for before, after in zip(*right, strict=True))
    for when, own in zip(("before", "after"), counts, strict=True):
        assert found["hubness"][when]["skewness"] == pytest.approx(reference.skewness(own))
    said = words("evaluate", model, *shop.source, *shop.asking, "--labels", "category", "-k", 5)
    assert f"fixed {found['fixed']}, broken {found['broken']}" in said
    assert f"{told['accuracy', 'all']['after']:.3f}" in said


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
    told = figures_of(found)
    for measure in ("nDCG@10", "MRR@10", "hit rate@10", "recall@10"):
        for part, mask in (("all", seen | True), ("seen", seen), ("unseen", ~seen)):
            entry = told[measure, part]
            assert entry["n"] == mask.sum()
            for when, own in zip(("before", "after"), scores, strict=True):
                assert entry[when] == pytest.approx(np.mean(np.array(own[measure])[mask])), (measure, part)
    hits = [np.array(own["hit rate@10"], dtype=bool) for own in scores]
    assert found["fixed"] == (hits[1] & ~hits[0]).sum()
    assert found["broken"] == (hits[0] & ~hits[1]).sum()
    assert told["nDCG@10", "seen"]["after"] > told["nDCG@10", "seen"]["before"]
    assert "unseen" in words("evaluate", *where, "--pairs", library.folder / "test.tsv")


def loops(queries, X, relevant):
    """Measures of every query, by loops over exact search; nDCG by scikit-learn."""
    found = {"nDCG@10": [], "MRR@10": [], "hit rate@10": [], "recall@10": []}
    distances, rows = reference.nearest(queries, unit(X), len(X))
    for distance, row, own in zip(distances, rows, relevant, strict=True):
        worth = [own.get(f"d{i}", 0) for i in row]
        hits = [place for place, value in enumerate(worth[:10], 1) if value]
        found["nDCG@10"].append(ndcg_score([worth], [-distance], k=10))
        found["MRR@10"].append(1 / hits[0] if hits else 0.0)
        found["hit rate@10"].append(float(bool(hits)))
        found["recall@10"].append(len(hits) / len(own))
    return found


def test_evaluate_tells_what_it_cannot_know(run, library):
    """One query has no interval; judgements of strangers are told."""
    test = library.folder / "one.tsv"
    test.write_text("query-id\tcorpus-id\tscore\nq0\td5\t1\nq0\tnobody\t1\nstranger\td5\t1\n")
    where = [library.folder / "model", *library.source, *library.asking]
    found = run("evaluate", *where, "--pairs", test)
    assert "2 judgements name a query or an item that is not there." in found["notes"]
    assert figures_of(found)["nDCG@10", "all"]["low"] is None


def test_a_model_that_moves_by_class(run, shop, by_class):
    """Shrink by loops: part of the way to the mean of the class, which is read from the column it knows."""
    moved = np.array(reference.shrink(shop.X.astype(np.float64), shop.y, 0.4))
    other = write_csv(
        shop.items, id=shop.ids, category=shop.y, kind=["x" if c < "2" else "y" for c in shop.y]
    )
    assert other == shop.items
    write_csv(shop.folder / "queries.csv", kind=["x" if c < "2" else "y" for c in shop.asked])
    found = run("evaluate", by_class, *shop.source, *shop.asking, "--labels", "kind", "-k", 3)
    kinds = np.where(shop.y < "2", "x", "y")
    _, rows = reference.nearest(shop.queries, moved, 3)
    expected = reference.vote(kinds[rows])
    assert figures_of(found)["accuracy", "all"]["after"] == pytest.approx(
        np.mean(expected == np.where(shop.asked < "2", "x", "y"))
    )
    told = run(
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
    assert [row["class"] for row in told] == expected.tolist()


def test_classes_that_are_numbers_or_missing(run, shop, tmp_path, by_class):
    """A column of numbers holds the classes "0" to "3" too; an item without a class stays where it is."""
    y = [None if row % 7 == 0 else int(value) for row, value in enumerate(shop.y)]
    column = pa.FixedSizeListArray.from_arrays(pa.array(shop.X.reshape(-1)), D)
    pq.write_table(pa.table({"id": shop.ids, "v": column, "category": y}), tmp_path / "v.parquet")
    made = run("apply", by_class, tmp_path / "v.parquet", "--metric", "l2", "-o", "moved.parquet")
    assert f"{y.count(None)} items stay" in made["notes"][0]
    got = np.array(pq.read_table(tmp_path / "moved.parquet")["v"].to_pylist())
    X = shop.X.astype(np.float64)
    moved = np.array(reference.shrink(X, shop.y, 0.4))
    expected = np.where([[value is None] for value in y], X, moved)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


# --- preview ------------------------------------------------------------------------------------------------


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


# --- apply, promote, rollback, status -----------------------------------------------------------------------


def test_the_whole_way_and_back(run, words, refused, shop, model):
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
    told = run("status", *shop.source)
    assert told["status"] == "serving moved"
    assert (Path(told["original"]).name, told["original_is_there"]) == (Path(kept).name, True)
    assert told["model"] == hubless.load(model).hash
    assert "serving moved" in words("status", *shop.source)
    assert "already moved" in refused("apply", model, *shop.source, "-o", "again.faiss")
    assert "already moved" in refused("fit", *shop.source, "--labels", "category", "-o", shop.folder / "m2")
    assert "already moved" in refused("preview", model, *shop.source, "--like", shop.ids[0])
    assert "already moved" in refused("evaluate", model, *shop.source, *shop.asking, "--labels", "category")
    assert "not there" in refused("promote", *shop.source, "moved.faiss")

    back = run("rollback", *shop.source)
    assert back["added_since"] == 0
    assert serves(before)
    assert shop.index.read_bytes() == original
    assert run("status", *shop.source)["status"] == "original"
    np.testing.assert_array_equal(faiss.read_index(back["moved_kept_as"]).search(shop.queries, 5)[1], after)


def test_there_and_back_any_number_of_times(words, shop, model):
    original = shop.index.read_bytes()
    for _ in range(3):
        assert "serves as before" in words("apply", model, *shop.source, "-o", shop.folder / "moved.faiss")
        assert "the original is kept" in words("promote", *shop.source, "moved.faiss")
        assert shop.index.read_bytes() != original
        assert "is the original again" in words("rollback", *shop.source)
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
    """One row among many is written to, in place and far from the ends of the file, and its size stays."""
    X = np.random.default_rng(0).standard_normal((90_000, 16)).astype(np.float32)  # 5.8 MB
    np.save(tmp_path / "v.npy", X)
    hubless.save(Repair(Shrink(0.5).fit(X[:9], ["0", "1", "2"] * 3), "l2", label="c"), tmp_path / "model")
    write_csv(tmp_path / "items.csv", c=[0] * len(X))
    source = [tmp_path / "v.npy", "--metric", "l2", "--items", tmp_path / "items.csv"]
    run("apply", tmp_path / "model", *source, "-o", "moved.npy")
    held = np.load(tmp_path / "v.npy", mmap_mode="r+")
    content = fingerprint(tmp_path / "v.npy")
    held[46_400] += 1
    held.flush()
    assert fingerprint(tmp_path / "v.npy") == content  # not among the samples, so the next line can fail
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
    assert "is of model" in refused("apply", by_class, *shop.source, "-o", "moved.faiss")


def test_a_model_that_moves_nothing_is_not_applied(refused, shop):
    hubless.save(Repair(Stay().fit(shop.X, shop.y)), shop.folder / "stay")
    assert "moves nothing" in refused("apply", shop.folder / "stay", *shop.source, "-o", "moved.faiss")


# --- the metric ---------------------------------------------------------------------------------------------


def test_inner_product_of_unequal_lengths_is_refused(run, refused, shop, tmp_path):
    write_faiss(shop.index, shop.X, faiss.IndexFlatIP(D))
    found = run("doctor", *shop.source)
    assert found["verdict"] == "do not move"
    assert "different lengths" in " ".join(found["advice"])
    assert "inner product" in refused("fit", *shop.source, "--labels", "category", "-o", tmp_path / "m")
    hubless.save(Repair(Shrink().fit(unit(shop.X), shop.y), "cosine", "category"), tmp_path / "cosine")
    assert "inner product" in refused("apply", tmp_path / "cosine", *shop.source, "-o", "moved.faiss")
    asked = ["--queries", shop.folder / "queries.npy"]
    assert "inner product" in refused("preview", tmp_path / "cosine", *shop.source, *asked)
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
    write_csv(shop.folder / "short.csv", category=shop.asked)
    asking = ["--queries", shop.folder / "short.npy", "--query-items", shop.folder / "short.csv"]
    assert "5 columns" in refused("doctor", *shop.source, *asking)
    assert "5 columns" in refused("evaluate", model, *shop.source, *asking, "--labels", "category")
    assert "5 columns" in refused("preview", model, *shop.source, *asking)
    predicting = ["predict", model, shop.folder / "short.npy", "--source", *shop.source]
    assert "5 columns" in refused(*predicting)
    run("apply", model, *shop.source, "-o", "moved.faiss")
    run("promote", *shop.source, "moved.faiss")
    assert "5 columns" in refused(*predicting)


# --- predict ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_predict_is_a_vote_of_moved_items(run, words, shop, tmp_path, metric):
    """As scikit-learn's classifier on moved vectors; it breaks ties otherwise, so where most agree."""
    np.save(tmp_path / "v.npy", shop.X)
    source = [tmp_path / "v.npy", "--metric", metric, "--items", shop.items]
    run("fit", *source, "--labels", "category", "--mover", "ridge", "-o", tmp_path / "m")
    moved = hubless.load(tmp_path / "m").move(shop.X)
    asked = unit(shop.queries) if metric == "cosine" else shop.queries
    for k in (1, 3):
        votes = KNeighborsClassifier(k, algorithm="brute").fit(moved, shop.y)
        rows = votes.kneighbors(asked, return_distance=False)
        clear = [Counter(shop.y[row]).most_common(1)[0][1] > k // 2 for row in rows]
        assert np.mean(clear) > 0.8
        found = run("predict", tmp_path / "m", shop.folder / "queries.npy", "--source", *source, "-k", k)
        assert [row["query"] for row in found] == [*range(60)]
        classes = np.array([row["class"] for row in found])
        np.testing.assert_array_equal(classes[clear], votes.predict(asked)[clear])
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


# --- move ---------------------------------------------------------------------------------------------------


def lines_of(X, **columns):
    rows = [
        {"id": f"n{place}", "vector": x.tolist(), **{name: own[place] for name, own in columns.items()}}
        for place, x in enumerate(X)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def pipe(model, given, *options):
    """`hubless move` between two pipes."""
    command = [*RUN, "move", str(model), *options]
    return subprocess.run(command, input=given, capture_output=True)


def test_move_lines_through_a_pipe(move, shop, model):
    text = lines_of(shop.X, words=shop.texts)
    ran = pipe(model, ("\n" + text).encode())  # an empty line is no row
    assert (ran.returncode, ran.stderr) == (0, b"")
    rows = [json.loads(line) for line in ran.stdout.decode().splitlines()]
    assert [row["id"] for row in rows] == [f"n{place}" for place in range(N)]
    assert [row["words"] for row in rows] == shop.texts
    X = shop.X.astype(np.float64)
    alpha = lambda_of(X, shop.y, hubless.load(model).mover.alpha.value)
    expected = reference.move_labeled(X, shop.y, alpha)
    np.testing.assert_allclose([row["vector"] for row in rows], expected, rtol=1e-4, atol=1e-5)
    code, out, said = move(model, ran.stdout.decode())
    assert (code, out) == (1, "")
    assert "line 1 was moved already" in said


def stream_of(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return sink.getvalue().to_pybytes()


def test_move_an_arrow_stream_by_class_through_a_pipe(shop, by_class, refused, monkeypatch):
    rows = [None if place == 3 else x.tolist() for place, x in enumerate(shop.X)]
    table = pa.table(
        {"id": shop.ids, "v": pa.array(rows, pa.list_(pa.float32())), "category": shop.y.tolist()}
    ).replace_schema_metadata({"of": "ours"})
    ran = pipe(by_class, stream_of(table), "--arrow")
    assert (ran.returncode, ran.stderr) == (0, b"")
    found = pa.ipc.open_stream(ran.stdout).read_all()
    assert found.schema.equals(table.schema)
    assert found.schema.metadata[b"of"] == b"ours"
    assert found.select(["id", "category"]).equals(table.select(["id", "category"]))
    expected = np.array(reference.shrink(shop.X.astype(np.float64), shop.y, 0.4))
    for place, vector in enumerate(found["v"].to_pylist()):
        if place == 3:
            assert vector is None
        else:
            np.testing.assert_allclose(vector, expected[place], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ran.stdout)))
    assert "moved already" in refused("move", by_class, "--arrow")


@pytest.fixture
def move(capsys, monkeypatch):
    """`hubless move` in this process: its exit code, what it gave and what it said."""

    def move(model, text, *options):
        monkeypatch.setattr(sys, "stdin", iter(text.splitlines(keepends=True)))
        code = cli.main(["move", str(model), *options])
        return code, *capsys.readouterr()

    return move


def test_move_lines_by_class(move, shop, by_class):
    code, out, _ = move(by_class, lines_of(shop.X, category=[*shop.y[:-2], "strange", None]))
    got = [json.loads(line)["vector"] for line in out.splitlines()]
    X = shop.X.astype(np.float64)
    expected = np.array(reference.shrink(X, shop.y, 0.4))
    expected[-2:] = X[-2:]  # of no class that it knows
    assert code == 0
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    code, out, _ = move(by_class, lines_of(shop.X[:-2], kind=shop.y[:-2].tolist()), "--label", "kind")
    assert [json.loads(line)["vector"] for line in out.splitlines()] == got[:-2]


BAD = {
    "not json": "line 3 is not JSON",
    "[1, 2]": "line 3 must be an object with 'vector'",
    '{"id": 1, "embedding": [1, 2]}': "line 3 must be an object with 'vector'",
    '{"vector": [1, 2]}': "line 3: 'vector' must be a list of 12 finite numbers",
    '{"vector": null}': "line 3: 'vector' must be a list of 12 finite numbers",
    '{"vector": [' + ", ".join(["true"] * D) + "]}": "line 3: 'vector' must be a list",
    '{"vector": [' + ", ".join(["NaN"] * D) + "]}": "line 3: 'vector' must be a list",
    '{"vector": [' + ", ".join(["1e999"] * D) + "]}": "line 3: 'vector' must be a list",
    '{"vector": [' + ", ".join([f"1{'0' * 400}"] * D) + "]}": "line 3: 'vector' must be a list",
}


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:20])
def test_bad_lines_are_told_by_number(move, shop, model, line):
    code, _, said = move(model, lines_of(shop.X[:2]) + line + "\n")
    assert code == 1
    assert BAD[line] in said
    assert "Traceback" not in said


def test_a_reader_may_stop_early(shop, model):
    text = (lines_of(shop.X) * 40).encode()
    with subprocess.Popen(
        [*RUN, "move", str(model)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as mover:
        os.set_blocking(mover.stdin.fileno(), True)
        feeder = os.fork()
        if feeder == 0:  # a producer that does not mind either
            mover.stdout.close()
            try:
                mover.stdin.write(text)
                mover.stdin.close()
            except BrokenPipeError:
                pass
            os._exit(0)
        mover.stdin.close()
        assert json.loads(mover.stdout.readline())["id"] == "n0"
        mover.stdout.close()
        said = mover.stderr.read()
        os.waitpid(feeder, 0)
        mover.stdin = None
    assert mover.returncode == 0
    assert said == b""


# --- export -------------------------------------------------------------------------------------------------


def test_export(run, refused, shop, model, by_class, tmp_path):
    written = run("export", model, "numpy", "-o", tmp_path / "mover")["written"]
    assert {Path(path).name for path in written} == {"README.md", "move.py", "weights.npz"}
    np.save(tmp_path / "v.npy", shop.X)
    subprocess.run(
        [sys.executable, tmp_path / "mover" / "move.py", tmp_path / "v.npy", tmp_path / "w.npy"], check=True
    )
    np.testing.assert_allclose(
        np.load(tmp_path / "w.npy"), hubless.load(model).move(shop.X), rtol=1e-4, atol=1e-5
    )
    assert "there already" in refused("export", model, "numpy", "-o", tmp_path / "mover")
    assert "class" in refused("export", by_class, "numpy", "-o", tmp_path / "other")


# --- what is refused ----------------------------------------------------------------------------------------


def test_what_is_not_there_is_told(refused, shop, model, tmp_path):
    nothing = tmp_path / "nothing"
    labels = ["--labels", "category", "-o", tmp_path / "m"]
    assert "nothing.npy is not there" in refused("doctor", f"{nothing}.npy")
    assert "nothing.faiss is not there" in refused("status", f"{nothing}.faiss")
    assert "is not a store that is known" in refused("doctor", nothing)
    assert "nothing.csv is not there" in refused("fit", shop.index, "--items", f"{nothing}.csv", *labels)
    assert "config.json" in refused("apply", nothing, *shop.source, "-o", "moved.faiss")
    assert "nothing.npy" in refused(
        "evaluate", model, *shop.source, "--labels", "category", "--queries", f"{nothing}.npy"
    )
    assert "nothing.tsv" in refused("fit", *shop.source, *shop.asking, "--pairs", f"{nothing}.tsv")
    assert "--queries" in refused("fit", *shop.source, "--pairs", shop.items)
    assert "queries" in refused("preview", model, *shop.source)
    assert "behind a #" in refused("doctor", "lancedb:somewhere")
    assert "there are 60 queries" in refused("preview", model, *shop.source, *shop.asking, "--rows", 60)


def test_wrong_columns_are_told_with_those_there_are(refused, shop, model, tmp_path):
    out = ["-o", tmp_path / "m"]
    said = refused("fit", *shop.source, "--labels", "colour", *out)
    assert "no column 'colour'" in said
    assert "category" in said
    assert "no column 'colour'" in refused("doctor", *shop.source, "--text", "colour")
    assert "no column 'colour'" in refused(
        "fit", *shop.source, "--id", "colour", "--labels", "category", *out
    )
    assert "unique ids" in refused("fit", *shop.source, "--id", "category", "--labels", "category", *out)
    asking = [*shop.asking, "--labels", "category", "--query-labels", "colour"]
    assert "no column 'colour'" in refused("evaluate", model, *shop.source, *asking)
    assert "query-id" in refused("fit", *shop.source, *shop.asking, "--pairs", shop.items, *out)
    short = write_csv(tmp_path / "short.csv", id=shop.ids[:-1], category=shop.y[:-1])
    said = refused("fit", shop.index, "--items", short, "--labels", "category", *out)
    assert f"{N - 1} rows, the index {N}" in said
    one = write_csv(tmp_path / "one.csv", category=["a"] * N)
    assert "two or more" in refused("fit", shop.index, "--items", one, "--labels", "category", *out)
    pq.write_table(pa.table({"a": [[1.0]], "b": [[2.0]]}), tmp_path / "two.parquet")
    assert "--vector" in refused("doctor", tmp_path / "two.parquet")
    assert "no column of vectors 'c'" in refused("doctor", tmp_path / "two.parquet", "--vector", "c")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet", "v.arrow", "v.faiss", "v.hdf5"])
def test_files_of_another_kind_are_told(refused, tmp_path, name):
    (tmp_path / name).write_bytes(b"these are no vectors" * 100)
    assert name in refused("doctor", tmp_path / name)


def test_a_model_for_something_else_is_refused(refused, shop):
    hubless.save(hubless.MoveLabeledClassifier().fit(shop.X, shop.y), shop.folder / "classifier")
    hubless.save(Whiten().fit(shop.X, shop.y), shop.folder / "lifts")
    for name in ("classifier", "lifts"):
        assert "`hubless fit`" in refused("apply", shop.folder / name, *shop.source, "-o", "moved.faiss")


EXTRAS = {
    "faiss": (["doctor", "v.faiss"], "faiss"),
    "pyarrow": (["doctor", "v.parquet"], "files"),
    "h5py": (["doctor", "v.hdf5"], "files"),
    "lancedb": (["doctor", "lancedb:.#items"], "lancedb"),
    "psycopg": (["doctor", "postgresql://me@localhost/shop#items"], "pgvector"),
    "qdrant_client": (["doctor", "qdrant:.#items"], "qdrant"),
    "onnx": (["export", "model", "onnx", "-o", "out"], "onnx"),
}


@pytest.mark.parametrize("package", EXTRAS)
def test_packages_that_are_missing_are_named(refused, shop, model, monkeypatch, package):
    arguments, extra = EXTRAS[package]
    for name in ("v.faiss", "v.parquet", "v.hdf5", "meta.json"):
        (shop.folder / name).touch()
    (shop.folder / "model").symlink_to(model)
    monkeypatch.chdir(shop.folder)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    assert f"pip install 'hubless[{extra}]'" in refused(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["fit", "v.npy"],
        ["fit", "v.npy", "--labels", "a", "--pairs", "b"],
        ["fit", "v.npy", "--labels", "a", "--metric", "hamming"],
        ["preview", "model", "v.npy", "-k", "0"],
        ["apply", "model", "v.npy"],
        ["export", "model", "pickle", "-o", "x"],
    ],
    ids=" ".join,
)
def test_senseless_lines_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: hubless" in capsys.readouterr().err


def test_exit_codes_of_the_program(shop, tmp_path):
    codes = [
        subprocess.run([*RUN, *map(str, arguments)], capture_output=True).returncode
        for arguments in (["status", shop.index, "--json"], ["status", tmp_path / "no.npy"], ["status"])
    ]
    assert codes == [0, 1, 2]


# --- a terminal ---------------------------------------------------------------------------------------------


def seen_on_a_terminal(command):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    seen = b""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as program:
        os.close(theirs)
        with suppress(OSError):  # how a terminal tells that nobody writes any more
            while part := os.read(ours, 1 << 16):
                seen += part
    os.close(ours)
    assert program.returncode == 0
    return seen.decode()


def test_progress_bars_on_a_terminal(shop, model, library):
    """In a pipe there is none: `run` and `library` above see to that."""
    apply = ["apply", model, *shop.source, "-o", "moved.faiss"]
    assert " rows" in seen_on_a_terminal([*RUN, *map(str, apply)])
    pairs = ["--pairs", library.folder / "train.tsv", "-o", shop.folder / "new"]
    fit = ["fit", *library.source, *library.asking, *pairs]
    seen = seen_on_a_terminal([*RUN, *map(str, fit)])
    assert "read" in seen
    assert "choose" in seen


def test_nothing_but_what_was_asked_for_is_written(run, shop, model):
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
