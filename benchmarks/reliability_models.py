"""Trials of what writes model folders: save, update, fit --memory, and fits whose Dask workers are killed."""

import hashlib
import os
import shutil
import signal
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import hubless
from hubless import MoveLabeled
from hubless.repair.repair import Repair
from hubless.testing.store_cases import sample

from .reliability_driver import Broken, Driver, check_trial, filled
from .reliability_trials import NOBODY, allow, chown

PLAN = {  # operation → faults
    "save": ("kill", "full disk", "read-only", "beside save"),
    "update": ("kill", "full disk", "read-only", "beside update"),
    "fit --memory": ("kill", "full disk", "read-only", "beside fit --memory"),
    "fit --dask": ("kill",),  # of a worker
}
PARTS, WIDTH = 5, 8


class ModelTrials:
    """Parts with labels, an old model and a batch to update it with."""

    def __init__(self, driver: Driver, home: Path, stack: ExitStack) -> None:
        self.driver, self.home, self.stack = driver, home, stack
        _, X, y, _ = sample(200, WIDTH)
        y = y.astype(str)
        self.inputs = home / "inputs"
        (self.inputs / "parts").mkdir(parents=True)
        for number, rows in enumerate(np.array_split(np.arange(len(X)), PARTS)):
            np.savez(self.inputs / "parts" / f"{number}.npz", vectors=X[rows], label=y[rows])
        np.savez(self.inputs / "batch.npz", vectors=X[:50] + 1, label=y[:50])
        for name, rows in (("old", X[:100]), ("new", X)):
            mover = MoveLabeled(1.0, keep_moments=True).fit(rows, y[: len(rows)])
            hubless.save(Repair(mover, "l2", "label"), self.inputs / name)
        self.undisturbed: dict[str, Any] = {}
        self.unforeseen: list[str] = []  # errors that came as a library raised them
        self.dask: Any = None

    def trial(self, verb: str, fault: str, share: float, number: int, disk: Path | None) -> None:
        """One trial: disturb an operation, look, run it again, look."""
        if verb == "fit --dask":
            self.killed_worker(number)
            return
        normal = self.normal(verb)
        if fault == "kill":
            how = {"signal": signal.SIGKILL}
            if number % 4 == 3:
                how |= {"after": share * normal["seconds"]}
            else:
                how |= {"at": max(1, round(share * normal["moments"]))}
            self.disturb(verb, how)
        elif fault == "full disk":
            assert disk is not None
            self.disturb(verb, {}, disk=disk, leave=int(share * normal["bytes"]))
        elif fault == "read-only":
            self.disturb(verb, {"at": round(share * normal["moments"]), "fault": "deny"})
        else:
            self.disturb(verb, {"twice": True})

    def fresh(self, verb: str, disk: Path | None = None) -> Path:
        """Return a folder with an old model in the place of the one to write; fit has none yet."""
        folder = (disk or self.home) / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if verb == "save":  # the others refuse to replace a model, or have none yet
            shutil.copytree(self.inputs / "old", folder / "model")
        return folder

    def job(self, verb: str, folder: Path) -> dict[str, Any]:
        out, labels = str(folder / "model"), ["--labels", "label"]
        if verb == "save":
            return {"verb": "save", "model": str(self.inputs / "new"), "target": out}
        if verb == "update":
            model, batch = str(self.inputs / "new"), str(self.inputs / "batch.npz")
            return {"verb": "command", "arguments": ["update", model, batch, *labels, "-o", out]}
        source = str(self.inputs / "parts")
        rest = ["--mover", "ridge", "--memory", "2GB", "--scratch", str(folder / "scratch"), "-o", out]
        return {"verb": "command", "arguments": ["fit", source, *labels, "--metric", "l2", *rest]}

    def normal(self, verb: str) -> dict[str, Any]:
        """Return moments, seconds, room and result of an operation that nothing disturbs."""
        if verb not in self.undisturbed:
            folder = self.fresh(verb)
            done = self.must(verb, folder)
            files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
            self.undisturbed[verb] = {
                "moments": done["said"][2],
                "seconds": done["seconds"],
                "bytes": sum(files) + 4096 * (len(files) + 4),
                "model": learned(folder / "model"),
                "names": {path.name for path in folder.iterdir()},
            }
        return dict(self.undisturbed[verb])

    def must(self, verb: str, folder: Path) -> dict[str, Any]:
        done = self.driver.run(self.job(verb, folder))[0]
        if done["code"] and "contains a model already" not in str(done["said"][-1]):  # it was done before
            raise Broken(f"{verb} without a fault: {done['said'][-1]}")
        return done

    def disturb(self, verb: str, how: dict[str, Any], disk: Path | None = None, leave: int = 0) -> None:
        folder = self.fresh(verb, disk)
        if how.get("fault") == "deny":
            if os.getuid() == 0:
                chown(folder, NOBODY)
                how = how | {"user": NOBODY}
            how = how | {"folder": str(folder)}
        scope: AbstractContextManager[None] = nullcontext() if disk is None else filled(disk, leave)
        with scope:
            results = self.driver.run(self.job(verb, folder) | how)
            self.check(verb, folder)
        if how.get("fault") == "deny":
            allow(folder)
        for done in results:
            check_trial(done)
            if done["code"] not in (0, 1, -signal.SIGKILL):
                self.unforeseen.append(str(done["said"][-1]))
        self.must(verb, folder)
        if learned(folder / "model") != self.normal(verb)["model"]:
            raise Broken("run again, it gives another model")
        left = {path.name for path in folder.iterdir()} - self.normal(verb)["names"]
        if left := {name for name in left if not name.startswith(".model.") and not name.endswith("-lock")}:
            raise Broken(f"left behind: {', '.join(sorted(left))}")

    def check(self, verb: str, folder: Path) -> None:
        """The model is the old one or the new one, whole; or `load` names the folder of the old one."""
        place, old = folder / "model", learned(self.inputs / "old")
        try:
            hubless.load(place)
        except FileNotFoundError as error:
            kept = [path for path in folder.glob(".model.*.old") if path.name in str(error)]
            if verb != "save" or [learned(path) for path in kept] == [old]:
                return
            raise Broken(f"the model is gone: {error}") from error
        except ValueError as error:
            raise Broken(f"the model cannot be loaded: {error}") from error
        if learned(place) not in (old, self.normal(verb)["model"]):
            raise Broken("the model is neither the old one nor the new one")

    def killed_worker(self, number: int) -> None:
        """A worker of a cluster is killed at an event of the fit; others do its work: the same result."""
        from tests.outofcore import test_dask_faults as faults

        if self.dask is None:
            self.dask = DaskFit(faults, self.home, self.stack)
        self.dask.trial(number)


