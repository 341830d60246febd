"""Files that were made to harm: each is refused in words, without another file, a pickle or much memory."""

import csv
import json
import pickle
import struct
import warnings
import zipfile
from contextlib import suppress

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubless.repair.apply import apply_index
from hubless.repair.doctor import diagnose
from hubless.repair.index_items import read_items
from hubless.stores.files.file_rows import read_table
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample


def read(path, **options):
    """Read all rows of a store."""
    store = open_store(path, metric=None if path.suffix == ".hdf5" else "l2", **options)
    return list(store.batches())


# --- .npy and .npz -----------------------------------------------------------------------------------------


def npy(header, data=b"\0" * 64, version=(1, 0)):
    text = header.encode("latin1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


def head(descr="'<f4'", shape="(4, 4)", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


HEADERS = {
    "huge": npy(head(shape="(10000000000000, 8)")),
    "beyond 64 bits": npy(head(shape="(18446744073709551617, 4)")),
    "one row too many": npy(head(shape="(5, 4)")),
    "negative": npy(head(shape="(-1, 4)")),
    "negative twice": npy(head(shape="(-4, -4)")),
    "no numbers": npy(head(shape="(4, 'a')")),
    "bools": npy(head(shape="(True, 4)")),
    "objects": npy(head(descr="'|O'")) + pickle.dumps(1),
    "structured": npy(head(descr="[('a', '<f4')]", shape="(16,)")),
    "nested": npy(head(descr="[('a', '<f4', (4,))]", shape="(4,)")),
    "brackets": npy("(" * 5000),
    "many brackets": npy("[" * 60000),
    "code": npy("__import__('os').mkdir('made')"),
    "no dict": npy("3"),
    "long header": npy(head() + " " * (1 << 20), version=(2, 0)),
    "version": npy(head(), version=(9, 9)),
    "integers": npy(head(descr="'<i4'")),
    "texts": npy(head(descr="'<U1'", shape="(4, 4)")),
    "numbers of 0 bytes": npy(head(descr="'|V0'", shape="(4, 4)")),
    "one axis": npy(head(shape="(16,)")),
    "no axis": npy(head(shape="()")),
    "empty": b"",
    "start only": b"\x93NUMPY",
}


@pytest.mark.parametrize("kind", HEADERS)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_headers_of_numpy(tmp_path, kind, suffix):
    path = tmp_path / f"v{suffix}"
    path.write_bytes(HEADERS[kind])
    if suffix == ".npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vectors.npy", HEADERS[kind])
    with pytest.raises(StoreError):
        read(path)
    assert not (tmp_path / "made").exists()


def test_a_matrix_of_no_columns_is_refused_or_empty(tmp_path):
    path = tmp_path / "v.npy"
    path.write_bytes(npy(head(shape="(1000000000000, 0)"), b""))
    with pytest.raises(StoreError):
        diagnose(str(path))


def test_a_zip_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "v.npz"
    np.savez_compressed(path, vectors=np.zeros((10_000, 100), np.float32))
    assert len(read(path)) == 2
    monkeypatch.setattr("hubless.stores.files.plain_files.machine_memory", lambda: 3_999_999)
    with pytest.raises(StoreError, match=r"unpacked it has 0.0 GB, more than memory"):
        read(path)


def test_a_member_that_claims_a_wrong_size_is_refused(tmp_path):
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vectors.npy", npy(head(shape="(100000000, 4)"), bytes(1000)))
    claimed, actual = (struct.pack("<I", size) for size in (2**32 - 1, archive.infolist()[0].file_size))
    path.write_bytes(path.read_bytes().replace(actual, claimed))
    with pytest.raises(StoreError):
        read(path)


def test_two_members_of_one_name_are_refused(tmp_path):
    path = tmp_path / "v.npz"
    for second in ("vectors.npy", "vectors"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("vectors.npy", npy(head()))
                archive.writestr(second, npy(head()))
        with pytest.raises(StoreError, match="2 members of 1 names"):
            read(path)


def test_names_with_paths_stay_names(tmp_path):
    path = tmp_path / "in" / "v.npz"
    path.parent.mkdir()
    _, X, y, _ = sample(60)
    np.savez(path, **{"vectors": X, "../out": np.zeros(3), "/tmp/out": np.zeros(2)})
    apply_index(model_for(X, y, "l2"), open_store(path, metric="l2"), "moved")
    assert sorted(file.name for file in tmp_path.rglob("*.npz")) == ["moved.npz", "v.npz"]
    with np.load(path.with_name("moved.npz")) as moved:
        assert sorted(moved) == ["../out", "/tmp/out", "vectors"]


# --- HDF5 --------------------------------------------------------------------------------------------------


def elsewhere(folder):
    """Write vectors in a file that is not the user's to give."""
    with h5py.File(folder / "private.hdf5", "w") as file:
        file["train"] = np.full((4, 8), 7, "f4")
    (folder / "private.bin").write_bytes(np.full((4, 8), 7, "f4").tobytes())


def external_link(file, folder):
    file["train"] = h5py.ExternalLink(str(folder / "private.hdf5"), "/train")


def link_through_a_link(file, folder):
    file["out"] = h5py.ExternalLink(str(folder / "private.hdf5"), "/")
    file["train"] = h5py.SoftLink("/out/train")


def external_storage(file, folder):
    file.create_dataset("train", (4, 8), "f4", external=[(str(folder / "private.bin"), 0, 128)])


def virtual(file, folder):
    layout = h5py.VirtualLayout((4, 8), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "private.hdf5"), "train", (4, 8))
    file.create_virtual_dataset("train", layout)


def loop(file, folder):
    file["train"], file["other"] = h5py.SoftLink("/other"), h5py.SoftLink("/train")


def group(file, folder):
    file.create_group("train")["train"] = file["/"]


def never_written(file, folder):
    file.create_dataset("train", (10**13, 8), "f4")


def never_written_chunks(file, folder):
    file.create_dataset("train", (10**13, 8), "f4", chunks=(1 << 20, 8), compression="gzip")


def texts(file, folder):
    file["train"] = ["a", "b"]


def compound(file, folder):
    file["train"] = np.zeros((4, 8), [("a", "f4")])


def unknown_distance(file, folder):
    file["train"] = np.zeros((4, 8), "f4")
    file.attrs["distance"] = "\x1b[31m" * 3


FORGED = [
    *(external_link, link_through_a_link, external_storage, virtual, loop, group, never_written),
    *(never_written_chunks, texts, compound, unknown_distance),
]


@pytest.mark.parametrize("forge", FORGED)
def test_hdf5_that_is_not_a_matrix_of_its_own(tmp_path, forge):
    elsewhere(tmp_path)
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        forge(file, tmp_path)
    with pytest.raises(StoreError):
        read(tmp_path / "v.hdf5")


def test_what_links_lead_to_is_not_copied(tmp_path):
    elsewhere(tmp_path)
    path, (_, X, y, _) = tmp_path / "v.hdf5", sample(60)
    with h5py.File(path, "w") as file:
        file["train"] = X
        file.attrs["distance"] = "euclidean"
        file["secret"] = h5py.ExternalLink(str(tmp_path / "private.hdf5"), "/train")
        file.create_group("more")["secret"] = h5py.ExternalLink(str(tmp_path / "private.hdf5"), "/train")
        file.create_dataset("test", (4, 8), "f4", external=[(str(tmp_path / "private.bin"), 0, 128)])
    apply_index(model_for(X, y, "l2"), open_store(path), "moved")
    assert np.full(8, 7, "f4").tobytes() not in (tmp_path / "moved.hdf5").read_bytes()


def test_more_vectors_than_memory_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "v.hdf5"
    with h5py.File(path, "w") as file:  # a few kilobytes
        data = file.create_dataset("train", (10**12, 8), "f4", chunks=(1024, 8), compression="gzip")
        data[:10] = 1
    for read_all in (diagnose, lambda store: read_items(open_store(store))):
        with pytest.raises(StoreError, match="32,000 GB; this machine has"):
            read_all(str(path))


@pytest.mark.parametrize("length", [0, 3, 8, 100, 600, 2000])
def test_hdf5_that_was_cut(tmp_path, length):
    path = tmp_path / "v.hdf5"
    with h5py.File(path, "w") as file:
        file["train"] = np.zeros((100, 8), "f4")
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StoreError):
        read(path)


