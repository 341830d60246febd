"""Tables of LanceDB with rows that have no vector: null stays null; what LanceDB cannot write is refused."""

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb import index as kinds

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_between, model_for, sample
from tests.stores.lancedb_cases import content, engine

pytestmark = pytest.mark.services
N, D = 600, 16  # from 10 columns on, LanceDB takes any column of vectors for one, whatever its name
IDS, X, Y, TEXTS = sample(N, D)
FLOAT = pa.float32()
MODEL, BETWEEN = model_for(X, Y, "l2"), model_between(X, 11, "l2")[0]


def rows(missing=(), kind=FLOAT, nullable=True, name="vector", spoil=None):
    """Return rows without the vectors at these places, and with one that was spoilt."""
    numbers = X.astype(kind.to_pandas_dtype())
    vectors = [None if i in missing else list(x) for i, x in enumerate(numbers)]
    if spoil is not None:
        vectors[4][spoil[0]] = spoil[1]
    field = pa.field(name, pa.list_(kind, D), nullable=nullable)
    schema = pa.schema([pa.field("id", pa.int64()), field, pa.field("text", pa.string())])
    return pa.table([pa.array(IDS), pa.array(vectors, field.type), pa.array(TEXTS)], schema=schema)


def make(folder, table, **options):
    """Make a table, in several commits, as LanceDB takes nulls."""
    made = lancedb.connect(folder).create_table("items", schema=table.schema)
    for start in range(0, len(table), 250):
        made.add(table.slice(start, 250))
    return open_store(f"lancedb:{folder}#items", **options)


def vectors_of(store, name="items", column="vector"):
    """Return id → vector or None, as LanceDB reads them."""
    return {id: row[column] for id, row in content(store, name).items()}


def check_moved(store, name, model, missing, rounding=1e-5):
    """Check that the rows at these places have no vector, and that all others are moved."""
    found = vectors_of(store, name)
    assert set(found) == set(IDS.tolist())
    for place, (id, moved) in enumerate(zip(IDS.tolist(), model.move(X), strict=True)):
        if place in missing:
            assert found[id] is None
        else:
            np.testing.assert_allclose(found[id], moved, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("model", [MODEL, BETWEEN], ids=["same width", "other width"])
@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ([0], pa.float32()),
        ([N - 1], pa.float32()),
        (range(250, 500), pa.float32()),  # a whole commit
        (range(N), pa.float32()),
        ([0, 9], pa.float16()),
        ([0, 9], pa.float64()),
    ],
)
def test_null_stays_null(tmp_path, model, missing, kind):
    store = make(tmp_path, rows(missing, kind))
    before = engine(store).to_arrow()
    assert apply_index(model, store, "moved")["written"] == N
    assert apply_index(model, store, "moved")["written"] == 0
    rounding = 1e-2 if kind == pa.float16() else 1e-5
    check_moved(store, "moved", model, missing, rounding)
    promote_index(store, "moved")
    check_moved(store, "items", model, missing, rounding)
    rollback_index(store)
    assert engine(store).to_arrow().equals(before)


@pytest.mark.parametrize(
    "index", [kinds.IvfFlat(num_partitions=3), kinds.HnswSq(num_partitions=2), kinds.IvfPq(num_partitions=1)]
)
def test_an_index_of_vectors_that_are_partly_null(tmp_path, index):
    store = make(tmp_path, rows([3, 300]))
    engine(store).create_index("vector", config=index)
    apply_index(MODEL, store, "moved")
    promote_index(store, "moved")
    check_moved(store, "items", MODEL, [3, 300])
    (built,) = engine(store).list_indices()
    assert built.num_unindexed_rows == 0


def test_a_vector_becomes_null_and_null_becomes_a_vector(tmp_path):
    store = make(tmp_path, rows([3, 300]))
    apply_index(MODEL, store, "moved")
    engine(store).update(where=f"id = {IDS[5]}", values_sql={"vector": "NULL"})
    engine(store).update(where=f"id = {IDS[300]}", values={"vector": X[300].tolist()})
    assert apply_index(MODEL, store, "moved")["written"] == 2
    assert apply_index(MODEL, store, "moved")["written"] == 0
    check_moved(store, "moved", MODEL, [3, 5])
    engine(store).update(where=f"id = {IDS[5]}", values={"vector": X[5].tolist()})
    engine(store).update(where=f"id = {IDS[300]}", values_sql={"vector": "NULL"})
    assert apply_index(MODEL, store, "moved")["written"] == 2
    check_moved(store, "moved", MODEL, [3, 300])


def test_rows_that_are_replaced_may_be_null(tmp_path):
    """In a bucket, which has no locks, all rows are written as those that replace others are."""
    store = make(tmp_path, rows([3, 300]))
    store._folder = None
    assert apply_index(MODEL, store, "moved")["written"] == N
    assert apply_index(MODEL, store, "moved")["written"] == 0
    check_moved(store, "moved", MODEL, [3, 300])


