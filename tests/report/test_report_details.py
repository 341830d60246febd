"""What a page shows of single objects and queries, against plain loops and scikit-learn's PCA."""

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from hubless.evaluation import BeforeAfter, evaluate_classes, evaluate_relevance
from hubless.report.details import LONG, NAME, Captions, cut
from hubless.report.map_layout import Drawing, choose_rows
from hubless.report.report import ModelDescription, make_report
from tests import reference

N, M, D = 150, 90, 8
STATES = ("before", "after")


class Case:
    """150 objects of 3 classes that overlap, moved by a matrix and shrunk; 90 queries; all by plain loops."""

    def __init__(self):
        rng = np.random.default_rng(3)
        centres = rng.standard_normal((3, D))
        y, truth = rng.integers(0, 3, N), rng.integers(0, 3, M)
        self.X, self.queries = (
            0.6 * centres[codes] + rng.standard_normal((len(codes), D)) for codes in (y, truth)
        )
        names = np.array(["ant", "bee", "cat"])
        self.y, self.truth = names[y], names[truth]
        self.moved = 0.5 * self.X @ (np.eye(D) + 0.2 * rng.standard_normal((D, D))) + 0.3 * centres[y]
        self.stored, both = BeforeAfter(self.X, self.moved), BeforeAfter(self.queries, self.queries)
        self.evaluation = evaluate_classes(self.stored, both, self.y, self.truth, BeforeAfter(5, 3))
        self.shown = Captions(
            [f"i{i}" for i in range(N)],
            [f"q{i}" for i in range(M)],
            [f"text of item {i}" for i in range(N)],
            [f"text of query {i}" for i in range(M)],
        )
        self.near = [reference.nearest(self.queries, points, 10)[1] for points in self.stored]
        self.wrong = [self.y[near] != self.truth[:, None] for near in self.near]
        self.counts = [np.array(reference.k_occurrence(near, N)) for near in self.near]
        self.bad = [np.array(reference.bad_k_occurrence(near, self.y, self.truth)) for near in self.near]
        self.answer = [reference.vote(self.y[near[:, :k]]) for near, k in zip(self.near, (5, 3), strict=True)]

    def report(self, max_points=10_000, **more):
        shown = Captions(**{**vars(self.shown), **more})
        return make_report(
            self.evaluation, shown, ModelDescription("a matrix"), Drawing(max_points=max_points)
        )


@pytest.fixture(scope="session")
def case():
    return Case()


@pytest.fixture(scope="session")
def details(case):
    return case.report().details


@pytest.fixture(scope="session", params=[40, 7])
def sample(case, request):
    """Details of a map with room for a part of the items."""
    return case.report(request.param).details


def places_of(ids):
    return [int(key[1:]) for key in ids]


# --- points -------------------------------------------------------------------------------------------------


def test_every_point_has_its_counts(case, details):
    items, queries = details["items"], details["queries"]
    assert items["id"] == case.shown.ids
    assert items["text"] == case.shown.texts
    assert queries["text"] == case.shown.query_texts
    assert details["sampled"] is None
    names = ["ant", "bee", "cat"]
    assert [names[i] for i in items["label"]] == case.y.tolist()
    assert [names[i] for i in queries["label"]] == case.truth.tolist()
    for state in (0, 1):
        np.testing.assert_array_equal(items[f"n{state}"], case.counts[state])
        np.testing.assert_array_equal(items[f"bad{state}"], case.bad[state])
        np.testing.assert_array_equal(queries[f"right{state}"], case.answer[state] == case.truth)


def test_links_are_the_neighbours_and_bits_the_wrong_ones(case, details):
    queries = details["queries"]
    for state in (0, 1):
        np.testing.assert_array_equal(queries[f"near{state}"].reshape(M, 10), case.near[state])
        bits = [sum(1 << rank for rank in range(10) if row[rank]) for row in case.wrong[state]]
        assert queries[f"wrong{state}"].tolist() == bits


