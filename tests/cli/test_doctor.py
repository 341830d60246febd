"""`hubless doctor`, on data that plain loops can check."""

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubless
from tests import reference
from tests.cli.shops import D, unit, write_csv, write_faiss


def occurrences(X, k):
    """How often each item is among the k nearest of another, by loops."""
    _, found = reference.nearest(X, X, k, exclude_self=True)
    return reference.k_occurrence(found, len(X))


@pytest.fixture
def crowd():
    """150 points of a Gaussian in 20 dimensions, the first few near its mean, so that they are hubs."""
    X = np.random.default_rng(3).standard_normal((150, 20)).astype(np.float32)
    X[:5] *= 0.3
    return X


def test_hubs_are_found(run, words, tmp_path, crowd):
    counts = occurrences(crowd, 10)
    items = write_csv(tmp_path / "items.csv", title=[f"number {row}" for row in range(150)])
    source = [write_faiss(tmp_path / "v.faiss", crowd), "--items", items]
    found = run("doctor", *source)
    assert found["hubness"]["skewness"] == pytest.approx(reference.skewness(counts), rel=1e-9)
    assert reference.skewness(counts) > 3
    assert found["verdict"] == "hubs"
    assert found["hubness"]["antihub_share"] == pytest.approx(reference.antihub_share(counts))
    rare = {c for c in set(counts) if 149 * reference.chance_of_occurrence(int(c), 149, 149, 10) <= 0.05}
    hubs = sorted((row for row in range(150) if counts[row] in rare), key=lambda row: (-counts[row], row))
    assert found["n_hubs"] == len(hubs) > 5
    assert found["chance"]["threshold"] <= min(rare)
    worst = hubs[:10]
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
    assert "items alone" in said  # what to do without a log
    named = f"hubless fit {source[0]} --items {items} --labels COLUMN -o model"
    assert f"  {named}\n" in said.replace("classes of items        ", "")
    assert found["n_suspicious"] is None  # which only a log can tell


def test_hubs_are_counted_over_queries_and_by_cosine(run, tmp_path, crowd):
    np.save(tmp_path / "v.npy", crowd)
    np.save(tmp_path / "q.npy", crowd[:30] + 0.5)
    found = run("doctor", tmp_path / "v.npy", "--metric", "cosine", "--queries", tmp_path / "q.npy", "-k", 5)
    _, rows = reference.nearest(unit(crowd[:30] + np.float32(0.5)), unit(crowd), 5)
    counts = reference.k_occurrence(rows, 150)
    assert found["hubness"]["skewness"] == pytest.approx(reference.skewness(counts))
    assert (found["hubness"]["n_queries"], found["hubness"]["k"]) == (30, 5)


def test_points_on_a_line_have_no_hubs(run, words, tmp_path):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).random((200, 1)).astype(np.float32))
    found = run("doctor", tmp_path / "v.npy", "--metric", "l2")
    assert found["hubness"]["skewness"] < 1
    assert found["verdict"] == "no hubs"
    assert "hardly any hubs" in words("doctor", tmp_path / "v.npy", "--metric", "l2")