@pytest.mark.parametrize("model", [MODEL, BETWEEN], ids=["same width", "other width"])
def test_a_vector_that_lacks_a_number_becomes_null(tmp_path, model):
    """LanceDB writes no NaN; and a vector is moved as a whole."""
    store = make(tmp_path, rows(spoil=(2, None)))
    before = engine(store).to_arrow()
    assert apply_index(model, store, "moved")["written"] == N
    assert apply_index(model, store, "moved")["written"] == 0
    promote_index(store, "moved")
    check_moved(store, "items", model, [4])
    rollback_index(store)
    assert engine(store).to_arrow().equals(before)


def with_nan(folder, nullable, name="vector"):
    """Make a table with a NaN in it, which LanceDB lets in this way only."""
    table = rows(nullable=nullable, name=name, spoil=(2, np.nan))
    options = {"on_bad_vectors": "fill", "fill_value": float("nan")}
    return lancedb.connect(folder).create_table("items", table, **options)


def test_nan_becomes_null_where_it_may(tmp_path):
    with_nan(tmp_path, nullable=True)
    store = open_store(f"lancedb:{tmp_path}#items")
    assert apply_index(MODEL, store, "moved")["written"] == N
    assert apply_index(MODEL, store, "moved")["written"] == 0
    check_moved(store, "moved", MODEL, [4])


def test_nan_where_it_may_not_be_null_is_refused_first(tmp_path):
    with_nan(tmp_path, nullable=False)
    store = open_store(f"lancedb:{tmp_path}#items")
    with pytest.raises(StoreError, match=r"NaN in 1 vectors of 'vector'.*alter_columns"):
        apply_index(MODEL, store, "moved")
    assert not store.sibling("moved").exists()
    engine(store).alter_columns({"path": "vector", "nullable": True})
    engine(store).update(where=f"id = {IDS[4]}", values_sql={"vector": "NULL"})
    assert apply_index(MODEL, store, "moved")["written"] == N


def test_nan_in_another_column_of_vectors_is_refused_first(tmp_path):
    table = with_nan(tmp_path, nullable=True, name="other")
    table.add_columns({"mine": "other"})
    table.update(where=f"id = {IDS[4]}", values_sql={"mine": "NULL"})
    store = open_store(f"lancedb:{tmp_path}#items", vector="mine")
    with pytest.raises(StoreError, match=r"NaN in 1 vectors of 'other'.*table\.update"):
        apply_index(MODEL, store, "moved")
    table.update(where=f"id = {IDS[4]}", values_sql={"other": "NULL"})
    apply_index(MODEL, store, "moved")
    promote_index(store, "moved")
    others = vectors_of(store, column="other")
    assert others.pop(int(IDS[4])) is None
    assert others == {id: x for id, x in zip(IDS.tolist(), X.tolist(), strict=True) if id != IDS[4]}


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.int64())])
def test_lists_that_lancedb_takes_for_vectors_are_refused_first(tmp_path, kind):
    """They would become vectors of float32 when the table is replaced, or stop it."""
    table = rows().append_column("sparse_Vector", pa.array([[1, 2]] * N, kind))
    store = make(tmp_path, table)
    with pytest.raises(StoreError, match=r"lists in 'sparse_Vector'.*Rename"):
        apply_index(MODEL, store, "moved")
    engine(store).alter_columns({"path": "sparse_Vector", "rename": "sparse"})
    apply_index(MODEL, store, "moved")
    promote_index(store, "moved")
    assert engine(store).schema.field("sparse").type == kind
    assert {tuple(row["sparse"]) for row in content(store).values()} == {(1, 2)}


def test_rows_that_cannot_be_moved_to_another_width_are_refused(tmp_path):
    """No vector of the other width is known for them, and the column may not be null."""
    store = make(tmp_path, rows(nullable=False))
    apply_index(MODEL, store, "moved")
    batch = next(store.batches())
    moved = MODEL.move(batch.vectors)
    moved[5] = np.nan
    with pytest.raises(StoreError, match=r"1 rows have no vector.*may not be null.*alter_columns"):
        store.sibling("moved").write(batch, moved)


def test_an_apply_that_fails_is_resumed_by_the_same_command(tmp_path, monkeypatch):
    store, add = make(tmp_path, rows([3])), lancedb.table.LanceTable.add

    def fail(table, *_, **__):
        raise RuntimeError("lance error: LanceError(IO): no space left, /root/.cargo/lance.rs:1:2")

    with monkeypatch.context() as patch:
        patch.setattr(lancedb.table.LanceTable, "add", fail)
        with pytest.raises(StoreError, match=r"writing to .*#moved failed; run it again: .*no space left$"):
            apply_index(MODEL, store, "moved")
    with pytest.raises(StoreError, match="is not finished"):
        promote_index(store, "moved")
    assert lancedb.table.LanceTable.add is add
    assert apply_index(MODEL, store, "moved")["written"] == N
    check_moved(store, "moved", MODEL, [3])


def test_a_row_with_infinite_numbers_is_written_once(tmp_path):
    """∞ − ∞ is no number: such a row seemed to change with every look, and the copy was never complete."""
    store = make(tmp_path, rows(missing=(9,), spoil=(3, np.inf)))
    made = apply_index(MODEL, store, "moved")
    assert (made["written"], made["unmoved"]["infinite"]) == (N, 1)
    assert not [note for note in made["notes"] if "still changing" in note]
    again = apply_index(MODEL, store, "moved")
    assert again["written"] == 0
    promote_index(store, "moved")
