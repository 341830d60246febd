"""Section 4 of the paper, measured."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from hubless import MoveLabeled, MoveQuery
from hubless.hubness import k_occurrence, skewness
from hubless.neighbors import nearest
from hubless.theory import centrality_bias, compare_directions, simulate_centrality_bias, variance_ratio
from tests import reference


@pytest.mark.parametrize("d", [50, 300])
@pytest.mark.parametrize("s", [0.5, 2.0])
@pytest.mark.parametrize("gamma", [-1.0, 0.5, 2.0])
@pytest.mark.parametrize("query_scale", [0.3, 1.0])
def test_proposition_1_holds_in_simulation(gamma, s, d, query_scale):
    measured = simulate_centrality_bias(gamma, s, d, query_scale=query_scale, n_queries=20_000)
    # σ is estimated from 4096 objects: its relative error is about 1 / √8192
    tolerance = 4 * measured.standard_error + 0.05 * abs(measured.mean)
    assert measured.mean == pytest.approx(centrality_bias(gamma, s, d), abs=tolerance)


def test_proposition_1_refuses_a_negative_norm():
    with pytest.raises(ValueError, match="give a smaller gamma"):
        simulate_centrality_bias(50.0, 1.0, 4)


@pytest.fixture
def gaussian_classes(rng):
    """Five classes in 200 dimensions, where hubs are plain to see."""
    y = rng.integers(0, 5, 1000)
    centres = 0.4 * rng.standard_normal((5, 200))
    return centres[y] + rng.standard_normal((1000, 200)), y, centres[y] + rng.standard_normal((1000, 200))


def n10_skewness(queries, objects):
    return skewness(k_occurrence(nearest(queries, objects, 10, return_distance=False), len(objects)))


def test_ridge_shrinks_what_it_moves_and_that_decides_about_hubs(gaussian_classes):
    X, y, queries = gaussian_classes
    moved = MoveLabeled().fit_transform(X, y)
    assert variance_ratio(moved, queries) < 0.5
    query_mover = MoveQuery().fit(X, y)
    assert variance_ratio(query_mover.transform(queries), X) < 0.5
    before = n10_skewness(queries, X)
    assert n10_skewness(queries, moved) < before / 2  # Sec. 4.2: moving the labeled objects removes hubs
    assert n10_skewness(query_mover.transform(queries), X) > before * 1.2  # moving the queries makes them


def test_variance_ratio_of_scaled_points(asarray, rng):
    X = rng.standard_normal((100, 4))
    assert variance_ratio(asarray(0.5 * X + 3), asarray(X)) == pytest.approx(0.25)
    assert np.isclose(variance_ratio(asarray(X), asarray(X)), 1)


# --- Proposition 1 across spaces ----------------------------------------------------------------------------


def two_spaces(rng, n, e=3, d=5, noise=1.0):
    """Objects of d columns with a query of e each: both show the same hidden point, with noise."""
    hidden, maps = rng.standard_normal((n, 3)), (np.eye(3, e), np.linspace(-1, 1, 3 * d).reshape(3, d))
    return [hidden @ side + noise * rng.standard_normal((n, side.shape[1])) + 2 for side in maps]


def unit(rows):
    return np.array([row / np.linalg.norm(row) for row in rows])


def naive_direction(goals, sources, points, others, alpha, metric):
    """Points of the space of `sources` in that of `goals`, and the others, by loops; before and after all."""
    if metric != "l2":
        goals, sources, points, others = map(unit, (goals, sources, points, others))
    A, K = reference.moments(goals - goals.mean(axis=0), sources - sources.mean(axis=0))
    W = reference.solve(A, K, alpha * np.trace(K) / len(K))
    mapped = np.array([goals.mean(axis=0) + W @ (z - sources.mean(axis=0)) for z in points])
    before = mapped, others
    if metric == "centred cosine":
        mapped, others = mapped - goals.mean(axis=0), others - goals.mean(axis=0)
    return before, (mapped, others) if metric == "l2" else (unit(mapped), unit(others))


@pytest.mark.parametrize("metric", ["l2", "cosine", "centred cosine"])
@pytest.mark.parametrize(("e", "d"), [(3, 5), (5, 3), (4, 4)])
def test_directions_are_those_of_loops(rng, asarray, metric, e, d):
    x, z = two_spaces(rng, 30, e, d)
    queries, objects = two_spaces(rng, 25, e, d)
    answers = rng.permutation(25)
    objects = objects[np.argsort(answers)]
    given = [asarray(side) for side in (x, z, queries, objects, answers)]
    found = compare_directions(tuple(given[:2]), *given[2:], alpha=(0.5, 2.0), metric=metric)
    before, after = naive_direction(x, z, objects, queries, 0.5, metric)
    stored = [side[::-1] for side in (before, after)]  # queries first
    asked = naive_direction(z, x, queries, objects, 2.0, metric)
    for result, (raw, compared) in zip(found, (stored, asked), strict=True):
        _, neighbors = reference.nearest(*compared, 10)
        recall = {k: np.mean([answers[i] in row[:k] for i, row in enumerate(neighbors)]) for k in (1, 5, 10)}
        assert result.recall == pytest.approx(recall)
        counts = np.array([(neighbors == i).sum() for i in range(25)])
        spread = counts - counts.mean()
        assert result.skewness == pytest.approx((spread**3).mean() / (spread**2).mean() ** 1.5)
        assert result.variance_ratio == pytest.approx(raw[1].var(axis=0).sum() / raw[0].var(axis=0).sum())


def test_another_metric_is_refused(rng):
    x, z = two_spaces(rng, 30)
    with pytest.raises(ValueError, match="metric must be one of 'l2', 'cosine', 'centred cosine'; got 'ip'"):
        compare_directions((x, z), x, z, np.arange(30), metric="ip")


def test_mapping_the_stored_side_makes_fewer_hubs_than_mapping_queries(rng):
    """Both sides have as many columns and as much noise, so that only the direction differs."""
    x, z = two_spaces(rng, 600, 100, 100, noise=1.0)
    queries, objects = two_spaces(rng, 600, 100, 100, noise=1.0)
    found = compare_directions((x, z), queries, objects, np.arange(600))
    assert found.stored.variance_ratio < 1 < found.queries.variance_ratio
    assert found.stored.skewness < found.queries.skewness / 2
    assert found.stored.recall[10] > found.queries.recall[10]


GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["cosine", "centred cosine", "l2"])
def test_the_table_of_the_guide_is_that_of_flickr8k(data_dir, metric):
    folder = data_dir / "flickr8k"
    images, captions = (
        np.load(folder / f"{name}.npy").astype(np.float32)
        for name in ("images_effnetlite0_1280", "captions_minilm_384")
    )
    with (folder / "images.csv").open() as file:
        rows = {row["image"]: (i, row["part"]) for i, row in enumerate(csv.DictReader(file))}
    with (folder / "captions.csv").open() as file:
        of, parts = map(np.array, zip(*(rows[row["image"]] for row in csv.DictReader(file)), strict=True))
    pairs = captions[parts == "train"], images[of[parts == "train"]]
    searched, answers = np.unique(of[parts == "test"], return_inverse=True)
    shown = [
        [float(cell.strip("* ")) for cell in line.split("|")[3:-1]]
        for line in re.findall(rf"^\| {metric} \|.*\|$", GUIDE.read_text(), re.MULTILINE)
    ]
    alpha = tuple(row[0] for row in shown)
    given = (pairs, captions[parts == "test"], images[searched], answers)
    found = compare_directions(*given, alpha=alpha, metric=metric)
    for row, result in zip(shown, found, strict=True):
        recall = [100 * value for value in result.recall.values()]
        assert row[1:3] == pytest.approx([result.variance_ratio, result.skewness], abs=0.01)
        assert row[3:] == pytest.approx(recall, abs=0.11)
