"""What the page knows of each query that can be looked up, against a search by plain loops."""

import numpy as np
import pytest

from hubless.report import explorer
from hubless.report.page import LENGTHS, _shorten
from tests.report.test_report_details import STATES, Case, M, N


@pytest.fixture(scope="module")
def case():
    return Case()


def found(details):
    """Ids that each query finds before and after, and whether each is right, as the page reads them."""
    part, queries, items = details["explorer"], details["queries"], details["items"]
    ids = [*items["id"], *part["items"]["id"]]
    places = range(len(queries["id"])) if part["places"] is None else part["places"].tolist()
    near = [queries[f"near{i}"] if part[f"near{i}"] is None else part[f"near{i}"] for i in (0, 1)]
    return {
        queries["id"][place]: [
            [
                (ids[item], not queries[f"wrong{i}"][place] >> rank & 1)
                for rank, item in enumerate(state.reshape(-1, 10)[row])
            ]
            for i, state in enumerate(near)
        ]
        for row, place in enumerate(places)
    }


@pytest.mark.parametrize("max_points", [10_000, 40, 7], ids=["all on the map", "some", "few"])
def test_neighbours_are_those_of_plain_loops(case, max_points):
    details = case.report(max_points).details
    looked_up = found(details)
    assert len(looked_up) == min(M, max_points // 2)
    for name, states in looked_up.items():
        row = int(name[1:])
        for i, state in enumerate(states):
            expected = [(f"i{item}", case.y[item] == case.truth[row]) for item in case.near[i][row]]
            assert state == expected, (name, STATES[i])


def test_where_the_map_has_all_the_page_holds_nothing_twice(case):
    part = case.report().details["explorer"]
    assert (part["places"], part["near0"], part["near1"], part["items"]["id"]) == (None, None, None, [])


def test_items_that_the_map_lacks_are_described_once(case):
    part = case.report(40).details["explorer"]["items"]
    rows = [int(name[1:]) for name in part["id"]]
    assert len(set(rows)) == len(rows) > 0
    assert part["text"] == [f"text of item {row}" for row in rows]
    names = ["ant", "bee", "cat"]
    assert [names[code] for code in part["label"]] == case.y[rows].tolist()


def test_of_many_queries_some_can_be_looked_up_changed_ones_first(case, monkeypatch):
    monkeypatch.setattr(explorer, "EXPLORED", 12)
    details = case.report(N - 1).details
    drawn, changed = set(details["queries"]["id"]), {query["id"] for query in details["changed"]}
    looked_up = set(found(details))
    assert len(looked_up) == 12 < len(drawn)
    assert looked_up <= changed & drawn or changed & drawn <= looked_up


def test_texts_of_a_full_page_are_cut_there_too(case):
    details = case.report(40, texts=["word " * 200] * N).details
    for point, card, name in LENGTHS:
        items = _shorten(details, point, card, name)["explorer"]["items"]
        assert items["text"] is None if point == 0 else max(map(len, items["text"])) <= point
    assert np.array_equal(items["label"], details["explorer"]["items"]["label"])
