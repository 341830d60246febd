"""Progress bars: by default shown only on a terminal, and removed at the end."""

from typing import Any


def progress_bar(progress: bool | None, total: float | None = None, **options: Any) -> Any:
    """Return a progress bar that is shown (True), hidden (False), or shown only on a terminal (None)."""
    from tqdm import tqdm

    hidden = None if progress is None else not progress
    return tqdm(total=total, disable=hidden, **{"leave": False, **options})
