"""Untrusted folders: they are refused, run nothing and cost nothing."""

import hashlib
import json
import os
import pickle
import shutil
import socket
import struct
import sys
import time
import tracemalloc
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import hubless
from hubless.movers import MOVERS, Balance, Chain, MoveLabeled, Shrink, Smooth, Stay, Steer
from hubless.saving import folder as saving_folder
from hubless.saving import untrusted, values
from hubless.saving.values import class_named
from hubless.solve import Penalty
from tests.saving.forging import edit_arrays, edit_config, replace_file
from tests.saving.test_saved_repairs import example as example_repair

SMALL = 16 << 20  # bytes that refusing may take
FAST = 5  # seconds of the processor, which a busy machine does not lengthen


def example_models(X, y, queries):
    return {
        "mover": Chain([MoveLabeled(Penalty(1.0, relative=True), keep_moments=True), Smooth(2), Steer()]).fit(
            X, y
        ),
        "classifier": hubless.MoveLabeledClassifier(3, mover=Balance(np.float32(0.5))).fit(X, y, 1 + y),
        "choice": hubless.MoveLabeledClassifierCV(range(1, 3), np.array([0.1, 1.0]), cv=2).fit(X, y),
        "race": hubless.MoveLabeledClassifierCV(mover=[Shrink(0.1), Shrink(0.5)], cv=2).fit(X, y),
        "transformer": hubless.MoveQuery().fit(X, y),
        "metric": hubless.baselines.DMLeig(max_iter=2).fit(X, y),
        "repair": example_repair(X, y, queries),
    }


MODELS = ("mover", "classifier", "choice", "race", "transformer", "metric", "repair")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved model of each kind."""
    rng = np.random.default_rng(0)
    X, y, queries = rng.standard_normal((40, 3)) + 2, np.arange(40) % 4, rng.standard_normal((25, 3))
    root = tmp_path_factory.mktemp("models")
    for name, model in example_models(X, y, queries).items():
        hubless.save(model, root / name)
    return root


@pytest.fixture
def folder(folders, tmp_path):
    """A copy of the saved mover, to be spoilt."""
    shutil.copytree(folders / "mover", tmp_path / "model")
    return tmp_path / "model"


@contextmanager
def small_and_fast():
    """Nothing large is made, and nothing takes long."""
    tracemalloc.start()
    start = time.process_time()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < FAST
    assert peak < SMALL


# --- config.json -------------------------------------------------------------------------------------------

ODD = [None, True, 1.5, "x", ["x"], {"x": 1}, {"class": "os.system", "parameters": ["true"]}]
MORE_ODD = [
    *(-1, 1 << 40, "../../../etc/passwd", [], {}, [[[]]]),
    {"class": "Stay", "parameters": {}},
    {"class": "tuple", "parameters": "ab"},
    {"class": "Penalty", "parameters": [-1.0, False]},
    {"class": "range", "parameters": [0, 1 << 60, 1]},
    {"class": "float64", "parameters": "nan"},
    {"class": "float16", "parameters": 1e30},
    {"class": "ndarray", "parameters": {"dtype": "str", "values": ["x"]}},
]


def leaves(value, path=()):
    """Every place of a tree; of a long list of numbers or texts, the first and the last."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inside = list(inside)
    if isinstance(value, list) and {kind_of(item) for item in value} in ({"number"}, {"str"}):
        inside = inside[:1] + inside[1:][-1:]
    for name, item in inside:
        yield from leaves(item, (*path, name))


def put(config, path, value):
    for name in path[:-1]:
        config = config[name]
    config[path[-1]] = value


def kind_of(value):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_array = isinstance(value, dict) and value.get("class") in ("range", "ndarray", "tuple")
    return "number" if is_number else "list" if is_array else type(value).__name__


# What may be of another kind than it is: by its name, the kinds.
MAY_BE = {
    "alpha": ("number",),  # which is "scale"
    "alphas": ("NoneType", "number"),
    "best_score_": ("NoneType",),  # which is NaN: nothing could be compared
    "cv": ("NoneType",),
    "label": ("NoneType",),
    "max_seconds": ("number",),
    "mover": ("NoneType", "dict"),  # as a parameter
    "n_neighbors": ("NoneType", "number"),
    "n_singletons_": ("NoneType", "number"),
    "n_targets": ("number",),
    "random_state": ("NoneType",),
    "strength": ("number",),  # which is NumPy's
}


