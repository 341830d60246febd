"""The data sets of the paper: read, filtered, weighted and reduced as its section 5.1 says.

    read → drop small classes → weight terms → principal components

Data sets that are not reduced are neither centred nor standardised here: both are learned on the training
part of a split.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.io
import scipy.sparse

from ..support.cache import load_arrays, save_arrays
from .download import FILES, Folder, cache_folder, data_folder, provide
from .names import DATASETS, KIND_OF

Features: TypeAlias = np.ndarray | scipy.sparse.csr_array

VERSION = 1  # of the steps: raise it when their numbers change, and caches are computed again
OVERSAMPLING, PASSES, SEED = 10, 7, 0  # of the randomised SVD


class Raw(NamedTuple):
    """The content of the files."""

    X: Features  # (n, d)
    y: np.ndarray  # (n,) class numbers from 0
    classes: tuple[str, ...]


class Recipe(NamedTuple):
    """How a data set is made from its files."""

    source: str  # the public page, and what was computed from it
    reader: Callable[[Sequence[Path]], Raw]
    min_class_size: int = 1
    weighting: str | None = None  # "log tf-idf", or the features as they are
    standardize: bool = False  # z-scores, from the training part of a split
    note: str = ""  # how it differs from the paper's data


class Dataset(NamedTuple):
    """A data set; `classes[y[i]]` is the name of the class of object X[i]."""

    name: str
    title: str  # the paper's name
    kind: str  # UCI, document, image or extra (not in the paper)
    X: Features  # (n, d), float64 for UCI, else float32; from `read`, terms are sparse in float64
    y: np.ndarray  # (n,) int64, from 0
    classes: tuple[str, ...]
    original_dimension: int  # columns before the principal components
    standardize: bool  # make z-scores, from the training part of a split
    note: str  # how it differs from the paper's data, or empty


def load(name: str, dim: int | None = 300, data_dir: Folder = None, cache_dir: Folder = None) -> Dataset:
    """Return a data set, ready for splitting.

    Parameters
    ----------
    name : one of `hubless.paper.names.DATASETS`
    dim : int or None
        Sets with more columns are reduced to this many principal components of all objects (labels are not
        used), as the paper does; None keeps all columns, which is refused for term matrices.
    data_dir : path, optional
        Folder that has `<name>/<file>`, default $HUBLESS_DATA, else `data` in the cache folder. Missing files
        are downloaded into it where they are public.
    cache_dir : path, optional
        Folder where principal components are kept, default $HUBLESS_CACHE, else ~/.cache/hubless. Where they
        are found, the files are not needed.
    """
    _check_name(name)
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1):
        raise ValueError(f"dim must be a whole number from 1, or None to keep all columns; got {dim!r}.")
    is_kept = KIND_OF[name] != "UCI"  # whose components take no time
    kept = cache_folder(cache_dir) / f"{name}-{dim}-{_fingerprint(name, dim)}.npz"
    arrays = load_arrays(kept, ("X", "y", "classes", "original_dimension")) if is_kept else None
    if arrays is not None:
        X, y, classes, columns = arrays
        return _dataset(name, Raw(X, y, tuple(map(str, classes))), int(columns))
    data = read(name, data_dir, cache_dir)
    n, columns = data.X.shape
    if scipy.sparse.issparse(data.X) and (dim is None or dim >= min(n, columns)):
        raise ValueError(
            f"{name} has {columns} sparse columns and {n} objects, so dim must be from 1 to "
            f"{min(n, columns) - 1}; got {dim}. The paper takes 300."
        )
    if dim is None or columns <= dim:
        return data
    X = principal_components(data.X, int(dim)).astype(_float_type(name))
    if is_kept:
        save_arrays(kept, X=X, y=data.y, classes=np.array(data.classes), original_dimension=np.array(columns))
    return data._replace(X=X)


def read(name: str, data_dir: Folder = None, cache_dir: Folder = None) -> Dataset:
    """Return a data set with all its columns: every step of `load` except the principal components."""
    _check_name(name)
    recipe = RECIPES[name]
    paths = provide(data_folder(data_dir, cache_dir) / name, FILES[name], recipe.source)
    X, y, classes = drop_small_classes(recipe.reader(paths), recipe.min_class_size)
    if recipe.weighting is not None:
        X = log_tfidf(X)
    if not scipy.sparse.issparse(X):
        X = np.asarray(X, dtype=_float_type(name))
    return _dataset(name, Raw(X, y, classes), X.shape[1])


def _check_name(name: str) -> None:
    if name not in RECIPES:
        raise ValueError(f"data set must be one of {', '.join(RECIPES)}; got {name!r}.")


def _float_type(name: str) -> type[np.floating]:
    return np.float64 if KIND_OF[name] == "UCI" else np.float32


def _dataset(name: str, content: Raw, columns: int) -> Dataset:
    recipe = RECIPES[name]
    return Dataset(name, DATASETS[name], KIND_OF[name], *content, columns, recipe.standardize, recipe.note)


def _fingerprint(name: str, dim: int | None) -> str:
    """Return a text that changes with the files, the steps and their settings."""
    recipe = RECIPES[name]
    files = [(file.name, file.sha256) for file in FILES[name]]
    steps = [KIND_OF[name], recipe.reader.__name__, recipe.min_class_size, recipe.weighting]
    text = json.dumps([VERSION, OVERSAMPLING, PASSES, SEED, name, str(dim), files, steps])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --- the steps


def drop_small_classes(raw: Raw, least: int) -> Raw:
    """Keep the classes with at least `least` objects, numbered from 0 in their order."""
    sizes = np.bincount(raw.y, minlength=len(raw.classes))
    large = np.flatnonzero(sizes >= least)
    rows = np.flatnonzero(np.isin(raw.y, large))
    return Raw(raw.X[rows], np.searchsorted(large, raw.y[rows]), tuple(raw.classes[i] for i in large))


# (1 + log tf) · log(N / df)
def log_tfidf(counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return weighted terms, with an entry for each count that is not 0.

    >>> log_tfidf(scipy.sparse.csr_array([[1, 1, 2], [0, 1, 0]])).toarray().round(2)
    array([[0.69, 0.  , 1.17],
           [0.  , 0.  , 0.  ]])
    """
    weighted = counts.astype(np.float64)
    weighted.eliminate_zeros()
    df = np.bincount(weighted.indices, minlength=weighted.shape[1])
    idf = np.log(weighted.shape[0] / np.maximum(df, 1))  # a term in no document has no entry to weight
    weighted.data = (1 + np.log(weighted.data)) * idf[weighted.indices]
    return weighted