def test_types_are_those_that_the_page_reads(details):
    kinds = {"label": "u4", "x": "u2", "y": "u2", "n": "u4", "bad": "u4", "right": "u1", "near": "i4"}
    for name in ("items", "queries"):
        for column, values in details[name].items():
            if isinstance(values, np.ndarray):
                kind = {**kinds, "wrong": "u2"}[column.rstrip("01")]
                assert values.dtype == np.dtype(kind), (name, column)


def projections(case):
    """Objects and queries on two components of the original objects."""
    axes = PCA(2).fit(case.X)
    return [axes.transform(points) for points in (case.X, case.queries)]


def check_places(case, details):
    """The map is one scale and one shift per axis of the projection, up to its sign and half a step."""
    rows, query_rows = places_of(details["items"]["id"]), places_of(details["queries"]["id"])
    before, queries = projections(case)
    truth = np.vstack([before[rows], queries[query_rows]])
    items, queries_drawn = details["items"], details["queries"]
    drawn = np.column_stack([np.append(items[axis], queries_drawn[axis]).astype(float) for axis in "xy"])
    slopes = []
    for axis in (0, 1):
        design = np.column_stack([truth[:, axis], np.ones(len(truth))])
        (slope, shift), *_ = np.linalg.lstsq(design, drawn[:, axis], rcond=None)
        np.testing.assert_allclose(design @ [slope, shift], drawn[:, axis], atol=1)
        slopes.append(abs(slope))
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-3)  # no axis is stretched
    spans = np.ptp(drawn, axis=0)
    assert max(spans) == 65535  # the box is used


def test_places_are_one_map_of_the_projection(case, details):
    check_places(case, details)
    ratio = PCA(2).fit(case.X).explained_variance_ratio_.sum()
    assert f"{ratio:.0%}" in details["layout"]["words"].replace(" %", "%")
    assert details["layout"]["name"] == "pca"


# --- a sample -----------------------------------------------------------------------------------------------


def test_a_sample_keeps_the_busiest_and_says_so(case, sample):
    rows, limit = places_of(sample["items"]["id"]), len(sample["items"]["id"])
    assert limit in (40, 7)
    assert rows == sorted(set(rows))
    busiest = min(limit, 12)  # as many as have a card
    assert (
        sorted(case.counts[0][rows], reverse=True)[:busiest] == sorted(case.counts[0], reverse=True)[:busiest]
    )
    assert len(sample["queries"]["id"]) == limit // 2
    assert f"{limit} of 150 items are drawn: the {busiest} busiest" in sample["sampled"]
    assert f"{limit // 2} of 90 queries" in sample["sampled"]
    check_places(case, sample)


def test_the_busiest_of_either_state_are_kept():
    before, after = np.zeros(200, dtype=int), np.zeros(200, dtype=int)
    before[5], after[[7, 9]] = 4, 9
    changed = np.array([180, 3])
    for seed in range(20):  # by chance alone one in five would do
        items, queries, _ = choose_rows(BeforeAfter(before, after), 300, changed, 40, seed)
        assert {7, 9} <= set(items.tolist())
        assert {180, 3} <= set(queries.tolist())
        assert (len(items), len(queries)) == (40, 20)


def test_a_sample_counts_all_queries_and_names_what_is_not_drawn(case, sample):
    rows, query_rows = places_of(sample["items"]["id"]), places_of(sample["queries"]["id"])
    where = {row: place for place, row in enumerate(rows)}
    for state in (0, 1):
        np.testing.assert_array_equal(sample["items"][f"n{state}"], case.counts[state][rows])
        np.testing.assert_array_equal(sample["items"][f"bad{state}"], case.bad[state][rows])
        truth = [[where.get(item, -1) for item in case.near[state][query]] for query in query_rows]
        assert sample["queries"][f"near{state}"].reshape(-1, 10).tolist() == truth


