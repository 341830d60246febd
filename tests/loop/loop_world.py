"""A small index whose queries are set apart from its items, so that little is needed to learn a lot."""

import hashlib
import json

import numpy as np

from hubless.loop import watch_index
from hubless.neighbors import nearest
from hubless.stores.opening import open_store

N_ITEMS, N_QUERIES, D, SLICE = 80, 400, 8, 40


class LoopWorld:
    """Items, queries and a log in a folder; each query is a distorted item, which is its answer."""

    def __init__(self, folder, index="items.npy", seed=0):
        rng = np.random.default_rng(seed)
        self.folder, self.index = folder, folder / index
        self.items = rng.standard_normal((N_ITEMS, D)).astype(np.float32)
        self.answers = rng.integers(0, N_ITEMS, N_QUERIES)
        distorted = self.items * np.geomspace(0.2, 3, D) + 2.0 * rng.standard_normal(D)
        noise = 0.2 * rng.standard_normal((N_QUERIES, D))
        self.queries = (distorted[self.answers] + noise).astype(np.float32)
        if index.endswith(".npy"):
            np.save(self.index, self.items)
        np.save(folder / "queries.npy", self.queries)
        self.log, self.loop, self.asked = folder / "log.jsonl", folder / "loop", 0

    def judge(self, answers=None, n=SLICE):
        """Add judgements of the next queries to the log: right ones, or those that are given."""
        rows = range(self.asked, self.asked + n)
        told = self.answers[self.asked : self.asked + n] if answers is None else answers
        self.write({"query": i, "item": int(item), "score": 1} for i, item in zip(rows, told, strict=True))
        self.asked += n

    def write(self, rows):
        """Add rows to the log."""
        with self.log.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def store(self):
        """Open the index."""
        return open_store(self.index)

    def watch(self, *, write=True, slice_size=SLICE, **options):
        """Make a step."""
        queries = self.folder / "queries.npy"
        how = {"queries": queries, "write": write, "slice_size": slice_size, **options}
        return watch_index(self.store(), self.log, self.loop, **how)

    def steps(self, n):
        """Make n steps with right judgements; return the last one."""
        for _ in range(n):
            self.judge()
            last = self.watch()
        return last

    def found(self, stored=None):
        """Return the share of queries whose nearest item is the right one, as the index is now."""
        stored = np.load(self.index) if stored is None else stored
        return (nearest(self.queries, stored, 1, return_distance=False)[:, 0] == self.answers).mean()

    def tree(self):
        """Return every file with a hash of its content."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }
