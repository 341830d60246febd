"""Everything the documents show is run."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hubless import cli
from hubless.paper import demo
from hubless.stores.kinds import BUILT_IN
from tests.report.browser import browser_file

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# made from raw results; the tests of the benchmarks and of the paper make them again
GENERATED = ("results.md", "movers-results.md", "speed.md", "index-results.md", "log-results.md", "scale.md")
GENERATED += ("reliability.md", "loop-results.md")
# Python and commands in turn, on files
WALKTHROUGHS = ("repair.md", "report.md", "large.md", "log.md", "stores.md", "loop.md")
REPAIR, LOOK, LARGE, LOG, STORES, LOOP = (ROOT / "docs" / name for name in WALKTHROUGHS)
SAME_AS_OTHERS = {".ipc", ".h5", ".index", "postgres"}  # other spellings
OF_THE_SITE = ("index.md", "choose.md", "howto.md", "concepts.md", "reference.md", "figures.md", "project.md")
OF_THE_SITE += ("changelog.md", "contributing.md", "security.md", "page-source.md")  # files outside of docs
# tested by test_recipes.py, test_architecture.py and testing/test_write_a_store.py
ELSEWHERE = ("recipes.md", "design.md", "write-a-store.md")


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


WITH_CODE = [  # devices are torch's
    pytest.param(page, id=page.name, marks=[pytest.mark.torch] * ("device=" in "".join(python_blocks(page))))
    for page in PAGES
    if page.name not in (*GENERATED, *WALKTHROUGHS, *ELSEWHERE) and python_blocks(page)
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_on_a_page_runs(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(page)
    assert blocks
    names = {}
    for block in blocks:  # a page is read from its top: later blocks use the names of earlier ones
        exec(compile(block, str(page), "exec"), names)
    shown = capsys.readouterr().out
    assert ("log-loss" if page.name == "probabilities.md" else "skewness") in shown
    if page.name == "README.md":  # the two accuracies that its comments give
        assert "plain k-NN 0.75" in shown
        assert "hubless    0.89" in shown


def write_pairs_and_new_items():
    """Write the files that the page assumes: documents with claims about them, and new items."""
    rng = np.random.default_rng(0)
    documents = rng.standard_normal((80, 24)).astype(np.float32)
    answers = rng.integers(0, 80, 60)
    np.save("docs.npy", documents)
    np.save("claims.npy", documents[answers] + 0.8 * rng.standard_normal((60, 24)).astype(np.float32))
    Path("docs.csv").write_text("doc_id\n" + "".join(f"d{i}\n" for i in range(80)))
    Path("claims.csv").write_text("claim_id\n" + "".join(f"c{i}\n" for i in range(60)))
    judged = "".join(f"c{i}\td{j}\t1\n" for i, j in enumerate(answers))
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    new = [{"id": i, "category": "3", "embedding": rng.standard_normal(200).tolist()} for i in range(3)]
    Path("new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in new))


@pytest.fixture
def run_page(tmp_path, monkeypatch):
    """Runs every block of a page in order, Python here and commands in a shell; returns what these print."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    def run(page):
        names, shown = {}, ""
        for kind, block in re.findall(r"```(python|sh)\n(.*?)```", page.read_text(), re.DOTALL):
            if kind == "python":
                exec(compile(block, str(page), "exec"), names)
            elif not block.startswith("pip"):
                done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True)
                assert done.returncode == 0, block + done.stderr
                shown += done.stdout
        return shown

    return run


