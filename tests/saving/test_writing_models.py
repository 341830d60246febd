"""A model is written whole or not at all: full disks, kills, failures, and what may be replaced."""

import errno
import os
import resource
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

import hubless
from hubless.movers import Chain, MoveLabeled, Scale, Shrink, Smooth, Stay
from hubless.saving import folder as saving_folder
from hubless.support import writing
from tests.saving.test_saved_models import same_bits


@pytest.fixture
def saved(blobs, tmp_path):
    """A folder with a mover, and that mover."""
    X, y, _ = blobs
    mover = Chain([MoveLabeled(), Shrink()]).fit(X, y)
    hubless.save(mover, tmp_path / "model")
    return tmp_path / "model", mover


def check_same(folder, mover, blobs):
    """The folder holds this mover, and nothing is beside it."""
    _, y, queries = blobs
    assert os.listdir(folder.parent) == ["model"]
    assert same_bits(hubless.load(folder).move(queries, y[:25]), mover.move(queries, y[:25]))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_all_files_have_the_mode_that_the_user_gives_to_files(saved):
    modes = {stat.S_IMODE((saved[0] / name).stat().st_mode) for name in os.listdir(saved[0])}
    (saved[0].parent / "other").touch()
    assert modes == {stat.S_IMODE((saved[0].parent / "other").stat().st_mode)}


def test_missing_files_are_named(saved, tmp_path):
    folder, _ = saved
    (folder / "model.safetensors").unlink()
    for path, name in ((folder, "model.safetensors"), (tmp_path / "no", "config.json")):
        with pytest.raises(FileNotFoundError, match=f"{name} is missing. Give the folder that hubless.save"):
            hubless.load(path)
    (tmp_path / "file").write_text("text")
    with pytest.raises(FileNotFoundError, match="Give the folder"):
        hubless.load(tmp_path / "file")


def test_only_a_saved_model_is_replaced(saved, tmp_path):
    folder, mover = saved
    (tmp_path / "file").write_text("text")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.json").write_text("{}")
    (folder / "notes.txt").write_text("mine")
    for path, held in (
        (tmp_path / "file", "a file"),
        (tmp_path / "data", "config.json"),
        (folder, "notes.txt"),
    ):
        with pytest.raises(FileExistsError, match=f"{held}.* is not changed. Give a new or an empty folder"):
            hubless.save(mover, path)
    assert (tmp_path / "file").read_text() == "text"
    assert os.listdir(tmp_path / "data") == ["config.json"]
    assert len(os.listdir(folder)) == 4


def test_a_model_is_replaced_through_a_link_and_leaves_nothing_beside(saved, blobs, tmp_path):
    folder, _ = saved
    X, y, _ = blobs
    (tmp_path / "link").symlink_to(folder)
    hubless.save(Scale(0.1).fit(X, y), tmp_path / "link")
    hubless.save(Scale(0.2).fit(X, y), tmp_path / "deep" / "new")  # folders on the way are made
    assert hubless.load(folder).g == 0.1
    assert sorted(os.listdir(tmp_path)) == ["deep", "link", "model"]
    assert os.listdir(tmp_path / "deep") == ["new"]


@pytest.mark.parametrize("place", ["arrays", "card", "exchange", "first rename", "second rename"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_failure_leaves_the_old_model(place, error, saved, blobs, monkeypatch):
    folder, mover = saved
    X, y, _ = blobs
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    renames = []

    def fail(*arguments, **options):
        raise error("the disk is full")

    def rename(source, target):
        renames.append(target)
        if len(renames) == {"first rename": 1, "second rename": 2}[place]:
            raise error("the disk is full")
        os.replace(source, target)

    if place == "arrays":
        monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    elif place == "card":
        monkeypatch.setattr(saving_folder, "card", fail)
    elif place == "exchange":
        monkeypatch.setattr(writing, "exchange_names", fail)
    else:  # of a system that cannot exchange two names
        monkeypatch.setattr(writing, "exchange_names", lambda one, other: False)
        monkeypatch.setattr(writing.os, "rename", rename)
    with pytest.raises(error, match="the disk is full"):
        hubless.save(Scale().fit(X, y), folder)
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    check_same(folder, mover, blobs)


@pytest.mark.parametrize("can_exchange", [True, False])
def test_all_is_on_the_disk_before_the_name_changes(saved, blobs, monkeypatch, can_exchange):
    folder, _ = saved
    X, y, _ = blobs
    done, exchange = [], writing.exchange_names
    sync, rename = os.fsync, os.rename

    def note_sync(handle):
        done.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))))
        sync(handle)

    def note_rename(source, target):
        done.append(("rename", os.path.basename(target)))
        rename(source, target)

    def note_exchange(one, other):
        if can_exchange:
            done.append(("rename", os.path.basename(other)))
        return can_exchange and exchange(one, other)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", note_rename)
    monkeypatch.setattr(writing, "exchange_names", note_exchange)
    hubless.save(Scale().fit(X, y), folder)
    first = next(i for i, (what, _) in enumerate(done) if what == "rename")
    before = [name for _, name in done[:first]]
    assert sorted(before[:-1]) == ["README.md", "config.json", "model.safetensors"]
    assert before[-1].endswith(".part")
    assert [what for what, _ in done[first:]] == ["rename"] * (1 if can_exchange else 2) + ["sync"]
    assert done[-1] == ("sync", folder.parent.name)


