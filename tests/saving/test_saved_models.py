"""Saved models: what comes back, to the last bit, and what cannot be saved."""

import json
import os
import pickletools
import platform
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

import hubless
from hubless import baselines
from hubless.arrays import to_numpy
from hubless.baselines import ITML, LMNN, MMC, NCA, DMLeig
from hubless.movers import (
    MOVERS,
    Balance,
    Chain,
    Denoise,
    KernelMove,
    LabelRidge,
    MoveLabeled,
    Regress,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Whiten,
)
from hubless.saving.values import class_named
from hubless.solve import Penalty
from tests.tables import CASES

SAVED = {name: row.mover for name, row in CASES.items() if row.can_be_saved} | {
    "a relative penalty": MoveLabeled(Penalty(0.5, relative=True), 2),
    "a whole number": MoveLabeled(3, center=False, toward="identity"),
    "moments": MoveLabeled(2.0, keep_moments=True),
    "moments in a chain": Chain([MoveLabeled(2.0, keep_moments=True)]),
    "few proxies": Balance(0.3, n_proxies=40),
    "few landmarks": KernelMove(n_landmarks=20),
    "a long chain": Chain([Whiten(), Shrink(), Smooth(2), Balance(), Steer()]),
    "chains in a chain": Chain((Chain([Denoise(), Chain([LabelRidge(), MoveLabeled()])]), KernelMove())),
    "numbers of NumPy": Chain([Scale(np.float64(0.3)), Shrink(np.float32(0.3)), Smooth(np.int64(2))]),
}


