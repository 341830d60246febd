"""`hubless.compare`: a classifier beside plain k-NN on queries of known classes, as a report."""

import hashlib
import os
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..arrays.inputs import label_text
from ..arrays.types import ArrayLike, ArrayOrNone
from ..baselines.plain import plain_neighbors
from ..classifier_cv import MoveLabeledClassifierCV
from ..evaluation import BeforeAfter, Evaluation, evaluate_classes
from ..moved_neighbors import MovedNeighbors
from ..movers.points import as_queries
from ..selection.candidates import name
from .choice import choice_of, tried_settings, with_surface
from .compare_movers import LabelRivals, with_rivals
from .details import Captions
from .figures import matrix_of
from .links import check_link
from .map_layout import Drawing
from .page import check_page
from .report import ModelDescription, Report, instruction, make_report
from .verdict import NOT_ADVISED, advises_moving, condition


def compare(
    model: MovedNeighbors,
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike,
    truth: ArrayLike,
    *,
    ids: Iterable[Any] | None = None,
    texts: Iterable[Any] | None = None,
    images: ArrayOrNone = None,
    query_ids: Iterable[Any] | None = None,
    query_texts: Iterable[Any] | None = None,
    query_images: ArrayOrNone = None,
    link: str | None = None,
    title: str | None = None,
    report: str | os.PathLike[str] | None = None,
    layout: str = "pca",
    max_points: int = 10_000,
    random_state: int = 0,
) -> Report:
    """Compare a classifier that moves its labeled objects with k-NN among the original objects.

    Both use exact search, with the number of neighbours that cross-validation chose for each, or the one that
    was given.

    Parameters
    ----------
    model : MoveLabeledClassifier or MoveLabeledClassifierCV
        Fitted to X and y; of a model that is not fitted yet, a copy is fitted.
    X, y : the labeled objects and their classes, (n, d) and (n,)
    queries, truth : (m, d) and (m,): queries and their classes, which the model has not learned from
    ids, texts, images : sequences of n, optional
        What the page shows of an object. Images are paths, bytes, or an array (n, height, width) or
        (n, height, width, 3).
    query_ids, query_texts, query_images : sequences of m, optional
    link : str, optional
        Address of an object, with {id} in place of its id; the page links to it.
    title : str, optional
        Of the page; by default made of the data.
    report : path, optional
        Where to write the page.
    layout : "pca", "tsne" or "umap"
        How the map is drawn; "umap" needs umap-learn.
    max_points : int
        Objects on the map; of more, the busiest and a random sample of the others are drawn. All figures are
        computed from all objects.

    Returns
    -------
    Report
        Print it, show it in a notebook, `save` it, or pass it to `hubless.plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hubless import MoveLabeledClassifier, compare
    >>> X, y = make_blobs(300, 100, centers=5, cluster_std=2.5, center_box=(-1, 1), random_state=0)
    >>> report = compare(MoveLabeledClassifier(), X[:200], y[:200], X[200:], y[200:])
    >>> [tile["title"] for tile in report.figures["summary"]["figures"]][1:]
    ['N10 skewness', 'Answers from the busiest 1 %', 'Never returned']
    """
    drawing = Drawing(layout, max_points, random_state)
    if report is not None:
        check_page(report)
    _check_kind(model)
    given, X, queries = X, _points(X, "X"), _points(queries, "queries")
    labels, classes = _texts(y), _texts(truth)
    _check_data(X, labels, queries, classes)
    captions = Captions(
        range(len(X)) if ids is None else list(ids),
        range(len(queries)) if query_ids is None else list(query_ids),
        None if texts is None else list(texts),
        None if query_texts is None else list(query_texts),
        _pictures(images),
        title,
        _pictures(query_images),
        None if link is None else check_link(link),
    )
    captions.check(len(X), len(queries))
    model, seconds = _fitted(model, given, y)
    _check_fitted(model, X, labels)
    evaluation = _evaluate(model, X, labels, queries, classes)
    choice = choice_of(model)
    if seconds is not None:
        choice["seconds"] = [{"what": "choosing and learning", "seconds": seconds}]
    choice = with_surface(choice, X, labels, model.mover_, evaluation.answers.ks.after, random_state)
    rivals = LabelRivals(evaluation, tried_settings(model, X), _weights(model), model.weights)
    choice = with_rivals(choice, rivals)
    description = ModelDescription(
        name(model.mover_), matrix_of(model.mover_), choice, _apply(model, evaluation), _provenance(model, X)
    )
    result = make_report(evaluation, captions, description, drawing, model)
    if report is not None:
        result.save(report)
    return result


def _pictures(images: Any) -> Any:
    return images if images is None or hasattr(images, "shape") else list(images)