def test_the_steps_of_report_md_write_pages_and_plots(run_page, capsys):
    shown = run_page(LOOK)
    assert shown.count("page.html (") == 5
    assert "opens with: embedding-atlas points.parquet" in shown
    assert "N10 skewness goes from" in capsys.readouterr().out
    assert {file.suffix for file in Path("figures").iterdir()} == {".svg", ".png"}
    assert Path("summary.pdf").read_bytes().startswith(b"%PDF")
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_the_steps_of_repair_md_repair_an_index(run_page, capsys):
    write_pairs_and_new_items()
    shown = run_page(REPAIR)
    for start in ("FAISS Flat", "hubs among 910 items"):
        promised = re.search(rf"```\n({start}.*?)```", REPAIR.read_text(), re.DOTALL)[1]
        assert set(promised.splitlines()) <= set(shown.splitlines())
    assert "index.faiss serves the original again" in shown
    assert len(Path("moved.jsonl").read_text().splitlines()) == 3
    assert len(Path("classes.txt").read_text().splitlines()) == 300
    printed = capsys.readouterr().out
    assert "of 100.0% of 300 queries before, and of 0.0% after" in printed
    before, after = (float(value) for value in re.findall(r"right class: ([\d.]+)", printed))
    assert after > before + 0.1


def test_the_steps_of_large_md_learn_from_more_than_memory(run_page, capsys):
    shown = run_page(LARGE)
    assert shown.count("Learned from 3,000 pairs of 3,000 items.") == 4  # parts, a matrix, the rest, Dask
    assert shown.count("skipped: ") == shown.count("4.parquet is not a parquet file") == 1
    assert shown.count("3,000 rows, 3,000 written") == 2
    assert not Path("model.scratch").exists()
    printed = capsys.readouterr().out
    before, after, right = (
        float(value) for value in re.findall(r"(?:before|after|accuracy:) ([\d.]+)", printed)
    )
    assert before > 3 > 1 > after
    assert right > 0.5  # 0.4 without moving


def test_the_steps_of_log_md_hold_hubs_back(run_page, capsys):
    shown = run_page(LOG)
    promised = re.search(r"```\n(200 queries.*?)```", LOG.read_text(), re.DOTALL)[1]
    assert set(promised.splitlines()) <= set(shown.splitlines())
    printed = capsys.readouterr().out
    before, after = (float(value) for value in re.findall(r"^([\d.]+)$", printed, re.MULTILINE))
    assert before > 4 * after
    assert float(re.search(r"exact correction: ([\d.]+)", printed)[1]) > 0.9


def test_the_steps_of_loop_md_promote_and_roll_back(run_page, capsys):
    shown = run_page(LOOP)
    assert shown.count("would serve version 1.") == 1
    assert "roll back: On slice 3, version 1 is worse than the original" in shown
    assert "Version 2 serves.\n" in shown
    assert Path("loop.html").read_text().startswith("<!doctype html>")
    assert "wait 0 of 60 questions" in capsys.readouterr().out


@pytest.mark.services
def test_the_steps_of_stores_md_go_there_and_back(run_page, capsys):
    shown = run_page(STORES)
    kinds = ("chroma", "sqlite", "duckdb")
    served = "items now serves the moved vectors; the original is kept as items_original."
    assert shown.count(served) == shown.count("items serves the original again") == len(kinds)
    assert "for a moment, nothing had this name" in shown
    printed = capsys.readouterr().out
    right = [float(share) for share in re.findall(r"right topic, \w+: ([\d.]+)", printed)]
    for moved, original in zip(right[::2], right[1::2], strict=True):
        assert moved > original > 0.34
    assert len(right) == 2 * len(kinds)
    for engine, file in (("usearch", "index.usearch"), ("hnswlib", "index.bin")):
        assert f"{file} serves the original again" in shown
        moved, original = map(float, re.findall(rf"right in {engine}, \w+: ([\d.]+)", printed))
        assert moved > original + 0.05 > 0.25


def test_every_kind_of_store_is_on_the_page():
    table = STORES.read_text()
    ends = {kind: "`" if kind[0] in "./" else ":" for kind in BUILT_IN}
    missing = {kind for kind, end in ends.items() if f"{kind}{end}" not in table}
    assert missing <= SAME_AS_OTHERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_on_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        if target.startswith("reference/"):  # which `make docs` writes, and checks
            continue
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_a_page_can_be_parsed(page):
    """What they do is tested elsewhere."""
    commands = re.findall(r"^(?:    )?hubless (.*)$", page.read_text(), re.MULTILINE)
    results = (
        "movers-results.md",
        "log-results.md",
        "loop-results.md",
        "speed.md",
        "scale.md",
        "probabilities.md",
        "reliability.md",
    )
    assert commands or page.name in ("guide.md", "design.md", *results, *OF_THE_SITE)
    for command in commands:
        words, *_ = re.split(r"[<>|]", command)  # without pipes and redirections
        cli.parser().parse_args(shlex.split(words, comments=True))


