"""Moved files are written as their originals were: the formats' own libraries read what the user chose."""

from decimal import Decimal
from zipfile import ZIP_BZIP2, ZipFile, ZipInfo

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from hubless.repair.apply import apply_index
from hubless.stores.files import arrow_format
from hubless.stores.opening import open_store
from hubless.testing.store_cases import model_for, sample
from tests.stores.file_cases import table_of

N = 1000


def move(path, name="moved", **options):
    """Move a file by a model, with whatever `open_store` takes; return the new path and the moved vectors."""
    _, X, y, _ = sample(N)
    model = model_for(X, y, "l2")
    apply_index(model, open_store(path, metric="l2", **options), name)
    return path.with_name(name + path.suffix), model.move(X)


def rich_table():
    """Return a table with columns of many types, metadata of the table and of fields, and pandas' index."""
    ids, X, _, texts = sample(N)
    frame = pd.DataFrame(
        {"kind": pd.Categorical(["a", "b"] * (N // 2)), "n": range(N)}, index=np.arange(N) * 3
    )
    table = pa.Table.from_pandas(frame, preserve_index=True)
    vectors = table_of(ids, X, texts)
    columns = {
        "id": vectors["id"],
        "embedding": vectors["embedding"],
        "text": pa.array(texts, pa.large_string()),
        "price": pa.array([Decimal(i) / 4 for i in range(N)], pa.decimal128(9, 2)),
        "when": pa.array(range(N), pa.timestamp("us", "Europe/Vienna")),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * N, pa.binary(16))),
        "flag": pa.array([None, True] * (N // 2)),
        "tags": pa.array([["x"], None] * (N // 2)),
        "nested": pa.array([{"a": 1, "b": "t"}] * N),
    }
    for name, values in columns.items():
        is_there = name not in ("flag", "tags")
        table = table.append_column(pa.field(name, values.type, not is_there, {"unit": "none"}), values)
    return table.replace_schema_metadata({**table.schema.metadata, b"owner": b"search team"})


def without_mark(schema):
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key != b"hubless"}
    return schema.with_metadata(metadata)


def layout(path):
    """Return what a Parquet file was written with, as far as its footer tells."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    of_chunk = [
        *("path_in_schema", "physical_type", "compression", "encodings", "has_dictionary_page"),
        *("is_stats_set", "has_offset_index", "has_column_index", "bloom_filter_length"),
    ]
    return {
        "rows": [group.num_rows for group in groups],
        "sorted": [group.sorting_columns for group in groups],
        "version": metadata.format_version,
        "keys": set(metadata.metadata or {}) - {b"hubless"},
        "schema": str(metadata.schema).partition("\n")[2],
        "chunks": [[getattr(chunk, name, None) for name in of_chunk] for chunk in chunks],
    }


SORTED = [pq.SortingColumn(1, descending=True)]
CHOICES = {
    "the defaults": {},
    "no compression": {"compression": "none"},
    "another compression": {"compression": "zstd", "compression_level": 9},
    "compression by column": {
        "compression": {"text": "gzip", "embedding.list.element": "lz4", "id": "brotli"}
    },
    "no dictionaries": {"use_dictionary": False},
    "some dictionaries": {"use_dictionary": ["text", "kind"]},
    "byte streams": {"use_dictionary": False, "use_byte_stream_split": ["embedding.list.element"]},
    "encodings": {
        "use_dictionary": ["kind"],
        "column_encoding": {"text": "DELTA_BYTE_ARRAY", "n": "DELTA_BINARY_PACKED"},
    },
    "no statistics": {"write_statistics": False},
    "some statistics": {"write_statistics": ["id", "n"]},
    "a page index": {"write_page_index": True},
    "sorted": {"sorting_columns": SORTED},
    "version 1": {"version": "1.0"},
    "pages of version 2": {"data_page_version": "2.0"},
    "old names of lists": {"use_compliant_nested_type": False},
    "no Arrow schema": {"store_schema": False},
    "decimals as integers": {"store_decimal_as_integer": True},
    "old timestamps": {"use_deprecated_int96_timestamps": True},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_parquet_is_written_as_it_was(tmp_path, choice):
    table = rich_table()
    path = tmp_path / "v.parquet"
    with pq.ParquetWriter(path, table.schema, **CHOICES[choice]) as writer:
        for start, rows in ((0, 300), (300, 1), (301, 699)):
            writer.write_table(table.slice(start, rows))
    moved, vectors = move(path)
    assert layout(moved) == layout(path)
    assert arrow_format._has_new_pages(moved, {"": pq.read_metadata(moved).row_group(0).column(3)}) == (
        choice == "pages of version 2"
    )
    was, now = pq.read_table(path), pq.read_table(moved)
    assert without_mark(now.schema).equals(without_mark(was.schema), check_metadata=True)
    assert now.drop_columns("embedding").equals(was.drop_columns("embedding"))
    np.testing.assert_allclose(np.array(now["embedding"].to_pylist()), vectors, rtol=1e-5)
    pd.testing.assert_frame_equal(  # pandas' index and categories
        pd.read_parquet(moved).drop(columns="embedding"), pd.read_parquet(path).drop(columns="embedding")
    )


@pytest.mark.skipif(not hasattr(pq.ColumnChunkMetaData, "bloom_filter_length"), reason="a newer pyarrow")
def test_bloom_filters_are_kept(tmp_path):
    path = tmp_path / "v.parquet"
    filters = {"text": {"ndv": 500, "fpp": 0.01}, "id": True}
    pq.write_table(rich_table(), path, bloom_filter_options=filters)
    moved, _ = move(path)
    assert layout(moved) == layout(path)


def test_large_row_groups_are_divided_and_none_are_joined(tmp_path, monkeypatch):
    table = table_of(*[sample(N)[i] for i in (0, 1, 3)])
    path = tmp_path / "v.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, rows in ((0, 100), (100, 850), (950, 50)):
            writer.write_table(table.slice(start, rows))
    monkeypatch.setattr(arrow_format, "HELD", 1 << 14)  # 512 vectors, but the texts count too
    moved, _ = move(path)
    rows = np.cumsum(layout(moved)["rows"]).tolist()
    assert {100, 950, 1000} <= {*rows}
    assert 5 <= len(rows) < 12
    assert pq.read_table(moved)["id"].equals(pq.read_table(path)["id"])


@pytest.mark.parametrize("suffix", ["arrow", "feather", "ipc"])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_arrow_files_are_written_as_they_were(tmp_path, codec, suffix):
    table = rich_table()
    path = tmp_path / f"v.{suffix}"
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        for start, rows in ((0, 300), (300, 1), (301, 699)):
            writer.write_table(table.slice(start, rows))
    moved, vectors = move(path)
    with pa.ipc.open_file(moved) as new:
        batches = [new.get_batch(i) for i in range(new.num_record_batches)]
        assert [batch.num_rows for batch in batches] == [300, 1, 699]
        assert without_mark(new.schema).equals(without_mark(table.schema), check_metadata=True)
        now = pa.Table.from_batches(batches)
    assert now.drop_columns("embedding").equals(table.drop_columns("embedding"))
    np.testing.assert_allclose(np.array(now["embedding"].to_pylist()), vectors, rtol=1e-5)
    assert codec_of(moved) == codec_of(path) == codec
    assert abs(moved.stat().st_size / path.stat().st_size - 1) < 0.1


def codec_of(path):
    """Find the compression by the magic number that starts each compressed buffer."""
    content = path.read_bytes()
    return {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}.get(
        next((magic for magic in (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd") if content.count(magic) > 3), b"")
    )


def test_feather_from_pandas_comes_back(tmp_path):
    path = tmp_path / "v.feather"
    feather.write_feather(rich_table(), path, compression="zstd", chunksize=400)
    moved, _ = move(path)
    was, now = feather.read_table(path), feather.read_table(moved)
    assert now.drop_columns("embedding").equals(was.drop_columns("embedding"))
    assert codec_of(moved) == "zstd"


def test_parts_keep_what_each_was_written_with(tmp_path):
    ids, X, _, texts = sample(N)
    (tmp_path / "parts").mkdir()
    table, codecs = table_of(ids, X, texts), ("zstd", "gzip", "snappy", "none")
    for i, codec in enumerate(codecs):
        name = tmp_path / "parts" / f"{i}.parquet"
        pq.write_table(table.slice(i * 250, 250), name, compression=codec, row_group_size=100)
    moved, _ = move(tmp_path / "parts")
    for i in range(4):
        assert layout(moved / f"{i}.parquet") == layout(tmp_path / "parts" / f"{i}.parquet")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_is_written_as_it_was(tmp_path, save):
    ids, X, _, texts = sample(N)
    path = tmp_path / "v.npz"
    save(path, text=np.array(texts), vectors=X, id=ids, settings=np.array(7))
    with ZipFile(path, "a") as archive:
        archive.writestr(ZipInfo("README.txt", (2001, 2, 3, 4, 5, 6)), "how it was made", ZIP_BZIP2)
    moved, vectors = move(path)
    members = [
        [
            (one.filename, one.compress_type, one.date_time, one.external_attr)
            for one in ZipFile(file).infolist()
        ]
        for file in (moved, path)
    ]
    assert members[0] == members[1]
    assert ZipFile(moved).testzip() is None
    assert ZipFile(moved).read("README.txt") == b"how it was made"
    with np.load(path) as was, np.load(moved) as now:
        for name in ("text", "id", "settings"):
            np.testing.assert_array_equal(now[name], was[name])
            assert now[name].dtype == was[name].dtype
        np.testing.assert_allclose(now["vectors"], vectors, rtol=1e-5)


def hdf5_file(path, X, **settings):
    """Write an HDF5 file in a chosen order, with attributes, a group, and links."""
    with h5py.File(path, "w", track_order=True) as file:
        file["zeros"], file["neighbors"] = np.zeros(3), np.zeros((2, 2), int)
        data = file.create_dataset("train", data=X, **settings)
        data.attrs["model"], data.attrs["none"] = "e5", h5py.Empty("f4")
        data.attrs.create("tags", ["a", "b"], dtype=h5py.string_dtype())
        data.attrs.create("small", 3, dtype="u1")
        data.attrs["scale"] = data.ref  # leads to a place of this file
        file.create_group("more/inner")["test"] = X[:5]
        file["again"], file["lost"] = h5py.SoftLink("/zeros"), h5py.SoftLink("/nowhere")
        file["elsewhere"] = h5py.ExternalLink("other.hdf5", "/train")
        file.attrs["distance"] = "euclidean"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"chunks": (100, 4)},
        {"compression": "gzip", "compression_opts": 7, "shuffle": True, "fletcher32": True},
        {"compression": "lzf", "maxshape": (None, 8), "fillvalue": 3.0},
        {"chunks": (64, 8), "maxshape": (2 * N, None), "dtype": ">f8"},
    ],
)
def test_hdf5_is_written_as_it_was(tmp_path, settings):
    path, (_, X, *_) = tmp_path / "v.hdf5", sample(N)
    hdf5_file(path, X, **settings)
    moved, vectors = move(path)
    kept = [
        "dtype",
        "shape",
        "chunks",
        "maxshape",
        "compression",
        "compression_opts",
        "shuffle",
        "fletcher32",
        "fillvalue",
    ]
    with h5py.File(path) as was, h5py.File(moved) as now:
        assert list(now) == [name for name in was if name != "neighbors"]
        for name in kept:
            assert getattr(now["train"], name) == getattr(was["train"], name), name
        assert {*now["train"].attrs} == {"model", "none", "tags", "small"}
        for name, value in now["train"].attrs.items():
            np.testing.assert_array_equal(value, was["train"].attrs[name])
        assert now["train"].attrs.get_id("small").dtype == np.uint8
        np.testing.assert_allclose(now["train"][:], vectors, rtol=1e-5)
        np.testing.assert_array_equal(now["more/inner/test"], X[:5])
        for name in ("again", "lost", "elsewhere"):
            assert repr(now.get(name, getlink=True)) == repr(was.get(name, getlink=True))
