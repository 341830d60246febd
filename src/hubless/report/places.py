"""Where objects and queries are drawn: one layout in two dimensions for both states."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from ..evaluation import Asked, Pair

LAYOUTS = ("pca", "tsne", "umap")
COMPONENTS = 50  # that variances are shown of, and that t-SNE and UMAP start from
CARDS = 12  # hubs that are shown one by one
HUBS = 20  # one of so many drawn objects is among the busiest, the others are drawn by chance


@dataclass(frozen=True)
class Drawing:
    """How a page is drawn."""

    layout: str = "pca"
    max_points: int = 10_000  # objects on the map; of more, some by chance
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}; got {self.layout!r}.")
        if self.layout == "umap" and find_spec("umap") is None:
            raise ImportError(
                "layout='umap' needs umap-learn: pip install umap-learn. PCA and t-SNE need nothing more."
            )
        if self.max_points < 1:
            raise ValueError(f"max_points must be at least 1; got {self.max_points}.")


class Drawn(NamedTuple):
    """Which objects and queries are drawn, by row number, rising."""

    items: np.ndarray
    queries: np.ndarray
    words: str | None  # said where these are not all


class Places(NamedTuple):
    """Places in two dimensions."""

    items: Pair  # (n, 2) before and after
    queries: np.ndarray  # (m, 2)
    words: str


def axes_of(asked: Asked) -> PCA:
    """The principal components of the original objects."""
    before = asked.stored.before
    with np.errstate(invalid="ignore"):  # objects that are all in one place have shares of 0 / 0
        return PCA(min(COMPONENTS, *before.shape), random_state=0).fit(before)


def draw(occurrence: Pair, n_queries: int, first_queries: np.ndarray, limit: int, random_state: int) -> Drawn:
    """At most `limit` objects, the busiest among them, and half as many queries, some of them given."""
    rng, n = np.random.default_rng(random_state), len(occurrence.before)
    hubs = np.argsort(-occurrence.before, kind="stable")[:CARDS]  # those with a card must be there
    busiest = np.argsort(-np.maximum(*occurrence), kind="stable")[: limit // HUBS]
    busiest = np.array(list(dict.fromkeys([*hubs.tolist(), *busiest.tolist()])))[:limit]
    items = _some(n, busiest, limit, rng)
    queries = _some(n_queries, first_queries, max(limit // 2, 1), rng)
    told = [
        f"{len(rows):,} of {count:,} {what} are drawn{how}"
        for rows, count, what, how in (
            (
                items,
                n,
                "items",
                f": the {len(busiest):,} busiest" + ", and others by chance" * (len(busiest) < limit),
            ),
            (queries, n_queries, "queries", ": those that changed first, and others by chance"),
        )
        if len(rows) < count
    ]
    return Drawn(items, queries, "; ".join(told) + ". All figures are of all." if told else None)


def _some(n: int, wanted: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    if n <= limit:
        return np.arange(n)
    wanted = wanted[:limit]
    others = np.setdiff1d(np.arange(n), wanted)
    return np.sort(np.concatenate([wanted, rng.choice(others, limit - len(wanted), replace=False)]))


def lay_out(asked: Asked, drawn: Drawn, axes: PCA, layout: str, random_state: int) -> Places:
    """Places of what is drawn.

    By PCA, both states and the queries are projected on the components of the original objects, so that what
    moves on the map moves in space. t-SNE and UMAP embed all three together.
    """
    d = asked.stored.before.shape[1]  # without the column that some movers add
    points = [asked.stored.before[drawn.items], asked.stored.after[drawn.items, :d]]
    parts = [axes.transform(own) for own in (*points, asked.queries[drawn.queries])]
    if layout == "pca":
        share = 100 * float(np.nan_to_num(axes.explained_variance_ratio_[:2]).sum())
        words = f"The first two principal components of the items, with {share:.0f} % of their variance."
        before, after, queries = (_two(own) for own in parts)
    else:
        whole = np.concatenate(parts)
        embedded = _embedding(layout, whole.shape, random_state).fit_transform(whole)
        bounds = np.cumsum([len(own) for own in parts])[:-1]
        before, after, queries = np.split(np.asarray(embedded, dtype=np.float64), bounds)
        named = {"tsne": "t-SNE", "umap": "UMAP"}[layout]
        words = f"{named} of items before, items after and queries together: near is alike, far says little."
    return Places(Pair(before, after), queries, words)


def _two(projected: np.ndarray) -> np.ndarray:
    """The first two components; a second of zeros where there is but one."""
    if projected.shape[1] < 2:
        projected = np.column_stack([projected, np.zeros(len(projected))])
    return projected[:, :2]


def _embedding(layout: str, shape: tuple[int, ...], random_state: int) -> Any:
    if layout == "tsne":  # loaded here: `import hubless` should not wait for it
        from sklearn.manifold import TSNE

        start = "pca" if shape[1] > 1 else "random"
        return TSNE(perplexity=min(30.0, (shape[0] - 1) / 3), init=start, random_state=random_state)
    from umap import UMAP  # type: ignore[import-not-found, unused-ignore]

    return UMAP(random_state=random_state, n_jobs=1)
