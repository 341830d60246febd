"""Ways to repair an index from pairs of queries and documents, each tested with the same queries.

None sees a test query. Settings are chosen on held-out training queries: ours by five folds, drawn again
until there are a few thousand answers; NUDGE's by a fifth of the queries, as it does itself. One draw may
be lucky, so everything is done in five draws: ours with five seeds, NUDGE's with each fifth in
turn.
"""

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hubless.movers.points import weighted_mean
from hubless.movers.ridge import move
from hubless.neighbors.knn import exhaustive, unit
from hubless.repair.index_items import IndexItems
from hubless.repair.judgements import Judgements
from hubless.repair.learn_in_memory import learn_from_pairs
from hubless.retrieval import gains, ndcg
from hubless.selection.folds import query_folds
from hubless.selection.from_pairs import ANSWERS, REPEATS, K
from hubless.selection.pair_map import JudgedQueries, PairMap, step_toward
from hubless.solve import Penalty, problem_of_pairs

from .index_data import Pairs

FOLDS = 5
DRAWS = 5  # only the first for a quick look
ALPHAS = tuple(2.0**power for power in range(-3, 5))  # λ over the mean eigenvalue
STEPS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
ROUNDING = 1e-6  # how far float32 moves a vector of length 1 that stays
NONE, OURS, BY_L2 = "none", "hubless fit", "hubless fit, index by L2"
REFIT = ", fitted again to all"


class Index(NamedTuple):
    """Documents as they are stored, how they are compared, and what is done to a query first."""

    stored: np.ndarray  # (n, d)
    metric: str = "l2"  # which is cosine where all have length 1
    prepare: Callable[[np.ndarray], np.ndarray] = np.asarray

    def answer(self, queries: np.ndarray) -> np.ndarray:
        """Return the row numbers of the K nearest documents, nearest first; (queries, K)."""
        return exhaustive(self.prepare(queries), self.stored, K, self.metric)


class Way(NamedTuple):
    """A way to move, with settings to choose from."""

    moves: str
    text: str  # a setting in words
    settings: tuple[float, ...]
    learn: Callable[[PairMap, IndexItems], Callable[[float], Index]]  # the index, for a setting


class Run(NamedTuple):
    """The result of a method in one draw."""

    setting: str
    seconds: float  # from the pairs to the moved documents, including the choice
    answers: np.ndarray  # row numbers of documents for the test queries; (queries, K)
    held_out: dict[str, float]  # mean nDCG of training queries by setting


class Answered(NamedTuple):
    """A method and its runs."""

    moves: str
    runs: list[Run]


def pair_map(judged: Judgements, items: IndexItems) -> PairMap:
    """What pairs teach, for documents of length 1."""
    return PairMap(JudgedQueries(judged.queries, judged.rows(items.places)), items.vectors, is_unit=True)


# z' = μ + W (z − μ), where W regresses queries from documents
def move_documents(toward: str, pairs: PairMap, items: IndexItems) -> Callable[[float], Index]:
    """Move all documents."""

    def at(alpha: float) -> Index:
        W, mean, _ = pairs.problem.best_map(Penalty(alpha, relative=True), pairs.z.dtype, toward)
        return Index(unit(move(items.vectors, W, mean)))

    return at


# x' = μ + W (x − μ), where W regresses documents from queries
def move_queries(pairs: PairMap, items: IndexItems) -> Callable[[float], Index]:
    """Move queries and leave the documents."""
    problem = problem_of_pairs(pairs.z, pairs.x, None, weighted_mean(pairs.x))

    def at(alpha: float) -> Index:
        W, mean, _ = problem.best_map(Penalty(alpha, relative=True), pairs.x.dtype, "identity")
        return Index(items.vectors, prepare=lambda queries: unit(move(queries, W, mean)))

    return at


# (1 − s) z + s (q̄ − g), where g is the mean of q̄ − z
def step_alone(pairs: PairMap, items: IndexItems) -> Callable[[float], Index]:
    """Move documents with training queries toward these, and do not hold them; leave the others."""
    before = items.vectors[pairs.rows]
    goals = pairs.means - (pairs.means - before).mean(axis=0)

    def at(step: float) -> Index:
        stored = items.vectors.copy()
        stored[pairs.rows] = unit(step_toward(before, goals, step))
        return Index(stored)

    return at


SCALE, WITH_QUERIES = "λ = {:g} scale", "documents with queries"
WAYS = {
    "ridge toward zero (the paper's)": Way("documents", SCALE, ALPHAS, partial(move_documents, "zero")),
    "ridge toward the identity": Way("documents", SCALE, ALPHAS, partial(move_documents, "identity")),
    "step toward own queries": Way(WITH_QUERIES, "step {:g}", STEPS, step_alone),
    "ridge toward the identity, query side": Way("queries", SCALE, ALPHAS, move_queries),
}


