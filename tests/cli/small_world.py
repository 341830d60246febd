"""A folder of small sources, queries, models and traps, for the tests of what verbs refuse."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hubless
from hubless.movers import MoveLabeled, Shrink
from hubless.repair.apply import apply_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from tests.cli.shops import write_csv

N, D, WIDE = 40, 4, 6  # items, their columns, and those of queries of another space


def make_world(folder):
    """Fill a folder; every name is used by the tables of tests."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    X = (rng.standard_normal((N, D)) + 3 * y[:, None]).astype(np.float32)
    _write_vectors(folder, X, y, rng)
    _write_tables(folder, y)
    _write_models(folder, X, y)
    _write_traps(folder)
    apply_index(folder / "model", open_store(folder / "v.npy"), "moved.npy")
    apply_index(folder / "model", open_store(folder / "v.parquet"), "moved.parquet")


def _write_vectors(folder, X, y, rng):
    queries = X[:10] + rng.standard_normal((10, D)).astype(np.float32)
    wide = rng.standard_normal((10, WIDE)).astype(np.float32)
    arrays = {"v": X, "q": queries, "wide": wide, "empty": X[:0], "few": X[:5]}
    arrays |= {"whole": X.astype(int), "two": np.stack([y, y], axis=1), "lines": np.arange(N)}
    arrays["many"] = rng.standard_normal((60, WIDE)).astype(np.float32)  # a log that is long enough
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "parts").mkdir()
    for part in range(2):
        np.save(folder / "parts" / f"{part}.npy", X[part::2])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), D)
    pq.write_table(pa.table({"vector": vectors, "category": y.tolist()}), folder / "v.parquet")
    (folder / "files").mkdir()
    pq.write_table(pa.table({"vector": vectors, "category": y.tolist()}), folder / "files" / "0.parquet")


def _write_tables(folder, y):
    names = [f"i{row}" for row in range(N)]
    write_csv(folder / "items.csv", id=names, text=names, category=y)
    write_csv(folder / "one.csv", id=names, category=["a"] * N)
    write_csv(folder / "none.csv", id=names, category=[""] * N)
    write_csv(folder / "few.csv", id=names[:5], category=y[:5])
    write_csv(folder / "q.csv", id=[f"q{row}" for row in range(10)], category=y[:10])
    write_csv(folder / "q-none.csv", id=[f"q{row}" for row in range(10)], category=[""] * 10)
    lines = ["query-id\tcorpus-id\tscore", *(f"q{row}\ti{row}\t1" for row in range(10))]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")
    (folder / "strange.tsv").write_text("query-id\tcorpus-id\tscore\nnobody\ti0\t1\n")
    (folder / "bad.tsv").write_text("a\tb\n1\t2\n")


def _write_models(folder, X, y):
    mover = MoveLabeled(1.0, keep_moments=True).fit(X, y.astype(str))
    facts = {"learned": {"from": "labels", "column": "category", "n": N, "mover": "W", "chosen by": ""}}
    hubless.save(Repair(mover, facts=facts), folder / "model")
    hubless.save(Repair(mover, "cosine"), folder / "model-cosine")
    wide = np.random.default_rng(1).standard_normal((N, WIDE))
    hubless.save(Repair(MoveLabeled(1.0, keep_moments=True).fit(wide, y)), folder / "model-wide")
    hubless.save(Repair(Shrink(0.4).fit(X, y), label="colour"), folder / "model-by-colour")
    hubless.save(Repair(MoveLabeled(1.0).fit_pairs(wide[:20], X[:20])), folder / "model-across")
    hubless.save(hubless.MoveLabeledClassifier().fit(X, y), folder / "classifier")
    (folder / "no-model").mkdir()
    (folder / "no-model" / "config.json").write_text("{}")


def _write_traps(folder):
    (folder / "notes.txt").write_text("mine")
    (folder / "notes.json").write_text(json.dumps(["mine"]))
    (folder / "dangling").symlink_to(folder / "nowhere")
    (folder / "dangling.npy").symlink_to(folder / "nowhere.npy")
    (folder / "dangling.html").symlink_to(folder / "nowhere.html")
    (folder / "loop").symlink_to(folder / "loop")
