"""Folders made by somebody who wishes us ill: they are refused, run nothing and cost nothing."""

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
from hubless import model_dir, model_files
from hubless.index.repair import Own, Repair
from hubless.movers import Balance, Chain, MoveLabeled, Shrink, Smooth, Steer
from hubless.solve import Penalty

SMALL = 16 << 20  # bytes that refusing may take


def some_models(X, y, queries):
    facts = {"data": {"source": "x", "fingerprint": "ab"}, "figures": [{"before": 0.5}]}
    own = Own(np.array(["a", "b"], dtype=object), X[:2], 0.5)
    return {
        "mover": Chain([MoveLabeled(Penalty(1.0, relative=True), keep_moments=True), Smooth(2), Steer()]).fit(
            X, y
        ),
        "classifier": hubless.MoveLabeledClassifier(3, mover=Balance(np.float32(0.5))).fit(X, y, 1 + y),
        "choice": hubless.MoveLabeledClassifierCV(range(1, 3), np.array([0.1, 1.0]), cv=2).fit(X, y),
        "race": hubless.MoveLabeledClassifierCV(mover=[Shrink(0.1), Shrink(0.5)], cv=2).fit(X, y),
        "transformer": hubless.MoveQuery().fit(X, y),
        "metric": hubless.baselines.DMLeig(max_iter=2).fit(X, y),
        "repair": Repair(MoveLabeled().fit_pairs(X[:25], queries), "cosine", "kind", own, facts),
    }


MODELS = ("mover", "classifier", "choice", "race", "transformer", "metric", "repair")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved model of each kind."""
    rng = np.random.default_rng(0)
    X, y, queries = rng.standard_normal((40, 3)) + 2, np.arange(40) % 4, rng.standard_normal((25, 3))
    root = tmp_path_factory.mktemp("models")
    for name, model in some_models(X, y, queries).items():
        hubless.save(model, root / name)
    return root


@pytest.fixture
def folder(folders, tmp_path):
    """A copy of the saved mover, to be spoilt."""
    shutil.copytree(folders / "mover", tmp_path / "model")
    return tmp_path / "model"


def replace_file(folder, content):
    """Another model.safetensors, with its checksum, as a forger would make it."""
    (folder / "model.safetensors").write_bytes(content)
    config = json.loads((folder / "config.json").read_text())
    config["sha256"]["model.safetensors"] = hashlib.sha256(content).hexdigest()
    (folder / "config.json").write_text(json.dumps(config))


@contextmanager
def small_and_fast():
    """Nothing large is made, and nobody waits."""
    tracemalloc.start()
    start = time.monotonic()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < 5
    assert peak < SMALL


# --- config.json -------------------------------------------------------------------------------------------

ODD = [None, True, -1, 1.5, 1 << 40, "x", "../../../etc/passwd", [], ["x"], {}, {"x": 1}, [[[]]]]
NODES = [
    {"class": "os.system", "parameters": ["true"]},
    {"class": "Stay", "parameters": {}},
    {"class": "tuple", "parameters": "ab"},
    {"class": "Penalty", "parameters": [-1.0, False]},
    {"class": "range", "parameters": [0, 1 << 60, 1]},
    {"class": "float64", "parameters": "nan"},
    {"class": "float16", "parameters": 1e30},
    {"class": "ndarray", "parameters": {"dtype": "str", "values": ["x"]}},
]
NOT_READ = ("facts", "hubless_version", "versions")  # kept or told, and used for nothing


def leaves(value, path=()):
    """Every place of a tree."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
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
        told = str(error)
    assert "cannot be loaded: " in told
    assert len(told) < 3000
    return None


