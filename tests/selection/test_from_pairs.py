"""How items move by pairs, and which setting is chosen: against plain loops, and on made scores."""

from itertools import product

import numpy as np
import pytest

from hubless.neighbors.knn import unit
from hubless.selection import from_pairs, pair_map
from hubless.selection.from_pairs import (
    HeldOutScores,
    choose_setting,
    ratios_and_bar,
    score_held_out,
    surface,
    tried_rows,
)
from hubless.selection.grid import PAIR_ALPHAS
from hubless.selection.pair_map import STAY, STEPS, JudgedQueries, PairMap, PairSetting, step_toward
from tests import reference

D = 6
SETTINGS = [PairSetting(alpha, step) for alpha, step in product((None, *PAIR_ALPHAS), STEPS)]
HELD = {"shrink": pair_map.SHRINK, "share": pair_map.NEAREST, "fewest": pair_map.FEWEST}


def judged_of(rng, n=40, is_unit=True):
    """Items around a point off the origin, and queries that lie to one side of the items that answer them."""
    items = rng.standard_normal((30, D)) + 1.5
    items = unit(items) if is_unit else items
    relevant = [{int(i): 1.0 for i in rng.choice(12, 1 + row % 2, replace=False)} for row in range(n)]
    queries = np.array([items[[*found]].mean(axis=0) for found in relevant])
    queries = queries + 0.4 * rng.standard_normal(D) + 0.3 * rng.standard_normal((n, D))
    return items, JudgedQueries(unit(queries) if is_unit else queries, relevant)


def own_queries(judged, rows):
    return [[q for q, found in enumerate(judged.relevant) if row in found] for row in rows]


@pytest.mark.parametrize("n", [3, 40])
def test_steps_are_held_as_loops_say(rng, n):
    items, judged = judged_of(rng, n)
    pairs = PairMap(judged, items, True)
    own = own_queries(judged, pairs.rows)
    expected = reference.held_steps(
        items[pairs.rows], judged.queries, own, 0.5, rounds=pair_map.ROUNDS, **HELD
    )
    stepped = pairs.stepped(0.5, items)
    np.testing.assert_allclose(stepped[pairs.rows], expected, atol=1e-12)
    others = np.setdiff1d(np.arange(len(items)), pairs.rows)
    np.testing.assert_array_equal(stepped[others], items[others])
    assert pairs.stepped(0.0, items) is items


@pytest.mark.parametrize("is_unit", [True, False])
def test_a_held_item_is_no_closer_to_the_nearest_queries_of_others(rng, is_unit):
    items, judged = judged_of(rng, is_unit=is_unit)
    pairs = PairMap(judged, items, is_unit)
    before = items[pairs.rows]
    gains = {}
    for name, after in {
        "free": pairs.free(0.75, before),
        "held": pairs.held(before, pairs.free(0.75, before)),
    }.items():
        gains[name] = []
        for z, near_by, free, own in zip(
            before, after, pairs.free(0.75, before), own_queries(judged, pairs.rows), strict=True
        ):
            others = [q for i, q in enumerate(judged.queries) if i not in own]
            near = sorted(others, key=lambda q, free=free: reference.distance(q, free))[: pair_map.FEWEST]
            # half of how much smaller the squared distance is
            closer = [reference.distance(q, z) ** 2 - reference.distance(q, near_by) ** 2 for q in near]
            gains[name].append(np.mean(closer) / 2)
    free, held = np.array(gains["free"]), np.array(gains["held"])
    assert (free > 0.02).sum() >= 3
    left = 0.5 if is_unit else 1e-9  # of length 1: two rounds, in six columns, take most of it
    assert (held <= left * free + 1e-9)[free > 0].all()
    np.testing.assert_allclose(
        held[free <= 0], free[free <= 0], atol=1e-12
    )  # who gained nothing is let alone


def test_goals_give_the_held_items_by_a_plain_step(rng):
    items, judged = judged_of(rng)
    pairs = PairMap(judged, items, True)
    for alpha in (None, 1.0):
        moved = pairs.moved(alpha, items)
        stepped = unit(step_toward(moved[pairs.rows], pairs.goals(0.5, moved), 0.5))
        np.testing.assert_allclose(stepped, pairs.stepped(0.5, moved)[pairs.rows], atol=1e-12)


def test_every_setting_is_yielded_once(rng):
    items, judged = judged_of(rng)
    ways = dict(PairMap(judged, items, True).ways(items))
    assert [*ways] == SETTINGS
    np.testing.assert_array_equal(ways[STAY], items)


def test_queries_around_the_origin_have_no_even_direction(rng):
    log = rng.standard_normal((400, D))
    log = np.concatenate([log, -log])
    np.testing.assert_allclose(pair_map.even_direction(log), 0, atol=1e-12)
    shifted = pair_map.even_direction(log + 5)
    np.testing.assert_allclose(shifted, reference.even_direction(log + 5), rtol=1e-9)
    assert 0.8 < ((log + 5) @ shifted).mean() < 1  # less than 1 by the penalty


# --- the choice ---------------------------------------------------------------------------------------------


def made(changes, n=200, n_seen=120, noise=0.0):
    """Scores of settings that add so much to seen and to unseen queries, with noise of their own."""
    rng = np.random.default_rng(0)
    base, seen = rng.uniform(0.3, 0.6, (1, n)), np.arange(n)[None] < n_seen
    scores = {STAY: base}
    for name, (gain, unseen_gain, spread) in changes.items():
        scores[name] = base + np.where(seen, gain, unseen_gain) + spread * rng.standard_normal((1, n))
    return HeldOutScores(scores, seen)


