"""Reports that the tests of the page open, each made once."""

from functools import cache

import numpy as np

from hubless import MoveLabeledClassifier, compare
from hubless.evaluation import BeforeAfter, evaluate_classes, evaluate_relevance
from hubless.report.details import Captions
from hubless.report.map_layout import Drawing
from hubless.report.report import ModelDescription, make_report


def unchanged(value):
    """The same before and after."""
    return BeforeAfter(value, value)


# Six classes in many dimensions, where hubs do harm: moving helps measurably. The class is in each text.
@cache
def labelled():
    """X, names of classes, queries, their classes."""
    rng, names = np.random.default_rng(0), np.array(["ash", "beech", "cedar", "elm", "fir", "oak"])
    centres = 0.35 * rng.standard_normal((6, 60))
    y, truth = rng.integers(0, 6, 600), rng.integers(0, 6, 400)
    X, queries = (centres[codes] + rng.standard_normal((len(codes), 60)) for codes in (y, truth))
    return X, names[y], queries, names[truth]


@cache
def labelled_model():
    X, y, _, _ = labelled()
    return MoveLabeledClassifier(n_neighbors=10, weights="distance").fit(X, y)


@cache
def labelled_report():
    X, y, queries, truth = labelled()
    return compare(
        labelled_model(),
        *labelled(),
        ids=[f"item-{i:04}" for i in range(len(X))],
        texts=[f"leaf {i} of the {label}" for i, label in enumerate(y)],
        images=np.random.default_rng(1).integers(0, 255, (len(X), 8, 8)).astype(np.uint8),
        query_ids=[f"query-{i:04}" for i in range(len(queries))],
        query_texts=[f"which tree has leaf {i}, the {label}?" for i, label in enumerate(truth)],
        title="Trees and their leaves",
    )


def _report(evaluation, drawing=None):
    n, m = len(evaluation.answers.stored.before), len(evaluation.answers.queries)
    captions = Captions(range(n), range(m), title="Made for a test")
    return make_report(evaluation, captions, ModelDescription("a mover"), drawing)


@cache
def unmoved_report():
    """Nothing moved, so nothing is gained."""
    X, y, queries, truth = labelled()
    return _report(evaluate_classes(unchanged(X), unchanged(queries), y, truth, unchanged(5)))


@cache
def chance_report():
    """Moved by a hair: the change is within chance."""
    X, y, queries, truth = labelled()
    moved = X + 0.05 * np.random.default_rng(2).standard_normal(X.shape)
    return _report(evaluate_classes(BeforeAfter(X, moved), unchanged(queries), y, truth, unchanged(5)))


@cache
def harmful_report():
    """By inner product objects that are made long are near to every query."""
    X, y, queries, truth = labelled()
    moved = X * np.where(np.arange(len(X)) % 20 == 0, 9.0, 1.0)[:, None]
    stored = BeforeAfter(X, moved)
    return _report(evaluate_classes(stored, unchanged(queries), y, truth, unchanged(5), metric="ip"))


@cache
def many_report():
    """200 classes that are close together."""
    rng = np.random.default_rng(3)
    centres, y, truth = rng.standard_normal((200, 12)), np.arange(1000) % 200, np.arange(1200) % 200
    X, queries = (centres[codes] + 0.9 * rng.standard_normal((len(codes), 12)) for codes in (y, truth))
    labels, classes = (np.array([f"class of kind number {i:03}" for i in codes]) for codes in (y, truth))
    moved = 0.7 * X + 0.3 * centres[y]
    stored = BeforeAfter(X, moved)
    return _report(evaluate_classes(stored, unchanged(queries), labels, classes, unchanged(5)))


def pairs_relevant():
    """Relevant items of each query of `pairs_report`, with their scores."""
    return [{i: 1.0} if i % 3 else {i: 2.0, i + 1: 1.0} for i in range(200)]


@cache
def pairs_report():
    """Queries with one or two relevant items; only half of the items are drawn."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 20))
    queries = X[:200] + 0.8 * rng.standard_normal((200, 20))
    stored = BeforeAfter(X, 0.8 * X + 0.1 * rng.standard_normal(X.shape))
    evaluation = evaluate_relevance(stored, unchanged(queries), pairs_relevant(), 10)
    return _report(evaluation, Drawing(max_points=150))


LONG = "x" * 100_000
HOSTILE = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'`&quot;&lt;/title></style>{{js}}",
    "emoji 👩‍👩‍👧‍👦🏳️‍🌈 é ﷽ 𝔘",
    "\u202eright to left عربي עברית",
    "control \x00\x07\x1b\u2028\u2029 end",
    "javascript:window.hacked=1",
    "__proto__",
]


def hostile_texts(count, what):
    """Each hostile text with a number, so that all differ; every ninth is very long."""
    return [f"{HOSTILE[i % 8]} {what}{i}" + (LONG if i % 9 == 8 else " and its end") for i in range(count)]


@cache
def hostile_report():
    """Every text is an attack."""
    rng = np.random.default_rng(5)
    X, queries = rng.standard_normal((90, 5)), rng.standard_normal((70, 5))
    labels, truth = np.array(HOSTILE)[rng.integers(0, 8, 90)], np.array(HOSTILE)[rng.integers(0, 8, 70)]
    every = " ".join(HOSTILE)
    states = BeforeAfter(X, X + 0.8 * rng.standard_normal(X.shape)), unchanged(queries)
    evaluation = evaluate_classes(*states, labels, truth, unchanged(3), notes=[every, LONG])
    captions = Captions(
        *(hostile_texts(90, "item"), hostile_texts(70, "query")),
        *(hostile_texts(90, "text"), hostile_texts(70, "question")),
        title=every + LONG,
    )
    movers = [
        {"name": text, "k": 3, "score": 0.5, "error": 0.1, "queries": 70, "seconds": 1.0, "chosen": not i}
        | {"why_not": text}
        for i, text in enumerate([*HOSTILE, LONG])
    ]
    apart = {"mean": -0.02, "error": 0.03, "within": True}
    figures = {"in_race": apart, "value": 0.5, "here": apart, "skewness": 1.0, "never": 0.1}
    settings = [{**mover, **figures, "does": mover["name"], "fixed": 3, "broken": 2} for mover in movers]
    choice = {"words": every, "movers": movers, "seconds": [{"what": every, "seconds": 1.0}]}
    choice["compared"] = {"measure": "Accuracy", "settings": settings}
    step = {"title": every, "code": every + LONG, "language": every}
    description = ModelDescription(
        every, None, choice, {"words": every, "steps": [step], "undo": [step]}, [(every, LONG)] * 2
    )
    return make_report(evaluation, captions, description)
