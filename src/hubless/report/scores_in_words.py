"""Scores and their changes, as one would say them to a person who knows search but no measures of it."""

import numpy as np

from ..evaluation import Change
from .numerals import change_in_form, form_of, in_form

PLAIN = {
    "accuracy": "the share of queries with the right class ({})",
    "precision": "the share of the {k} nearest with the right class ({})",
    "nDCG": "the score of the ranking ({})",
    "MRR": "the mean of 1 / rank of the first relevant item ({})",
    "hit rate": "the share of queries with a relevant item among the first {k} ({})",
    "recall": "the share of relevant items that are among the first {k} ({})",
}
FOR_PART = {
    "all": "",
    "seen": "for queries with a relevant item in a training pair",
    "unseen": "for queries whose relevant items were in no training pair",
}
OF_PART = {"all": "", "seen": " of items in training pairs", "unseen": " of items in no training pair"}


def name(change: Change) -> str:
    """Return the measure and whose it is, as short as a title needs it."""
    return change.measure + OF_PART[change.part]


def plain_name(change: Change) -> str:
    """Return what is measured in plain words, with the name of the measure behind them."""
    kind, _, k = change.measure.partition("@")
    return PLAIN[kind].format(change.measure, k=k)


def score(value: float, measure: str) -> str:
    """Return a score as the tiles write it, with a plain space, as terminals need it."""
    return in_form(value, form_of(measure)).replace("\u00a0", " ")


def from_to(change: Change) -> str:
    """Return "from 86.8 % to 88.8 %"."""
    return f"from {score(change.before, change.measure)} to {score(change.after, change.measure)}"


def arrow(change: Change) -> str:
    """Return "86.8 % → 88.8 %"."""
    return f"{score(change.before, change.measure)} → {score(change.after, change.measure)}"


def interval(change: Change) -> str:
    """Return the interval of a change and its number of queries in words."""
    if not np.isfinite(change.high):
        return "one query has no interval"
    form = form_of(change.measure)
    low, high = (change_in_form(bound, form) for bound in (change.low, change.high))
    points = " points" if form == "percent" else ""
    return f"95 % interval of the change {low} to {high}{points}, {change.n:,} queries"


def capital(words: str) -> str:
    """Return words as they begin a sentence."""
    return words if words.startswith("nDCG") else words[0].upper() + words[1:]
