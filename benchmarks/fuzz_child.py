"""Read changed files in a process with limits, and watch what it does: `python -m benchmarks.fuzz_child`.

Reading must end, within the limits, well or with an error of ours of one line; it must not change a file,
start a process, connect to anything or run code of what it reads. Each case that breaks this is printed as
JSON. A crash ends this process: the number of the case is in the file `at`, so the caller knows which it was.
"""

import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from itertools import count
from pathlib import Path
from typing import Any

from hubless.stores.kinds import BUILT_IN
from hubless.stores.opening import class_of

from .fuzz_seeds import SECRET
from .fuzz_targets import TARGETS, Case, case, valid

MEMORY = 1 << 30  # bytes that reading may take, beside what the process has
PROCESSOR, PATIENCE = 10, 60  # seconds of the processor, and of the clock, that one case may take
LONGEST = 4000  # letters of a message
REFUSALS = (ValueError, OSError, ImportError)  # StoreError is a ValueError

# What Python reports (see "Audit events table" in its documentation) and reading must not do.
FORBIDDEN = (
    *("subprocess.", "socket.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.startfile", "pty."),
    *("pickle.", "shelve.", "urllib.", "http.", "ftplib.", "smtplib.", "ctypes.dlopen", "ctypes.dlsym"),
    *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
    *(
        "os.chown",
        "os.utime",
        "os.setxattr",
        "os.putenv",
        "shutil.",
        "tempfile.",
        "os.kill",
        "sys.addaudithook",
    ),
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """An audit hook that notes what must not happen while a case is read."""

    def __init__(self) -> None:
        self.is_on, self.seen = False, list[str]()
        installed = (sys.prefix, sys.base_prefix, str(Path(__file__).parent.parent))
        self.installed = tuple(os.path.realpath(path) for path in installed)
        sys.dont_write_bytecode = True  # of modules that are loaded when first needed: no reader writes that
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        writes = event == "open" and bool(arguments[2] & WRITING)
        runs = event == "exec" and not self._is_installed(arguments[0])
        if writes or runs or event.startswith(FORBIDDEN):
            self.seen.append(f"{event} {arguments!r:.300}")

    def _is_installed(self, code: Any) -> bool:
        """Say whether code is of an installed module, which is loaded when it is first needed."""
        file = code.co_filename  # "<string>" for what is made of a text
        is_there = os.path.isabs(file) and os.path.realpath(file).startswith(self.installed)
        return is_there or file.startswith("<frozen ")

    def events(self) -> list[str]:
        """Return what was noted since the last call."""
        noted, self.seen = self.seen, []
        return noted


def limit() -> None:
    """Bound the memory and the size of files of this process, from now on."""
    status = Path("/proc/self/status").read_text()
    used = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def write(content: Case, folder: Path) -> None:
    """Write the files of a case."""
    for name, data in content.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, bytes):
            file.write_bytes(data)
        elif data == "folder":
            file.mkdir()
        elif data == "pipe":
            os.mkfifo(file)
        else:
            file.symlink_to(file if data == "loop" else folder.parent / "canary")


def snapshot(root: Path) -> dict[str, Any]:
    """Return all files and folders below a folder, with their content."""
    found: dict[str, Any] = {}
    for place, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(place, name)
            is_plain = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(root))] = path.read_bytes() if is_plain else path.lstat().st_mode
    return found


def problem_of(error: BaseException, content: Case) -> dict[str, str] | None:
    """Return what is wrong with an error, None where it is one that users may see."""
    text = str(error)
    if not isinstance(error, REFUSALS):
        kind = "memory" if isinstance(error, MemoryError) else "exception"
    elif SECRET in "".join(traceback.format_exception(error)):
        kind = "secret"
    elif not text.isprintable() or not text:
        kind = "message"
    elif len(text) > LONGEST and "source.txt" not in content:  # what users type may be long
        kind = "long message"
    else:
        return None
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/hubless/" in f.filename]
    where = f"{Path(ours[-1].filename).stem}.{ours[-1].name}" if ours else "?"
    return {"kind": kind, "where": f"{type(error).__name__} in {where}", "text": f"{text[:300]!r}"}


def examine(name: str, content: Case, root: Path, watch: Watch, limited: bool = True) -> list[dict[str, str]]:
    """Read one case, within the limits of time; return what is wrong."""
    folder = root / "case"
    folder.mkdir()
    write(content, folder)
    before, found = snapshot(root), []
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR * limited)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * limited)
    watch.is_on = True
    try:
        TARGETS[name].read(folder, next(iter(content)))
    except BaseException as error:  # whatever it is, it is a result
        watch.is_on = False
        found = [problem] if (problem := problem_of(error, content)) else []
    finally:
        watch.is_on = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    found += [{"kind": "event", "where": event.split()[0], "text": event} for event in watch.events()]
    after = snapshot(root)
    if before != after:
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        found.append({"kind": "files", "where": "changed", "text": ", ".join(changed)})
    shutil.rmtree(folder)
    return found


def main(name: str, seed: str, first: str, last: str, seconds: str, work: str) -> None:
    """Examine cases until `last`, or until the time is over; then print how many."""
    warnings.simplefilter("ignore")
    root, end = Path(work, "files"), time.monotonic() + float(seconds)
    root.mkdir()
    (root / "canary").write_text("not yours")
    at, watch = os.open(Path(work, "at"), os.O_CREAT | os.O_WRONLY), Watch()
    os.chdir(root)
    for kind in BUILT_IN:  # modules are loaded when they are first needed, which runs code
        class_of(kind)
    for content in valid(name):
        problems = examine(name, content, root, watch, limited=False)
        if any(problem["kind"] in ("exception", "memory") for problem in problems):
            raise SystemExit(f"a valid example of {name} is refused: {problems}")
    limit()
    for number in count(int(first)):
        if number >= int(last) or time.monotonic() > end:
            break
        os.pwrite(at, f"{number:12d}".encode(), 0)
        for problem in examine(name, case(name, int(seed), number), root, watch):
            print(json.dumps({"case": number, **problem}), flush=True)
    print(json.dumps({"done": number - int(first)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
