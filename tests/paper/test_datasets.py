"""Data sets against the paper's Table 1 and independent truths, their steps and their cache."""

import io
from collections import Counter

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA

from hubless.paper import datasets
from hubless.paper.datasets import RECIPES, Raw, drop_small_classes, load, log_tfidf, read
from hubless.paper.download import FILES, DatasetError, File
from hubless.paper.names import DATASETS, KINDS, PAPER_DATASETS
from tests.paper.data_files import cut, digest

# Objects, classes, columns: the paper's Table 1; columns of AwA, CUB, SUN and aPY, and all of rcv and
# banking77, as the files are known to have them.
TABLE = {
    "ionosphere": (351, 2, 34),
    "balance-scale": (625, 3, 4),
    "iris": (150, 3, 4),
    "wine": (178, 3, 13),
    "glass": (214, 6, 9),
    "rcv": (10705, 4, 23086),
    "news": (18846, 20, 26214),
    "reuters": (8213, 41, 18933),
    "tdt": (10021, 56, 36771),
    "awa": (30475, 50, 300),
    "cub": (11788, 200, 1280),
    "sun": (14340, 717, 102),
    "apy": (15339, 32, 64),
    "banking77": (13083, 77, 384),
}

# Objects of the classes as published with the data: all of them, or the smallest and the largest.
SIZES = {
    "ionosphere": {"g": 225, "b": 126},
    "balance-scale": {"L": 288, "B": 49, "R": 288},
    "iris": {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50},
    "wine": {"1": 59, "2": 71, "3": 48},
    "glass": {"1": 70, "2": 76, "3": 17, "5": 13, "6": 9, "7": 29},
    "news": (628, 999),
    "awa": (92, 1168),
    "cub": (41, 60),
    "sun": (20, 20),
}


# --- the data


def test_names_in_the_order_of_the_paper():
    assert tuple(TABLE) == tuple(RECIPES) == tuple(FILES) == tuple(DATASETS)
    assert [name for name in RECIPES if RECIPES[name].standardize] == ["wine"]
    assert {name for name in PAPER_DATASETS if RECIPES[name].note} == {"rcv", "awa", "cub", "sun", "apy"}


LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in TABLE if name not in KINDS["UCI"]]


@pytest.mark.parametrize("name", [*KINDS["UCI"], *LARGE])
def test_shape_and_classes(name, data_dir):
    data, (objects, classes, columns) = read(name, data_dir), TABLE[name]
    assert data.X.shape == (objects, columns)
    assert data.original_dimension == columns
    assert np.isfinite(data.X.data if scipy.sparse.issparse(data.X) else data.X).all()
    assert data.y.dtype == np.int64
    assert len(data.y) == objects
    assert len(data.classes) == len(set(data.classes)) == classes
    sizes = np.bincount(data.y)
    assert len(sizes) == classes
    assert sizes.min() > 0
    known = SIZES.get(name)
    if isinstance(known, dict):
        assert dict(zip(data.classes, sizes.tolist(), strict=True)) == known
    elif known:
        assert (sizes.min(), sizes.max()) == known


@pytest.mark.parametrize("name", KINDS["UCI"])
def test_uci_sets_are_kept_as_they_are(name, data_dir, tmp_path):
    data = load(name, data_dir=data_dir, cache_dir=tmp_path)
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, read(name, data_dir).X)
    assert not list(tmp_path.iterdir())


def test_iris_and_wine_same_as_scikit_learn(data_dir):
    iris, wine = read("iris", data_dir), read("wine", data_dir)
    X, y = load_iris(return_X_y=True)
    assert np.count_nonzero(iris.X != X) == 3  # scikit-learn's has Fisher's figures, UCI's has three errors
    np.testing.assert_array_equal(iris.y, y)
    X, y = load_wine(return_X_y=True)
    np.testing.assert_allclose(wine.X, X)
    np.testing.assert_array_equal(wine.y, y)