def load_or_refuse(folder):
    """The model of a folder, or None where it is refused as it should be."""
    try:
        return hubless.load(folder)
    except ValueError as error:
        message = str(error)
    assert "cannot be loaded: " in message
    assert len(message) < 3000
    return None


@pytest.mark.parametrize("values", [ODD, pytest.param(MORE_ODD, marks=pytest.mark.slow)], ids=["odd", "more"])
@pytest.mark.parametrize("name", MODELS)
def test_every_field_of_another_type_is_refused(name, values, folders, tmp_path):
    """Each place of config.json, each kind of wrong value: a ValueError, or a model where it may be so."""
    shutil.copytree(folders / name, tmp_path / "model")
    text = (tmp_path / "model/config.json").read_text()
    accepted = []
    config = json.loads(text)
    for path in list(leaves(config))[1:]:
        before = reduce(lambda tree, step: tree[step], path, config)
        for value in values:
            put(config, path, value)
            (tmp_path / "model/config.json").write_text(json.dumps(config))
            may_be = path[:2] == ("model", "facts") or kind_of(value) in (
                kind_of(before),
                *MAY_BE.get(path[-1], ()),
            )
            if load_or_refuse(tmp_path / "model") is not None and not may_be:
                accepted.append((".".join(map(str, path)), value))
        put(config, path, before)
    assert accepted == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"n_features_in_": NaN', "NaN' is not finite"),
        ('"n_features_in_": Infinity', "Infinity' is not finite"),
        ('"n_features_in_": -Infinity', "-Infinity' is not finite"),
        ('"n_features_in_": 1e999', "1e999' is not finite"),
        ('"n_features_in_": ' + "9" * 4000, "does not fit into 64 bits"),
        ('"n_features_in_": ' + "9" * 5_000_000, "does not fit into 64 bits"),
        ('"n_features_in_": -9223372036854775809', "does not fit into 64 bits"),
        ('"n_features_in_": 3, "n_features_in_": 3', "'n_features_in_' occurs 2 times"),
        ('"n_features_in_": 3, "run": "true"', "'run'"),
        ('"n_features_in_": ' + "[" * 100_000, "nested too deeply"),
        ('"n_features_in_": ' + '{"a":' * 100_000, "nested too deeply"),
        ('"n_features_in_": "\ud800"', "codec can't decode"),
    ],
)
def test_json_that_is_not_plain_data_is_refused(text, message, folder):
    config = (folder / "config.json").read_text()
    assert config.count('"n_features_in_": 3') == 1
    changed = config.replace('"n_features_in_": 3', text)
    (folder / "config.json").write_text(changed, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ValueError, match=message):
        hubless.load(folder)


def test_chain_of_a_million_movers_is_refused(folder):
    many = [{"class": "Stay", "parameters": {}}] * 100_000
    edit_config(folder, lambda config: config["model"]["parameters"].update(movers=many))
    start = time.process_time()
    with pytest.raises(ValueError, match="more than 10000 values"):
        hubless.load(folder)
    assert time.process_time() - start < FAST


def test_few_long_names_of_classes_do_not_fill_the_memory(folder):
    names = sorted(str(i) for i in range(20_000))
    classes = {"dtype": "str", "values": [*names, "x" * 100_000]}  # as an array: 8 GB
    edit_config(folder, lambda config: config["model"].update(classes_=classes))
    with small_and_fast(), pytest.raises(ValueError, match=r"would take 8000400000 bytes .* too long"):
        hubless.load(folder)


def test_many_columns_of_texts_do_not_fill_the_memory(folders, tmp_path):
    """Each of them alone would be allowed."""
    shutil.copytree(folders / "race", tmp_path / "model")
    texts = ["x" * 100_000] + [""] * 1000  # as an array: 400 MB
    columns = {f"column {i}": texts for i in range(4)}
    edit_config(tmp_path / "model", lambda c: c["model"]["learned"]["cv_results_"].update(columns))
    with small_and_fast(), pytest.raises(ValueError, match=r"cv_results_ would take \d+ bytes .* too long"):
        hubless.load(tmp_path / "model")


