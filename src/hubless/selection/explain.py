"""What a race tried and chose: a table, rows for a page, and a few sentences."""

from typing import Any

import numpy as np

from ..movers import Chain, MoveLabeled, Mover, Stay, WithoutColumn
from ..solve import Penalty
from .candidates import name
from .folds import share_error, tried_row
from .race import CAUTION, Race
from .trial import Trial


def table(race: Race, choice: Trial) -> dict[str, np.ndarray]:
    """Return the trials as columns, those with the most queries and then the best first."""
    rows = sorted(race.trials, key=lambda trial: (-trial.n_queries, -trial.score, trial.number))
    apart = [trial.behind(choice) for trial in rows]
    return {
        "mover": np.array([name(trial.mover) for trial in rows]),
        "n_neighbors": np.array([trial.n_neighbors for trial in rows]),
        "n_steps": np.array([len(trial.steps) for trial in rows]),
        "n_queries": np.array([trial.n_queries for trial in rows]),
        "mean_test_score": np.array([trial.score if not trial.error else np.nan for trial in rows]),
        "behind_choice": np.array([mean for mean, _ in apart]),
        "standard_error": np.array([error for _, error in apart]),
        "seconds": np.array([trial.seconds for trial in rows]),
        "error": np.array([trial.error for trial in rows]),
    }


def tried_rows(table: dict[str, np.ndarray], chosen: str) -> list[dict[str, Any]]:
    """Return the rows of such a table as plain data for a page; the error is that of the score itself."""
    scores, n = table["mean_test_score"], table["n_queries"]
    errors = share_error(scores, n)
    return [
        tried_row(
            str(table["mover"][i]),
            scores[i],
            errors[i],
            n[i],
            chosen=str(table["mover"][i]) == chosen,
            k=int(table["n_neighbors"][i]),
            seconds=float(table["seconds"][i]),
            why_not=str(table["error"][i]),
            behind=(table["behind_choice"][i], table["standard_error"][i]),
        )
        for i in range(len(scores))
    ]


def without_comparison(k: int, has_pair: bool) -> tuple[dict[str, np.ndarray], str]:
    """Return the table and the sentences where nothing could be compared: one row, not moving, no score."""
    row = {
        "mover": name(Stay()),
        "n_neighbors": k,
        "n_steps": 0,
        "n_queries": 0,
        "mean_test_score": np.nan,
        "behind_choice": np.nan,
        "standard_error": np.nan,
        "seconds": 0.0,
        "error": "",
    }
    why = "There is no second object of any class"
    if has_pair:
        why = "There are too few objects to hold some out as queries and still have a pair to learn from"
    words = (
        f"{why}, so nothing could be compared. It answers as plain k-NN with {_neighbours(k)}, and moves "
        "nothing. Give more objects per class to learn how to move them."
    )
    return {column: np.array([value]) for column, value in row.items()}, words


def _neighbours(k: int) -> str:
    """Return "1 neighbour", "3 neighbours"."""
    return f"{k} neighbour{'s' * (k > 1)}"


def explain_grid(
    penalty: Penalty, n_targets: int, k: int, score: float, n_settings: int, n_classes: int
) -> str:
    """Say which setting of the paper's ridge was chosen, and why."""
    return (
        f"MoveLabeled with {penalty}, n_targets={n_targets} and {_neighbours(k)}: {score:.1%} of "
        f"held-out queries are answered correctly, the best of {n_settings} settings."
        f"{_one_class(n_classes)}"
    )


def _one_class(n_classes: int) -> str:
    """Say that there is nothing to choose where all objects are of one class; else nothing."""
    if n_classes > 1:
        return ""
    return " All objects are of one class, and every query is answered with it: give two or more to learn."


def without_column_words(mover: Mover) -> str:
    """Say what it costs to do without a column, where a fitted mover does; else nothing."""
    last = mover.movers_[-1] if isinstance(mover, Chain) else mover
    if not isinstance(last, WithoutColumn) or last.direction_ is None:
        return ""
    return (
        f" Without a column, the nearest object of {last.changed_class_:.1%} of held-out objects is of "
        "another class than with one."
    )


def explain(race: Race, choice: Trial) -> str:
    """Say what was chosen, and why, in a few sentences."""
    chosen = f"{name(choice.mover)} with {_neighbours(choice.n_neighbors)}"
    if race.best().score > 0:
        sentences = [
            f"{chosen}: {choice.score:.1%} of {choice.n_queries:,} held-out queries are answered correctly.",
            _against_best(race, choice),
            *_against_rivals(race, choice),
        ]
    else:
        sentences = [
            f"{chosen}: the simplest setting. None answers any of {choice.n_queries:,} held-out queries "
            "correctly, so nothing could be compared."
        ]
    n_tried = len(race.trials)
    given_up = sum(trial.n_queries < race.first_round and not trial.error for trial in race.trials)
    settings = "1 setting was" if n_tried == 1 else f"{n_tried} settings were"
    early = f"; {given_up} {'was' if given_up == 1 else 'were'} given up early" if given_up else ""
    sentences.append(f"{settings} tried in {race.seconds:.1f} s{early}.")
    if errors := [trial.error for trial in race.trials if trial.error]:
        sentences.append(f"{len(errors)} could not be fitted; the first: {errors[0].rstrip('.')}.")
    if race.is_out_of_time():
        sentences.append(f"The race ended at the limit of {race.max_seconds:g} s.")
    return " ".join(sentences) + _one_class(race.folds.n_classes)


def _against_best(race: Race, choice: Trial) -> str:
    best, plain = race.best(), race.plain()
    if not choice.steps and choice.number != best.number:
        behind, error = choice.behind(best)
        return (
            f"No setting is ahead of it by more than {CAUTION:g} standard errors; the most accurate, "
            f"{name(best.mover)}, answers {_points(behind, error, choice, best)}."
        )
    ahead, error = plain.behind(choice)
    most = "It is the most accurate" if choice.number == best.number else "Its gain is the surest"
    if choice.number == plain.number:
        return f"{most}, with a standard error of {choice.score_error():.2%}."
    than = "not moving at all" if not plain.steps else name(plain.mover)
    return f"{most}: it answers {_points(ahead, error, plain, choice, f' than {than} does')}."


def _points(ahead: float, error: float, one: Trial, other: Trial, than: str = "") -> str:
    """Return by how much one answers more than the other, its standard error, and on which queries."""
    both = min(one.n_queries, other.n_queries)
    return (
        f"{100 * ahead:.2f} percentage points more{than} (standard error {100 * error:.2f}), on the {both:,} "
        "queries that both answered"
    )


def _against_rivals(race: Race, choice: Trial) -> list[str]:
    """Return a sentence each on not moving and on the paper's mover, where they were tried and not chosen."""
    sentences = []
    for title, kinds in (("Not moving at all", ()), ("The paper's ridge", (MoveLabeled,))):
        alike = [trial for trial in race.trials if tuple(type(step) for step in trial.steps) == kinds]
        alike = [trial for trial in alike if not trial.error]
        if alike and choice.number not in {trial.number for trial in alike}:
            rival = max(alike, key=lambda trial: trial.score)
            sentences.append(f"{title}: {rival.score:.1%} of {rival.n_queries:,}.")
    return sentences
