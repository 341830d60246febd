"""λ for items of another space than the queries: folds without seen items, scores by loops, the choice."""

import csv
import math

import numpy as np
import pytest

from hubless.repair.index_items import IndexItems
from hubless.repair.judgements import Judgements
from hubless.repair.learn_across import learn_across_spaces
from hubless.selection import across_spaces
from hubless.selection.across_spaces import JudgedPairs, item_folds, score_penalties
from hubless.selection.from_pairs import JudgedQueries
from hubless.selection.grid import GRID
from hubless.stores.store import Facts
from tests import reference


def made(rng, n=40, per_item=2, d=6, e=4, noise=0.5):
    """Items of d columns; queries of e, a linear map of them with noise, a few with a second item."""
    items = rng.standard_normal((n, d)) + 2
    answers = np.repeat(np.arange(n), per_item)
    queries = items[answers] @ rng.standard_normal((d, e)) + noise * rng.standard_normal((len(answers), e))
    relevant = [{int(item): 1.0} for item in answers]
    for query in (0, 7, 20):
        relevant[query][(query + 5) % n] = 0.5
    return items, JudgedQueries(queries, relevant)


def test_no_item_of_a_held_out_query_is_learned_from(rng):
    _, judged = made(rng)
    pairs, seen = JudgedPairs.of(judged.relevant), []
    assert sorted(zip(pairs.query.tolist(), pairs.item.tolist(), strict=True)) == sorted(
        (query, item) for query, items in enumerate(judged.relevant) for item in items
    )
    for fold in item_folds(judged.relevant, 5, rng):
        seen += fold.tolist()
        rest = pairs.without(fold, judged.relevant)
        held = {item for query in fold for item in judged.relevant[query]}
        assert held.isdisjoint(rest.item.tolist())
        assert not {*fold.tolist()} & {*rest.query.tolist()}
        left = [
            (query, item)
            for query, items in enumerate(judged.relevant)
            for item in items
            if query not in fold and item not in held
        ]
        assert sorted(left) == sorted(zip(rest.query.tolist(), rest.item.tolist(), strict=True))
        firsts = {max(judged.relevant[query], key=judged.relevant[query].get) for query in fold}
        assert len(fold) == 2 * len(firsts)  # both queries of an item
    assert sorted(seen) == list(range(80))


def naive_ndcg(order, worth):
    dcg = sum(worth.get(item, 0.0) / math.log2(rank + 2) for rank, item in enumerate(order[:10]))
    ideal = sorted(worth.values(), reverse=True)[:10]
    return dcg / sum(value / math.log2(rank + 2) for rank, value in enumerate(ideal))


def naive_scores(vectors, judged, is_unit, repeats, seed):
    """Every λ and a random order, query by query, with the folds of the same seed."""
    rng, n = np.random.default_rng(seed), len(judged.queries)
    total = np.zeros((len(GRID) + 1, n))
    for _ in range(repeats):
        for fold in item_folds(judged.relevant, 5, rng):
            held = {item for query in fold for item in judged.relevant[query]}
            pairs = [
                (q, i)
                for q, items in enumerate(judged.relevant)
                for i in items
                if q not in fold and i not in held
            ]
            x, z = (
                side[[pair[place] for pair in pairs]] for place, side in enumerate((judged.queries, vectors))
            )
            A, K = reference.moments(x - x.mean(axis=0), z - z.mean(axis=0))
            unseen = [i for i in range(len(vectors)) if i not in {item for _, item in pairs}]
            for row, penalty in enumerate(GRID):
                W = reference.solve(A, K, penalty.value * np.trace(K) / len(K))
                moved = {i: x.mean(axis=0) + W @ (vectors[i] - z.mean(axis=0)) for i in unseen}
                if is_unit:
                    moved = {i: point / np.linalg.norm(point) for i, point in moved.items()}
                for query in fold:
                    order = sorted(unseen, key=lambda i: reference.distance(judged.queries[query], moved[i]))
                    total[row, query] += naive_ndcg(order, judged.relevant[query])
            for query in fold:  # an item is at each place equally often
                worth = judged.relevant[query]
                orders = [unseen[shift:] + unseen[:shift] for shift in range(len(unseen))]
                total[-1, query] += np.mean([naive_ndcg(order, worth) for order in orders])
    return total / repeats


@pytest.mark.parametrize("is_unit", [False, True])
def test_scores_are_those_of_loops(rng, is_unit, monkeypatch):
    monkeypatch.setattr(across_spaces, "REPEATS", 2)
    vectors, judged = made(rng, n=14)
    scores = score_penalties(vectors, judged, is_unit, random_state=3)
    *expected, chance = naive_scores(vectors, judged, is_unit, 2, 3)
    np.testing.assert_allclose(scores.scores, expected, atol=1e-9)
    assert scores.by_chance == pytest.approx(np.mean(chance))
    means = np.mean(expected, axis=1)
    assert means[scores.best] == pytest.approx(means.max())
    rows = scores.tried_rows()
    assert rows[0]["score"] == pytest.approx(means.max())
    assert [row["chosen"] for row in rows].count(True) == 1
    assert (
        next(row for row in rows if row["chosen"])["name"]
        == f"λ = {GRID[scores.best].value:.3g} × mean eigenvalue"
    )