# --- classes that may be made -------------------------------------------------------------------------------

MADE = [
    *("MoveLabeledClassifier", "MoveLabeledClassifierCV", "MoveQuery", "Repair"),
    *hubless.baselines.__all__,
    *(name for name, kind in MOVERS.items() if not kind._why_unsaved),
]
NEVER_MADE = [
    *("Regress", "Mover", "_Metric", "MovedNeighbors", "MahalanobisLearner", "BaseEstimator", "Pipeline"),
    *("os.system", "hubless.movers.Shrink", "movers.Shrink", "builtins.eval", "eval", "object", "type"),
    *("__class__", "__import__", "import_module", "MOVERS", "MODULES", "", "shrink", "Shrink ", "Penalty"),
]


def test_only_these_classes_are_made():
    assert [class_named(name).__name__ for name in MADE] == MADE
    assert [class_named(name) for name in NEVER_MADE] == [None] * len(NEVER_MADE)
    assert [class_named(value) for value in (None, 5, ["Shrink"], {"Shrink": 1}, b"Shrink")] == [None] * 5


@pytest.mark.parametrize("name", [*NEVER_MADE, 5, None, ["Shrink"], {"class": "Stay"}])
def test_other_classes_are_refused_wherever_they_are_named(name, folder):
    def change_class(config):
        config["model"]["class"] = name

    def change_parameter(config):
        config["model"]["parameters"]["movers"][0] = {"class": name, "parameters": {}}

    text = (folder / "config.json").read_text()
    for change in (change_class, change_parameter):
        (folder / "config.json").write_text(text)
        edit_config(folder, change)
        with pytest.raises(ValueError, match="cannot be loaded: "):
            hubless.load(folder)


@pytest.mark.parametrize("kind", ["MoveLabeledClassifier", "MoveQuery", "LMNN", "Repair"])
def test_inside_an_estimator_only_movers_are_made(kind, folders, tmp_path, monkeypatch):
    """Not even to be refused by a check of parameters."""
    shutil.copytree(folders / "classifier", tmp_path / "model")
    edit_config(
        tmp_path / "model",
        lambda c: c["model"]["parameters"].update(mover={"class": kind, "parameters": {}}),
    )
    monkeypatch.setattr(values, "estimator_of", lambda result, real=values.estimator_of: real(check(result)))

    def check(result):
        assert result["class"] != kind
        return result

    with pytest.raises(ValueError, match=f"a parameter is of the class '{kind}', which cannot be loaded"):
        hubless.load(tmp_path / "model")


# --- every part of config.json ------------------------------------------------------------------------------

