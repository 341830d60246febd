"""hubless on Spark: python docs/recipe_spark.py fits, moves, and compares with a fit in memory."""

import json
import os
import sys
from operator import add
from pathlib import Path
from time import perf_counter

import recipe_parts as parts

from hubless import MoveLabeled
from hubless.large.fit import learn
from hubless.large.tasks import add_surveys


class OnSpark:
    """Labeled objects in an RDD of blocks (number, X, y), as `learn` asks for them."""

    def __init__(self, blocks, max_pairs=None):
        self.blocks, self.max_pairs = blocks, max_pairs
        self.seen = blocks.map(parts.look).treeReduce(lambda *two: add_surveys(two))

    def learn(self, lesson):
        """Split by class, brought together by Spark's own shuffle, learned bin by bin, added up in a tree."""
        work = parts.plan(self.seen, lesson, self.max_pairs)
        told = self.blocks.context.broadcast(work)
        pieces = self.blocks.flatMap(lambda block: enumerate(parts.split(block, told.value)))
        bins = pieces.groupByKey(work.n_bins, int)  # bin b is partition b
        return bins.map(lambda bin: parts.learn_bin(told.value, *bin[1])).treeReduce(add)


def moved(blocks, mover):
    """The blocks moved; the mover, with W, goes to each machine once."""
    told = blocks.context.broadcast(mover)
    return blocks.map(lambda block: parts.move(block, told.value))


def main(context, n_blocks=8):
    blocks = context.parallelize(range(n_blocks), n_blocks).map(parts.read)
    started, mover = perf_counter(), MoveLabeled()
    learn(mover, OnSpark(blocks))
    seconds = perf_counter() - started
    return {"seconds": seconds, **parts.check(mover, moved(blocks, mover).collect())}


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run in the Python that has hubless
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.addPyFile(str(Path(parts.__file__)))
    print(json.dumps({"spark": spark.version, **main(spark.sparkContext)}))
    spark.stop()