def test_missing_invalid_and_equal_rows_are_counted(run, tmp_path):
    rows = np.random.default_rng(0).standard_normal((40, 3)).tolist()
    rows[3] = rows[7] = None
    rows[5], rows[8], rows[9] = [np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [0.0, 0.0, 0.0]
    rows[11] = rows[12] = rows[10]
    table = pa.table({"v": pa.array(rows, pa.list_(pa.float32(), 3))})
    pq.write_table(table, tmp_path / "v.parquet")
    found = run("doctor", tmp_path / "v.parquet")
    counts = {name: found[name] for name in ("nulls", "not_finite", "zeros", "duplicates")}
    assert counts == {"nulls": 2, "not_finite": 2, "zeros": 1, "duplicates": 2}
    assert found["facts"]["metric"] is None
    assert found["hubness"]["n_objects"] == 36


@pytest.mark.parametrize("kind", ["SQ8", "IVF4,PQ4x4", "PQ4x4"])
def test_quantised_vectors_are_reported_and_refused(run, refused, shop, model, kind):
    index = faiss.index_factory(D, kind)
    index.train(shop.X)
    write_faiss(shop.index, shop.X, index)
    found = run("doctor", *shop.source)
    assert found["verdict"] == "do not move"
    assert "quantised" in " ".join(found["advice"])
    assert "quantised" in refused("fit", *shop.source, "--labels", "category", "-o", shop.folder / "new")
    assert "quantised" in refused("apply", model, *shop.source, "-o", "moved.faiss")
    assert not (shop.folder / "new").exists()


def test_a_moved_index_is_recognised(run, words, shop, model):
    run("apply", model, *shop.source, "-o", "moved.faiss")
    hash = hubless.load(model).hash
    assert run("doctor", shop.folder / "moved.faiss")["verdict"] == "moved"
    run("promote", shop.index, "moved.faiss")
    assert run("doctor", *shop.source)["verdict"] == "moved"
    assert hash[:12] in words("doctor", *shop.source)


def test_few_items_have_no_hubs(run, tmp_path):
    np.save(tmp_path / "v.npy", np.eye(4, dtype=np.float32))
    found = run("doctor", tmp_path / "v.npy")
    assert (found["hubness"], found["verdict"]) == (None, "no hubs")


@pytest.fixture
def attacked(tmp_path):
    """A store of items, twelve of them means of queries, and a log; texts that would steer a terminal."""
    rng = np.random.default_rng(5)
    subjects = rng.standard_normal((12, 40))
    log, own = (np.repeat(np.arange(12), n) for n in (25, 50))
    queries = unit(subjects[log] + 1.2 * rng.standard_normal((300, 40)))
    items = unit(subjects[own] + 1.2 * rng.standard_normal((600, 40)))
    centres = unit([queries[log == subject].mean(axis=0) for subject in range(12)])
    np.save(tmp_path / "v.npy", np.vstack([items, centres]).astype(np.float32))
    np.save(tmp_path / "q.npy", queries.astype(np.float32))
    names = [f"i{row}" for row in range(600)] + ["evil\x1b[2J", *(f"p{row}" for row in range(1, 12))]
    write_csv(tmp_path / "items.csv", id=names, title=[f"title\nof {row}\x9b31m\u202e" for row in range(612)])
    write_csv(tmp_path / "log.csv", id=[f"q{row}" for row in range(300)], text=[f"ask\r{s}" for s in log])
    source = [tmp_path / "v.npy", "--metric", "cosine", "--items", tmp_path / "items.csv"]
    return source, ["--queries", tmp_path / "q.npy", "--query-items", tmp_path / "log.csv"], names[600:]


def test_planted_items_are_named_with_the_queries_that_they_capture(run, words, attacked):
    source, asking, planted = attacked
    found = run("doctor", *source, *asking)
    named = {hub["id"]: hub for hub in found["hubs"] if hub["kind"] == "suspicious"}
    assert set(named) == set(planted)
    assert found["n_suspicious"] == 12
    assert [hub["kind"] for hub in found["hubs"][:12]] == ["suspicious"] * 12  # before the natural ones
    for place, name in enumerate(planted):
        hub = named[name]
        assert hub["share"] == hub["occurrence"] / 300
        assert {query["text"] for query in hub["captured"]} == {f"ask\r{place}"}
        assert hub["score"] < -4
    said = words("doctor", *source, *asking)
    assert "12 of these hubs look planted" in said
    assert "Look at the suspicious items before anything else" in said
    assert "answers q" in said
    assert "items alone" not in said
    assert all(letter.isprintable() for line in said.split("\n") for letter in line)


def test_a_log_that_repeats_itself_is_counted_once(run, words, attacked, tmp_path):
    source, asking, _ = attacked
    np.save(tmp_path / "again.npy", np.repeat(np.load(asking[1]), 2, axis=0))
    once, twice = run("doctor", *source, *asking), run("doctor", *source, "--queries", tmp_path / "again.npy")
    assert twice["hubness"] == once["hubness"]
    assert "300 queries of again.npy, without 300 that repeat another" in words(
        "doctor", *source, "--queries", tmp_path / "again.npy"
    )


def test_items_that_ask_themselves_are_not_called_suspicious(run, words, attacked):
    found = run("doctor", *attacked[0])
    assert found["n_suspicious"] is None
    assert all("kind" not in hub for hub in found["hubs"])
    assert "asked: each of these items, without itself" in words("doctor", *attacked[0])
    few = run("doctor", *attacked[0], "--queries", attacked[1][1], "-k", 600)
    assert few["n_hubs"] == 0  # where every item is in nearly every answer, nothing is rare


def test_few_queries_cannot_tell_natural_from_planted(words, run, attacked, tmp_path):
    np.save(tmp_path / "few.npy", np.load(attacked[1][1])[:31])
    asking = ["--queries", tmp_path / "few.npy"]
    assert run("doctor", *attacked[0], *asking)["n_suspicious"] is None
    said = words("doctor", *attacked[0], *asking)
    assert "31 queries of few.npy, too few to tell natural hubs from planted ones" in said
