"""The best settings of a race side by side: fitted to the same items, measured on the queries of the page.

No setting has learned from these queries, so they show what is left of a lead by which one was chosen.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import to_numpy
from ..classifier import MoveLabeledClassifier
from ..evaluation import HUBS, BeforeAfter, Evaluation, evaluate_classes, evaluate_relevance
from ..hubness import Hubness
from ..movers import Mover
from ..movers.points import as_queries
from ..repair.evaluate import AnsweredQueries
from ..repair.learn_in_memory import movers_for_metric
from ..retrieval import Relevant, gains, ndcg
from ..selection.candidates import name, steps
from ..selection.folds import TIE, mean_and_error
from ..selection.grid import PAIR_ALPHAS
from ..selection.pair_map import STAY, STEPS, JudgedQueries, PairMap, PairSetting
from ..support.progress import step
from .scores_in_words import capital
from .scores_in_words import name as name_of
from .verdict import deciding

BEST = 3  # settings that are compared, besides not moving


class SettingAnswers(NamedTuple):
    """What the queries of a page find with one setting."""

    values: np.ndarray  # the measure that decides, of each query that it is the mean of
    correct: np.ndarray  # (m,), whether a query is answered correctly
    hubness: Hubness


class Rivals(Protocol):
    """The settings of a race, which can be fitted to the items of a page."""

    @property
    def evaluation(self) -> Evaluation:
        """That of the chosen one."""

    @property
    def stay(self) -> str:
        """The name of not moving."""

    def kind(self, setting: str) -> Any:
        """Return what two settings share that differ in their numbers alone; None for an unknown one."""

    def words(self, setting: str) -> str:
        """Say what a setting does."""

    def known(self) -> BeforeAfter:
        """Return what is found without moving and with the chosen setting: it is not fitted again."""

    def find(self, row: Mapping[str, Any]) -> SettingAnswers:
        """Fit a setting and search with all queries."""


def compare_movers(rivals: Rivals, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the best settings and not moving, and what the page's queries find; None without a race.

    `tried` are rows of the race (`tried_row`), the best first.
    """
    rows = best_settings(rivals, tried)
    if len(rows) < 2:
        return None
    before, after = rivals.known()
    found = []
    with step(f"comparing {len(rows)} movers", len(rows), "movers") as comparing:
        for row in rows:
            is_plain = row["name"] == rivals.stay
            found.append(after if row["chosen"] else before if is_plain else rivals.find(row))
            comparing.update()
    if all(row["name"] != rivals.stay for row in rows):  # a grid of λ does not try it
        k = rivals.evaluation.answers.ks.before
        rows, found = [*rows, {"name": rivals.stay, "k": k, "chosen": False}], [*found, before]
    return {
        "measure": capital(name_of(deciding(rivals.evaluation))),
        "settings": [
            _setting(rivals, row, result, before, after) for row, result in zip(rows, found, strict=True)
        ],
    }


def with_rivals(choice: dict[str, Any], rivals: Rivals) -> dict[str, Any]:
    """Return what a page says of a choice with its best settings side by side, and the time that took."""
    started, compared = perf_counter(), compare_movers(rivals, choice.get("movers", []))
    if compared is None:
        return choice
    spent = {
        "what": "fitting the other movers of the comparison, for this page",
        "seconds": perf_counter() - started,
    }
    return {**choice, "compared": compared, "seconds": [*choice.get("seconds", []), spent]}


