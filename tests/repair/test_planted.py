"""Planted hubs: the measure against loops, and attacks on made data and on SciFact."""

import json

import numpy as np
import pytest
from sklearn.cluster import KMeans

from hubless.arrays.inputs import distinct
from hubless.neighbors.knn import exhaustive
from hubless.repair.doctor import diagnose
from hubless.repair.planted import (
    apartness,
    captured,
    compared_queries,
    find_hubs,
    find_planted,
    judge_hubs,
    robust_scores,
)
from hubless.stores.store import StoreError
from tests import reference
from tests.cli.shops import unit


@pytest.fixture(scope="module")
def library():
    """600 items and 300 queries of 12 subjects, each with much of its own."""
    rng = np.random.default_rng(5)
    subjects = rng.standard_normal((12, 40))
    X, queries = (
        unit(subjects[rng.integers(0, 12, n)] + 1.2 * rng.standard_normal((n, 40))).astype(np.float32)
        for n in (600, 300)
    )
    return X, queries


def plant(X, queries, n=12):
    """Add centroids of k-means clusters of queries to items; items, and the numbers of the planted ones."""
    centres = KMeans(n, n_init=1, random_state=0).fit(queries).cluster_centers_
    return np.vstack([X, unit(centres)]).astype(np.float32), set(range(len(X), len(X) + n))


@pytest.mark.parametrize("by_direction", [True, False])
@pytest.mark.parametrize("n_nearest", [4, 7])
def test_apartness_same_as_loops(library, by_direction, n_nearest, monkeypatch):
    X, queries = library[0][:30], library[1][:50]
    monkeypatch.setattr("hubless.repair.planted.NUMBERS", 8 * n_nearest * 40)  # several blocks
    _, found = reference.nearest(X, queries, n_nearest)
    expected = reference.apartness(X, queries, n_nearest, by_direction)
    np.testing.assert_allclose(apartness(X, queries, found, by_direction), expected, rtol=1e-5)


def test_scores_are_deviations_of_logarithms(rng):
    usual = np.exp(2 + 0.5 * rng.standard_normal(20_000))
    np.testing.assert_allclose(robust_scores(np.exp([2.0, 0.0]), usual), [0, -4], atol=0.1)
    dirty = np.concatenate([usual, np.full(4000, 1e-9)])  # a sixth of the items planted
    assert robust_scores(np.exp([0.0]), dirty)[0] < -2.5
    assert robust_scores(np.array([1.0, 5.0]), np.ones(9)).tolist() == [0, 0]


def test_hubs_are_compared_by_a_power_of_two():
    counts = np.array([1, 4, 7, 8, 100, 5000])
    assert compared_queries(counts, 400).tolist() == [4, 4, 4, 8, 64, 64]
    assert compared_queries(counts, 10**6).tolist() == [4, 4, 4, 8, 64, 256]
    assert compared_queries(counts, 32).tolist() == [4, 4, 4, 8, 8, 8]


def test_distinct_queries_are_the_first_of_their_kind(rng):
    queries = rng.standard_normal((4, 3))[[2, 0, 2, 2, 1, 0]]
    assert distinct(queries).tolist() == [0, 1, 4]


def test_hubs_are_those_above_chance(library):
    X, queries = plant(*library)[0], library[1]
    _, found = reference.nearest(queries, X, 10)
    counts = reference.k_occurrence(found, len(X))
    hubs = find_hubs(found, len(X))
    tails = [reference.chance_of_occurrence(int(count), 300, len(X), 10) for count in counts]
    expected = [row for row, tail in enumerate(tails) if len(X) * tail <= 0.05]
    assert expected
    assert hubs.rows.tolist() == sorted(expected, key=lambda row: (-counts[row], row))
    assert hubs.occurrence.tolist() == [counts[row] for row in hubs.rows]
    assert hubs.suspicious is None


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_centroids_of_queries_are_suspicious_and_natural_hubs_are_not(library, metric):
    X, planted = plant(*library)
    queries = library[1] * (1 if metric == "l2" else 3)  # by the others, their length does not count
    assert set(find_planted(X, queries, metric)) == planted
    assert len(find_planted(library[0], queries, metric)) == 0


def test_centroids_that_are_not_of_length_1_are_found_by_l2(library):
    X, queries = library
    centres = KMeans(12, n_init=1, random_state=0).fit(queries).cluster_centers_
    found = find_planted(np.vstack([X, centres]).astype(np.float32), queries, "l2")
    assert set(found) == set(range(600, 612))


