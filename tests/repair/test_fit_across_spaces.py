"""`hubless fit` from pairs where the vectors of the index have other columns than the queries."""

import json

import numpy as np
import pytest

import hubless
from hubless.repair.learn_index import fit_index
from hubless.stores.opening import open_store
from tests import reference


@pytest.fixture
def files(rng, tmp_path):
    """50 images of 8 columns, and 2 captions of 5 for each of the first 40."""
    images = rng.standard_normal((50, 8)).astype(np.float32)
    answers = np.repeat(np.arange(40), 2)
    captions = images[answers] @ rng.standard_normal((8, 5)) + 0.3 * rng.standard_normal((80, 5))
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "captions.npy", captions.astype(np.float32))
    (tmp_path / "images.csv").write_text("id\n" + "".join(f"i{i}\n" for i in range(50)))
    (tmp_path / "captions.csv").write_text("id\n" + "".join(f"c{i}\n" for i in range(80)))
    judged = "".join(f"c{i}\ti{j}\t1\n" for i, j in enumerate(answers))
    (tmp_path / "pairs.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return tmp_path


def opened(files, name):
    return open_store(files / f"{name}.npy", items=files / f"{name}.csv")


def test_items_are_moved_into_the_space_of_the_queries(files):
    images, captions = opened(files, "images"), opened(files, "captions")
    model = fit_index(images, pairs=files / "pairs.tsv", queries=captions)
    learned = model.facts["learned"]
    assert (model.dimension, model.width, model.metric) == (8, 5, "l2")
    assert (learned["from"], learned["n"], learned["items with queries"]) == ("pairs", 80, 40)
    assert len(learned["tried"]) == 13
    X, Q = np.load(files / "images.npy").astype(float), np.load(files / "captions.npy").astype(float)
    Z = X[np.repeat(np.arange(40), 2)]
    A, K = reference.moments(Q - Q.mean(axis=0), Z - Z.mean(axis=0))
    W = reference.solve(A, K, model.mover.alpha_)
    expected = Q.mean(axis=0) + (X - Z.mean(axis=0)) @ W.T
    np.testing.assert_allclose(model.move(X), expected, atol=1e-5)
    hubless.save(model, files / "model")
    assert hubless.load(files / "model").hash == model.hash
    card = (files / "model" / "README.md").read_text()
    assert "W from 8 columns to the 5 of the queries" in card
    assert "there is no score of not moving" in card


def test_a_seed_gives_the_same_model_again(files):
    def fitted(seed):
        images, captions = opened(files, "images"), opened(files, "captions")
        return fit_index(images, pairs=files / "pairs.tsv", queries=captions, random_state=seed)

    first, again = fitted(1), fitted(1)
    assert first.hash == again.hash
    tried = [json.dumps(model.facts["learned"]["tried"]) for model in (first, again, fitted(2))]
    assert tried[0] == tried[1] != tried[2]
