"""Families of hubs, against plain loops and groups that are known."""

from itertools import combinations

import numpy as np
import pytest

from hubless.evaluation import BeforeAfter
from hubless.report.families import common_words, find_families, found_by, overlap
from tests.report.test_report_details import Case, N

N_ITEMS, N_QUERIES, K = 400, 300, 10
GROUPS = ([3, 50, 71], [8, 90], [200, 201, 202, 203])  # each is found by its own hundred queries


@pytest.fixture(scope="module")
def near():
    """Neighbours at random, with the hubs of a group in most of the answers to its queries."""
    rng = np.random.default_rng(0)
    near = np.array([rng.choice(N_ITEMS, K, replace=False) for _ in range(N_QUERIES)])
    hubs = {hub for group in GROUPS for hub in group}
    near = np.array([[item if item not in hubs else 399 - item % 7 for item in row] for row in near])
    for number, group in enumerate(GROUPS):
        for query in range(100 * number, 100 * number + 100):
            for rank, hub in enumerate(group):
                if rng.random() < 0.8:
                    near[query, rank] = hub
    return near


def counts(near):
    return np.bincount(near.reshape(-1), minlength=N_ITEMS)


def plain_overlap(near, a, b):
    """The Jaccard index beyond that of independent draws, by sets."""
    m = len(near)
    first, second = ({query for query in range(m) if hub in near[query]} for hub in (a, b))
    jaccard = len(first & second) / len(first | second)
    both = len(first) * len(second) / m
    chance = both / (len(first) + len(second) - both)
    return max(0.0, (jaccard - chance) / (1 - chance)) if chance < 1 else 0.0


def test_overlap_is_that_of_plain_loops(near):
    hubs = np.array([3, 50, 8, 90, 200, 120, 121])
    table = overlap(found_by(near, hubs))
    for i, j in combinations(range(len(hubs)), 2):
        assert table[i, j] == table[j, i] == pytest.approx(plain_overlap(near, hubs[i], hubs[j]))
    assert table[0, 1] > 0.4
    assert table[0, 2] == 0


def test_hubs_of_the_same_queries_are_a_family(near):
    state = BeforeAfter(near, near)
    families = find_families(state, BeforeAfter(counts(near), counts(near)))
    assert sorted(sorted(family.tolist()) for family in families) == sorted(map(sorted, GROUPS))
    for family in families:
        assert (np.diff(counts(near)[family]) <= 0).all()


def test_random_answers_have_no_families():
    rng = np.random.default_rng(1)
    for n in (30, 400):
        near = np.array([rng.choice(n, K, replace=False) for _ in range(N_QUERIES)])
        occurrence = np.bincount(near.reshape(-1), minlength=n)
        assert find_families(BeforeAfter(near, near), BeforeAfter(occurrence, occurrence)) == []


def test_an_item_in_every_answer_overlaps_with_nothing_beyond_chance(near):
    near = near.copy()
    near[np.isin(near, [111, 112])] = 113
    near[:, 9], near[:, 8] = 111, 112
    assert overlap(found_by(near, np.array([111, 112, 3])))[0].tolist() == [0, 0, 0]


def test_names_are_words_of_the_family_that_are_rare_elsewhere():
    texts = ["the cat sat"] * 50 + ["the cell of blood", "the blood cell", "the blood in 1999", None, ""] * 2
    (words,) = common_words(texts, [np.array([50, 51, 52, 53])])
    weights = {}
    for word in ("the", "blood", "cell"):
        share = sum(word in (texts[row] or "") for row in (50, 51, 52, 53)) / 4
        elsewhere = (1 + sum(word in (text or "").split() for text in texts)) / (1 + len(texts))
        weights[word] = share * np.log(share / elsewhere)
    expected = sorted((word for word in weights if weights[word] > 0), key=lambda word: -weights[word])
    assert words == expected == ["blood", "cell"]


def test_words_are_letters_alone():
    texts = ["\u202eevil <b>bold</b> x1y2 \u2067naïve", "evil bold naïve"]
    (words,) = common_words([*texts, "other", "more", "again", "last"], [np.array([0, 1])])
    assert words == ["bold", "evil", "naïve"]


def test_the_page_counts_queries_of_a_family_and_occurrences_of_its_hubs():
    case = Case()
    families = case.report().details["families"]
    for family in families:
        rows = [int(member["id"][1:]) for member in family["members"]]
        assert family["hubs"] >= len(rows) > 1
        if family["hubs"] == len(rows):
            for i, state in enumerate(("before", "after")):
                assert family[state] == sum(bool(set(row) & set(rows)) for row in case.near[i].tolist())
        for row, member in zip(rows, family["members"], strict=True):
            assert (member["before"], member["after"]) == (case.counts[0][row], case.counts[1][row])
            assert (member["place"], member["text"]) == (row, f"text of item {row}")
    assert len(families) > 0
    assert max(row for row in rows) < N
