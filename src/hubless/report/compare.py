"""`hubless.compare`: a classifier beside plain k-NN on queries of known classes, as a report."""

import hashlib
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..candidates import name, steps
from ..classifier import MovedNeighbors
from ..classifier_cv import MoveLabeledClassifierCV, plain_neighbors
from ..evaluation import Evaluation, Pair, evaluate_classes
from ..movers import Mover, Stay, Unit
from ..movers.mover import as_asked
from .choice import choice_of, with_surface
from .figures import NOT_ASKED_FOR, is_asked_for
from .places import Drawing
from .report import Report, Told, make_report
from .shown import Shown


def compare(
    model: Any,
    X: Any,
    y: Any,
    queries: Any,
    truth: Any,
    *,
    ids: Any = None,
    texts: Any = None,
    images: Any = None,
    query_ids: Any = None,
    query_texts: Any = None,
    title: str = "Stored objects, before and after",
    report: Any = None,
    layout: str = "pca",
    max_points: int = 10_000,
    random_state: int = 0,
) -> Report:
    """What a classifier that moves its labeled objects changes beside k-NN among them where they were.

    Both are asked by exact search, with the number of neighbours that cross-validation chose for each, or the
    one that was given.

    Parameters
    ----------
    model : MoveLabeledClassifier or MoveLabeledClassifierCV
        Fitted to X and y; one that is not fitted yet is, and stays as it was.
    X, y : the labeled objects and their classes, (n, d) and (n,)
    queries, truth : (m, d) and (m,): queries and their classes, none of them learned from
    ids, texts, images : sequences of n, optional
        What the page names and shows of an object. Images are paths, bytes, or an array (n, height, width) or
        (n, height, width, 3).
    query_ids, query_texts : sequences of m, optional
    title : str
    report : path, optional
        Where to write the page.
    layout : "pca", "tsne" or "umap"
        How the map is drawn; "umap" needs umap-learn.
    max_points : int
        Objects on the map; of more, the busiest and some others are drawn. All figures are of all.

    Returns
    -------
    Report
        Print it, show it in a notebook, `save` it, or hand it to `hubless.plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hubless import MoveLabeledClassifier, compare
    >>> X, y = make_blobs(300, 100, centers=5, cluster_std=2.5, center_box=(-1, 1), random_state=0)
    >>> found = compare(MoveLabeledClassifier(), X[:200], y[:200], X[200:], y[200:])
    >>> [tile["title"] for tile in found.figures["summary"]["figures"]][1:]
    ['N10 skewness', 'Answers from the busiest 1 %', 'Never returned']
    """
    drawing = Drawing(layout, max_points, random_state)
    model, seconds = _fitted(model, X, y)
    X, queries = (_array(own, what) for own, what in ((X, "X"), (queries, "queries")))
    labels, classes = _texts(y, truth)
    _check(model, X, y, queries, classes)
    shown = Shown(
        range(len(X)) if ids is None else list(ids),
        range(len(queries)) if query_ids is None else list(query_ids),
        None if texts is None else list(texts),
        None if query_texts is None else list(query_texts),
        images if images is None or hasattr(images, "shape") else list(images),
        title,
    )
    shown.check(len(X), len(queries))
    evaluation = evaluate_model(model, X, labels, queries, classes)
    choice = choice_of(model)
    if seconds is not None:
        choice["seconds"] = [{"what": "choosing and learning", "seconds": seconds}]
    choice = with_surface(choice, X, labels, model.mover_, evaluation.asked.ks.after, random_state)
    told = Told(
        name(model.mover_), matrix_of(model.mover_), choice, _apply(model, evaluation), _provenance(model, X)
    )
    found = replace(make_report(evaluation, shown, told, drawing), model=model)
    if report is not None:
        found.save(report)
    return found


def _array(points: Any, what: str) -> np.ndarray:
    """Objects or queries on the host."""
    found = np.asarray(to_numpy(points) if hasattr(points, "shape") else points)
    if found.ndim != 2 or not len(found):
        raise ValueError(f"{what} must have two dimensions and a row at least; got shape {found.shape}.")
    return found


def _texts(*labels: Any) -> list[np.ndarray]:
    """Classes as texts; the 1 of one list is the 1.0 of another, as it is for scikit-learn."""
    parts = [np.asarray(to_numpy(own) if hasattr(own, "shape") else own) for own in labels]
    whole = np.concatenate([own.reshape(-1) for own in parts])
    if whole.dtype.kind == "f" and (whole == np.round(whole)).all():
        whole = whole.astype(np.int64)
    texts = np.array([*map(str, whole.tolist()), None], dtype=object)[:-1]  # None: a text may be any length
    return np.split(texts, np.cumsum([own.size for own in parts])[:-1])


