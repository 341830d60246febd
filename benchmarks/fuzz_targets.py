"""What is fuzzed: of each kind of untrusted input valid examples, how they are changed, who reads them."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from . import fuzz_seeds as seeds
from .fuzz_changes import change_archive, change_bytes, change_json, change_lines, change_safetensors

Case = dict[str, Any]  # files by name: bytes, or one of ODD
SECRET = seeds.SECRET.encode()
ODD = ("folder", "loop", "pipe", "link")  # a folder, a link to itself, a pipe, a link to a file elsewhere
Change = Callable[[Case, Random, list[Case]], Case]


class Target(NamedTuple):
    """One kind of input."""

    seeds: Callable[[], list[Case]]
    change: Change
    read: Callable[[Path, str], Any]  # of a folder and the name of the first file in it
    package: str = "hubless"  # without which it cannot be read


# --- how cases are changed


def change_file(how: Callable[..., bytes], name: str | None = None, odd: float = 0.004) -> Change:
    """Return a change of one file: the named one, or any; now and then it is not even a file."""

    def change(case: Case, rng: Random, known: list[Case]) -> Case:
        chosen = name or rng.choice(list(case))
        if rng.random() < odd:
            return {**case, chosen: rng.choice(ODD)}
        others = [other[chosen] for other in known if chosen in other]
        return {**case, chosen: how(case[chosen], rng, others)}

    return change


def change_source(case: Case, rng: Random, known: list[Case]) -> Case:
    """Change what a user typed; its password stays where a password is."""
    others = [other["source.txt"] for other in known]
    changed = change_bytes(case["source.txt"], rng, others)
    address, mark, table = changed.rpartition(b"#")
    safe = re.sub(rb"(?<!:)(?<!password=)" + SECRET, b"word", address) + mark + table.replace(SECRET, b"word")
    return {"source.txt": safe}


def change_model(case: Case, rng: Random, known: list[Case]) -> Case:
    """Change the configuration, the arrays (with their checksum, as a forger would) or the card."""
    where = rng.random()
    if where < 0.05:
        return change_file(change_bytes)(case, rng, known)
    if where < 0.6:
        return change_file(change_json, "config.json")(case, rng, known)
    arrays = change_safetensors(
        case["model.safetensors"], rng, [other["model.safetensors"] for other in known]
    )
    config = json.loads(case["config.json"])
    config["sha256"]["model.safetensors"] = hashlib.sha256(arrays).hexdigest()
    forged = {**case, "model.safetensors": arrays, "config.json": json.dumps(config).encode()}
    return change_file(change_json, "config.json")(forged, rng, known) if rng.random() < 0.2 else forged


def change_marks(case: Case, rng: Random, known: list[Case]) -> Case:
    """Change the file of marks, or one mark in it, which is JSON inside of JSON."""
    name = "v.npy.hubless.json"
    if rng.random() < 0.5:
        return change_file(change_json, name)(case, rng, known)
    marks = json.loads(case[name])
    content = next(iter(marks))
    marks[content] = change_json(marks[content].encode(), rng).decode(errors="replace")
    return {**case, name: json.dumps(marks).encode()}


# --- who reads them


def read_store(folder: Path, name: str, metric: str | None = None) -> None:
    """Read all that a store has, as `status`, `doctor` and `preview` do."""
    from hubless.repair.apply import index_status
    from hubless.stores.opening import open_store

    store = open_store(folder / name, metric=metric)
    facts = store.facts()
    index_status(store)
    store.state()
    ids: list[Any] = []
    for batch in store.batches(facts.columns):
        ids += batch.ids[:1].tolist()
    if ids:
        store.fetch(ids, facts.columns)
        store.search(np.zeros((1, facts.dimension), np.float32), 2)


def read_folder(folder: Path, name: str) -> None:
    """Read a folder of parts, with whatever lies beside it."""
    read_store(folder, Path(name).parts[0])


def read_items(folder: Path, name: str) -> None:
    """Read a table of items."""
    from hubless.stores.files.file_rows import read_table

    read_table(folder / name)


def read_judgements(folder: Path, name: str) -> None:
    """Read relevance judgements."""
    from hubless.repair.judgements import read_judgements

    read_judgements(folder / name)


def read_model(folder: Path, name: str) -> None:
    """Load a model and let it answer."""
    import hubless

    import_module("hubless.baselines")  # classes are loaded when they are first named
    model = hubless.load(folder, max_bytes=1 << 20)
    X = np.zeros((2, 4))
    if hasattr(model, "facts"):
        model.move(X, ["a", "b"], None if model.label is None else [0, 1])
    elif hasattr(model, "predict"):
        model.predict(X)
    repr(model)


def read_source(folder: Path, name: str) -> None:
    """Parse what a user typed, which connects to nothing yet."""
    from hubless.stores.opening import open_store

    store = open_store((folder / name).read_bytes().decode(errors="surrogateescape"))
    if re.search(f"//[^/]*:{seeds.SECRET}@", store.name.partition("#")[0]):
        raise AssertionError(f"the name of a store has the password: {store.name}")


@cache
def _model() -> Any:
    from hubless.movers import Shrink
    from hubless.repair.repair import Repair

    return Repair(Shrink(0.5).fit(seeds.vectors(), np.arange(seeds.ROWS) % 3), label="kind")


@cache
def _plain_model() -> Any:
    from hubless.movers import MoveLabeled
    from hubless.repair.repair import Repair

    return Repair(MoveLabeled().fit(seeds.vectors(), np.arange(seeds.ROWS) % 3))


def read_lines(folder: Path, name: str) -> None:
    """Move a stream of JSON lines."""
    from hubless.repair.move_stream import move_lines

    with (folder / name).open(encoding="utf-8") as stream:
        for line in move_lines(_model(), stream):
            line.encode()


def read_stream(folder: Path, name: str) -> None:
    """Move an Arrow stream."""
    import io

    from hubless.repair.move_stream import move_arrow

    with (folder / name).open("rb") as stream:
        move_arrow(_plain_model(), stream, io.BytesIO())


def read_checkpoint(folder: Path, name: str) -> None:
    """Load what learning in parts kept; a damaged file counts as missing."""
    from hubless.support.cache import load_arrays

    load_arrays(folder / name, ["A", "counts", "names"])


def read_raw(folder: Path, name: str) -> None:
    """Read raw results of experiments."""
    from hubless.paper import raw

    raw._folded.cache_clear()
    raw.load_all(folder)


def read_edge(folder: Path, name: str) -> None:
    """Read the settings and the mark of a shard, without the engine."""
    from hubless.stores.qdrant.qdrant_edge import QdrantEdge

    shard = QdrantEdge(folder)
    shard._dense()
    shard.mark()


def _items(suffix: str, how: Callable[..., bytes] = change_bytes) -> Target:
    return Target(partial(seeds.tables, suffix), change_file(how), read_items)


TARGETS = {
    "model": Target(seeds.models, change_model, read_model),
    "marks": Target(seeds.marks, change_marks, read_store),
    "journal": Target(seeds.journals, change_file(change_json, ".data.hubless-switch"), read_folder),
    "source": Target(seeds.sources, change_source, read_source, "psycopg"),
    "npy": Target(seeds.npy, change_file(change_bytes), read_store),
    "npz": Target(seeds.npz, change_file(change_archive), read_store),
    "parquet": Target(seeds.parquet, change_file(change_bytes), read_store, "pyarrow"),
    "arrow": Target(seeds.arrow, change_file(change_bytes), read_store, "pyarrow"),
    "hdf5": Target(seeds.hdf5, change_file(change_bytes), read_store, "h5py"),
    "faiss": Target(seeds.faiss, change_file(change_bytes), read_store, "faiss"),
    "usearch": Target(seeds.usearch, change_file(change_bytes), read_store, "usearch"),
    "hnswlib": Target(seeds.hnsw, change_file(change_bytes), partial(read_store, metric="l2"), "hnswlib"),
    "items.csv": _items(".csv"),
    "items.tsv": _items(".tsv"),
    "items.json": _items(".json", change_json),
    "items.jsonl": _items(".jsonl", change_lines),
    "items.txt": _items(".txt"),
    "items.npy": Target(seeds.labels_npy, change_file(change_bytes), read_items),
    "items.parquet": Target(
        partial(seeds.parquet, "t.parquet"), change_file(change_bytes), read_items, "pyarrow"
    ),
    "judgements": Target(seeds.judgements, change_file(change_bytes), read_judgements),
    "stream.jsonl": Target(seeds.lines, change_file(change_lines, odd=0), read_lines),
    "stream.arrow": Target(
        partial(seeds.arrow, "s.arrow", is_stream=True),
        change_file(change_bytes, odd=0),
        read_stream,
        "pyarrow",
    ),
    "checkpoint": Target(seeds.checkpoint, change_file(change_archive), read_checkpoint),
    "raw results": Target(seeds.raw_results, change_file(change_lines), read_raw),
    "qdrant edge": Target(seeds.edge, change_file(change_json), read_edge),
}


@cache
def valid(name: str) -> Sequence[Case]:
    """Return the valid examples of a target."""
    return tuple(TARGETS[name].seeds())


def case(name: str, seed: int, number: int) -> Case:
    """Return one changed example: the same for the same arguments."""
    rng, known = Random(f"{name} {seed} {number}"), list(valid(name))
    return TARGETS[name].change(rng.choice(known), rng, known)
