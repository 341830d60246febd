"""`hubless move` between pipes, and `hubless export`."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hubless
from hubless import cli
from tests import reference
from tests.cli.shops import D, N, lambda_of

RUN = [sys.executable, "-m", "hubless"]


def lines_of(X, **columns):
    rows = [
        {"id": f"n{place}", "vector": x.tolist(), **{name: values[place] for name, values in columns.items()}}
        for place, x in enumerate(X)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_lines_are_moved(move, shop, model):
    text = lines_of(shop.X, words=shop.texts)
    code, moved, said = move(model, "\n" + text)  # an empty line is no row
    assert (code, said) == (0, "")
    rows = [json.loads(line) for line in moved.splitlines()]
    assert [row["id"] for row in rows] == [f"n{place}" for place in range(N)]
    assert [row["words"] for row in rows] == shop.texts
    X = shop.X.astype(np.float64)
    alpha = lambda_of(X, shop.y, hubless.load(model).mover.alpha.value)
    expected = reference.move_labeled(X, shop.y, alpha)
    np.testing.assert_allclose([row["vector"] for row in rows], expected, rtol=1e-4, atol=1e-5)
    code, out, said = move(model, moved)
    assert (code, out) == (1, "")
    assert "line 1 is already moved" in said


def stream_of(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return sink.getvalue().to_pybytes()


def test_an_arrow_stream_is_moved_by_class(shop, by_class, refused, monkeypatch):
    rows = [None if place == 3 else x.tolist() for place, x in enumerate(shop.X)]
    table = pa.table(
        {"id": shop.ids, "v": pa.array(rows, pa.list_(pa.float32())), "category": shop.y.tolist()}
    ).replace_schema_metadata({"of": "ours"})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream_of(table))))
    moved = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(moved))
        assert cli.main(["move", str(by_class), "--arrow"]) == 0
        found = pa.ipc.open_stream(moved.getvalue()).read_all()
    assert found.schema.equals(table.schema)
    assert found.schema.metadata[b"of"] == b"ours"
    assert found.select(["id", "category"]).equals(table.select(["id", "category"]))
    expected = np.array(reference.shrink(shop.X.astype(np.float64), shop.y, 0.4))
    for place, vector in enumerate(found["v"].to_pylist()):
        if place == 3:
            assert vector is None
        else:
            np.testing.assert_allclose(vector, expected[place], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream_of(found))))
    assert "already moved" in refused("move", by_class, "--arrow")


@pytest.mark.parametrize("width", [2, 3])
def test_an_arrow_stream_of_another_width_is_refused(shop, model, refused, monkeypatch, width):
    """Numbers of fixed lists could be read in rows of the model's width: two short vectors as one."""
    X = shop.X[:12].reshape(-1, shop.X.shape[1] // width)
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream_of(table))))
    assert f"has vectors of {X.shape[1]} numbers" in refused("move", model, "--arrow")


def through_a_pipe(model, given, *options):
    """What the program writes for what it reads, as bytes of two pipes, neither of which can be rewound."""
    ran = subprocess.run([*RUN, "move", str(model), *options], input=given, capture_output=True)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout


def test_lines_go_through_a_pipe(move, shop, model):
    text = lines_of(shop.X, words=shop.texts)  # more than a pipe holds
    moved = through_a_pipe(model, text.encode()).decode()
    rows = [json.loads(line) for line in moved.splitlines()]
    assert [row["id"] for row in rows] == [f"n{place}" for place in range(N)]
    assert [row["words"] for row in rows] == shop.texts
    X = shop.X.astype(np.float64)
    alpha = lambda_of(X, shop.y, hubless.load(model).mover.alpha.value)
    expected = reference.move_labeled(X, shop.y, alpha)
    np.testing.assert_allclose([row["vector"] for row in rows], expected, rtol=1e-4, atol=1e-5)
    assert "line 1 is already moved" in move(model, moved)[2]


