"""The command line without labels or judgements: fit from a log of queries, and what follows from it."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest

import hubless
from hubless.repair.move_stream import move_arrow
from hubless.stores.files.arrow_files import MARK
from tests.cli.shops import unit, write_faiss
from tests.repair.planted_items import by_loops, captured, planted


class Logged:
    """Planted items in an index, a log of queries beside it, and queries that came later."""

    def __init__(self, folder, metric="l2"):
        import faiss

        self.folder, self.planted = folder, planted(metric, n=400)
        d = self.planted.X.shape[1]
        index = faiss.IndexFlatL2(d) if metric == "l2" else faiss.IndexFlatIP(d)
        self.X, self.new, self.metric = self.planted.X, self.planted.new, "l2" if metric == "l2" else "ip"
        self.index = write_faiss(folder / "index.faiss", self.X, index)
        names = {"id": [f"i{row}" for row in range(len(self.X))], "text": self.planted.texts}
        (folder / "items.json").write_text(json.dumps(names))
        np.save(folder / "log.npy", self.planted.log)
        np.save(folder / "new.npy", self.new)
        self.hubs = names["id"][-3:]
        self.ids = names["id"]
        self.source = [self.index, "--items", folder / "items.json"]
        self.asking = ["--queries", folder / "new.npy"]

    def fit(self, run, *options):
        """Fit a model, and return its folder and what was said."""
        said = run("fit", *self.source, "--queries", self.folder / "log.npy", *options, "-o", self.model)
        return self.model, said

    @property
    def model(self):
        return self.folder / "model"


@pytest.fixture
def logged(tmp_path):
    return Logged(tmp_path)


def test_fit_to_rollback(run, logged):
    before = by_loops(logged.ids, logged.X, logged.new, "l2")
    model, fitted = logged.fit(run)
    learned = fitted["learned"]
    assert (learned["from"], learned["correction"]) == ("log", "HoldHubs()")
    assert {item["id"] for item in learned["held items"]} >= {*logged.hubs}
    assert 0.5 < learned["agreement without a column"] <= 1
    assert (learned["log"], learned["held-out queries"]) == (400, 80)
    assert fitted["hash"] == hubless.load(model).hash
    found = run("evaluate", model, *logged.source, *logged.asking)
    counted = {item["id"]: (item["before"], item["after"]) for item in found["changed"]}
    moved = by_loops(logged.ids, hubless.load(model).move(logged.X), logged.new, "l2")
    for hub in logged.hubs:
        assert counted[hub] == tuple(sum(hub in row for row in rows) for rows in (before, moved))
    assert found["hubness"]["after"]["skewness"] < found["hubness"]["before"]["skewness"]
    assert found["chance"]["skewness"] < found["hubness"]["after"]["skewness"]
    assert run("apply", model, *logged.source, "-o", "moved.faiss")["written"] == len(logged.X)
    run("promote", *logged.source, "moved.faiss")
    assert run("status", *logged.source)["status"] == "serving moved"
    import faiss

    served = [
        [logged.ids[i] for i in row] for row in faiss.read_index(str(logged.index)).search(logged.new, 10)[1]
    ]
    assert captured(before, logged.hubs) > 0.8
    assert captured(served, logged.hubs) < 0.25
    run("rollback", *logged.source)
    served = faiss.read_index(str(logged.index)).search(logged.new, 10)[1]
    assert [[logged.ids[i] for i in row] for row in served] == before


def test_words_of_fit_and_evaluate(words, logged):
    arguments = ["fit", *logged.source, "--queries", logged.folder / "log.npy", "-o", logged.model]
    said = words(*arguments)
    assert said.startswith(f"{logged.model}: HoldHubs()\n")
    assert "Whether answers are better was not measured" in said
    assert "of the answers to held-out queries are those of the exact correction." in said
    assert all(f"  {hub}: " in said for hub in logged.hubs)
    assert said.rstrip().endswith("index-moved.faiss")
    said = words("evaluate", logged.model, *logged.source, *logged.asking)
    assert said.startswith("100 queries among 403 items, 10 answers each\n")
    assert "before      after  by chance" in said
    assert "Whether they are better takes queries whose answers are known" in said
    assert "text of" in said
    said = words(*arguments, "--column")
    assert "append a 0 to every query of 64 columns" in said
    assert "Without a column" not in said


def test_where_nothing_is_corrected_it_says_so(run, words, refused, tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("items", 400), ("log", 200)):
        np.save(tmp_path / f"{name}.npy", unit(rng.normal(size=(n, 40))).astype(np.float32))
    arguments = [tmp_path / "items.npy", "--queries", tmp_path / "log.npy", "-o", tmp_path / "model"]
    fitted = run("fit", *arguments)
    assert fitted["learned"]["correction"] == "no correction"
    said = words("fit", *arguments)
    assert "there is nothing to correct" in said or "not worth a new index" in said
    assert "\nKeep the index as it is" in said
    assert "moves nothing" in refused("apply", tmp_path / "model", tmp_path / "items.npy", "-o", "moved.npy")


def test_fit_explains_how_to_learn_from_a_log(capsys):
    with pytest.raises(SystemExit):
        hubless.cli.main(["fit", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "hubless fit index.faiss --queries log.npy -o model" in said
    assert "From queries alone, items that answer more of them than chance allows are held back." in said
    assert "--column" in said
    assert "queries then need a 0 there" in said


def test_a_page_without_known_answers_leads_to_what_can_be_done(run, logged, capsys):
    model, _ = logged.fit(run)
    page = logged.folder / "page.html"
    for arguments in (
        ["report", *logged.source, "-o", page],
        ["report", *logged.source, "--model", model, *logged.asking, "-o", page],
        ["evaluate", model, *logged.source, *logged.asking, "--report", page],
    ):
        with pytest.raises(SystemExit) as stop:
            hubless.cli.main([*map(str, arguments)])
        assert stop.value.code == 2  # a usage error
        said = capsys.readouterr().err
        for command in ("doctor INDEX --queries LOG", "fit INDEX --queries LOG", "evaluate MODEL INDEX"):
            assert f"hubless {command}" in said
        assert not page.exists()


@pytest.mark.parametrize("metric", ["l2", "ip", "any lengths"])
def test_preview_ranks_as_the_index_compares(run, tmp_path, metric):
    logged = Logged(tmp_path, metric)
    model, _ = logged.fit(run)
    asking = [*logged.asking, "--rows", *range(5), "--fetch", len(logged.X)]
    found = run("preview", model, *logged.source, *asking)
    moved = hubless.load(model).move(logged.X)
    for when, X in (("before", logged.X), ("after", moved)):
        wanted = by_loops(logged.ids, X, logged.new[:5], logged.metric)
        assert [[item["id"] for item in entry[when]] for entry in found] == wanted
    for entry, query in zip(found, logged.new, strict=False):
        for item in entry["after"]:
            stored = moved[logged.ids.index(item["id"])].astype(np.float64)
            distance = -(stored @ query) if metric == "any lengths" else np.linalg.norm(stored - query)
            assert item["distance"] == pytest.approx(distance, abs=1e-5)


def test_preview_with_one_more_column(run, logged):
    model, _ = logged.fit(run, "--column")
    found = run("preview", model, *logged.source, *logged.asking, "--fetch", len(logged.X))
    moved = hubless.load(model).move(logged.X)
    wanted = by_loops(logged.ids, moved, np.pad(logged.new[:3], ((0, 0), (0, 1))), "l2")
    assert [[item["id"] for item in entry["after"]] for entry in found] == wanted


def test_models_with_a_correction_are_not_updated_merged_or_exported(run, refused, logged):
    model, _ = logged.fit(run)
    out = logged.folder / "other"
    (logged.folder / "labels.csv").write_text("label\n" + "".join(f"{i % 3}\n" for i in range(403)))
    source = [logged.index, "--items", logged.folder / "labels.csv", "--labels", "label"]
    for arguments in (["update", model, *source], ["merge", model, model]):
        said = refused(*arguments, "-o", out)
        assert "corrects items by a log of queries: it cannot be updated. Fit it again, with the log." in said
    for form in ("numpy", "faiss", "onnx", "sentence-transformers"):
        said = refused("export", model, form, "-o", out)
        assert "corrects items by HoldHubs" in said
        assert "hubless apply" in said
    assert not out.exists()


@pytest.mark.parametrize("options", [[], ["--column"]])
def test_a_stream_is_moved_as_apply_moves(run, move, logged, options):
    model, _ = logged.fit(run, *options)
    run("apply", model, *logged.source, "-o", "moved.faiss")
    import faiss

    index = faiss.read_index(str(logged.folder / "moved.faiss"))
    stored = index.reconstruct_n(0, index.ntotal)
    lines = "".join(
        json.dumps({"id": i, "vector": x.tolist()}) + "\n" for i, x in zip(logged.ids, logged.X, strict=True)
    )
    code, out, _ = move(model, lines)
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["id"] for row in rows] == logged.ids
    np.testing.assert_allclose([row["vector"] for row in rows], stored, atol=1e-6)
    assert {row[MARK] for row in rows} == {hubless.load(model).hash[:12]}

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(logged.X.reshape(-1)), logged.X.shape[1])
    table, source, sink = pa.table({"id": logged.ids, "vector": vectors}), io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(source, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    source.seek(0)
    assert move_arrow(model, source, sink) == len(logged.X)
    moved = pa.ipc.open_stream(sink.getvalue()).read_all()
    np.testing.assert_allclose(moved["vector"].to_pylist(), stored, atol=1e-6)


@pytest.mark.parametrize("metric", ["l2", "any lengths"])
def test_predict_lets_corrected_items_vote(run, tmp_path, metric):
    logged = Logged(tmp_path, metric)
    model, _ = logged.fit(run)
    labels = ["hub" if i in logged.hubs else "item" for i in logged.ids]
    (tmp_path / "items.json").write_text(json.dumps({"id": logged.ids, "label": labels}))
    options = ["--source", *logged.source, "--labels", "label", "-k", 1]
    found = [row["class"] for row in run("predict", model, tmp_path / "new.npy", *options)]
    moved = by_loops(labels, hubless.load(model).move(logged.X), logged.new, logged.metric, 1)
    assert found == [label for (label,) in moved]
    run("apply", model, *logged.source, "-o", "moved.faiss")
    options[1] = tmp_path / "moved.faiss"
    assert [row["class"] for row in run("predict", model, tmp_path / "new.npy", *options)] == found


@pytest.mark.parametrize("metric", ["l2", "any lengths"])
def test_a_page_of_a_correction(run, tmp_path, metric):
    """The right answer is the nearest item that was not planted, so the correction is a gain."""
    logged = Logged(tmp_path, metric)
    model, _ = logged.fit(run)
    nearest = by_loops(logged.ids, logged.X[:-3], logged.new, logged.metric, 1)
    lines = [f"{row}\t{name}\t1\n" for row, (name,) in enumerate(nearest)]
    (tmp_path / "pairs.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    (tmp_path / "queries.json").write_text(json.dumps([*range(len(logged.new))]))
    asking = [*logged.asking, "--query-items", tmp_path / "queries.json", "--pairs", tmp_path / "pairs.tsv"]
    figures = run("report", *logged.source, "--model", model, *asking, "-o", tmp_path / "page.html")
    assert figures["summary"]["verdict"]["kind"] == "move"
    assert any("hubless apply" in step["code"] for step in figures["apply"]["steps"])
    assert figures["counts"]["metric"] == logged.metric
    shown = next(row for row in figures["summary"]["figures"] if row["title"] == "nDCG@10")
    moved = by_loops(logged.ids, hubless.load(model).move(logged.X), logged.new, logged.metric)
    ranks = [row.index(name) if name in row else None for row, (name,) in zip(moved, nearest, strict=True)]
    wanted = np.mean([0.0 if rank is None else 1 / np.log2(rank + 2) for rank in ranks])
    assert shown["after"] == pytest.approx(wanted)