@pytest.mark.slow
def test_reuters_same_as_loops(data_dir):
    raw = scipy.io.loadmat(data_dir / "reuters" / "Reuters21578.mat")
    sizes = Counter(raw["gnd"].ravel().tolist())
    kept = [i for i, label in enumerate(raw["gnd"].ravel().tolist()) if sizes[label] >= 10]
    counts = raw["fea"].tocsr()[kept]
    data = read("reuters", data_dir)
    assert [data.classes[i] for i in data.y] == [str(raw["gnd"][i, 0]) for i in kept]
    df = (counts > 0).sum(axis=0).A1
    assert (df == 0).any()  # terms of the dropped documents only
    for i in (0, 4000, 8212):
        row = counts[[i]].toarray()[0]
        truth = [(1 + np.log(row[j])) * np.log(8213 / df[j]) if row[j] else 0.0 for j in range(18933)]
        np.testing.assert_allclose(data.X[[i]].toarray()[0], truth)


@pytest.mark.slow
def test_reuters_components_same_as_scikit_learn(data_dir, tmp_path):
    data = load("reuters", 10, data_dir, tmp_path)
    assert data.X.shape == (8213, 10)
    assert data.X.dtype == np.float32
    X = scipy.sparse.csr_matrix(read("reuters", data_dir).X)
    truth = PCA(4, svd_solver="arpack", random_state=0).fit_transform(X)
    signs = np.sign(np.sum(truth * data.X[:, :4], axis=0))
    assert np.linalg.norm(data.X[:, :4] - signs * truth) < 0.01 * np.linalg.norm(truth)


@pytest.mark.slow
def test_features_other_than_the_papers(data_dir):
    assert len(np.unique(read("apy", data_dir).X, axis=0)) == 4252
    banking = read("banking77", data_dir)
    np.testing.assert_allclose(np.linalg.norm(banking.X, axis=1), 1, atol=1e-3)
    assert (np.bincount(banking.y[10003:]) == 40).all()  # as its paper says of the test part
    sun = read("sun", data_dir)
    assert sun.classes[sun.y[0]] == "a/abbey"
    images = [line.split("/")[1] for line in (data_dir / "cub" / "cub_images.txt").read_text().split()]
    cub = read("cub", data_dir)
    assert [cub.classes[i] for i in cub.y] == images


# --- the steps


@pytest.fixture
def counts(rng):
    """80 documents of 50 terms about 4 topics."""
    topics = rng.gamma(0.3, 4.0, (4, 50))
    return scipy.sparse.csr_array(rng.poisson(topics[rng.integers(0, 4, 80)]))


def weighted_by_loops(dense):
    n, d = dense.shape
    result = np.zeros((n, d))
    for i in range(n):
        for j in range(d):
            if dense[i, j]:
                result[i, j] = (1 + np.log(dense[i, j])) * np.log(n / np.count_nonzero(dense[:, j]))
    return result


def test_term_weights_same_as_loops(counts):
    np.testing.assert_allclose(log_tfidf(counts).toarray(), weighted_by_loops(counts.toarray()))


def test_term_in_no_document_and_stored_zero_have_no_weight(counts):
    counts = scipy.sparse.csr_array(scipy.sparse.hstack([counts, scipy.sparse.csr_array((80, 1))]))
    counts.data[:3] = 0
    result = log_tfidf(counts)
    np.testing.assert_allclose(result.toarray(), weighted_by_loops(counts.toarray()))
    assert counts.nnz == result.nnz + 3  # the argument is left as it was


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_components_same_as_scikit_learn(form, counts):
    dense = counts.toarray() + 3.0
    result = datasets.principal_components(form(dense), 3)
    truth = PCA(3, svd_solver="full").fit_transform(dense)
    np.testing.assert_allclose(np.abs(result), np.abs(truth), atol=1e-6)
    assert (result.max(axis=0) >= -result.min(axis=0)).all()  # the direction of each axis is settled


def test_components_beyond_the_rank_are_zero(rng):
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 9))
    for result in (
        datasets.principal_components(form(X), 5) for form in (np.asarray, scipy.sparse.csr_array)
    ):
        np.testing.assert_allclose(result[:, 2:], 0, atol=1e-6)


def test_small_classes_are_dropped_and_the_rest_numbered_anew():
    raw = Raw(np.arange(7)[:, None], np.array([0, 1, 2, 2, 0, 2, 3]), ("a", "b", "c", "d"))
    X, y, classes = drop_small_classes(raw, 2)
    assert X[:, 0].tolist() == [0, 2, 3, 4, 5]
    assert y.tolist() == [0, 1, 1, 0, 1]
    assert classes == ("a", "c")