@pytest.mark.browser
def test_pictures_of_a_page_can_be_taken(tmp_path):
    browser_file()
    demo.report("wine").save(tmp_path / "page.html")
    script = ROOT / "docs" / "screens.py"  # in a separate process: it starts a browser
    subprocess.run([sys.executable, script, tmp_path / "page.html", tmp_path], check=True)
    name = "page-summary.png"
    with Image.open(tmp_path / name) as taken, Image.open(ROOT / "docs" / name) as committed:
        assert taken.width == committed.width


@pytest.mark.browser
def test_film_of_the_map_can_be_taken(tmp_path):
    """Both this film and the committed one are small, and go from the one still to the other and back."""
    browser_file()
    demo.report("wine").save(tmp_path / "page.html")
    command = [sys.executable, ROOT / "docs" / "map_film.py", tmp_path, tmp_path / "page.html"]
    subprocess.run(command, check=True)
    for folder in (tmp_path, ROOT / "docs"):
        assert (folder / "map.webp").stat().st_size < 1_500_000
        with Image.open(folder / "map.webp") as film, Image.open(folder / "map.png") as still:
            assert (film.format, film.n_frames) == ("WEBP", 26)
            assert still.size == (2 * film.width, film.height)
            whole, width = np.asarray(still.convert("RGB"), dtype=int), film.width
            for frame, own, other in ((0, 0, 1), (13, 1, 0)):
                film.seek(frame)
                shown = np.asarray(film.convert("RGB"), dtype=int)
                apart = [np.abs(shown - whole[:, end * width :][:, :width]).mean() for end in (own, other)]
                assert apart[0] < apart[1]


def test_every_name_of_the_reference_has_an_example():
    """Examples are run as doctests."""
    public_names = runpy.run_path(str(ROOT / "docs" / "reference_pages.py"))["public_names"]()
    assert sum(map(len, public_names.values())) > 100
    without = [
        f"{module}.{name}"
        for module, values in public_names.items()
        for name, value in values.items()
        if ">>>" not in (value.__doc__ or "")
    ]
    assert without == []


def test_picture_can_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["idea.py", str(tmp_path / "idea.svg")])
    runpy.run_path(str(ROOT / "docs" / "idea.py"), run_name="__main__")
    drawn = (tmp_path / "idea.svg").read_text()
    assert "queries stay" in drawn
    assert "worst hub" in drawn
    style = re.search("<style>@media .prefers-color-scheme: dark.*?</style>", drawn)[0]
    for rule in set(re.findall("(?:fill|stroke): #[0-9a-f]{6}", drawn.replace(style, ""))):
        assert f'[style*="{rule}"]' in style  # no dark letters on a dark ground


def test_the_page_of_the_terminal_shows_a_dry_run_as_it_is(capsys, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "terminal.md").read_text()
    (command,) = re.findall(r"```sh\nhubless (.*)\n```", page)
    shown = re.search(r"```text\n(would read.*?)```", page, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    np.save("vectors.npy", np.eye(900, 4, dtype=np.float32))
    np.save("labels.npy", np.arange(900) % 2)
    assert cli.main(shlex.split(command)) == 0
    assert capsys.readouterr().out == shown
    verbs = cli.parsers_of(cli.parser())
    writing = re.search(r"All verbs that write have it: (.*)", page)[1]
    has = {name for name, verb in verbs.items() if "--dry-run" in verb._option_string_actions}
    assert {*re.findall(r"`(\w+)`", writing)} == has
