"""A million rows through each store: seconds and memory beside its own bulk load, while it is asked."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hubless import MoveLabeled, load, save
from hubless.paper.raw import this_machine, versions
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store

from . import index_stores
from . import reliability_clients as clients
from .curve_cells import Cells
from .memory import forget_peak, status
from .reliability_driver import place
from .reliability_faults import FOLDER, PEERS, commit

FILE = "loads.jsonl"
ROWS, COLUMNS, TINY = 1_000_000, 128, 3_000
QUIET = 5.0  # seconds of looking on while nothing happens, at least
ALONE = ("Qdrant Edge",)  # one process at a time can have it open
SWITCHES = ("promote", "rollback")
FORK = multiprocessing.get_context("fork")  # children have the server of PostgreSQL from this process
CANNOT = {
    "Qdrant, a folder of its Python client": "its client keeps all points as Python objects in memory, and "
    "writes each with a commit of its own; its makers advise against it beyond 20,000 points",
}


class LoadKey(NamedTuple):
    """Which cell it is."""

    store: str
    rows: int
    columns: int


class Load(NamedTuple):
    """How a store is made, asked and read by its own library."""

    make: Callable[[Path, np.ndarray], Any]
    client: Callable[[str, np.ndarray], clients.Ask]
    rows: Callable[[str], Iterator[Any]]


def npz(folder: Path, X: np.ndarray) -> Any:
    np.savez(folder / "items.npz", vectors=X)
    return open_store(folder / "items.npz", metric="l2")


def arrow(folder: Path, X: np.ndarray) -> Any:
    table = index_stores._arrow(X)
    import_module("pyarrow.feather").write_feather(table, folder / "items.arrow", compression="uncompressed")
    return open_store(folder / "items.arrow", metric="l2")


def hdf5(folder: Path, X: np.ndarray) -> Any:
    with import_module("h5py").File(folder / "items.hdf5", "w") as file:
        file["train"] = X
        file.attrs["distance"] = "euclidean"
    return open_store(folder / "items.hdf5")


def parts(folder: Path, X: np.ndarray) -> Any:
    (folder / "items").mkdir()
    table = index_stores._arrow(X)
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 10)):
        part = table.slice(rows[0], len(rows))
        import_module("pyarrow.parquet").write_table(part, folder / "items" / f"{number}.parquet")
    return open_store(folder / "items", metric="l2")


def faiss_ivf(folder: Path, X: np.ndarray) -> Any:
    index = import_module("faiss").index_factory(X.shape[1], f"IVF{max(4, int(len(X) ** 0.5))},Flat")
    index.train(X[:: max(1, len(X) // 200_000)])
    return index_stores._faiss(folder, X, index)


FAISS, WHOLE = (clients.faiss_client, clients.faiss_rows), clients.first_rows
LOADS = {
    ".npy": Load(index_stores.npy, WHOLE(clients.npy_rows), clients.npy_rows),
    ".npz": Load(npz, clients.npz_client, clients.npz_rows),
    ".parquet": Load(index_stores.parquet, WHOLE(clients.parquet_rows), clients.parquet_rows),
    "folder of 10 parts": Load(parts, WHOLE(clients.parquet_rows), clients.parquet_rows),
    ".arrow": Load(arrow, WHOLE(clients.arrow_rows), clients.arrow_rows),
    ".hdf5": Load(hdf5, WHOLE(clients.hdf5_rows), clients.hdf5_rows),
    "FAISS Flat": Load(index_stores.faiss_flat, *FAISS),
    "FAISS IVF": Load(faiss_ivf, *FAISS),
    "LanceDB": Load(index_stores.lancedb, clients.lance_client, clients.lance_rows),
    "pgvector": Load(index_stores.pgvector, clients.pg_client, clients.pg_rows),
    "Qdrant Edge": Load(index_stores.qdrant_edge, clients.edge_client, clients.edge_rows),
}


# --- one step, in a process of its own ----------------------------------------------------------------------


def apart(step: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return seconds, peak memory and result of a step; RuntimeError where it failed."""
    ours, theirs = FORK.Pipe()

    def work() -> None:
        try:
            forget_peak()
            began = time.monotonic()
            result = step(*arguments)
            ended = time.monotonic()
            theirs.send({"began": began, "ended": ended, "peak": status("VmHWM"), "result": result})
        except Exception as error:
            theirs.send({"error": f"{type(error).__name__}: {error}"})

    process = FORK.Process(target=work)
    process.start()
    theirs.close()
    try:
        done: dict[str, Any] = ours.recv()
    except EOFError:
        done = {"error": "its process was killed, perhaps for lack of memory"}
    process.join()
    if "error" in done:
        raise RuntimeError(f"{getattr(step, '__name__', 'a step')}: {done['error']}")
    return done


