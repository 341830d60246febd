"""Host arrays computed by torch, whole or in blocks: the answers of NumPy, on the host."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits

from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, load, nearest, save
from hubless.arrays import devices, library, products
from hubless.movers import Balance, Chain, Shrink, Whiten
from hubless.neighbors import search as topk
from tests import reference

pytestmark = pytest.mark.torch
N = 240  # labeled objects: several blocks of each size below
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(params=["whole", "streamed"])
def way(request, monkeypatch):
    """Data that fits on the device, and data that does not; small blocks, so that there are many."""
    for name, size in {"OBJECT_ROWS": 97, "QUERY_ROWS": 50, "DEVICE_ROWS": (50, 97)}.items():
        monkeypatch.setattr(topk, name, size)
    monkeypatch.setattr(library, "COPIED", 4096)
    monkeypatch.setattr(devices, "COPIED", 4096)
    monkeypatch.setattr(products, "MIN_ROWS", 37)
    monkeypatch.setattr(products, "NUMBERS", 1)
    monkeypatch.setattr(products, "device_numbers", lambda array: 1)
    if request.param == "streamed":
        monkeypatch.setattr(devices, "fits", lambda array, anchor: False)
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def digits(request):
    X, y = load_digits(return_X_y=True)
    return X[:N].astype(request.param), y[:N], X[N : N + 60].astype(request.param)


@pytest.mark.usefixtures("way")
def test_neighbours_of_the_host(digits):
    objects, _, queries = digits
    truth = reference.nearest(queries, objects, 7)
    distances, indices = nearest(queries, objects, 7, device=DEVICE)
    assert isinstance(distances, np.ndarray)
    assert isinstance(indices, np.ndarray)
    np.testing.assert_array_equal(indices, truth[1])
    np.testing.assert_allclose(distances, truth[0], rtol=1e-6)
    result = nearest(objects, objects, 3, device=DEVICE, exclude_self=True, return_distance=False)
    np.testing.assert_array_equal(result, reference.nearest(objects, objects, 3, exclude_self=True)[1])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("weighted", [False, True])
def test_classifier_learns_and_answers_as_on_the_host(digits, weighted):
    X, y, queries = digits
    weights = np.arange(N) % 4 * 0.5 if weighted else None
    on_host = MoveLabeledClassifier(n_targets=2).fit(X, y, weights)
    on_device = clone(on_host).set_params(device=DEVICE).fit(X, y, weights)
    tolerance = 1e-4 if X.dtype == np.float32 else 1e-9
    for name in ("W_", "mean_", "moved_", "codes_", "classes_"):
        assert isinstance(getattr(on_device, name), np.ndarray), name
        np.testing.assert_allclose(
            getattr(on_device, name), getattr(on_host, name), rtol=tolerance, atol=tolerance
        )
    assert on_device.moved_.dtype == X.dtype
    np.testing.assert_array_equal(on_device.predict(queries), on_host.predict(queries))
    np.testing.assert_allclose(on_device.predict_proba(queries), on_host.predict_proba(queries))


@pytest.mark.usefixtures("way")
def test_calibrated_as_on_the_host(digits, monkeypatch):
    X, y, queries = digits
    monkeypatch.setattr("hubless.moved_neighbors.QUERIES", 37)  # in batches
    on_host, on_device = (MoveLabeledClassifier(3, device=device).fit(X, y) for device in (None, DEVICE))
    for model in (on_host, on_device):
        model.calibrate(X[::2] + 0.5, y[::2])
    tolerance = 1e-3 if X.dtype == np.float32 else 1e-9
    answers = [model.predict_proba(queries) for model in (on_device, on_host)]
    np.testing.assert_allclose(*answers, rtol=tolerance, atol=tolerance)
    answers = [model.familiarity(queries) for model in (on_device, on_host)]
    np.testing.assert_allclose(*answers, atol=0.02)  # a rounding may move a query past another
    assert all(isinstance(answer, np.ndarray) for answer in answers)


@pytest.mark.usefixtures("way")
def test_labels_and_targets_from_anywhere(digits):
    X, y, queries = digits
    targets = np.where(np.arange(2 * N).reshape(N, 2) % 7 == 0, -1, reference.targets(X, y, 2))
    on_host = MoveLabeledClassifier(n_targets=2).fit(X, y, targets=targets).predict(queries)
    frozen = X.copy()
    frozen.flags.writeable = False
    for labels in (y, torch.as_tensor(y), y.astype(str)):
        on_device = MoveLabeledClassifier(n_targets=2, device=DEVICE).fit(frozen, labels, targets=targets)
        np.testing.assert_array_equal(on_device.predict(queries).astype(int), on_host)


def test_the_device_is_not_part_of_what_is_saved(digits, tmp_path):
    X, y, later = digits
    mover = MoveLabeled(device=DEVICE).fit(X, y)
    save(mover, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.device is None
    np.testing.assert_allclose(again.move(later), mover.move(later), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("way")
def test_mover_gives_back_what_it_was_given(digits):
    X, y, later = digits
    weights = np.arange(N) % 3 * 1.0
    for fitted in (None, weights):
        on_host, on_device = MoveLabeled(), MoveLabeled(device=DEVICE)
        moved = on_host.fit_transform(X, y, fitted), on_device.fit_transform(X, y, fitted)
        assert isinstance(moved[1], np.ndarray)
        np.testing.assert_allclose(*moved[::-1], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(on_device.move(later), on_host.move(later), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(on_device.transform(later), later)
    for n_pairs in (40, 100):  # fewer and more than there are dimensions
        pairs = X[:n_pairs], X[n_pairs : 2 * n_pairs]
        on_host, on_device = (MoveLabeled(device=where).fit_pairs(*pairs) for where in (None, DEVICE))
        np.testing.assert_allclose(on_device.W_, on_host.W_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mover", ["ridge", [Shrink(0.3), Chain([Whiten(), Balance()])]])
def test_choice_among_movers_as_on_the_host(digits, mover):
    X, y, queries = digits
    on_host = MoveLabeledClassifierCV(mover=mover, cv=3).fit(X, y)
    on_device = clone(on_host).set_params(device=DEVICE).fit(X, y)
    assert isinstance(on_device.moved_, np.ndarray)
    assert on_device.best_score_ == pytest.approx(on_host.best_score_, abs=0.005)
    assert np.mean(on_device.predict(queries) == on_host.predict(queries)) > 0.97


def test_what_cannot_be_computed_there_is_refused(digits, monkeypatch):
    X, y, _ = digits
    with pytest.raises(ValueError, match=r"torch has no device 'abacus'.*use device=None"):
        nearest(X, X, 1, device="abacus")
    with pytest.raises(ValueError, match="device must be a name such as"):
        MoveLabeledClassifier(device=0).fit(X, y)
    with pytest.raises(ValueError, match=r"for arrays on the host; got torch.Tensor on cpu"):
        nearest(torch.as_tensor(X), torch.as_tensor(X), 1, device=DEVICE)
    for model in (
        MoveLabeledClassifier(mover=MoveLabeled(device=DEVICE)),
        MoveLabeledClassifierCV(mover=[MoveLabeled(device=DEVICE)]),
        Chain([MoveLabeled(device=DEVICE)]),
    ):
        with pytest.raises(ValueError, match=r"of a mover inside a .* would be ignored"):
            model.fit(X, y)
    monkeypatch.setattr(devices, "fits", lambda array, anchor: False)
    for model in (
        MoveLabeledClassifierCV(device=DEVICE),
        MoveLabeledClassifier(mover=Shrink(), device=DEVICE),
    ):
        with pytest.raises(ValueError, match=r"an array of 0.0 GiB does not fit on .* block by block"):
            model.fit(X, y)
