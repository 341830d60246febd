"""Moved items of another width, in every store: learned, moved, asked, and back.

What serves is asked by its own client: with queries of another space as they are, or with a 0 in one column.
"""

import json

import numpy as np
import pytest

import hubless
from hubless.corrections import NNN
from hubless.movers import Stay
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.evaluate import evaluate_index
from hubless.repair.learn_index import fit_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from hubless.testing.store_cases import exact, overlap, sample
from tests.stores.cases import case_of, parameters

WIDTH, LEARNED, K = 11, 200, 5  # columns of queries, how many have a judgement to learn from, answers


@pytest.fixture(params=parameters())
def case(request):
    return case_of(request.param, request)


def write_queries(folder, ids, X):
    """Write a query for each item, and who answers it, for learning and for testing; return the queries."""
    rng = np.random.default_rng(1)
    queries = X @ rng.standard_normal((X.shape[1], WIDTH)) + 0.5 * rng.standard_normal((len(X), WIDTH))
    queries = queries.astype(np.float32)
    np.save(folder / "queries.npy", queries)
    (folder / "queries.json").write_text(json.dumps({"id": [f"q{i}" for i in range(len(X))]}))
    for name, rows in (("learned", range(LEARNED)), ("tested", range(LEARNED, len(X)))):
        lines = [f"q{i}\t{ids[i]}\t1\n" for i in rows]
        (folder / f"{name}.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *lines]))
    return queries


def test_from_pairs_to_answers_and_back(case, tmp_path):
    ids, X, _, texts = sample(text_ids=case.text_ids)
    (tmp_path / "store").mkdir()
    store = case.make(tmp_path / "store", ids, X, texts, "l2")
    queries, served = write_queries(tmp_path, ids, X), store.name
    asked, before = queries[LEARNED:], case.ask(store, X[:9], K)
    log = open_store(tmp_path / "queries.npy", items=tmp_path / "queries.json")
    hubless.save(fit_index(store, pairs=tmp_path / "learned.tsv", queries=log), tmp_path / "model")
    model = hubless.load(tmp_path / "model")
    assert (model.dimension, model.width) == (X.shape[1], WIDTH)
    figures = evaluate_index(model, store, log, pairs=tmp_path / "tested.tsv", k=K).figures
    apply_index(model, store, case.green)
    promote_index(store, case.green)
    again = store.sibling(served)
    found = case.ask(again, asked, K)
    assert overlap(found, exact(ids, model.move(X), asked, K, "l2")) >= case.recall
    own = [str(i) in map(str, row) for i, row in zip(ids[LEARNED:], found, strict=True)]
    hit = next(change.after for change in figures if change.measure == f"hit rate@{K}")
    assert np.mean(own) >= case.recall * hit
    assert hit > 0.8  # by chance, K of 300
    rollback_index(again)
    assert overlap(case.ask(store.sibling(served), X[:9], K), before) == 1.0


def test_one_more_column_is_asked_with_a_0(case, tmp_path):
    ids, X, _, texts = sample(text_ids=case.text_ids)
    store = case.make(tmp_path, ids, X, texts, "l2")
    log, served = X[:200] + 0.5, store.name
    correction = NNN(metric="l2", column=True).fit(log, X)
    model = Repair(Stay().fit(X, np.zeros(len(X))), "l2", correction=correction)
    asked = np.c_[X[200:220] + 0.5, np.zeros(20, np.float32)]
    before = case.ask(store, asked[:, :-1], K)
    assert model.query_note in apply_index(model, store, case.green)["notes"]
    promote_index(store, case.green)
    again = store.sibling(served)
    assert again.facts().dimension == X.shape[1] + 1
    moved = exact(ids, model.move(X), asked, K, "l2")
    assert overlap(case.ask(again, asked, K), moved) >= case.recall
    assert overlap(before, moved) < 1  # so the line above can fail
    rollback_index(again)
    assert overlap(case.ask(store.sibling(served), asked[:, :-1], K), before) == 1.0
