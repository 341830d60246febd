"""Exported models: every form is used as its own README says, and moves as plain loops in float64 do."""

import json
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import faiss
import numpy as np
import pytest
import safetensors.numpy
from sklearn.exceptions import NotFittedError

import hubless
from hubless.integrations import FORMS, forms
from hubless.integrations.affine import affine
from hubless.integrations.export import export
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
from hubless.repair.repair import ItemSteps, Repair

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
    "to fewer columns": lambda X, y: Repair(MoveLabeled(1.0).fit_pairs(X[:, :2] + 1, X)),
    "to more columns, cosine": lambda X, y: Repair(
        MoveLabeled(1.0).fit_pairs(unit(np.c_[X, X**2]), unit(X)), metric="cosine"
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
                goal = getattr(mover, "query_mean_", mover.mean_)
                z = goal + np.array([sum(row * (z - mover.mean_)) for row in mover.W_])
        moved.append(unit([z])[0] if repair.metric == "cosine" else z)
    return np.array(moved)


def code_in(folder, **names):
    """Run the Python of a README, for the folder it is in; what it defined."""
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    for text, meant in {"path/to/this/folder": folder, **names.pop("replaced", {})}.items():
        code = code.replace(text, str(meant))
    exec(code, names)
    return names


def by_faiss(folder, Z):
    width = faiss.read_VectorTransform(str(max(folder.glob("*.vt")))).d_out
    index = faiss.IndexFlatL2(width)
    names = code_in(folder, vectors=Z, index=index, queries=np.zeros((1, width), np.float32))
    np.testing.assert_array_equal(index.reconstruct_n(0, len(Z)), names["vectors"])
    return names["vectors"]


def by_onnx(folder, Z):
    import onnx

    onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
    return code_in(folder, vectors=Z)["moved"]


def by_modules(folder, Z):
    """A model whose texts are numbers of rows of Z, extended as the README says."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"nothing": len(Z)} | {str(i): i for i in range(len(Z))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="nothing"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = np.concatenate([Z, np.zeros_like(Z[:1])])
    base = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")
    texts = [str(i) for i in range(len(Z))]
    with tempfile.TemporaryDirectory() as saved:
        base.save(saved, create_model_card=False)
        names = code_in(folder, texts=texts, questions=texts, replaced={"the/model/you/have": saved})
    np.testing.assert_array_equal(names["query_vectors"], Z)
    return names["document_vectors"]


def by_numpy(folder, Z, target="moved.npy"):
    """As the script does; that it runs alone, a process shows below."""
    np.save(folder.parent / "vectors.npy", Z)
    script = runpy.run_path(str(folder / "move.py"))
    script["main"](folder.parent / "vectors.npy", folder.parent / target)
    return np.load(folder.parent / target, allow_pickle=False)


USES = {"faiss": by_faiss, "onnx": by_onnx, "sentence-transformers": by_modules, "numpy": by_numpy}
MARKS = {"onnx": [pytest.mark.services], "sentence-transformers": [pytest.mark.services, pytest.mark.torch]}
USED = [pytest.param(form, marks=MARKS.get(form, [])) for form in FORMS]
WRITTEN = [pytest.param(form, marks=MARKS["onnx"] if form == "onnx" else []) for form in FORMS]


@pytest.fixture
def later(blobs):
    """Vectors that nothing was learned from, one of them 0."""
    queries = blobs[2].astype(np.float32)
    queries[3] = 0
    return queries


@pytest.mark.parametrize("form", USED)
@pytest.mark.parametrize("name", MODELS)
def test_exported_model_moves_as_plain_loops_do(name, form, blobs, later, tmp_path):
    model = MODELS[name](*blobs[:2])
    files = export(model, form, tmp_path / "out")
    moved, truth = USES[form](tmp_path / "out", later), naive(model, later)
    assert moved.dtype == np.float32
    np.testing.assert_allclose(moved, truth, rtol=0, atol=2e-6 * max(1, np.abs(later).max()))
    start = unit(later) if "cosine" in name or name == "stay" else later
    has_moved = truth.shape != start.shape or np.abs(truth - start).max() > 0.05
    assert has_moved == (name != "stay")  # so the line above can fail
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


@pytest.mark.services
@pytest.mark.parametrize("n", [0, 1, 700])
def test_onnx_takes_any_number_of_rows_and_is_of_an_old_version(n, blobs, tmp_path):
    import onnx
    import onnxruntime

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


@pytest.mark.services
@pytest.mark.torch
def test_module_is_what_sentence_transformers_would_have_saved(blobs, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

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


def test_the_script_runs_alone_and_harms_no_file(blobs, tmp_path):
    model = MODELS["l2"](*blobs[:2])
    export(model, "numpy", tmp_path / "out")
    np.save(tmp_path / "five.npy", np.ones((2, 5)))
    np.save(tmp_path / "six.npy", np.ones((2, 6)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    kept = (tmp_path / "six.npy").read_bytes()
    for arguments, message in [
        (("five.npy", "new.npy"), r"shape \(2, 5\); expected \(any, 6\)"),
        (("six.npy", "six.npy"), "exists already"),
        (("objects.npy", "new.npy"), "Python objects|allow_pickle"),
        (("six.npy",), "usage"),
        (("six.npy", "moved.npy"), None),
    ]:
        command = [sys.executable, "-I", tmp_path / "out" / "move.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode == 0) == (message is None), done.stderr
        assert re.search(message or "^$", done.stderr), done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "moved.npy"), naive(model, np.ones((2, 6))), rtol=1e-12)
    assert (tmp_path / "six.npy").read_bytes() == kept
    assert not (tmp_path / "new.npy").exists()


class Other(MoveLabeled):
    """One that may move differently."""


@pytest.mark.parametrize(
    ("mover", "message"),
    [
        (Shrink(), "Shrink moves an item by its class"),
        (LabelRidge(), "LabelRidge moves an item by its class"),
        (Chain([MoveLabeled(), Chain([Smooth(2)])]), "Smooth moves an item by its class"),
        (Chain([MoveLabeled(), Unit(), Scale()]), "Unit brings vectors to length 1 between other movers"),
        (KernelMove(n_landmarks=10), "KernelMove is not known to be an affine map"),
        (Regress(), "Regress is not known to be an affine map"),
        (Other(), "Other is not known to be an affine map"),
    ],
    ids=str,
)
def test_movers_that_need_more_than_the_vector_are_refused(mover, message, blobs, tmp_path):
    for form in FORMS:
        with pytest.raises(ValueError, match=rf"{message}.*`hubless apply`.*`hubless move`"):
            export(Repair(mover.fit(*blobs[:2]), label="class"), form, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mover", [Chain([Balance(), Steer()]), Chain([Whiten(), MoveLabeled()])], ids=str)
def test_what_adds_a_column_is_refused(mover, blobs, tmp_path):
    message = rf"{type(mover.movers[0]).__name__}\(\).* adds a column to stored vectors.*`hubless fit`"
    with pytest.raises(ValueError, match=message):
        export(mover.fit(*blobs[:2]), "numpy", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_steps_by_id_and_unfitted_movers_are_refused(blobs):
    X, y, _ = blobs
    steps = ItemSteps(np.array([3, 7]), X[:2], 0.5)
    with pytest.raises(ValueError, match=r"moves 2 items by their id.*`hubless apply`.*`hubless move`"):
        affine(Repair(MoveLabeled().fit(X, y), steps=steps))
    with pytest.raises(NotFittedError):
        affine(MoveLabeled())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.touch, "exists already.*new folder"),
        (Path.mkdir, "exists already.*new folder"),
        (lambda path: path.symlink_to("nowhere"), "is a link to nowhere.*another name"),
    ],
    ids=["file", "folder", "dangling link"],
)
def test_existing_paths_are_not_overwritten(make, words, blobs, tmp_path):
    path = tmp_path / "out"
    make(path)
    with pytest.raises(OSError, match=words):
        export(MODELS["l2"](*blobs[:2]), "numpy", path)
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_that_fails_leaves_nothing(blobs, tmp_path, monkeypatch):
    def fails(found, folder):
        (folder / "half").touch()
        raise OSError("disk full")

    monkeypatch.setitem(forms.WRITERS, "numpy", fails)
    with pytest.raises(OSError, match="disk full"):
        export(MODELS["l2"](*blobs[:2]), "numpy", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_errors_say_what_is_allowed(blobs, tmp_path, monkeypatch):
    X, y, _ = blobs
    with pytest.raises(ValueError, match="one of faiss, numpy, onnx, sentence-transformers; got 'tflite'"):
        export(MODELS["l2"](X, y), "tflite", tmp_path / "out")
    for name in ("faiss", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=rf"hubless\[{name}\]"):
            export(MODELS["l2"](X, y), name, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", [form for form in WRITTEN if form.values != ("numpy",)])
def test_numbers_beyond_float32_are_refused(form, blobs, tmp_path):
    X, y, _ = blobs
    far = Scale(0.5).fit(1e60 * X, y)
    with pytest.raises(ValueError, match='beyond float32; export it as "numpy"'):
        export(far, form, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", WRITTEN)
def test_card_names_the_model_and_warns(form, blobs, tmp_path):
    model = MODELS["cosine"](*blobs[:2])
    export(model, form, tmp_path / form)
    card = Path(tmp_path / form / "README.md").read_text()
    assert model.hash in card
    assert "never put one through it" in card
    assert "normalise, linear, normalise" in card
    assert ("DO NOT put these into `faiss.IndexPreTransform`" in card) == (form == "faiss")


def test_a_saved_model_is_exported_by_its_folder(blobs, tmp_path):
    model = MODELS["l2"](*blobs[:2])
    hubless.save(model, tmp_path / "model")
    export(tmp_path / "model", "numpy", tmp_path / "out")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "weights.npz")["W"], affine(model).W)
