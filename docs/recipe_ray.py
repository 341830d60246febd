"""hubless on Ray: python docs/recipe_ray.py fits, moves, and compares with a fit in memory."""

import json
from pathlib import Path
from time import perf_counter

import ray
import recipe_parts as parts

from hubless import MoveLabeled
from hubless.large.fit import learn
from hubless.large.tasks import add_sums, add_surveys

TOGETHER = 8  # results that a task adds up


def task(function, *values, n=1):
    """A function as a task; values that are references are fetched where it runs."""
    return ray.remote(function).options(num_returns=n).remote(*values)


def tree(add, results):
    """The sum of results that are elsewhere."""
    while len(results) > 1:
        groups = [results[i : i + TOGETHER] for i in range(0, len(results), TOGETHER)]
        results = [task(lambda *some: add(some), *group) for group in groups]
    return ray.get(results[0])


class OnRay:
    """Labeled objects in blocks (number, X, y), given by references, as `learn` asks for them."""

    def __init__(self, blocks, max_pairs=None):
        self.blocks, self.max_pairs = blocks, max_pairs
        self.seen = tree(add_surveys, [task(parts.look, block) for block in blocks])

    def learn(self, lesson):
        """Split by class, brought together by Ray's object store, learned bin by bin, added up in a tree."""
        work = parts.plan(self.seen, lesson, self.max_pairs)
        told, n = ray.put(work), work.n_bins
        pieces = [task(parts.split, block, told, n=n) for block in self.blocks]
        bins = zip(*pieces, strict=True)
        return tree(add_sums, [task(parts.learn_bin, told, *own) for own in bins])


def moved(blocks, mover):
    """References to the blocks moved; the mover, with W, goes to each machine once."""
    told = ray.put(mover)
    return [task(parts.move, block, told) for block in blocks]


def main(n_blocks=8):
    blocks = [task(parts.read, number) for number in range(n_blocks)]
    started, mover = perf_counter(), MoveLabeled()
    learn(mover, OnRay(blocks))
    seconds = perf_counter() - started
    return {"seconds": seconds, **parts.check(mover, ray.get(moved(blocks, mover)))}


if __name__ == "__main__":
    ray.init(runtime_env={"py_modules": [str(Path(parts.__file__))]})
    print(json.dumps({"ray": ray.__version__, **main()}))
