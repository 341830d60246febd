"""Untrusted text steers no terminal and adds no line, whichever verb prints it.

Each verb runs twice, with a hostile text and with a harmless one in all that it reads: names of files,
columns and classes, ids, texts, facts of a model, marks. What is printed differs in letters alone.
"""

import json
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubless import cli
from hubless.repair.apply import apply_index
from tests.cli.shops import D
from tests.saving.forging import edit_config

HOSTILE = "\x1b]0;title\x07\x1b[2J\r\nhubless: ok\u202e\x9b1m\u2028\x85\u2066\t\u200b\U000e0041\x7f"
HARMLESS = "x" * len(HOSTILE)


class World:
    """A folder in which a text is everywhere."""

    def __init__(self, folder, text):
        rng = np.random.default_rng(0)
        self.folder, self.text, self.column = folder, text, f"c{text}"
        folder.mkdir()
        centres, y = rng.standard_normal((3, D)), rng.integers(0, 3, 150)
        self.X = (2 * centres[y] + rng.standard_normal((150, D))).astype(np.float32)
        self.items = self.write("items", slice(0, 90), y)
        self.queries = self.write("queries", slice(90, 150), y)
        self.more = self.write("more", slice(40, 120), y)

    def write(self, name, rows, y):
        path = self.folder / f"{name}{self.text}.parquet"
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self.X[rows].reshape(-1)), D)
        names = [f"{row:03}{self.text}" for row in range(150)[rows]]
        classes = [f"{label}{self.text}" for label in y[rows]]
        columns = {"id": names, "v": vectors, "text": [f"{self.text} {name}" for name in names]}
        pq.write_table(pa.table({**columns, self.column: classes}), path)
        return path

    def filled(self, word):
        """Return a word of a command line with its names filled in."""
        names = {"ITEMS": self.items, "QUERIES": self.queries, "COLUMN": self.column}
        for name, value in {**names, "FOLDER": self.folder, "TEXT": self.text}.items():
            word = word.replace(name, str(value))
        return word

    def forge_model(self):
        """Put the text into every fact of a copy of the model that is a text, and add some."""

        def forge(config):
            facts = config["model"]["facts"]
            facts["learned"] |= {"mover": self.text, "chosen by": self.text, "column": self.column}
            facts["data"]["source"] = self.text
            facts["life"] = [{"what": f"added{self.text}", "count": 3, "fingerprint": self.text}]

        edit_config(shutil.copytree(self.folder / "model", self.folder / "forged"), forge)

    def forge_mark(self):
        """Put the text into the mark of a copy of the moved index."""
        copy = shutil.copy(self.folder / "moved.parquet", self.folder / "forged.parquet")
        table = pq.read_table(copy)
        meta = {**table.schema.metadata}
        ((key, mark),) = ((key, json.loads(value)) for key, value in meta.items() if b"hubless" in key)
        mark |= {"source": self.text, "model": self.text, "original": self.text}
        pq.write_table(table.replace_schema_metadata({**meta, key: json.dumps(mark)}), copy)


