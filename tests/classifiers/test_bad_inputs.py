"""What users see when the input is bad, and the odd inputs that must work."""

import re

import numpy as np
import pytest
import scipy.sparse

from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, MoveQuery
from hubless.arrays import to_numpy
from hubless.baselines import ITML, LMNN, MMC, NCA, DMLeig
from hubless.movers import Stay
from tests import reference
from tests.conftest import EACH_LIBRARY, FOREIGN

MODELS = [MoveLabeledClassifier, MoveLabeledClassifierCV, MoveLabeled, MoveQuery]
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((30, 4)), np.arange(30) % 3


def spoiled(value, dtype=float):
    array = X.astype(dtype)
    array[3, 2] = value
    return array


# what is given to fit, the error and its message
BAD_FIT = {
    "nan": (spoiled(np.nan), Y, ValueError, "Input X contains NaN"),
    "infinity": (spoiled(np.inf), Y, ValueError, "Input X contains infinity"),
    "nan in labels": (X, np.where(Y == 0, np.nan, Y), ValueError, "Input y contains NaN"),
    "empty": (np.empty((0, 4)), [], ValueError, r"Found array with 0 sample\(s\)"),
    "no columns": (np.empty((30, 0)), Y, ValueError, r"0 feature\(s\)"),
    "one row": (X[:1], Y[:1], ValueError, r"Found array with 1 sample\(s\).*minimum of 2 is required"),
    "mismatched lengths": (X, Y[:-1], ValueError, r"inconsistent numbers of samples: \[30, 29\]"),
    "no labels": (X, None, ValueError, "the target y is None: give the class of each object"),
    "continuous labels": (X, X[:, 0], ValueError, "Unknown label type: continuous"),
    "labels of two columns": (X, np.stack([Y, Y], axis=1), ValueError, "y should be a 1d array"),
    "complex": (X + 1j, Y, ValueError, "Complex data not supported"),
    "text": (X.astype(str).astype(object) + "!", Y, ValueError, "could not convert string to float"),
    "1-D": (X[:, 0], Y, ValueError, "Expected 2D array, got 1D array instead"),
    "3-D": (X.reshape(30, 2, 2), Y, ValueError, "Found array with dim 3"),
    "sparse": (scipy.sparse.csr_array(X), Y, TypeError, r"Sparse.*\(30 x 4\).*TruncatedSVD\(300\)"),
    "squares overflow": (X * 1e200, Y, ValueError, "overflow float64; divide X by its largest value"),
}
# the same for arrays that scikit-learn does not check
BAD_FOREIGN = {
    "nan": (spoiled(np.nan), "NaN or infinity.*drop or impute"),
    "infinity": (spoiled(np.inf), "contains NaN or infinity"),
    "empty": (X[:0], r"Found array with 0 sample\(s\)"),
    "no columns": (X[:, :0], r"0 feature\(s\)"),
    "one row": (X[:1], r"1 sample\(s\).*minimum of 2"),
    "complex": (X + 1j, "Complex data not supported.*X.real"),
    "1-D": (X[:, 0], "got 1D array instead.*Reshape"),
    "3-D": (X.reshape(30, 2, 2), "got 3D array instead"),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize(("given", "labels", "error", "message"), BAD_FIT.values(), ids=BAD_FIT)
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_bad_training_data(model, given, labels, error, message):
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        model().fit(given, labels)


@pytest.mark.parametrize("model", [MoveLabeledClassifier, MoveLabeled, MoveQuery])  # CV: test_few_objects.py
@pytest.mark.parametrize("labels", [np.arange(30), np.arange(30).astype(str)], ids=["numbers", "names"])
def test_objects_that_are_all_alone_in_their_class(model, labels):
    message = (
        r"no pair to learn from: every object is alone.*Give more objects per class.*for plain k-NN, use "
        r"MoveLabeledClassifier\(mover=Stay\(\)\), or MoveLabeledClassifierCV"
    )
    with pytest.raises(ValueError, match=message):
        model().fit(X, labels)
    # what the message recommends works
    queries = RNG.standard_normal((20, 4))
    _, nearest = reference.nearest(queries, X, 1)
    for plain in (MoveLabeledClassifier(1, mover=Stay()), MoveLabeledClassifierCV()):
        np.testing.assert_array_equal(plain.fit(X, labels).predict(queries), labels[nearest[:, 0]])


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize(("given", "message"), BAD_FOREIGN.values(), ids=BAD_FOREIGN)
def test_bad_training_data_of_other_libraries(model, given, message, library):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        model().fit(library(given), Y[: len(given)])


@pytest.mark.torch
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_sparse_tensors(model):
    import torch

    with pytest.raises(TypeError, match=r"Sparse.*TruncatedSVD\(300\)"):
        model().fit(torch.as_tensor(X).to_sparse(), Y)


BAD_PARAMETERS = [
    (MoveLabeledClassifier(n_neighbors=31), r"n_neighbors = 31, n_samples_fit = 30: ask for fewer"),
    (MoveLabeledClassifier(n_neighbors=0), "n_neighbors must be a whole number of at least 1; got 0"),
    (MoveLabeledClassifier(n_neighbors=2.5), "n_neighbors must be a whole number of at least 1; got 2.5"),
    (MoveLabeledClassifier(n_targets=0), "n_targets must be a whole number of at least 1; got 0"),
    (MoveLabeledClassifier(alpha=-1), r'alpha must be a number of at least 0, or "scale"; got -1'),
    (MoveLabeledClassifier(alpha=np.nan), "alpha must be a number of at least 0"),
    (MoveLabeledClassifier(alpha="auto"), "alpha must be a number of at least 0"),
    (MoveLabeledClassifier(weights="rank"), "weights must be one of 'uniform', 'distance'; got 'rank'"),
    (MoveLabeled(alpha=-1), "alpha must be a number of at least 0"),
    (MoveLabeled(center="no"), "center must be one of True, False; got 'no'"),
    (MoveQuery(center="no"), "center must be one of True, False; got 'no'"),
    (MoveQuery(n_targets=True), "n_targets must be a whole number"),
    (LMNN(push=1), "push must be between 0 and 1; got 1"),
    (LMNN(push="x"), "push must be between 0 and 1; got 'x'"),
    (LMNN(tol=np.nan), "tol must be a finite number of at least 0; got nan"),
    (ITML(max_iter=0), "max_iter must be a whole number of at least 1; got 0"),
    (ITML(n_constraints=1.5), "n_constraints must be a whole number of at least 1; got 1.5"),
    (ITML(random_state="x"), "'x' cannot be used to seed"),
    (DMLeig(tol=-1), "tol must be a finite number of at least 0; got -1"),
    (DMLeig(mu=0), "mu must be a finite number above 0; got 0"),
    (MMC(keep="x"), "keep must be a number from 0 to 1; got 'x'"),
    (NCA(scale="x"), "scale must be None or a number from 1e-10 to 1e10; got 'x'"),
    (MoveLabeledClassifierCV(n_neighbors=[25]), "n_neighbors may be at most 24"),
    (MoveLabeledClassifierCV(n_neighbors=[]), "n_neighbors must hold at least one number"),
    (MoveLabeledClassifierCV(alphas="wide"), "alpha must be a number of at least 0.*got 'wide'"),
    (MoveLabeledClassifierCV(alphas=[]), "alphas must be a sequence of numbers of at least 0"),
    (MoveLabeledClassifierCV(alphas=[1.0, -2.0]), "alpha must be a number of at least 0.*got -2.0"),
    (MoveLabeledClassifierCV(n_targets=(0, 1)), "each of n_targets must be a whole number"),
    (MoveLabeledClassifierCV(cv=1), "cv must be from 2 to the number of labeled objects, 30; got 1"),
    (MoveLabeledClassifierCV(cv=31), "cv must be from 2 to the number of labeled objects, 30; got 31"),
    (MoveLabeledClassifierCV(mover="auto", cv=0), "cv must be from 2 to the number of labeled objects, 30"),
]


@pytest.mark.parametrize(("model", "message"), BAD_PARAMETERS, ids=lambda value: repr(value)[:60])
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (-np.ones(30), "Weights must be at least 0"),
        (np.zeros(30), "nothing but zeros"),
        (np.full(30, np.nan), "sample_weight contains NaN"),
        (np.ones((30, 1)), r"expected \(30,\)"),
    ],
)
def test_bad_weights(model, weights, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.zeros((29, 1), dtype=int), "one row per object; got 29 rows for 30 objects"),
        (np.full((30, 1), 30), "row numbers from 0 to 29"),
        (np.full((30, 1), -1), "(no pair|nothing) to learn from"),
        (np.zeros(30, dtype=int), "matrix of integers"),
        (np.arange(30)[:, None], "an object is its own target; leave it out"),
    ],
)
def test_bad_precomputed_targets(model, targets, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, Y, targets=targets)


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        (X[:, :3], ValueError, "X has 3 features, but MoveLabeledClassifier is expecting 4 features"),
        (spoiled(np.nan), ValueError, "Input X contains NaN"),
        (scipy.sparse.csr_array(X), TypeError, "Reduce the dimension first"),
        (X[:0], ValueError, r"0 sample\(s\)"),
        (None, ValueError, "predict needs queries X, or their precomputed neighbors; got neither"),
    ],
)
def test_bad_queries(queries, error, message):
    model = MoveLabeledClassifier().fit(X, Y)
    with pytest.raises(error, match=message):
        model.predict(queries)


