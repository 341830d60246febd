"""Stores × operations × faults: how many trials of each held, one raw cell each."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from tqdm import tqdm

from hubless.paper.raw import this_machine, versions

from .curve_cells import Cells
from .reliability_driver import DISK, LARGER, ROOT, Driver, place, small_disk

FOLDER = Path(__file__).parent / "results" / "reliability"
FILE = "faults.jsonl"
PEERS = (
    *("pyarrow", "h5py", "faiss-cpu", "usearch", "hnswlib", "lancedb", "psycopg", "pgvector"),
    *("qdrant-client", "qdrant-edge-py", "sqlite-vec", "pysqlite3-binary", "duckdb"),
)
COUNT, QUICK = 20, 2
SWITCHES = 10  # promotes and rollbacks of a trial beside readers
STORES = (
    *("npy", "npz", "parquet", "arrow", "hdf5", "parts", "faiss-flat", "faiss", "faiss-ivf"),
    *("usearch", "hnswlib"),
    *("lance", "pgvector", "qdrant", "qdrant-server", "qdrant-edge", "sqlite", "duckdb"),
)
MODELS = "model"  # the row of operations on model folders
FAULTS = (
    *("kill", "full disk", "read-only", "lost connection", "clock set back"),
    *("beside apply", "beside promote", "beside rollback", "beside readers"),
    *("beside save", "beside update", "beside fit --memory"),
)
BESIDE = {  # operation → what is run at the same time
    "apply": ("apply", "promote"),
    "promote": ("promote", "rollback", "readers"),
    "rollback": ("rollback",),
}


class FaultKey(NamedTuple):
    """Which cell it is."""

    store: str
    operation: str
    fault: str


def plan(stores: Sequence[str] | None = None, faults: Sequence[str] | None = None) -> list[FaultKey]:
    """Return all cells of some stores and faults, or of all."""
    from .reliability_models import PLAN

    keys = []
    for store in STORES:
        for operation, others in BESIDE.items():
            possible = ["kill", *_of_kind(store), "clock set back", *(f"beside {other}" for other in others)]
            keys += [FaultKey(store, operation, fault) for fault in possible]
    keys += [FaultKey(MODELS, operation, fault) for operation, possible in PLAN.items() for fault in possible]
    for name, got, known in (("store", stores, (*STORES, MODELS)), ("fault", faults, FAULTS)):
        if unknown := set(got or ()) - set(known):
            raise ValueError(
                f"no {name} is named {', '.join(sorted(unknown))}; there are {', '.join(known)}."
            )
    return [
        key for key in keys if (not stores or key.store in stores) and (not faults or key.fault in faults)
    ]


def _of_kind(store: str) -> list[str]:
    """Return the faults that a store can have because of where it is."""
    in_folder = store not in ("pgvector", "qdrant-server")
    faults = ["full disk"] if in_folder else []
    faults += ["read-only"] if in_folder or store == "pgvector" else []
    return faults + ([] if in_folder else ["lost connection"])


def run(keys: Sequence[FaultKey], kept: Cells, count: int, again: bool = False) -> None:
    """Measure the cells that are not there yet."""
    missing = [key for key in keys if again or key not in kept.entries]
    driver = Driver()
    try:
        with tqdm(total=len(missing), desc="faults", leave=False, disable=None) as bar:
            for store, cells in groupby(missing, lambda key: key.store):
                with ExitStack() as stack:
                    trials = _trials_of(store, driver, stack)
                    disk = stack.enter_context(small_disk(LARGER if store == "qdrant-edge" else DISK))
                    for key in cells:
                        kept.add(key, measure(key, trials, count, disk))
                        bar.update()
    finally:
        driver.close()


def _trials_of(store: str, driver: Driver, stack: ExitStack) -> Any:
    home = stack.enter_context(place())
    if store == MODELS:
        from .reliability_models import ModelTrials

        return ModelTrials(driver, home, stack)
    from .reliability_trials import StoreTrials

    return StoreTrials(store, driver, home, _database(stack) if store == "pgvector" else None)


def _database(stack: ExitStack) -> Callable[[], Any]:
    from tests.stores.postgres import database, start

    stack.callback(start().cleanup)
    stack.callback(start.cache_clear)
    return partial(database, start())


def measure(key: FaultKey, trials: Any, count: int, disk: Path | None) -> dict[str, Any]:
    """Run the trials of a cell, at moments spread evenly over the operation."""
    machine, began = this_machine(), monotonic()
    entry: dict[str, Any] = {"machine": machine, "versions": versions(*PEERS), "commit": commit()}
    if key.fault == "full disk" and disk is None:
        return entry | {"trials": 0, "held": 0, "why": "this user may not mount a small disk"}
    broken: list[str] = []
    trials.unforeseen.clear()
    trial = _trial(key, trials, disk)
    for number in range(count):
        try:
            trial(number / max(1, count - 1), number)
        except Exception as error:  # whatever goes wrong is a result
            name = "" if type(error).__name__ == "Broken" else f"{type(error).__name__}: "
            broken.append(f"{name}{error}"[:500])
    entry |= {"trials": count, "held": count - len(broken), "seconds": round(monotonic() - began, 1)}
    entry |= {"broken": broken[0]} if broken else {}
    unforeseen = (
        {"count": len(trials.unforeseen), "first": trials.unforeseen[0][:300]} if trials.unforeseen else {}
    )
    return entry | ({"unforeseen": unforeseen} if unforeseen else {})


def _trial(key: FaultKey, trials: Any, disk: Path | None) -> Callable[[float, int], None]:
    """Return a function of the share of the operation, and of the number of the trial."""
    verb, fault = key.operation, key.fault
    if key.store == MODELS:
        return lambda share, number: trials.trial(verb, fault, share, number, disk)
    if fault == "beside readers":
        return lambda share, number: trials.beside_readers(SWITCHES)
    if fault.startswith("beside "):
        return lambda share, number: trials.beside(verb, fault.removeprefix("beside "))
    if fault == "full disk":
        return lambda share, number: trials.full_disk(verb, share, disk)
    one = {
        "kill": trials.kill,
        "read-only": trials.read_only,
        "lost connection": trials.lost_connection,
        "clock set back": trials.clock_back,
    }[fault]
    return lambda share, number: one(verb, share, number)


def commit() -> str | None:
    """Return the commit that is checked out, with a + where files were changed."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        return None
    return said.stdout.strip() or None


def cells_of(folder: Path) -> Cells:
    """Return the raw cells of a folder."""
    return Cells(folder, FaultKey, FILE)


def failures(kept: Cells) -> Iterator[str]:
    """Return the cells in which a trial did not hold, in words."""
    for key, entry in kept.entries.items():
        if entry["held"] < entry["trials"]:
            yield f"{' / '.join(key)}: {entry['held']} of {entry['trials']}: {entry.get('broken')}"
