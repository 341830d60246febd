"""A user's program that calls the whole public API of hubless, for what is installed without an extra.

`.ci/package.py` runs it with the wheel, in the folder that it leaves its files in, and gives it to mypy and
pyright, which must accept it as it is.
"""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import hubless
from hubless import (
    Hubness,
    MoveLabeled,
    MoveLabeledClassifier,
    MoveLabeledClassifierCV,
    MoveQuery,
    Report,
    ScaleWarning,
    compare,
    fit_large,
    load,
    measure_hubness,
    nearest,
    save,
)
from hubless.baselines import NCA
from hubless.calibration import reliability
from hubless.corrections import CORRECTIONS, HoldHubs
from hubless.movers import MOVERS, Chain, Mover, Shrink
from hubless.repair import (
    Repair,
    apply_index,
    diagnose,
    evaluate_log,
    explain_model,
    fit_index,
    index_status,
    preview_index,
    promote_index,
    rollback_index,
)

Floats = NDArray[np.float64]


def classify(X: Floats, y: NDArray[np.int64], queries: Floats, truth: NDArray[np.int64]) -> None:
    """Fit both classifiers, ask them everything, and compare with plain k-NN."""
    model = MoveLabeledClassifierCV(mover="auto").fit(X, y)
    assert_type(model, MoveLabeledClassifierCV)
    print("plain k-NN", round(KNeighborsClassifier(50).fit(X, y).score(queries, truth), 2))
    print("hubless   ", round(model.score(queries, truth), 2))
    assert "neighbours" in model.explain()
    hubs = measure_hubness(model.kneighbors(queries, 10, return_distance=False), len(X))
    assert_type(hubs, Hubness)
    assert hubs.n_queries == len(queries)
    assert 0 <= reliability(model.predict_proba(queries), truth).error <= 1

    classifier = MoveLabeledClassifier(5, alpha=1.0, mover=Shrink(0.3)).fit(X.tolist(), y.tolist())
    assert_type(classifier, MoveLabeledClassifier)
    answers = assert_type(classifier.predict(queries), NDArray[Any])
    assert answers.shape == truth.shape
    shares = assert_type(classifier.predict_proba(queries), NDArray[Any])
    assert np.allclose(shares.sum(1), 1)
    assert classifier.calibrate(queries, truth).familiarity(queries).max() <= 1

    report = compare(MoveLabeledClassifier(), X, y, queries, truth, title="A trial")
    assert_type(report, Report)
    assert report.save("page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def move(X: Floats, y: NDArray[np.int64], queries: Floats) -> None:
    """Move objects by labels, pairs, sums and queries; save and load what was learned."""
    mover = MoveLabeled(keep_moments=True)
    stored = assert_type(mover.fit_transform(X, y), NDArray[Any])
    assert_type(mover.move(queries[:5]), NDArray[Any])
    assert_type(mover.partial_fit(queries, y[: len(queries)]), MoveLabeled)
    assert_type(mover.forget(queries, y[: len(queries)]), MoveLabeled)
    assert_type(mover.with_alpha(2.0).merge(mover), MoveLabeled)
    assert assert_type(mover.transform(queries), NDArray[Any]).shape == queries.shape
    distances, indices = nearest(queries, stored, 3)
    assert distances.shape == indices.shape == (len(queries), 3)

    pairs = MoveLabeled(toward="identity").fit_pairs(queries=queries[:50], objects=X[:50])
    save(pairs, "pairs")
    assert np.allclose(load("pairs").move(X), pairs.move(X))
    chain: Mover = Chain([Shrink(0.5), MoveLabeled()])
    assert make_pipeline(chain, KNeighborsClassifier()).fit(X, y).score(X, y) > 0.5
    assert_type(fit_large(MoveLabeled(), X, y), MoveLabeled)
    assert_type(MoveQuery().fit(X, y).transform(queries), NDArray[Any])
    assert_type(NCA(max_iter=2).fit(X, y).transform(queries), NDArray[Any])
    assert_type(HoldHubs().fit(queries, X).move(X), NDArray[Any])
    names: list[str] = [*MOVERS, *CORRECTIONS]
    assert {"MoveLabeled", "HoldHubs"} <= {*names}


def repair(X: Floats, y: NDArray[np.int64], queries: Floats) -> None:
    """Repair an index of files: look, learn, measure, build, switch, and switch back."""
    np.save("vectors.npy", X)
    np.save("queries.npy", queries)
    np.save("labels.npy", y)
    assert "450 items" in str(diagnose("vectors.npy", queries=queries))
    model = fit_index("vectors.npy", queries="queries.npy")
    assert_type(model, Repair)
    save(model, "model")
    assert "HoldHubs" in str(explain_model("model"))
    assert "hubs" in str(evaluate_log("model", "vectors.npy", "queries.npy"))
    assert len(preview_index("model", "vectors.npy", queries)[0].after) == 10
    assert apply_index("model", "vectors.npy", "moved.npy")["rows"] == 450
    promote_index("vectors.npy", "moved.npy")
    assert index_status("vectors.npy")["status"] != "original"
    rollback_index("vectors.npy")
    assert index_status("vectors.npy")["status"] == "original"


def main() -> None:
    """Do all of it on 450 objects and 150 queries."""
    assert issubclass(ScaleWarning, UserWarning)
    blobs: Any = make_blobs(600, 200, centers=10, cluster_std=2.5, center_box=(-1, 1), random_state=0)
    parts: list[Any] = train_test_split(*blobs, random_state=0)  # scikit-learn has no types
    X, queries, y, truth = parts
    classify(X, y, queries, truth)
    move(X, y, queries)
    repair(X, y, queries)
    print(f"hubless {hubless.__version__}: every part of it works")


if __name__ == "__main__":
    main()
