"""Valid files of every kind that hubless reads, from which fuzzing makes invalid ones.

They are written by the libraries that own the formats, not by hubless, except for its own: models, marks,
notes of a switch.
"""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

Case = dict[str, bytes]  # the files of a folder by name; the first is the one that is read
ROWS, WIDTH = 12, 4
MARK = {
    "hubless": 1,
    "model": "ab12" * 16,
    "source": "v.npy",
    "state": "s",
    "done": True,
    "original": "v.original.npy",
    "changed": False,
}


def vectors(dtype: str = "float32") -> np.ndarray:
    """Return a small matrix."""
    return np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(dtype)


def _saved(save: Any, *args: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    save(file, *args, **named)
    return file.getvalue()


def npy(name: str = "v.npy") -> list[Case]:
    """Matrices of several types and orders, and a version 2 header."""
    arrays = [vectors(), vectors("float64"), vectors("float16"), np.asfortranarray(vectors())]
    cases = [{name: _saved(np.save, array)} for array in arrays]
    return [*cases, {name: _saved(np.lib.format.write_array, vectors(), version=(2, 0))}]


def labels_npy() -> list[Case]:
    """Labels as numbers and as texts."""
    return [
        {"t.npy": _saved(np.save, np.arange(ROWS) % 3)},
        {"t.npy": _saved(np.save, np.array(["a", "grün"]))},
    ]


def npz() -> list[Case]:
    """Archives with columns beside the matrix."""
    arrays: dict[str, Any] = {"vectors": vectors(), "id": np.arange(ROWS), "title": np.array(["a"] * ROWS)}
    return [{"v.npz": _saved(save, **arrays)} for save in (np.savez, np.savez_compressed)]


def checkpoint() -> list[Case]:
    """What learning in parts keeps."""
    return [{"c.npz": _saved(np.savez, A=np.eye(3), counts=np.arange(3), names=np.array(["a", "b"]))}]


def _tables() -> list[Any]:
    import pyarrow as pa

    texts, ids = [f"title {i % 5}" for i in range(ROWS)], list(range(ROWS))
    kinds = [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32()), pa.large_list(pa.float64())]
    columns = [pa.array([*vectors().tolist()], kind) for kind in kinds]
    columns.append(pa.array([*vectors().tolist()[:-1], None], kinds[1]))
    coded = pa.array(texts).dictionary_encode()
    made = [pa.table({"id": ids, "title": texts, "code": coded, "vector": column}) for column in columns]
    return [made[0].replace_schema_metadata({"hubless": json.dumps(MARK)}), *made[1:]]


def parquet(name: str = "v.parquet") -> list[Case]:
    """Parquet with several encodings, compressed and not."""
    from pyarrow import parquet

    options: list[dict[str, Any]] = [
        {"compression": "none", "use_dictionary": False},
        {"compression": "none", "row_group_size": 5},
        {"compression": "snappy", "data_page_version": "2.0"},
        {"compression": "zstd", "write_statistics": False, "version": "1.0"},
    ]
    made = []
    for table, how in zip(_tables(), options, strict=True):
        file = io.BytesIO()
        parquet.write_table(table, file, **how)
        made.append({name: file.getvalue()})
    return made


def arrow(name: str = "v.arrow", *, is_stream: bool = False) -> list[Case]:
    """Arrow files or streams, of one batch and of several, compressed and not."""
    import pyarrow as pa

    made = []
    for table, compression in zip(_tables(), (None, None, "lz4", "zstd"), strict=True):
        file = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        open_writer = pa.ipc.new_stream if is_stream else pa.ipc.new_file
        plain = table.replace_schema_metadata(None) if is_stream else table
        with open_writer(file, plain.schema, options=options) as writer:
            writer.write_table(plain, max_chunksize=5)
        made.append({name: file.getvalue()})
    return made


def hdf5() -> list[Case]:
    """HDF5 as ann-benchmarks writes it: in one piece, or in chunks; of the old and the new version."""
    import h5py

    made = []
    for how, version in (({}, "earliest"), ({"chunks": (5, WIDTH), "compression": "gzip"}, "latest")):
        file = io.BytesIO()
        with h5py.File(file, "w", libver=version) as opened:
            opened.attrs["distance"], opened.attrs["hubless"] = "euclidean", json.dumps(MARK)
            opened.create_dataset("train", data=vectors(), **how)
            opened.create_dataset("neighbors", data=np.zeros((2, 3), np.int32))
        made.append({"v.hdf5": file.getvalue()})
    return made


