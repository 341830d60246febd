"""What neighbours are to queries: right, wrong or unjudged, and whether they do harm; and how often."""

from typing import NamedTuple

import numpy as np

from ..evaluation import Answers, BeforeAfter, Evaluation


def missed(answers: Answers) -> BeforeAfter:
    """Return whether neighbours are wrong answers, or of pairs, not known to be relevant; (m, h)."""
    if answers.relevant is None:
        return answers.wrong
    return BeforeAfter(*(~state for state in answers.relevant))


def unjudged(answers: Answers) -> BeforeAfter:
    """Return whether neighbours are neither known to be relevant nor judged wrong; (m, h)."""
    pairs = zip(missed(answers), answers.wrong, strict=True)
    return BeforeAfter(*(state & ~wrong for state, wrong in pairs))


def harm(answers: Answers) -> BeforeAfter:
    """Return whether neighbours do harm: wrong answers, or of pairs, those in the way of a relevant one."""
    return answers.wrong if answers.in_the_way is None else answers.in_the_way


class Counts(NamedTuple):
    """For how many queries each object is among the nearest, (n,), and how many of these it fails."""

    all: BeforeAfter
    missed: BeforeAfter
    wrong: BeforeAfter
    unjudged: BeforeAfter
    harm: BeforeAfter


def count_occurrence(evaluation: Evaluation) -> Counts:
    """Count the queries that find each object, by what it is to them."""
    answers, n = evaluation.answers, len(evaluation.answers.stored.before)

    def count(masks: BeforeAfter) -> BeforeAfter:
        pairs = zip(answers.neighbors, masks, strict=True)
        kept = ((answers.counted(near), answers.counted(mask)) for near, mask in pairs)
        return BeforeAfter(*(np.bincount(near[mask], minlength=n) for near, mask in kept))

    occurrence = BeforeAfter(*(hubness.occurrence for hubness in evaluation.hubness))
    kinds = missed(answers), answers.wrong, unjudged(answers), harm(answers)
    return Counts(occurrence, *map(count, kinds))
