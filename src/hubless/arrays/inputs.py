"""Checks of what users give: it becomes arrays that the library can rely on, or the error says what to do.

NumPy arrays, lists and data frames go through scikit-learn's validation. Arrays of other libraries, such as
torch, are checked here by the same rules and stay where they are.
"""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from .devices import is_on_engine
from .library import (
    Array,
    convert,
    describe,
    float_type,
    is_foreign,
    is_short_float,
    is_sparse,
    lift,
    namespace,
    same_place,
    to_numpy,
)


def check_points(
    estimator: Any, X: Any, *, method: str = "fit", like: Array | None = None, min_rows: int = 1
) -> Array:
    """Return X as a finite float matrix of its array library.

    For `fit` the number and the names of features are kept; for other methods X must have the same ones, and
    be of the library and on the device of the array `like`.
    """
    reset, name = method == "fit", type(estimator).__name__
    _refuse_sparse(X)
    refuse_dask(X, f"{name}.{method}() works in memory")
    if not is_foreign(X):
        X = validate_data(estimator, X, reset=reset, dtype=_float_type(X), ensure_min_samples=min_rows)
    else:
        X = _check_foreign(X, name, min_rows)
        if reset:
            estimator.__dict__.pop("feature_names_in_", None)  # names of an earlier fit on a data frame
            estimator.n_features_in_ = X.shape[1]
        elif X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features "
                "as input."
            )
    if not reset:
        check_place(estimator, X, method, like)
    return X


def check_place(estimator: Any, X: Array, method: str, like: Array) -> None:
    """Refuse an array of another library, or on another device, than what an estimator was fitted with."""
    if not same_place(X, like):
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace and the "
            f"same device as those passed to fit(); got {describe(X)}, fitted on {describe(like)}. Convert "
            "X, for example with torch.as_tensor(X, device=...) or X.cpu().numpy()."
        )


def check_matrix(X: Any, name: str) -> Array:
    """Return X as a finite float matrix, for functions that have no estimator."""
    _refuse_sparse(X, name)
    refuse_dask(X, "this function works in memory", name)
    if is_foreign(X):
        return _check_foreign(X, name, min_rows=1)
    return check_array(X, dtype=_float_type(X), input_name=name)


def check_queries(estimator: Any, queries: Any, X: Array) -> Array | None:
    """Return queries without labels as a finite matrix like X, which the estimator is fitted to."""
    if queries is None:
        return None
    checked = check_matrix(queries, "queries")
    if not same_place(checked, X):
        raise ValueError(
            f"queries and X must be of one array library and on one device; got {describe(checked)} and "
            f"{describe(X)}. Convert queries, for example with torch.as_tensor(queries, device=...)."
        )
    if checked.shape[1] != X.shape[1]:
        raise ValueError(
            f"queries must have the columns of X; got {checked.shape[1]} columns, and X has {X.shape[1]}."
        )
    if not is_foreign(queries):
        validate_data(estimator, queries, reset=False, skip_check_array=True)  # names of columns
    xp = namespace(X)
    if float(xp.max(xp.abs(checked))) > float(xp.finfo(X.dtype).max):
        raise ValueError(f"queries are too large for {X.dtype}, the precision of X: give X in float64.")
    return xp.astype(checked, X.dtype, copy=False)


def _float_type(X: Any) -> Any:
    """Return the precision to compute X in; for a data frame, by its first row."""
    dtype = np.asarray(X[:1]).dtype if hasattr(X, "columns") else getattr(X, "dtype", None)
    return float_type(dtype)


def _refuse_sparse(X: Any, name: str = "X") -> None:
    if scipy.sparse.issparse(X) or is_sparse(X):
        raise TypeError(
            f"Sparse data was passed for {name} ({X.shape[0]} x {X.shape[1]}), but dense data is required, "
            "because W has one row and one column per feature. Reduce the dimension first: "
            "make_pipeline(sklearn.decomposition.TruncatedSVD(300), ...)."
        )


def refuse_dask(X: Any, why: str, name: str = "X") -> None:
    """Refuse Dask arrays where they would be brought to this machine as a whole."""
    if is_on_engine(X):
        raise ValueError(f"{name} is on Dask, but {why}. Pass {name}.compute().")


def _check_foreign(X: Array, name: str, min_rows: int) -> Array:
    xp = namespace(X)
    if not is_short_float(xp, X.dtype) and not xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        raise ValueError(
            f"Complex data not supported: got dtype {X.dtype}; give real numbers, for example X.real."
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead, of shape {tuple(X.shape)}. Reshape to one "
            "row per object, with X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one object."
        )
    if X.shape[0] < min_rows or X.shape[1] < 1:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={tuple(X.shape)}) "
            f"while a minimum of {min_rows} and 1 is required by {name}."
        )
    X = lift(X.detach() if hasattr(X, "detach") else X)  # without a gradient: nothing is differentiated
    # A finite sum proves finite terms and needs no matrix of flags; an infinite one may be an overflow.
    if not math.isfinite(float(xp.sum(X))) and not bool(xp.all(xp.isfinite(X))):
        raise ValueError(
            f"Input X contains NaN or infinity. {name} needs finite numbers: drop or impute such rows."
        )
    return X


