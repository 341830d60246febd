"""Fit and move: hubless beside the bare products of Eq. 6, and beside the Mahalanobis learners."""

from functools import partial
from typing import Any

import numpy as np

from hubless import MoveLabeled

from . import learners
from .data import Labeled, clustered, digits, news
from .record import Options
from .timing import Contender, race

BLOCK = 4096  # rows of a product within a class
TINY = 16  # objects of a class below which equal classes are one stack of products
NOTES = {
    "bare: classes": "Z_c Z_cᵀ of each class, in the precision of X; NumPy takes syrk, half the work, unless "
    f"the class has more than {BLOCK} objects",
    "bare: A": "XᵀY in float64, by gemm",
    "bare: K": "XᵀX in float64; NumPy takes syrk, half the work",
    "bare: move": "XWᵀ in the precision of X",
    "bare products": "all four, into memory that is there already",
}


def class_products(X: np.ndarray, y: np.ndarray) -> Contender:
    """Return the products Z_c Z_cᵀ of every class; gathering the classes is not timed."""
    sizes = np.bincount(y)
    members = np.split(X[np.argsort(y, kind="stable")], np.cumsum(sizes)[:-1])
    if sizes.min() == sizes.max() <= TINY:
        stack = np.stack(members)
        products = np.empty((len(sizes), sizes[0], sizes[0]), dtype=X.dtype)
        return lambda: np.matmul(stack, stack.transpose(0, 2, 1), out=products)
    out = np.empty(min(BLOCK, sizes.max()) * sizes.max(), dtype=X.dtype)

    def multiply() -> None:
        for rows in members:
            for start in range(0, len(rows), BLOCK):
                block = rows[start : start + BLOCK]
                shape = (len(block), len(rows))
                np.matmul(block, rows.T, out=out[: shape[0] * shape[1]].reshape(shape))

    return multiply


def bare_products(X: np.ndarray, y: np.ndarray) -> dict[str, Contender]:
    """Return the products of Eq. 6 and the move, part by part and all together; copies are not timed."""
    d = X.shape[1]
    x, other = X.astype(np.float64), X[::-1].astype(np.float64)
    W, moved, square = np.eye(d, dtype=X.dtype), np.empty_like(X), np.empty((d, d))
    parts: dict[str, Contender] = {
        "bare: classes": class_products(X, y),
        "bare: A": lambda: np.matmul(x.T, other, out=square),
        "bare: K": lambda: np.matmul(x.T, x, out=square),
        "bare: move": lambda: np.matmul(X, W.T, out=moved),
    }

    def everything() -> None:
        for part in parts.values():
            part()

    return {"bare products": everything, **parts}


def inputs(quick: bool) -> dict[str, Labeled]:
    """Return the labeled objects of each case."""
    first = news(quick)
    tiny, huge = ([4] * 5_000, [15_000] + [100] * 50)
    return {
        "news": first,
        "news, float64": first._replace(X=first.X.astype(np.float64)),
        "tiny classes": clustered([4] * 30, 8) if quick else clustered(tiny, 256),
        "one huge class": clustered([300] + [20] * 5, 8) if quick else clustered(huge, 128),
        "digits": digits(quick),
    }


def measure(options: Options) -> dict[str, Any]:
    """Measure the seconds of fit and move in every case; those of the learners on News and on digits."""
    cases = {}
    for name, (X, y, source) in inputs(options.quick).items():
        contenders = bare_products(X, y)
        contenders["hubless"] = partial(MoveLabeled().fit_transform, X, y)
        sizes = np.bincount(y)
        cases[name] = {
            "settings": {
                "data": source,
                "objects": len(y),
                "d": X.shape[1],
                "classes": len(sizes),
                "largest_class": int(sizes.max()),
                "dtype": str(X.dtype),
            },
            "notes": NOTES,
            "reference": "bare products",
            "seconds": race(contenders, options.repeats, title=f"fit {name}", pause=options.pause),
        }
        if name in ("news", "digits"):
            cases[name]["learners"] = learners.time_all(name, options)
    return cases
