"""Exact nearest neighbours and their vote; `knn` says what the numbers mean."""

from .knn import check_neighbors, nearest

__all__ = ["check_neighbors", "nearest"]