@pytest.mark.faults
@pytest.mark.parametrize("name", ["README.md", "model.safetensors", "config.json"])
def test_full_disk_leaves_the_old_model(name, saved, blobs, monkeypatch):
    """A limit on the size of files acts like a full disk."""
    folder, mover = saved
    wide, many = np.random.default_rng(0).standard_normal((80, 60)), np.arange(80) % 8
    other = Smooth().fit(wide, many) if name == "model.safetensors" else Stay().fit(wide[:, :2], many)
    grown = {"config.json": "_text", "README.md": "card"}.get(name)
    if grown is not None:
        write = getattr(saving_folder, grown)
        monkeypatch.setattr(saving_folder, grown, lambda *values: write(*values) + " " * 20_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, before[1]))
    try:
        with pytest.raises(OSError, match=r"(File too large|could not be written)") as caught:
            hubless.save(other, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG or name == "model.safetensors"
    check_same(folder, mover, blobs)


def test_failed_sync_leaves_the_old_model(saved, blobs, monkeypatch):
    folder, mover = saved
    X, y, _ = blobs

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        hubless.save(Scale().fit(X, y), folder)
    check_same(folder, mover, blobs)


# --- killed while it is written -----------------------------------------------------------------------------

KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
import hubless
from hubless.movers import Scale

folder, X, y = Path(sys.argv[1]), np.random.default_rng(0).standard_normal((50, 20)), np.arange(50) % 5
models = [Scale(g).fit(X, y) for g in (0.25, 0.75)]
hubless.save(models[0], folder)
start = time.perf_counter()
hubless.save(models[0], folder)
took = time.perf_counter() - start
random.seed(0)
kills = 0
while kills < 12 or len(list(folder.parent.iterdir())) == 1:  # until one came while it was writing
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                hubless.save(model, folder)
    time.sleep(took * (2 + 3 * random.random()))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
    try:
        loaded = hubless.load(folder)
    except FileNotFoundError as error:
        hidden = Path(str(error).split("left the old model in ")[1].split(": rename")[0])
        hidden.rename(folder)
        loaded = hubless.load(folder)
    assert loaded.g in (0.25, 0.75), loaded
    assert np.array_equal(loaded.move(X), models[loaded.g > 0.5].move(X))
    beside = {p.suffix for p in folder.parent.iterdir() if p != folder}
    assert beside <= {".part", ".old"}, beside
print(kills)
"""


@pytest.mark.faults
def test_kill_leaves_the_old_or_the_new_model(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "model")], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 12


def test_kill_between_the_renames_is_reported(saved):
    folder, _ = saved
    folder.rename(folder.with_name(".model.12345678.old"))
    with pytest.raises(FileNotFoundError, match=r"left the old model in .*\.model\.12345678\.old: rename"):
        hubless.load(folder)


def test_newest_of_several_left_behind_is_named(saved):
    """One that is being removed cannot be used."""
    folder, _ = saved
    ages = {".model.99999999.old": 100, ".model.11111111.old": 50, ".other.1.old": 10, ".model.5.old": 1}
    for name, age in ages.items():
        shutil.copytree(folder, folder.with_name(name))
        for file in folder.with_name(name).iterdir():
            os.utime(file, (1e9 - age, 1e9 - age))
    (folder.with_name(".model.5.old") / "model.safetensors").unlink()
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"left the old model in .*\.model\.11111111\.old: rename"):
        hubless.load(folder)
