"""Replays of a log in ten slices: what `hubless watch` does with judgements, clicks and poison.

A replay begins with SciFact's documents, as a file. Slice by slice, rows are added to the log and one step is
made; then the test claims, which no log has, are answered by the file that serves.
"""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hubless.evaluation import measure_change
from hubless.loop import watch_index
from hubless.neighbors import nearest
from hubless.paper.raw import this_machine
from hubless.repair.index_items import IndexItems
from hubless.repair.judgements import Judgements
from hubless.repair.learn_in_memory import learn_from_pairs
from hubless.retrieval import gains, ndcg
from hubless.stores.opening import open_store

from .curve_cells import Cells
from .index_data import Pairs, folder_of, scifact

FOLDER = Path(__file__).parent / "results" / "loop"
SLICES, SHOWN = 10, 10
TIMES = 5  # that a claim is asked, where clicks are simulated
NOISE = 0.1  # clicks on other documents, per look
RANDOM, DRAWS = 20, 2  # replays of random clicks, and of all others
FEWER = 1500  # documents of replays of random clicks: those that are judged, and others
TARGETS = 5  # documents that a poisoned slice pushes
RULES = 2  # of the loop; since 2, a promoted version also learns from the slice that confirmed it
WHERE = {"the first two": (1, 2), "the sixth": (6,), "the sixth and the seventh": (6, 7)}  # are poisoned


class ReplayKey(NamedTuple):
    """Which replay it is."""

    kind: str  # "good", "random" or "poison"
    log: str  # "judgements", "clicks", "clicks by rank", "clicks anywhere", or what the poison is
    where: str  # the slices that are poisoned
    draw: int


def plan(kind: str, quick: bool = False) -> list[ReplayKey]:
    """Return the replays of a kind."""
    draws = range(1 if quick else DRAWS)
    if kind == "good":
        return [ReplayKey(kind, log, "", draw) for log in ("judgements", "clicks") for draw in draws]
    if kind == "poison":
        return [
            ReplayKey(kind, log, where, 0) for where in [*WHERE][: 1 if quick else None] for log in POISONS
        ]
    names = ("clicks by rank", "clicks anywhere")
    return [ReplayKey(kind, names[draw % 2], "", draw) for draw in range(2 if quick else RANDOM)]


def run(kind: str, folder: Path, quick: bool = False) -> Cells:
    """Run the replays of a kind that are not finished."""
    cells = Cells(folder, ReplayKey, f"{kind}.jsonl")
    with folder_of("scifact", quick) as files:
        data = scifact(files)
    if quick:
        data = data._replace(train=data.train.take(np.arange(160)))
    for key in plan(kind, quick):
        if key not in cells.entries:
            raw = replay(data, key, 4 if quick else SLICES)
            cells.add(key, {**raw, "rules": RULES, "machine": this_machine()})
    return cells


# --- one replay ---------------------------------------------------------------------------------------------


def replay(data: Pairs, key: ReplayKey, n_slices: int = SLICES, seed: int = 0) -> dict[str, Any]:
    """Return what the loop did, and how well the test claims were answered after each step."""
    rng, started = np.random.default_rng([seed, key.draw, len(key.kind)]), perf_counter()
    data = fewer(data, rng) if key.kind == "random" else data
    order = np.array_split(rng.permutation(len(data.train.queries)), n_slices)
    with TemporaryDirectory() as folder:
        world = World(Path(folder), data)
        before, steps = world.scores(), []
        for number, part in enumerate(order, 1):
            rows = rows_of(world, key, number, part, rng)
            step = world.watch(rows)
            after = world.scores()
            steps.append(
                {
                    **{name: step[name] for name in ("decision", "why", "serving")},
                    "left out": step["state"]["left_out"],
                    "nDCG": float(after.mean()),
                    "change": change(before, after),
                    "over the original": change(world.first, after),
                }
            )
            before = after
    last: dict[str, Any] = {}
    if key.kind == "good" and key.log == "judgements":
        whole = data.train.take(np.concatenate(order))
        last = {"one fit on all": against(data, whole, before)}
    return {"status": "done", "original": float(world.first.mean()), "steps": steps, **last} | {
        "test queries": len(world.first),
        "documents": len(data.items.ids),
        "seconds": perf_counter() - started,
    }


def change(before: np.ndarray, after: np.ndarray) -> list[float]:
    """Return the mean change of nDCG@10 and its 95 % interval, paired by query."""
    measured = measure_change("nDCG@10", "all", before, after)
    return [measured.after - measured.before, measured.low, measured.high]


def against(data: Pairs, learned: Judgements, scores: np.ndarray) -> dict[str, Any]:
    """Return what one fit reaches, and how far the loop is ahead of it at the end."""
    model = learn_from_pairs(data.items, learned)
    fitted = answered(data.test, data.items.moved(model), data.items)
    return {"nDCG": float(fitted.mean()), "loop ahead": change(fitted, scores)}


def answered(test: Judgements, stored: np.ndarray, items: IndexItems) -> np.ndarray:
    """Return the nDCG@10 of each query."""
    relevant = test.rows(items.places)
    return ndcg(gains(nearest(test.queries, stored, 10, return_distance=False), relevant), relevant)


def fewer(data: Pairs, rng: np.random.Generator) -> Pairs:
    """Return the documents that are judged and others at random."""
    known = {item for part in (data.train, data.test) for relevant in part.relevant for item in relevant}
    mask = np.array([item in known for item in data.items.ids.tolist()])
    others = rng.permutation(np.flatnonzero(~mask))
    mask[others[: max(0, FEWER - int(mask.sum()))]] = True
    return data._replace(items=data.items.take(mask))