def principal_components(X: Features, dim: int) -> np.ndarray:
    """Return centred X on its leading principal axes, shape (n, dim) in float64.

    The sign of an axis is arbitrary: the score farthest from 0 is made positive.
    """
    scores = _sparse_components(X, dim) if scipy.sparse.issparse(X) else _dense_components(X, dim)
    farthest = np.abs(scores).argmax(axis=0)
    return scores * np.where(scores[farthest, np.arange(dim)] < 0, -1, 1)


# (X − μ) V, where V are the leading eigenvectors of (X − μ)ᵀ(X − μ)
def _dense_components(X: np.ndarray, dim: int) -> np.ndarray:
    centred = X - X.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)  # eigenvalues rise
    return centred @ axes[:, : -dim - 1 : -1]


# A ≈ Q Qᵀ A with Q an orthonormal basis of (A Aᵀ)^q A Ω, Ω Gaussian (Halko, Martinsson & Tropp 2011), q = 6
def _sparse_components(X: scipy.sparse.csr_array, dim: int) -> np.ndarray:
    """Return the same by a randomised SVD, which never makes X dense."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    basis = np.random.default_rng(SEED).standard_normal((X.shape[1], dim + OVERSAMPLING))
    for _ in range(PASSES):
        left, _ = np.linalg.qr(X @ basis - mean @ basis)
        right = X.T @ left - np.outer(mean, left.sum(axis=0))
        basis, _ = np.linalg.qr(right)
    U, values, _ = np.linalg.svd(right.T, full_matrices=False)
    return (left @ U[:, :dim]) * values[:dim]


# --- the readers of files, and what is done for each data set


def _numbered(X: Features, labels: Sequence[str] | np.ndarray) -> Raw:
    """Number the classes in the order of their labels."""
    classes, y = np.unique(labels, return_inverse=True)
    return Raw(X, y.astype(np.int64), tuple(str(label) for label in classes))


def _label_first(paths: Sequence[Path]) -> Raw:
    cells = np.loadtxt(paths[0], dtype=str, delimiter=",")
    return _numbered(cells[:, 1:].astype(np.float64), cells[:, 0])


def _label_last(paths: Sequence[Path]) -> Raw:
    cells = np.loadtxt(paths[0], dtype=str, delimiter=",")
    return _numbered(cells[:, :-1].astype(np.float64), cells[:, -1])


def _terms(paths: Sequence[Path]) -> Raw:
    content = scipy.io.loadmat(paths[0], variable_names=("fea", "gnd"))
    return _numbered(scipy.sparse.csr_array(content["fea"]), content["gnd"].ravel())


def _arrays(paths: Sequence[Path]) -> Raw:
    X, y = (np.load(path, allow_pickle=False) for path in paths[:2])
    return Raw(X, y.astype(np.int64), tuple(paths[2].read_text(encoding="utf-8").split()))


def _sun(paths: Sequence[Path]) -> Raw:
    votes, images = (scipy.io.loadmat(path) for path in paths)
    names = [str(cell[0]) for cell in images["images"].ravel()]  # such as a/abbey/sun_aakbdcgfpksytcwj.jpg
    return _numbered(votes["labels_cv"], [name.rpartition("/")[0] for name in names])


def _apy(paths: Sequence[Path]) -> Raw:
    lines = [line.split() for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    X = np.array([line[6:] for line in lines]).astype(np.float32)  # after image, class, box in four numbers
    return _numbered(X, [line[1] for line in lines])


def _banking(paths: Sequence[Path]) -> Raw:
    labels = []
    for path in paths[:2]:
        with path.open(encoding="utf-8", newline="") as file:
            labels += [row["category"] for row in csv.DictReader(file)]
    return _numbered(np.concatenate([np.load(path, allow_pickle=False) for path in paths[2:]]), labels)


UCI = Recipe("https://archive.ics.uci.edu", _label_last)
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/TextData.html"
OTHER = "other features than the paper's"

RECIPES = {
    "ionosphere": UCI,
    "balance-scale": UCI._replace(reader=_label_first),
    "iris": UCI,
    "wine": UCI._replace(standardize=True),
    "glass": UCI,
    "rcv": Recipe(
        f"tf-idf of 4 topics of RCV1-v2, see scikit-learn's fetch_rcv1 or {CAI}",
        _terms,
        note="another sample than the paper's (10705 documents rebuilt from public RCV1-v2 instead of 9625)",
    ),
    "news": Recipe(CAI, _terms, weighting="log tf-idf"),
    "reuters": Recipe(CAI, _terms, min_class_size=10, weighting="log tf-idf"),
    "tdt": Recipe(CAI, _terms, min_class_size=10, weighting="log tf-idf"),
    "awa": Recipe(
        "features computed from Animals with Attributes, https://cvml.ista.ac.at/AwA/",
        _arrays,
        note=f"{OTHER} (five bag-of-words histograms, reduced from 8252 to 300 dimensions, instead of "
        "VGG-19)",
    ),
    "cub": Recipe(
        "features computed from CUB-200-2011, https://www.vision.caltech.edu/datasets/cub_200_2011/",
        _arrays,
        note=f"{OTHER} (EfficientNet-Lite0 instead of VGG-19)",
    ),
    "sun": Recipe(
        "https://cs.brown.edu/~gmpatter/sunattributes.html",
        _sun,
        note=f"{OTHER} (102 attributes voted by people instead of VGG-19)",
    ),
    "apy": Recipe(
        "http://vision.cs.uiuc.edu/attributes/",
        _apy,
        note=f"{OTHER} (64 binary attributes, 4252 distinct rows, instead of VGG-19)",
    ),
    "banking77": Recipe(
        "MiniLM embeddings computed from https://github.com/PolyAI-LDN/task-specific-datasets",
        _banking,
        note="not in the paper (MiniLM embeddings of questions to a bank)",
    ),
}