# --- Parquet and Arrow -------------------------------------------------------------------------------------


def test_parquet_and_arrow_with_changed_bytes_are_read_or_refused(tmp_path):
    """What is read may be wrong, as no checksum tells; but nothing else is raised, and nothing crashes."""
    ids, X, *_ = sample(60)
    table = pa.table({"id": ids, "v": pa.array(X.tolist(), pa.list_(pa.float32()))})
    rng = np.random.default_rng(0)
    for suffix in (".parquet", ".arrow"):
        path = tmp_path / f"v{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path)
        else:
            pa.feather.write_feather(table, path, compression="lz4")
        whole = path.read_bytes()
        for _ in range(60):
            content = bytearray(whole)
            for place in rng.integers(0, len(content), rng.integers(1, 4)):
                content[place] = rng.integers(0, 256)
            path.write_bytes(content)
            with suppress(StoreError):
                read(path)


def test_lists_of_different_lengths_are_refused(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"v": [[1.0, 2.0], [1.0] * 100_000, None]}), path)
    with pytest.raises(StoreError, match="numbers; expected 2"):
        read(path)


# --- tables of items ---------------------------------------------------------------------------------------

TABLES = {
    "a.json": [
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 5000,
        "[" + "9" * 5000 + "]",
        "NaN",
        '{"id": 3}',
        "{}",
        "[]",
    ],
    "b.jsonl": ["[" * 100_000, "1\n2", '{"id": 1}\n[2]', "", '{"id": ' + "9" * 5000 + "}"],
    "c.csv": ["", "\n\n", "id,id\n1,2\n", "id,text\n1\n"],
    "d.npy": [pickle.dumps([1]), npy(head(descr="'|O'", shape="(1,)")), npy(head()), b""],
    "e.parquet": [b"PAR1PAR1", b"", b"PAR1" + b"\xff" * 100 + b"PAR1"],
    "f.txt": [b"\xff\xfe\x00"],
}


@pytest.mark.parametrize(("name", "content"), [(n, c) for n, all in TABLES.items() for c in all])
def test_tables_that_cannot_be_read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(StoreError):
        read_table(path)


def test_reading_a_table_changes_no_setting_of_csv(tmp_path):
    before = csv.field_size_limit(131_072)
    (tmp_path / "t.csv").write_text("id,text\n1," + "x" * 200_000 + "\n")
    assert len(read_table(tmp_path / "t.csv")["text"][0]) == 200_000
    assert csv.field_size_limit(before) == 131_072


def test_marks_of_byte_order_and_nulls_are_read(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfid,text\n1,a\0b\n")
    assert read_table(tmp_path / "t.csv") == {"id": ["1"], "text": ["a\0b"]}


@pytest.mark.parametrize("ids", [[1, 1, 2], [1.5, np.nan, np.nan], [1, None, 2], ["a", "a", 1]])
def test_ids_that_are_not_unique_are_refused(tmp_path, ids):
    np.save(tmp_path / "v.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "t.json").write_text(json.dumps({"id": ids}))
    with pytest.raises(StoreError, match=r"without an id|repeat an earlier id|no id"):
        read(tmp_path / "v.npy", items=tmp_path / "t.json", id="id")
