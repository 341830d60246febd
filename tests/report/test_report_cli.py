"""`hubless report` and the pages of other verbs, run as a user runs them."""

import importlib.util
import json
import shlex
from pathlib import Path

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.neighbors import KNeighborsClassifier

from hubless import cli
from tests import reference
from tests.report.page_files import details_of, figures_of, write_table

N, M, D = 200, 40, 10


class Shop:
    """200 items of 4 classes in an index by L2 with a table beside it; 50 queries with their classes."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((4, D))
        self.y, self.truth = (rng.integers(0, 4, n).astype(str) for n in (N, M))
        self.X, self.queries = (
            (centres[classes.astype(int)] + rng.standard_normal((len(classes), D))).astype(np.float32)
            for classes in (self.y, self.truth)
        )
        index = faiss.IndexFlatL2(D)
        index.add(self.X)
        faiss.write_index(index, str(folder / "index.faiss"))
        self.ids = [f"i{row}" for row in rng.permutation(N)]
        items = write_table(
            folder / "items.json",
            id=self.ids,
            category=self.y.tolist(),
            text=[f"text of {key}" for key in self.ids],
            note=[f"note of {key}" for key in self.ids],
        )
        questions = [f"question {i}" for i in range(M)]
        table = write_table(folder / "queries.json", category=self.truth.tolist(), text=questions)
        np.save(folder / "queries.npy", self.queries)
        self.source = [folder / "index.faiss", "--items", items, "--id", "id"]
        self.labels = [*self.source, "--labels", "category"]
        self.asking = ["--queries", folder / "queries.npy", "--query-items", table]
        self.folder, self.page = folder, folder / "page.html"


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    shop = Shop(tmp_path_factory.mktemp("shop"))
    assert (
        cli.main(["fit", *map(str, shop.labels), "--mover", "ridge", "-o", str(shop.folder / "model")]) == 0
    )
    return shop


# --- from labels --------------------------------------------------------------------------------------------


def test_report_from_labels(run, words, shop, tmp_path):
    page = tmp_path / "page.html"
    printed = run("report", *shop.labels, "-o", page)
    assert (printed["page"], printed["bytes"]) == (str(page), page.stat().st_size)
    inside = figures_of(page)
    assert {key: printed[key] for key in inside} == inside
    assert inside["counts"]["items"] + inside["counts"]["queries"] == N
    assert inside["counts"]["queries"] == pytest.approx(N / 4, abs=1)
    assert (
        inside["title"]
        == f"Hubs among {inside['counts']['items']} items in {inside['counts']['classes']} classes"
    )
    assert [note for note in inside["summary"]["notes"] if f"of {N} items were held out" in note]
    said = words("report", *shop.labels, "--title", "Our shop", "-o", page)
    assert figures_of(page)["title"] == "Our shop"
    assert inside["summary"]["sentence"] in said
    assert inside["summary"]["verdict"]["title"] in said
    assert str(page) in said


def test_the_commands_on_the_page_work_as_printed(run, shop, tmp_path, monkeypatch, capsys):
    """Copied from the page in the folder where `hubless report` ran."""
    copied = Shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = [str(Path(arg).name) if str(arg).startswith(str(tmp_path)) else str(arg) for arg in copied.labels]
    apply = run("report", *given, "-o", "page.html")["apply"]
    for step in [*apply["steps"], *apply["undo"]]:
        line = shlex.split(step["code"])
        assert line[0] == "hubless"
        assert cli.main(line[1:]) == 0, (step["code"], capsys.readouterr().err)


def test_report_of_a_model(run, shop, tmp_path):
    given = [*shop.labels, *shop.asking, "--model", shop.folder / "model"]
    printed = run("report", *given, "-k", 5, "-o", tmp_path / "page.html")
    tile = printed["summary"]["figures"][0]
    _, near = reference.nearest(shop.queries, shop.X, 5)
    assert tile["before"] == pytest.approx(np.mean(reference.vote(shop.y[near]) == shop.truth))
    plain = KNeighborsClassifier(1, algorithm="brute").fit(shop.X, shop.y)
    one = run("report", *given, "-k", 1, "-o", tmp_path / "page.html")
    assert one["summary"]["figures"][0]["before"] == pytest.approx(plain.score(shop.queries, shop.truth))
    assert printed["counts"] | {"items": N, "queries": M, "k": 5, "k_before": 5} == printed["counts"]
    codes = [step["code"] for step in printed["apply"]["steps"]]
    assert not [code for code in codes if code.startswith("hubless fit")]
    evaluated = run("evaluate", shop.folder / "model", *shop.labels, *shop.asking, "-k", 5)
    assert evaluated["figures"] == printed["summary"]["more"]


def test_evaluate_writes_the_page_too(run, words, shop, tmp_path):
    given = [shop.folder / "model", *shop.labels, *shop.asking]
    plain, page = run("evaluate", *given), tmp_path / "page.html"
    printed = run("evaluate", *given, "--report", page)
    assert printed == {**plain, "page": str(page), "bytes": page.stat().st_size}
    assert figures_of(page)["summary"]["more"] == plain["figures"]
    assert str(page) in words("evaluate", *given, "--report", page)


def test_a_requested_table_is_written_with_or_without_a_page(run, shop, tmp_path):
    given = [shop.folder / "model", *shop.labels, *shop.asking, "--parquet", tmp_path / "points.parquet"]
    assert cli.main(["evaluate", *map(str, given)]) == 1 or (tmp_path / "points.parquet").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--card", "card.png"], "--card is a part of the page: give --report FILE too"),
        (["--report", "page.html", "--card", "card.svg"], "a PNG file; got card.svg"),
    ],
)
def test_a_card_that_cannot_be_written_is_refused_first(refused, shop, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("evaluate", shop.folder / "model", *shop.labels, *shop.asking, *more)
    assert [*tmp_path.iterdir()] == []


# --- texts, pictures, tables --------------------------------------------------------------------------------


def test_texts_of_items_and_queries_by_their_ids(run, shop, tmp_path):
    given = [*shop.labels, *shop.asking, "--model", shop.folder / "model", "-o", tmp_path / "page.html"]
    run("report", *given)
    details = details_of(tmp_path / "page.html")
    assert details["items"]["id"] == shop.ids
    assert details["items"]["text"] == [f"text of {key}" for key in shop.ids]
    assert details["queries"]["text"] == [f"question {i}" for i in range(M)]
    run("report", *given, "--text", "note", "--query-text", "text")
    details = details_of(tmp_path / "page.html")
    assert details["items"]["text"] == [f"note of {key}" for key in shop.ids]
    assert details["queries"]["text"] == [f"question {i}" for i in range(M)]


def test_held_out_items_keep_their_texts(run, shop, tmp_path):
    run("report", *shop.labels, "--text", "note", "-o", tmp_path / "page.html")
    details = details_of(tmp_path / "page.html")
    for part in (details["items"], details["queries"]):
        assert part["text"] == [f"note of {key}" for key in part["id"]]


@pytest.mark.parametrize("option", ["--text", "--query-text", "--image"])
def test_a_missing_column_is_refused(refused, shop, tmp_path, option):
    given = [*shop.labels, *shop.asking, "--model", shop.folder / "model", "-o", tmp_path / "page.html"]
    message = refused("report", *given, option, "nowhere")
    assert "nowhere" in message
    assert "category" in message  # says which there are
    assert not (tmp_path / "page.html").exists()


def test_pictures_of_a_column(run, shop, tmp_path):
    pixel = (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xff\xff?"
        b"\0\5\xfe\2\xfe\r\xefF\xb8\0\0\0\0IEND\xaeB`\x82"
    )
    (tmp_path / "a.png").write_bytes(pixel)
    picture = str(tmp_path / "a.png")
    columns = json.loads((shop.folder / "items.json").read_text()) | {"picture": [picture] * N}
    table = write_table(tmp_path / "items.json", **columns)
    source = [shop.folder / "index.faiss", "--items", table, "--id", "id", "--labels", "category"]
    run("report", *source, "--image", "picture", "-o", tmp_path / "page.html")
    hubs = details_of(tmp_path / "page.html")["hubs"]
    assert {hub["thumbnail"].split(",")[0] for hub in hubs} == {"data:image/png;base64"}


def test_parquet_is_written_and_its_command_printed(run, words, shop, tmp_path):
    given = [*shop.labels, "-o", tmp_path / "page.html", "--points", 20]
    printed = run("report", *given, "--parquet", tmp_path / "points.parquet")
    table = pq.read_table(tmp_path / "points.parquet")
    assert table.num_rows == N  # by PCA all there is, however few are drawn
    columns = table.to_pydict()
    inside = figures_of(tmp_path / "page.html")
    items = [
        count for count, kind in zip(columns["n10_before"], columns["kind"], strict=True) if kind == "item"
    ]
    assert max(items) == inside["hubness"]["before"]["largest_occurrence"]
    assert sum(items) == 10 * inside["counts"]["queries"]
    command = shlex.split(printed["command"])
    assert command[:2] == ["embedding-atlas", str(tmp_path / "points.parquet")]
    assert printed["command"] in words("report", *given, "--parquet", tmp_path / "points.parquet")
    drawn = details_of(tmp_path / "page.html")
    assert len(drawn["items"]["id"]) == 20
    assert "20 of" in drawn["sampled"]


# --- other ways to ask, and what is refused -----------------------------------------------------------------


def test_the_page_is_opened(words, shop, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.chdir(tmp_path)
    words("report", *shop.labels, "-o", "a page é.html")
    assert opened == []
    words("report", *shop.labels, "-o", "a page é.html", "--open")
    assert opened == [(tmp_path / "a page é.html").resolve().as_uri()]
    assert opened[0].startswith("file:///")


def test_a_home_folder_is_found(run, shop, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    printed = run("report", *shop.labels, "--out=~/page.html", "--open")
    assert printed["page"] == str(tmp_path / "page.html")
    assert opened == [(tmp_path / "page.html").as_uri()]


@pytest.mark.skipif(importlib.util.find_spec("umap") is not None, reason="umap-learn is installed")
def test_a_layout_that_is_not_installed_says_what_to_install(refused, shop, tmp_path):
    given = [*shop.labels, *shop.asking, "--model", shop.folder / "model", "-o", tmp_path / "page.html"]
    assert "pip install umap-learn" in refused("report", *given, "--layout", "umap")


def test_queries_without_a_model_are_not_ignored(shop, tmp_path, capsys):
    """They are searched with, or the page says that they are not."""
    given = [*shop.labels, *shop.asking, "-o", tmp_path / "page.html", "--json"]
    if cli.main(["report", *map(str, given)]) == 1:
        assert "--queries" in capsys.readouterr().err
    else:
        printed = json.loads(capsys.readouterr().out)
        assert printed["counts"]["queries"] == M or "--queries" in str(printed["summary"]["notes"])


def test_what_is_missing_is_named(refused, shop, tmp_path):
    out = ["-o", tmp_path / "page.html"]
    assert "--queries SOURCE" in refused("report", *shop.labels, "--model", shop.folder / "model", *out)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n0\ti0\t1\n")
    assert "--queries SOURCE" in refused("report", *shop.source, "--pairs", tmp_path / "qrels.tsv", *out)
    assert "nowhere" in refused("report", *shop.source, "--labels", "nowhere", *out)
    given = [*shop.labels, *shop.asking, "--model", shop.folder / "model", *out]
    assert "nowhere" in refused("report", *given, "--query-labels", "nowhere")
    assert "no-model" in refused("report", *shop.labels, *shop.asking, "--model", tmp_path / "no-model", *out)
    (tmp_path / "page.html").write_text("somebody else's")
    assert "not a hubless page" in refused("report", *shop.labels, *out)
    assert (tmp_path / "page.html").read_text() == "somebody else's"


@pytest.mark.parametrize("more", [[], ["--labels", "a", "--pairs", "b"], ["--labels", "a", "--points", "0"]])
def test_usage_errors_end_with_2(more, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["report", "index.faiss", *more])
    assert stop.value.code == 2
    assert "usage: hubless report" in capsys.readouterr().err
