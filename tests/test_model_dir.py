"""Saved models: what comes back, what is refused, and that nothing in a folder can run."""

import errno
import json
import os
import pickletools
import platform
import resource
import shutil
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

import hubless
from hubless import model_dir, movers
from hubless.arrays import to_numpy
from hubless.baselines import ITML, LMNN, NCA, DMLeig
from hubless.estimators import LEARNS
from hubless.index.repair import Own, Repair
from hubless.movers import (
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
    Unit,
    Whiten,
)
from hubless.plain import CLASSES
from hubless.solve import Penalty
from hubless.state import LEARNED

DATA = Path(__file__).parent / "data"

MOVERS = {
    "Stay": Stay(),
    "Unit": Unit(),
    "Scale": Scale(0.4),
    "Shrink": Shrink(0.7),
    "Smooth": Smooth(3, "distance", step=0.5),
    "MoveLabeled": MoveLabeled(Penalty(0.5, relative=True), 2),
    "MoveLabeled, about the origin": MoveLabeled(3, center=False, toward="identity"),
    "MoveLabeled, with moments": Chain([MoveLabeled(2.0, keep_moments=True)]),
    "LabelRidge": LabelRidge(keep=0.8),
    "Balance": Balance(0.3, n_proxies=40),
    "Steer": Steer(1.5, 0.01),
    "Whiten": Whiten(0.3),
    "Denoise": Denoise(2.0, 3, whiten=True),
    "KernelMove": KernelMove(n_landmarks=20),
    "Chain": Chain([Whiten(), Shrink(), Smooth(2), Balance(), Steer()]),
    "Chain of nothing": Chain(),
    "chains in a chain": Chain((Chain([Denoise(), Chain([LabelRidge(), MoveLabeled()])]), KernelMove())),
    "NumPy's numbers": Chain([Scale(np.float64(0.3)), Shrink(np.float32(0.3)), Smooth(np.int64(2))]),
}


@pytest.fixture
def saved(blobs, tmp_path):
    """A folder with a mover, and that mover."""
    X, y, _ = blobs
    mover = Chain([MoveLabeled(), Shrink()]).fit(X, y)
    hubless.save(mover, tmp_path / "model")
    return tmp_path / "model", mover


