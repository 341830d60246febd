"""What verbs refuse: exit codes, and messages that say what was got and what to do."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubless
from hubless import cli
from hubless.movers import Whiten
from tests.cli.shops import N, write_csv

RUN = [sys.executable, "-m", "hubless"]


def test_missing_files_and_options_are_named(refused, shop, model, tmp_path):
    nothing = tmp_path / "nothing"
    labels = ["--labels", "category", "-o", tmp_path / "m"]
    assert "nothing.npy does not exist" in refused("doctor", f"{nothing}.npy")
    assert "nothing.faiss does not exist" in refused("status", f"{nothing}.faiss")
    assert "is not a known store" in refused("doctor", nothing)
    assert "nothing.csv does not exist" in refused("fit", shop.index, "--items", f"{nothing}.csv", *labels)
    assert "config.json" in refused("apply", nothing, *shop.source, "-o", "moved.faiss")
    assert "nothing.npy" in refused(
        "evaluate", model, *shop.source, "--labels", "category", "--queries", f"{nothing}.npy"
    )
    assert "nothing.tsv" in refused("fit", *shop.source, *shop.asking, "--pairs", f"{nothing}.tsv")
    assert "--queries" in refused("fit", *shop.source, "--pairs", shop.items)
    assert "queries" in refused("preview", model, *shop.source)
    assert "after a #" in refused("doctor", "lancedb:somewhere")
    assert "there are 60 queries" in refused("preview", model, *shop.source, *shop.asking, "--rows", 60)


def test_unknown_columns_are_named_with_those_that_exist(refused, shop, model, tmp_path):
    out = ["-o", tmp_path / "m"]
    said = refused("fit", *shop.source, "--labels", "colour", *out)
    assert "no column 'colour'" in said
    assert "category" in said
    assert "no column 'colour'" in refused("doctor", *shop.source, "--text", "colour")
    assert "no column 'colour'" in refused(
        "fit", *shop.source, "--id", "colour", "--labels", "category", *out
    )
    assert "unique ids" in refused("fit", *shop.source, "--id", "category", "--labels", "category", *out)
    asking = [*shop.asking, "--labels", "category", "--query-labels", "colour"]
    assert "no column 'colour'" in refused("evaluate", model, *shop.source, *asking)
    assert "query-id" in refused("fit", *shop.source, *shop.asking, "--pairs", shop.items, *out)
    short = write_csv(tmp_path / "short.csv", id=shop.ids[:-1], category=shop.y[:-1])
    said = refused("fit", shop.index, "--items", short, "--labels", "category", *out)
    assert f"{N - 1} rows, {shop.index} has {N}." in said
    one = write_csv(tmp_path / "one.csv", category=["a"] * N)
    assert "two or more" in refused("fit", shop.index, "--items", one, "--labels", "category", *out)
    pq.write_table(pa.table({"a": [[1.0]], "b": [[2.0]]}), tmp_path / "two.parquet")
    assert "--vector" in refused("doctor", tmp_path / "two.parquet")
    assert "no column 'c' of vectors" in refused("doctor", tmp_path / "two.parquet", "--vector", "c")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet", "v.arrow", "v.faiss", "v.hdf5"])
def test_files_of_another_kind_are_named(refused, tmp_path, name):
    (tmp_path / name).write_bytes(b"these are no vectors" * 100)
    assert name in refused("doctor", tmp_path / name)


def test_a_model_for_something_else_is_refused(refused, shop):
    hubless.save(hubless.MoveLabeledClassifier().fit(shop.X, shop.y), shop.folder / "classifier")
    hubless.save(Whiten().fit(shop.X, shop.y), shop.folder / "lifts")
    for name in ("classifier", "lifts"):
        assert "`hubless fit`" in refused("apply", shop.folder / name, *shop.source, "-o", "moved.faiss")


EXTRAS = {
    "faiss": (["doctor", "v.faiss"], "faiss"),
    "pyarrow": (["doctor", "v.parquet"], "files"),
    "h5py": (["doctor", "v.hdf5"], "files"),
    "lancedb": (["doctor", "lancedb:.#items"], "lancedb"),
    "psycopg": (["doctor", "postgresql://me@localhost/shop#items"], "pgvector"),
    "qdrant_client": (["doctor", "qdrant:.#items"], "qdrant"),
    "chromadb": (["doctor", "chroma:.#items"], "chroma"),
    "sqlite_vec": (["doctor", "sqlite:v.faiss#items"], "sqlite-vec"),
    "duckdb": (["doctor", "duckdb:v.faiss#items"], "duckdb"),
    "onnx": (["export", "model", "onnx", "-o", "out"], "onnx"),
}


@pytest.mark.parametrize("package", EXTRAS)
def test_missing_packages_are_named(refused, shop, model, monkeypatch, package):
    arguments, extra = EXTRAS[package]
    for name in ("v.faiss", "v.parquet", "v.hdf5", "meta.json", "chroma.sqlite3"):
        (shop.folder / name).touch()
    (shop.folder / "model").symlink_to(model)
    monkeypatch.chdir(shop.folder)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    assert f"pip install 'hubless[{extra}]'" in refused(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["fit", "v.npy"],
        ["fit", "v.npy", "--labels", "a", "--pairs", "b"],
        ["fit", "v.npy", "--labels", "a", "--metric", "hamming"],
        ["preview", "model", "v.npy", "-k", "0"],
        ["apply", "model", "v.npy"],
        ["export", "model", "pickle", "-o", "x"],
    ],
    ids=" ".join,
)
def test_usage_errors_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: hubless" in capsys.readouterr().err


def test_exit_codes_of_the_program(tmp_path):
    codes = [
        subprocess.run([*RUN, *map(str, arguments)], capture_output=True).returncode
        for arguments in (["--version"], ["status", tmp_path / "no.npy"], ["status"])
    ]
    assert codes == [0, 1, 2]


def test_a_model_that_cannot_be_written_is_refused_before_anything_is_learned(refused, shop, monkeypatch):
    monkeypatch.setattr("hubless.repair.learn_index.fit_index", None)
    (shop.folder / "notes.txt").write_text("mine")
    for out in ("notes.txt", "notes.txt/model", "notes.txt/new/model"):
        fitting = ("fit", *shop.source, "--labels", "category", "-o", shop.folder / out)
        assert "notes.txt is a file" in refused(*fitting)
    assert (shop.folder / "notes.txt").read_text() == "mine"
