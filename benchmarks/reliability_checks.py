"""What must hold of a store before, during and after an operation, as its own library sees it."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import hubless
from hubless.testing.store_cases import model_for, sample
from tests.repair.fault_driver import spare_the_disk
from tests.repair.fault_stores import KINDS

from .reliability_driver import Broken, Driver, check_trial

# operation → the state that it starts from, what may be served when it is disturbed, what is served after it
OPERATIONS = {
    "apply": ("original", {"original"}, "original"),
    "promote": ("applied", {"original", "moved"}, "moved"),
    "rollback": ("promoted", {"original", "moved"}, "original"),
}
DONE_ALREADY = ("moved already", "nothing to roll back", "serves its original", "does not exist")
WAIT = ("another process", "is being", "already accessed", "cannot be opened")


class StoreChecks:
    """A kind of store, a model for it, and a folder for its trials."""

    def __init__(self, name: str, driver: Driver, home: Path, database: Callable[[], Any] | None) -> None:
        self.kind, self.driver, self.home, self.database = KINDS[name], driver, home, database
        if name == "qdrant":
            spare_the_disk()
        _, self.X, y, _ = sample(self.kind.rows, 16)
        model = model_for(self.X, y, "l2")
        hubless.save(model, home / "model")
        self.moved, self.stored, self.model = model.move(self.X), None, model
        self.undisturbed: dict[str, dict[str, Any]] = {}  # by operation
        self.unforeseen: list[str] = []  # errors that came as an engine raised them

    @contextmanager
    def fresh(self, state: str, disk: Path | None = None) -> Iterator[Any]:
        """Give a new store in a state."""
        folder = (disk or self.home) / "store"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with self.database() if self.database else nullcontext() as address:
            self.address = address
            store = self.kind(folder, address, self.X)
            try:
                if state != "original":
                    self.must(store, "apply")
                    self.stored = in_order(*store.content())
                if state == "promoted":
                    self.must(store, "promote")
                yield store
            finally:
                store.close()

    def job(self, store: Any, verb: str, **more: Any) -> dict[str, Any]:
        job = {"verb": verb, "source": store.source, "options": store.options, "target": store.target}
        return job | {"model": str(self.home / "model"), "size": store.batch} | more

    def run(self, store: Any, verb: str, **more: Any) -> list[dict[str, Any]]:
        """Return what became of an operation, and of those beside it."""
        return self.driver.run(self.job(store, verb, **more))

    def must(self, store: Any, verb: str, **more: Any) -> dict[str, Any]:
        """Run an operation that nothing disturbs; a server may need a moment to see that a client is gone."""
        until = time.monotonic() + 60
        while True:
            done = self.run(store, verb, **more)[0]
            said = str(done["said"][-1])
            if done["code"] == 0:
                return done
            if not any(word in said for word in WAIT) or time.monotonic() > until:
                raise Broken(f"{verb} without a fault: {said}")
            time.sleep(0.02)

    # --- what must hold ------------------------------------------------------------------------------------

    def version(self, store: Any) -> str:
        """Return which version serves, whole; Broken where none does."""
        try:
            rows = in_order(*store.items())
        except Exception as error:
            raise Broken(f"the served name cannot be read: {type(error).__name__}: {error}") from error
        if rows is None or len(rows) != len(self.X):
            raise Broken(f"not every id is served once: {0 if rows is None else len(rows)} of {len(self.X)}")
        if np.array_equal(rows, self.X):
            return "original"
        if self.stored is not None and np.array_equal(rows, self.stored):
            return "moved"
        same = int((rows == self.X).all(axis=1).sum())
        raise Broken(
            f"{same} of {len(rows)} rows are the original ones, and the others are not those of one copy"
        )

    def expect(self, store: Any, allowed: set[str], when: str) -> None:
        if (got := self.version(store)) not in allowed:
            raise Broken(f"{when} the {got} version serves; expected {' or '.join(sorted(allowed))}")

    def check_copy(self, store: Any) -> None:
        """Green has every id once, with its vector moved."""
        try:
            rows = in_order(*store.content())
        except Exception as error:
            raise Broken(f"the copy cannot be read: {type(error).__name__}: {error}") from error
        self.check_rows(rows, "the copy")

    def check_rows(self, rows: np.ndarray | None, what: str) -> None:
        wanted = self.model.move(self.X)
        if rows is None or rows.shape != wanted.shape or not np.allclose(rows, wanted, rtol=1e-5, atol=1e-6):
            raise Broken(f"{what} does not have every row once, moved")

    def complete(self, store: Any, verb: str) -> None:
        """Run a disturbed operation again: it gets to its end, nothing is lost, and nothing is left."""
        _, _, end = OPERATIONS[verb]
        try:
            self.must(store, verb)
        except Broken as error:
            if not any(word in str(error) for word in DONE_ALREADY):
                raise
        self.expect(store, {end}, f"after {verb} was run again,")
        if verb == "apply":
            self.check_copy(store)
        self.must(store, "recover")
        self.expect(store, {end}, "after recover")
        self.check_nothing_left(store, store.names() - self.normal(verb)["names"])
        if verb == "promote":  # the original was kept
            self.must(store, "rollback")
            self.expect(store, {"original"}, "after a rollback")

    def check_usable(self, store: Any) -> None:
        """Whatever serves, the other version can serve too."""
        if self.version(store) == "moved":
            self.must(store, "rollback")
            self.expect(store, {"original"}, "after a rollback")
        else:
            self.must(store, "apply")
            self.check_copy(store)
            self.stored = in_order(*store.content())
            self.must(store, "promote")
            self.expect(store, {"moved"}, "after a promote")
        self.check_nothing_left(store, {name for name in store.names() if name.startswith(".")})

    def check_nothing_left(self, store: Any, names: set[str]) -> None:
        """Refuse what is there for no reason, except empty files that were locks."""
        own = {".lock", "-lock"}  # the engine's, and ours
        if left := sorted(name for name in names if name[-5:] not in own):
            raise Broken(f"left behind: {', '.join(left)}")

    def check_outcome(self, results: list[dict[str, Any]]) -> None:
        """Note errors that hubless did not put into words."""
        for done in results:
            check_trial(done)
            if done["code"] not in (0, 1, -signal.SIGKILL, -signal.SIGBUS):  # of a file that is mapped
                self.unforeseen.append(str(done["said"][-1]))

    def normal(self, verb: str) -> dict[str, Any]:
        """Return moments, seconds and names of an operation that nothing disturbs."""
        if verb not in self.undisturbed:
            with self.fresh(OPERATIONS[verb][0]) as store:
                done = self.must(store, verb)
                self.undisturbed[verb] = {
                    "moments": done["said"][2],
                    "seconds": done["seconds"],
                    "names": store.names(),
                }
                self.expect(store, {OPERATIONS[verb][2]}, f"after an undisturbed {verb}")
        return self.undisturbed[verb]


def in_order(ids: Any, vectors: np.ndarray) -> np.ndarray | None:
    """Return vectors by id; None where the ids are not 0, 1, …, each once."""
    order = np.argsort(np.asarray(ids, dtype=np.int64))
    return vectors[order] if np.array_equal(np.asarray(ids)[order], np.arange(len(order))) else None
