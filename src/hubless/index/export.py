"""A fitted model for other programs: one matrix, one offset, and lengths of 1 where it asks for them.

Whatever is exported moves STORED vectors. A query that goes through it is asked at the wrong place. So the
forms have no part of a search in them: move what is to be added, then add it. Above all
`faiss.IndexPreTransform` is the wrong tool: it moves the queries too.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import safetensors.numpy
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..arrays import to_numpy
from ..movers import Chain, MoveLabeled, Mover, Scale, Stay, Unit
from ..stores.store import need
from .repair import Repair

REMAINS = "Use `hubless apply` for an index or `hubless move` for new items, which know all it asks for"
WARNING = "It moves STORED vectors. Queries stay as they are: never put one through it."
IDENTITY = "torch.nn.modules.linear.Identity"
OPSET, IR_VERSION = 13, 8  # of ONNX: read by everything since 2021
SHORT = 1e-12  # vectors shorter than this are not brought to length 1 by ONNX, as by torch


class Affine(NamedTuple):
    """z ↦ W z + b of each row, brought to length 1 before and after where it says so."""

    W: np.ndarray  # (d, d), float64
    b: np.ndarray  # (d,), float64
    normalise_before: bool
    normalise_after: bool

    @property
    def steps(self) -> list[str]:
        """What is done, in order."""
        return ["normalise"] * self.normalise_before + ["linear"] + ["normalise"] * self.normalise_after

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b in float32, which most forms hold."""
        with np.errstate(over="ignore"):
            W, b = (np.ascontiguousarray(array, dtype=np.float32) for array in (self.W, self.b))
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError('the map has numbers beyond float32; export it as "numpy", in float64.')
        return W, b


def affine(model: Repair | Mover) -> Affine:
    """The map of a model by algebra; ValueError where it is none of the vector alone."""
    repair = _as_repair(model)
    if repair.own is not None:
        raise ValueError(
            f"the model moves {len(repair.own.ids)} items by their id, toward queries of their own, and a "
            f"map of vectors alone knows no ids. {REMAINS}, or fit a model without such steps."
        )
    check_is_fitted(repair.mover, "exit_")
    steps, d = _leaves(repair.mover), repair.dimension
    before = after = repair.metric == "cosine"
    while steps and type(steps[-1]) is Unit:
        steps, after = steps[:-1], True
    while steps and type(steps[0]) is Unit:
        steps, before = steps[1:], True
    W, b = np.eye(d), np.zeros(d)
    for step in steps:  # V (W z + b) + c = VW z + (V b + c)
        V, c = _parts(step, d)
        W, b = V @ W, V @ b + c
    return Affine(W, b, before, after)


def export(model: Repair | Mover, form: str, path: str | os.PathLike[str]) -> list[Path]:
    """Write a model as a folder for another program; the files in it.

    Parameters
    ----------
    model : Repair or fitted Mover
        One whose map is affine: MoveLabeled, Scale, Stay, or a Chain of those, without steps by id; a chain
        may begin and end with Unit.
    form : "faiss", "numpy", "onnx" or "sentence-transformers"
        "faiss" has a `VectorTransform` per step, numbered .vt files, to `apply` to vectors that are added,
        never for an `IndexPreTransform`, which moves the queries too. "onnx" has model.onnx, from "vectors"
        to "moved". "sentence-transformers" has modules to append for documents. "numpy" has move.py.
    path : a folder that is not there yet; it is whole or not there. README.md in it tells how to use it.
    """
    if form not in FORMS:
        raise ValueError(f"there is no form {form!r}; allowed are {', '.join(sorted(FORMS))}.")
    repair = _as_repair(model)
    found = affine(repair)
    with _new_folder(Path(path).expanduser().absolute()) as part:
        use = FORMS[form](found, part)
        (part / "README.md").write_text(_card(repair, form, found.steps, use), encoding="utf-8")
        names = sorted(file.relative_to(part) for file in part.rglob("*") if file.is_file())
    return [Path(path).expanduser() / name for name in names]


