"""Labeled objects in blocks, which are read as often as they are needed.

Learning uses three methods: `map` calls a function with every block, `call` calls one with results, `take`
brings a result to this process. Blocks are read here, one after another, or by workers of Dask (see `dask`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ..support.progress import step
from .block import Block, Look
from .memory import check_means

TOGETHER = 4  # results that are held before they are joined

Step: TypeAlias = Callable[..., Any]  # from a block, its number and what is shared to a result
Join: TypeAlias = Callable[[Sequence[Any]], Any]  # from results of consecutive blocks to that of all


class Objects(ABC):
    """Labeled objects in blocks."""

    name: str  # as a user would say it
    look: Look
    room: int  # bytes of objects that one process may hold beside a block

    @abstractmethod
    def map(
        self, function: Step, join: Join, *shared: Any, wanted: Sequence[int] | None = None, title: str = ""
    ) -> Any:
        """Return join([function(block, number, *shared), …]) over blocks, in their order, a few at a time.

        Parameters
        ----------
        function, join : functions that other processes can import
        shared : data, or results of `map` and `call`
        wanted : the numbers of the blocks that are needed, ascending, at least one; by default all
        title : what is done, as the name of a step

        Returns
        -------
        result : it may be on a worker, where `map` and `call` use it; `take` brings it here
        """

    @abstractmethod
    def call(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return function(*values), where the values, results of `map` and `call` or data, are."""

    @abstractmethod
    def take(self, result: Any) -> Any:
        """Return a result of `map` or `call` in this process."""

    def room_for_all(self) -> int:
        """Return the bytes that all objects may take in one process, which holds no block then."""
        return self.room

    def check_means(self, n_classes: int) -> None:
        """Refuse means of more classes than there is memory for, where that is known."""
        return

    def state(self) -> str:
        """Return a text that changes when the objects do, where that can be known."""
        return ""


class LocalObjects(Objects):
    """Objects that this process reads itself, block after block."""

    itemsize: int  # bytes of a number
    size: int  # rows of a block, at most
    n_blocks: int  # about, for progress bars
    memory: int  # the limit of this process, in bytes

    @abstractmethod
    def blocks(self, wanted: set[int] | None = None) -> Iterator[tuple[int, Block]]:
        """Return the wanted blocks with their numbers, which never change; a bad block says why it is bad."""

    def map(
        self, function: Step, join: Join, *shared: Any, wanted: Sequence[int] | None = None, title: str = ""
    ) -> Any:
        results: list[Any] = []
        n_read, n_blocks = 0, self.n_blocks if wanted is None else len(wanted)
        with step(title, n_blocks, "blocks") as reading:
            for number, block in self.blocks(None if wanted is None else {*wanted}):
                results.append(function(block, number, *shared))
                together = 2 if getattr(results[-1], "is_large", False) else TOGETHER
                results = [join(results)] if len(results) == together else results
                n_read += 1
                reading.update()
        if wanted is not None and n_read < len(wanted):
            raise changed(self.name)
        return join(results) if results else None

    def room_for_all(self) -> int:
        return 2 * self.room  # a block has the other half

    def check_means(self, n_classes: int) -> None:
        check_means(self.memory, self.look.n_columns, n_classes)

    def call(self, function: Callable[..., Any], *values: Any) -> Any:
        return function(*values)

    def take(self, result: Any) -> Any:
        return result


def changed(name: str) -> OSError:
    """Return the error for objects that are not those of the first look."""
    return OSError(f"{name} changed while it was read. Run it again.")


def read_part(part: str, read: Callable[[], Iterable[Block]]) -> Iterator[Block]:
    """Return the blocks of a part; where it cannot be read, the last block says why."""
    try:
        yield from read()
    except (OSError, ValueError) as error:
        yield Block.unreadable(part, error)