def same_bits(a, b):
    a, b = to_numpy(a), to_numpy(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def device_of(array):
    """Where to load a model for arrays like this: those of a third library come back as NumPy's."""
    is_torch = type(array).__module__.startswith("torch")
    return f"{array.device.type}:0" if is_torch else "cpu"  # "cpu:0" is torch's name of the processor


# --- movers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SAVED)
def test_mover_comes_back(name, dtype, asarray, blobs, tmp_path):
    X, y, queries = blobs
    later, classes = asarray((queries + 0.1).astype(dtype)), asarray(y[:25])
    mover = clone(SAVED[name]).fit(asarray(X.astype(dtype)), asarray(y))
    moved, unmoved = mover.move(later, classes), mover.transform(later)
    alone = mover.move(later[:1, :], classes[:1])  # BLAS rounds products of one row by the order in memory
    hubless.save(mover, tmp_path / "model")
    device = device_of(later)
    if device == "cpu":
        later, classes = to_numpy(later), to_numpy(classes)
    loaded = hubless.load(tmp_path / "model", device)
    assert same_bits(loaded.move(later, classes), moved)
    assert same_bits(loaded.move(later[:1, :], classes[:1]), alone)
    assert same_bits(loaded.transform(later), unmoved)
    assert repr(loaded.get_params()) == repr(mover.get_params())
    assert repr(clone(loaded)) == repr(clone(mover))
    assert loaded.space_[1:] == mover.space_[1:]
    assert same_bits(loaded.classes_, mover.classes_)
    assert (loaded.n_features_in_, loaded.n_singletons_) == (mover.n_features_in_, mover.n_singletons_)
    if device != "cpu":  # the same mover in NumPy: other products, other last bits
        plain, tolerance = hubless.load(tmp_path / "model"), 1e-3 if dtype == "float32" else 1e-9
        result = plain.move(to_numpy(later), y[:25])
        np.testing.assert_allclose(result, to_numpy(moved), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "names",
    [
        np.array([-3, 0, 2, 7]),
        np.array([1, 2, 3, 4], dtype=np.int16),
        np.array([1, 2, 3, 200], dtype=np.uint8),
        np.array([0.0, 1.0, 2.0, 1e15]),
        np.array([0.0, 1.0, 2.0, 3.0], dtype=np.float32),
        np.array([False, False, True, True]),
        np.array(["a", "b", "\u732b", 'quo"te\n']),
        np.array(["a", "b", "cc", "d"], dtype=object),
    ],
    ids=lambda names: str(names.dtype),
)
def test_classes_of_every_type_come_back(names, blobs, tmp_path):
    X, y, queries = blobs
    mover = Shrink().fit(X, names[y])
    hubless.save(mover, tmp_path)
    loaded = hubless.load(tmp_path)
    assert loaded.classes_.dtype == mover.classes_.dtype
    assert loaded.classes_.tolist() == mover.classes_.tolist()
    assert same_bits(loaded.move(queries, names[y[:25]]), mover.move(queries, names[y[:25]]))
    with pytest.raises(ValueError, match="not fitted with"):
        loaded.move(queries, np.repeat(99 if names.dtype.kind in "iufb" else "z", 25))


def test_names_of_features_come_back(blobs, tmp_path):
    X, y, queries = blobs
    columns = list("abcdef")
    mover = Balance().fit(pd.DataFrame(X, columns=columns), y)
    hubless.save(mover, tmp_path)
    loaded = hubless.load(tmp_path)
    assert loaded.feature_names_in_.dtype == object
    assert loaded.get_feature_names_out().tolist() == [*columns, "lift"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.move(pd.DataFrame(queries, columns=columns[::-1]))


def test_mover_of_pairs_and_mover_of_a_classifier_come_back(blobs, tmp_path):
    X, y, queries = blobs
    of_pairs = MoveLabeled(1.0).fit_pairs(X[:25], queries)
    of_classifier = hubless.MoveLabeledClassifier().fit(X, y).mover_
    for mover in (of_pairs, of_classifier):
        hubless.save(mover, tmp_path)
        assert same_bits(hubless.load(tmp_path).move(queries), mover.move(queries))


def test_order_in_memory_comes_back(blobs, tmp_path):
    """BLAS rounds by it; the file itself has W as it is."""
    X, y, _ = blobs
    mover = MoveLabeled().fit(X, y)
    mover.W_ = np.asfortranarray(mover.W_)
    hubless.save(mover, tmp_path)
    assert hubless.load(tmp_path).W_.flags.f_contiguous
    assert same_bits(safetensors.numpy.load_file(tmp_path / "model.safetensors")["W_"], mover.W_)


# --- classifiers, MoveQuery and baselines -------------------------------------------------------------------

ESTIMATORS = {
    "classifier": hubless.MoveLabeledClassifier(3, 1.0),
    "classifier, by distance": hubless.MoveLabeledClassifier(4, weights="distance", center=False),
    "classifier, of a chain": hubless.MoveLabeledClassifier(mover=Chain([Whiten(), Shrink(), Balance()])),
    "chosen ridge": hubless.MoveLabeledClassifierCV(range(1, 4), np.logspace(-1, 1, 3), (1, 2), cv=3),
    "chosen ridge, by default": hubless.MoveLabeledClassifierCV((1, 5), cv=2, weights="distance"),
    "chosen mover": hubless.MoveLabeledClassifierCV([1, 3], mover=[Stay(), Shrink(0.3), Steer()], cv=2),
    "MoveQuery": hubless.MoveQuery(Penalty(0.5, relative=True), 2),
    "LMNN": LMNN(max_iter=5),
    "ITML": ITML(random_state=0, max_iter=3),
    "DMLeig": DMLeig(max_iter=5),
    "NCA": NCA(None, max_iter=5),
    "MMC": MMC(0.3, diagonal=True, random_state=0),
}


def test_every_estimator_can_be_saved():
    public = [getattr(room, name) for room in (hubless, baselines) for name in room.__all__]
    kinds = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
    assert all(class_named(kind.__name__) is kind for kind in kinds)
    assert kinds - set(MOVERS.values()) == {type(model) for model in ESTIMATORS.values()}


def answers(model, queries):
    """All that a fitted estimator answers, by name."""
    if not hasattr(model, "predict"):
        return {"transform": model.transform(queries), "alone": model.transform(queries[:1, :])}
    distances, indices = model.kneighbors(queries, 4)
    return {
        "distances": distances,
        "indices": indices,
        "predict": model.predict(queries),
        "predict_proba": model.predict_proba(queries),
        "alone": model.kneighbors(queries[:1, :], 3)[0],
        "transform": model.mover_.transform(queries),
    }


def as_plain(value):
    """A fitted attribute as something that == compares."""
    if isinstance(value, dict):
        return {name: as_plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [as_plain(item) for item in value]
    if hasattr(value, "get_params"):
        return repr(value), {name: as_plain(item) for name, item in vars(value).items() if name.endswith("_")}
    if hasattr(value, "shape") and value.shape:
        host = to_numpy(value)
        return str(host.dtype), host.shape, repr(host.tolist())  # NaN too
    return repr(float(value)) if isinstance(value, float) else value


@pytest.mark.parametrize(("dtype", "weighted"), [("float32", True), ("float64", False)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_comes_back(name, dtype, weighted, asarray, blobs, tmp_path):
    X, y, queries = blobs
    model, later = clone(ESTIMATORS[name]), asarray(queries.astype(dtype))
    if weighted and not hasattr(model, "alpha") and not hasattr(model, "weights"):
        weighted = False  # baselines take no weights
    more = {"sample_weight": np.where(np.arange(60) == 7, 0.0, 1 + np.arange(60) / 60)} if weighted else {}
    model.fit(asarray(X.astype(dtype)), asarray(y), **more)
    truth = answers(model, later)
    hubless.save(model, tmp_path / "model")
    device = device_of(later)
    loaded = hubless.load(tmp_path / "model", device)
    result = answers(loaded, to_numpy(later) if device == "cpu" else later)
    assert result.keys() == truth.keys()
    assert all(same_bits(result[name], truth[name]) for name in truth)
    assert type(loaded) is type(model)
    assert repr(loaded.get_params()) == repr(model.get_params())
    learned = {name: as_plain(value) for name, value in vars(model).items() if name.endswith("_")}
    assert {name: as_plain(v) for name, v in vars(loaded).items() if name.endswith("_")} == learned
    if hasattr(model, "explain"):
        assert loaded.explain() == model.explain()
    hubless.save(loaded, tmp_path / "again")  # and what came back can be saved
    assert (tmp_path / "again" / "config.json").read_bytes() == (tmp_path / "model/config.json").read_bytes()


def test_frames_and_names_of_classes_come_back(blobs, tmp_path):
    X, y, queries = blobs
    frame, names = pd.DataFrame(X, columns=list("abcdef")), np.array(["ä", "b|c", "<d>", "e"])[y]
    model = hubless.MoveLabeledClassifier(3).fit(frame, names)
    hubless.save(model, tmp_path)
    loaded, later = hubless.load(tmp_path), pd.DataFrame(queries, columns=list("abcdef"))
    assert loaded.predict(later).tolist() == model.predict(later).tolist()
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(later[list("fedcba")])
    assert clone(loaded).fit(frame, names).score(frame, names) == model.score(frame, names)


# --- the folder ---------------------------------------------------------------------------------------------


def test_folder_holds_text_and_arrays_and_no_pickle(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Chain([MoveLabeled(), Shrink()]).fit(X, y), tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["README.md", "config.json", "model.safetensors"]
    arrays = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert sorted(arrays) == ["movers_.0.W_", "movers_.0.mean_", "movers_.1.means_", "space_.mean"]
    for name in os.listdir(tmp_path):
        content = (tmp_path / name).read_bytes()
        for version in (b'"numpy": "', b'"scikit-learn": "'):  # texts that are expected
            content = content.replace(version, b"")
        assert not any(content.startswith(b"\x80" + bytes([protocol])) for protocol in range(2, 6))
        assert not any(module in content for module in (b"sklearn", b"scikit", b"numpy"))
        with pytest.raises(ValueError, match=r"opcode|pickle|exhausted|newline"):
            list(pickletools.genops(content))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda X, y: Shrink().fit(X, y), "Shrink"),
        (lambda X, y: hubless.MoveLabeledClassifier().fit(X, y), "MoveLabeledClassifier"),
        (lambda X, y: hubless.MoveQuery().fit(X, y), "MoveQuery"),
        (lambda X, y: NCA(max_iter=2).fit(X, y), "NCA"),
    ],
)
def test_config_says_what_it_is(make, kind, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(make(X, y), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert [*config] == [
        *("format", "format_version", "versions", "sha256", "dimension", "metric", "fingerprint", "model")
    ]
    assert (config["model"]["class"], config["metric"], config["fingerprint"]) == (kind, "l2", None)
    assert (config["format"], config["format_version"], config["dimension"]) == ("hubless model", 1, 6)
    assert config["versions"] == {
        "hubless": hubless.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "safetensors": safetensors.__version__,
        "scikit-learn": sklearn.__version__,
    }


@pytest.mark.parametrize("mover", [Scale(), Shrink(), Steer()], ids=lambda mover: type(mover).__name__)
def test_card_says_how_to_use_the_mover(mover, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(mover.fit(X, y), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert f"# {type(mover).__name__}" in card
    assert ("mover.move(Z, y)" in card) == mover._uses_labels
    assert ("additional column" in card) == mover._adds_column
    assert "queries as they are" in card


def test_card_of_a_choice_says_why(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(hubless.MoveLabeledClassifierCV(cv=3).fit(X, y), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "neighbours\\: " in card
    assert "model.predict(queries)" in card


# --- what cannot be saved -----------------------------------------------------------------------------------


def with_attribute(model):
    model.extra_ = 1
    return model


def not_finite(mover):
    mover.W_[0, 0] = np.nan
    return mover


def without_attribute(mover):
    del mover.W_
    return mover


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X, y: Regress().fit(X, y), TypeError, "stored by pickle. Use KernelMove"),
        (lambda X, y: Chain([Shrink(), Regress()]).fit(X, y), TypeError, "stored by pickle. Use KernelMove"),
        (lambda X, y: Shrink(), NotFittedError, "not fitted"),
        (lambda X, y: Chain([Shrink()]).fit(X, y).movers_[0], NotFittedError, "not fitted"),
        (lambda X, y: hubless.MoveLabeledClassifier(), NotFittedError, "not fitted"),
        (
            lambda X, y: hubless.MoveLabeledClassifier(mover=Regress()).fit(X, y),
            TypeError,
            "stored by pickle. Use KernelMove",
        ),
        (lambda X, y: type("Mine", (NCA,), {})().fit(X, y), TypeError, "what can be saved is a fitted mover"),
        (lambda X, y: type("Mine", (Shrink,), {})().fit(X, y), TypeError, "what can be saved is a fitted"),
        (lambda X, y: type("Shrink", (Shrink,), {})().fit(X, y), TypeError, "what can be saved is a fitted"),
        (
            lambda X, y: hubless.MoveLabeledClassifierCV(cv=StratifiedKFold(2)).fit(X[y < 3], y[y < 3]),
            TypeError,
            r"cv=StratifiedKFold\(.* does not need it: .* set_params\(cv=5\)",
        ),
        (
            lambda X, y: hubless.MoveLabeledClassifierCV(cv=[(np.arange(60), np.arange(9))]).fit(X, y),
            TypeError,
            r"cv=\[\(array\((.|\n)* set_params\(cv=5\)",
        ),
        (
            lambda X, y: ITML(random_state=np.random.RandomState(0)).fit(X, y),
            TypeError,
            r"random_state=RandomState.* cannot be saved.* set_params\(random_state=5\)",
        ),
        (
            lambda X, y: with_attribute(NCA().fit(X, y)),
            TypeError,
            r"NCA has \['extra_'\], which its _learned",
        ),
        (lambda X, y: with_attribute(Shrink().fit(X, y)), TypeError, r"Shrink has \['extra_'\], which its"),
        (lambda X, y: without_attribute(MoveLabeled().fit(X, y)), ValueError, "W_ is missing. Fit the model"),
        (lambda X, y: not_finite(MoveLabeled().fit(X, y)), ValueError, "could not be loaded again: W_ holds"),
        (
            lambda X, y: Scale(Fraction(1, 2)).fit(X, y),
            TypeError,
            r"g=Fraction\(1, 2\) cannot be saved.*got Fraction\(1, 2\)",
        ),
        (lambda X, y: Chain([Shrink()]).fit(X, y).set_params(movers=[Scale()]), ValueError, "Fit it again"),
        (lambda X, y: "a text", TypeError, "what can be saved is a fitted mover, .*; got 'a text'"),
    ],
)
def test_what_cannot_be_saved_is_refused(make, error, message, blobs, tmp_path):
    X, y, _ = blobs
    with pytest.raises(error, match=message):
        hubless.save(make(X, y), tmp_path / "model")
    assert os.listdir(tmp_path) == []
