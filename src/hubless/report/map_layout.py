"""The map of a page: which items and queries are drawn, and where.

Items have the places of the original vectors in both states: what moving changes is how often each is found,
and on a map where all dots move at once nobody can see that.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from ..arrays.inputs import check_choice
from ..evaluation import Answers, BeforeAfter
from . import LAYOUTS

COMPONENTS = 50  # whose variances are shown, and that t-SNE and UMAP start from
CARDS = 12  # hubs that are shown one by one
HUBS = 20  # of this many drawn objects, one is among the busiest; the others are drawn at random


@dataclass(frozen=True)
class Drawing:
    """Options of the map."""

    layout: str = "pca"
    max_points: int = 10_000  # objects on the map; of more, a sample is drawn
    random_state: int = 0

    def __post_init__(self) -> None:
        check_choice("layout", self.layout, LAYOUTS)
        if self.layout == "umap" and find_spec("umap") is None:
            raise ImportError(
                "layout='umap' needs umap-learn: pip install umap-learn. PCA and t-SNE need nothing more."
            )
        if self.max_points < 1:
            raise ValueError(f"max_points must be at least 1; got {self.max_points}.")


class MapPoints(NamedTuple):
    """A row for each drawn object, and for each drawn query."""

    items: np.ndarray
    queries: np.ndarray


class DrawnMap(NamedTuple):
    """What is on the map, and where."""

    layout: str
    words: str  # what the places show
    components: PCA  # of the original objects
    items: np.ndarray  # row numbers of the drawn objects, rising
    queries: np.ndarray
    sampled: str | None  # in words, where these are not all
    points: MapPoints  # two coordinates


def draw_map(answers: Answers, occurrence: BeforeAfter, changed: np.ndarray, drawing: Drawing) -> DrawnMap:
    """Return the map; `changed` are row numbers of queries that are drawn first."""
    before, layout, seed = answers.stored.before, drawing.layout, drawing.random_state
    with np.errstate(invalid="ignore"):  # objects that are all in one place have shares of 0 / 0
        components = PCA(min(COMPONENTS, *before.shape), random_state=0).fit(before)
    items, queries, sampled = choose_rows(occurrence, len(answers.queries), changed, drawing.max_points, seed)
    projected = _project(answers, components, items, queries)
    points = _first_two(projected) if layout == "pca" else _embed(projected, layout, seed)
    return DrawnMap(layout, _layout_words(layout, components), components, items, queries, sampled, points)


def map_of_all(answers: Answers, drawn: DrawnMap) -> DrawnMap:
    """Return the map with all items and queries by PCA; by another layout as it is drawn."""
    if drawn.layout != "pca":
        return drawn
    items, queries = np.arange(len(answers.stored.before)), np.arange(len(answers.queries))
    points = _first_two(_project(answers, drawn.components, items, queries))
    return drawn._replace(items=items, queries=queries, sampled=None, points=points)


def places_of(rows: Any, drawn: np.ndarray) -> np.ndarray:
    """Return the place of each row number among those that are drawn, −1 where it is not."""
    places = np.searchsorted(drawn, rows).clip(max=len(drawn) - 1)
    return np.where(drawn[places] == rows, places, -1)


def choose_rows(
    occurrence: BeforeAfter, n_queries: int, changed: np.ndarray, limit: int, random_state: int
) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Choose at most `limit` objects, the busiest first, and half as many queries, the changed ones first.

    Returns row numbers of both, rising, and what is drawn in words where that is not all.
    """
    rng, n = np.random.default_rng(random_state), len(occurrence.before)
    with_card = np.argsort(-occurrence.before, kind="stable")[:CARDS]
    busiest = np.argsort(-np.maximum(*occurrence), kind="stable")[: limit // HUBS]
    busiest = np.array(list(dict.fromkeys([*with_card.tolist(), *busiest.tolist()])))[:limit]
    items = _sample(n, busiest, limit, rng)
    queries = _sample(n_queries, changed, max(limit // 2, 1), rng)
    sentences = []
    if len(items) < n:
        others = ", and others at random" if len(busiest) < limit else ""
        sentences.append(f"{len(items):,} of {n:,} items are drawn: the {len(busiest):,} busiest{others}")
    if len(queries) < n_queries:
        counts = f"{len(queries):,} of {n_queries:,} queries are drawn"
        sentences.append(f"{counts}: first those that changed, then others at random")
    words = "; ".join(sentences) + ". All figures are computed from all items and queries."
    return items, queries, words if sentences else None


def _sample(n: int, first: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    """Return all rows, or at most `limit`: the given ones first, then others at random."""
    if n <= limit:
        return np.arange(n)
    first = first[:limit]
    others = np.setdiff1d(np.arange(n), first)
    return np.sort(np.concatenate([first, rng.choice(others, limit - len(first), replace=False)]))


def _project(answers: Answers, components: PCA, items: np.ndarray, queries: np.ndarray) -> MapPoints:
    """Project the original objects and the queries on the components."""
    chosen = (answers.stored.before[items], answers.queries[queries])
    return MapPoints(*map(components.transform, chosen))


def _first_two(projected: MapPoints) -> MapPoints:
    """Return the first two components; a second of zeros where there is only one."""
    missing = max(2 - projected.items.shape[1], 0)
    return MapPoints(*(np.pad(part, ((0, 0), (0, missing)))[:, :2] for part in projected))


def _embed(projected: MapPoints, layout: str, random_state: int) -> MapPoints:
    """Embed objects and queries together, by t-SNE or UMAP."""
    whole = np.concatenate(projected)
    if layout == "tsne":  # imported here, to keep `import hubless` fast
        from sklearn.manifold import TSNE

        start = "pca" if whole.shape[1] > 1 else "random"
        model = TSNE(perplexity=min(30.0, (len(whole) - 1) / 3), init=start, random_state=random_state)
    else:
        from umap import UMAP  # type: ignore[import-not-found, unused-ignore]

        model = UMAP(random_state=random_state, n_jobs=1)
    embedded = np.asarray(model.fit_transform(whole), dtype=np.float64)
    return MapPoints(*np.split(embedded, [len(projected.items)]))


def _layout_words(layout: str, components: PCA) -> str:
    kept = "Places stay as they were before moving."
    if layout == "pca":
        share = 100 * float(np.nan_to_num(components.explained_variance_ratio_[:2]).sum())
        return (
            f"The first two principal components of the items, with {share:.0f} % of their variance. {kept}"
        )
    method = {"tsne": "t-SNE", "umap": "UMAP"}[layout]
    return (
        f"{method} of the items before moving and the queries: points that are near are similar, "
        f"long distances say little. {kept}"
    )
