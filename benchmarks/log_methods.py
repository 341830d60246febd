"""Every correction with the settings that it is tried with, and the rules of others to compare them with.

A method is given a bank and a data set, and says which scores it would rank objects by. Settings are chosen
by the first figure of the validation queries, where doing nothing competes.
"""

from collections.abc import Iterator
from dataclasses import asdict
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hubless import corrections
from hubless.evaluation import Change, measure_change

from .log_data import Asked, LogTask, largest

STRENGTHS = (0.1, 0.25, 0.5, 0.75, 1.0)
NEIGHBORS = (8, 32, 128, 512)
SHARPNESS = (1.0, 2.0, 4.0, 8.0)
SWEEP_K, SWEEP = 2 ** np.arange(10), np.arange(0.25, 1.51, 0.125)  # of NNN: k and α
BETA = 20.0  # of QB-Norm

Setting = dict[str, float]


class Family(NamedTuple):
    """A correction and what is tried: every value of one parameter with every strength."""

    build: type[Any]
    parameter: str | None = None
    values: tuple[float, ...] = ()
    strengths: tuple[float, ...] = STRENGTHS  # none where the correction has no such parameter

    def settings(self, n_bank: int) -> list[Setting]:
        """Return all values of the parameter; no more neighbours than there are logged queries."""
        if self.parameter is None:
            return [{}]
        values = self.values
        if self.parameter == "n_neighbors":
            values = tuple(dict.fromkeys(min(int(value), n_bank) for value in values))
        return [{self.parameter: value} for value in values]


FAMILIES = {
    "NNN": Family(corrections.NNN, "n_neighbors", NEIGHBORS),
    "CSLS": Family(corrections.CSLS, "n_neighbors", (5, 10, 20), (0.5,)),
    "MeanQuery": Family(corrections.MeanQuery),
    "InvertedSoftmax": Family(corrections.InvertedSoftmax, "sharpness", SHARPNESS),
    "DualIS": Family(corrections.DualIS, "sharpness", SHARPNESS),
    "Sinkhorn": Family(corrections.Sinkhorn, "sharpness", (1.0, 2.0, 3.0, 4.0, 6.0)),
    "LocalScaling": Family(corrections.LocalScaling, "n_neighbors", (8, 32, 128)),
    "DisSimLocal": Family(corrections.DisSimLocal, "n_neighbors", (8, 32, 128)),
    "HoldHubs": Family(corrections.HoldHubs, "rate", (0.001, 0.05, 0.5), ()),
}
DEFAULT, NNN_ADVICE, NNN_SWEEP, QB_NORM = "HoldHubs()", "NNN 128, .75", "NNN sweep", "QB-Norm"
PLAIN, QUERY_SIDE = "nothing", "query side"
FIXED = {  # a setting for all data: nothing is chosen
    DEFAULT: corrections.HoldHubs,
    "NNN()": corrections.NNN,
    "Sinkhorn()": corrections.Sinkhorn,
    NNN_ADVICE: lambda: corrections.NNN(0.75, 128),
}
METHODS = (*FAMILIES, *FIXED, NNN_SWEEP, QB_NORM)


class Ranked(NamedTuple):
    """How a method ranks the objects of the test part."""

    scores: np.ndarray  # (m, n), the larger the better
    setting: Setting | None  # None: doing nothing was chosen, or nothing is to be chosen
    moved: np.ndarray | None = None  # (n, d), objects that carry the correction without a column
    validation: Change | None = None
    seconds: float = 0.0  # to learn the correction and to move the objects
    choosing: float = 0.0  # to choose the setting


# g s(q, z) − b
def corrected(asked: Asked, gain: np.ndarray | None, bias: np.ndarray) -> np.ndarray:
    """Return the scores of a correction, (m, n), in the precision of the vectors."""
    S = asked.similarity
    scores = S if gain is None else S * gain.astype(S.dtype)
    return np.asarray(scores - bias.astype(S.dtype))


