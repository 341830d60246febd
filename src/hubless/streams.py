"""Rows of a host array that an accelerator works on, some at a time: data larger than its memory."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .threads import blocks

THREADS = 8  # that copy rows side by side: one cannot keep an accelerator busy


class Streamed:
    """A matrix on the host, read as arrays on the device.

    Parameters
    ----------
    host : NumPy array of shape (n, d)
    anchor : an empty array on the device, of the type that rows have there
    buffer : shape → host memory that the device reads fast, as an array of the device's library
    send : such a buffer → an array on the device
    """

    def __init__(
        self,
        host: np.ndarray,
        anchor: Any,
        buffer: Callable[[tuple[int, int]], Any],
        send: Callable[[Any], Any],
    ) -> None:
        self.host, self.anchor = host, anchor
        self.shape, self.dtype, self.ndim = host.shape, anchor.dtype, 2
        self._buffer, self._send = buffer, send

    def rows(self, part: slice) -> Any:
        """Some rows, on the device."""
        source = self.host[part]
        return self._copied(len(source), lambda own, out: np.copyto(out, source[own]))

    def take(self, index: np.ndarray) -> Any:
        """The rows with these numbers, on the device."""

        def gather(own: slice, out: np.ndarray) -> None:
            np.take(self.host, index[own], axis=0, out=out, mode="clip")  # "raise" would copy once more

        return self._copied(len(index), gather)

    def subset(self, index: np.ndarray) -> "Streamed":
        """The same with some of its rows."""
        return Streamed(self.host[index], self.anchor, self._buffer, self._send)

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """All rows, so many at a time, on the device; the next ones are fetched while these are worked on."""
        parts = list(blocks(self.shape[0], size))
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(self.rows, parts[0])
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                here = ahead.result()
                if following is not None:
                    ahead = pool.submit(self.rows, following)
                yield part, here

    def _copied(self, n: int, copy: Callable[[slice, np.ndarray], None]) -> Any:
        buffer = self._buffer((n, self.shape[1]))
        side_by_side(copy, np.asarray(buffer))
        return self._send(buffer)


def side_by_side(copy: Callable[[slice, np.ndarray], None], out: np.ndarray) -> None:
    """copy(rows, out[rows]) for all rows of `out`, on several threads."""
    parts = blocks(len(out), max(1, -(-len(out) // THREADS)))
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda own: copy(own, out[own]), parts))


def copy_rows(source: np.ndarray, out: np.ndarray) -> None:
    """out[:] = source, on several threads."""
    side_by_side(lambda own, some: np.copyto(some, source[own]), out)
