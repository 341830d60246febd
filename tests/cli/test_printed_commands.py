"""Every command that is printed runs as printed: bash reads it, and what it prints leads to the next one."""

import re
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubless import cli
from tests.cli.shops import D, write_csv

COMMAND = re.compile(r"^(?:next|To undo): (hubless .*)$", re.MULTILINE)


def vectors(X):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(X).reshape(-1)), D)


def columns(shop):
    """The columns of a table with two columns of vectors; those of other columns have names with dashes."""
    return {
        "-id": shop.ids,
        "-v": vectors(shop.X),
        "w": vectors(shop.X[::-1]),
        "the class": shop.y.tolist(),
    }


def words_of(line):
    """Return the words after `hubless`, as bash reads them."""
    script = f'hubless() {{ printf "%s\\0" "$@"; }}\n{line}'
    read = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    return read.decode().split("\0")[:-1]


@pytest.fixture
def bash(capsys):
    """Runs a printed command: bash reads it, and this process runs it; returns what it prints."""

    def bash(line):
        assert line.isprintable()
        assert cli.main(words_of(line)) == 0, (line, capsys.readouterr().err)
        return capsys.readouterr().out

    return bash


def follow(bash, said, *verbs):
    """Run the command that is printed, and then those that it leads to; return what the last one prints."""
    for verb in verbs:
        (line,) = COMMAND.findall(said)
        assert line.startswith(f"hubless {verb} ")
        said = bash(line)
    return said


@pytest.mark.parametrize(
    "name",
    [
        "two columns.parquet",
        "./-v.parquet",
        'it\'s $HOME #1; `ls` "x".parquet',
        "a#b.parquet",
        "ü\n\x1b[2J.parquet",
        "folder/of/v.arrow.parquet",
    ],
)
def test_from_fit_to_rollback(words, bash, shop, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder" / "of").mkdir(parents=True)
    pq.write_table(pa.table(columns(shop)), name)
    options = ["--vector=-v", "--id=-id", "--metric", "l2"]
    learned = words("fit", name, *options, "--labels", "the class", "--mover", "ridge", "-o-a model")
    said = follow(bash, learned, "apply", "promote", "rollback")
    assert "serves the original again" in said
    assert pq.read_table(name).column("-v").to_pylist() == shop.X.tolist()


def test_from_fit_to_rollback_with_a_table_of_items(words, bash, shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("-v.npy", shop.X)
    write_csv(tmp_path / "-items.csv", id=shop.ids, category=shop.y)
    options = ["--items=-items.csv", "--labels", "category", "--mover", "ridge", "-o", "a model"]
    learned = words("fit", *options, "--", "-v.npy")
    assert "serves the original again" in follow(bash, learned, "apply", "promote", "rollback")


def test_promote_asks_for_what_the_way_back_needs(run, words, refused, bash, shop, tmp_path):
    """A file of two columns of vectors could be replaced without naming one, and then not rolled back."""
    pq.write_table(pa.table(columns(shop)), tmp_path / "v.parquet")
    source = [tmp_path / "v.parquet", "--vector=-v"]
    run("fit", *source, "--labels", "the class", "--mover", "ridge", "-o", tmp_path / "m")
    run("apply", tmp_path / "m", *source, "-o", "moved.parquet")
    assert "--vector" in refused("promote", tmp_path / "v.parquet", "moved.parquet")
    said = words("promote", *source, "moved.parquet")
    assert "serves the original again" in follow(bash, said, "rollback")


def test_the_commands_of_a_page(run, bash, shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(columns(shop)), "-it's.parquet")
    monkeypatch.setattr("hubless.report.index_report.advises_moving", lambda _: True)  # it is not the point
    source = ["./-it's.parquet", "--vector=-v", "--id=-id", "--labels", "the class"]
    (learn, *_) = run("report", *source, "-o", "page.html")["apply"]["steps"]
    bash(f"{learn['code']} --mover ridge")
    asked = [*shop.asking, "--query-labels", "category", "--parquet=-a b.parquet", "-o", "page.html"]
    page = run("report", *source, "--model", "model", *asked)
    for step in [*page["apply"]["steps"], *page["apply"]["undo"]]:
        bash(step["code"])
    assert page["command"].startswith("embedding-atlas './-a b.parquet' ")


def test_the_commands_of_a_page_from_pairs(run, library, tmp_path, monkeypatch):
    monkeypatch.chdir(library.folder)
    monkeypatch.setattr("hubless.report.index_report.advises_moving", lambda _: True)  # it is not the point
    given = [*library.source, *library.asking, "--pairs", "train.tsv", "-o", tmp_path / "p.html"]
    steps = run("report", *given)["apply"]["steps"]
    assert [step["code"].split()[1] for step in steps] == ["fit", "apply", "promote"]
    cli.parser().parse_args(words_of(steps[0]["code"]))