class World:
    """The files of one replay: documents, claims and a log that grows."""

    def __init__(self, folder: Path, data: Pairs) -> None:
        self.folder, self.data = folder, data
        np.save(folder / "docs.npy", data.items.vectors)
        np.save(folder / "queries.npy", data.train.queries)
        (folder / "docs.json").write_text(json.dumps(data.items.ids.tolist()))
        (folder / "queries.json").write_text(json.dumps(data.train.ids))
        self.first = self.scores()

    @property
    def served(self) -> np.ndarray:
        """The vectors that serve now."""
        return np.load(self.folder / "docs.npy")

    def scores(self) -> np.ndarray:
        """Return the nDCG@10 of each test claim, as the file that serves answers it."""
        return answered(self.data.test, self.served, self.data.items)

    def watch(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Add rows to the log, and make a step whose slice they are."""
        with (self.folder / "log.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        size = len({row["query"] for row in rows if row.get("clicked") or "item" in row})
        items = self.folder / "docs.json"
        index = open_store(self.folder / "docs.npy", items=items, metric="cosine")
        queries = open_store(self.folder / "queries.npy", items=self.folder / "queries.json")
        log, loop = self.folder / "log.jsonl", self.folder / "loop"
        return watch_index(index, log, loop, queries=queries, write=True, slice_size=size)


# --- rows of a log ------------------------------------------------------------------------------------------


def rows_of(
    world: World, key: ReplayKey, number: int, part: np.ndarray, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return the rows of a slice."""
    train = world.data.train
    if key.kind == "poison" and number in WHERE[key.where]:
        return POISONS[key.log](world.data, part, rng)
    if key.kind == "random":
        return clicked_rows(world, part, rng, looks_at=key.log == "clicks by rank")
    if key.log == "clicks":
        return clicked_rows(world, part, rng, by_relevance=True)
    return [
        {"query": train.ids[i], "item": item, "score": score}
        for i in part.tolist()
        for item, score in train.relevant[i].items()
    ]


def clicked_rows(
    world: World,
    part: np.ndarray,
    rng: np.random.Generator,
    *,
    looks_at: bool = True,
    by_relevance: bool = False,
) -> list[dict[str, Any]]:
    """Return searches with simulated clicks, of what serves now.

    A user looks at rank r with probability 1 / r, or with `looks_at=False` at all ranks alike, and clicks
    what is relevant, or with probability NOISE something else; without `by_relevance`, anything with
    probability .3, whatever it is.
    """
    train, ids = world.data.train, world.data.items.ids
    found = nearest(train.queries[part], world.served, SHOWN, return_distance=False)
    seen = 1 / np.arange(1, SHOWN + 1) if looks_at else np.full(SHOWN, 0.3)  # of each rank
    rows = []
    for i, near in zip(part.tolist(), found, strict=True):
        shown = ids[near].tolist()
        right = np.array([item in train.relevant[i] for item in shown])
        likes = np.where(right, 1.0, NOISE) if by_relevance else np.full(SHOWN, 0.3)
        for _ in range(TIMES):
            is_clicked = rng.random(SHOWN) < seen * likes
            clicked = [item for item, yes in zip(shown, is_clicked, strict=True) if yes]
            rows.append({"query": train.ids[i], "shown": shown, "clicked": clicked})
    return ending_a_slice(sorted(rows, key=lambda row: rng.random()))


def ending_a_slice(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return searches with one at the end that alone answers its query: there, all queries are answered."""
    last = next(row for row in reversed(rows) if row["clicked"])
    return [*(row for row in rows if row["query"] != last["query"]), last]


Poison = Callable[[Pairs, np.ndarray, np.random.Generator], list[dict[str, Any]]]


def shuffled(data: Pairs, part: np.ndarray, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return judgements of the claims of a slice, each with the answers of another claim."""
    others = np.roll(rng.permutation(part), 1)
    return [
        {"query": data.train.ids[i], "item": item, "score": 1}
        for i, j in zip(part.tolist(), others.tolist(), strict=True)
        for item in data.train.relevant[j]
    ]


def pushed(data: Pairs, part: np.ndarray, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return judgements that all claims are answered by the nearest of a few documents of an attacker."""
    targets = np.random.default_rng(1).choice(len(data.items.ids), TARGETS, replace=False)
    near = nearest(data.train.queries[part], data.items.vectors[targets], 1, return_distance=False)[:, 0]
    return [
        {"query": data.train.ids[i], "item": data.items.ids[targets[j]], "score": 1}
        for i, j in zip(part.tolist(), near.tolist(), strict=True)
    ]


def reversed_order(data: Pairs, part: np.ndarray, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return judgements that the document at rank 50 answers each claim."""
    rank = min(50, len(data.items.ids) - 1)
    near = nearest(data.train.queries[part], data.items.vectors, rank + 1, return_distance=False)[:, rank]
    return [
        {"query": data.train.ids[i], "item": data.items.ids[j], "score": 1}
        for i, j in zip(part.tolist(), near.tolist(), strict=True)
    ]


POISONS: dict[str, Poison] = {
    "answers of other claims": shuffled,
    f"{TARGETS} documents answer everything": pushed,
    "documents at rank 50": reversed_order,
}