def _check_kind(model: Any) -> None:
    if not isinstance(model, MovedNeighbors):
        raise ValueError(
            "model must be a MoveLabeledClassifier or MoveLabeledClassifierCV (for a mover: "
            f"MoveLabeledClassifier(mover=...)); got {type(model).__name__}."
        )


def _fitted(model: Any, X: Any, y: Any) -> tuple[Any, float | None]:
    """Return the fitted model, and the seconds that fitting took where it was not fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        started = perf_counter()
        return clone(model).fit(X, y), perf_counter() - started
    return model, None


def _points(values: Any, what: str) -> np.ndarray:
    """Return objects or queries as a NumPy array."""
    array = to_numpy(values)
    if array.ndim != 2 or not len(array):
        raise ValueError(f"{what} must have two dimensions and at least one row; got shape {array.shape}.")
    return array


def _texts(labels: Any) -> np.ndarray:
    """Return classes as texts; the 1 of one list equals the 1.0 of another, as in scikit-learn."""
    values = to_numpy(labels).reshape(-1).tolist()
    texts = np.empty(len(values), dtype=object)  # a text may be any length
    texts[:] = [label_text(value) for value in values]
    return texts


def _check_data(X: np.ndarray, labels: np.ndarray, queries: np.ndarray, classes: np.ndarray) -> None:
    """Raise ValueError where the data does not belong together."""
    if len(labels) != len(X):
        raise ValueError(f"y must have one class per object of X, {len(X)}; got {len(labels)}.")
    if len(classes) != len(queries):
        raise ValueError(f"truth must have one class per query, {len(queries)}; got {len(classes)}.")
    if queries.shape[1] != X.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} columns, the objects {X.shape[1]}.")


def _check_fitted(model: Any, X: np.ndarray, labels: np.ndarray) -> None:
    """Raise ValueError where a model was fitted to other data."""
    if len(model.moved_) != len(X):
        raise ValueError(
            f"the model holds {len(model.moved_)} objects, X has {len(X)}: give the X and y it was fitted to"
            ", without the objects of weight 0, which it does not hold."
        )
    if not np.array_equal(_texts(to_numpy(model.classes_)[to_numpy(model.codes_)]), labels):
        raise ValueError("y is not what the model was fitted to, in this order: give its X and y.")


def _evaluate(
    model: Any, X: np.ndarray, labels: np.ndarray, queries: np.ndarray, classes: np.ndarray
) -> Evaluation:
    """Evaluate a fitted classifier beside the same vote among its original objects."""
    moved = to_numpy(model.moved_)
    X, queries = X.astype(moved.dtype, copy=False), queries.astype(moved.dtype, copy=False)
    return evaluate_classes(
        BeforeAfter(X, moved),
        BeforeAfter(queries, as_queries(queries, model.mover_.space_)),
        labels,
        classes,
        BeforeAfter(_plain_neighbors(model, X, labels), model._n_neighbors()),
        by_distance=model.weights == "distance",
        weights=_weights(model),
    )


def _weights(model: Any) -> np.ndarray | None:
    """Return the weights of the votes of a model's objects."""
    return None if model.weights_ is None else to_numpy(model.weights_)


def _plain_neighbors(model: Any, X: np.ndarray, labels: np.ndarray) -> int:
    """Return how many neighbours vote before: chosen by cross-validation where those after are."""
    if not isinstance(model, MoveLabeledClassifierCV):
        return int(model._n_neighbors())
    return plain_neighbors(model, X, labels)


def _apply(model: Any, evaluation: Evaluation) -> dict[str, Any]:
    """Return how to use the model elsewhere; no steps where the figures do not advise moving."""
    if not advises_moving(evaluation):
        return {"words": NOT_ADVISED}
    arguments = "Z, classes" if model.mover_._uses_labels else "Z"
    words = "`report` is what compare() returned. Queries are unchanged; search by L2."
    steps = [
        instruction("Save the model", 'hubless.save(report.model, "model")'),
        instruction("Put the moved objects in the index instead of X", "stored = report.model.moved_"),
        instruction("Move objects that are added later", f"report.model.mover_.move({arguments})"),
    ]
    if model.mover_.space_.floor is not None:
        words = "`report` is what compare() returned. This mover adds a column, which is 0 for queries."
        steps.append(
            instruction("Search with these vectors", "vectors = report.model.mover_.transform(queries)")
        )
    return {
        "words": " ".join([*condition(evaluation), words]),
        "steps": steps,
        "undo": [instruction("Put the original objects back; X was not changed", "stored = X")],
    }


def _provenance(model: Any, X: np.ndarray) -> list[tuple[str, str]]:
    digest = hashlib.sha256(str(X.shape).encode() + np.ascontiguousarray(X).tobytes()).hexdigest()
    return [
        ("objects", f"{len(X):,} × {X.shape[1]} {X.dtype}, sha256 {digest[:16]}…"),
        ("model", " ".join(repr(model).split())),
        ("mover", name(model.mover_)),
    ]