# --- the cache


@pytest.fixture
def tiny(counts, at_home, monkeypatch):
    """The cache folder, with 80 documents in place of Reuters; class 2 has one document, fewer than 10."""
    labels = np.repeat([1, 2, 3, 4], [40, 1, 29, 10])
    file = io.BytesIO()
    scipy.io.savemat(file, {"fea": scipy.sparse.csc_matrix(counts, dtype=float), "gnd": labels[:, None]})
    folder = at_home / ".cache" / "hubless" / "data" / "reuters"
    folder.mkdir(parents=True)
    (folder / "tiny.mat").write_bytes(file.getvalue())
    monkeypatch.setitem(FILES, "reuters", (File("tiny.mat", digest(file.getvalue())),))
    return at_home / ".cache" / "hubless"


def failing(*arguments):
    raise AssertionError("computed again")


def assert_same(result, truth):
    for a, b in zip(result, truth, strict=True):
        np.testing.assert_array_equal(a, b)
        assert type(a) is type(b)


def test_all_steps_on_tiny_data(tiny, counts):
    data = load("reuters", 2)
    rows = np.delete(np.arange(80), 40)
    truth = PCA(2, svd_solver="full").fit_transform(weighted_by_loops(counts.toarray()[rows]))
    np.testing.assert_allclose(np.abs(data.X), np.abs(truth), atol=1e-4)
    assert data.classes == ("1", "3", "4")
    assert np.bincount(data.y).tolist() == [40, 29, 10]
    assert data[:3] == ("reuters", "Reuters", "document")
    assert data[6:] == (50, False, "")


def test_second_load_takes_the_cache_without_the_files(tiny, monkeypatch):
    first = load("reuters", 2)
    (tiny / "data" / "reuters" / "tiny.mat").unlink()
    monkeypatch.setattr(datasets, "principal_components", failing)
    assert_same(load("reuters", 2), first)
    assert [path.suffix for path in tiny.iterdir() if path.is_file()] == [".npz"]


def test_another_dimension_file_or_recipe_is_computed_again(tiny, monkeypatch):
    load("reuters", 2)
    recipe = RECIPES["reuters"]
    monkeypatch.setattr(datasets, "principal_components", failing)
    with pytest.raises(AssertionError, match="computed again"):
        load("reuters", 3)
    for change in ({"min_class_size": 9}, {"weighting": None}):
        monkeypatch.setitem(RECIPES, "reuters", recipe._replace(**change))
        with pytest.raises(AssertionError, match="computed again"):
            load("reuters", 2)
    monkeypatch.setitem(FILES, "reuters", (File("tiny.mat", "0" * 64),))
    with pytest.raises(DatasetError, match="is damaged or another version"):
        load("reuters", 2)


def flipped(content):
    middle = content.index(b"NUMPY") + 300  # in the numbers of X
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def an_array(content):
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize("damage", [cut, flipped, an_array, lambda content: b"", lambda content: b"text"])
def test_damaged_cache_is_made_anew(damage, tiny, monkeypatch):
    first = load("reuters", 2)
    (kept,) = tiny.glob("*.npz")
    kept.write_bytes(damage(kept.read_bytes()))
    assert_same(load("reuters", 2), first)
    monkeypatch.setattr(datasets, "principal_components", failing)
    assert_same(load("reuters", 2), first)


def test_a_cache_that_cannot_be_written_raises_nothing(tiny, tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert load("reuters", 2, tiny / "data", tmp_path / "file").X.shape == (79, 2)


@pytest.mark.parametrize("dim", [0, -1, 2.0, True, "300"])
def test_wrong_dimension_is_refused(dim):
    with pytest.raises(ValueError, match=r"dim must be a whole number from 1, or None .*; got "):
        load("iris", dim)


@pytest.mark.parametrize("dim", [None, 50])
def test_terms_are_never_made_dense(dim, tiny):
    message = f"reuters has 50 sparse columns and 79 objects, so dim must be from 1 to 49; got {dim}"
    with pytest.raises(ValueError, match=message):
        load("reuters", dim)


def test_unknown_name_is_refused():
    for function in (load, read):
        with pytest.raises(ValueError, match=r"data set must be one of ionosphere, balance.*got 'mnist'"):
            function("mnist")
