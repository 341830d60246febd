"""One door to learning from objects that are not all in memory: arrays mapped from files, stores, Dask."""

import os
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays import is_dask
from ..distributed import learn as on_dask
from ..movers import Mover
from ..stores.opening import open_store
from ..stores.store import Store
from .memory import budget
from .sampling import check_max_pairs
from .sources import Arrays, OfStore
from .stream import Gathered, Plan, Source, gathered


def fit_large(
    mover: Any,
    X: Any,
    y: Any = None,
    *,
    max_pairs: Any = "auto",
    memory: Any = None,
    scratch: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    skip_bad: bool = False,
    progress: bool | None = False,
) -> Any:
    """Fit a mover to labeled objects that need not fit in memory.

    They are looked at once, brought together by class, in a file or by Dask, and learned from class by class.

    Parameters
    ----------
    mover : MoveLabeled, LabelRidge, Shrink, Scale or Stay
    X : array of shape (n, d), mapped from a file or not; or the path of a store, or a store
        What `hubless fit` takes: .npy, Parquet, folders of parts, an index, a table of a database. A Dask
        array or data frame is learned from by the cluster that the current client is connected to.
    y : array of shape (n,); of a store, the name of the column of labels
    max_pairs : "auto", int or None, default="auto"
        Pairs that are learned from at most: 50 per column, which is more than W needs, a number, or all. Of
        more, sources are sampled in proportion to their classes, none of which is left out; targets are
        always the nearest of the whole class.
    memory : int or str, default=None
        The most memory that the process shall use, as "2GB"; half of what the machine has by default. Workers
        of Dask have limits of their own.
    scratch : path, default=None
        Folder for the objects by class, as large as X, and for the results of parts. One that is given stays,
        and a run that was killed goes on there; else it is made where temporary files go, and removed. With
        Dask it is for the results of parts alone, and must be one that all workers see.
    random_state : int, default=0
        Of the sample.
    skip_bad : bool, default=False
        Leave parts out that cannot be read or learned from, and tell of them in `skipped_`; else they are
        refused by name.
    progress : bool or None, default=False
        Whether a bar is shown; None shows it on a terminal.

    Returns
    -------
    mover : the same, fitted, with
        n_pairs_ : how many pairs it learned from
        skipped_ : what was left out, as (part, why)
    """
    if not isinstance(mover, Mover):
        raise ValueError(
            f"what is fitted part by part is a mover, as MoveLabeled(); got {type(mover).__name__}."
        )
    mover._check()
    if mover._device() is not None:
        raise ValueError(f"device={mover._device()!r} plays no part here; leave it out, or fit in memory.")
    seed = check_seed(random_state)
    if is_dask(X):
        blocks = on_dask.blocks_of(X, y, skip_bad=skip_bad)
        pairs = check_max_pairs(max_pairs, blocks.n_columns)
        folder = None if scratch is None else Path(scratch).absolute()
        ways = on_dask.Ways(pairs, seed, folder, progress=progress)
        mover._fit_sums(*on_dask.learn(blocks, mover._lesson, ways))
        mover._keep_names(X)
        return mover
    source = source_of(X, y)
    plan = Plan(
        check_max_pairs(max_pairs, source.n_columns),
        budget(memory),
        None if scratch is None else Path(scratch),
        seed,
        skip_bad,
        progress,
    )
    mover._lesson(np.zeros(source.n_columns))  # refuses what cannot be learned so before anything is read
    with gathered(source, plan) as objects:
        learn(mover, objects)
    mover._keep_names(X)
    return mover


def learn(mover: Mover, objects: Gathered) -> None:
    """Fit a mover to objects that were gathered."""
    mover._fit_sums(objects.seen, objects.learn(mover._lesson(objects.seen.mean)))


def source_of(X: Any, y: Any) -> Source:
    """What objects are read from."""
    if isinstance(X, str | os.PathLike):
        X = open_store(X)
    if isinstance(X, Store):
        if not isinstance(y, str):
            raise ValueError(f"y must be the name of the column of labels of {X.name}; got {y!r}.")
        return OfStore(X, y)
    return Arrays(X if hasattr(X, "dtype") or scipy.sparse.issparse(X) else np.asarray(X), y)


def check_seed(seed: Any) -> int:
    """A whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise ValueError(f"random_state must be a whole number of at least 0; got {seed!r}.")
    return int(seed)