HOSTILE_CONFIGS = {
    "another class": (
        lambda c: c["model"].update({"class": "os.system"}),
        "the class 'os.system', which cannot",
    ),
    "a class that is not saved": (
        lambda c: c["model"].update({"class": "Regress"}),
        "the class 'Regress', which",
    ),
    "no name": (lambda c: c["model"].update({"class": ["Shrink"]}), r"the class \['Shrink'\], which cannot"),
    "a private parameter": (lambda c: c["model"]["parameters"].update(_x=1), r"got \['_x', 'movers'\]"),
    "a parameter too few": (lambda c: c["model"]["parameters"].clear(), r"must have \['movers'\]; got \[\]"),
    "an impossible parameter": (
        lambda c: c["model"]["parameters"]["movers"][1]["parameters"].update(step=7),
        "from 0 to 1; got 7",
    ),
    "no movers": (lambda c: c["model"]["parameters"].update(movers=5), "a chain is made of movers"),
    "no model": (lambda c: c.update(model=5), "a model must have .* got 5"),
    "a mover more": (
        lambda c: c["model"]["parameters"]["movers"].append({"class": "Scale", "parameters": {"g": 0.1}}),
        "the array movers_.2.mean_ is missing",
    ),
    "a mover too few": (lambda c: c["model"]["parameters"]["movers"].pop(), "which Chain does not"),
    "a mover of a classifier": (
        lambda c: c["model"].update(mover_={"class": "Stay", "parameters": {}}),
        "mover_ is .*; Chain has none",
    ),
    "an extra key": (lambda c: c.update(run="rm"), "'run'"),
    "an extra key of the model": (lambda c: c["model"].update(run="rm"), "'run'"),
    "a key too few": (lambda c: c.pop("metric"), "config.json must have"),
    "a key of the model too few": (lambda c: c["model"].pop("learned"), "a model must have"),
    "another format": (lambda c: c.update(format="joblib"), "hubless model"),
    "a newer version": (
        lambda c: (c.update(format_version=2), c["versions"].update(hubless="9.9")),
        "format_version is 2, this hubless reads 1: install hubless '9.9', which wrote it",
    ),
    "a version that is true": (lambda c: c.update(format_version=True), "format_version is True"),
    "versions of something else": (lambda c: c["versions"].update(os="1"), "versions must have"),
    "a version that is no text": (lambda c: c["versions"].update(numpy=2), "expected a text"),
    "a number by name": (
        lambda c: c["model"]["learned"].update({"movers_.0.alpha_": "1"}),
        "movers_.0.alpha_ is '1'; expected a number",
    ),
    "no number": (lambda c: c["model"]["learned"].update({"space_.gain": None}), "space_.gain is None"),
    "a number too many": (lambda c: c["model"]["learned"].update({"space_.x": 1.0}), "learned must have"),
    "a number too few": (lambda c: c["model"]["learned"].pop("space_.gain"), "learned must have"),
    "a column that is none": (
        lambda c: c["model"]["learned"].update({"space_.floor": 0.5}),
        "space_.floor does not belong to Chain",
    ),
    "no classes": (lambda c: c["model"].update(classes_=None), "classes_ are missing|class numbers|of shape"),
    "classes of another number": (lambda c: c["model"]["classes_"]["values"].pop(), r"expected .* \(3, 6\)"),
    "classes of another kind": (
        lambda c: c["model"]["classes_"].update(dtype="V8"),
        "'V8'; allowed are .* object, str",
    ),
    "classes that do not fit": (
        lambda c: c["model"]["classes_"].update(values=[0.5, 1, 2, 3]),
        r"got \[0.5, 1",
    ),
    "classes that mix": (lambda c: c["model"]["classes_"].update(dtype="object"), "a list of object"),
    "classes twice": (lambda c: c["model"]["classes_"].update(values=[0, 1, 1, 2]), "sorted, each once"),
    "other features": (
        lambda c: c["model"].update(n_features_in_=7),
        "expected float32 or float64 of shape",
    ),
    "another dimension": (lambda c: c.update(dimension=7), "dimension is 7; expected 6"),
    "another metric": (lambda c: c.update(metric="cosine"), "metric is 'cosine'; expected 'l2'"),
    "a fingerprint": (lambda c: c.update(fingerprint="ab"), "fingerprint is 'ab'; expected None"),
    "names of other features": (lambda c: c["model"].update(feature_names_in_=["a"]), "expected 6 names"),
    "fewer than no singletons": (lambda c: c["model"].update(n_singletons_=-1), "n_singletons_ is -1"),
    "an order of nothing": (
        lambda c: c["model"].update(column_major=["space_.mean"]),
        "names of matrices",
    ),
    "another checksum": (lambda c: c["sha256"].update({"model.safetensors": "0"}), "damaged or of another"),
    "a checksum of another file": (lambda c: c["sha256"].update({"../x": "0"}), "sha256 must have"),
    "no checksum": (lambda c: c["sha256"].clear(), "sha256 must have"),
}


@pytest.fixture
def chain(blobs, tmp_path):
    """A folder with two movers in a chain."""
    X, y, _ = blobs
    hubless.save(Chain([MoveLabeled(), Shrink()]).fit(X, y), tmp_path / "chain")
    return tmp_path / "chain"


