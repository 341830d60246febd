"""Which queries can be looked up on a page: those on the map, with the neighbours that the map lacks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..evaluation import Answers, BeforeAfter
from .map_layout import DrawnMap, places_of

EXPLORED = 150  # queries at most whose neighbours are added, where the map lacks some


class Explored(NamedTuple):
    """Queries that can be looked up, and the items that they find."""

    queries: np.ndarray  # (e,) places among the drawn queries, rising
    near: BeforeAfter  # (e, h) places: those on the map, then those of `others`
    others: np.ndarray  # row numbers of items that are not on the map


def explore(answers: Answers, drawn: DrawnMap, first: np.ndarray) -> Explored:
    """Choose the queries: all that are drawn, or EXPLORED where neighbours must be added, `first` of all."""
    chosen = drawn.queries
    if any((places_of(near[chosen], drawn.items) < 0).any() for near in answers.neighbors):
        chosen = _choose(drawn.queries, first)
    near = [state[chosen] for state in answers.neighbors]
    others = np.setdiff1d(np.concatenate([state.reshape(-1) for state in near]), drawn.items)
    known = np.concatenate([drawn.items, others])
    order = np.argsort(known, kind="stable")  # places of rising row numbers
    places = (order[np.searchsorted(known[order], state)] for state in near)
    return Explored(places_of(chosen, drawn.queries), BeforeAfter(*places), others)


def _choose(rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return at most EXPLORED of these rows, rising: the first ones, then others at even steps."""
    first = first[np.isin(first, rows)]
    if len(first) > EXPLORED:
        first = first[_even_steps(len(first), EXPLORED)]
    others = np.setdiff1d(rows, first)
    steps = _even_steps(len(others), min(EXPLORED - len(first), len(others)))
    return np.sort(np.concatenate([first, others[steps]]))


def _even_steps(n: int, count: int) -> np.ndarray:
    return np.linspace(0, n - 1, count).astype(int)


def explorer(explored: Explored, describe: Callable[[np.ndarray], dict[str, Any]]) -> dict[str, Any]:
    """Return what the page needs to look up queries beside its map; columns are None where the map has all.

    `describe` returns id, text and class of items, as columns.
    """
    if not len(explored.others):
        return {"places": None, "near0": None, "near1": None, "items": describe(explored.others)}
    near = {f"near{i}": state.reshape(-1).astype(np.int32) for i, state in enumerate(explored.near)}
    places = explored.queries.astype(np.uint32)
    return {"places": places, **near, "items": describe(explored.others)}
