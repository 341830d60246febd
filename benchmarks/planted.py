"""Planted hubs: how many of them the doctor finds, and what the correction of `hubless fit --queries` leaves.

The bound of suspicion was chosen on other draws (seeds from 101) than those measured here (seeds from 0).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from hubless.corrections import HoldHubs
from hubless.neighbors.knn import exhaustive, unit
from hubless.paper import datasets
from hubless.repair.planted import captured, distinct, find_hubs, find_planted
from hubless.retrieval import gains, hit
from hubless.support.progress import step

from .index_data import Pairs, banking77, folder_of, scifact
from .record import Options

DRAWS = 8
K = 10
PLANTED = 10  # items that an attacker adds, if nothing else is said
KNOWN = 400  # claims that an attacker knows who does not know the log


class Attack(NamedTuple):
    """How items are made from documents and the queries that are known, and whether that is the whole log."""

    make: Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
    knows_log: bool
    metric: str = "cosine"


def means_of(known: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """Return the means of groups of queries."""
    return np.stack([known[rows].mean(axis=0) for rows in groups])


def clusters(
    n: int, *, are_short: bool = False
) -> Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]:
    """Return an attack by the means of n k-means clusters, brought to length 1 or shorter as they are."""

    def make(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        seed = int(rng.integers(1 << 31))
        labels = KMeans(n, n_init=1, random_state=seed).fit_predict(known)
        means = means_of(known, [np.flatnonzero(labels == label) for label in range(n)])
        return means if are_short else unit(means)

    return make


def hidden(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return means of clusters that got content of their own: half as much, from a document each."""
    means = clusters(PLANTED)(documents, known, rng)
    chosen = documents[rng.choice(len(documents), PLANTED, replace=False)]
    own = unit(chosen - (chosen * means).sum(axis=1, keepdims=True) * means)
    return unit(means + 0.5 * own)


