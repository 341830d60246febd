"""Ways to repair an index from pairs of queries and documents, each asked with the same test queries.

None sees a test query. Settings are chosen on held-out training queries: ours by five folds, drawn anew until
there are some thousand answers; NUDGE's by a fifth of the queries, as it does itself. A choice by chance is
no result, so all of it is done in five draws: ours with five seeds, NUDGE's with each fifth in turn.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hubless.index.collection import Collection
from hubless.index.held_out import ANSWERS, REPEATS, K, Lesson
from hubless.index.learn import learn_from_pairs
from hubless.index.pairs import Judged
from hubless.index.repair import unit
from hubless.movers.linear import centre, learned, move, problem_of_pairs
from hubless.retrieval import gains, ndcg
from hubless.solve import Penalty
from hubless.stores.file_store import exhaustive

from .index_data import Pairs

FOLDS = 5
DRAWS = 5  # of which the first alone, for a quick look
ALPHAS = tuple(2.0**power for power in range(-3, 5))  # λ over the mean eigenvalue
STEPS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
ROUNDING = 1e-6  # how far float32 moves a vector of length 1 that stays
NONE, OURS, BY_L2 = "none", "hubless fit", "hubless fit, index by L2"
REFIT = ", fitted again to all"


class Index(NamedTuple):
    """Documents as they are stored, how they are compared, and what is done to a query before."""

    stored: np.ndarray  # (n, d)
    metric: str = "l2"  # which is cosine where all have length 1
    ask: Callable[[np.ndarray], np.ndarray] = np.asarray

    def answer(self, queries: np.ndarray) -> np.ndarray:
        """Row numbers of the K nearest documents, nearest first; (queries, K)."""
        return exhaustive(self.ask(queries), self.stored, K, self.metric)


class Way(NamedTuple):
    """A way to move, with settings to choose from."""

    moves: str
    told: str  # a setting in words
    settings: tuple[float, ...]
    learn: Callable[[Lesson, Collection], Callable[[float], Index]]  # what it comes to, for a setting


class Run(NamedTuple):
    """What a method came to in one draw."""

    setting: str
    seconds: float  # from the pairs to the moved documents, the choice included
    answers: np.ndarray  # row numbers of documents for the test queries; (queries, K)
    held_out: dict[str, float]  # mean nDCG of training queries by setting


class Answered(NamedTuple):
    """A method and its runs."""

    moves: str
    runs: list[Run]


# z' = μ + W (z − μ), where W regresses queries from documents
def move_documents(toward: str, lesson: Lesson, items: Collection) -> Callable[[float], Index]:
    """All documents are moved."""

    def at(alpha: float) -> Index:
        W, mean, _ = learned(lesson.problem, lesson.mean, Penalty(alpha, relative=True), lesson.z, toward)
        return Index(unit(move(items.vectors, W, mean)))

    return at


# x' = μ + W (x − μ), where W regresses documents from queries
def move_queries(lesson: Lesson, items: Collection) -> Callable[[float], Index]:
    """Documents stay; queries are moved."""
    middle = centre(lesson.x, None, True)
    problem = problem_of_pairs(lesson.z, lesson.x, None, middle)

    def at(alpha: float) -> Index:
        W, mean, _ = learned(problem, middle, Penalty(alpha, relative=True), lesson.x, "identity")
        return Index(items.vectors, ask=lambda queries: unit(move(queries, W, mean)))

    return at


def step_alone(lesson: Lesson, items: Collection) -> Callable[[float], Index]:
    """Documents with queries of their own go toward these; the others stay."""
    return lambda step: Index(lesson.stepped(step, items.vectors, "cosine"))


SCALE, SOME = "λ = {:g} scale", "documents with queries"
WAYS = {
    "ridge toward zero (the paper's)": Way("documents", SCALE, ALPHAS, partial(move_documents, "zero")),
    "ridge toward the identity": Way("documents", SCALE, ALPHAS, partial(move_documents, "identity")),
    "step toward own queries": Way(SOME, "step {:g}", STEPS, step_alone),
    "ridge toward the identity, query side": Way("queries", SCALE, ALPHAS, move_queries),
}


def folds(n: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers that are learned from, and those that are held out."""
    for fold in np.array_split(rng.permutation(n), FOLDS):
        yield np.setdiff1d(np.arange(n), fold), fold