def test_a_long_vector_is_suspicious_by_inner_product(library):
    X, queries = library
    lengths = 1 + 0.05 * np.random.default_rng(0).standard_normal(600)
    X = (X * lengths[:, None]).astype(np.float32)
    X[7] *= 4
    assert set(find_planted(X, queries, "ip")) == {7}
    assert len(find_planted(X, queries, "cosine")) == 0


def test_repeated_queries_count_once(library):
    X, queries = plant(*library)[0], library[1]
    assert (
        find_planted(X, np.repeat(queries, 3, axis=0), "cosine").tolist()
        == find_planted(X, queries, "cosine").tolist()
    )


def test_copies_of_planted_items_are_found_behind_them(library):
    X, planted = plant(*library)
    both = np.vstack([X, X[sorted(planted)], X[sorted(planted)]])
    found = find_planted(both, library[1], "cosine")
    assert set(found) == set(range(600, 636))
    assert len(found) == 36


def test_nothing_is_said_of_few_queries_or_items(library):
    X, queries = plant(*library)[0], library[1]
    for items, asked in ((X, queries[:31]), (X[-31:], queries)):
        judged = judge_hubs(items, asked, exhaustive(asked, items, 5, "cosine"), "cosine")
        assert judged.suspicious is None
        assert len(find_planted(items, asked, "cosine", k=5)) == 0


def test_who_was_captured_is_counted_by_loops(library):
    before, planted = plant(*library)
    queries, rows = library[1], sorted(planted)
    after = np.column_stack([before, np.zeros(len(before), np.float32)])
    after[rows, -1] = 0.5  # a handicap in a column of its own
    result = captured(before, after, queries, rows, "l2")
    padded = np.column_stack([queries, np.zeros(len(queries))])
    for time, items, asked in (("before", before, queries), ("after", after, padded)):
        _, found = reference.nearest(asked, items, 10)
        lists = [[q for q, answers in enumerate(found.tolist()) if row in answers] for row in rows]
        assert [item[time] for item in result.items] == lists
        share = len({q for queries_of in lists for q in queries_of}) / len(queries)
        assert getattr(result, time) == pytest.approx(share)
    assert [item["row"] for item in result.items] == rows
    assert result.before > result.after
    assert f"{result.before:.1%} of 300 queries before, and of {result.after:.1%} after" in str(result)
    assert result.as_dict()["k"] == 10


# --- SciFact ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scifact(data_dir):
    """Documents, and the claims of the training part."""
    folder = data_dir / "scifact"
    documents, queries = (
        unit(np.load(folder / f"{name}_minilm_384.npy")).astype(np.float32) for name in ("docs", "queries")
    )
    names = json.loads((folder / "query_ids.json").read_text())
    train = {line.split("\t")[0] for line in (folder / "qrels_train.tsv").read_text().splitlines()[1:]}
    return documents, queries[[name in train for name in names]]


@pytest.mark.parametrize("seed", [1, 2])
def test_clusters_of_half_the_claims_are_found_by_the_other_half(scifact, seed):
    documents, claims = scifact
    order = np.random.default_rng(seed).permutation(len(claims))
    known, log = claims[order[:400]], claims[order[400:]]
    X, planted = plant(documents, known, 10)
    found = set(find_planted(X, log, "cosine"))
    assert len(found & planted) >= 6  # 8.6 of 10 on average
    assert len(found - planted) == 0
    share = captured(X, X, log, sorted(planted), "cosine").before
    assert 0.35 < share < 0.6  # 47 % of the test queries
    missed = captured(X, X, log, sorted(planted - found), "cosine").before
    assert missed < 0.1


def test_an_attacker_who_knows_the_whole_log_is_found_and_clean_documents_are_not(scifact):
    documents, claims = scifact
    X, planted = plant(documents, claims, 10)
    assert set(find_planted(X, claims, "cosine")) == planted
    assert len(find_planted(documents, claims, "cosine")) == 0


def test_queries_without_a_vector_are_left_out_of_a_diagnosis(library, tmp_path):
    X, queries = library[:2]
    gaps = np.concatenate([queries, queries[:2], queries[:3]])
    gaps[-3:, 0] = np.nan, np.inf, np.nan
    for name, rows in (("items", X), ("log", gaps), ("nothing", gaps[-3:])):
        np.save(tmp_path / f"{name}.npy", rows)
    found = diagnose(tmp_path / "items.npy", queries=tmp_path / "log.npy")
    assert found.measured == "among 600 items"
    assert found.asked.startswith("300 queries")
    assert found.asked.endswith(", without 2 that repeat another and 3 that have no vector")
    assert found.hubness == diagnose(tmp_path / "items.npy", queries=queries).hubness
    with pytest.raises(StoreError, match="has no query with a vector"):
        diagnose(tmp_path / "items.npy", queries=tmp_path / "nothing.npy")
