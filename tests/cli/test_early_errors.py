"""What can be checked is checked before the first long step, and the message says what to do.

Each row is a command that must be refused. Reading rows, learning, searching and building a page are replaced
by functions that end the test, so a row passes only where the refusal comes first; no file may change.
"""

import errno
import gc
import os
import shlex
import sys
from pathlib import Path

import pytest

from hubless.classifier_cv import MoveLabeledClassifierCV
from hubless.corrections import HoldHubs
from hubless.paper import demo, reproduce
from hubless.repair import learn_in_memory
from hubless.stores.files.file_store import FileStore
from tests.cli.early_rows import AFTER_READING, PACKAGES, ROWS
from tests.cli.shops import tree
from tests.cli.small_world import make_world


class Reached(BaseException):
    """A long step began."""


def reached(name):
    def long_step(*arguments, **options):
        raise Reached(name)

    return long_step


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    gc.collect()  # readers of Arrow files, which could not be closed where pyarrow is missing
    return folder


@pytest.fixture
def no_long_step(monkeypatch):
    """Ends the test where something is learned, searched for or computed."""
    for owner, name in (
        (MoveLabeledClassifierCV, "fit"),
        (HoldHubs, "fit"),
        (learn_in_memory, "score_held_out"),
        (demo, "compare"),
        (reproduce, "_work"),
        (FileStore, "search"),
    ):
        monkeypatch.setattr(owner, name, reached(f"{owner.__name__}.{name}"))


@pytest.fixture
def no_reading(monkeypatch):
    """Ends the test where rows are read."""
    for name in ("batches", "blocks", "fetch", "read_span"):
        monkeypatch.setattr(FileStore, name, reached(f"FileStore.{name}"))


def check_refused(refused, world, line, words, monkeypatch):
    monkeypatch.chdir(world)
    before = tree(world), sorted(world.rglob("*"))
    said = refused(*shlex.split(line))
    assert [word for word in words if word not in said] == [], said
    assert "Errno" not in said
    assert (tree(world), sorted(world.rglob("*"))) == before


@pytest.mark.usefixtures("no_long_step", "no_reading")
@pytest.mark.parametrize(("line", "words"), ROWS.values(), ids=[*ROWS])
def test_refused_before_any_row_is_read(refused, world, monkeypatch, line, words):
    check_refused(refused, world, line, words, monkeypatch)


@pytest.mark.usefixtures("no_long_step", "no_reading")
@pytest.mark.parametrize(("line", "package", "extra"), PACKAGES.values(), ids=[*PACKAGES])
def test_missing_packages_are_named_before_any_row_is_read(refused, world, monkeypatch, line, package, extra):
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    check_refused(refused, world, line, [f"pip install 'hubless[{extra}]'"], monkeypatch)


@pytest.mark.usefixtures("no_long_step")
@pytest.mark.parametrize(("line", "words"), AFTER_READING.values(), ids=[*AFTER_READING])
def test_refused_before_anything_is_learned(refused, world, monkeypatch, line, words):
    check_refused(refused, world, line, words, monkeypatch)


# --- errors of the system, which nobody foresaw


SYSTEM = {  # what the system says → words of the message
    errno.EACCES: ["permission denied", "Give a path that this user may read and write"],
    errno.EPERM: ["does not permit it", "change its owner"],
    errno.ENOENT: ["does not exist", "Check the path"],
    errno.ENOTDIR: ["is a file, not a folder", "Give a path"],
    errno.EISDIR: ["it is a folder", "Give the name of a file"],
    errno.ENAMETOOLONG: ["too long", "Give a shorter one"],
    errno.ENOSPC: ["the disk is full", "Free some space"],
    errno.EROFS: ["can only be read", "another disk"],
    errno.EIO: ["reported an error", "Check the disk"],
}


@pytest.mark.parametrize("code", SYSTEM, ids=errno.errorcode.get)
def test_an_error_of_the_system_is_a_sentence(refused, world, monkeypatch, code):
    monkeypatch.chdir(world)

    def fail(*arguments, **options):
        raise OSError(code, os.strerror(code), "some/file")

    monkeypatch.setattr("hubless.repair.doctor.diagnose", fail)
    said = refused("doctor", "v.npy")
    assert said.startswith("hubless: some/file: ")
    assert [word for word in SYSTEM[code] if word not in said] == [], said
    assert "Errno" not in said


@pytest.mark.parametrize("line", ["doctor {}.npy", "status {}.npy", "doctor v.npy --items {}"])
def test_a_name_that_is_too_long_is_said_so(refused, world, monkeypatch, line):
    monkeypatch.chdir(world)
    said = refused(*line.format("n" * 300).split())
    assert "the name is too long for this disk. Give a shorter one." in said
    assert "Errno" not in said


def test_a_disk_that_fills_while_a_model_is_saved_leaves_nothing(refused, world, tmp_path, monkeypatch):
    """The last bytes are refused, long after every check."""
    monkeypatch.chdir(world)
    write = Path.write_text

    def fill_up(path, *arguments, **options):
        if path.name == "config.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fill_up)
    line = f"update model q.npy --items q.csv --labels category -o {tmp_path / 'new'}"
    assert "the disk is full. Free some space" in refused(*line.split())
    assert list(tmp_path.iterdir()) == []
