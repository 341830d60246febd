"""What is wrong with an index, if anything: its facts, its hubs, and a verdict in plain words. Reads only."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..hubness import Hubness, measure_hubness
from ..stores.rows import exhaustive
from ..stores.store import Store, StoreError
from .collection import UNIT, check_queries, read_all

K = 10
SAMPLE = 20_000  # items that hubs are looked for among; of more, some by chance
WORST = 10  # hubs that are told


@dataclass(frozen=True)
class Diagnosis:
    """What was found; print it."""

    facts: dict[str, Any]
    norms: dict[str, float]  # min, median, max
    nulls: int
    not_finite: int
    zeros: int
    duplicates: int  # rows that equal an earlier one
    hubness: Hubness | None
    measured: str  # on what
    hubs: list[dict[str, Any]]
    verdict: str  # "hubs", "some hubs", "no hubs", "do not move", "moved"
    advice: list[str]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**vars(self), "hubness": None if self.hubness is None else self.hubness.as_dict()}

    def __str__(self) -> str:
        facts = self.facts
        lines = [
            f"{facts['kind']}: {facts['count']:,} vectors of {facts['dimension']} columns, {facts['dtype']}",
            f"compares by     {facts['metric'] or 'a metric it does not tell; taken for l2'}",
            f"searches by     {facts['index']}",
            "lengths         {min:.4g} to {max:.4g}, median {median:.4g}".format(**self.norms),
            f"without vector  {self.nulls:,}; not finite {self.not_finite:,}; zero {self.zeros:,}; "
            f"exact duplicates {self.duplicates:,}",
        ]
        if self.hubness is not None:
            h = self.hubness
            lines += [
                f"hubs            {self.measured}",
                f"                N{h.k} skewness {h.skewness:.2f} (below 1: none to speak of; above 3: bad)",
                f"                {h.antihub_share:.0%} of the items are never returned, and the busiest one "
                f"in {h.largest_occurrence:,} of {h.n_queries:,} answers",
            ]
        for hub in self.hubs:
            text = str(hub.get("text") or "")
            lines.append(f"  {hub['occurrence']:>7,} ×  {hub['id']}  {text[:70]}")
        return "\n".join([*lines, "", *self.advice])


def diagnose(
    store: Store,
    *,
    queries: np.ndarray | None = None,
    text: str | None = None,
    k: int = K,
    random_state: int = 0,
) -> Diagnosis:
    """Look at a store.

    Parameters
    ----------
    store : Store
    queries : array of shape (n, d), optional
        What is asked of it; by default its own items are, each without itself.
    text : str, optional
        The column to show of the worst hubs; by default one named "text", "title" or "name".
    """
    facts = store.facts()
    shown = text or next((name for name in ("text", "title", "name") if name in facts.columns), None)
    ids, X = read_all(store)
    nulls = np.isnan(X).all(axis=1)
    finite = np.isfinite(X).all(axis=1)
    norms = np.linalg.norm(X[finite].astype(np.float64), axis=1)
    if not len(norms):
        raise StoreError(f"{store.name} has no vector that is whole.")
    if queries is not None:
        check_queries(queries, facts.dimension, store.name)
    metric = facts.metric or "l2"
    hubness, measured, hubs = _hubs(ids[finite], X[finite], metric, queries, k, random_state)
    if shown is not None and hubs:
        texts = store.fetch([hub["id"] for hub in hubs], [shown]).columns[shown]
        hubs = [{**hub, "text": value} for hub, value in zip(hubs, texts, strict=True)]
    verdict, advice = _verdict(store, metric, facts.is_exact, norms, hubness)
    return Diagnosis(
        {**vars(facts), "name": store.name, "columns": list(facts.columns)},
        {"min": float(norms.min()), "median": float(np.median(norms)), "max": float(norms.max())},
        int(nulls.sum()),
        int((~finite & ~nulls).sum()),
        int((norms == 0).sum()),
        len(norms) - len(np.unique(_rows_as_bytes(X[finite]))),
        hubness,
        measured,
        hubs,
        verdict,
        advice,
    )


def _rows_as_bytes(X: np.ndarray) -> np.ndarray:
    """Each row as one opaque value, to be compared."""
    X = np.ascontiguousarray(X)
    return X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).reshape(-1)


def _hubs(
    ids: np.ndarray, X: np.ndarray, metric: str, queries: np.ndarray | None, k: int, random_state: int
) -> tuple[Hubness | None, str, list[dict[str, Any]]]:
    """Measures of hubness, what they were measured on, and the worst hubs."""
    if len(X) < k + 2:
        return None, "", []
    measured = f"among all {len(X):,} items"
    if len(X) > SAMPLE and queries is None:
        rows = np.sort(np.random.default_rng(random_state).choice(len(X), SAMPLE, replace=False))
        ids, X, measured = ids[rows], X[rows], f"among {SAMPLE:,} items by chance, of {len(X):,}"
    if queries is None:
        found = _without_itself(exhaustive(X, X, k + 1, metric))
        measured += ", each asked for its neighbours"
    else:
        found = exhaustive(queries, X, k, metric)
        measured += f", asked with {len(queries):,} queries"
    hubness = measure_hubness(found, len(X))
    order = np.argsort(-hubness.occurrence, kind="stable")[:WORST]
    mean = hubness.n_queries * k / len(X)
    hubs = [
        {"id": ids[i].item() if hasattr(ids[i], "item") else ids[i], "occurrence": int(hubness.occurrence[i])}
        for i in order
        if hubness.occurrence[i] >= 2 * mean
    ]
    return hubness, measured, hubs


def _without_itself(found: np.ndarray) -> np.ndarray:
    """Neighbours of each item without the item; where many equal it, the last of them goes."""
    own = found == np.arange(len(found))[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(found), -1)


def _verdict(
    store: Store, metric: str, is_exact: bool, norms: np.ndarray, hubness: Hubness | None
) -> tuple[str, list[str]]:
    mark = store.mark()
    if mark is not None:
        kept = f"; the original is {mark.original}" if mark.original else f", made from {mark.source}"
        return "moved", [f"These vectors were moved by hubless model {mark.model[:12]}{kept}."]
    if not is_exact:
        return "do not move", [
            "The index keeps its vectors quantised, so nothing should be learned from what it gives back:",
            "fit and apply on the file of original vectors, then build the index again.",
        ]
    if metric == "ip" and np.abs(norms - 1).max() > UNIT:
        return "do not move", [
            "It compares by inner product vectors of different lengths. Moved vectors are shorter and would",
            "lose answers: bring the vectors to length 1, or use L2 or cosine.",
        ]
    safe = {
        "l2": "It compares by L2: moving is safe.",
        "cosine": "It compares by cosine: moving is safe.",
        "ip": "It compares unit vectors by inner product: moved ones are brought to length 1, so it is safe.",
    }[metric]
    if hubness is None:
        return "no hubs", [safe, "There are too few items to speak of hubs."]
    if hubness.skewness < 1:
        return "no hubs", [safe, "There are no hubs to speak of. Moving may still help classes; measure it."]
    strength = "hubs" if hubness.skewness >= 3 else "some hubs"
    told = (
        "A few items are the answer to very many queries." if strength == "hubs" else "There are some hubs."
    )
    return strength, [safe, f"{told} Next: hubless fit {store.name} --labels COLUMN (or --pairs FILE)"]