def repeated(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return means of clusters, ten copies of each."""
    return np.repeat(clusters(PLANTED)(documents, known, rng), 10, axis=0)


def groups(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the means of random groups of queries."""
    return unit(means_of(known, np.array_split(rng.permutation(len(known)), PLANTED)))


def copies(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return near-copies of queries that have many others near them."""
    crowded = np.argsort(-np.sort(known @ known.T, axis=1)[:, -11:-1].mean(axis=1))[: 6 * PLANTED]
    chosen = known[rng.choice(crowded, PLANTED, replace=False)]
    return unit(chosen + 0.2 * unit(rng.standard_normal(chosen.shape)))


def pushed(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return documents that were moved halfway to the mean query."""
    chosen = documents[rng.choice(len(documents), PLANTED, replace=False)]
    return unit(chosen + unit(known.mean(axis=0, keepdims=True)))


def blended(documents: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return documents that were moved halfway to the nearest mean of a random group of queries."""
    centres = groups(documents, known, rng)
    return unit(documents[exhaustive(centres, documents, 1, "cosine")[:, 0]] + centres)


ATTACKS = {
    "10 clusters of 400 other claims": Attack(clusters(PLANTED), False),
    "the same 10, ten copies of each": Attack(repeated, False),
    "the same 10, hidden: plus half a document": Attack(hidden, False),
    "the same 10, not of length 1, by L2": Attack(clusters(PLANTED, are_short=True), False, "l2"),
    "10 random groups of 400 other claims": Attack(groups, False),
    "10 clusters of the whole log": Attack(clusters(PLANTED), True),
    "50 clusters of the whole log": Attack(clusters(5 * PLANTED), True),
    "near-copies of 10 claims of the log": Attack(copies, True),
    "10 documents, halfway to the mean claim": Attack(pushed, False),
    "10 documents, halfway to a group of claims": Attack(blended, False),
}


def measure(options: Options) -> dict[str, Any]:
    """Measure false alarms on clean data and every attack on SciFact."""
    draws = 1 if options.quick else DRAWS
    with folder_of("scifact", options.quick) as folder:
        data = scifact(folder)
    attacks = {}
    with step("planted", len(ATTACKS), "attacks") as bar:
        for name, attack in ATTACKS.items():
            attacks[name] = [attack_result(data, attack, seed) for seed in range(draws)]
            bar.update()
    return {
        "clean": clean(data, draws, options.quick),
        "SciFact": {
            "documents": len(data.items.ids),
            "training queries": len(data.train.queries),
            "test queries": len(data.test.queries),
            "hit@10": hits(data, data.items.vectors, "cosine"),
            "hit@10 held": hits(data, clean_held(data), "cosine"),
            "attacks": attacks,
        },
    }


def attack_result(data: Pairs, attack: Attack, seed: int) -> dict[str, Any]:
    """Return the raw result of one draw: what was found, and what planted items do to test queries."""
    rng = np.random.default_rng(seed)
    documents, claims = data.items.vectors, data.train.queries[distinct(data.train.queries)]
    order, size = rng.permutation(len(claims)), min(KNOWN, len(claims) // 2)
    known, log = (claims, claims) if attack.knows_log else (claims[order[:size]], claims[order[size:]])
    made = attack.make(documents, known, rng).astype(documents.dtype)
    X = np.vstack([documents, made])
    hubs = find_hubs(exhaustive(log, X, K, attack.metric), len(X)).rows
    is_planted, found = hubs >= len(documents), find_planted(X, log, attack.metric, k=K)
    kept = np.setdiff1d(np.arange(len(X)), found)
    planted = np.arange(len(documents), len(X))
    share = captured(X, X[kept], data.test.queries, planted, attack.metric, k=K).before
    left = exhaustive(data.test.queries, X[kept], K, attack.metric)
    held = HoldHubs(metric=attack.metric).fit(log, X).move(X)
    return {
        "planted": len(made),
        "hubs": int(is_planted.sum()),
        "found": int((found >= len(documents)).sum()),
        "natural hubs": int((~is_planted).sum()),
        "false alarms": int((found < len(documents)).sum()),
        "captured": share,
        "captured without": float((kept[left] >= len(documents)).any(axis=1).mean()),
        "captured held": captured(X, held, data.test.queries, planted, attack.metric, k=K).after,
        "hit@10": hits(data, X, attack.metric),
        "hit@10 held": hits(data, held, attack.metric),
        "hit@10 without": hits(data, X[kept], attack.metric, kept),
    }


def clean_held(data: Pairs) -> np.ndarray:
    """Return the documents without any planted item, after the same correction."""
    X = data.items.vectors
    return HoldHubs(metric="cosine").fit(data.train.queries, X).move(X)


def hits(data: Pairs, X: np.ndarray, metric: str, rows: np.ndarray | None = None) -> float:
    """Return the share of test queries with a relevant document among their answers; `rows` numbers X."""
    answers = exhaustive(data.test.queries, X, K, metric)
    relevant = data.test.rows(data.items.places)
    return float(hit(gains(answers if rows is None else rows[answers], relevant), relevant).mean())


# --- clean data ---------------------------------------------------------------------------------------------


def clean(data: Pairs, draws: int, quick: bool) -> dict[str, Any]:
    """Count hubs, and those that are called suspicious, on data in which nothing was planted."""
    results: dict[str, Any] = {}
    for seed in range(draws):
        for name, X, queries, metric in clean_sets(data, np.random.default_rng(seed), quick):
            queries = queries[distinct(queries)]
            hubs = find_hubs(exhaustive(queries, X, K, metric), len(X)).rows
            entry = results.setdefault(name, {"metric": metric, "items": len(X), "runs": []})
            entry["queries"] = len(queries)
            alarms = len(find_planted(X, queries, metric, k=K))
            entry["runs"].append({"hubs": len(hubs), "false alarms": alarms})
    return results


def clean_sets(
    data: Pairs, rng: np.random.Generator, quick: bool
) -> Iterator[tuple[str, np.ndarray, np.ndarray, str]]:
    """Yield items and queries that have nothing to do with an attack: name, items, queries, metric."""
    X, claims = data.items.vectors, data.train.queries
    yield "SciFact, half of the claims", X, claims[rng.permutation(len(claims))[::2]], "cosine"
    with folder_of("banking77", quick) as folder:
        questions = banking77(folder).items.vectors
    half, quarter = len(questions) // 2, len(questions) // 4
    order = rng.permutation(len(questions))
    yield "banking77", questions[order[:half]], questions[order[half : half + quarter]], "cosine"
    if quick:
        return
    with folder_of("flickr8k", quick) as folder:
        captions = np.load(folder / "captions_minilm_384.npy").astype(np.float32)
    order = 5 * rng.permutation(len(captions) // 5)  # five captions of each image
    yield "Flickr8k, captions", captions[order], captions[order[:2500] + 1], "cosine"
    for name in ("news", "reuters", "tdt"):
        X = datasets.load(name).X.astype(np.float32)
        order = rng.permutation(len(X))
        for metric, words in (("l2", " by L2"), ("cosine", "")):
            yield f"{name}{words}", X[order[:5000]], X[order[5000:7000]], metric
    gaussian = rng.standard_normal((7000, 100)).astype(np.float32)
    yield "Gaussian, 100 columns, by L2", gaussian[:5000], gaussian[5000:], "l2"