@pytest.mark.parametrize("name", MODELS)
def test_every_field_of_another_type_is_refused(name, folders, tmp_path):
    """Each place of config.json, each kind of wrong value: a ValueError, or a model where it may be so."""
    shutil.copytree(folders / name, tmp_path / "model")
    text = (tmp_path / "model/config.json").read_text()
    accepted = []
    for path in list(leaves(json.loads(text)))[1:]:
        for value in ODD + NODES:
            config = json.loads(text)
            before = reduce(lambda tree, step: tree[step], path, config)
            put(config, path, value)
            (tmp_path / "model/config.json").write_text(json.dumps(config))
            may_be = path[0] in NOT_READ or kind_of(value) in (kind_of(before), *MAY_BE.get(path[-1], ()))
            if load_or_refuse(tmp_path / "model") is not None and not may_be:
                accepted.append((".".join(map(str, path)), value))
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
        ('"n_features_in_": 3, "n_features_in_": 3', "'n_features_in_' is there 2 times"),
        ('"n_features_in_": 3, "run": "true"', "'run'"),
        ('"n_features_in_": ' + "[" * 100_000, "recursion"),
        ('"n_features_in_": ' + '{"a":' * 100_000, "recursion"),
        ('"n_features_in_": "\ud800"', "codec can't decode"),
    ],
)
def test_json_that_is_no_plain_data_is_refused(text, message, folder):
    config = (folder / "config.json").read_text()
    assert config.count('"n_features_in_": 3') == 1
    changed = config.replace('"n_features_in_": 3', text)
    (folder / "config.json").write_text(changed, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ValueError, match=message):
        hubless.load(folder)


def test_chain_of_a_million_movers_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    config["mover"]["parameters"]["movers"] = [{"class": "Stay", "parameters": {}}] * 100_000
    (folder / "config.json").write_text(json.dumps(config))
    start = time.monotonic()
    with pytest.raises(ValueError, match="more than 10000 values"):
        hubless.load(folder)
    assert time.monotonic() - start < 5


def test_few_long_names_of_classes_do_not_fill_the_memory(folder):
    config = json.loads((folder / "config.json").read_text())
    names = sorted(str(i) for i in range(20_000))
    config["classes_"] = {"dtype": "str", "values": [*names, "x" * 100_000]}  # as an array: 8 GB
    (folder / "config.json").write_text(json.dumps(config))
    with small_and_fast(), pytest.raises(ValueError, match="too long to be held as an array"):
        hubless.load(folder)


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


def change_arrays(folder, change):
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    change(arrays)
    replace_file(folder, safetensors.numpy.save(arrays))


def first_rows(arrays, n, *names):
    arrays.update({name: arrays[name][:n].copy() for name in names})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["mover", "classifier", "transformer", "metric", "repair"])