def make(name: str, folder: Path, data: Path) -> str:
    """Load all rows as the store's users do; return what they type for it."""
    store = LOADS[name].make(folder, np.load(data))
    if hasattr(store, "close"):
        store.close()
    return str(store.name)


def apply(source: str, model: Path) -> int:
    return int(apply_index(load(model), open_store(source, metric="l2"), "moved")["written"])


def promote(source: str) -> None:
    promote_index(open_store(source, metric="l2"), "moved")


def rollback(source: str) -> None:
    rollback_index(open_store(source, metric="l2"))


def check(name: str, source: str, data: Path, model: Path | None) -> int:
    """Return the number of rows that are right, all read by the store's own library."""
    X, mover = np.load(data, mmap_mode="r"), model and load(model)
    seen = np.zeros(len(X), dtype=np.int64)
    right = 0
    for ids, vectors in LOADS[name].rows(source):
        np.add.at(seen, ids, 1)
        wanted = X[ids] if mover is None else mover.move(X[ids])
        same = vectors == wanted if mover is None else np.isclose(vectors, wanted, rtol=1e-4, atol=1e-5)
        right += int(same.all(axis=1).sum())
    return right if (seen == 1).all() else -1


# --- all steps ----------------------------------------------------------------------------------------------


class Watch:
    """A client in a process of its own that asks all the while, from its first answer on."""

    def __init__(self, name: str, source: str, query: np.ndarray) -> None:
        self.stop, ready, (self.ours, theirs) = FORK.Event(), FORK.Event(), FORK.Pipe()
        arguments = (LOADS[name].client, source, query, self.stop, ready, theirs)
        self.process = FORK.Process(target=clients.keep_asking, args=arguments)
        self.process.start()
        if not ready.wait(600):
            raise RuntimeError(f"the client got no answer: {self.end()['first']}")

    def end(self) -> dict[str, Any]:
        self.stop.set()
        found: dict[str, Any] = self.ours.recv()
        self.process.join()
        return found


def gaps(moments: list[float], began: float, ended: float) -> dict[str, Any]:
    """Return how many answers came between two moments, and the longest time without one, in ms."""
    inside = [moment for moment in moments if began <= moment <= ended]
    before = [moment for moment in moments if moment < began][-1:]
    after = [moment for moment in moments if moment > ended][:1]
    around = [*(before or [began]), *inside, *(after or [ended])]
    return {"answers": len(inside), "longest_gap_ms": round(1000 * float(np.diff(around).max()), 1)}


def measure(name: str, rows: int, folder: Path) -> dict[str, Any]:
    """Return what the way of all rows through a store takes."""
    data, model = folder / "X.npy", folder / "model"
    (folder / "store").mkdir()
    made = apart(make, name, folder / "store", data)
    source, query = made["result"], np.load(data, mmap_mode="r")[0] + 0.1
    measured = alone if name in ALONE else watched
    entry = {"own load": _figures(made)} | measured(name, source, query, data, model)
    return entry | {"rows back": apart(check, name, source, data, None)["result"]}