def test_an_arrow_stream_goes_through_a_pipe(shop, by_class):
    column = pa.array(shop.X.tolist(), pa.list_(pa.float32()))
    table = pa.table({"id": shop.ids, "v": column, "category": shop.y.tolist()})
    found = pa.ipc.open_stream(through_a_pipe(by_class, stream_of(table), "--arrow")).read_all()
    assert found.schema.equals(table.schema)
    assert found.select(["id", "category"]).equals(table.select(["id", "category"]))
    expected = np.array(reference.shrink(shop.X.astype(np.float64), shop.y, 0.4))
    np.testing.assert_allclose(found["v"].to_pylist(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("default")  # the command line prints them
def test_lines_are_moved_by_class(move, shop, by_class):
    code, out, said = move(by_class, lines_of(shop.X, category=[*shop.y[:-2], "unknown", None]))
    assert "2 items are not moved: the model does not know the category there." in said
    rows = [json.loads(line) for line in out.splitlines()]
    assert ["hubless" in row for row in rows] == [True] * (len(rows) - 2) + [False] * 2
    got = [row["vector"] for row in rows]
    X = shop.X.astype(np.float64)
    expected = np.array(reference.shrink(X, shop.y, 0.4))
    expected[-2:] = X[-2:]  # of an unknown class
    assert code == 0
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    code, out, _ = move(by_class, lines_of(shop.X[:-2], kind=shop.y[:-2].tolist()), "--label", "kind")
    assert [json.loads(line)["vector"] for line in out.splitlines()] == got[:-2]


def test_lines_without_a_class_are_refused(move, shop, by_class):
    code, out, said = move(by_class, lines_of(shop.X[:2], kind=["a", "b"]))
    assert (code, out) == (1, "")
    assert "line 1 has no 'category', the class that the model moves an item by; it has" in said
    assert "--label FIELD" in said


BAD = {
    "not json": "line 3 is not JSON",
    "[1, 2]": "line 3 must be an object with 'vector'",
    '{"id": 1, "embedding": [1, 2]}': "line 3 must be an object with 'vector'",
    '{"vector": [1, 2]}': "line 3: 'vector' must be a list of 12 finite numbers",
    '{"vector": null}': "line 3: 'vector' must be a list of 12 finite numbers",
    '{"vector": [' + ", ".join(["true"] * D) + "]}": "line 3: 'vector' must be a list",
    '{"vector": [' + ", ".join(["NaN"] * D) + "]}": "line 3: 'vector' must be a list",
    '{"vector": [' + ", ".join(["1e999"] * D) + "]}": "line 3: 'vector' must be a list",
    '{"vector": [' + ", ".join([f"1{'0' * 400}"] * D) + "]}": "line 3: 'vector' must be a list",
}


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:20])
def test_bad_lines_are_named_by_number(move, shop, model, line):
    code, _, said = move(model, lines_of(shop.X[:2]) + line + "\n")
    assert code == 1
    assert BAD[line] in said
    assert "Traceback" not in said


def test_a_reader_may_stop_early(shop, model):
    text = (lines_of(shop.X) * 40).encode()
    with subprocess.Popen(
        [*RUN, "move", str(model)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as mover:
        os.set_blocking(mover.stdin.fileno(), True)
        feeder = os.fork()
        if feeder == 0:  # a producer that does not mind either
            mover.stdout.close()
            try:
                mover.stdin.write(text)
                mover.stdin.close()
            except BrokenPipeError:
                pass
            os._exit(0)
        mover.stdin.close()
        assert json.loads(mover.stdout.readline())["id"] == "n0"
        mover.stdout.close()
        said = mover.stderr.read()
        os.waitpid(feeder, 0)
        mover.stdin = None
    assert mover.returncode == 0
    assert said == b""


def test_export(run, refused, shop, model, by_class, tmp_path):
    written = run("export", model, "numpy", "-o", tmp_path / "mover")["written"]
    assert {Path(path).name for path in written} == {"README.md", "move.py", "weights.npz"}
    np.save(tmp_path / "v.npy", shop.X)
    subprocess.run(
        [sys.executable, tmp_path / "mover" / "move.py", tmp_path / "v.npy", tmp_path / "w.npy"], check=True
    )
    np.testing.assert_allclose(
        np.load(tmp_path / "w.npy"), hubless.load(model).move(shop.X), rtol=1e-4, atol=1e-5
    )
    assert "exists already" in refused("export", model, "numpy", "-o", tmp_path / "mover")
    assert "class" in refused("export", by_class, "numpy", "-o", tmp_path / "other")