def test_cards_and_changes_of_a_sample_point_to_what_they_name(sample):
    """Or to nothing (−1): a click on a card must never show another item."""
    assert sample["hubs"]
    for cards, points in ((sample["hubs"], sample["items"]), (sample["changed"], sample["queries"])):
        for card in cards:
            drawn = card["id"] in points["id"]
            assert card["place"] == (points["id"].index(card["id"]) if drawn else -1), card["id"]


# --- cards of hubs, and queries that changed ----------------------------------------------------------------


def test_cards_are_of_the_items_that_do_the_most_harm(case, details):
    busiest = sorted(range(N), key=lambda i: (-case.bad[0][i], -case.counts[0][i], i))[:12]
    assert busiest != sorted(range(N), key=lambda i: (-case.counts[0][i], i))[:12]
    assert [card["id"] for card in details["hubs"]] == [f"i{i}" for i in busiest]
    for row, card in zip(busiest, details["hubs"], strict=True):
        assert (card["before"], card["after"]) == (case.counts[0][row], case.counts[1][row])
        assert (card["harm_before"], card["harm_after"]) == (case.bad[0][row], case.bad[1][row])
        assert (card["text"], card["label"]) == (f"text of item {row}", case.y[row])
        for state, key in enumerate(("wrong_before", "wrong_after")):
            count, bad = case.counts[state][row], case.bad[state][row]
            assert card[key] == (pytest.approx(bad / count) if count else None)
        places = [(rank, q) for q in range(M) for rank in range(10) if case.near[0][q][rank] == row]
        # wrong ones first, then those that it is nearest to
        nearest = sorted(places, key=lambda pair: (not case.wrong[0][pair[1]][pair[0]], pair))[:3]
        assert [query["id"] for query in card["queries"]] == [f"q{q}" for _, q in nearest]
        assert [query["wrong"] for query in card["queries"]] == [
            case.wrong[0][q][rank] for rank, q in nearest
        ]
        assert [query["label"] for query in card["queries"]] == [case.truth[q] for _, q in nearest]


def test_changed_queries_broken_first_with_their_neighbours(case, details):
    right = [classes == case.truth for classes in case.answer]
    broken, fixed = np.flatnonzero(right[0] & ~right[1]), np.flatnonzero(right[1] & ~right[0])
    assert min(len(broken), len(fixed)) > 0
    expected = [("broken", f"q{i}") for i in broken] + [("fixed", f"q{i}") for i in fixed]
    assert [(query["status"], query["id"]) for query in details["changed"]] == expected
    for query in details["changed"]:
        (row,) = places_of([query["id"]])
        assert query["place"] == row
        assert (query["text"], query["label"]) == (f"text of query {row}", case.truth[row])
        for state, name in enumerate(STATES):
            assert query[name]["answer"] == case.answer[state][row]
            near = query[name]["neighbors"]
            assert [item["id"] for item in near] == [f"i{i}" for i in case.near[state][row][:5]]
            assert [item["wrong"] for item in near] == case.wrong[state][row][:5].tolist()
            assert [item["label"] for item in near] == case.y[case.near[state][row][:5]].tolist()


def test_of_many_changes_a_sample_is_listed(rng):
    """Of 300 broken queries, 100 are listed, from the first to the last, and the figures say so."""
    X = np.vstack([np.zeros((10, 2)), np.full((10, 2), 5.0)]) + 0.01 * rng.standard_normal((20, 2))
    y, queries = np.repeat(["a", "b"], 10), 0.01 * rng.standard_normal((300, 2))
    evaluation = evaluate_classes(
        BeforeAfter(X, X[::-1].copy()),
        BeforeAfter(queries, queries),
        y,
        np.repeat("a", 300),
        BeforeAfter(1, 1),
    )
    report = make_report(evaluation, Captions(range(20), range(300)), ModelDescription("turned around"))
    assert report.figures["changed"]["broken"] == 300
    assert report.figures["changed"]["shown"] == {"fixed": 0, "broken": 100}
    listed = [int(query["id"]) for query in report.details["changed"]]
    assert (len(set(listed)), listed[0], listed[-1]) == (100, 0, 299)
    assert report.figures["summary"]["verdict"]["kind"] == "harmful"


