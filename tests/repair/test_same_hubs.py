"""`doctor`, `evaluate` and `report` tell the same of the same queries; each says which queries it asked."""

import json

import numpy as np
import pytest

from hubless.repair.doctor import diagnose
from hubless.report.index_report import report_index
from hubless.stores.opening import open_store
from tests import reference


@pytest.fixture(params=["l2", "cosine"])
def shop(request, tmp_path):
    """Items of three classes with hubs, and queries, of which three repeat another."""
    rng = np.random.default_rng(0)
    X, queries = rng.standard_normal((150, 20)), rng.standard_normal((60, 20))
    queries += 0.5
    X[:4] = 0.5 + 0.2 * X[:4]  # in the middle of the queries
    queries[57:] = queries[:3]
    for name, points in (("items", X), ("queries", queries)):
        np.save(tmp_path / f"{name}.npy", points.astype(np.float32))
        kinds = rng.choice(["ant", "bee", "cat"], len(points)).tolist()
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": kinds}))
    return [
        open_store(tmp_path / f"{name}.npy", metric=request.param, items=tmp_path / f"{name}.json")
        for name in ("items", "queries")
    ]


def test_doctor_and_report_say_the_same(shop):
    items, queries = shop
    found, report = diagnose(items, queries=queries), report_index(items, labels="kind", queries=queries)
    evaluation = report.evaluation
    plain = {
        name: value for name, value in evaluation.hubness.before.as_dict().items() if name != "bad_share"
    }
    assert plain == pytest.approx({name: found.hubness.as_dict()[name] for name in plain})
    assert found.n_hubs == evaluation.hubness.before.n_hubs > 0
    assert found.chance == evaluation.chance.as_dict()
    assert found.asked == evaluation.asked == report.figures["words"]["asked"]
    assert found.asked == "57 queries of queries.npy, without 3 that repeat another"
    assert report.figures["counts"]["hub_from"] == found.chance["threshold"]
    assert hub_rows(str(found), 1) == hub_rows(str(evaluation), 2)
    tiles = {tile["title"]: tile for tile in report.figures["summary"]["figures"]}
    assert tiles["Never returned"]["before"] == pytest.approx(found.hubness.antihub_share)
    assert tiles["Never returned"]["chance"] == found.chance["antihub_share"]


def hub_rows(words, states):
    """Titles, the first state and chance of the table of hubs."""
    lines = words.split("\n")
    first = next(place for place, line in enumerate(lines) if line.endswith("by chance"))
    rows = [line.strip().replace(" %", "%") for line in lines[first + 1 : first + 6]]
    cells = [row.rsplit(maxsplit=states + 1) for row in rows]
    return [(title, values[0], values[-1]) for title, *values in cells]


def test_hubs_are_what_loops_find(shop):
    items, queries = shop
    found = diagnose(items, queries=queries)
    X, asked = (np.load(store.path) for store in (items, queries))
    if items.facts().metric == "cosine":
        X, asked = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, asked))
    counts = reference.k_occurrence(reference.nearest(asked[:57], X, 10)[1], len(X))
    assert found.n_hubs == len(reference.hubs(counts, 57, 10))


def test_each_says_which_queries_it_asked(shop):
    items, queries = shop
    assert diagnose(items).asked == "each of these items, without itself"
    assert diagnose(items, queries=np.load(queries.path)[:9]).asked.startswith("9 queries, too few")
    held = report_index(items, labels="kind")
    assert (
        held.figures["words"]["asked"]
        == f"{held.figures['counts']['queries']} queries, held out of 150 items"
    )