@pytest.mark.parametrize("name", HOSTILE_CONFIGS)
def test_hostile_config_is_refused(name, chain):
    change, message = HOSTILE_CONFIGS[name]
    edit_config(chain, change)
    with pytest.raises(ValueError, match=message) as caught:
        hubless.load(chain)
    assert str(caught.value).startswith(f"{chain} cannot be loaded: ")
    assert "or save the model again" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "\x80", "[" * 100_000, '{"format": "hubless model"}'])
def test_invalid_config_is_refused(text, chain):
    (chain / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="cannot be loaded"):
        hubless.load(chain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(extra=np.zeros(3)), "'extra'"),
        (lambda a: a.pop("movers_.0.mean_"), "the array movers_.0.mean_ is missing"),
        (lambda a: a.pop("movers_.0.W_"), "names of matrices|is missing"),
        (lambda a: a.update({"movers_.0.W_": np.zeros((6, 5))}), r"shape \(6, 5\); expected .* \(6, 6\)"),
        (lambda a: a.update({"movers_.1.means_": np.zeros(6)}), r"shape \(6,\); expected .* \(4, 6\)"),
        (lambda a: a.update({"movers_.0.W_": np.zeros((6, 6), np.int64)}), "is int64 of shape"),
        (lambda a: a.update({"space_.mean": np.zeros(6, np.float16)}), "is float16 of shape"),
    ],
)
def test_arrays_of_another_mover_are_refused(change, message, chain):
    edit_arrays(chain, change)
    with pytest.raises(ValueError, match=message):
        hubless.load(chain)


def test_arrays_that_do_not_fit_each_other_are_refused(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Smooth().fit(X, y), tmp_path)
    edit_arrays(tmp_path, lambda arrays: arrays.update(codes_=arrays["codes_"][:-1]))
    with pytest.raises(ValueError, match=r"cannot be loaded: (codes_|objects_) is .*; expected .* \((59|60)"):
        hubless.load(tmp_path)


def test_moments_without_weight_are_refused(blobs, tmp_path):
    X, y, _ = blobs
    for name in ("mean_weight_", "moments_.weight"):
        hubless.save(MoveLabeled(keep_moments=True).fit(X, y), tmp_path)
        edit_config(tmp_path, lambda config, name=name: config["model"]["learned"].update({name: 0.0}))
        with pytest.raises(ValueError, match="weights of the moments must be above 0"):
            hubless.load(tmp_path)