def check_harm(case, details, relevant, rejected):
    """Cards count items that are in the way, unjudged and judged wrong, by loops."""
    kinds = {"harm": [0] * N, "wrong": [0] * N, "unjudged": [0] * N}
    for near, answers, judged in zip(case.near[0], relevant, rejected, strict=True):
        room = sum(item in answers for item in near) < len(answers)
        for item in near:
            kinds["harm"][item] += room and item not in answers
            kinds["wrong"][item] += item in judged
            kinds["unjudged"][item] += item not in answers and item not in judged
    worst = sorted(range(N), key=lambda i: (-kinds["harm"][i], -case.counts[0][i], i))[:12]
    assert [card["id"] for card in details["hubs"]] == [f"i{i}" for i in worst]
    for row, card in zip(worst, details["hubs"], strict=True):
        assert card["harm_before"] == kinds["harm"][row] > 0
        for kind in ("wrong", "unjudged"):
            assert card[f"{kind}_before"] == pytest.approx(kinds[kind][row] / case.counts[0][row])
    assert sum(kinds["wrong"]) > M / 2
    for query in details["changed"]:
        asked = int(query["id"][1:])
        for state, name in enumerate(STATES):
            near = query[name]["neighbors"]
            assert [item["id"] for item in near] == [f"i{i}" for i in case.near[state][asked]]  # all ten
            marks = [(item["wrong"], item["unjudged"]) for item in near]
            assert marks == [
                (i in rejected[asked], i not in relevant[asked] and i not in rejected[asked])
                for i in case.near[state][asked]
            ]


def test_without_classes_a_wrong_answer_is_one_that_is_not_relevant(case):
    rng = np.random.default_rng(1)
    relevant = [{int(i): 1.0 for i in rng.choice(N, 3, replace=False)} for _ in range(M)]
    relevant[0] = {int(case.near[0][0][2]): 2.0}
    both = BeforeAfter(case.queries, case.queries)
    rejected = [{int(case.near[0][q][5])} - {*answers} for q, answers in enumerate(relevant)]
    evaluation = evaluate_relevance(case.stored, both, relevant, 4, rejected=rejected)
    details = make_report(evaluation, case.shown, ModelDescription("a matrix")).details
    check_harm(case, details, relevant, rejected)
    assert details["items"]["label"] is None
    for state in (0, 1):
        truth = [
            sum(1 << rank for rank in range(10) if near[rank] not in answers)
            for near, answers in zip(case.near[state], relevant, strict=True)
        ]
        assert details["queries"][f"wrong{state}"].tolist() == truth
        right = [
            any(item in answers for item in near[:4])
            for near, answers in zip(case.near[state], relevant, strict=True)
        ]
        assert details["queries"][f"right{state}"].tolist() == right
    assert {query["before"]["answer"] for query in details["changed"]} == {None}
    assert {hub["label"] for hub in details["hubs"]} == {None}


def test_texts_are_cut(case):
    long = "word " * 20_000
    report = case.report(texts=[long] * N, ids=[f"i{i}" + "x" * 500 for i in range(N)])
    assert {len(key) for key in report.details["items"]["id"]} == {NAME}
    assert all(len(text) <= 300 for text in report.details["items"]["text"])
    assert all(LONG - 10 < len(card["text"]) <= LONG for card in report.details["hubs"])
    assert report.details["hubs"][0]["text"].endswith("word…")
    for query in report.details["changed"]:
        assert all(len(item["text"]) <= 300 for item in query["before"]["neighbors"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [("abcdef", "abcdef"), ("abcdefg", "abcde…"), (12, "12"), ("", None), (None, None), (math.nan, None)],
)
def test_cut(value, expected):
    assert cut(value, 6) == expected