# strength multiplies b; of LocalScaling, whose b is its g, it is the exponent of g
def at_strength(
    gain: np.ndarray | None, bias: np.ndarray, strength: float
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return g and b of any strength, given those of strength 1."""
    if gain is None:
        return None, strength * bias
    return gain**strength, gain**strength


def rank(method: str, bank: np.ndarray, task: LogTask) -> Ranked:
    """Choose a setting on the validation part, where there is one to choose, and rank the test part by it."""
    if method in FAMILIES:
        return _rank_by_family(FAMILIES[method], bank, task)
    if method in FIXED:
        return _ranked(FIXED[method](), bank, task)
    if method == NNN_SWEEP:
        return _rank_by_sweep(bank, task)
    return Ranked(dynamic_softmax(bank, task.test), {"beta": BETA})


def _ranked(correction: Any, bank: np.ndarray, task: LogTask) -> Ranked:
    started = perf_counter()
    moved = correction.fit(bank, task.test.objects).move(task.test.objects)
    seconds = perf_counter() - started
    return Ranked(corrected(task.test, *correction.bias(task.test.objects)), None, moved, seconds=seconds)


def _rank_by_family(family: Family, bank: np.ndarray, task: LogTask) -> Ranked:
    started = perf_counter()
    setting, change = choose(task.validation, _tries(family, bank, task.validation))
    choosing = perf_counter() - started
    if setting is None:
        nothing = Ranked(task.test.similarity, None, task.test.objects)
        return nothing._replace(validation=change, choosing=choosing)
    ranked = _ranked(family.build(**setting), bank, task)
    return ranked._replace(setting=setting, validation=change, choosing=choosing)


def _tries(family: Family, bank: np.ndarray, asked: Asked) -> Iterator[tuple[Setting, np.ndarray]]:
    """Yield every setting and its scores."""
    for values in family.settings(len(bank)):
        if not family.strengths:
            yield (
                values,
                corrected(asked, *family.build(**values).fit(bank, asked.objects).bias(asked.objects)),
            )
            continue
        full = family.build(**values, strength=1.0).fit(bank, asked.objects).bias(asked.objects)
        for strength in family.strengths:
            yield {**values, "strength": strength}, corrected(asked, *at_strength(*full, strength))


def choose(
    asked: Asked, tries: Iterator[tuple[Setting, np.ndarray]], stay: bool = True
) -> tuple[Setting | None, Change]:
    """Return the best setting and its change; None where nothing is better than doing nothing (`stay`)."""
    name, before = next(iter(asked.measure(asked.plain).items()))
    best, after = (None, before) if stay else (None, np.full(len(before), -np.inf))
    for setting, scores in tries:
        figures = asked.measure(largest(scores))[name]
        if figures.mean() > after.mean():
            best, after = setting, figures
    return best, measure_change(name, "all", before, after)


# --- the rules of others


def mean_of_largest(objects: np.ndarray, bank: np.ndarray, ks: list[int]) -> dict[int, np.ndarray]:
    """Return the mean of the k largest similarities of each object, for each k, the largest k last."""
    means = {k: np.empty(len(objects)) for k in ks}
    for start in range(0, len(objects), 500):
        S = objects[start : start + 500] @ bank.T
        top = -np.sort(np.partition(-S, ks[-1] - 1, axis=1)[:, : ks[-1]], axis=1)
        sums = np.cumsum(top, axis=1, dtype=np.float64)
        for k in ks:
            means[k][start : start + 500] = sums[:, k - 1] / k
    return means


def _rank_by_sweep(bank: np.ndarray, task: LogTask) -> Ranked:
    """NNN with the best of a wide sweep, as its authors advise; doing nothing does not compete."""
    started = perf_counter()
    ks = [int(k) for k in SWEEP_K if k <= len(bank)]
    means = mean_of_largest(task.validation.objects, bank, ks)
    tries = (
        ({"n_neighbors": k, "strength": float(alpha)}, corrected(task.validation, None, alpha * mean))
        for k, mean in means.items()
        for alpha in SWEEP
    )
    setting, change = choose(task.validation, tries, stay=False)
    choosing = perf_counter() - started
    assert setting is not None
    ranked = _ranked(corrections.NNN(setting["strength"], int(setting["n_neighbors"])), bank, task)
    return ranked._replace(setting=setting, validation=change, choosing=choosing)


# s(q, z) − (1/β) log Σ_b exp(β s(b, z)), for queries whose nearest object is nearest to a query of the bank
def dynamic_softmax(bank: np.ndarray, asked: Asked) -> np.ndarray:
    """Return the scores of QB-Norm's dynamic inverted softmax: other queries keep their similarities.

    Queries are treated differently, so no stored vector can say the same.
    """
    B = asked.objects @ bank.T  # (n, b)
    top = B.max(axis=1)
    bias = top + np.log(np.exp(BETA * (B - top[:, None])).sum(axis=1)) / BETA
    is_active = np.isin(asked.plain[:, 0], B.argmax(axis=0))
    return np.where(is_active[:, None], asked.similarity - bias, asked.similarity)


def plain_change(change: Change | None) -> dict[str, Any] | None:
    """Return a change as plain data."""
    return None if change is None else asdict(change)