def faiss() -> list[Case]:
    """FAISS indexes of every kind that hubless moves, and of one that it refuses."""
    import faiss

    made, X = [], vectors()
    for factory in (
        "Flat",
        "IDMap,Flat",
        "IDMap2,Flat",
        "HNSW4,Flat",
        "IVF2,Flat",
        "PCA2,Flat",
        "SQ8",
        "IVF2,SQ8",
    ):
        for metric in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT):
            index = faiss.index_factory(WIDTH, factory, metric)
            if hasattr(index, "cp"):
                index.cp.min_points_per_centroid = 1
            index.train(X)
            if factory.startswith("IDMap"):
                index.add_with_ids(X, np.arange(ROWS) * 7)
            else:
                index.add(X)
            made.append({"v.faiss": faiss.serialize_index(index).tobytes()})
    return made


def _written(name: str, save: Any) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        save(str(Path(folder, name)))
        return {name: Path(folder, name).read_bytes()}


def usearch() -> list[Case]:
    """usearch indexes of every kind that hubless moves, of one with removed rows, and of quantised ones."""
    from usearch.index import Index

    made, X = [], np.tile(vectors(), (4, 1)) + np.arange(4 * ROWS)[:, None] / 100
    kinds = [("l2sq", "f32"), ("cos", "f64"), ("ip", "f16"), ("cos", "bf16"), ("l2sq", "i8"), ("cos", "e5m2")]
    for metric, dtype in kinds:
        index = Index(ndim=WIDTH, metric=metric, dtype=dtype, connectivity=3)
        index.add(np.arange(len(X)) * (7 if dtype == "f16" else 1), X, threads=1)
        if dtype == "f64":
            index.remove(np.array([3, 4]))
        made.append(_written("v.usearch", index.save))
    return [*made, _written("v.usearch", Index(ndim=WIDTH, metric="ip", dtype="f32").save)]


def hnsw() -> list[Case]:
    """hnswlib indexes, of rows in any order and of deleted ones, of unit vectors, and an empty one."""
    import hnswlib

    made, X = [], np.tile(vectors(), (4, 1)) + np.arange(4 * ROWS)[:, None] / 100
    for space, step, is_empty in (("l2", 1, False), ("ip", 7, False), ("cosine", 1, False), ("l2", 1, True)):
        index = hnswlib.Index(space, WIDTH)
        index.init_index(2 * len(X), M=3, ef_construction=20)
        if not is_empty:
            index.add_items(X, np.arange(len(X)) * step, num_threads=1)
            index.mark_deleted(0)
        made.append(_written("v.hnsw", index.save_index))
    return made


def models() -> list[Case]:
    """Saved models: a chain of movers, a classifier, one that was chosen, and a repair with steps."""
    import hubless
    from hubless.movers import Chain, MoveLabeled, Shrink, Smooth, Steer
    from hubless.repair.repair import ItemSteps, Repair

    X, y = vectors("float64"), np.arange(ROWS) % 3
    steps = ItemSteps(np.array(["a", "b"], dtype=object), X[:2], 0.5)
    facts = {"data": {"source": "x", "fingerprint": "ab"}, "figures": [{"before": 0.5}]}
    made = [
        Chain([MoveLabeled(keep_moments=True), Smooth(2), Steer()]).fit(X, y),
        hubless.MoveLabeledClassifier(3).fit(X, np.array(["a", "b", "c"])[y]),
        hubless.MoveLabeledClassifierCV(range(1, 3), np.array([0.1, 1.0]), cv=2).fit(X, y),
        Repair(MoveLabeled().fit(X, y), metric="cosine", label="kind", facts=facts, steps=steps),
        Repair(Shrink(0.5).fit(X, y), label="kind", facts=facts),
    ]
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(made):
            hubless.save(model, Path(folder, str(number)))
            cases.append(
                {file.name: file.read_bytes() for file in sorted(Path(folder, str(number)).iterdir())}
            )
    return cases


