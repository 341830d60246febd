"""`fit_large`: one function for objects that are not all in memory: mapped arrays, stores, Dask."""

import os
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from ..arrays.devices import is_on_engine
from ..arrays.types import ArrayLike
from ..movers import Mover
from ..stores.checks import check_outside
from ..stores.opening import open_store
from ..stores.store import Store
from ..support.progress import reports_steps
from .checkpoints import scratch_folder
from .dask.dask_objects import objects_of_arrays
from .learn import Plan, column_names, fit
from .memory import budget
from .objects import Objects
from .sampling import check_max_pairs
from .sources import ArrayObjects, StoreObjects

SomeMover = TypeVar("SomeMover", bound=Mover)


@reports_steps
def fit_large(
    mover: SomeMover,
    X: ArrayLike | str | os.PathLike[str] | Store,
    y: ArrayLike | str | None = None,
    *,
    max_pairs: int | str | None = "auto",
    memory: int | str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    skip_bad: bool = False,
    progress: bool | None = False,
) -> SomeMover:
    """Fit a mover to labeled objects that need not fit in memory.

    They are read block by block, twice at most; a temporary copy is written to disk where the sources of
    pairs do not fit in memory together. The mover is the one that a fit in memory would give, up to
    rounding, unless pairs are sampled.

    Parameters
    ----------
    mover : MoveLabeled, LabelRidge, Shrink, Scale or Stay
    X : array of shape (n, d), mapped from a file or not; or the path of a store, or a store
        What `hubless fit` takes: .npy, Parquet, folders of parts, an index, a table of a database. A Dask
        array or data frame is learned from by the cluster that the current client is connected to.
    y : array of shape (n,); for a store, the name of the column of labels
    max_pairs : "auto", int or None, default="auto"
        Pairs to learn from at most, but at least those of one object; None takes all. "auto" takes all where
        that is affordable (about a minute of two cores), otherwise as many as are, and at least about 500 per
        column; a `SampledPairs` warning says so. The sources of the pairs are sampled; targets are always the
        nearest of the whole class.
    memory : int or str, default=None
        Memory limit of this process, for example "2GB"; half of RAM by default. It is ignored with Dask,
        whose workers have their own limits.
    scratch : path, default=None
        Folder for results of blocks, which are small: an interrupted run with the same folder resumes. With
        Dask it must be a folder that this process and all workers see.
    random_state : int, default=0
        Seed of the sample.
    skip_bad : bool, default=False
        Skip parts that cannot be read or learned from, and list them in `skipped_`; otherwise they are
        refused by name.
    progress : bool or None, default=False
        Whether to report long steps; None reports them on a terminal.

    Returns
    -------
    mover : the same, fitted, with
        n_pairs_ : how many pairs it learned from
        skipped_ : what was skipped, a list of (part, why)

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import MoveLabeled, fit_large
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 4.0], [6.0, 5.0]]), np.array([0, 0, 1, 1])
    >>> np.save("X.npy", X)  # which may be larger than memory
    >>> mover = fit_large(MoveLabeled(1.0), np.load("X.npy", mmap_mode="r"), y)
    >>> np.allclose(mover.W_, MoveLabeled(1.0).fit(X, y).W_)
    True
    """
    check_mover(mover)
    plan = Plan(check_max_pairs(max_pairs), check_seed(random_state), scratch_folder(scratch))
    objects = _objects(X, y, budget(memory), plan.checkpoints, {"skip_bad": skip_bad})
    fit(mover, objects, plan, column_names(X))
    return mover


def check_mover(mover: Any) -> None:
    """Refuse what cannot be fitted block by block."""
    if not isinstance(mover, Mover):
        raise ValueError(f"fit_large needs a mover, for example MoveLabeled(); got {type(mover).__name__}.")
    mover._check_parameters()
    if mover._device() is not None:
        raise ValueError(f"device={mover._device()!r} is ignored here; leave it out, or fit in memory.")


def _objects(X: Any, y: Any, memory: int, scratch: Path | None, options: dict[str, Any]) -> Objects:
    """Return objects in blocks, of Dask, a store or an array."""
    if is_on_engine(X) or is_on_engine(y):
        return objects_of_arrays(X, y, **options)  # whose workers have their own memory limits
    if isinstance(X, str | os.PathLike):
        X = open_store(X)
    if isinstance(X, Store):
        if not isinstance(y, str):
            raise ValueError(f"y must be the name of the column of labels of {X.name}; got {y!r}.")
        if scratch is not None:
            check_outside(X, scratch)
        return StoreObjects(X, y, memory, **options)
    X = X if hasattr(X, "dtype") or scipy.sparse.issparse(X) else np.asarray(X)
    return ArrayObjects(X, y, memory, **options)


def check_seed(seed: Any) -> int:
    """Return a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise ValueError(f"random_state must be a whole number of at least 0; got {seed!r}.")
    return int(seed)
