"""Items with a few that were planted: each lies in the middle of a third of the queries, as an attacker's."""

from typing import NamedTuple

import numpy as np

K = 10  # answers


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


class Planted(NamedTuple):
    """Items, the last of which are planted; a log of queries, and queries that come later."""

    ids: np.ndarray
    X: np.ndarray  # (n, d), float32
    texts: list
    hubs: list  # ids of the planted items
    log: np.ndarray  # (400, d)
    new: np.ndarray  # (100, d)
    late: np.ndarray  # (1, d): planted later, in the middle of all queries of the log


def planted(metric="l2", *, n=700, d=64, hubs=3, text_ids=False, seed=0):
    """Return planted items for an index by "l2", "cosine", "ip" (all of length 1) or "any lengths"."""
    rng = np.random.default_rng(seed)
    items = unit(rng.normal(size=(n, d)))
    queries = unit(rng.normal(size=(500, d)) + 4 * unit(rng.normal(size=(1, d))))
    groups = np.array_split(rng.permutation(400), hubs)
    middles = unit(np.stack([queries[group].mean(axis=0) for group in groups]))
    late = unit(queries[:400].mean(axis=0, keepdims=True))
    X = np.concatenate([items, middles])
    if metric == "any lengths":
        X *= rng.uniform(0.95, 1.15, size=(len(X), 1))
    elif metric != "ip":  # of no one length
        scales = rng.uniform(0.98, 1.02, size=(len(X), 1))
        X, queries = X * scales, queries * rng.uniform(0.95, 1.05, size=(len(queries), 1))
    ids = rng.permutation(10 * len(X))[: len(X)].astype(np.int64)
    names = np.array([f"item '{i}'; é" for i in ids], dtype=object)
    ids = names if text_ids else ids
    X, queries, late = (array.astype(np.float32) for array in (X, queries, late))
    texts = [f"text of {i}" for i in ids]
    return Planted(ids, X, texts, ids[-hubs:].tolist(), queries[:400], queries[400:], late)


def captured(answers, ids):
    """The share of queries that have one of these items among their answers."""
    wanted = {str(i) for i in ids}
    return sum(not wanted.isdisjoint(map(str, row)) for row in answers) / len(answers)


def kept(before, after, ids):
    """The share of the answers before, without those of these items, that are still answers."""
    wanted = {str(i) for i in ids}
    found = total = 0
    for old, new in zip(before, after, strict=True):
        old, new = {str(i) for i in old} - wanted, {str(i) for i in new}
        found, total = found + len(old & new), total + len(old)
    return found / total


def by_loops(ids, X, queries, metric, k=K):
    """The k nearest ids, a query at a time, in float64."""
    X, answers = X.astype(np.float64), []
    X = unit(X) if metric == "cosine" else X
    for query in queries.astype(np.float64):
        distances = ((X - query) ** 2).sum(axis=1) if metric == "l2" else -(X @ query)
        answers.append([ids[i] for i in np.argsort(distances, kind="stable")[:k]])
    return answers
