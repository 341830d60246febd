"""Tables of LanceDB: columns of all kinds, and what is refused."""

from datetime import datetime

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from hubless.repair.apply import apply_index, promote_index
from hubless.stores.lancedb.lance_table import LanceTable
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.lancedb_cases import engine, make, rows_of

pytestmark = pytest.mark.services


@pytest.fixture
def items(tmp_path):
    """Return a table of 300 rows, what is in it, and a model."""
    ids, X, y, texts = sample()
    return make(tmp_path, ids, X, texts, None), ids, X, model_for(X, y, "l2")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_every_column_is_copied_and_rows_without_a_vector_stay_so(tmp_path, kind):
    ids, X, y, texts = sample(60)
    X = X.astype(kind)
    missing = np.arange(60) % 7 == 0
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 8, mask=pa.array(missing))
    rows = pa.table(
        {
            "My Id": pa.array(ids, pa.int32()),
            "My vector": vectors,
            "text": pa.array([None, *texts[1:]], pa.large_string()),
            "score": pa.array([np.nan, None, *range(58)], pa.float64()),
            "tags": [[], None, [np.nan, 1.0], *[[float(i)] for i in range(57)]],
            "facts": [{"a": i, "b": [{"c": str(i)}]} for i in range(60)],
            "when": pa.array([datetime(2020, 1, 1)] * 60, pa.timestamp("ns")),
            "raw": [bytes([i]) for i in range(60)],
        }
    ).replace_schema_metadata({"owner": "somebody"})
    lancedb.connect(tmp_path).create_table("items", rows)
    store = LanceTable(str(tmp_path), "items", id="My Id")
    assert (store.facts().dtype, store.facts().count) == (np.dtype(kind).name, 60)
    model = model_for(X[~missing].astype(np.float32), y[~missing], "l2")
    assert apply_index(model, store, "moved")["written"] == 60
    assert apply_index(model, store, "moved")["written"] == 0  # a NaN is no change
    before = engine(store)
    promote_index(store, "moved")
    after = engine(store)
    assert after.schema.equals(before.schema)  # types and which may be null; metadata apart
    assert after.schema.metadata == {b"owner": b"somebody"}
    got, want = after.to_arrow().sort_by("My Id"), before.to_arrow().sort_by("My Id")
    assert repr(got.drop("My vector").to_pylist()) == repr(want.drop("My vector").to_pylist())
    moved, order = model.move(X.astype(np.float32)), np.argsort(ids)
    for place, vector in zip(order, got["My vector"].to_pylist(), strict=True):
        assert (vector is None) == missing[place]
        if vector is not None:
            tolerance = 5e-3 if kind == np.float16 else 1e-5
            np.testing.assert_allclose(vector, moved[place], rtol=tolerance, atol=tolerance)


def test_columns_are_guessed_or_must_be_named(tmp_path):
    database = lancedb.connect(tmp_path)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(8, dtype=np.float32)), 4)
    database.create_table("two", pa.table({"key": [1, 2], "a": vectors, "b": vectors}))
    database.create_table("none", pa.table({"id": [1, 2], "word": ["x", "y"]}))
    database.create_table("nameless", pa.table({"word": ["x", "y"], "a": vectors, "part": [0.5, 1.5]}))
    with pytest.raises(StoreError, match=r"2 columns of vectors.*--vector: a, b"):
        LanceTable(str(tmp_path), "two").facts()
    with pytest.raises(StoreError, match=r"no column 'c' of vectors.*--vector: a, b"):
        LanceTable(str(tmp_path), "two", vector="c").facts()
    assert LanceTable(str(tmp_path), "two", vector="b").facts().columns == ("a",)
    with pytest.raises(StoreError, match=r"no columns of vectors.*A vector is a row or a list"):
        LanceTable(str(tmp_path), "none").facts()
    with pytest.raises(StoreError, match=r"no column id or _id or key for ids.*--id: word"):
        LanceTable(str(tmp_path), "nameless").facts()
    with pytest.raises(StoreError, match=r"no column 'part' of whole numbers or texts for ids.*--id: word"):
        LanceTable(str(tmp_path), "nameless", id="part").facts()
    assert LanceTable(str(tmp_path), "nameless", id="word").fetch(["y"]).ids.tolist() == ["y"]


def test_what_does_not_exist_is_reported_and_not_created(tmp_path):
    missing = LanceTable(str(tmp_path / "nothing"), "items")
    assert not missing.exists()
    with pytest.raises(StoreError, match="give the folder of a LanceDB database"):
        missing.facts()
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(StoreError, match="'items' was not found"):
        LanceTable(str(tmp_path), "items").facts()
    with pytest.raises(StoreError, match="Cloud"):
        LanceTable("db://somewhere", "items")
    with pytest.raises(StoreError, match="Cloud"):
        open_store("lancedb:db://somewhere#items")
    with pytest.raises(StoreError, match="'dot'"):
        LanceTable(str(tmp_path), "items", metric="dot")


@pytest.mark.parametrize(
    ("spoilt", "message"), [(5, "2 duplicates and 0 nulls"), (None, "0 duplicates and 2 nulls")]
)
def test_ids_that_are_not_unique_are_refused(tmp_path, spoilt, message):
    _, X, _, texts = sample(50)
    ids = [5, spoilt, spoilt, *range(100, 147)]
    store = make(tmp_path, ids, X, texts, None)
    with pytest.raises(StoreError, match=message):
        store.sibling("moved").begin(store, None)
    assert lancedb.connect(tmp_path).list_tables().tables == ["items"]


def test_blobs_are_refused(tmp_path):
    ids, X, _, texts = sample(20)
    rows = rows_of(ids, X, texts)
    schema = rows.schema.append(lancedb.blob("picture"))
    pictures = [{**row, "picture": b"..."} for row in rows.to_pylist()]
    lancedb.connect(tmp_path).create_table("items", pictures, schema=schema)
    store = LanceTable(str(tmp_path), "items")
    with pytest.raises(StoreError, match="blobs"):
        store.sibling("moved").begin(store, None)


def test_an_invalid_name_is_reported(items):
    store, *_, model = items
    with pytest.raises(StoreError, match="cannot be a new table"):
        apply_index(model, store, "two words")


def test_a_table_of_another_database_is_refused(items, tmp_path):
    store, *_ = items
    with pytest.raises(StoreError, match="not in the database"):
        store.sibling("lancedb:elsewhere#items")
    assert store.sibling(f"lancedb:{tmp_path}#other").table == "other"


def test_a_link_to_nothing_is_no_target(tmp_path):
    ids, X, y, texts = sample(60)
    store = make(tmp_path, ids, X, texts, "l2")
    (tmp_path / "green.lance").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"green.lance is a link to .*nowhere.* Remove the link"):
        apply_index(model_for(X, y, "l2"), store, "green")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["green.lance", "items.lance"]