def test_damaged_and_swapped_arrays_are_refused(chain, blobs, tmp_path):
    X, y, _ = blobs
    whole = (chain / "model.safetensors").read_bytes()
    hubless.save(Chain([MoveLabeled(), Shrink()]).fit(X + 1, y), tmp_path / "other")
    swapped = (tmp_path / "other" / "model.safetensors").read_bytes()
    for content in (whole[:-8], whole[:20], b"", whole[:-1] + b"\x00", swapped):
        (chain / "model.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="damaged or of another model: sha256"):
            hubless.load(chain)
    replace_file(chain, b"cos\nsystem\n(S'true'\ntR.")  # a pickle, with its checksum
    with pytest.raises(ValueError, match="deserializing"):
        hubless.load(chain)


# --- model.safetensors -------------------------------------------------------------------------------------


def tensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(dtype="F64", shape=(2,), offsets=(0, 16)):
    return {"W_": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


class Runs:
    def __reduce__(self):
        return os.system, ("touch it_ran",)


FORGED = {
    "nothing": b"",
    "seven bytes": b"\x01" * 7,
    "a header beyond the end": struct.pack("<Q", 1 << 20) + b"{}",
    "a header of all there is": struct.pack("<Q", (1 << 64) - 1) + b"{}",
    "a header of no JSON": tensors(b"{" + b" " * 7),
    "a header that is a list": tensors([]),
    "a header with names twice": tensors(
        b'{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},'
        b'"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}',
        bytes(8),
    ),
    "a header of brackets": tensors(b"[" * 100_000),
    "offsets beyond the end": tensors(one(offsets=(0, 16)), bytes(8)),
    "offsets that fall": tensors(one(offsets=(16, 0)), bytes(16)),
    "offsets below zero": tensors(one(offsets=(-8, 8)), bytes(16)),
    "offsets that overlap": tensors({**one(), "b": one()["W_"]}, bytes(16)),
    "offsets with a hole": tensors(one(offsets=(8, 24)), bytes(24)),
    "bytes left over": tensors(one(), bytes(24)),
    "a shape of more than there is": tensors(one(shape=(1 << 31, 1 << 31)), bytes(16)),
    "a shape that overflows to fit": tensors(one(shape=(1 << 32, 1 << 32, 2)), bytes(16)),
    "a shape below zero": tensors(one(shape=(-2,)), bytes(16)),
    "a shape that is none": tensors(
        {"W_": {"dtype": "F64", "shape": "2", "data_offsets": [0, 16]}}, bytes(16)
    ),
    "a type that lies": tensors(one("F32"), bytes(16)),
    "a type that is none": tensors(one("O8"), bytes(16)),
    "metadata": tensors({"__metadata__": {"x": "y"}, **one()}, bytes(16)),
    "other names": tensors({"W_": {"dtype": "F64", "shape": [2], "run": "true"}}, bytes(16)),
    "a pickle": pickle.dumps(Runs()),
    "a zip": b"PK\x03\x04" + bytes(60),
    "NumPy's": b"\x93NUMPY\x01\x00" + bytes(100),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_arrays_are_refused(name, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    replace_file(folder, FORGED[name])
    with small_and_fast(), pytest.raises(ValueError, match="cannot be loaded"):
        hubless.load(folder)
    assert os.listdir(folder.parent) == ["model"]  # the pickle would have made a file


def test_header_of_more_than_16_mib_is_not_read(folder):
    text = b'{"W_":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}' + b" " * (16 << 20) + b"}"
    replace_file(folder, tensors(text, bytes(16)))
    with pytest.raises(ValueError, match=r"a header of 16777272 bytes.*at most 16777216 are read"):
        hubless.load(folder)


def first_rows(arrays, n, *names):
    arrays.update({name: arrays[name][:n].copy() for name in names})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["mover", "classifier", "transformer", "metric", "repair"])
def test_arrays_that_are_not_finite_are_refused(name, bad, folders, tmp_path):
    arrays = safetensors.numpy.load_file(folders / name / "model.safetensors")
    names = [key for key, array in arrays.items() if array.dtype.kind == "f"]
    assert names
    for key in names:
        shutil.copytree(folders / name, tmp_path / "model", dirs_exist_ok=True)
        edit_arrays(tmp_path / "model", lambda result, key=key: result[key].reshape(-1).__setitem__(-1, bad))
        with pytest.raises(ValueError, match=f"{key.split('.')[-1]} holds NaN or infinity"):
            hubless.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("mover", lambda a: a["movers_.1.codes_"].__setitem__(0, 4), "class numbers from 0 to 4, of 4"),
        ("mover", lambda a: a["movers_.1.codes_"].__setitem__(0, -1), "class numbers from -1 to 3, of 4"),
        ("mover", lambda a: a.pop("movers_.0.moments_.A"), "the array movers_.0.moments_.A is missing"),
        (
            "mover",
            lambda a: a.update({"movers_.0.moments_.K": np.zeros(3)}),
            r"moments_\.K is float64 of shape",
        ),
        ("mover", lambda a: a.update({"../x": np.zeros(3)}), r"the arrays \['../x'\], which Chain does not"),
        ("mover", lambda a: first_rows(a, 0, "movers_.1.objects_", "movers_.1.codes_"), "is empty"),
        ("classifier", lambda a: a["codes_"].__setitem__(0, 9), "class numbers from 0 to 9"),
        ("classifier", lambda a: a["weights_"].__setitem__(0, 0), "weights_ must be above 0"),
        (
            "classifier",
            lambda a: a.update(moved_=a["moved_"][:, :3].copy()),
            r"expected .* of shape \(40, 4\)",
        ),
        ("classifier", lambda a: first_rows(a, 2, "moved_", "codes_", "weights_"), "3 neighbours vote"),
        ("classifier", lambda a: a.update({"other.x": np.zeros(3)}), r"the arrays \['other.x'\], which"),
        ("choice", lambda a: a.pop("scores_"), "belong together, and one is missing"),
        (
            "choice",
            lambda a: a.update(scores_=a["scores_"][:, :, :1].copy()),
            r"scores_ has the shape \(2, 1, 1, 2\)",
        ),
        ("choice", lambda a: a.pop("cv_results_.mean_test_score"), "cv_results_ must have"),
        (
            "choice",
            lambda a: a.update({"cv_results_.rank_test_score": np.zeros(1)}),
            "of cv_results_ is float64",
        ),
        ("choice", lambda a: a.update({"cv_results_.rank_test_score": np.zeros(4, np.int8)}), "is int8"),
        ("race", lambda a: a.update(scores_=np.zeros((1, 1, 1, 1))), "belong together, and one is missing"),
        ("transformer", lambda a: a.update(W_=np.zeros((3, 4))), r"W_ is float64 of shape \(3, 4\)"),
        ("metric", lambda a: a.update(history_=np.zeros((1, 1))), r"the arrays \['history_'\], which DMLeig"),
        ("metric", lambda a: a.update(components_=np.zeros((3, 4))), "components_ is float64 of shape"),
    ],
)
def test_arrays_of_another_model_are_refused(name, change, message, folders, tmp_path):
    shutil.copytree(folders / name, tmp_path / "model")
    edit_arrays(tmp_path / "model", change)
    with pytest.raises(ValueError, match=message):
        hubless.load(tmp_path / "model")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize("name", MODELS)
def test_random_damage_is_refused_or_harmless(name, seed, folders, tmp_path):
    """Bytes of the arrays' file, its checksum corrected: a ValueError, or a model with other numbers."""
    shutil.copytree(folders / name, tmp_path / "model")
    whole = (folders / name / "model.safetensors").read_bytes()
    rng = np.random.default_rng(seed)
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    for end in (8, header, len(whole)):  # the length, the header, the numbers
        for _ in range(10):
            spoilt = bytearray(whole)
            for place in rng.integers(0, end, 1 + rng.integers(4)):
                spoilt[place] = rng.integers(256)
            replace_file(tmp_path / "model", bytes(spoilt))
            load_or_refuse(tmp_path / "model")


# --- the folder itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_that_lead_out_are_refused(name, folder):
    outside = folder.parent / "outside"
    shutil.copy(folder / name, outside)
    for target in (outside, Path("..") / "outside", Path("/etc/passwd"), Path("/dev/zero")):
        (folder / name).unlink()
        (folder / name).symlink_to(target)
        with pytest.raises((ValueError, FileNotFoundError), match=r"leads out of the folder|a device"):
            hubless.load(folder)


def test_links_inside_the_folder_and_to_it_are_followed(folder, folders):
    (folder / "config.json").rename(folder / "other.json")
    (folder / "config.json").symlink_to("other.json")
    (folder.parent / "link").symlink_to(folder)
    assert repr(hubless.load(folder.parent / "link")) == repr(hubless.load(folders / "mover"))


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)  # names of sockets are short
        server.bind(path.name)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (make_fifo, "a pipe"),
        (make_socket, "a socket"),
        (Path.mkdir, "a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path), "a link to itself"),
        (lambda path: path.symlink_to("nowhere"), "missing"),
    ],
)
def test_anything_but_a_file_is_named_and_not_waited_for(name, make, what, folder, folders, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / name).unlink()
    make(folder / name)
    start, used = time.monotonic(), time.process_time()
    with pytest.raises(FileNotFoundError, match=f"{name} is {what}"):
        hubless.load(folder)
    with pytest.raises(FileExistsError, match="is not changed"):
        hubless.save(hubless.load(folders / "mover"), folder)
    assert time.monotonic() - start < 60
    assert time.process_time() - used < FAST
    assert os.path.lexists(folder / name)


