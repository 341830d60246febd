"""hubless on Spark: python docs/recipe_spark.py fits, moves, and compares with a fit in memory."""

import json
import os
import sys
from pathlib import Path
from time import perf_counter

import recipe_parts as parts

from hubless import MoveLabeled
from hubless.outofcore.block import Look
from hubless.outofcore.learn import Plan, fit
from hubless.outofcore.objects import Objects

TOGETHER = 8  # results that a task joins


class SparkObjects(Objects):
    """Labeled objects in an RDD of blocks (number, X, y), numbered from 0."""

    name, room = "the RDD", 1 << 26  # bytes of objects that the driver and each task may hold beside a block

    def __init__(self, blocks, n_columns, skip_bad=False):
        self.blocks, self.look = blocks, Look(n_columns, skip_bad=skip_bad)

    def map(self, function, join, *shared, wanted=None, title=""):
        """Let tasks work on blocks; results are joined in the order of the blocks, a few at a time."""
        sent, wanted = self.blocks.context.broadcast(shared), wanted and {n: i for i, n in enumerate(wanted)}
        blocks = self.blocks if wanted is None else self.blocks.filter(lambda block: block[0] in wanted)
        results = blocks.map(
            lambda block: (
                wanted[block[0]] if wanted else block[0],
                parts.labeled(function, block, *sent.value),
            )
        )
        n = len(wanted) if wanted else self.blocks.getNumPartitions()
        while n > TOGETHER:
            groups = results.map(lambda result: (result[0] // TOGETHER, result)).groupByKey()
            results, n = groups.mapValues(lambda group: joined(join, group)), -(-n // TOGETHER)
        return joined(join, results.collect())

    def call(self, function, *values):
        return function(*values)

    def take(self, result):
        return result


def joined(join, results):
    """Join results, given with their places."""
    return join([result for _, result in sorted(results, key=lambda one: one[0])])


def moved(blocks, mover):
    """Return the blocks moved; the mover, with W, goes to each machine once."""
    sent = blocks.context.broadcast(mover)
    return blocks.map(lambda block: parts.move(block, sent.value))


def main(context, n_blocks=12):
    blocks = context.parallelize(range(n_blocks), n_blocks).map(parts.read)
    started, mover = perf_counter(), MoveLabeled()
    fit(mover, SparkObjects(blocks, 64), Plan(max_pairs=None))
    seconds = perf_counter() - started
    return {"seconds": seconds, **parts.check(mover, moved(blocks, mover).collect())}


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run in the Python that has hubless
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.addPyFile(str(Path(parts.__file__)))
    print(json.dumps({"spark": spark.version, **main(spark.sparkContext)}))
    spark.stop()