def tables(suffix: str) -> list[Case]:
    """Tables of items as text."""
    rows = [{"id": i, "title": f"grün {i}", "price": None if i else 1.5, "tags": ["a"]} for i in range(4)]
    texts = {
        ".csv": ['id,title\r\n1,"a, ""b"""\r\n2,grün\r\n', "\ufeffid\n1\n2\n"],
        ".tsv": ["id\ttitle\n1\ta\n2\tb\n"],
        ".json": [json.dumps(rows), json.dumps({"id": [1, 2], "title": ["a", "b"]}), '["a", "b"]'],
        ".jsonl": ["\n".join(map(json.dumps, rows))],
        ".txt": ["a\nb\nc\n"],
    }
    return [{f"t{suffix}": text.encode()} for text in texts[suffix]]


def judgements() -> list[Case]:
    """Relevance judgements of BEIR and of TREC."""
    lines = [
        {"query-id": "q1", "corpus-id": "d1", "score": 1},
        {"query-id": "q2", "corpus-id": 7, "score": 2.5},
    ]
    texts = {
        "q.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
        "q.qrels": "q1 0 d1 1\nq2 0 d2 0.5\n",
        "q.csv": "query-id,corpus-id\nq1,d1\n",
        "q.jsonl": "\n".join(map(json.dumps, lines)),
    }
    return [{name: text.encode()} for name, text in texts.items()]


def marks() -> list[Case]:
    """A matrix with its marks beside it."""
    import hashlib

    content = npy()[0]["v.npy"]
    name = hashlib.sha256(str(len(content)).encode() + content).hexdigest()  # as `file_marks.fingerprint`
    marks = {name: json.dumps(MARK), "0" * 64: json.dumps({**MARK, "original": None})}
    beside = {"v.npy.hubless.json": json.dumps(marks).encode(), "v.original.npy": b"other"}
    return [{"v.npy": content, **beside}]


def journals() -> list[Case]:
    """Folders of files in the middle of a switch, and one that has nothing to do with it."""
    part = npy()[0]["v.npy"]
    folders = {f"{name}/part.npy": part for name in ("data", "data.original", "data.moved", "victim")}
    notes = [
        {"new": new, "kept": "data.original", "before": [1, 2], "after": [1, 3]}
        for new in ("data.moved", "victim")
    ]
    return [{**folders, ".data.hubless-switch": json.dumps(note).encode()} for note in notes]


def lines() -> list[Case]:
    """A stream of items as JSON lines."""
    rows = [
        {"id": i, "kind": i % 3, "vector": row, "text": "grün"} for i, row in enumerate(vectors().tolist())
    ]
    return [{"s.jsonl": "\n".join(map(json.dumps, rows)).encode()}]


def raw_results() -> list[Case]:
    """Raw results of the paper's experiments, as `hubless tables` reads them."""
    machine = {"machine_id": "m", "processor": "p", "cores": 2}
    cell = {"dataset": "iris", "title": "Iris", "kind": "UCI", "note": "", "method": "euclidean", "split": 0}
    cell |= {"dim": 4, "status": "failed", "error": "e", "rows": None}
    line = {**cell, "pass": "cells", "machine": "m", "date": "2026-01-01"}
    folded = "\n".join(map(json.dumps, (machine, line))).encode()
    return [{"results.jsonl": folded}, {"iris/dim-4/euclidean/split-0.json": json.dumps(cell).encode()}]


def edge() -> list[Case]:
    """The settings and the mark of a shard of Qdrant Edge, as JSON."""
    settings = {"vectors": {"": {"size": 4, "distance": "Cosine"}}, "hnsw_config": {"m": 16}}
    return [{"edge_config.json": json.dumps(settings).encode(), "hubless.json": json.dumps(MARK).encode()}]


SECRET = "hunter2canary"
SOURCES = (
    f"postgresql://me:{SECRET}@localhost:5432/shop#products",
    f"postgres://me:{SECRET}@h1:1,h2:2/shop?sslmode=require&sslpassword={SECRET}#app.items",
    f'postgresql://me:{SECRET}@[::1]/shop#"My Schema"."t"',
    f"qdrant:https://me:{SECRET}@host:6333#items",
    "qdrant:folder#items",
    "qdrant-edge:folder",
    "lancedb:folder#items",
    "lancedb:s3://bucket/folder#items@branch",
    "folder/v.npy",
    "v.faiss",
    "~/v.parquet",
)


def sources() -> list[Case]:
    """What users type."""
    return [{"source.txt": source.encode()} for source in SOURCES]