def held_out(way: Way, data: Pairs, seed: int) -> dict[float, float]:
    """Return the mean nDCG of held-out training queries by setting; the folds are those of `hubless fit`."""
    n, rng = len(data.train.queries), np.random.default_rng(seed)
    repeats = min(REPEATS, -(-ANSWERS // n))
    total = dict.fromkeys(way.settings, 0.0)
    for _ in range(repeats):
        for known, fold in query_folds(n, FOLDS, rng):
            test = data.train.take(fold)
            at = way.learn(pair_map(data.train.take(known), data.items), data.items)
            relevant = test.rows(data.items.places)
            for setting in way.settings:
                answers = at(setting).answer(test.queries)
                total[setting] += float(ndcg(gains(answers, relevant), relevant).sum())
    return {setting: score / (repeats * n) for setting, score in total.items()}


def stay(data: Pairs, draws: int) -> dict[str, Answered]:
    """Leave all documents where they are."""
    answers = Index(data.items.vectors).answer(data.test.queries)
    return {NONE: Answered("nothing", [Run("", 0.0, answers, {})])}


def choose(name: str, data: Pairs, draws: int) -> dict[str, Answered]:
    """Run a way with the setting of the highest nDCG on held-out queries."""
    way, runs = WAYS[name], []
    for seed in range(draws):
        start = perf_counter()
        scores = held_out(way, data, seed)
        best = max(scores, key=scores.__getitem__)
        index = way.learn(pair_map(data.train, data.items), data.items)(best)
        seconds = perf_counter() - start
        tried = {f"{setting:g}": score for setting, score in scores.items()}
        runs.append(Run(way.text.format(best), seconds, index.answer(data.test.queries), tried))
    return {name: Answered(way.moves, runs)}


def hubless(metric: str, data: Pairs, draws: int | Sequence[int]) -> dict[str, Answered]:
    """Do what `hubless fit` does, for an index by cosine or by L2 of the same vectors, of length 1.

    `draws` are as many seeds from 0, or the seeds.
    """
    items, runs = replace(data.items, metric=metric), []
    for seed in range(draws) if isinstance(draws, int) else draws:
        start = perf_counter()
        model = learn_from_pairs(items, data.train, random_state=seed)
        index = Index(model.move(items.vectors, items.ids.tolist()))
        seconds = perf_counter() - start
        runs.append(Run(model.facts["learned"]["mover"], seconds, index.answer(data.test.queries), {}))
    return {OURS if metric == "cosine" else BY_L2: Answered("documents", runs)}


def nudge(name: str, data: Pairs, draws: int) -> dict[str, Answered]:
    """Run NUDGE with each fifth of the training queries as its validation set, then with γ on all of them.

    Its vectors are compared by inner product, as it says: those of NUDGE-M have no common length.
    """
    tuner = getattr(import_module("nudge"), name.replace("-", ""))()
    everything = _for_nudge(data.train, data.items)
    first, again = Answered(WITH_QUERIES, []), Answered(WITH_QUERIES, [])
    for known, fold in query_folds(len(data.train.queries), FOLDS, np.random.default_rng(0))[:draws]:
        parts = [_for_nudge(data.train.take(rows), data.items) for rows in (known, fold)]
        stored, took = _tuned(tuner, data.items.vectors, *parts)
        gamma = gamma_of(name, stored, data.items.vectors)
        first.runs.append(_nudged(stored, gamma, took, data))
        stored, more = _tuned(tuner, data.items.vectors, everything, parts[1], gamma=gamma)
        again.runs.append(_nudged(stored, gamma, took + more, data))
    return {name: first, name + REFIT: again}


def _for_nudge(judged: Judgements, items: IndexItems) -> dict[str, Any]:
    return {"q_embs": judged.queries, "q_ans_indx": [[*relevant] for relevant in judged.rows(items.places)]}


def _tuned(tuner: Any, *data: Any, **options: Any) -> tuple[np.ndarray, float]:
    """Return the documents that it moved, and how long it took."""
    start = perf_counter()
    with redirect_stdout(io.StringIO()):  # it prints its steps
        stored = tuner.finetune_embeddings(*data, **options)
    return stored, perf_counter() - start


def _nudged(stored: np.ndarray, gamma: float, seconds: float, data: Pairs) -> Run:
    return Run(f"γ = {gamma:.2f}", seconds, Index(stored, "ip").answer(data.test.queries), {})


# NUDGE-M moves documents by γ, NUDGE-N by √γ at most
def gamma_of(name: str, moved: np.ndarray, vectors: np.ndarray) -> float:
    """Return the γ that NUDGE chose, which it does not report: from how far it moved."""
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
