"""Trials of a kind of store: an operation is disturbed, and the store's own library looks at what is left."""

import os
import signal
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from .reliability_checks import OPERATIONS, StoreChecks, in_order
from .reliability_driver import Broken, filled, free_bytes

NOBODY = 65534  # a user without rights
DAY = 86_400


class StoreTrials(StoreChecks):
    """The faults; each method is one trial."""

    def disturb(
        self, verb: str, fault: dict[str, Any], around: Any = None, disk: Path | None = None, mend: Any = None
    ) -> None:
        """One trial: disturb an operation, look, run it again, look."""
        start, allowed, _ = OPERATIONS[verb]
        with self.fresh(start, disk) as store:
            fault = {name: value(store) if callable(value) else value for name, value in fault.items()}
            scope: AbstractContextManager[Any] = nullcontext() if around is None else around(store)
            with scope:
                results = self.run(store, verb, **fault)
                when = f"right after {fault_words(results[0])}"
                if not (around and store.needs_room):
                    self.expect(store, allowed, when)
            if mend is not None:
                mend(store)
            self.expect(store, allowed, when)
            self.check_outcome(results)
            self.complete(store, verb)

    def kill(self, verb: str, share: float, number: int) -> None:
        """At a share of all moments; every fourth by the clock, wherever it is then."""
        normal = self.normal(verb)
        if number % 4 == 3:
            fault = {"after": share * normal["seconds"]}
        else:
            fault = {"at": max(1, round(share * normal["moments"]))}
        self.disturb(verb, fault | {"signal": signal.SIGKILL})

    def full_disk(self, verb: str, share: float, disk: Path) -> None:
        """With a share of the room that the operation needs."""
        key = f"room for {verb}"
        if key not in self.undisturbed:
            with self.fresh(OPERATIONS[verb][0], disk) as store:
                before = free_bytes(disk)
                self.must(store, verb)
                self.undisturbed[key] = {"bytes": max(before - free_bytes(disk), 4 * 4096)}
        leave = int(share * self.undisturbed[key]["bytes"])
        self.disturb(verb, {}, around=lambda store: filled(disk, leave), disk=disk)

    def read_only(self, verb: str, share: float, number: int) -> None:
        """The folder, or the session of a server, becomes read-only at a share of all moments."""
        at = round(share * self.normal(verb)["moments"])
        if not self.kind.in_folder:
            self.disturb(verb, {"at": max(1, at // 2), "fault": "refuse writes"})
            return
        user = NOBODY if os.getuid() == 0 else None

        def give(store: Any) -> str:
            if user is not None:
                chown(store.folder, user)
            return str(store.folder)

        fault = {"at": at, "fault": "deny", "folder": give, "user": user}
        self.disturb(verb, fault, mend=lambda store: allow(store.folder))

    def lost_connection(self, verb: str, share: float, number: int) -> None:
        """At a share of all moments the server ends every session, or no longer answers."""
        if hasattr(self.kind, "ask"):
            at = max(1, round(share * self.normal(verb)["moments"]))
            self.disturb(verb, {"at": at, "fault": "disconnect", "database": lambda _: self.address})
            return
        if "requests" not in self.normal(verb):
            with self.fresh(OPERATIONS[verb][0]) as store:
                store.engine.seen.clear()
                self.must(store, verb)
                self.normal(verb)["requests"] = len(store.engine.seen)
        with self.fresh(OPERATIONS[verb][0]) as store:
            store.engine.seen.clear()
            store.engine.drop_after = int(share * self.normal(verb)["requests"])
            results = self.run(store, verb)
            store.engine.drop_after = None
            self.expect(store, OPERATIONS[verb][1], "right after the connection was lost")
            self.check_outcome(results)
            self.complete(store, verb)

    def clock_back(self, verb: str, share: float, number: int) -> None:
        """Times of files are older than before, or equal, after a row was changed; the clock is behind."""
        row, is_older = int(share * (len(self.X) - 1)), number % 2
        original, start = self.X, {"apply": "applied"}.get(verb, OPERATIONS[verb][0])
        with self.fresh(start) as store:
            before = times(store)
            try:
                if verb != "rollback":
                    self.X = original.copy()
                    self.X[row] += 1
                    store.change(row, self.X[row])
                set_times(store, before, DAY * 10**9 * is_older)
                if verb == "promote":
                    self.promote_changed(store)
                    return
                self.must(store, verb, back=DAY)
                self.expect(store, {"original"}, f"after {verb}")
                if verb == "apply":
                    self.check_copy(store)
            finally:
                self.X = original

    def promote_changed(self, store: Any) -> None:
        """Promote a copy of what was changed since: it is refused, or the changed row is moved too."""
        done = self.run(store, "promote", back=DAY)[0]
        if done["code"]:
            if "changed" not in str(done["said"][-1]):
                raise Broken(f"refused for another reason than the change: {done['said'][-1]}")
            self.expect(store, {"original"}, "after promote refused,")
            self.must(store, "apply", back=DAY)
            self.must(store, "promote", back=DAY)
        self.check_rows(in_order(*store.items()), "what serves")

    def beside(self, verb: str, other: str) -> None:
        """Two operations begin at once."""
        start = "applied" if (verb, other) == ("apply", "promote") else OPERATIONS[verb][0]
        with self.fresh(start) as store:
            results = self.run(store, verb, beside=[self.job(store, other)])
            self.check_outcome(results)
            self.expect(store, {"original", "moved"}, f"after {verb} beside {other}")
            self.check_usable(store)

    def beside_readers(self, times: int) -> None:
        """Two programs open the store again and again, and its own library reads all rows, while it is
        promoted and rolled back."""
        with self.fresh("applied") as store:
            until = self.home / "until"
            until.unlink(missing_ok=True)
            reader = self.job(store, "read", until=str(until))
            found: list[Exception] = []

            def look() -> None:
                try:
                    while not until.exists():
                        self.version(store)
                except Exception as error:
                    found.append(error)

            thread = threading.Thread(target=look, daemon=True)
            if not self.kind.alone:
                thread.start()
            more = {"beside": [reader, reader | {"opens": True}], "until": str(until), "times": times}
            results = self.run(store, "switch", **more)
            if thread.ident is not None:
                thread.join()
            self.check_outcome(results)
            if results[0]["code"] and not self.kind.alone:
                raise Broken(f"beside readers: {results[0]['said'][-1]}")
            if found:
                raise found[0]
            self.expect(store, {"original", "moved"}, "after switches beside readers")


def fault_words(done: dict[str, Any]) -> str:
    return "the kill" if done["code"] == -signal.SIGKILL else f"it said {str(done['said'][-1])[:200]!r}"


def chown(folder: Path, user: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user)


def allow(folder: Path) -> None:
    """Let everything in a folder be written again."""
    for path in (folder, *folder.rglob("*")):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)


def times(store: Any) -> dict[Path, int]:
    """Return when the files of a store were changed, in nanoseconds."""
    if not store.in_folder:
        return {}
    return {path: path.stat().st_mtime_ns for path in store.folder.rglob("*") if path.is_file()}


def set_times(store: Any, before: dict[Path, int], back: int) -> None:
    """Set the times of files to those of before, or earlier; those of new files to the earliest of before."""
    first = min(before.values(), default=0)
    for path in times(store):
        moment = before.get(path, first) - back
        os.utime(path, ns=(moment, moment))