def test_pipe_that_takes_the_place_of_a_file_is_not_waited_for(folder, monkeypatch):
    """Between the look and the opening."""
    monkeypatch.setattr(saving_folder, "kind_of", lambda path: None)
    for name in ("config.json", "model.safetensors"):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(ValueError, match=f"{name} is not a file"):
            hubless.load(folder)
        (folder / name).unlink()
        (folder / name).write_bytes(kept)


def test_link_that_takes_the_place_of_a_file_is_not_followed(folder, monkeypatch):
    """Between the look and the opening."""
    real = os.path.realpath
    monkeypatch.setattr(untrusted.os.path, "realpath", lambda path: os.path.abspath(path))
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        hubless.load(folder)
    assert real(folder / "config.json") == "/etc/passwd"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("config.json", 1 << 40, "config.json has 1099511627776 bytes; at most 67108864 are read"),
        ("config.json", (64 << 20) + 1, "config.json has 67108865 bytes; at most 67108864 are read"),
        ("model.safetensors", 1 << 40, "1099511627776 bytes; at most 4294967296 .* a larger max_bytes"),
        ("model.safetensors", (4 << 30) + 1, "4294967297 bytes; at most 4294967296 are read"),
    ],
)
def test_huge_files_are_refused_before_they_are_read(name, size, message, folder):
    os.truncate(folder / name, size)  # sparse: it takes no room
    with small_and_fast(), pytest.raises(ValueError, match=message):
        hubless.load(folder)


