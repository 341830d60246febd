"""Saved movers: what comes back, what is refused, and that nothing in a folder can run."""

import json
import os
import pickletools
import stat
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hubless
from hubless import model_dir, movers
from hubless.arrays import to_numpy
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
    Whiten,
)
from hubless.solve import Penalty
from hubless.state import LEARNED

MOVERS = {
    "Stay": Stay(),
    "Scale": Scale(0.4),
    "Shrink": Shrink(0.7),
    "Smooth": Smooth(3, "distance", step=0.5),
    "MoveLabeled": MoveLabeled(Penalty(0.5, relative=True), 2),
    "MoveLabeled, about the origin": MoveLabeled(3, center=False, toward="identity"),
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
    assert kinds == set(LEARNED) == {type(mover) for mover in MOVERS.values()}


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
    assert (config["format_version"], config["hubless_version"]) == (1, hubless.__version__)
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    assert sorted(arrays) == ["exit_.mean", "movers_.0.W_", "movers_.0.mean_", "movers_.1.means_"]
    for name in os.listdir(folder):
        content = (folder / name).read_bytes()
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
        (lambda X, y: hubless.MoveLabeledClassifier().fit(X, y), TypeError, "save its mover_"),
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
        lambda c: c.update(format_version=2, hubless_version="9.9"),
        "format_version is 2, this hubless reads 1: install hubless 9.9",
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
