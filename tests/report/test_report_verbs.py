"""Pages from pairs, of inner products, of the paper's results and of the demo, as a user makes them."""

import json
import shlex
import shutil

import faiss
import numpy as np
import pytest
from PIL import Image

from hubless import cli
from hubless.paper import demo
from hubless.paper.reproduce import Cell
from hubless.report import index_report
from tests.report.page_files import figures_of, write_table

# --- from pairs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """120 documents by cosine, 80 queries that know one or two of them each."""
    folder, rng = tmp_path_factory.mktemp("library"), np.random.default_rng(1)
    X = rng.standard_normal((120, 6)).astype(np.float32)
    answers = [rng.choice(60, 1 + n % 2, replace=False) for n in range(80)]
    queries = np.array([X[rows].mean(axis=0) + 0.6 * rng.standard_normal(6) for rows in answers])
    np.save(folder / "docs.npy", X)
    np.save(folder / "queries.npy", queries.astype(np.float32))
    table = write_table(folder / "docs.json", id=[f"d{i}" for i in range(120)], title=["a title"] * 120)
    lines = [f"{q}\td{i}\t1" for q, items in enumerate(answers) for i in items] + ["0\tnowhere\t1"]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    source = [folder / "docs.npy", "--metric", "cosine", "--items", table, "--id", "id"]
    return [*source, "--pairs", folder / "qrels.tsv"], ["--queries", folder / "queries.npy"]


def test_report_from_pairs(run, library, tmp_path):
    source, asking = library
    page, card = tmp_path / "page.html", tmp_path / "card.png"
    figures = run("report", *source, *asking, "-o", page, "--card", card)
    assert figures["card"] == str(card)
    with Image.open(card) as picture:
        assert picture.size == (1200, 630)
    assert (figures["task"], figures["counts"]["items"], figures["counts"]["queries"]) == ("pairs", 120, 20)
    tiles = figures["summary"]["figures"]
    assert [(tile["title"], tile["part"]) for tile in tiles[:2]] == [
        ("nDCG@10, unseen items", "unseen"),
        ("nDCG@10, seen items", "seen"),
    ]
    notes = " ".join(figures["summary"]["notes"])
    assert "20 of 80 judged queries were held out" in notes
    assert "1 judgements are on an unknown query or item" in notes
    surface = figures["choice"]["surface"]
    assert surface["x"]["values"][-1] == "no map"
    best = max(max(row) for row in surface["score"])
    assert figures["choice"]["movers"][0]["score"] == pytest.approx(best)
    assert sum(mover["chosen"] for mover in figures["choice"]["movers"]) == 1


def test_the_fit_of_a_page_from_pairs_runs_as_shown(run, library, tmp_path, monkeypatch):
    source, asking = library
    monkeypatch.chdir(tmp_path)
    shutil.copytree(source[0].parent, tmp_path / "here")
    here = [str(part).replace(str(source[0].parent), "here") for part in (*source, *asking)]
    here += ["--query-id", "name", "--query-items", "here/queries.json"]
    write_table(tmp_path / "here" / "queries.json", name=[str(n) for n in range(80)])
    monkeypatch.setattr(index_report, "advises_moving", lambda _: True)  # on such data, it is chance
    figures = run("report", *here, "-o", "page.html")
    program, *arguments = shlex.split(figures["apply"]["steps"][0]["code"])
    assert program == "hubless"
    assert run(*arguments)["learned"]["n"] == 120  # pairs: one for each query, two for every second


# --- inner product ------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", params=["faiss", "npy"])
def products(request, tmp_path_factory):
    """Four wide classes and a narrow one far out: by L2 the narrow one is a hub, and what repairs that makes
    the wide ones so short that by inner product the narrow one answers everybody.
    """
    folder, rng = tmp_path_factory.mktemp("products"), np.random.default_rng(1)
    y = rng.permutation(np.repeat(np.arange(5), 80))
    X = np.where(y[:, None] < 4, 1.0, 0.05) * rng.standard_normal((400, 40))
    X[:, 0] += np.where(y < 4, 1, 7)
    X[np.arange(400), np.minimum(y, 3) + 1] += np.where(y < 4, 2.5, 0)
    X = X.astype(np.float32)
    table = write_table(folder / "items.json", category=y.tolist())
    if request.param == "faiss":
        index = faiss.IndexFlatIP(40)
        index.add(X)
        faiss.write_index(index, str(folder / "index.faiss"))
        return [folder / "index.faiss", "--items", table, "--labels", "category"]
    np.save(folder / "index.npy", X)
    return [folder / "index.npy", "--metric", "ip", "--items", table, "--labels", "category"]