def test_limit_of_bytes_is_the_callers(folder):
    size = (folder / "model.safetensors").stat().st_size
    hubless.load(folder, max_bytes=size)
    with pytest.raises(ValueError, match=f"model.safetensors has {size} bytes; at most {size - 1} are read"):
        hubless.load(folder, max_bytes=size - 1)
    for bad in (0, 1.5, "all"):
        with pytest.raises(ValueError, match="max_bytes must be a whole number"):
            hubless.load(folder, max_bytes=bad)


def test_file_that_grows_while_it_is_read_is_refused(folder, monkeypatch):
    stat = os.fstat

    def then_grow(handle):
        result = stat(handle)
        with (folder / "config.json").open("ab") as file:
            file.write(b" ")
        return result

    monkeypatch.setattr(os, "fstat", then_grow)
    with pytest.raises(ValueError, match=r"config\.json changed while it was read"):
        hubless.load(folder)


def test_file_that_is_swapped_after_the_check_is_not_used(folder, folders, monkeypatch):
    """Each file is opened once: what was checked is what is used."""
    truth = hubless.load(folders / "mover")
    sha256 = hashlib.sha256

    def then_swap(content):
        (folder / "model.safetensors").write_bytes(b"swapped")
        (folder / "config.json").write_text("swapped")
        return sha256(content)

    monkeypatch.setattr(saving_folder.hashlib, "sha256", then_swap)
    result = hubless.load(folder)
    assert result.movers_[0].W_.tobytes() == truth.movers_[0].W_.tobytes()


def test_damaged_model_is_not_taken_for_one_to_replace(folder):
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/etc/passwd")
    with pytest.raises(FileExistsError, match="is not changed"):
        hubless.save(Stay().fit([[0.0], [1.0]], [0, 1]), folder)


# --- nothing runs ------------------------------------------------------------------------------------------

AUDITED = ("open", "exec", "compile", "import", "os.system", "subprocess.Popen", "pickle.find_class")
EVENTS = []
WATCHED = []  # not empty while events are noted


def watch(event, arguments):
    if WATCHED and event in AUDITED and not isinstance(arguments[0], int):  # a number is a file that is open
        EVENTS.append((event, Path(str(arguments[0])).name))


@pytest.fixture(scope="module")
def audit():
    sys.addaudithook(watch)  # it cannot be taken away again
    return EVENTS


@pytest.mark.parametrize("name", MODELS)
def test_loading_reads_two_files_and_runs_nothing(name, folders, audit):
    """Seen by the interpreter itself, which audits every such event."""
    hubless.load(folders / name)  # what is imported on first use is
    audit.clear()
    WATCHED.append(True)
    try:
        hubless.load(folders / name)
    finally:
        WATCHED.clear()
    assert audit == [("open", "config.json"), ("open", "model.safetensors")]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("postgresql://me:secret@host/db#t", "postgresql:/me@host/db#t"), ("~nobody-of-this-name", "~nobody-")],
)
def test_what_is_no_folder_is_named_without_secrets(name, shown):
    with pytest.raises(FileNotFoundError, match="is missing") as refused:
        hubless.load(name)
    assert shown in str(refused.value)
    assert "secret" not in str(refused.value)