class DaskFit:
    """A cluster whose workers are replaced when they die, and a fit on it."""

    def __init__(self, faults: Any, home: Path, stack: ExitStack) -> None:
        self.faults, self.home = faults, home
        rng = np.random.default_rng(0)
        y = np.minimum(rng.zipf(1.5, 4000), 30)
        X = rng.standard_normal((31, faults.D))[y] + rng.standard_normal((len(y), faults.D))
        self.data = X.astype(np.float32), y
        os.environ["DASK_LOGGING__DISTRIBUTED"] = "critical"  # of a worker that dies, all others would tell
        self.cluster = stack.enter_context(faults.running())
        stack.enter_context(faults.replacing(self.cluster))
        stack.enter_context(patched(faults.in_groups))
        quiet = [faults.Doom(home / f"step {step}") for step in range(faults.STEPS)]
        with faults.client_of(self.cluster), self.dooms(dict(enumerate(quiet))):
            self.wanted = faults.fit(self.data)
        self.events = [doom.n_events for doom in quiet]  # by step; fewer where few blocks have work

    def dooms(self, by_step: dict[int, Any]) -> "patched":
        return patched(lambda patch: self.faults.with_dooms(patch, by_step))

    def trial(self, number: int) -> None:
        """A worker is killed at one of the events that a step really has."""
        faults, rng = self.faults, np.random.default_rng(number)
        step = number % faults.STEPS
        shutil.rmtree(self.home / "doom", ignore_errors=True)
        doom = faults.Doom(self.home / "doom", {int(rng.integers(self.events[step])): None})
        with faults.client_of(self.cluster), self.dooms({step: doom}):
            found = faults.fit(self.data)
        if not np.array_equal(found, self.wanted):
            raise Broken("another result than without the kill")
        if doom.n_events <= max(doom.deaths):
            raise Broken("no worker was killed")


class patched:
    """Attributes that a function sets, until the end."""

    def __init__(self, change: Any) -> None:
        self.change, self.before = change, []

    def __enter__(self) -> None:
        self.change(self.set)

    def set(self, owner: Any, name: str, value: Any) -> None:
        self.before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def __exit__(self, *_: Any) -> None:
        for owner, name, value in reversed(self.before):
            setattr(owner, name, value)


def learned(folder: Path) -> str:
    """Return a hash of what a model has learned."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