def edit(folder, change):
    """Change config.json."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def replace_arrays(folder, change):
    """Change model.safetensors, and the checksum with it, as a forger would."""
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    change(arrays)
    content = safetensors.numpy.save(arrays)
    (folder / "model.safetensors").write_bytes(content)
    digest = model_dir.hashlib.sha256(content).hexdigest()
    edit(folder, lambda config: config["sha256"].update({"model.safetensors": digest}))


def same_bits(a, b):
    a, b = to_numpy(a), to_numpy(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_every_mover_is_here():
    kinds = {
        kind for name in movers.__all__ if (kind := getattr(movers, name)) not in (movers.Mover, Regress)
    }
    assert kinds == set(LEARNED) == set(CLASSES.values()) == {type(mover) for mover in MOVERS.values()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MOVERS)
def test_mover_comes_back(name, dtype, asarray, blobs, tmp_path):
    X, y, queries = blobs
    later, classes = asarray((queries + 0.1).astype(dtype)), asarray(y[:25])
    is_torch = isinstance(later, torch.Tensor)
    mover = clone(MOVERS[name]).fit(asarray(X.astype(dtype)), asarray(y))
    moved, asked = mover.move(later, classes), mover.transform(later)
    alone = mover.move(later[:1, :], classes[:1])  # BLAS rounds products of one row by the order in memory
    hubless.save(mover, tmp_path / "model")
    if is_torch:
        device = f"{later.device.type}:0"  # "cpu:0" is torch's name of the processor
    else:  # arrays of a third library come back as NumPy's
        device, later, classes = "cpu", to_numpy(later), to_numpy(classes)
    loaded = hubless.load(tmp_path / "model", device)
    assert same_bits(loaded.move(later, classes), moved)
    assert same_bits(loaded.move(later[:1, :], classes[:1]), alone)
    assert same_bits(loaded.transform(later), asked)
    assert repr(loaded.get_params()) == repr(mover.get_params())
    assert repr(clone(loaded)) == repr(clone(mover))
    assert loaded.exit_[1:] == mover.exit_[1:]
    assert same_bits(loaded.classes_, mover.classes_)
    assert (loaded.n_features_in_, loaded.n_singletons_) == (mover.n_features_in_, mover.n_singletons_)
    if is_torch:  # the same mover in NumPy: other products, other last bits
        plain, tolerance = hubless.load(tmp_path / "model"), 1e-3 if dtype == "float32" else 1e-9
        found = plain.move(to_numpy(later), y[:25])
        np.testing.assert_allclose(found, to_numpy(moved), rtol=tolerance, atol=tolerance)


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


def test_folder_holds_text_and_arrays_and_no_pickle(saved):
    folder, _ = saved
    assert sorted(os.listdir(folder)) == ["README.md", "config.json", "model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert (config["format_version"], config["hubless_version"]) == (2, hubless.__version__)
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    assert sorted(arrays) == ["exit_.mean", "movers_.0.W_", "movers_.0.mean_", "movers_.1.means_"]
    for name in os.listdir(folder):
        content = (
            (folder / name).read_bytes().replace(b'"numpy": "', b"")
        )  # its version is there, and is a text
        assert not any(content.startswith(b"\x80" + bytes([protocol])) for protocol in range(2, 6))
        assert b"sklearn" not in content
        assert b"numpy" not in content
        with pytest.raises(ValueError, match=r"opcode|pickle|exhausted|newline"):
            list(pickletools.genops(content))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_all_files_have_the_mode_that_the_user_gives_to_files(saved):
    modes = {stat.S_IMODE((saved[0] / name).stat().st_mode) for name in os.listdir(saved[0])}
    (saved[0].parent / "other").touch()
    assert modes == {stat.S_IMODE((saved[0].parent / "other").stat().st_mode)}


@pytest.mark.parametrize("mover", [Scale(), Shrink(), Steer()], ids=lambda mover: type(mover).__name__)
def test_card_tells_how_to_use_the_mover(mover, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(mover.fit(X, y), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert f"# {type(mover).__name__}" in card
    assert ("mover.move(Z, y)" in card) == mover._uses_labels
    assert ("one column more" in card) == mover._lifts
    assert "queries as they are" in card


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X, y: Regress().fit(X, y), TypeError, "free of pickle. Use KernelMove"),
        (lambda X, y: Chain([Shrink(), Regress()]).fit(X, y), TypeError, "free of pickle. Use KernelMove"),
        (lambda X, y: Shrink(), NotFittedError, "not fitted"),
        (lambda X, y: Chain([Shrink()]).fit(X, y).movers_[0], NotFittedError, "not fitted"),
        (lambda X, y: hubless.MoveLabeledClassifier(), NotFittedError, "not fitted"),
        (
            lambda X, y: hubless.MoveLabeledClassifier(mover=Regress()).fit(X, y),
            TypeError,
            "free of pickle. Use KernelMove",
        ),
        (lambda X, y: type("Mine", (NCA,), {})().fit(X, y), TypeError, "what can be saved is a fitted Stay"),
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
            r"random_state=.* set_params\(random_state=5\)",
        ),
        (lambda X, y: new_attribute(NCA().fit(X, y)), TypeError, "LEARNS in estimators.py"),
        (lambda X, y: not_finite(MoveLabeled().fit(X, y)), ValueError, "could not be loaded again: W_ holds"),
        (lambda X, y: Repair(Shrink()), NotFittedError, "not fitted"),
        (lambda X, y: Repair(Steer().fit(X, y)), ValueError, "Steer has a column of its own"),
        (lambda X, y: Repair(Stay().fit(X, y), "ip"), ValueError, "metric must be one of 'l2', 'cosine'"),
        (lambda X, y: Repair(Stay().fit(X, y), facts={1: 2}), TypeError, "facts must have texts as names"),
        (lambda X, y: Repair(Stay().fit(X, y), facts={"a": X}), TypeError, r"facts\['a'\] must be texts"),
        (lambda X, y: repair_of(X, y, np.array([0.5, 1.5])), TypeError, "ids are whole numbers of 64 bits"),
        (lambda X, y: repair_of(X, y, np.array([7, 7])), ValueError, "ids of own are not all different"),
        (
            lambda X, y: type("Mine", (Shrink,), {})().fit(X, y),
            TypeError,
            "what can be saved is a fitted Stay",
        ),
        (lambda X, y: Scale(Fraction(1, 2)).fit(X, y), TypeError, r"got Fraction\(1, 2\)"),
        (lambda X, y: Chain([Shrink()]).fit(X, y).set_params(movers=[Scale()]), ValueError, "Fit it again"),
        (lambda X, y: new_attribute(Shrink().fit(X, y)), TypeError, "LEARNED in state.py"),
    ],
)
def test_what_cannot_be_saved_is_refused(make, error, message, blobs, tmp_path):
    X, y, _ = blobs
    with pytest.raises(error, match=message):
        hubless.save(make(X, y), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def new_attribute(mover):
    mover.extra_ = 1
    return mover


def not_finite(mover):
    mover.W_[0, 0] = np.nan
    return mover


def repair_of(X, y, ids):
    return Repair(Stay().fit(X, y), own=Own(ids, X[: len(ids)], 0.5))


HOSTILE_CONFIGS = {
    "another class": (lambda c: c["mover"].update({"class": "os.system"}), "'os.system'; allowed are Stay"),
    "no class of ours": (lambda c: c["mover"].update({"class": "Regress"}), "'Regress'; allowed are Stay"),
    "no name": (lambda c: c["mover"].update({"class": ["Shrink"]}), "unhashable"),
    "a private parameter": (lambda c: c["mover"]["parameters"].update(_x=1), r"got \['_x', 'movers'\]"),
    "a parameter too few": (lambda c: c["mover"]["parameters"].clear(), r"must have \['movers'\]; got \[\]"),
    "an impossible parameter": (
        lambda c: c["mover"]["parameters"]["movers"][1]["parameters"].update(step=7),
        "from 0 to 1; got 7",
    ),
    "no movers": (lambda c: c["mover"]["parameters"].update(movers=5), "a chain is made of movers"),
    "no mover": (lambda c: c.update(mover=5), "it describes 5"),
    "a mover more": (
        lambda c: c["mover"]["parameters"]["movers"].append({"class": "Scale", "parameters": {"g": 0.1}}),
        "movers_.2.mean_",
    ),
    "an extra key": (lambda c: c.update(run="rm"), "'run'"),
    "a key too few": (lambda c: c.pop("numbers"), "config.json must have"),
    "another format": (lambda c: c.update(format="joblib"), "hubless mover"),
    "a newer version": (
        lambda c: c.update(format_version=3, hubless_version="9.9"),
        "format_version is 3, this hubless reads 1 and 2: install hubless 9.9",
    ),
    "a number by name": (lambda c: c["numbers"].update({"movers_.0.alpha_": "1"}), "expected a number"),
    "no number": (lambda c: c["numbers"].update({"exit_.gain": None}), "exit_.gain is None"),
    "no classes": (lambda c: c.update(classes_=None), "classes_ are missing"),
    "classes of another number": (lambda c: c["classes_"]["values"].pop(), r"expected .* \(3, 6\)"),
    "classes of another kind": (lambda c: c["classes_"].update(dtype="V8"), "'V8'; allowed are str"),
    "classes that do not fit": (lambda c: c["classes_"].update(values=[0.5, 1, 2, 3]), r"got \[0.5, 1"),
    "classes that mix": (lambda c: c["classes_"].update(dtype="object"), "a list of object"),
    "other features": (lambda c: c.update(n_features_in_=7), "expected float32 or float64 of shape"),
    "names of other features": (lambda c: c.update(feature_names_in_=["a"]), "expected 6 names"),
    "an order of nothing": (lambda c: c.update(column_major=["exit_.mean"]), "names of matrices"),
    "another checksum": (lambda c: c["sha256"].update({"model.safetensors": "0"}), "damaged or of another"),
    "a checksum of another file": (lambda c: c["sha256"].update({"../x": "0"}), "sha256 must have"),
}


@pytest.mark.parametrize("name", HOSTILE_CONFIGS)
def test_hostile_config_is_refused(name, saved):
    folder, _ = saved
    change, message = HOSTILE_CONFIGS[name]
    edit(folder, change)
    with pytest.raises(ValueError, match=message) as caught:
        hubless.load(folder)
    assert str(caught.value).startswith(f"{folder} cannot be loaded: ")
    assert "or save the mover again" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "\x80", "[" * 100_000, '{"format": "hubless mover"}'])
def test_config_that_is_none_is_refused(text, saved):
    (saved[0] / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="cannot be loaded"):
        hubless.load(saved[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(extra=np.zeros(3)), "'extra'"),
        (lambda a: a.pop("movers_.0.W_"), "the arrays must have"),
        (lambda a: a.update({"movers_.0.W_": np.zeros((6, 5))}), r"shape \(6, 5\); expected .* \(6, 6\)"),
        (lambda a: a.update({"movers_.0.W_": np.zeros(6)}), r"shape \(6,\); expected .* \(6, 6\)"),
        (lambda a: a.update({"movers_.0.W_": np.zeros((6, 6), np.int64)}), "is int64 of shape"),
        (lambda a: a.update({"exit_.mean": np.zeros(6, np.float16)}), "is float16 of shape"),
    ],
)
def test_arrays_of_another_mover_are_refused(change, message, saved):
    replace_arrays(saved[0], change)
    with pytest.raises(ValueError, match=message):
        hubless.load(saved[0])


def test_arrays_that_do_not_fit_each_other_are_refused(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Smooth().fit(X, y), tmp_path)
    replace_arrays(tmp_path, lambda arrays: arrays.update(codes_=arrays["codes_"][:-1]))
    with pytest.raises(ValueError, match=r"cannot be loaded: (codes_|objects_) is .*; expected .* \((59|60)"):
        hubless.load(tmp_path)


def test_damaged_and_swapped_arrays_are_refused(saved, blobs, tmp_path):
    folder, _ = saved
    X, y, _ = blobs
    whole = (folder / "model.safetensors").read_bytes()
    hubless.save(Chain([MoveLabeled(), Shrink()]).fit(X + 1, y), tmp_path / "other")
    swapped = (tmp_path / "other" / "model.safetensors").read_bytes()
    for content in (whole[:-8], whole[:20], b"", whole[:-1] + b"\x00", swapped):
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="damaged or of another mover: sha256"):
            hubless.load(folder)
    (folder / "model.safetensors").write_bytes(b"cos\nsystem\n(S'true'\ntR.")  # a pickle, with its checksum
    digest = model_dir.hashlib.sha256(b"cos\nsystem\n(S'true'\ntR.").hexdigest()
    edit(folder, lambda config: config["sha256"].update({"model.safetensors": digest}))
    with pytest.raises(ValueError, match="deserializing"):
        hubless.load(folder)


def test_missing_files_are_told(saved, tmp_path):
    folder, _ = saved
    (folder / "model.safetensors").unlink()
    for path, name in ((folder, "model.safetensors"), (tmp_path / "no", "config.json")):
        with pytest.raises(
            FileNotFoundError, match=f"{name} is not there. Give the folder that hubless.save"
        ):
            hubless.load(path)
    (tmp_path / "file").write_text("text")
    with pytest.raises(FileNotFoundError, match="Give the folder"):
        hubless.load(tmp_path / "file")


def test_only_a_saved_mover_is_replaced(saved, tmp_path):
    folder, mover = saved
    (tmp_path / "file").write_text("text")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.json").write_text("{}")
    (folder / "notes.txt").write_text("mine")
    for path, held in (
        (tmp_path / "file", "a file"),
        (tmp_path / "data", "config.json"),
        (folder, "notes.txt"),
    ):
        with pytest.raises(FileExistsError, match=f"{held}.* stays as it is. Give a new or an empty folder"):
            hubless.save(mover, path)
    assert (tmp_path / "file").read_text() == "text"
    assert os.listdir(tmp_path / "data") == ["config.json"]
    assert len(os.listdir(folder)) == 4


def test_saved_mover_is_replaced_through_a_link_and_leaves_nothing_beside(saved, blobs, tmp_path):
    folder, _ = saved
    X, y, _ = blobs
    (tmp_path / "link").symlink_to(folder)
    hubless.save(Scale(0.1).fit(X, y), tmp_path / "link")
    hubless.save(Scale(0.2).fit(X, y), tmp_path / "deep" / "new")  # folders on the way are made
    assert hubless.load(folder).g == 0.1
    assert sorted(os.listdir(tmp_path)) == ["deep", "link", "model"]
    assert os.listdir(tmp_path / "deep") == ["new"]


@pytest.mark.parametrize("place", ["arrays", "card", "first rename", "second rename"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_failure_leaves_the_former_mover(place, error, saved, blobs, monkeypatch):
    folder, mover = saved
    X, y, queries = blobs
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    renames = []

    def fail(*arguments, **options):
        raise error("the disk is full")

    def rename(source, target):
        renames.append(target)
        if len(renames) == {"first rename": 1, "second rename": 2}[place]:
            raise error("the disk is full")
        os.replace(source, target)

    if place == "arrays":
        monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    elif place == "card":
        monkeypatch.setattr(model_dir, "_card", fail)
    else:
        monkeypatch.setattr(model_dir.os, "rename", rename)
    with pytest.raises(error, match="the disk is full"):
        hubless.save(Scale().fit(X, y), folder)
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    assert os.listdir(folder.parent) == ["model"]
    assert same_bits(hubless.load(folder).move(queries, y[:25]), mover.move(queries, y[:25]))


def test_kill_between_the_renames_is_told(saved):
    folder, _ = saved
    folder.rename(folder.with_name(".model.12345678.old"))
    with pytest.raises(FileNotFoundError, match=r"left the former mover in .*\.model\.12345678\.old: rename"):
        hubless.load(folder)


# --- all that is not a mover -------------------------------------------------------------------------------

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
}


def test_every_estimator_is_here():
    public = {getattr(hubless, name) for name in hubless.__all__} | {ITML, LMNN, NCA, DMLeig}
    ours = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")} - {MoveLabeled}
    assert ours == set(LEARNS) == {type(model) for model in ESTIMATORS.values()}


def answers(model, queries):
    """All that a fitted estimator says, by name."""
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
    own = {"sample_weight": np.where(np.arange(60) == 7, 0.0, 1 + np.arange(60) / 60)} if weighted else {}
    model.fit(asarray(X.astype(dtype)), asarray(y), **own)
    truth = answers(model, later)
    hubless.save(model, tmp_path / "model")
    device = "cpu"
    if isinstance(later, torch.Tensor):
        device = f"{later.device.type}:0"
    else:  # arrays of a third library come back as NumPy's
        later = to_numpy(later)
    loaded = hubless.load(tmp_path / "model", device)
    found = answers(loaded, later)
    assert found.keys() == truth.keys()
    assert all(same_bits(found[name], truth[name]) for name in truth)
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


FACTS = {
    "data": {"source": "a|b <script>\n# x", "count": 60, "metric": "cosine", "fingerprint": "ab12"},
    "learned": {"from": "pairs", "n": 919, "mover": "text", "chosen by": "nDCG@10", "seen": [7, "x"]},
    "figures": [
        {
            "measure": "nDCG@10",
            "part": "all",
            "n": 300,
            "before": np.float64(0.65),
            "after": 0.79,
            "low": 0.1,
            "high": 0.2,
        },
        {"measure": "hubs", "part": "held | out", "before": 12, "after": 3},
    ],
}


@pytest.mark.parametrize("ids", [np.array([5, -2, 1 << 62]), np.array(["é", "", "a\nb"], dtype=object), None])
@pytest.mark.parametrize("metric", ["l2", "cosine"])
@pytest.mark.parametrize("step", [0.25, np.float64(0.25)])
def test_repair_comes_back(ids, metric, step, blobs, tmp_path):
    X, y, queries = blobs
    for mover in (MoveLabeled(1.0, keep_moments=True).fit(X, y), Shrink(0.5).fit(X, y)):
        own = None if ids is None else Own(ids, queries[:3].astype(np.float32), step)
        label = "class" if mover._uses_labels else None
        model = Repair(mover, metric, label, own, FACTS)
        hubless.save(model, tmp_path / "model")
        loaded = hubless.load(tmp_path / "model")
        asked = None if ids is None else [*ids.tolist(), *range(60, 117)]
        labels = y if mover._uses_labels else None
        for dtype in (np.float32, np.float64):
            Z = X.astype(dtype)
            Z[4] = np.nan  # an item without a vector
            assert same_bits(loaded.move(Z, asked, labels), model.move(Z, asked, labels))
        assert loaded.hash == model.hash
        assert (loaded.metric, loaded.label, loaded.facts) == (metric, label, FACTS)
        if own is not None:
            assert (loaded.own.ids.tolist(), loaded.own.ids.dtype) == (ids.tolist(), ids.dtype)
            assert (loaded.own.step, type(loaded.own.step)) == (step, type(step))


def test_repair_with_nothing_own_comes_back_and_stays_on_the_host(blobs, tmp_path):
    X, y, _ = blobs
    for ids in (np.array([], dtype=np.int64), np.array([], dtype=object)):
        hubless.save(Repair(Stay().fit(X, y), own=Own(ids, X[:0], 1)), tmp_path)
        assert hubless.load(tmp_path).own.ids.dtype == ids.dtype
    with pytest.raises(ValueError, match="moves arrays of NumPy"):
        hubless.load(tmp_path, "cpu:0")


# --- the folder --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda X, y: Shrink().fit(X, y), ("mover", "l2", None)),
        (lambda X, y: hubless.MoveLabeledClassifier().fit(X, y), ("classifier", "l2", None)),
        (lambda X, y: hubless.MoveQuery().fit(X, y), ("transformer", "l2", None)),
        (lambda X, y: NCA(max_iter=2).fit(X, y), ("metric", "l2", None)),
        (lambda X, y: Repair(Shrink().fit(X, y), "cosine", "c", None, FACTS), ("repair", "cosine", "ab12")),
        (lambda X, y: Repair(Shrink().fit(X, y), facts={"data": "none"}), ("repair", "l2", None)),
    ],
)
def test_config_tells_what_it_is(make, told, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(make(X, y), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["kind"], config["metric"], config["fingerprint"]) == told
    assert (config["format_version"], config["dimension"]) == (2, 6)
    assert config["versions"] == {
        "hubless": hubless.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "safetensors": safetensors.__version__,
        "scikit-learn": sklearn.__version__,
    }


def test_folder_of_version_1_is_read():
    """Made by version 1, with the numbers that version 1 gave."""
    truth = json.loads((DATA / "model-v1.json").read_text())
    mover = hubless.load(DATA / "model-v1")
    moved = mover.move(np.array(truth["Z"], dtype=np.float32), truth["y"])
    np.testing.assert_allclose(moved, np.array(truth["moved"]), rtol=1e-5, atol=1e-6)
    assert (mover.movers[2].keep_moments, mover.movers[2].alpha) == (False, 1.0)


def test_version_1_is_saved_as_version_2(tmp_path):
    mover = hubless.load(DATA / "model-v1")
    hubless.save(mover, tmp_path)
    truth = json.loads((DATA / "model-v1.json").read_text())
    Z = np.array(truth["Z"], dtype=np.float32)
    assert same_bits(hubless.load(tmp_path).move(Z, truth["y"]), mover.move(Z, truth["y"]))


def test_version_1_knows_movers_alone(tmp_path, blobs):
    X, y, _ = blobs
    hubless.save(hubless.MoveLabeledClassifier().fit(X, y), tmp_path)
    edit(tmp_path, lambda config: config.update(format_version=1))
    with pytest.raises(ValueError, match=r"config.json must have"):
        hubless.load(tmp_path)


def test_card_shows_figures_and_no_markup_of_others(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Repair(Shrink().fit(X, y), "cosine", "<b>|x`y", None, FACTS), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "| nDCG\\@10 | all | 300 | 0.65 | 0.79 | 0.1 to 0.2 |" in card
    assert "| hubs | held \\| out |  | 12 | 3 |  |" in card
    assert "- source: a\\|b &lt;script&gt; \\# x\n- count: 60\n" in card
    assert "- n: 919\n" in card
    assert "seen" not in card
    assert "<" not in card
    assert "the column &lt;b&gt;\\|x\\`y." in card
    assert "stored = model.move(vectors, None, labels)" in card
    rows = [line.replace("\\|", "").count("|") for line in card.splitlines() if line.startswith("|")]
    assert rows == [7] * 4  # the same cells in each row
    assert [line for line in card.splitlines() if line.startswith("#")] == ["# Repair"]


@pytest.mark.parametrize(
    "facts",
    [{}, {"data": 5, "learned": [], "figures": {}}, {"figures": [5, None, {}, {"before": "x", "low": [1]}]}],
)
def test_card_takes_facts_as_they_are(facts, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Repair(Stay().fit(X, y), facts=facts), tmp_path)
    assert (tmp_path / "README.md").read_text().startswith("# Repair\n")
    assert hubless.load(tmp_path).facts == facts


def test_figure_that_is_not_known_is_none(blobs, tmp_path):
    X, y, _ = blobs
    figures = [{"measure": "m", "before": 0.5, "after": np.nan, "low": -np.inf, "high": np.float32("inf")}]
    hubless.save(Repair(Stay().fit(X, y), facts={"figures": figures}), tmp_path)
    told = {"measure": "m", "before": 0.5, "after": None, "low": None, "high": None}
    assert hubless.load(tmp_path).facts == {"figures": [told]}
    assert "| m |  |  | 0.5 |  |  |" in (tmp_path / "README.md").read_text()


def test_card_of_a_choice_says_why(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(hubless.MoveLabeledClassifierCV(cv=3).fit(X, y), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "neighbours\\: " in card
    assert "model.predict(queries)" in card


# --- what can happen while it is written -------------------------------------------------------------------


def test_all_is_on_the_disk_before_the_name_changes(saved, blobs, monkeypatch):
    folder, _ = saved
    X, y, _ = blobs
    done = []
    sync, rename = os.fsync, os.rename

    def note_sync(handle):
        done.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))))
        sync(handle)

    def note_rename(source, target):
        done.append(("rename", os.path.basename(target)))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", note_rename)
    hubless.save(Scale().fit(X, y), folder)
    first = next(i for i, (what, _) in enumerate(done) if what == "rename")
    before = [name for _, name in done[:first]]
    assert sorted(before[:-1]) == ["README.md", "config.json", "model.safetensors"]
    assert before[-1].endswith(".part")
    assert [what for what, _ in done[first:]] == ["rename", "rename", "sync"]
    assert done[-1] == ("sync", folder.parent.name)


@pytest.mark.parametrize("name", ["README.md", "model.safetensors", "config.json"])
def test_full_disk_leaves_the_former_model(name, saved, blobs, monkeypatch):
    """A limit on the size of files is, to whoever writes, a disk that is full."""
    folder, mover = saved
    _, y, queries = blobs
    wide, many = np.random.default_rng(0).standard_normal((80, 60)), np.arange(80) % 8
    other = {
        "README.md": Repair(Stay().fit(wide, many), facts={"data": {str(i): i for i in range(9000)}}),
        "model.safetensors": Smooth().fit(wide, many),
        "config.json": Stay().fit(wide[:, :2], many),
    }[name]
    if name == "config.json":
        text = model_dir._text
        monkeypatch.setattr(model_dir, "_text", lambda *told: text(*told) + " " * 20_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, before[1]))
    try:
        with pytest.raises(OSError, match=r"(File too large|could not be written)") as caught:
            hubless.save(other, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG or name == "model.safetensors"
    assert os.listdir(folder.parent) == ["model"]
    assert same_bits(hubless.load(folder).move(queries, y[:25]), mover.move(queries, y[:25]))


def test_failed_sync_leaves_the_former_model(saved, blobs, monkeypatch):
    folder, mover = saved
    X, y, queries = blobs

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        hubless.save(Scale().fit(X, y), folder)
    assert os.listdir(folder.parent) == ["model"]
    assert same_bits(hubless.load(folder).move(queries, y[:25]), mover.move(queries, y[:25]))


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
import hubless
from hubless.movers import Scale

folder, X, y = Path(sys.argv[1]), np.random.default_rng(0).standard_normal((50, 20)), np.arange(50) % 5
models = [Scale(g).fit(X, y) for g in (0.25, 0.75)]
hubless.save(models[0], folder)
start = time.perf_counter()
hubless.save(models[0], folder)
took = time.perf_counter() - start
random.seed(0)
ends = []
for i in range(12):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                hubless.save(model, folder)
    time.sleep(took * (2 + 3 * random.random()))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        found = hubless.load(folder)
    except FileNotFoundError as error:
        hidden = Path(str(error).split("left the former mover in ")[1].split(": rename")[0])
        hidden.rename(folder)
        ends.append("hidden")
        found = hubless.load(folder)
    assert found.g in (0.25, 0.75), found
    assert np.array_equal(found.move(X), models[found.g > 0.5].move(X))
    ends.append(found.g)
    beside = {p.suffix for p in folder.parent.iterdir() if p != folder}
    assert beside <= {".part", ".old"}, beside
print(len(ends), len(list(folder.parent.iterdir())) - 1)
"""


def test_kill_leaves_the_old_or_the_new_model(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "model")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    kills, left = map(int, done.stdout.split())
    assert kills >= 12
    assert left > 0  # some came while it was writing


def test_newest_of_several_left_behind_is_told(saved):
    """One that is being removed is none to go back to."""
    folder, _ = saved
    ages = {".model.99999999.old": 100, ".model.11111111.old": 50, ".other.1.old": 10, ".model.5.old": 1}
    for name, age in ages.items():
        shutil.copytree(folder, folder.with_name(name))
        for file in folder.with_name(name).iterdir():
            os.utime(file, (1e9 - age, 1e9 - age))
    (folder.with_name(".model.5.old") / "model.safetensors").unlink()
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"left the former mover in .*\.model\.11111111\.old: rename"):
        hubless.load(folder)
