"""Exported models: every form is used as its own README says, and moves as plain loops in float64 do."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import faiss
import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, StaticEmbedding
from sklearn.exceptions import NotFittedError
from tokenizers import Tokenizer, models, pre_tokenizers

from hubless.index import export as module
from hubless.index.export import FORMS, affine, export
from hubless.index.repair import Own, Repair
from hubless.movers import (
    Balance,
    Chain,
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

MODELS = {
    "l2": lambda X, y: Repair(MoveLabeled(1.0).fit(X, y)),
    "cosine": lambda X, y: Repair(MoveLabeled(1.0).fit(unit(X), y), metric="cosine"),
    "a mover": lambda X, y: MoveLabeled(1.0, center=False, toward="identity").fit(X, y),
    "scale": lambda X, y: Repair(Scale(0.4).fit(X, y)),
    "stay": lambda X, y: Repair(Stay().fit(X, y), metric="cosine"),
    "chain": lambda X, y: Repair(
        Chain([Scale(0.7), MoveLabeled(1.0), Chain([Stay(), MoveLabeled(30.0, 2)])]).fit(X, y)
    ),
    "unit at the end": lambda X, y: Chain([Scale(0.6), MoveLabeled(1.0), Chain([Unit()])]).fit(X, y),
    "unit at both ends": lambda X, y: Chain([Unit(), Unit(), MoveLabeled(0.1), Unit()]).fit(X, y),
    "unit alone": lambda X, y: Unit().fit(X, y),
    "chain, cosine": lambda X, y: Repair(
        Chain([MoveLabeled(0.1), Scale(0.5)]).fit(unit(X), y), metric="cosine"
    ),
}


def unit(X):
    return np.array([x / np.sqrt(sum(v * v for v in x)) if any(x) else x for x in X])


def movers_of(mover):
    return [step for one in mover.movers_ for step in movers_of(one)] if isinstance(mover, Chain) else [mover]


def naive(model, Z):
    """Where a model moves rows, one after another, in float64."""
    repair = model if isinstance(model, Repair) else Repair(model)
    moved = []
    for z in np.asarray(Z, dtype=np.float64):
        z = unit([z])[0] if repair.metric == "cosine" else z
        for mover in movers_of(repair.mover):
            if isinstance(mover, Scale):
                z = mover.mean_ + mover.g * (z - mover.mean_)
            elif isinstance(mover, Unit):
                z = unit([z])[0]
            elif isinstance(mover, MoveLabeled):
                z = mover.mean_ + np.array([sum(row * (z - mover.mean_)) for row in mover.W_])
        moved.append(unit([z])[0] if repair.metric == "cosine" else z)
    return np.array(moved)


def code_in(folder, **names):
    """Run the Python of a README, for the folder it is in; what it defined."""
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    for told, meant in {"path/to/this/folder": folder, **names.pop("replaced", {})}.items():
        code = code.replace(told, str(meant))
    exec(code, names)
    return names


def by_faiss(folder, Z):
    index = faiss.IndexFlatL2(Z.shape[1])
    names = code_in(folder, vectors=Z, index=index, queries=Z)
    np.testing.assert_array_equal(index.reconstruct_n(0, len(Z)), names["vectors"])
    return names["vectors"]


def by_onnx(folder, Z):
    onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
    return code_in(folder, vectors=Z)["moved"]


def by_modules(folder, Z):
    """A model whose texts are numbers of rows of Z, extended as the README says."""
    vocabulary = {"nothing": len(Z)} | {str(i): i for i in range(len(Z))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="nothing"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = np.concatenate([Z, np.zeros_like(Z[:1])])
    base = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")
    texts = [str(i) for i in range(len(Z))]
    with tempfile.TemporaryDirectory() as saved:
        base.save(saved, create_model_card=False)
        names = code_in(folder, texts=texts, questions=texts, replaced={"the/model/you/have": saved})
    np.testing.assert_array_equal(names["asked"], Z)
    return names["stored"]


def by_numpy(folder, Z, target="moved.npy"):
    np.save(folder.parent / "vectors.npy", Z)
    command = [
        sys.executable,
        "-I",
        folder / "move.py",
        folder.parent / "vectors.npy",
        folder.parent / target,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return np.load(folder.parent / target, allow_pickle=False)


USES = {"faiss": by_faiss, "onnx": by_onnx, "sentence-transformers": by_modules, "numpy": by_numpy}


@pytest.fixture
def later(blobs):
    """Vectors that nothing was learned from, one of them 0."""
    queries = blobs[2].astype(np.float32)
    queries[3] = 0
    return queries


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("name", MODELS)
def test_exported_model_moves_as_plain_loops_do(name, form, blobs, later, tmp_path):
    model = MODELS[name](*blobs[:2])
    files = export(model, form, tmp_path / "out")
    moved, truth = USES[form](tmp_path / "out", later), naive(model, later)
    assert moved.dtype == np.float32
    np.testing.assert_allclose(moved, truth, rtol=0, atol=2e-6 * max(1, np.abs(later).max()))
    start = unit(later) if "cosine" in name or name == "stay" else later
    assert (np.abs(truth - start).max() > 0.05) == (name != "stay")  # so the line above can fail
    assert sorted(files) == sorted(file for file in (tmp_path / "out").rglob("*") if file.is_file())


@pytest.mark.parametrize("name", MODELS)
def test_affine_map_is_exact(name, blobs, later):
    model = MODELS[name](*blobs[:2])
    W, b, before, after = affine(model)
    assert (W.dtype, b.dtype) == (np.float64, np.float64)
    moved = np.array([W @ z + b for z in (unit(later) if before else later).astype(np.float64)])
    np.testing.assert_allclose(unit(moved) if after else moved, naive(model, later), rtol=1e-6, atol=1e-12)
    assert before == ("cosine" in name or name in ("stay", "unit at both ends"))
    assert after == (before or "unit" in name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_affine_map_of_every_array_library(dtype, asarray, blobs, later):
    X, y, _ = blobs
    mover = Chain([MoveLabeled(1.0), Scale(0.5)]).fit(asarray(X.astype(dtype)), asarray(y))
    W, b, *_ = affine(mover)
    plain = Chain([MoveLabeled(1.0), Scale(0.5)]).fit(X, y)
    np.testing.assert_allclose(later @ W.T + b, naive(plain, later), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 700])
def test_onnx_takes_any_number_of_rows_and_is_of_an_old_version(n, blobs, tmp_path):
    X, y, _ = blobs
    model = MODELS["cosine"](X, y)
    export(model, "onnx", tmp_path / "out")
    written = onnx.load(tmp_path / "out" / "model.onnx")
    assert (written.opset_import[0].version, written.ir_version) == (13, 8)
    assert "Queries stay" in written.doc_string
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert [(end.name, end.shape, end.type) for end in (*session.get_inputs(), *session.get_outputs())] == [
        ("vectors", ["n", 6], "tensor(float)"),
        ("moved", ["n", 6], "tensor(float)"),
    ]
    Z = np.resize(X, (n, 6)).astype(np.float32)
    (moved,) = session.run(None, {"vectors": Z})
    assert moved.shape == (n, 6)
    np.testing.assert_allclose(moved, naive(model, Z).reshape(n, 6), rtol=0, atol=1e-6)


def test_module_is_what_sentence_transformers_would_have_saved(blobs, tmp_path):
    export(MODELS["cosine"](*blobs[:2]), "sentence-transformers", tmp_path / "out")
    own, theirs = tmp_path / "out" / "1_Dense", tmp_path / "theirs"
    theirs.mkdir()
    Dense.load(str(own)).save(str(theirs))
    read = [json.loads((folder / "config.json").read_text()) for folder in (own, theirs)]
    assert read[0].items() <= read[1].items()
    tensors = [safetensors.numpy.load_file(folder / "model.safetensors") for folder in (own, theirs)]
    assert tensors[0].keys() == tensors[1].keys() == {"linear.weight", "linear.bias"}
    for name, tensor in tensors[0].items():
        np.testing.assert_array_equal(tensor, tensors[1][name])
    names = [type(step).__name__ for step in SentenceTransformer(str(tmp_path / "out"), device="cpu")]
    assert names == ["Normalize", "Dense", "Normalize"]


@pytest.mark.parametrize("n", [0, 1, 9000])
def test_numpy_alone_moves_files_of_any_size_in_their_precision(n, blobs, tmp_path):
    model = MODELS["chain"](*blobs[:2])
    export(model, "numpy", tmp_path / "out")
    Z = np.resize(blobs[0], (n, 6))
    moved = by_numpy(tmp_path / "out", Z)
    assert (moved.dtype, moved.shape) == (np.float64, (n, 6))
    np.testing.assert_allclose(moved[-60:], naive(model, Z[-60:]).reshape(-1, 6), rtol=1e-12)
    assert by_numpy(tmp_path / "out", Z.astype(np.float16), "half.npy").dtype == np.float32


def test_numpy_alone_refuses_what_it_cannot_do_and_harms_no_file(blobs, tmp_path):
    export(MODELS["l2"](*blobs[:2]), "numpy", tmp_path / "out")
    np.save(tmp_path / "five.npy", np.ones((2, 5)))
    np.save(tmp_path / "six.npy", np.ones((2, 6)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    kept = (tmp_path / "six.npy").read_bytes()
    for arguments, told in [
        (("five.npy", "new.npy"), r"shape \(2, 5\); expected \(any, 6\)"),
        (("six.npy", "six.npy"), "is there already"),
        (("objects.npy", "new.npy"), "Python objects|allow_pickle"),
        (("six.npy",), "usage"),
    ]:
        command = [sys.executable, "-I", tmp_path / "out" / "move.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode != 0
        assert re.search(told, done.stderr), done.stderr
    assert (tmp_path / "six.npy").read_bytes() == kept
    assert not (tmp_path / "new.npy").exists()


class Other(MoveLabeled):
    """One that may move otherwise."""


@pytest.mark.parametrize(
    ("mover", "told"),
    [
        (Shrink(), "Shrink moves an item by its class"),
        (LabelRidge(), "LabelRidge moves an item by its class"),
        (Chain([MoveLabeled(), Chain([Smooth(2)])]), "Smooth moves an item by its class"),
        (Chain([Balance(), Steer()]), "Balance gives stored vectors one column more"),
        (Chain([Whiten(), MoveLabeled()]), "Whiten gives stored vectors one column more"),
        (Chain([MoveLabeled(), Unit(), Scale()]), "Unit brings vectors to length 1 between other movers"),
        (KernelMove(n_landmarks=10), "KernelMove is not known to be an affine map"),
        (Regress(), "Regress is not known to be an affine map"),
        (Other(), "Other is not known to be an affine map"),
    ],
    ids=str,
)
def test_what_is_no_map_of_the_vector_alone_is_refused(mover, told, blobs, tmp_path):
    for form in FORMS:
        with pytest.raises(ValueError, match=rf"{told}.*`hubless apply`.*`hubless move`"):
            export(Repair(mover.fit(*blobs[:2]), label="class"), form, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_steps_by_id_and_movers_that_learned_nothing_are_refused(blobs):
    X, y, _ = blobs
    own = Own(np.array([3, 7]), X[:2], 0.5)
    with pytest.raises(ValueError, match=r"moves 2 items by their id.*`hubless apply`.*`hubless move`"):
        affine(Repair(MoveLabeled().fit(X, y), own=own))
    with pytest.raises(NotFittedError):
        affine(MoveLabeled())


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_what_is_there_stays(kind, blobs, tmp_path):
    path = tmp_path / "out"
    {"file": path.touch, "folder": path.mkdir, "dangling link": lambda: path.symlink_to("nowhere")}[kind]()
    with pytest.raises(FileExistsError, match="new folder"):
        export(MODELS["l2"](*blobs[:2]), "numpy", path)
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_that_fails_leaves_nothing(blobs, tmp_path, monkeypatch):
    def fails(found, folder):
        (folder / "half").touch()
        raise OSError("disk full")

    monkeypatch.setitem(module.FORMS, "numpy", fails)
    with pytest.raises(OSError, match="disk full"):
        export(MODELS["l2"](*blobs[:2]), "numpy", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_errors_tell_what_is_allowed(blobs, tmp_path, monkeypatch):
    X, y, _ = blobs
    with pytest.raises(ValueError, match="'tflite'; allowed are faiss, numpy, onnx, sentence-transformers"):
        export(MODELS["l2"](X, y), "tflite", tmp_path / "out")
    far = Scale(0.5).fit(1e60 * X, y)
    with pytest.raises(ValueError, match='beyond float32; export it as "numpy"'):
        export(far, "onnx", tmp_path / "out")
    for name in ("faiss", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=rf"hubless\[{name}\]"):
            export(MODELS["l2"](X, y), name, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_card_tells_the_model_and_warns(blobs, tmp_path):
    model = MODELS["cosine"](*blobs[:2])
    for form in FORMS:
        export(model, form, tmp_path / form)
        card = Path(tmp_path / form / "README.md").read_text()
        assert model.hash in card
        assert "never put one through it" in card
        assert "normalise, linear, normalise" in card
    assert "DO NOT put these into `faiss.IndexPreTransform`" in (tmp_path / "faiss" / "README.md").read_text()
