"""hubless on Ray: python docs/recipe_ray.py fits, moves, and compares with a fit in memory."""

import json
from pathlib import Path
from time import perf_counter

import ray
import recipe_parts as parts

from hubless import MoveLabeled
from hubless.outofcore.block import Look
from hubless.outofcore.learn import Plan, fit
from hubless.outofcore.objects import Objects

TOGETHER = 8  # results that a task joins


def run(function, *values):
    return function(*values)


def task(function, *values):
    """Run a function as a task; values that are references are fetched where it runs."""
    return ray.remote(run).remote(function, *values)


class RayObjects(Objects):
    """Labeled objects in blocks (number, X, y), given by references; results stay in Ray's object store."""

    name, room = "the blocks", 1 << 26  # bytes of objects that a task may hold beside a block

    def __init__(self, blocks, n_columns, skip_bad=False):
        self.blocks, self.look = blocks, Look(n_columns, skip_bad=skip_bad)

    def map(self, function, join, *shared, wanted=None, title=""):
        """Let tasks work on blocks; results are joined in the order of the blocks, a few at a time."""
        sent = [value if is_reference(value) else ray.put(value) for value in shared]
        blocks = self.blocks if wanted is None else [self.blocks[number] for number in wanted]
        results = [task(parts.labeled, function, block, *sent) for block in blocks]
        while len(results) > 1:
            groups = [results[i : i + TOGETHER] for i in range(0, len(results), TOGETHER)]
            results = [task(lambda *group: join(group), *group) for group in groups]
        ray.wait(results)  # or blocks would be held for the next step as well
        return results[0]

    def call(self, function, *values):
        return task(function, *values)

    def take(self, result):
        return ray.get(result) if is_reference(result) else result


def is_reference(value):
    return isinstance(value, ray.ObjectRef)


def moved(blocks, mover):
    """Return references to the blocks moved; the mover, with W, goes to each machine once."""
    sent = ray.put(mover)
    return [task(parts.move, block, sent) for block in blocks]


def main(n_blocks=12):
    blocks = [task(parts.read, number) for number in range(n_blocks)]
    started, mover = perf_counter(), MoveLabeled()
    fit(mover, RayObjects(blocks, 64), Plan(max_pairs=None))
    seconds = perf_counter() - started
    return {"seconds": seconds, **parts.check(mover, ray.get(moved(blocks, mover)))}


if __name__ == "__main__":
    ray.init(runtime_env={"py_modules": [str(Path(parts.__file__))]})
    print(json.dumps({"ray": ray.__version__, **main()}))