@pytest.mark.parametrize("library", FOREIGN)
def test_queries_of_another_library(library):
    model, queries = MoveLabeledClassifier().fit(X, Y), library(X)
    kind = f"{type(queries).__module__.split('.')[0]}.{type(queries).__name__} on {queries.device}"
    message = (
        f"MoveLabeledClassifier.predict() must use the same namespace.*got {kind}, fitted on numpy.ndarray"
    )
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        model.predict(queries)
    with pytest.raises(ValueError, match="X has 3 features, but MoveLabeledClassifier is expecting 4"):
        model.predict(library(X[:, :3]))


def test_bad_neighbours():
    model = MoveLabeledClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="n_neighbors = 31, n_samples_fit = 30"):
        model.kneighbors(X, 31)
    with pytest.raises(ValueError, match="got -1"):
        model.predict(neighbors=np.array([[0, -1]]))
    with pytest.raises(ValueError, match="n_neighbors must be a whole number"):
        model.set_params(n_neighbors=0).predict(X)


@pytest.mark.parametrize(
    ("queries", "objects", "error", "message"),
    [
        (X, X[:-1], ValueError, "pair up row by row; got 30 queries and 29 objects"),
        (X[:, :3], X[:-1], ValueError, "pair up row by row; got 30 queries and 29 objects"),
        (spoiled(np.nan), X, ValueError, "Input X contains NaN"),
        (spoiled(np.nan), X[:, :3], ValueError, "Input queries contains NaN"),
        (X[0], X, ValueError, "Expected 2D array, got 1D array"),
    ],
)
def test_bad_pairs(queries, objects, error, message):
    with pytest.raises(error, match=message):
        MoveLabeled().fit_pairs(queries, objects)


