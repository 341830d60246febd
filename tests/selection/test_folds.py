"""Folds: equal rows stay together, and nothing else changes."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold, train_test_split

from hubless import MoveLabeledClassifierCV
from hubless.paper import datasets
from hubless.selection import copies
from hubless.selection.copies import copied_rows, equal_rows
from hubless.selection.folds import can_compare, folds


def dealt_by_hand(codes, n_folds, seed):
    """Deal shuffled objects like cards, class by class, each to the next fold."""
    piles, turn = [[] for _ in range(n_folds)], 0
    shuffled = np.random.RandomState(seed).permutation(len(codes)).tolist()
    for code in sorted(set(codes.tolist())):
        for row in shuffled:
            if codes[row] == code:
                piles[turn % n_folds].append(row)
                turn += 1
    return [sorted(pile) for pile in piles]


def queries_of(parts):
    return [test.tolist() for _, test in parts]


def test_rows_are_numbered_as_a_dictionary_of_rows_does(asarray, rng):
    for dtype in (np.float32, np.float64):
        X = rng.integers(-1, 2, (300, 3)).astype(dtype)  # 27 different rows, and -0.0 beside 0.0
        X[::2] *= -1
        numbers, groups = equal_rows(asarray(X)), {}
        for i, row in enumerate(X.tolist()):  # Python's 0.0 and -0.0 are one key
            groups.setdefault(tuple(row), []).append(i)
        assert sorted(
            np.flatnonzero(numbers == number).tolist() for number in set(numbers.tolist())
        ) == sorted(groups.values())
        assert equal_rows(asarray(rng.standard_normal((300, 3)).astype(dtype))) is None


def test_rows_that_differ_in_the_last_bit_are_different(rng):
    X = np.repeat(rng.standard_normal((50, 4)), 2, axis=0)
    X[1::2, 3] = np.nextafter(X[1::2, 3], np.inf)
    assert equal_rows(X) is None


def test_different_rows_of_one_hash_are_told_apart(rng, monkeypatch):
    X = rng.integers(0, 3, (200, 2)).astype(float)
    truth = equal_rows(X)
    monkeypatch.setattr(copies, "_keys", lambda rows: (rows[:, 0] > 0).astype(np.uint64))
    numbers = equal_rows(X)
    np.testing.assert_array_equal(numbers[:, None] == numbers, truth[:, None] == truth)
    # all rows differ, and all have one hash
    numbers = equal_rows(np.arange(20.0).reshape(10, 2) + 1)
    assert len(set(numbers.tolist())) == 10


def test_equal_rows_of_coarse_values_are_no_copies(asarray, rng):
    attributes = (rng.random((300, 10)) < 0.3).astype(float)  # chance makes many of them equal
    assert equal_rows(asarray(attributes)) is not None
    assert copied_rows(asarray(attributes)) is None
    assert copied_rows(asarray(np.ones((9, 2)))) is None
    for X in (
        rng.standard_normal((300, 1)),
        rng.integers(0, 17, (300, 64)).astype(float),  # as pixels are: coarse, but there are many
        (rng.random((300, 200)) < 0.3).astype(float),
    ):
        twice = np.repeat(X, 2, axis=0)
        np.testing.assert_array_equal(copied_rows(asarray(twice)), equal_rows(twice))


def test_expected_coincidences_are_those_of_loops(rng):
    X = rng.integers(0, 3, (40, 3)).astype(float)
    numbers = equal_rows(X)
    rows = sorted(set(map(tuple, X.tolist())))
    truth = 40 * 39 / 2
    for j in range(3):
        alike = [a[j] == b[j] for i, a in enumerate(rows) for b in rows[:i]]
        truth *= sum(alike) / len(alike)
    assert copies._coincidences(X, numbers) == pytest.approx(truth)
    assert truth > 1


@pytest.mark.slow
def test_attributes_of_the_paper_are_no_copies(data_dir):
    X = datasets.load("apy").X
    assert len(set(equal_rows(X).tolist())) == len(np.unique(X, axis=0)) == 4252
    assert copied_rows(X) is None
    assert copied_rows(X[::20]) is None
    documents = datasets.load("reuters").X  # some articles are there twice
    np.testing.assert_array_equal(copied_rows(documents), equal_rows(documents))


@pytest.mark.parametrize("sizes", [[30, 20, 9, 1], [7, 7, 7], [11, 2]])
def test_folds_without_copies_are_dealt_like_cards(sizes):
    codes = np.repeat(np.arange(len(sizes)), sizes)[np.random.default_rng(1).permutation(sum(sizes))]
    n = len(codes)
    for cv in (2, 5, n):
        truth = dealt_by_hand(codes, cv, 3)
        assert queries_of(folds(codes, np.arange(n), cv, 3)) == truth
        # a number for each row changes nothing, and neither does one number for all of them
        assert queries_of(folds(codes, np.arange(n), cv, 3, np.arange(n)[::-1])) == truth
        assert queries_of(folds(codes, np.arange(n), cv, 3, np.zeros(n, int))) == truth


def test_groups_of_one_are_dealt_like_cards_too(rng):
    from hubless.selection.folds import _deal_groups

    codes = rng.integers(0, 6, 137)
    shuffled = np.random.RandomState(0).permutation(137)
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    for cv in (2, 5, 137):
        fold = _deal_groups(codes, rng.permutation(137), dealt, cv)
        assert [np.flatnonzero(fold == i).tolist() for i in range(cv)] == dealt_by_hand(codes, cv, 0)


def test_a_few_copies_leave_all_others_where_they_were(rng):
    codes, groups = rng.integers(0, 4, 200), np.arange(200)
    groups[[7, 70, 170]] = groups[[3, 3, 44]]
    before, after = (folds(codes, np.arange(200), 5, 0, copies) for copies in (None, groups))
    fold_before, fold_after = (
        [next(i for i, (_, test) in enumerate(parts) if row in test) for row in range(200)]
        for parts in (before, after)
    )
    moved = [row for row in range(200) if fold_before[row] != fold_after[row]]
    assert set(moved) <= {3, 7, 70, 44, 170}
    assert fold_after[3] == fold_after[7] == fold_after[70] in {fold_before[row] for row in (3, 7, 70)}
    assert fold_after[44] == fold_after[170]


def test_copies_stay_together_and_folds_stay_even(rng):
    sizes = rng.integers(1, 6, 150)  # of the groups
    class_of_group = rng.integers(0, 4, 150)
    order = rng.permutation(sizes.sum())
    groups = np.repeat(np.arange(150), sizes)[order]
    codes = class_of_group[groups]
    parts = folds(codes, np.arange(len(codes)), 5, 0, groups)
    assert sorted(row for _, test in parts for row in test) == list(range(len(codes)))
    for train, test in parts:
        assert sorted([*train, *test]) == list(range(len(codes)))
        assert not set(groups[train].tolist()) & set(groups[test].tolist())
        assert abs(len(test) - len(codes) / 5) < 5
        for code in range(4):
            assert abs(np.sum(codes[test] == code) - np.sum(codes == code) / 5) < 5
    again = folds(codes, np.arange(len(codes)), 5, 0, groups)
    assert (
        queries_of(parts)
        == queries_of(again)
        != queries_of(folds(codes, np.arange(len(codes)), 5, 1, groups))
    )


def test_equal_rows_of_different_classes_stay_together():
    codes, groups = np.arange(40) % 2, np.arange(40) // 2  # each group has both classes
    for train, test in folds(codes, np.arange(40), 5, 0, groups):
        assert not set(groups[train].tolist()) & set(groups[test].tolist())
        assert [len(test), np.sum(codes[test])] == [8, 4]


def test_a_group_larger_than_a_fold_is_a_fold_of_its_own_class():
    codes = np.repeat([0, 1], [70, 30])
    groups = np.where(np.arange(100) < 60, 0, np.arange(100))  # 60 copies of one row
    parts = folds(codes, np.arange(100), 5, 0, groups)
    (large,) = [test for _, test in parts if 0 in test]
    assert set(range(60)) <= set(large.tolist())
    assert np.sum(codes[large] == 0) == 60  # the other ten of its class are elsewhere
    assert set(parts[-1][1].tolist()) == set(large.tolist())  # the fewest different rows come last
    for _, test in parts:
        assert np.sum(codes[test] == 1) == 6


def test_fewer_different_rows_than_folds_give_fewer_folds():
    groups = np.arange(30) % 3
    parts = folds(np.arange(30) % 2, np.arange(30), 5, 0, groups)
    assert sorted(groups[test].tolist() for _, test in parts) == [[0] * 10, [1] * 10, [2] * 10]


def test_groups_are_those_of_the_rows_that_are_kept():
    codes, kept = np.arange(20) % 2, np.arange(0, 20, 2)
    groups = np.arange(10) // 2
    for _, test in folds(codes, kept, 5, 0, groups):
        assert test.tolist() in [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def test_given_folds_are_left_as_they_are():
    given = list(KFold(4).split(np.zeros(20)))
    for cv in (given, KFold(4)):
        parts = folds(np.arange(20) % 2, np.arange(20), cv, 0, np.zeros(20, int) + np.arange(20) // 2)
        assert queries_of(parts) == queries_of(given)


def test_by_default_five_folds_or_leave_one_out():
    for n, expected in ((2, 2), (3, 3), (9, 9), (10, 5), (57, 5)):
        codes = np.arange(n) % 2
        parts = folds(codes, np.arange(n), None, 0)
        assert queries_of(parts) == dealt_by_hand(codes, expected, 0)


def test_what_can_be_compared():
    def leave_one_out(codes):
        rows = np.arange(len(codes))
        return [(rows[rows != row], rows[rows == row]) for row in rows]

    # two objects: one is left to find, and none to learn from
    for codes, can_find, can_learn in [
        ([0, 1], False, False),
        ([0, 0], True, False),
        ([0, 0, 1], True, False),
        ([0, 0, 0], True, True),
        ([0, 0, 1, 1], True, True),
        ([0, 0, 1, 2, 3], True, False),
    ]:
        parts = leave_one_out(codes)
        assert can_compare(np.array(codes), parts, False, None) == can_find, codes
        assert can_compare(np.array(codes), parts, True, None) == can_learn, codes
        assert can_compare(np.array(codes), parts, True, 2) == (len(set(codes)) < len(codes))


@pytest.mark.parametrize("mover", ["ridge", "auto"])
def test_copies_do_not_raise_the_score(mover):
    X, y = make_classification(1000, 10, n_informative=5, n_classes=4, class_sep=0.7, random_state=0)
    X, queries, y, truth = train_test_split(X, y, train_size=200, random_state=0)
    twice = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    model = MoveLabeledClassifierCV(mover=mover).fit(*twice)
    leaking = KFold(5, shuffle=True, random_state=0)
    before = MoveLabeledClassifierCV(mover=mover, cv=leaking).fit(*twice)
    measured = model.score(queries, truth)
    assert before.best_score_ > measured + 0.3  # what copies across folds would claim
    assert abs(model.best_score_ - measured) < 0.1  # 3 standard errors of 200 queries