def _as_repair(model: Repair | Mover) -> Repair:
    return model if isinstance(model, Repair) else Repair(model)


def _leaves(mover: Mover) -> list[Mover]:
    """A mover, or all movers of a chain, in order."""
    return [leaf for step in mover.movers_ for leaf in _leaves(step)] if type(mover) is Chain else [mover]


# μ + W (z − μ) = W z + (μ − W μ)
def _parts(mover: Mover, d: int) -> tuple[np.ndarray, np.ndarray]:
    """W and b of a mover."""
    kind = type(mover)
    if kind is Stay:
        return np.eye(d), np.zeros(d)
    if kind not in (Scale, MoveLabeled):  # a subclass may move otherwise
        _refuse(mover)
    W = float(mover.g) * np.eye(d) if kind is Scale else to_numpy(mover.W_).astype(np.float64)
    mean = to_numpy(mover.mean_).astype(np.float64)
    return W, mean - W @ mean


def _refuse(mover: Mover) -> None:
    why = "is not known to be an affine map"
    if type(mover) is Unit:
        why = "brings vectors to length 1 between other movers, which is not affine"
    elif mover._uses_labels:
        why = "moves an item by its class, which a map of the vector alone does not know"
    elif mover._lifts:
        why = "gives stored vectors one column more than they came with"
    raise ValueError(f"{type(mover).__name__} {why}, so it cannot be exported. {REMAINS}.")


def _write_faiss(found: Affine, folder: Path) -> str:
    faiss = need("faiss", "faiss")
    W, b = found.single()
    linear = faiss.LinearTransform(len(b), len(b), True)
    faiss.copy_array_to_vector(W.ravel(), linear.A)
    faiss.copy_array_to_vector(b, linear.b)
    linear.is_trained = True
    for number, name in enumerate(found.steps, start=1):
        step = linear if name == "linear" else faiss.NormalizationTransform(len(b))
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


def _write_onnx(found: Affine, folder: Path) -> str:
    onnx = need("onnx", "onnx")
    helper, node, row = onnx.helper, onnx.helper.make_node, ("n", len(found.b))
    names = ["vectors", *(f"step{number}" for number in range(1, len(found.steps))), "moved"]
    nodes = []
    for step, before, after in zip(found.steps, names[:-1], names[1:], strict=True):
        if step == "linear":
            nodes.append(node("Gemm", [before, "W", "b"], [after], transB=1))
        else:
            nodes.append(node("ReduceL2", [before], [f"{after}.length"], axes=[1], keepdims=1))
            nodes.append(node("Max", [f"{after}.length", "short"], [f"{after}.divisor"]))
            nodes.append(node("Div", [before, f"{after}.divisor"], [after]))
    held = dict(zip(("W", "b"), found.single(), strict=True))
    if "normalise" in found.steps:  # what is not used is warned of
        held["short"] = np.array(SHORT, dtype=np.float32)
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, row) for name in ("vectors", "moved")]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "hubless", ends[:1], ends[1:], tensors)
    told = {"ir_version": IR_VERSION, "producer_name": "hubless", "doc_string": WARNING}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], **told)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return """```python
import onnxruntime

session = onnxruntime.InferenceSession("path/to/this/folder/model.onnx")
(moved,) = session.run(["moved"], {"vectors": vectors})  # (n, d), float32
```
"""