def test_harm_by_inner_product_is_shown_and_not_done(run, refused, products, tmp_path):
    figures = run("report", *products, "-o", tmp_path / "page.html")
    assert figures["counts"]["metric"] == "ip"
    verdict = figures["summary"]["verdict"]
    assert (verdict["kind"], verdict["title"]) == ("harmful", "Harmful under this metric (inner product)")
    assert figures["summary"]["figures"][0]["high"] < 0
    assert "Do not move" in figures["apply"]["words"]
    assert not [step for step in figures["apply"]["steps"] if "hubless apply" in step["code"]]
    assert "inner product" in refused("fit", *products, "-o", tmp_path / "model")


def test_a_page_does_not_advise_what_it_forbids(run, refused, tmp_path):
    """By inner product items that are better off moved are still refused by `hubless fit`."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 400)
    centres = 3 * np.linalg.qr(rng.standard_normal((20, 20)))[0][:6]
    X = (centres[y] + 1.5 * rng.standard_normal((400, 20))) * rng.uniform(0.5, 3, (400, 1))
    np.save(tmp_path / "index.npy", X.astype(np.float32))
    table = write_table(tmp_path / "items.json", category=y.tolist())
    source = [tmp_path / "index.npy", "--metric", "ip", "--items", table, "--labels", "category"]
    figures = run("report", *source, "-o", tmp_path / "page.html")
    assert figures["summary"]["figures"][0]["low"] > 0
    assert "Do not move" in figures["apply"]["words"]
    assert figures["summary"]["verdict"]["kind"] != "move"


# --- reproduce and demo -------------------------------------------------------------------------------------


def test_pages_of_the_paper_have_the_accuracies_of_its_results(data_dir, tmp_path, capsys):
    methods = ["original-metric", "move-labeled"]
    given = ["--datasets", "iris", "wine", "--methods", *methods, "--splits", "1", "--out", tmp_path / "raw"]
    given += ["--report", tmp_path / "pages", "--data-dir", data_dir]
    assert cli.main(["reproduce", *map(str, given)]) == 0
    assert str(tmp_path / "pages" / "iris.html") in capsys.readouterr().out
    for name in ("iris", "wine"):
        figures = figures_of(tmp_path / "pages" / f"{name}.html")
        cells = [Cell(name, 300, method, 0) for method in methods]
        raw = [json.loads((tmp_path / "raw" / cell.name()).read_text()) for cell in cells]
        score, skewness = figures["summary"]["figures"][:2]
        assert (score["before"], score["after"]) == pytest.approx(tuple(result["accuracy"] for result in raw))
        assert (skewness["before"], skewness["after"]) == pytest.approx(
            tuple(result["skewness"] for result in raw)
        )
        assert (figures["counts"]["items"], figures["counts"]["queries"]) == (
            raw[0]["n_train"],
            raw[0]["n_test"],
        )
        chosen = [result["chosen"]["n_neighbors"] for result in raw]
        assert [figures["counts"]["k_before"], figures["counts"]["k"]] == chosen


def test_a_page_of_the_paper_needs_both_methods(data_dir, tmp_path, capsys):
    given = ["--datasets", "iris", "--methods", "move-labeled", "--splits", "1", "--out", tmp_path / "raw"]
    given += ["--report", tmp_path / "pages", "--data-dir", data_dir]
    assert cli.main(["reproduce", *map(str, given)]) == 1
    assert "original-metric" in capsys.readouterr().err


def test_demo_writes_the_page_of_the_blobs(capsys, monkeypatch, tmp_path):
    small = demo.DATASETS["iris"]
    monkeypatch.setattr(demo, "DATASETS", {"iris": small, "blobs": small})
    monkeypatch.setattr(demo, "SHOWN", {"original-metric": "Euclidean"})
    assert cli.main(["demo", "--splits", "1", "--report", str(tmp_path / "page.html")]) == 0
    assert str(tmp_path / "page.html") in capsys.readouterr().out
    assert figures_of(tmp_path / "page.html")["counts"]["items"] == 105
    assert cli.main(["demo", "--splits", "1", "--json", "--report", str(tmp_path / "page.html")]) == 0
    shown = capsys.readouterr()
    assert len(json.loads(shown.out)) == 2  # rows alone, so that a program can read them
    assert str(tmp_path / "page.html") in shown.err