@pytest.mark.parametrize("library", FOREIGN)
def test_pairs_of_two_libraries(library):
    with pytest.raises(ValueError, match=r"MoveLabeled.fit_pairs\(\) must use the same namespace"):
        MoveLabeled().fit_pairs(X, library(X))


# What must work


def test_one_class_is_predicted_for_all():
    assert set(MoveLabeledClassifier().fit(X, ["only"] * 30).predict(X)) == {"only"}


def test_two_rows_of_one_class():
    assert MoveLabeledClassifier(2).fit(X[:2], [7, 7]).predict(X[:1]) == [7]


def truth_of(X, y, queries, alpha):
    return reference.classify(X.astype(float), y, queries.astype(float), 5, alpha)


@pytest.mark.parametrize(
    "kind", ["read-only", "memory-mapped", "fortran", "every other row", "reversed", "object"]
)
def test_arrays_of_every_layout_work_and_stay_unmodified(kind, tmp_path):
    array = X.copy()
    if kind == "read-only":
        array.flags.writeable = False
    elif kind == "memory-mapped":
        np.save(tmp_path / "x.npy", X)
        array = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "fortran":
        array = np.asfortranarray(X)
    elif kind == "every other row":
        array = np.repeat(X, 2, axis=0)[::2]
    elif kind == "reversed":
        array = X[::-1].copy()[::-1]
    elif kind == "object":
        array = X.astype(object)
    for model in (MoveLabeledClassifier(alpha=2.0), MoveLabeledClassifierCV(alphas=[2.0], n_neighbors=[5])):
        result = model.fit(array, Y).predict(array)
        np.testing.assert_array_equal(result, truth_of(X, Y, X, 2.0))
    np.testing.assert_array_equal(array.astype(float), X)


def test_constant_columns_work():
    constant = np.hstack([X, np.full((30, 2), 7.0)])
    for alpha in (0.0, 1.0):
        result = MoveLabeledClassifier(alpha=alpha).fit(constant, Y).predict(constant)
        np.testing.assert_array_equal(result, truth_of(constant, Y, constant, alpha))


def test_identical_objects_work():
    assert set(MoveLabeledClassifier().fit(np.ones((30, 4)), Y).predict(np.ones((3, 4)))) == {0}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", EACH_LIBRARY)
@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_huge_and_tiny_values_work(size, dtype, library):
    scaled = (X * size).astype(dtype)
    alpha = float(size) ** 2
    classes = MoveLabeledClassifier(alpha=alpha).fit(library(scaled), Y).predict(library(scaled))
    np.testing.assert_array_equal(to_numpy(classes), truth_of(X, Y, X, 1.0))
    apart = (X + 9 * Y[:, None]) * size
    automatic = MoveLabeledClassifierCV().fit(library(apart.astype(dtype)), Y)
    assert automatic.best_score_ == 1.0