def watched(name: str, source: str, query: np.ndarray, data: Path, model: Path) -> dict[str, Any]:
    """Return the steps while a client asks, and as long a time in which nothing happens."""
    watch, pause = Watch(name, source, query), QUIET if data.stat().st_size > 1 << 24 else 0.2
    try:
        steps = {"apply": apart(apply, source, model), "promote": apart(promote, source)}
        time.sleep(pause)
        moved = apart(check, name, source, data, model)["result"]
        steps["rollback"] = apart(rollback, source)
        time.sleep(pause)
        quiet = time.monotonic()
        time.sleep(max(pause, *(steps[step]["ended"] - steps[step]["began"] for step in SWITCHES)))
        calm = time.monotonic()
    finally:
        seen = watch.end()
    entry: dict[str, Any] = {
        step: _figures(done) | gaps(seen["moments"], done["began"], done["ended"])
        for step, done in steps.items()
    }
    entry |= {"quiet": gaps(seen["moments"], quiet, calm), "rows moved": moved}
    return entry | {"client": {key: seen[key] for key in ("different", "errors", "first")}}


def alone(name: str, source: str, query: np.ndarray, data: Path, model: Path) -> dict[str, Any]:
    """Return the steps of a store that a client must close before, and open again after them."""
    entry: dict[str, Any] = {"quiet": _first_answer(name, source, query)}
    entry["apply"] = _figures(apart(apply, source, model))
    for step, work in (("promote", promote), ("rollback", rollback)):
        figures = _figures(apart(work, source))
        opened = _first_answer(name, source, query)
        gap = round(1000 * figures["seconds"] + opened["longest_gap_ms"], 1)
        entry[step] = figures | {"answers": 0, "longest_gap_ms": gap}
        if step == "promote":
            entry["rows moved"] = apart(check, name, source, data, model)["result"]
    return entry


def _first_answer(name: str, source: str, query: np.ndarray) -> dict[str, Any]:
    """Return how long it takes to open a store and to get an answer."""
    done = apart(lambda: LOADS[name].client(source, query)())
    return {"answers": 1, "longest_gap_ms": round(1000 * (done["ended"] - done["began"]), 1)}


def _figures(done: dict[str, Any]) -> dict[str, Any]:
    return {"seconds": round(done["ended"] - done["began"], 3), "peak_bytes": done["peak"]}


def prepare(folder: Path, rows: int, columns: int) -> None:
    """Write the rows and a model for them; the model learns from a part."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    np.save(folder / "X.npy", X)
    few = X[:20_000]
    save(Repair(MoveLabeled(1.0).fit(few, np.arange(len(few)) % 10)), folder / "model")


def run(names: list[str], kept: Cells, rows: int, columns: int, again: bool = False) -> None:
    """Measure the stores that are not there yet."""
    if unknown := set(names) - set(LOADS):
        raise ValueError(f"no store is named {', '.join(sorted(unknown))}; known: {', '.join(LOADS)}.")
    missing = [name for name in names if again or LoadKey(name, rows, columns) not in kept.entries]
    if "pgvector" in missing:
        index_stores.postgres()  # here, so that it lives through all steps
    try:
        for name in missing:
            with place() as folder:
                prepare_apart(folder, rows, columns)
                entry = {"machine": this_machine(), "versions": versions(*PEERS), "commit": commit()}
                try:
                    entry |= {"status": "done", **measure(name, rows, folder)}
                except Exception as error:  # a store that cannot is a result too
                    entry |= {"status": "failed", "error": str(error)[:500]}
                kept.add(LoadKey(name, rows, columns), entry)
    finally:
        if index_stores.postgres.cache_info().currsize:
            index_stores.postgres().cleanup()
            index_stores.postgres.cache_clear()


def prepare_apart(folder: Path, rows: int, columns: int) -> None:
    """In a process of its own, so that this one stays small."""
    apart(prepare, folder, rows, columns)


def cells_of(folder: Path = FOLDER) -> Cells:
    """Return the raw cells of a folder."""
    return Cells(folder, LoadKey, FILE)
