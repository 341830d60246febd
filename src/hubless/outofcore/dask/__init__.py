"""Dask: the functions and methods of hubless for its arrays, which stay where they are.

`arrays.devices` calls these by name where an argument is a Dask array. Arrays that they return for Dask
arrays are Dask arrays, of which nothing is computed before it is needed.
"""

from .dask_classifier import kneighbors, predict, predict_proba, score
from .dask_fit import fit, fit_transform, move, transform
from .dask_search import measure_hubness, nearest

__all__ = [
    "fit",
    "fit_transform",
    "kneighbors",
    "measure_hubness",
    "move",
    "nearest",
    "predict",
    "predict_proba",
    "score",
    "transform",
]
