"""The same on Dask: many machines, or the cores of one. Nothing outside this folder imports dask."""

from .search import measure_hubness, nearest

__all__ = ["measure_hubness", "nearest"]
