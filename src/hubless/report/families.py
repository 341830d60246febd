"""Families of hubs: hubs that the same queries find, with the words that their texts share."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform

from ..chance import hub_threshold
from ..evaluation import BeforeAfter

HUBS = 200  # the busiest, which are compared with each other
LEAST = 0.2  # mean overlap of two groups of hubs that are one family
FAMILIES, MEMBERS, WORDS = 12, 6, 3  # shown: families, hubs of each, words of each
TEXTS = 10_000  # at even steps, whose words those of a family are compared with
WORD = re.compile(r"[^\W\d_]{3,24}")  # letters alone: nothing that steers a text


def find_families(near: BeforeAfter, occurrence: BeforeAfter) -> list[np.ndarray]:
    """Return row numbers of the hubs of each family before the move, the busiest first; families likewise.

    A hub is an item that chance would not make. Families are found by hierarchical clustering with average
    linkage, cut where two groups overlap by less than LEAST.
    """
    m, k = near.before.shape
    hubs = np.argsort(-occurrence.before, kind="stable")[:HUBS]
    hubs = hubs[occurrence.before[hubs] >= hub_threshold(m, len(occurrence.before), k)]
    if len(hubs) < 2:
        return []
    distance = 1 - overlap(found_by(near.before, hubs))
    np.fill_diagonal(distance, 0)
    groups = fcluster(linkage(squareform(distance, checks=False), "average"), 1 - LEAST, "distance")
    families = [hubs[groups == group] for group in np.unique(groups)]
    families = [family for family in families if len(family) > 1]
    return sorted(families, key=lambda family: -count_queries(near.before, family))


def found_by(near: np.ndarray, hubs: np.ndarray) -> csr_array:
    """Return which hub is found by which query, (hubs, m)."""
    place = np.full(max(int(near.max()), int(hubs.max())) + 1, -1)
    place[hubs] = np.arange(len(hubs))
    query, rank = np.nonzero(place[near] >= 0)
    ones = np.ones(len(query))
    return csr_array((ones, (place[near[query, rank]], query)), shape=(len(hubs), len(near)))


# J(a, b) = |Q(a) ∩ Q(b)| / |Q(a) ∪ Q(b)|, with Q(h) the queries that find h; E(a, b) is the same of expected
# numbers, where |Q(a)| and |Q(b)| queries are drawn independently; the overlap is max(0, (J − E) / (1 − E))
def overlap(found: csr_array) -> np.ndarray:
    """Return how far each two hubs are found by the same queries, beyond chance: 0 to 1, (h, h)."""
    counts, common = found.sum(axis=1), (found @ found.T).toarray()
    total = counts[:, None] + counts
    expected = np.outer(counts, counts) / found.shape[1]
    jaccard, chance = common / (total - common), expected / (total - expected)
    beyond = (jaccard - chance) / np.where(chance < 1, 1 - chance, 1)
    return np.asarray(np.maximum(beyond, 0))


def count_queries(near: np.ndarray, family: np.ndarray) -> int:
    """Count the queries that find any hub of a family."""
    return int(np.isin(near, family).any(axis=1).sum())


# w(t) = f ln(f / r): f is the share of the family's texts that have the word t, r = (1 + n(t)) / (1 + n) that
# of n texts of all items
def common_words(texts: Sequence[Any], families: Sequence[np.ndarray]) -> list[list[str]]:
    """Return the words of each family that two of its texts or more have, and that are rare elsewhere."""
    rows = np.linspace(0, len(texts) - 1, min(len(texts), TEXTS)).astype(int)
    counts = Counter(word for row in rows.tolist() for word in words_of(texts[row]))
    named = []
    for family in families:
        inside = Counter(word for row in family.tolist() for word in words_of(texts[row]))
        weights = {}
        for word, count in inside.items():
            share, elsewhere = count / len(family), (1 + counts[word]) / (1 + len(rows))
            if count > 1 and share > elsewhere:
                weights[word] = share * np.log(share / elsewhere)
        named.append(sorted(weights, key=lambda word: (-weights[word], word))[:WORDS])
    return named


def words_of(text: Any) -> set[str]:
    """Return the words of a text, in lower case."""
    return set() if text is None else set(WORD.findall(str(text)[:2000].casefold()))


def describe_families(
    near: BeforeAfter, occurrence: BeforeAfter, texts: Sequence[Any] | None, describe: Any
) -> list[dict[str, Any]]:
    """Return families for the page; `describe` returns id, text, class and place of an item."""
    families = find_families(near, occurrence)[:FAMILIES]
    words = [[] for _ in families] if texts is None else common_words(texts, families)
    return [
        {
            "words": named,
            "hubs": len(family),
            "before": count_queries(near.before, family),
            "after": count_queries(near.after, family),
            "members": [
                {**describe(row), "before": int(occurrence.before[row]), "after": int(occurrence.after[row])}
                for row in family[:MEMBERS].tolist()
            ],
        }
        for family, named in zip(families, words, strict=True)
    ]