STEPS = {
    "fit": "fit ITEMS --labels COLUMN --mover ridge -o FOLDER/model",
    "fit in parts": "fit ITEMS --labels COLUMN --memory 1GB --mover ridge -o FOLDER/parts",
    "fit from queries": "fit ITEMS --queries QUERIES -o FOLDER/log",
    "doctor": "doctor ITEMS",
    "doctor with queries": "doctor ITEMS --queries QUERIES -k 5",
    "preview": "preview model ITEMS --queries QUERIES --text text -k 3",
    "evaluate": "evaluate model ITEMS --queries QUERIES --labels COLUMN",
    "evaluate missing classes": "evaluate model ITEMS --queries QUERIES --labels COLUMN --query-labels text",
    "evaluate a log": "evaluate model ITEMS --queries QUERIES",
    "evaluate a forged model": "evaluate forged ITEMS --queries QUERIES --labels COLUMN",
    "predict": "predict model QUERIES --source ITEMS -k 1",
    "report": "report ITEMS --labels COLUMN -o FOLDER/pageTEXT.html",
    "explain": "explain model",
    "explain a forged model": "explain forged",
    "report of a forged model": "report ITEMS --labels COLUMN --model forged --queries QUERIES -o p.html",
    "update": "update model QUERIES --labels COLUMN -o FOLDER/newTEXT",
    "update a forged model": "update forged QUERIES --labels COLUMN -o FOLDER/new",
    "merge": "merge forged FOLDER/other -o FOLDER/merged",
    "export": "export model numpy -o FOLDER/exportTEXT",
    "status of a forged mark": "status FOLDER/forged.parquet",
    "doctor of a forged mark": "doctor FOLDER/forged.parquet",
    "refuse a forged mark": "fit FOLDER/forged.parquet --labels COLUMN",
    "refuse to roll back": "rollback FOLDER/forged.parquet",
    "refuse a taken name": "apply model ITEMS -o forged.parquet",
    "refuse a column": "fit ITEMS --labels category",
    "refuse a column to show": "doctor ITEMS --text category",
    "refuse an id": "preview model ITEMS --like TEXT",
    "refuse a table": "doctor ITEMS --items QUERIES --id TEXT",
    "refuse a file": "status FOLDER/TEXT.npy",
    "refuse a source": "status FOLDER/TEXT",
    "refuse a model": "apply FOLDER/TEXT ITEMS -o x.parquet",
    "apply": "apply model ITEMS -o movedTEXT.parquet",
    "promote": "promote ITEMS movedTEXT.parquet",
    "status": "status ITEMS",
    "rollback": "rollback ITEMS",
}
NEW = ("new", "merged", "export")  # folders that must not exist


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The folder of the hostile text, and of the harmless one; models and marks are made by the library."""
    folder, made = tmp_path_factory.mktemp("worlds"), []
    for number, text in enumerate((HOSTILE, HARMLESS)):
        world = World(folder / f"world{number}", text)
        options = ["--labels", world.column, "--mover", "ridge", "-o"]
        assert cli.main(["fit", str(world.items), *options, str(world.folder / "model")]) == 0
        assert cli.main(["fit", str(world.more), *options, str(world.folder / "other")]) == 0
        apply_index(world.folder / "model", world.items, str(world.folder / "moved.parquet"))
        world.forge_model()
        world.forge_mark()
        made.append(world)
    return made


def check_alike(printed):
    """Check that what was printed has printable letters, and equally many lines."""
    assert len({text.count("\n") for text in printed}) == 1, printed
    for line in "".join(printed).split("\n"):
        assert line.isprintable(), line


@pytest.mark.parametrize("how", [[], ["--json"]], ids=["words", "json"])
def test_no_verb_prints_what_steers_a_terminal(worlds, capsys, monkeypatch, how):
    for step, line in STEPS.items():
        shown, codes = [], set()
        for world in worlds:
            monkeypatch.chdir(world.folder)
            for written in (path for part in NEW for path in world.folder.glob(f"{part}*")):
                shutil.rmtree(written)
            codes.add(cli.main([*map(world.filled, line.split()), *how]))
            shown.append(capsys.readouterr())
        assert codes == {1 if step.startswith("refuse") else 0}, (step, shown)
        check_alike([text.out for text in shown])
        check_alike([text.err for text in shown])
        if how and codes == {0}:
            json.loads(shown[0].out)


def test_one_class_is_printed_on_each_line(worlds, capsys):
    hostile, _ = worlds
    arguments = ["predict", hostile.folder / "model", hostile.queries, "--source", hostile.items]
    assert cli.main([*map(str, arguments)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert cli.main([*map(str, arguments), "--json"]) == 0
    classes = [row["class"] for row in json.loads(capsys.readouterr().out)]
    assert [line[0] for line in lines] == [name[0] for name in classes]
    assert {name[1:] for name in classes} == {HOSTILE}


def test_moved_lines_stay_json(worlds, move):
    hostile, _ = worlds
    given = {"id": HOSTILE, "vector": [0.5] * D, "lone": "\ud800"}
    code, out, err = move(hostile.folder / "model", json.dumps(given) + "\n")
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert out.rstrip("\n").isprintable()
    assert json.loads(out)["id"] == HOSTILE
    code, out, err = move(hostile.folder / "model", json.dumps([HOSTILE], ensure_ascii=False) + "\n")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.rstrip("\n").isprintable()


def test_usage_errors_are_printable(capsys):
    for arguments in ([HOSTILE], ["doctor", "v.npy", HOSTILE], ["doctor", "v.npy", "-k", HOSTILE]):
        with pytest.raises(SystemExit):
            cli.main(arguments)
        message = capsys.readouterr().err.partition("error: ")[2]
        assert message.rstrip("\n").isprintable()


def test_defects_are_printable_too(capsys, monkeypatch):
    def fail(_):
        raise RuntimeError(f"{HOSTILE} postgresql://me:secret@host/db")

    monkeypatch.setattr("hubless.repair.apply.index_status", fail)
    assert cli.main(["status", "v.npy"]) == 1
    said = capsys.readouterr().err
    assert said.rstrip("\n").isprintable()
    assert "secret" not in said
    monkeypatch.setenv("HUBLESS_TRACEBACK", "1")
    assert cli.main(["status", "v.npy"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert "in fail" in said
    assert all(line.isprintable() for line in said.split("\n"))
    assert "secret" not in said.replace('me:secret@host/db")', "")  # the line of this test


@pytest.mark.parametrize("password", ["my secret", "my\\ secret", "my\"' secret", "my\nsecret"])
def test_a_password_with_spaces_in_the_wrong_place_is_not_shown(capsys, tmp_path, monkeypatch, password):
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.ones((4, 2), np.float32))
    source = f"postgresql://me:{password}@host/db#t"
    for arguments in (
        ["status", "v.npy", f"--metric={source}"],
        ["promote", "v.npy", "w.npy", "--max-wait", source],
        ["promote", "v.npy", source],
        ["fit", "v.npy", "--items", source, "--labels", "c"],
        ["fit", "v.npy", "--labels", source],
        ["apply", source, "v.npy", "-o", "w.npy"],
    ):
        with suppress(SystemExit):
            assert cli.main(arguments) == 1
        said = capsys.readouterr().err
        assert "secret" not in said, arguments
        assert "me@host" in said, arguments


def test_warnings_are_printable_too(capfd, monkeypatch):
    """Warnings of libraries quote what they read: column names, classes, addresses."""

    def warn(_):
        warnings.warn(f"{HOSTILE} postgresql://me:secret@host/db", UserWarning, stacklevel=1)
        raise ValueError("the end")

    monkeypatch.setattr("hubless.repair.apply.index_status", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert cli.main(["status", "v.npy"]) == 1
    said = capfd.readouterr().err.split("\n")
    assert [line.partition(":")[0] for line in said] == ["hubless", "hubless", ""]
    assert said[0].startswith("hubless: warning: ")
    assert all(line.isprintable() and "secret" not in line for line in said)