def test_arrays_that_are_not_finite_are_refused(name, bad, folders, tmp_path):
    arrays = safetensors.numpy.load_file(folders / name / "model.safetensors")
    names = [key for key, array in arrays.items() if array.dtype.kind == "f"]
    assert len(names) > 1
    for key in names:
        shutil.copytree(folders / name, tmp_path / "model", dirs_exist_ok=True)
        change_arrays(tmp_path / "model", lambda found, key=key: found[key].reshape(-1).__setitem__(-1, bad))
        with pytest.raises(ValueError, match=f"{key.split('.')[-1]} holds NaN or infinity"):
            hubless.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("mover", lambda a: a["movers_.1.codes_"].__setitem__(0, 4), "class numbers from 0 to 4, of 4"),
        ("mover", lambda a: a["movers_.1.codes_"].__setitem__(0, -1), "class numbers from -1 to 3, of 4"),
        ("mover", lambda a: a.pop("movers_.0.moments_.A"), "the arrays must have"),
        (
            "mover",
            lambda a: a.update({"movers_.0.moments_.K": np.zeros(3)}),
            r"moments_\.K is float64 of shape",
        ),
        ("mover", lambda a: a.update({"../x": np.zeros(3)}), "the arrays must have"),
        ("mover", lambda a: first_rows(a, 0, "movers_.1.objects_", "movers_.1.codes_"), "is empty"),
        ("classifier", lambda a: a["codes_"].__setitem__(0, 9), "class numbers from 0 to 9"),
        ("classifier", lambda a: a["weights_"].__setitem__(0, 0), "weights_ must be above 0"),
        (
            "classifier",
            lambda a: a.update(moved_=a["moved_"][:, :3].copy()),
            r"expected .* of shape \(40, 4\)",
        ),
        ("classifier", lambda a: first_rows(a, 2, "moved_", "codes_", "weights_"), "3 neighbours vote"),
        ("classifier", lambda a: a.update({"other.x": np.zeros(3)}), "the arrays must have"),
        ("choice", lambda a: a.pop("scores_"), "scores_ is float64 of shape"),
        ("choice", lambda a: a.update(scores_=a["scores_"][:, :, :1].copy()), "scores_ is float64 of shape"),
        ("choice", lambda a: a.pop("cv_results_.mean_test_score"), "cv_results_ must have"),
        (
            "choice",
            lambda a: a.update({"cv_results_.rank_test_score": np.zeros(1)}),
            "of cv_results_ is float64",
        ),
        ("choice", lambda a: a.update({"cv_results_.rank_test_score": np.zeros(4, np.int8)}), "is int8"),
        ("race", lambda a: a.update(scores_=np.zeros((1, 1, 1, 1))), "the arrays must have"),
        ("transformer", lambda a: a.update(W_=np.zeros((3, 4))), r"W_ is float64 of shape \(3, 4\)"),
        ("metric", lambda a: a.update(history_=np.zeros((1, 1))), "history_ is float64"),
        ("repair", lambda a: a["own.ends"].__setitem__(0, 5), "ends of own"),
        ("repair", lambda a: a["own.ends"].__setitem__(0, -1), "ends of own"),
        ("repair", lambda a: a["own.ends"].__setitem__(1, 1 << 60), "ends of own"),
        ("repair", lambda a: a["own.text"].__setitem__(0, 255), "codec can't decode"),
        ("repair", lambda a: a["own.text"].__setitem__(0, ord("b")), "not all different"),
        ("repair", lambda a: a.update({"own.ids": np.arange(2)}), "the arrays of own"),
        ("repair", lambda a: a.update({"own.means": np.zeros((3, 3))}), r"own.ends is int64 of shape \(2,\)"),
    ],
)
def test_arrays_of_another_model_are_refused(name, change, message, folders, tmp_path):
    shutil.copytree(folders / name, tmp_path / "model")
    change_arrays(tmp_path / "model", change)
    with pytest.raises(ValueError, match=message):
        hubless.load(tmp_path / "model")


@pytest.mark.parametrize("seed", range(4))
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
    ("make", "told"),
    [
        (make_fifo, "a pipe"),
        (make_socket, "a socket"),
        (Path.mkdir, "a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path), "a link to itself"),
        (lambda path: path.symlink_to("nowhere"), "not there"),
    ],
)
def test_what_is_no_file_is_told_and_not_waited_for(name, make, told, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / name).unlink()
    make(folder / name)
    start = time.monotonic()
    with pytest.raises(FileNotFoundError, match=f"{name} is {told}"):
        hubless.load(folder)
    with pytest.raises(FileExistsError, match="stays as it is"):
        hubless.save(hubless.load(Path(__file__).parent / "data" / "model-v1"), folder)
    assert time.monotonic() - start < 5
    assert os.path.lexists(folder / name) or told == "not there"


def test_pipe_that_takes_the_place_of_a_file_is_not_waited_for(folder, monkeypatch):
    """Between the look and the opening."""
    monkeypatch.setattr(model_dir, "kind_of", lambda path: None)
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
    monkeypatch.setattr(model_files.os.path, "realpath", lambda path: os.path.abspath(path))
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
        found = stat(handle)
        with (folder / "config.json").open("ab") as file:
            file.write(b" ")
        return found

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

    monkeypatch.setattr(model_dir.hashlib, "sha256", then_swap)
    found = hubless.load(folder)
    assert found.movers_[0].W_.tobytes() == truth.movers_[0].W_.tobytes()


def test_damaged_model_is_not_taken_for_one_to_replace(folder):
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/etc/passwd")
    with pytest.raises(FileExistsError, match="stays as it is"):
        hubless.save(hubless.load(Path(__file__).parent / "data" / "model-v1"), folder)


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
    """Told by the interpreter itself, which has every such event audited."""
    hubless.load(folders / name)  # what is imported on first use is
    audit.clear()
    WATCHED.append(True)
    try:
        hubless.load(folders / name)
    finally:
        WATCHED.clear()
    assert audit == [("open", "config.json"), ("open", "model.safetensors")]
