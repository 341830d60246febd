"""SciFact: what the README says of learning from pairs, measured."""

import csv
import json

import numpy as np
import pytest

from hubless import MoveLabeled, nearest

pytestmark = pytest.mark.slow  # needs its embeddings


@pytest.fixture(scope="module")
def scifact(data_dir):
    """Documents, queries, and for the training and the test part the relevant documents of each query."""
    folder = data_dir / "scifact"
    documents, queries = (
        np.load(folder / f"{name}_minilm_384.npy").astype(np.float32) for name in ("docs", "queries")
    )
    places = [
        {name: i for i, name in enumerate(json.loads((folder / f"{kind}_ids.json").read_text()))}
        for kind in ("query", "doc")
    ]
    relevant = []
    for part in ("train", "test"):
        found: dict[int, set[int]] = {}
        with open(folder / f"qrels_{part}.tsv") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if int(row["score"]) > 0:
                    found.setdefault(places[0][row["query-id"]], set()).add(places[1][row["corpus-id"]])
        relevant.append(found)
    return documents, queries, *relevant


def ndcg(documents, queries, relevant):
    """nDCG@10 of the documents nearest to each query."""
    rows = sorted(relevant)
    found = nearest(queries[rows], documents, 10, return_distance=False)
    discount = 1 / np.log2(np.arange(2, 12))
    gains = [np.isin(row, list(relevant[q])) @ discount for q, row in zip(rows, found, strict=True)]
    best = [discount[: len(relevant[q])].sum() for q in rows]
    return float(np.mean(np.array(gains) / best))


@pytest.fixture(scope="module")
def measured(scifact):
    """nDCG@10 of queries with seen and with unseen documents: as they are, and moved by each pull."""
    documents, queries, train, test = scifact
    pairs = [(q, d) for q, found in train.items() for d in found]
    known = {d for _, d in pairs}
    parts = (
        {q: found for q, found in test.items() if found <= known},
        {q: found for q, found in test.items() if not found & known},
    )
    sources, targets = queries[[q for q, _ in pairs]], documents[[d for _, d in pairs]]
    moved = {
        pull: MoveLabeled(toward=pull).fit_pairs(sources, targets).move(documents)
        for pull in ("zero", "identity")
    }
    return {
        name: tuple(ndcg(stored, queries, part) for part in parts)
        for name, stored in {"as they are": documents, **moved}.items()
    }


def test_the_model_is_the_published_one(scifact):
    documents, queries, _, test = scifact
    assert ndcg(documents, queries, test) == pytest.approx(0.645, abs=0.005)


def test_pairs_help_seen_documents_and_may_harm_others(measured):
    assert measured["as they are"] == pytest.approx((0.64, 0.67), abs=0.005)
    assert measured["zero"] == pytest.approx((0.86, 0.57), abs=0.005)


def test_the_pull_toward_the_identity_helps_both(measured):
    """On separate measurements with the mean eigenvalue as λ: .854 and .684."""
    assert measured["identity"] == pytest.approx((0.854, 0.684), abs=0.01)
