"""Repaired indexes measured: from pairs on SciFact, beside other ways to do it; from labels on banking77."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from hubless import MoveLabeledClassifierCV
from hubless.evaluation import measure_change
from hubless.hubness import measure_hubness
from hubless.movers import Stay
from hubless.repair.evaluate import evaluate_labels
from hubless.repair.index_items import IndexItems
from hubless.repair.learn_in_memory import learn_from_labels
from hubless.repair.repair import Repair
from hubless.retrieval import MEASURES, gains, ndcg
from hubless.selection.from_pairs import K
from hubless.support.progress import step

from .index_data import LABEL, Labeled, Pairs, banking77, folder_of, scifact
from .record import Options
from .rivals import DRAWS, METHODS, NONE, OURS, Answered, Run
from .timing import failure


def pairs(options: Options) -> dict[str, Any]:
    """Measure every method on the test queries of SciFact."""
    with folder_of("scifact", options.quick) as folder:
        data = scifact(folder)
    rows: dict[str, Any] = {}
    with step("pairs", len(METHODS), "methods") as bar:
        for name, method in METHODS.items():
            try:
                rows |= method(data, 1 if options.quick else DRAWS)
            except ImportError as error:  # a peer that is not installed is a result too
                rows[name] = failure(error)
            bar.update()
    scores = {name: scores_of(row, data) for name, row in rows.items() if isinstance(row, Answered)}
    return {
        "SciFact": {
            "documents": len(data.items.ids),
            "dimension": int(data.items.vectors.shape[1]),
            "training queries": len(data.train.queries),
            "training pairs": sum(map(len, data.train.relevant)),
            "test queries": len(data.test.queries),
            "unseen": int((~data.seen).sum()),
            "methods": {
                name: result(row, scores[name], scores, data) if name in scores else row
                for name, row in rows.items()
            },
        }
    }


def scores_of(row: Answered, data: Pairs) -> dict[str, np.ndarray]:
    """Return each measure of every test query; the mean over runs."""
    relevant = data.test.rows(data.items.places)
    gained = [gains(run.answers, relevant) for run in row.runs]
    return {
        name: np.mean([measure(gain, relevant) for gain in gained], axis=0)
        for name, measure in MEASURES.items()
    }


def result(
    row: Answered, row_scores: dict[str, np.ndarray], scores: dict[str, dict[str, np.ndarray]], data: Pairs
) -> dict[str, Any]:
    """Return a raw result: figures against not moving, and nDCG against `hubless fit`."""
    parts = {"all": np.ones_like(data.seen), "seen": data.seen, "unseen": ~data.seen}

    def against(other: str, measure: str) -> list[dict[str, Any]]:
        both = scores[other][measure], row_scores[measure]
        return [
            asdict(measure_change(f"{measure}@{K}", part, *(side[mask] for side in both)))
            for part, mask in parts.items()
            if mask.any()
        ]

    return {
        "moves": row.moves,
        "figures": [entry for measure in MEASURES for entry in against(NONE, measure)],
        "from_hubless": against(OURS, "nDCG"),
        "runs": [run_result(run, data) for run in row.runs],
    }


def run_result(run: Run, data: Pairs) -> dict[str, Any]:
    """Return the raw result of one draw."""
    relevant = data.test.rows(data.items.places)
    scores = ndcg(gains(run.answers, relevant), relevant)
    return {
        "setting": run.setting,
        "seconds": run.seconds,
        "nDCG": {
            "all": float(scores.mean()),
            "seen": float(scores[data.seen].mean()),
            "unseen": float(scores[~data.seen].mean()),
        },
        "skewness": measure_hubness(run.answers, len(data.items.ids)).skewness,
        "held_out": run.held_out,
    }


def labels(options: Options) -> dict[str, Any]:
    """Measure the original, the paper's mover and the best of many, on the test queries of banking77."""
    with folder_of("banking77", options.quick) as folder:
        data = banking77(folder)
    learners = {
        "original": original,
        "ridge": partial(learn_from_labels, label=LABEL, mover="ridge"),
        "auto": partial(learn_from_labels, label=LABEL),
    }
    return {
        "banking77": {
            "items": len(data.items.ids),
            "dimension": int(data.items.vectors.shape[1]),
            "classes": len(set(data.items.columns[LABEL])),
            "test queries": len(data.queries.ids),
            "methods": {name: label_result(learn, data) for name, learn in learners.items()},
        }
    }


def original(items: IndexItems) -> Repair:
    """Return a repair that moves nothing, with the number of neighbours that votes best."""
    X, y = items.vectors, np.array(items.columns[LABEL])
    chooser = MoveLabeledClassifierCV(mover=[Stay()], lift=False, random_state=0).fit(X, y)
    facts = {"mover": "Stay()", "n_neighbors": int(chooser.n_neighbors_)}
    return Repair(Stay().fit(X, y), items.metric, facts={"learned": facts})


def label_result(learn: Callable[[IndexItems], Repair], data: Labeled) -> dict[str, Any]:
    """Return a raw result: accuracy and hubs before and after, with the neighbours that were chosen."""
    start = perf_counter()
    model = learn(data.items)
    seconds = perf_counter() - start
    evaluation = evaluate_labels(model, data.items, LABEL, data.queries.vectors, data.queries.columns[LABEL])
    learned = model.facts["learned"]
    return {
        "mover": learned["mover"],
        "n_neighbors": learned["n_neighbors"],
        "seconds": [seconds],
        "figures": [asdict(entry) for entry in evaluation.figures],
        "skewness": [hubness.skewness for hubness in evaluation.hubness],
        "fixed": evaluation.fixed,
        "broken": evaluation.broken,
    }
