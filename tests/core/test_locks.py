"""A lock on a path: one process at a time, and free when that process is gone."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from hubless.support import locks
from hubless.support.locks import Locked, locked

HOLDER = """
import sys, time
from pathlib import Path
from hubless.support import locks
from hubless.support.locks import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()  # until it is closed, or this process is killed
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index.npy"


@pytest.fixture
def holder(path):
    """Another process that holds the lock of `path`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_lock_is_a_hidden_file_beside_the_path_while_it_is_held(path):
    with locked(path):
        assert [file.name for file in path.parent.iterdir()] == [".index.npy.hubless-lock"]
    assert list(path.parent.iterdir()) == []


def test_a_lock_is_freed_by_an_error(path):
    with pytest.raises(ZeroDivisionError), locked(path):
        raise ZeroDivisionError
    with locked(path):
        pass


def test_a_second_one_is_refused_and_the_first_keeps_its_lock(path):
    with locked(path):
        for _ in range(2):
            with pytest.raises(Locked, match=r"another process is working on .*index.npy"), locked(path):
                pytest.fail("two hold one lock")
        assert len(list(path.parent.iterdir())) == 1


def test_locks_of_two_paths_do_not_meet(path):
    with locked(path), locked(path.with_name("other.npy")):
        pass


def test_an_error_inside_is_not_taken_for_a_lock(path):
    with pytest.raises(BlockingIOError, match="inside"), locked(path):
        raise BlockingIOError("inside")


def test_a_second_process_is_refused_until_the_first_ends(path, holder):
    with pytest.raises(Locked, match="wait for it, or stop it"), locked(path):
        pytest.fail("two hold one lock")
    holder.communicate()  # closes its input: it ends
    with locked(path):
        pass


@pytest.mark.faults
def test_the_lock_of_a_killed_process_is_free(path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert [file.name for file in path.parent.iterdir()] == [".index.npy.hubless-lock"]  # left, and unheld
    with locked(path):
        pass
    assert list(path.parent.iterdir()) == []


@pytest.fixture
def replaced(path, monkeypatch):
    """A lock file that its owner removes, and the next process creates again, just after it is opened."""
    file, opened = path.with_name(".index.npy.hubless-lock"), os.open
    file.write_bytes(b"")

    def slow_open(*args):
        handle = opened(*args)
        monkeypatch.setattr(os, "open", opened)
        file.unlink()
        file.write_bytes(b"new")
        return handle

    monkeypatch.setattr(os, "open", slow_open)
    return file


def test_a_lock_on_a_removed_file_does_not_count(path, replaced):
    with locked(path):
        with pytest.raises(Locked), locked(path):  # the new file is the one that is held
            pytest.fail("two hold one lock")
        assert replaced.read_bytes() == b"new"


def test_the_lock_file_of_the_next_process_is_not_removed(path, replaced):
    locks._remove_unheld(path)
    assert replaced.read_bytes() == b"new"


def test_many_at_once_hold_it_one_by_one(path):
    inside, most, times = [0], [0], [0]
    guard = threading.Lock()

    def attempt():
        for _ in range(200):
            with suppress(Locked), locked(path):
                with guard:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    times[0] += 1
                with guard:
                    inside[0] -= 1

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert times[0] > 0
    assert list(path.parent.iterdir()) == []
