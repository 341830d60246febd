"""Precision, labels and array libraries: what goes in decides what comes out."""

import numpy as np
import pandas as pd
import pytest

from hubless import MoveLabeled, MoveLabeledClassifier
from hubless.arrays import to_numpy


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("int32", "float64"),
        ("bool", "float64"),
    ],
)
def test_precision_is_kept_or_lifted(asarray, rng, given, kept):
    X, y = (10 * rng.standard_normal((60, 4))).astype(given), np.arange(60) % 3
    model = MoveLabeledClassifier().fit(asarray(X), asarray(y))
    assert kept in str(model.moved_.dtype)
    assert kept in str(model.W_.dtype)
    assert kept in str(model.kneighbors(asarray(X))[0].dtype)
    assert kept in str(model.predict_proba(asarray(X)).dtype)
    truth = MoveLabeledClassifier().fit(X.astype(float), y)
    assert np.mean(to_numpy(model.predict(asarray(X))) == truth.predict(X.astype(float))) > 0.95


def test_float16_becomes_float32(rng):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    assert MoveLabeledClassifier().fit(X.astype(np.float16), y).moved_.dtype == np.float32


@pytest.mark.torch
def test_short_floats_of_torch_become_float32(rng):
    import torch

    X, y = torch.as_tensor(rng.standard_normal((30, 4))), np.arange(30) % 2
    for dtype in (torch.float16, torch.bfloat16):
        assert MoveLabeledClassifier().fit(X.to(dtype), y).moved_.dtype == torch.float32


def test_labels_of_any_kind(asarray, blobs):
    X, y, queries = blobs
    truth = MoveLabeledClassifier().fit(X, y).predict(queries)
    names = np.array(["cat", "dog", "fox", "owl"])
    model = MoveLabeledClassifier().fit(asarray(X), names[y])
    np.testing.assert_array_equal(model.predict(asarray(queries)), names[truth])
    assert list(model.classes_) == list(names)
    as_list = MoveLabeledClassifier().fit(X.tolist(), names[y].tolist())
    np.testing.assert_array_equal(as_list.predict(queries.tolist()), names[truth])
    short = MoveLabeledClassifier().fit(asarray(X), y.astype(np.uint16))
    np.testing.assert_array_equal(to_numpy(short.predict(asarray(queries))), truth)
    as_category = MoveLabeledClassifier().fit(X, pd.Series(names[y], dtype="category"))
    np.testing.assert_array_equal(as_category.predict(queries), names[truth])


def test_results_stay_in_the_library_of_the_input(asarray, blobs):
    X, y, queries = (asarray(array) for array in blobs)
    kind = type(X)
    model = MoveLabeledClassifier(weights="distance").fit(X, y, sample_weight=asarray(np.ones(60)))
    results = [model.predict(queries), model.predict_proba(queries), *model.kneighbors(queries)]
    results += [model.W_, model.mean_, model.moved_, model.classes_, MoveLabeled().fit_transform(X, y)]
    assert {type(result) for result in results} == {kind}
    assert {str(getattr(result, "device", "cpu")) for result in results} == {str(getattr(X, "device", "cpu"))}
    assert model.score(queries, asarray(np.zeros(25, dtype=int))) <= 1


@pytest.mark.torch
def test_gradients_are_not_followed(blobs):
    import torch

    X, y, queries = blobs
    tensor = torch.tensor(X, requires_grad=True)
    model = MoveLabeledClassifier().fit(tensor, torch.as_tensor(y))
    assert not model.moved_.requires_grad
    np.testing.assert_array_equal(
        model.predict(torch.as_tensor(queries)), MoveLabeledClassifier().fit(X, y).predict(queries)
    )