def test_many_items_and_queries_are_sampled(rng, monkeypatch):
    vectors, judged = made(rng, n=60)
    whole = score_penalties(vectors, judged, False)
    monkeypatch.setattr(across_spaces, "POOL", 10)
    monkeypatch.setattr(across_spaces, "ANSWERS", 20)
    part = score_penalties(vectors, judged, False)
    assert whole.scores.shape == (13, 120)
    assert part.scores.shape[1] <= 5 * 4 * across_spaces.REPEATS
    assert part.by_chance > whole.by_chance  # among fewer items


def test_noise_wants_a_larger_penalty(rng):
    clean, noisy = (
        score_penalties(*made(np.random.default_rng(1), n=60, d=30, noise=noise), False).best
        for noise in (0.01, 8.0)
    )
    assert clean < noisy


def test_too_few_are_refused(rng):
    vectors, judged = made(rng)
    with pytest.raises(
        ValueError, match="9 judged queries of 6 items are too few to choose by: give 10 or more"
    ):
        score_penalties(vectors, judged.take(np.arange(1, 10)), False)
    same = JudgedQueries(judged.queries, [{0: 1.0}] * 80)
    with pytest.raises(ValueError, match="80 judged queries of 1 items are too few"):
        score_penalties(vectors, same, False)


# --- learning for an index ----------------------------------------------------------------------------------


def index_of(vectors, metric):
    facts = Facts("made", metric, vectors.shape[1], len(vectors), "float64", "exhaustive")
    return IndexItems("made", facts, metric, np.arange(len(vectors)) + 100, vectors, {}, 0)


def judgements_of(judged):
    relevant = [{item + 100: value for item, value in worth.items()} for worth in judged.relevant]
    return Judgements(judged.queries, relevant, [f"q{i}" for i in range(len(relevant))])


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_a_model_moves_items_to_their_queries(rng, metric):
    vectors, judged = made(rng, n=60, noise=0.1)
    if metric == "cosine":
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    model = learn_across_spaces(index_of(vectors, metric), judgements_of(judged))
    assert (model.dimension, model.width, model.metric) == (6, 4, metric)
    moved = model.move(vectors)
    learned = model.facts["learned"]
    assert moved.shape == (60, 4)
    assert (learned["n"], learned["queries"], learned["items with queries"]) == (123, 120, 60)
    assert learned["mover"].startswith("W from 6 columns to the 4 of the queries, λ = ")
    assert "there is no score of not moving" in learned["chosen by"]
    assert model.facts["figures"][0]["before"] is None
    queries = judged.queries / (
        np.linalg.norm(judged.queries, axis=1, keepdims=True) if metric == "cosine" else 1
    )
    _, nearest = reference.nearest(queries, moved, 1)
    right = np.mean([int(i) in worth for (i,), worth in zip(nearest, judged.relevant, strict=True)])
    assert right > 0.5  # 1 in 60 by chance
    if metric == "cosine":
        np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1)


def test_unit_vectors_under_l2_are_learned_as_under_cosine(rng):
    vectors, judged = made(rng, n=30)
    unit, queries = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (vectors, judged.queries))
    model = learn_across_spaces(index_of(unit, "l2"), judgements_of(judged._replace(queries=queries)))
    assert model.metric == "cosine"
    model = learn_across_spaces(index_of(unit, "l2"), judgements_of(judged))
    assert model.metric == "l2"


@pytest.mark.slow
def test_flickr8k_captions_find_unseen_images(data_dir):
    folder = data_dir / "flickr8k"
    images = np.load(folder / "images_effnetlite0_1280.npy").astype(np.float32)
    captions = np.load(folder / "captions_minilm_384.npy").astype(np.float32)
    with (folder / "images.csv").open() as file:
        rows = {row["image"]: (i, row["part"]) for i, row in enumerate(csv.DictReader(file))}
    with (folder / "captions.csv").open() as file:
        answers = [rows[row["image"]] for row in csv.DictReader(file)]
    of, part = np.array([i for i, _ in answers]), np.array([name for _, name in answers])
    units = images / np.linalg.norm(images, axis=1, keepdims=True)
    train = np.flatnonzero(part == "train")
    items = index_of(units, "cosine").take(np.array([name == "train" for _, name in rows.values()]))
    judgements = Judgements(captions[train], [{int(of[q]) + 100: 1.0} for q in train], train.tolist())
    model = learn_across_spaces(items, judgements)
    test = np.unique(of[part == "test"])
    similarity = captions[part == "test"] @ model.move(images[test]).T
    right = test[similarity.argmax(axis=1)] == of[part == "test"]
    assert right.mean() >= 0.18
