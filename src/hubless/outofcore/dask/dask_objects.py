"""Labeled objects in blocks that the workers of Dask read: the other executor of `outofcore.learn`.

Results stay on the workers until `take` brings them here. If a worker dies, only time is lost: what it held
is computed again.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...neighbors.blocks import floats
from ...support.imports import need
from ...support.progress import step
from ..block import Block, Look
from ..objects import Join, Objects, Step
from .engine import as_array, as_labels, compute, delayed_blocks, is_result, join_tree

ROOM = 1 << 28  # bytes of objects that a worker may hold beside a block


class DaskObjects(Objects):
    """Blocks that workers read."""

    room = ROOM

    def __init__(
        self,
        blocks: Sequence[Any],
        name: str,
        look: Look,
        state: Callable[[], str] = str,
    ) -> None:
        """`blocks` are Delayed Blocks."""
        self.blocks, self.name, self.look, self._state = blocks, name, look, state

    def state(self) -> str:
        return self._state()

    def map(
        self, function: Step, join: Join, *shared: Any, wanted: Sequence[int] | None = None, title: str = ""
    ) -> Any:
        delayed, sent = need("dask", "dask").delayed, [_sent(value) for value in shared]
        numbers = range(len(self.blocks)) if wanted is None else wanted
        if not numbers:
            return None
        tasks = [delayed(function)(self.blocks[number], number, *sent) for number in numbers]
        with step(title, len(tasks), "blocks") as computing:
            return compute(join_tree(join, tasks), tasks, computing, stay=True)

    def call(self, function: Callable[..., Any], *values: Any) -> Any:
        return need("dask", "dask").delayed(function)(*map(_sent, values))

    def take(self, result: Any) -> Any:
        return compute(result) if is_result(result) else result


def _sent(value: Any) -> Any:
    """Return a result as it is, or data as one task, which a worker gets once and not with every block."""
    return value if is_result(value) else need("dask", "dask").delayed(value, pure=False, traverse=False)


def objects_of_arrays(X: Any, y: Any, *, skip_bad: bool = False) -> DaskObjects:
    """Return labeled objects of Dask arrays or data frames."""
    delayed, X = need("dask", "dask").delayed, as_array(X)
    pairs = zip(delayed_blocks(X), delayed_blocks(as_labels(y, X)), strict=True)
    blocks = [delayed(_block)(x, labels, f"block {i} of X") for i, (x, labels) in enumerate(pairs)]
    return DaskObjects(blocks, "X", Look(X.shape[1], skip_bad=skip_bad))


def _block(X: Any, y: Any, name: str) -> Block:
    """Return a block to learn from; where its vectors are not numbers, it says so."""
    try:
        X = floats(X)
    except ValueError as error:
        return Block.unreadable(name, ValueError(f"{name}: {error}"))
    return Block(name, X, y if hasattr(y, "dtype") else list(y))
