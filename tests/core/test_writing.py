"""Files and folders written whole or not at all."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hubless.support import writing
from hubless.support.writing import new_file, new_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Stop(BaseException):
    """An end that is neither an Exception nor Ctrl-C."""


def write_half(path, error):
    with new_file(path) as file:
        file.write(b"half")
        raise error


def fill_half(folder, error, replace):
    with new_folder(folder, replace=replace) as part:
        fill(part, "half")
        raise error


# Files


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_appears_whole_at_the_end(tmp_path, sync):
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")
    with new_file(path, sync=sync) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("before", [None, b"old"])
def test_after_an_error_the_file_is_as_before(tmp_path, error, before):
    path = tmp_path / "table.csv"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(error):
        write_half(path, error)
    assert names(tmp_path) == ([] if before is None else ["table.csv"])
    assert before is None or path.read_bytes() == before


def test_a_name_that_cannot_be_taken_leaves_nothing(tmp_path):
    (tmp_path / "table.csv").mkdir()
    with pytest.raises(OSError, match="directory"), new_file(tmp_path / "table.csv") as file:
        file.write(b"new")
    assert names(tmp_path) == ["table.csv"]


@pytest.fixture
def known_name(monkeypatch):
    """A temporary name that somebody could guess."""
    monkeypatch.setattr(writing, "_temporary", lambda path, end="part": path.with_name(f".{path.name}.{end}"))


@pytest.mark.usefixtures("known_name")
def test_a_planted_link_is_never_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    for target in (victim, tmp_path / "missing"):
        link = tmp_path / ".table.csv.part"
        link.symlink_to(target)
        with pytest.raises(FileExistsError), new_file(tmp_path / "table.csv") as file:
            file.write(b"new")
        link.unlink()  # it is still there: what is not ours is not removed
    assert victim.read_bytes() == b"mine"
    assert names(tmp_path) == ["victim"]
    (tmp_path / ".model.part").symlink_to(tmp_path / "missing")
    with pytest.raises(FileExistsError), new_folder(tmp_path / "model"):
        pytest.fail("nothing may be written")
    assert names(tmp_path) == [".model.part", "victim"]


def test_a_link_put_there_meanwhile_is_not_followed(tmp_path, monkeypatch):
    """Rights are set on what was opened, not on what has its name by then."""
    victim, path, folder = tmp_path / "victim", tmp_path / "table.csv", tmp_path / "model"
    victim.write_bytes(b"mine")
    victim.chmod(0o600)
    path.write_bytes(b"old")
    path.chmod(0o644)
    opened = os.open

    def open_and_swap(name, flags, *mode):
        handle = opened(name, flags, *mode)
        if flags & os.O_EXCL:
            os.unlink(name)
            os.symlink(victim, name)
        return handle

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_and_swap)
        with new_file(path) as file:
            file.write(b"new")
    assert rights(victim) == 0o600
    folder.mkdir()
    folder.chmod(0o755)

    def swap(part):
        part.rename(tmp_path / "away")
        part.symlink_to(victim)

    with pytest.raises(OSError, match="link"), new_folder(folder, replace=True) as part:
        swap(part)
    assert (rights(victim), victim.read_bytes()) == (0o600, b"mine")
    assert folder.is_dir()


def test_temporary_names_are_hidden_random_and_in_the_same_folder(tmp_path):
    first, second = (writing._temporary(tmp_path / "table.csv") for _ in range(2))
    assert first != second
    assert first.parent == tmp_path
    assert first.name.startswith(".table.csv.")
    assert first.name.endswith(".part")


def test_a_file_has_the_permissions_of_any_new_file(tmp_path):
    with new_file(tmp_path / "new") as file:
        file.write(b"")
    (tmp_path / "plain").write_bytes(b"")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_what_replaces_a_file_has_its_permissions(tmp_path, mode):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"old")
    path.chmod(mode)
    with new_file(path) as file:
        file.write(b"new")
        file.flush()
        (part,) = set(tmp_path.iterdir()) - {path}
        assert rights(part) == mode  # while it is written, too
    assert (rights(path), path.read_bytes()) == (mode, b"new")
    with new_file(other, like=path):
        pass
    assert rights(other) == mode


# Folders


def test_what_replaces_a_folder_has_its_permissions(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir(0o700)
    with new_folder(folder, replace=True) as part:
        assert rights(part) == 0o700
    assert rights(folder) == 0o700


def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch):
    """There is no moment without it: the two exchange names."""
    folder, exchange, seen = tmp_path / "model", writing.exchange_names, []
    folder.mkdir()
    fill(folder, "old")

    def look(one, other):
        seen.append((read(one), read(other)))
        done = exchange(one, other)
        seen.append((read(one), read(other)))
        return done

    monkeypatch.setattr(writing, "exchange_names", look)
    monkeypatch.setattr(os, "rename", lambda *_: pytest.fail("two steps"))
    with new_folder(folder, replace=True) as part:
        fill(part, "new")
    assert seen == [("new", "old"), ("old", "new")]
    assert names(tmp_path) == ["model"]


def test_names_that_cannot_be_exchanged(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError):
        writing.exchange_names(tmp_path / "a", tmp_path / "missing")


def fill(folder, content):
    (folder / "inner").mkdir()
    (folder / "inner" / "a.txt").write_text(content)


def read(folder):
    return (folder / "inner" / "a.txt").read_text()


def test_a_folder_appears_whole_at_the_end(tmp_path):
    folder = tmp_path / "deep" / "model"
    with new_folder(folder) as part:
        fill(part, "new")
        assert not folder.exists()
    assert read(folder) == "new"
    assert names(folder.parent) == ["model"]


def test_a_folder_that_exists_is_not_changed_unless_it_may_be(tmp_path):
    fill(tmp_path, "old")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    for existing in (tmp_path / "inner", tmp_path / "dangling"):
        with pytest.raises(FileExistsError, match=r"exists already and is not changed"), new_folder(existing):
            pytest.fail("nothing may be written")
    assert read(tmp_path) == "old"


def test_a_folder_is_replaced(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    fill(folder, "old")
    with new_folder(folder, replace=True) as part:
        fill(part, "new")
        assert read(folder) == "old"
    assert read(folder) == "new"
    assert names(tmp_path) == ["model"]


def test_a_link_to_a_folder_is_replaced_and_what_it_names_is_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "model"
    target.mkdir()
    fill(target, "old")
    link.symlink_to(target)
    with new_folder(link, replace=True) as part:
        fill(part, "new")
    assert read(link) == "new"
    assert read(target) == "old"
    assert names(tmp_path) == ["model", "target"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("replace", [False, True])
def test_after_an_error_the_folder_is_as_before(tmp_path, error, replace):
    folder = tmp_path / "model"
    if replace:
        folder.mkdir()
        fill(folder, "old")
    with pytest.raises(error):
        fill_half(folder, error, replace)
    assert names(tmp_path) == (["model"] if replace else [])
    assert not replace or read(folder) == "old"


def test_the_old_folder_returns_where_the_new_one_cannot_take_its_name(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    fill(folder, "old")
    rename = os.rename

    def only_aside(source, target):
        if str(source).endswith(".part"):
            raise OSError("no room")
        rename(source, target)

    monkeypatch.setattr(writing, "exchange_names", lambda one, other: False)
    monkeypatch.setattr(os, "rename", only_aside)
    with pytest.raises(OSError, match="no room"), new_folder(folder, replace=True) as part:
        fill(part, "new")
    assert read(folder) == "old"
    assert names(tmp_path) == ["model"]


KILLED = """
import os, sys
from pathlib import Path
from hubless.support import writing

rename = os.rename

def aside_then_die(source, target):
    rename(source, target)
    os._exit(9)

os.rename, writing.exchange_names = aside_then_die, lambda one, other: False
with writing.new_folder(Path(sys.argv[1]), replace=True) as part:
    (part / "a.txt").write_text("new")
"""


@pytest.mark.faults
def test_a_process_killed_between_the_two_renames_leaves_both_folders_whole(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a.txt").write_text("old")
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False).returncode == 9
    old, new = (next(tmp_path.glob(f".model.*.{end}")) for end in ("old", "part"))
    assert len(names(tmp_path)) == 2
    assert (old / "a.txt").read_text() == "old"
    assert (new / "a.txt").read_text() == "new"


def test_everything_is_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    steps, fsync, rename = [], os.fsync, os.rename

    def recorded_sync(handle):
        steps.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    def recorded_rename(source, target):
        steps.append("rename")
        rename(source, target)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux shows the names of open files")
    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "rename", recorded_rename)
    with new_folder(tmp_path / "model") as part:
        fill(part, "new")
    assert sorted(steps[:2]) == ["a.txt", "inner"]
    assert steps[2:] == [part.name, "rename", tmp_path.name]
