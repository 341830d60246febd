"""What is the same on every engine: a block to read, a block moved, and a comparison with memory."""

import numpy as np

from hubless import MoveLabeled
from hubless.outofcore.block import Block


def labeled(function, block, *shared):
    """Call a function of hubless with a block (number, X, y), as the engine has it."""
    number, X, y = block
    return function(Block(f"block {number}", X, y), number, *shared)


def move(block, mover):
    """Return a block with its objects moved."""
    number, X, y = block
    return number, mover.move(X, y), y


def read(number):
    """Return a block. This one is made up: 200 classes, sizes by Zipf's law. Read yours from a file."""
    rng, centres = np.random.default_rng([1, number]), np.random.default_rng(0).standard_normal((200, 64))
    y = np.minimum(rng.zipf(1.3, 5_000), 200) - 1
    return number, centres[y] + rng.standard_normal((5_000, 64)), y


def check(mover, blocks):
    """Compare with a fit in memory: return the largest differences of W and of the moved blocks."""
    originals = [read(number) for number, _, _ in blocks]
    X, y = np.concatenate([X for _, X, _ in originals]), np.concatenate([y for _, _, y in originals])
    truth = MoveLabeled().fit(X, y)
    moved = np.concatenate([Z for _, Z, _ in blocks])
    assert np.allclose(mover.W_, truth.W_, rtol=1e-9, atol=1e-12)
    assert np.allclose(moved, truth.move(X), rtol=1e-9, atol=1e-9)
    return {
        "largest difference of W": float(abs(mover.W_ - truth.W_).max()),
        "largest difference of a moved object": float(abs(moved - truth.move(X)).max()),
    }
