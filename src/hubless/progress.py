"""Progress bars: on a terminal, none in a pipe, and nothing left behind."""

from typing import Any

from tqdm import tqdm


def bar_of(progress: bool | None, total: int | None = None, **how: Any) -> Any:
    """A bar that is shown or not; None shows it on a terminal."""
    hidden = None if progress is None else not progress
    return tqdm(total=total, disable=hidden, leave=False, **how)