def check_labels(y: Any, X: Array) -> tuple[Array, Array]:
    """Return the sorted classes and the class number of each object, in the library of X (names in NumPy)."""
    if y is None:
        raise ValueError(
            "Learning from classes requires y to be passed, but the target y is None: give the class of each "
            "object."
        )
    refuse_dask(y, "X is in memory", "y")
    check_consistent_length(X, y)
    xp = namespace(X)
    if is_foreign(y) and same_place(X, y) and y.ndim == 1 and xp.isdtype(y.dtype, "integral"):
        classes, codes = xp.unique_inverse(y)  # no need to leave the device
        return xp.astype(classes, xp.int64, copy=False), xp.astype(codes, xp.int64, copy=False)
    host = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True)
    assert_all_finite(host, input_name="y")
    # not by check_classification_targets, which warns of a regression where most classes have one object
    if (kind := type_of_target(host, input_name="y")) not in ("binary", "multiclass"):
        raise ValueError(f"Unknown label type: {kind}. y must be classes: whole numbers, texts or booleans.")
    classes, codes = np.unique(host, return_inverse=True)
    if classes.dtype.kind in "biuf":  # only NumPy has arrays of names
        classes = convert(classes.astype(np.int64) if classes.dtype.kind == "u" else classes, X)
    return classes, convert(codes.astype(np.int64), X)


def label_text(value: Any) -> str:
    """Return a label as text: 3 and "3" are one class, and so is the 3.0 of a column with a missing label."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def check_class_numbers(y: Any, X: Array, classes: Array, name: str) -> Array:
    """Return the number of each label among the known classes, in the library of X."""
    if y is None:
        raise ValueError(f"{name} moves an object by its class; got no y. Call move(Z, y).")
    check_consistent_length(X, y)
    host, known = column_or_1d(to_numpy(y) if is_foreign(y) else y, warn=True), to_numpy(classes)
    codes = np.searchsorted(known, host)
    is_unknown = known[np.minimum(codes, len(known) - 1)] != host
    if is_unknown.any():
        names = ", ".join(map(repr, np.unique(host[is_unknown])[:3].tolist()))
        raise ValueError(
            f"y has classes that {name} was not fitted with: {names}. Fit again with such objects."
        )
    return convert(codes.astype(np.int64), X)


def check_weights(weights: Any, X: Array) -> Array | None:
    """Return weights of objects or pairs, not negative and not all zero, in float64, in the library of X."""
    if weights is None:
        return None
    n = X.shape[0]
    host = to_numpy(weights)
    if host.ndim == 0:
        host = np.full(n, host)
    host = check_array(host, dtype=np.float64, ensure_2d=False, input_name="sample_weight", allow_nd=True)
    if host.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {host.shape}, expected {(n,)}: give one weight per row of X."
        )
    if host.min() < 0 or host.max() == 0:
        raise ValueError(
            "Negative values in data passed to sample_weight, or nothing but zeros; got weights from "
            f"{host.min():g} to {host.max():g}. Weights must be at least 0, and at least one must be above 0."
        )
    return convert(host, X)


def check_squares(size: float) -> None:
    """Refuse values whose sum of squares is not a finite number."""
    if not size < np.inf:  # also catches nan
        raise ValueError(
            "the squares of the values overflow float64; divide X by its largest value first "
            "(and sample_weight by its largest)."
        )


def is_number(value: Any) -> bool:
    """Return True for a real number; a bool is not one."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_count(name: str, value: Any) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    return int(value)


def check_counts(name: str, values: Any) -> tuple[int, ...]:
    """Return whole numbers of at least 1, sorted and without duplicates."""
    counts = tuple(sorted({check_count(f"each of {name}", value) for value in as_list(values)}))
    if not counts:
        raise ValueError(f"{name} must hold at least one number; got none.")
    return counts


def as_list(values: Any) -> list[Any]:
    """Return a sequence as a list, and a single value as a list of one."""
    return list(values) if np.iterable(values) and not isinstance(values, str) else [values]


def or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return a check that allows None too."""
    return lambda name, value: None if value is None else check(name, value)


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse all but a few values."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def check_fraction(name: str, value: Any) -> None:
    """Refuse all but numbers from 0 to 1."""
    if not is_number(value) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1; got {value!r}.")


def check_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Refuse all but finite numbers above 0, or 0 too."""
    is_valid = is_number(value) and 0 <= float(value) < np.inf
    if not is_valid or (value == 0 and not or_zero):
        least = "of at least 0" if or_zero else "above 0"
        raise ValueError(f"{name} must be a finite number {least}; got {value!r}.")


def distinct(X: np.ndarray) -> np.ndarray:
    """Return the first row of every group of equal rows, by their bits; row numbers, in order."""
    X = np.ascontiguousarray(X)
    rows = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1])))[:, 0]
    return np.sort(np.unique(rows, return_index=True)[1])


# |z|² < ∞
def have_length(Z: np.ndarray) -> np.ndarray:
    """Say which rows are compared with anything: without NaN or infinity, and not too large; bool (n,)."""
    return np.asarray(np.isfinite(np.einsum("ij,ij->i", Z, Z)))
