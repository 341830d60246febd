"""The other process of fault trials (tests/repair/fault_driver.py), and the places where stores are made."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
LONG = 300  # seconds that a job may take on a busy machine
ENGINES = (
    *("pyarrow.dataset", "pyarrow.parquet", "pyarrow.feather", "h5py", "faiss", "usearch.index", "hnswlib"),
    *("lancedb", "psycopg.sql", "pysqlite3.dbapi2", "sqlite_vec", "duckdb"),
    *("qdrant_client", "qdrant_edge", "hubless.cli.learn_verbs", "hubless.repair.update"),
)
DISK, LARGER = (
    48 << 20,
    600 << 20,
)  # bytes of a small disk, and of one for Qdrant Edge, which takes 130 MB a shard


class Broken(Exception):
    """A trial in which a promise did not hold."""


def check_trial(done: dict[str, Any]) -> None:
    """Refuse an outcome that is not of the fault: a process without rights could not load its own code."""
    said = str(done["said"][-1])
    if any(word in said for word in ("ModuleNotFoundError", "ImportError", "unknown encoding")):
        raise Broken(f"the trial itself failed: {said}")


class Driver:
    """A process that runs jobs, started when the first comes; one that hangs is replaced."""

    process: subprocess.Popen[str] | None = None

    def run(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what became of a job and of those beside it."""
        process = self.process or self._start()
        process.stdin.write(json.dumps(job) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        readable, _, _ = select.select([process.stdout], [], [], LONG)
        line = process.stdout.readline() if readable else ""  # type: ignore[union-attr]
        if not line:
            self.close()
            raise Broken(f"{job.get('verb')}: no answer after {LONG} seconds, or the driver itself ended")
        return list(json.loads(line))

    def _start(self) -> subprocess.Popen[str]:
        engines = [name for name in ENGINES if find_spec(name.partition(".")[0])]
        command = [sys.executable, "-W", "ignore", "-m", "tests.repair.fault_driver", *engines]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
        return self.process

    def close(self) -> None:
        """End the process, and those that it started."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            self.process = None


@contextmanager
def place() -> Iterator[Path]:
    """Give a folder that every user of the machine can enter, as a short path."""
    with TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@contextmanager
def small_disk(size: int = DISK) -> Iterator[Path | None]:
    """Give a folder on a small disk of its own, in memory; None where this user may not mount one."""
    with place() as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder)]
        try:
            is_mounted = subprocess.run(command, capture_output=True).returncode == 0
        except FileNotFoundError:
            is_mounted = False
        try:
            yield folder if is_mounted else None
        finally:
            if is_mounted:
                subprocess.run(["umount", "-l", str(folder)], check=True)


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder."""
    about = os.statvfs(folder)
    return about.f_bavail * about.f_frsize


@contextmanager
def filled(disk: Path, leave: int) -> Iterator[None]:
    """Fill a disk up to some bytes."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        size = max(0, free_bytes(disk) - leave)
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
    try:
        yield
    finally:
        filler.unlink()