def best_settings(rivals: Rivals, tried: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the chosen setting, then the best of other kinds, then the best of all; last, not moving.

    Two settings that differ in their numbers alone are of one kind. Nothing, where none was chosen.
    """
    known = [row for row in tried if row["score"] is not None and rivals.kind(row["name"]) is not None]
    first = [row for row in known if row["chosen"]]
    if not first:
        return []
    by_name: dict[str, Mapping[str, Any]] = {}
    for row in [*first, *known]:
        by_name.setdefault(row["name"], row)
    names, kinds = [setting for setting in by_name if setting != rivals.stay], dict[Any, str]()
    for setting in names:
        kinds.setdefault(rivals.kind(setting), setting)
    best = list(dict.fromkeys([*kinds.values(), *names]))[:BEST]
    return [by_name[setting] for setting in [*best, rivals.stay] if setting in by_name]


def _setting(
    rivals: Rivals,
    row: Mapping[str, Any],
    found: SettingAnswers,
    before: SettingAnswers,
    after: SettingAnswers,
) -> dict[str, Any]:
    """Return a setting of the race with what the queries of the page find."""
    apart = None if row["chosen"] else mean_and_error(after.values - found.values)
    return {
        **{key: row.get(key) for key in ("name", "k", "score", "error", "queries", "why_not")},
        "chosen": bool(row["chosen"]),
        "does": rivals.words(row["name"]),
        "in_race": None if row["chosen"] else _difference(row.get("behind")),
        "value": float(found.values.mean()),
        "here": _difference(apart),
        "skewness": found.hubness.skewness,
        "never": found.hubness.antihub_share,
        "fixed": int((found.correct & ~before.correct).sum()),
        "broken": int((before.correct & ~found.correct).sum()),
    }


# d = score − score of the chosen one, query by query; no more than chance if |d| ≤ its standard error
def _difference(behind: Sequence[float] | None) -> dict[str, Any] | None:
    """Return how far a setting is from the chosen one, its standard error, and whether it is within that."""
    if behind is None:
        return None
    mean, error = behind
    return {"mean": -mean, "error": error, "within": abs(mean) <= error + TIE}


def _first_words(mover: Mover) -> str:
    """Return the first words of a mover's documentation, up to its formula, in the words of the page."""
    words = re.split(r"[:;(\n]", mover.__doc__ or "")[0].strip().removesuffix(".")
    return words.replace("labeled objects", "items").replace("object", "item") or type(mover).__name__


# --- from labels --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelRivals:
    """Movers that competed by the classes of held-out objects."""

    evaluation: Evaluation
    movers: Mapping[str, Mover]  # not fitted, by their names in the race
    weights: np.ndarray | None = None  # of the votes of objects
    voting: str = "uniform"
    k: int | None = None  # neighbours that vote, where the number was given; by default the best of each
    stay: str = "Stay()"

    def kind(self, setting: str) -> tuple[type[Mover], ...] | None:
        """Return the kinds of its steps."""
        mover = self.movers.get(setting)
        return None if mover is None else tuple(type(step) for step in steps(mover))

    def words(self, setting: str) -> str:
        """Say what every step does: the first words of its documentation."""
        if setting == self.stay:
            return "Leave the items where they are."
        told = [_first_words(step) for step in steps(self.movers[setting])]
        return "; then ".join([*told[:1], *(words[:1].lower() + words[1:] for words in told[1:])]) + "."

    def known(self) -> BeforeAfter:
        """Return what is found before and after, as it was measured."""
        correct, hubness = self.evaluation.answers.correct, self.evaluation.hubness
        return BeforeAfter(
            *(SettingAnswers(c.astype(float), c, h) for c, h in zip(correct, hubness, strict=True))
        )

    def find(self, row: Mapping[str, Any]) -> SettingAnswers:
        """Fit a mover to the stored objects, and let the objects vote as in the race."""
        answers, tried = self.evaluation.answers, self.movers[row["name"]]
        assert answers.labels is not None
        assert answers.truth is not None
        k = min(self.k or row["k"], len(answers.stored.before))
        model = MoveLabeledClassifier(k, mover=tried, weights=self.voting)
        model.fit(answers.stored.before, answers.labels, sample_weight=self.weights)
        asked = as_queries(answers.queries, model.mover_.space_)
        # the same before and after: one search
        stored, queries, ks = (BeforeAfter(x, x) for x in (to_numpy(model.moved_), asked, k))
        options: dict[str, Any] = {"by_distance": self.voting == "distance", "weights": self.weights}
        measured = evaluate_classes(
            stored, queries, answers.labels, answers.truth, ks, metric=answers.metric, **options
        )
        correct = measured.answers.correct.after
        return SettingAnswers(correct.astype(float), correct, measured.hubness.after)


# --- from pairs of queries and items ------------------------------------------------------------------------


@dataclass(frozen=True)
class PairRivals:
    """Maps and steps that competed by the relevant items of held-out queries."""

    evaluation: Evaluation
    pairs: PairMap  # of the queries that were learned from
    relevant: Relevant  # of the page's queries
    decides: np.ndarray  # (m,), whether a query is one of those that the verdict rests on
    stay: str = str(STAY)

    def kind(self, setting: str) -> tuple[bool, bool] | None:
        """Return whether there is a map, and whether there is a step."""
        known = PAIR_SETTINGS.get(setting)
        return None if known is None else (known.alpha is not None, known.step > 0)

    def words(self, setting: str) -> str:
        """Say what the map and the step do."""
        if setting == self.stay:
            return "Leave the items where they are."
        has_map, has_step = self.kind(setting) or (False, False)
        told = ["move all items by one map, learned from the pairs"] * has_map
        told += [
            "move items that have queries toward these, as far as others' queries do not lose by it"
        ] * has_step
        return f"{capital('; then '.join(told))}."

    def known(self) -> BeforeAfter:
        """Return what is found before and after, as it was measured."""
        return BeforeAfter(*(self._found(self.evaluation, state) for state in BeforeAfter._fields))

    def find(self, row: Mapping[str, Any]) -> SettingAnswers:
        """Move all items as a setting does, learned from the same queries, and search with the others."""
        answers, setting = self.evaluation.answers, PAIR_SETTINGS[row["name"]]
        moved = self.pairs.stepped(setting.step, self.pairs.moved(setting.alpha, answers.stored.before))
        stored, queries = (BeforeAfter(x, x) for x in (moved, answers.queries))
        k, metric = answers.ks.after, answers.metric
        return self._found(evaluate_relevance(stored, queries, self.relevant, k, metric=metric), "after")

    def _found(self, evaluation: Evaluation, state: str) -> SettingAnswers:
        answers = evaluation.answers
        near = getattr(answers.neighbors, state)[:, : answers.ks.after]
        values = ndcg(gains(near, self.relevant), self.relevant)[self.decides]
        return SettingAnswers(values, getattr(answers.correct, state), getattr(evaluation.hubness, state))


PAIR_SETTINGS = {
    str(setting): setting for setting in (PairSetting(*of) for of in product((None, *PAIR_ALPHAS), STEPS))
}


# --- of an index --------------------------------------------------------------------------------------------


def rivals_of(answered: AnsweredQueries, k: int | None) -> Rivals | None:
    """Return what a model for an index was chosen from; `k` is the number of neighbours that was given.

    None where more answers count than a page keeps of each query.
    """
    evaluation, items, model = answered.evaluation, answered.items, answered.model
    if answered.learned is None or answered.held is None:
        movers = {name(mover): mover for mover in movers_for_metric(items.metric, "auto")}
        return LabelRivals(evaluation, movers, k=k)
    if evaluation.answers.ks.after > HUBS:
        return None
    items = items.in_space(model.metric)
    learned = JudgedQueries(items.comparable(answered.learned.queries), answered.learned.rows(items.places))
    pairs = PairMap(learned, items.vectors, model.metric == "cosine")
    relevant = answered.held.rows(items.places)
    seen = {item for answers in learned.relevant for item in answers}
    is_seen = np.array([not seen.isdisjoint(answers) for answers in relevant], dtype=bool)
    part = deciding(evaluation).part
    decides = {"all": np.ones_like(is_seen), "seen": is_seen, "unseen": ~is_seen}[part]
    return PairRivals(evaluation, pairs, relevant, decides)
