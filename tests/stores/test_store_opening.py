"""How a store is found by what a user types, and what is imported for that."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from hubless.stores.kinds import BUILT_IN
from hubless.stores.opening import class_of, open_store
from hubless.stores.store import Store, StoreError

ENGINES = [
    "pyarrow",
    "faiss",
    "h5py",
    "lancedb",
    "psycopg",
    "chromadb",
    "duckdb",
    "sqlite_vec",
    "qdrant_client",
    "qdrant_edge",
    "dask",
    "sklearn",
    "torch",
]
CHECK = """
import json, sys
from hubless.stores.opening import open_store

def loaded():
    start = "hubless.stores."
    stores = sorted(name.removeprefix(start) for name in sys.modules if name.startswith(start))
    return stores, sorted(set(sys.modules) & set(sys.argv[2:]))

before = loaded()
store = open_store(sys.argv[1])
assert store.fetch([1]).vectors.tolist() == [[0, 1, 0]]
print(json.dumps([before, loaded()]))
"""


def test_stores_and_engines_are_imported_when_used(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(3, dtype=np.float32))
    command = [sys.executable, "-c", CHECK, str(tmp_path / "v.npy"), *ENGINES]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    (stores, engines), (stores_after, engines_after) = json.loads(ran.stdout)
    paths = ["file_marks", "journal", "kept_copies"]
    assert stores == sorted(["checks", "kinds", "mark", "opening", "store", *paths])
    assert engines == engines_after == []
    assert "files.plain_files" in stores_after
    assert not any(
        name.startswith(("chroma", "duckdb", "lancedb", "postgres", "qdrant", "faiss", "sql"))
        for name in stores_after
    )


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_kind_is_a_store(kind):
    assert issubclass(class_of(kind), Store)


def test_what_is_typed_leads_to_its_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "lancedb").mkdir()
    kinds = {
        "v.NPY": "NpyFile",
        "a:b.npz": "NpzFile",
        "v.feather": "ArrowFile",
        "v.h5": "Hdf5File",
        "v.index": "FaissIndex",
        "folder.parquet": "Parts",
        "lancedb": "Parts",
        "lancedb:shop#products": "LanceTable",
        "qdrant-edge:shard": "QdrantEdge",
        "chroma:folder#items": "ChromaCollection",
        "sqlite:shop.db#items": "VecTable",
        "duckdb:shop.duckdb#items": "DuckTable",
    }
    assert {text: type(open_store(text)).__name__ for text in kinds} == kinds


def test_options_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(StoreError, match="metric must be one of l2, cosine, ip; got 'dot'"):
        open_store(tmp_path / "v.npy", metric="dot")
    for source in (
        "lancedb:a#b",
        "postgresql://me:secret@host/db#items",
        "qdrant:a#b",
        "qdrant-edge:a",
        "chroma:a#b",
        "sqlite:a#b",
        "duckdb:a#b",
    ):
        with pytest.raises(StoreError, match="leave out --items") as caught:
            open_store(source, items="items.csv")
        assert "secret" not in str(caught.value)
    with pytest.raises(StoreError, match="after a #: postgresql:ADDRESS#NAME") as caught:
        open_store("postgresql://me:secret@host/db")
    assert "secret" not in str(caught.value)
    for source in ("qdrant:a#b", "qdrant-edge:a"):
        with pytest.raises(StoreError, match="leave out --id"):
            open_store(source, id="key")


@pytest.mark.parametrize(
    ("source", "moved"),
    [
        ("index.faiss", "index-moved.faiss"),
        ("data/v.npy", "v-moved.npy"),
        ("a#b.npy", "a#b-moved.npy"),
        ("lancedb:shop#items", "items_moved"),
        ("qdrant:folder#items", "items_moved"),
        ("chroma:folder#items", "items_moved"),
        ("sqlite:shop.db#items", "items_moved"),
        ("duckdb:shop.duckdb#items", "items_moved"),
        ("qdrant-edge:some/shard", "shard-moved"),
    ],
)
def test_the_moved_copy_has_a_name_beside_the_original(source, moved):
    store = open_store(source)
    assert store.moved_name == moved
    last = re.split("[/#]", store.name)[-1] if "a#b" not in source else source
    assert store.sibling(moved).name == store.name.removesuffix(last) + moved


@pytest.mark.parametrize(
    "source",
    [
        "lancedb:s3://KEY:secret@bucket/folder#items",
        "lancedb:az://bucket/folder?sig=secret#items",
        "qdrant:https://me:secret@host#items",
        "chroma:http://me:secret@host:8000#items",
        "sqlite:http://me:secret@host#items",
        "duckdb:md://me:secret@host#items",
        "qdrant:https://host?api_key=secret#items",
        "postgresql+psycopg://me:secret@host/db#items",
        "host=h password=secret#items",
        "qdrant-edge:http://me:secret@host",
        "qdrant-edge:me:secret@host",
        "http://me:secret@host/v.npy",
        "me:secret@host/v.npy",
    ],
)
def test_an_address_with_a_secret_is_refused_without_it(source):
    with pytest.raises(StoreError) as caught:
        open_store(source)
    assert "secret" not in str(caught.value)


def test_a_path_may_look_like_an_address_where_it_exists(tmp_path):
    path = tmp_path / "me:first@home.npy"
    np.save(path, np.ones((2, 3), np.float32))
    assert open_store(path).facts().count == 2