def held_out(way: Way, data: Pairs, seed: int) -> dict[float, float]:
    """Mean nDCG of training queries not learned from, by setting; the folds are those of `hubless fit`."""
    n, rng = len(data.train.queries), np.random.default_rng(seed)
    repeats = min(REPEATS, -(-ANSWERS // n))
    total = dict.fromkeys(way.settings, 0.0)
    for _ in range(repeats):
        for known, fold in folds(n, rng):
            asked = data.train.take(fold)
            at = way.learn(Lesson(data.train.take(known), data.items), data.items)
            relevant = asked.rows(data.items.places)
            for setting in way.settings:
                found = at(setting).answer(asked.queries)
                total[setting] += float(ndcg(gains(found, relevant), relevant).sum())
    return {setting: score / (repeats * n) for setting, score in total.items()}


def stay(data: Pairs, draws: int) -> dict[str, Answered]:
    found = Index(data.items.vectors).answer(data.test.queries)
    return {NONE: Answered("nothing", [Run("", 0.0, found, {})])}


def choose(name: str, data: Pairs, draws: int) -> dict[str, Answered]:
    """A way with the setting of the highest nDCG on held-out queries."""
    way, runs = WAYS[name], []
    for seed in range(draws):
        start = perf_counter()
        scores = held_out(way, data, seed)
        best = max(scores, key=scores.__getitem__)
        index = way.learn(Lesson(data.train, data.items), data.items)(best)
        seconds = perf_counter() - start
        tried = {f"{setting:g}": score for setting, score in scores.items()}
        runs.append(Run(way.told.format(best), seconds, index.answer(data.test.queries), tried))
    return {name: Answered(way.moves, runs)}


def hubless(metric: str, data: Pairs, draws: int) -> dict[str, Answered]:
    """What `hubless fit` does, for an index by cosine or by L2 of the same vectors, which have length 1."""
    items, runs = replace(data.items, metric=metric), []
    for seed in range(draws):
        start = perf_counter()
        model = learn_from_pairs(items, data.train, random_state=seed)
        index = Index(model.move(items.vectors, items.ids.tolist()))
        seconds = perf_counter() - start
        runs.append(Run(model.facts["learned"]["mover"], seconds, index.answer(data.test.queries), {}))
    return {OURS if metric == "cosine" else BY_L2: Answered("documents", runs)}


def nudge(name: str, data: Pairs, draws: int) -> dict[str, Answered]:
    """NUDGE with each fifth of the training queries as its validation set, and then with γ on all of them.

    What it gives is compared by inner product, as it says: NUDGE-M's vectors have no common length.
    """
    tuner = getattr(import_module("nudge"), name.replace("-", ""))()
    everything = _for_nudge(data.train, data.items)
    first, again = Answered(SOME, []), Answered(SOME, [])
    for known, fold in islice(folds(len(data.train.queries), np.random.default_rng(0)), draws):
        parts = [_for_nudge(data.train.take(rows), data.items) for rows in (known, fold)]
        stored, took = _tuned(tuner, data.items.vectors, *parts)
        gamma = gamma_of(name, stored, data.items.vectors)
        first.runs.append(_nudged(stored, gamma, took, data))
        stored, more = _tuned(tuner, data.items.vectors, everything, parts[1], gamma=gamma)
        again.runs.append(_nudged(stored, gamma, took + more, data))
    return {name: first, name + REFIT: again}


def _for_nudge(judged: Judged, items: Collection) -> dict[str, Any]:
    return {"q_embs": judged.queries, "q_ans_indx": [[*own] for own in judged.rows(items.places)]}


def _tuned(tuner: Any, *data: Any, **options: Any) -> tuple[np.ndarray, float]:
    """Documents that it moved, and how long it took."""
    start = perf_counter()
    with redirect_stdout(io.StringIO()):  # it tells its steps
        stored = tuner.finetune_embeddings(*data, **options)
    return stored, perf_counter() - start


def _nudged(stored: np.ndarray, gamma: float, seconds: float, data: Pairs) -> Run:
    return Run(f"γ = {gamma:.2f}", seconds, Index(stored, "ip").answer(data.test.queries), {})


# NUDGE-M moves documents by γ, NUDGE-N by √γ at most
def gamma_of(name: str, moved: np.ndarray, vectors: np.ndarray) -> float:
    """The γ that NUDGE chose, which it does not tell: from how far it moved."""
    longest = float(np.linalg.norm(moved - vectors, axis=1).max())
    longest = longest if longest > ROUNDING else 0.0
    return longest if name == "NUDGE-M" else longest**2


METHODS: dict[str, Callable[[Pairs, int], dict[str, Answered]]] = {
    NONE: stay,
    **{name: partial(choose, name) for name, way in WAYS.items() if way.moves != "queries"},
    OURS: partial(hubless, "cosine"),
    BY_L2: partial(hubless, "l2"),
    **{name: partial(nudge, name) for name in ("NUDGE-M", "NUDGE-N")},
    **{name: partial(choose, name) for name, way in WAYS.items() if way.moves == "queries"},
}