@pytest.mark.parametrize(
    ("gain", "unseen_gain", "moves"),
    [(0.1, 0.0, True), (0.1, -0.1, False), (0.0, 0.0, False), (0.1, 0.1, True), (-0.1, 0.0, False)],
)
def test_the_choice_does_not_harm_unseen_items(gain, unseen_gain, moves):
    chosen, why = choose_setting(made({"a": (gain, unseen_gain, 0.05)}))
    assert chosen == ("a" if moves else STAY)
    assert "200 held-out queries" in why
    assert "80 of them with unseen items" in why


def test_a_small_step_is_taken_where_the_best_is_too_noisy_to_tell():
    """The highest mean is not ahead by its own standard error; a smaller one is, by its own."""
    scores = made({"noisy": (0.12, 0.12, 0.9), "small": (0.02, 0.01, 0.02)})
    assert scores.of("noisy", "all").mean() > scores.of("small", "all").mean()
    assert scores.beyond_chance() == ["small"]
    assert choose_setting(scores)[0] == "small"


def test_a_loss_is_not_excused_by_its_variance():
    """Of two settings with the same loss for unseen queries, the noisier one is not preferred."""
    scores = made({"noisy": (0.3, -0.013, 0.15), "quiet": (0.3, -0.002, 0.01)})
    assert scores.plausible_loss("noisy") > 0.02 > scores.plausible_loss("quiet")
    assert not scores.spares_unseen("noisy")
    assert scores.spares_unseen("quiet")
    rows = {row["name"]: row["why_not"] for row in tried_rows(scores, "quiet")}
    assert rows == {"noisy": "may harm queries with unseen items", "quiet": "", "not moving": ""}


def test_the_best_of_those_that_pass_is_taken():
    scores = made({"harmful": (0.2, -0.1, 0.01), "best": (0.1, -0.004, 0.01), "behind": (0.06, 0.01, 0.01)})
    chosen, why = choose_setting(scores)
    assert chosen == "best"
    assert "with 2 of these" in why


@pytest.mark.parametrize(
    ("changes", "n_seen", "words"),
    [
        ({"a": (0.0, 0.0, 0.0)}, 120, "no setting is ahead of not moving"),
        ({"a": (0.3, -0.1, 0.01)}, 120, "1 of 1 settings is ahead of not moving"),
        ({"a": (0.3, -0.1, 0.01)}, 120, "may lose more than 0.02 with each"),
        ({"a": (0.1, 0.0, 0.01), "b": (0.2, 0.0, 0.01)}, 200, "could not be measured; this is the best"),
    ],
)
def test_the_words_say_why(changes, n_seen, words):
    chosen, why = choose_setting(made(changes, n_seen=n_seen))
    assert words in why
    assert chosen == ("b" if n_seen == 200 else STAY)


def test_settings_that_change_nothing_are_seldom_taken_to_be_ahead():
    """Of 200 sets of twenty useless settings, about a tenth has one that looks ahead; 8 to 33 by binomial."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        ratios, bar = ratios_and_bar(rng.standard_normal((20, 60)) + rng.standard_normal(60))
        wrong += ratios.max() > bar
    assert 8 <= wrong <= 33


def test_the_bar_is_higher_for_settings_that_differ():
    rng = np.random.default_rng(0)
    one = rng.standard_normal((1, 100))
    ratios, alike = ratios_and_bar(np.repeat(one, 20, axis=0))
    np.testing.assert_allclose(ratios, one.sum() / np.sqrt((one**2).sum()))
    _, different = ratios_and_bar(rng.standard_normal((20, 100)))
    assert 1.0 < alike < 1.6 < different  # 1.28 and about 2.5, of the normal distribution
    ratios, bar = ratios_and_bar(np.zeros((3, 50)))
    assert ratios.tolist() == [0, 0, 0]
    assert bar == 0


def test_any_way_to_store_items_can_be_scored(rng, monkeypatch):
    """`learn` gets the queries of the other folds alone; scores are those of its vectors, by loops."""
    monkeypatch.setattr(from_pairs, "REPEATS", 2)
    items, judged = judged_of(rng)
    rows_of = {row.tobytes(): i for i, row in enumerate(judged.queries)}
    given = []

    def learn(known, vectors):
        given.append({rows_of[row.tobytes()] for row in known.queries})
        yield STAY, vectors
        yield "mirrored", -vectors

    scores = score_held_out(items, judged, learn)
    assert [len(rows) for rows in given] == 10 * [32]
    assert all(sum(row in rows for rows in given) == 8 for row in range(40))  # of 2 × 5 folds, all but 2
    for i, (query, found) in enumerate(zip(judged.queries, judged.relevant, strict=True)):
        for name, stored in ((STAY, items), ("mirrored", -items)):
            _, near = reference.nearest([query], stored, 10)
            dcg = sum(found.get(int(j), 0) / np.log2(2 + place) for place, j in enumerate(near[0]))
            ideal = sum(1 / np.log2(2 + place) for place in range(len(found)))
            np.testing.assert_allclose(scores.scores[name][:, i], dcg / ideal)


def test_a_page_shows_every_setting(rng):
    base = rng.uniform(0.3, 0.6, (1, 50))
    scores = HeldOutScores({s: base + i / 100 for i, s in enumerate(SETTINGS)}, base > 0.4)
    shown = surface(scores, PairSetting(4.0, 0.5))
    assert np.shape(shown["score"]) == (len(STEPS), len(PAIR_ALPHAS) + 1)
    column, row = shown["chosen"]
    assert (shown["x"]["values"][column], shown["y"]["values"][row]) == (4.0, 0.5)
    assert shown["score"][row][column] == pytest.approx(scores.of(PairSetting(4.0, 0.5), "all").mean())
    assert len(tried_rows(scores, STAY)) == len(SETTINGS)