def _check(model: Any, X: np.ndarray, y: Any, queries: np.ndarray, truth: np.ndarray) -> None:
    """ValueError where data does not belong together."""
    for what, given, of, count in (
        ("y", y, "object of X", len(X)),
        ("truth", truth, "query", len(queries)),
    ):
        if len(given) != count:
            raise ValueError(f"{what} must have one class per {of}, {count}; got {len(given)}.")
    if len(model.moved_) != len(X):
        raise ValueError(
            f"the model holds {len(model.moved_)} objects, X has {len(X)}: give the X and y it was fitted to"
            ", without the objects of weight 0, which it does not hold."
        )
    own, given = _texts(to_numpy(model.classes_)[to_numpy(model.codes_)], y)
    if not np.array_equal(own, given):
        raise ValueError("y is not what the model was fitted to, in this order: give its X and y.")
    if queries.shape[1] != X.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} columns, the objects {X.shape[1]}.")


def evaluate_model(
    model: Any, X: np.ndarray, labels: np.ndarray, queries: np.ndarray, truth: np.ndarray
) -> Evaluation:
    """A fitted classifier beside the same vote among its objects where they were."""
    moved = np.asarray(to_numpy(model.moved_))
    X, queries = X.astype(moved.dtype, copy=False), queries.astype(moved.dtype, copy=False)
    return evaluate_classes(
        Pair(X, moved),
        Pair(queries, as_asked(queries, model.mover_.exit_)),
        labels,
        truth,
        Pair(_plain_neighbors(model, X, labels), model._n_neighbors()),
        by_distance=model.weights == "distance",
        weights=None if model.weights_ is None else np.asarray(to_numpy(model.weights_)),
    )


def _plain_neighbors(model: Any, X: np.ndarray, labels: np.ndarray) -> int:
    """Neighbours that vote before: chosen by cross-validation where those after are, else the same."""
    if not isinstance(model, MoveLabeledClassifierCV):
        return int(model._n_neighbors())
    known = plain_neighbors(model)
    if known is None:
        how: dict[str, Any] = {"weights": model.weights, "cv": model.cv, "random_state": model.random_state}
        tried = model.grid_["n_neighbors"] if hasattr(model, "grid_") else model.n_neighbors
        plain = MoveLabeledClassifierCV(tried, mover=Stay(), **how)
        known = plain.fit(X, labels, sample_weight=model.weights_).n_neighbors_
    return int(known)


def _fitted(model: Any, X: Any, y: Any) -> tuple[Any, float | None]:
    """The model, fitted; and the seconds that took, where it was not."""
    if not isinstance(model, MovedNeighbors):
        raise ValueError(
            "model must be a MoveLabeledClassifier or MoveLabeledClassifierCV (for a mover: "
            f"MoveLabeledClassifier(mover=...)); got {type(model).__name__}."
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        started = perf_counter()
        return clone(model).fit(X, y), perf_counter() - started
    return model, None


def matrix_of(mover: Mover) -> np.ndarray | None:
    """W of a mover that is one matrix, be it with unit lengths after it; None for any other."""
    parts = [step for step in steps(mover) if not isinstance(step, Unit)]
    found = getattr(parts[0], "W_", None) if len(parts) == 1 else None
    return None if found is None else np.asarray(to_numpy(found), dtype=np.float64)


def _apply(model: Any, evaluation: Evaluation) -> dict[str, Any]:
    """How to use the model elsewhere; nothing where the figures do not ask for it."""
    if not is_asked_for(evaluation):
        return {"words": NOT_ASKED_FOR, "steps": [], "undo": []}
    asks = "Z, classes" if model.mover_._uses_labels else "Z"
    words = "`found` is what compare() returned. Queries are asked as they are, by L2."
    steps = [
        _step("Keep the model", 'hubless.save(found.model, "model")'),
        _step("Put the moved objects in the index instead of X", "stored = found.model.moved_"),
        _step("Move what is added later the same way", f"found.model.mover_.move({asks})"),
    ]
    if model.mover_.exit_.floor is not None:
        words = "`found` is what compare() returned. This mover adds a column: queries get a 0 in it."
        steps.append(_step("Ask with", "asked = found.model.mover_.transform(queries)"))
    return {
        "words": words,
        "steps": steps,
        "undo": [_step("Put the objects in as they were; X was not changed", "stored = X")],
    }


def _step(title: str, code: str, language: str = "python") -> dict[str, str]:
    return {"title": title, "code": code, "language": language}


def _provenance(model: Any, X: np.ndarray) -> list[tuple[str, str]]:
    digest = hashlib.sha256(str(X.shape).encode() + np.ascontiguousarray(X).tobytes()).hexdigest()
    return [
        ("objects", f"{len(X):,} × {X.shape[1]} {X.dtype}, sha256 {digest[:16]}…"),
        ("model", " ".join(repr(model).split())),
        ("mover", name(model.mover_)),
    ]
