"""A model as files for another program: each writer fills a folder, and returns how to use it."""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy

from ..support.imports import need
from .affine import WARNING, Affine

IDENTITY = "torch.nn.modules.linear.Identity"
OPSET, IR_VERSION = 13, 8  # of ONNX: read by everything since 2021
SHORT = 1e-12  # the least length to divide by, as in torch
STANDALONE = '''"""Moves stored vectors; queries stay as they are. It needs NumPy alone.

    python move.py vectors.npy moved.npy
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

with np.load(Path(__file__).with_name("weights.npz"), allow_pickle=False) as weights:
    W, b, before, after = (weights[name] for name in ("W", "b", "normalise_before", "normalise_after"))


def unit(X):
    """Return rows of length 1; a zero stays zero."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1.0)


def move(vectors):
    """Return moved vectors, one per row: float64 for float64, else float32."""
    X = np.asarray(vectors)
    dtype = np.float64 if X.dtype == np.float64 else np.float32
    X = X.astype(np.float64)
    X = (unit(X) if before else X) @ W.T + b
    return (unit(X) if after else X).astype(dtype)


def main(source, target):
    """Move the rows of a file into a new one, which is written whole or not at all."""
    vectors = np.load(source, mmap_mode="r", allow_pickle=False)
    if vectors.ndim != 2 or vectors.shape[1] != W.shape[1]:
        raise SystemExit(f"{source} has the shape {vectors.shape}; expected (any, {W.shape[1]}).")
    if os.path.lexists(target):
        raise SystemExit(f"{target} exists already and is not changed; give a new name.")
    with tempfile.TemporaryDirectory(dir=Path(target).absolute().parent, prefix=".move-") as folder:
        part = Path(folder, "moved.npy")  # in a folder that only this user can enter
        moved = np.lib.format.open_memmap(part, "w+", move(vectors[:1]).dtype, (len(vectors), len(b)))
        for start in range(0, len(vectors), 8192):
            moved[start : start + 8192] = move(vectors[start : start + 8192])
        moved.flush()
        os.replace(part, target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python move.py vectors.npy moved.npy")
    main(*sys.argv[1:])
'''


def write_faiss(affine_map: Affine, folder: Path) -> str:
    """Write a `VectorTransform` per step, to apply to the vectors that are added."""
    faiss = need("faiss", "faiss")
    W, b = affine_map.single()
    linear = faiss.LinearTransform(W.shape[1], W.shape[0], True)
    faiss.copy_array_to_vector(W.ravel(), linear.A)
    faiss.copy_array_to_vector(b, linear.b)
    linear.is_trained = True
    for number, name in enumerate(affine_map.steps, start=1):
        width = W.shape[1] if affine_map.normalise_before and number == 1 else W.shape[0]
        step = linear if name == "linear" else faiss.NormalizationTransform(width)
        faiss.write_VectorTransform(step, str(folder / f"{number}-{name}.vt"))
    return """Apply every file, in the order of their numbers, to what you ADD:

```python
from pathlib import Path
import faiss

for file in sorted(Path("path/to/this/folder").glob("*.vt")):
    vectors = faiss.read_VectorTransform(str(file)).apply(vectors)  # float32
index.add(vectors)
index.search(queries, 10)  # queries as they are
```

DO NOT put these into `faiss.IndexPreTransform`: it transforms the queries too, and the repair is lost.
"""


def write_numpy(affine_map: Affine, folder: Path) -> str:
    """Write a script that needs NumPy alone: move.py with weights.npz."""
    np.savez(folder / "weights.npz", **affine_map._asdict())
    (folder / "move.py").write_text(STANDALONE, encoding="utf-8")
    return """`python move.py vectors.npy moved.npy`, where move.py and weights.npz are together; or, from
Python, `moved = move.move(vectors)`. It needs NumPy and nothing else.
"""


def write_onnx(affine_map: Affine, folder: Path) -> str:
    """Write model.onnx, from "vectors" to "moved"."""
    onnx = need("onnx", "onnx")
    helper, node = onnx.helper, onnx.helper.make_node
    names = ["vectors", *(f"step{number}" for number in range(1, len(affine_map.steps))), "moved"]
    nodes = []
    for step, before, after in zip(affine_map.steps, names[:-1], names[1:], strict=True):
        if step == "linear":
            nodes.append(node("Gemm", [before, "W", "b"], [after], transB=1))
        else:
            nodes.append(node("ReduceL2", [before], [f"{after}.length"], axes=[1], keepdims=1))
            nodes.append(node("Max", [f"{after}.length", "short"], [f"{after}.divisor"]))
            nodes.append(node("Div", [before, f"{after}.divisor"], [after]))
    constants = dict(zip(("W", "b"), affine_map.single(), strict=True))
    if "normalise" in affine_map.steps:  # ONNX Runtime warns of unused constants
        constants["short"] = np.array(SHORT, dtype=np.float32)
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ("n", width))
        for name, width in zip(("vectors", "moved"), reversed(affine_map.W.shape), strict=True)
    ]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "hubless", ends[:1], ends[1:], tensors)
    about = {"ir_version": IR_VERSION, "producer_name": "hubless", "doc_string": WARNING}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], **about)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return """```python
import onnxruntime

session = onnxruntime.InferenceSession("path/to/this/folder/model.onnx")
(moved,) = session.run(["moved"], {"vectors": vectors})  # (n, d), float32
```
"""


def write_modules(affine_map: Affine, folder: Path) -> str:
    """Write modules of sentence-transformers to append to a model, for documents."""
    W, b = affine_map.single()
    kinds = ["Dense" if step == "linear" else "Normalize" for step in affine_map.steps]
    names = [f"{number}_{kind}" for number, kind in enumerate(kinds)]
    sizes = {"in_features": W.shape[1], "out_features": W.shape[0], "bias": True}
    for name, kind in zip(names, kinds, strict=True):
        (folder / name).mkdir()
        config = {**sizes, "activation_function": IDENTITY} if kind == "Dense" else {}
        (folder / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        if kind == "Dense":
            weights = safetensors.numpy.save({"linear.weight": W, "linear.bias": b})
            (folder / name / "model.safetensors").write_bytes(weights)
    listed = [  # by names that all versions of the package have
        {"idx": number, "name": str(number), "path": name, "type": f"sentence_transformers.models.{kind}"}
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(listed, indent=1) + "\n")
    return """Two models share their weights: one for queries, as before, and one for documents.

```python
from sentence_transformers import SentenceTransformer

queries = SentenceTransformer("the/model/you/have")
moves = SentenceTransformer("path/to/this/folder")
documents = SentenceTransformer(modules=[*queries, *moves], prompts=queries.prompts)

document_vectors = documents.encode_document(texts)
query_vectors = queries.encode_query(questions)  # as before
```

The modules take what the last module of your model gives. If your vectors are normalised elsewhere,
for example by `encode(normalize_embeddings=True)`, put a Normalize between the two, and never pass that
option to `documents`.
"""


WRITERS = {
    "faiss": write_faiss,
    "numpy": write_numpy,
    "onnx": write_onnx,
    "sentence-transformers": write_modules,
}
