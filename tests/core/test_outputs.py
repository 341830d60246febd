"""Where output goes: what is refused at once, which links are followed, and errors of the system in words."""

import errno
import os
import subprocess
import sys
from unittest.mock import MagicMock

import pytest

from hubless.support import outputs
from hubless.support.outputs import check_output, real_path
from hubless.support.system_errors import explain


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    """A folder with a file, a folder, and links to each, to nothing and to themselves."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "inner").mkdir()
    links = {"to-file": "file", "to-inner": "inner", "dangling": "nowhere", "loop": "loop"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "real"),
    [
        ("new", "new"),
        ("file", "file"),
        ("deep/new", "deep/new"),
        ("inner/new", "inner/new"),
        ("to-file", "file"),
        ("to-inner/new", "inner/new"),
        ("inner/../new", "new"),
        ("missing/../new", "new"),
    ],
)
def test_what_can_be_written_is_left_as_it_is(folder, monkeypatch, given, real):
    monkeypatch.chdir(folder)
    before = names(folder)
    for path in (given, folder / given):
        assert check_output(path) == folder / real
    assert names(folder) == before
    assert names(folder / "inner") == []
    assert (folder / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("dangling", "dangling is a link to nowhere, where there is nothing. Remove the link, or give"),
        ("dangling/new", "dangling is a link to nowhere"),
        ("loop", "loop is a link to loop, where there is nothing. Remove the link"),
        ("file/new", "file is a file: .*file/new cannot be written in it. Give a new folder"),
        ("to-file/new", "file is a file: .* cannot be written in it"),
        ("n" * 250, "n: the name is too long for this disk. Give a shorter one"),
        ("deep/" + "n" * 250, "n: the name is too long for this disk. Give a shorter one"),
        ("/", "/ is a folder. Give a name in it"),
        ("/proc/new", "/proc/new: .*"),
    ],
    ids=lambda text: text[:20],
)
def test_what_cannot_be_written_is_refused_in_words(folder, path, words):
    before = names(folder)
    with pytest.raises(OSError, match=words) as refused:
        check_output(folder / path)
    assert "Errno" not in str(refused.value)
    assert names(folder) == before


# What a read-only folder, a read-only disk and a full disk answer; played, as root may write anywhere


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("step", ["open", "write"])
def test_a_disk_that_takes_nothing_is_found_at_once(tmp_path, monkeypatch, code, step):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code), str(tmp_path / "temporary"))

    def open_full(*arguments, **options):
        file = MagicMock()
        file.__enter__.return_value.write = refuse
        return file

    monkeypatch.setattr(outputs, "TemporaryFile", refuse if step == "open" else open_full)
    with pytest.raises(OSError, match=f"^{tmp_path / 'new'}: ") as refused:
        check_output(tmp_path / "new")
    assert type(refused.value) is type(OSError(code, ""))
    assert refused.value.errno is None  # it has its own words
    assert names(tmp_path) == []


@pytest.mark.faults
def test_a_process_that_is_killed_while_it_checks_leaves_nothing(tmp_path):
    code = (
        "import os, sys; from hubless.support import outputs\n"
        "made = outputs.TemporaryFile\n"
        "outputs.TemporaryFile = lambda **options: (made(**options), os._exit(9))\n"
        "outputs.check_output(sys.argv[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "new")], check=False)
    assert done.returncode == 9
    assert names(tmp_path) == []


def test_a_path_keeps_links_that_lead_nowhere(folder):
    assert real_path(folder / "to-inner") == folder / "inner"
    assert real_path(folder / "dangling") == folder / "dangling"
    assert real_path(folder / "dangling" / "new") == folder / "dangling" / "new"
    assert real_path(folder / "loop") == folder / "loop"


# Errors of the system

CODES = (
    *("EACCES", "EPERM", "ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "ENAMETOOLONG", "ELOOP"),
    *("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EXDEV", "EIO", "EBUSY", "ESTALE", "EMFILE", "ENFILE", "ENOMEM"),
    *("ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EINVAL", "ENOSYS"),
)


@pytest.mark.parametrize("name", CODES)
def test_an_error_of_the_system_says_which_file_why_and_what_to_do(name):
    code = getattr(errno, name)
    error = OSError(code, os.strerror(code), "some/file")
    said = explain(error)
    file, reason, *advice = said.split(": ", 1)[0], *said.split(": ", 1)[1].split(". ")
    assert file == "some/file"
    assert reason
    assert advice
    assert advice[-1].endswith(".")
    assert "Errno" not in said
    assert explain(error, "what was typed").startswith("what was typed: ")


def test_the_path_is_the_one_that_was_to_be_written():
    error = OSError(errno.EXDEV, "Invalid cross-device link", ".new.part", None, "new")
    assert explain(error).startswith("new: the two paths are on different disks.")
    assert explain(OSError(errno.ENOENT, "No such file", b"some/file")).startswith("some/file: ")


def test_errors_with_words_of_their_own_keep_them():
    assert explain(OSError("there is no Dask scheduler at x")) == "there is no Dask scheduler at x"
    library = OSError(errno.ENOENT, "Unable to open file (name = 'v.hdf5')")
    assert explain(library).startswith("Unable to open file (name = 'v.hdf5'): ")
    assert "Errno" not in explain(library)
    assert explain(OSError(errno.EINVAL, "odd.")).startswith("odd. Check ")