def _write_modules(found: Affine, folder: Path) -> str:
    W, b = found.single()
    kinds = ["Dense" if step == "linear" else "Normalize" for step in found.steps]
    names = [f"{number}_{kind}" for number, kind in enumerate(kinds)]
    sizes = {"in_features": len(b), "out_features": len(b), "bias": True}
    for name, kind in zip(names, kinds, strict=True):
        (folder / name).mkdir()
        config = {**sizes, "activation_function": IDENTITY} if kind == "Dense" else {}
        (folder / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        if kind == "Dense":
            weights = safetensors.numpy.save({"linear.weight": W, "linear.bias": b})
            (folder / name / "model.safetensors").write_bytes(weights)
    listed = [  # by the names that all versions of the package know
        {"idx": number, "name": str(number), "path": name, "type": f"sentence_transformers.models.{kind}"}
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(listed, indent=1) + "\n")
    return """Two models share their weights: one for queries, as ever, and one for documents.

```python
from sentence_transformers import SentenceTransformer

queries = SentenceTransformer("the/model/you/have")
moves = SentenceTransformer("path/to/this/folder")
documents = SentenceTransformer(modules=[*queries, *moves], prompts=queries.prompts)

stored = documents.encode_document(texts)
asked = queries.encode_query(questions)  # as it was
```

The modules take what the last module of your model gives. If your vectors get their length 1 elsewhere, from
`encode(normalize_embeddings=True)`, say, put a Normalize between the two, and never ask `documents` for that.
"""


def _write_numpy(found: Affine, folder: Path) -> str:
    np.savez(folder / "weights.npz", **found._asdict())
    (folder / "move.py").write_text(STANDALONE, encoding="utf-8")
    return """`python move.py vectors.npy moved.npy`, where move.py and weights.npz are together; or, from
Python, `moved = move.move(vectors)`. It needs NumPy and nothing else.
"""


FORMS: dict[str, Callable[[Affine, Path], str]] = {
    "faiss": _write_faiss,
    "numpy": _write_numpy,
    "onnx": _write_onnx,
    "sentence-transformers": _write_modules,
}


def _card(repair: Repair, form: str, steps: list[str], use: str) -> str:
    """README.md: what it is, and how to use it."""
    return f"""# Moves vectors of {repair.dimension} columns, for an index by {repair.metric}

**{WARNING}** Move what you add to the index: what is in it was moved by
`hubless apply`, and nothing is moved twice.

{use}
Written by hubless {__version__} as "{form}", of the model {repair.hash}. Its steps: {", ".join(steps)}.
"""


STANDALONE = '''"""Moves stored vectors; queries stay as they are. It needs NumPy alone.

    python move.py vectors.npy moved.npy
"""

import os
import sys
from pathlib import Path

import numpy as np

with np.load(Path(__file__).with_name("weights.npz"), allow_pickle=False) as held:
    W, b, before, after = (held[name] for name in ("W", "b", "normalise_before", "normalise_after"))


def unit(X):
    """Rows of length 1; a zero stays one."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1.0)


def move(vectors):
    """Where vectors go, one a row; float64 if they are, else float32."""
    X = np.asarray(vectors)
    kind = np.float64 if X.dtype == np.float64 else np.float32
    X = X.astype(np.float64)
    X = (unit(X) if before else X) @ W.T + b
    return (unit(X) if after else X).astype(kind)


def main(source, target):
    """Move the rows of a file into a new one, which is whole or not there."""
    vectors = np.load(source, mmap_mode="r", allow_pickle=False)
    if vectors.ndim != 2 or vectors.shape[1] != len(b):
        raise SystemExit(f"{source} has the shape {vectors.shape}; expected (any, {len(b)}).")
    if os.path.exists(target):
        raise SystemExit(f"{target} is there already and stays as it is; give a new name.")
    part = f"{target}.{os.getpid()}.part"
    moved = np.lib.format.open_memmap(part, "w+", move(vectors[:1]).dtype, vectors.shape)
    for start in range(0, len(vectors), 8192):
        moved[start : start + 8192] = move(vectors[start : start + 8192])
    moved.flush()
    os.replace(part, target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python move.py vectors.npy moved.npy")
    main(*sys.argv[1:])
'''


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill that becomes `folder` at the end, whole, or is removed."""
    if os.path.lexists(folder):
        raise FileExistsError(f"{folder} is there already and stays as it is. Give the name of a new folder.")
    part = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}.part")
    part.mkdir(parents=True)
    try:
        yield part
        os.rename(part, folder)  # not onto a folder that somebody filled meanwhile
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
