"""tests/tables.py has every mover with its properties, and a test fails for each edit that is forgotten."""

import importlib
import pkgutil
import re
import runpy
from inspect import cleandoc, signature
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from hubless import fit_large, movers
from hubless.arrays import to_numpy
from hubless.movers import MOVERS, Mover, Shrink
from hubless.movers.points import class_means
from hubless.saving.values import class_named
from tests import reference
from tests.tables import CASES, IN_PARTS, NOT_LEARNED_FROM, TABLE, Row, each

OF_ALL = {"classes_", "n_features_in_", "n_singletons_", "feature_names_in_", "space_"}  # whatever the mover
DATA = {"X", "y", "queries", "sample_weight", "later", "target_rows"}  # what a truth takes besides parameters
SECTIONS = ("Parameters", "Attributes", "Examples")


# --- one mover and its row ----------------------------------------------------------------------------------


def sections(kind):
    """The sections of a docstring by title."""
    parts = re.split(r"^(\w+)\n-+$", cleandoc(kind.__doc__ or ""), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def docstring_problems(kind, learned):
    documented = sections(kind)
    needed = SECTIONS if signature(kind).parameters else SECTIONS[1:]
    problems = [f"no section {title}" for title in needed if title not in documented]
    for title, names in (("Parameters", signature(kind).parameters), ("Attributes", learned)):
        words = re.split(r"\W+", documented.get(title, ""))
        problems += [f"{name} is not in {title}" for name in names if name not in words]
    if not re.search(r"Good \w+", kind.__doc__ or ""):
        problems.append("nothing says what it is good for")
    return problems


def truth_problems(row):
    """The truth is a function of tests/reference.py and takes the parameters of the mover."""
    if getattr(row.truth, "__module__", None) != reference.__name__:
        return ["its truth is not in tests/reference.py"]
    takes = set(signature(row.truth).parameters) - DATA
    missing = set(row.mover.get_params(deep=False)) - set(NOT_LEARNED_FROM) - takes
    return [f"its truth does not take {sorted(missing)}"] if missing else []


def property_problems(row):
    kind, mover = type(row.mover), row.mover
    true = {
        "uses_labels": mover._uses_labels,
        "adds_column": mover._adds_column,
        "in_parts": kind._learns_in_parts(),
        "can_be_saved": class_named(kind.__name__) is kind,
    }
    return [f"{name} is {value}" for name, value in true.items() if getattr(row, name) != value]


def learned_problems(row):
    """`_learned` has all that a fit sets, and a fit sets all of it that is not optional."""
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    fitted = row.new().fit(X, y)
    learned = {name.partition(".")[0] for name in fitted._learned}
    unknown = {name for name in vars(fitted) if name.endswith("_")} - learned - OF_ALL
    needed = [name for name, entry in fitted._learned.items() if not entry.endswith("optional")]
    missing = {name for name in (name.partition(".")[0] for name in needed) if not hasattr(fitted, name)}
    return [f"_learned lacks {sorted(unknown)}"] * bool(unknown and row.can_be_saved) + [
        f"fit sets no {sorted(missing)}"
    ] * bool(missing)


def problems(kind, row):
    if row is None:
        return ["no row in tests/tables.py"]
    learned = {name.partition(".")[0] for name in row.mover._learned}
    checks = (docstring_problems(kind, learned), truth_problems(row), property_problems(row))
    return [problem for check in checks for problem in check] + learned_problems(row)


def public_movers():
    """All movers in the files of hubless.movers, by name."""
    for module in pkgutil.iter_modules(movers.__path__):
        importlib.import_module(f"hubless.movers.{module.name}")
    kinds, movers_found = [Mover], {}
    while kinds:
        kinds += (kind := kinds.pop()).__subclasses__()
        if kind.__module__.startswith("hubless.movers.") and not kind.__name__.startswith("_"):
            movers_found[kind.__name__] = kind
    del movers_found["Mover"]
    return movers_found


def test_every_mover_is_public_and_has_a_row():
    assert public_movers() == MOVERS  # else `__all__` of its file lacks it, or hubless.movers lacks the file
    assert {name: type(row.mover) for name, row in TABLE.items()} == MOVERS
    assert set(movers.__all__) == {*MOVERS, "Mover"}


@pytest.mark.parametrize("name", MOVERS)
def test_a_mover_and_its_row_agree(name):
    assert problems(MOVERS[name], TABLE.get(name)) == []


# --- each forgotten edit is noticed -------------------------------------------------------------------------


class Whole(Shrink):
    """Move toward the mean of a class. Good for tests.

    Parameters
    ----------
    step : float

    Attributes
    ----------
    means_ : array

    Examples
    --------
    As of Shrink.
    """


class Undocumented(Shrink):
    """Move toward the mean of a class."""


class Forgetful(Whole):
    __doc__ = Whole.__doc__

    def _estimate(self, points):
        super()._estimate(points)
        self.sizes_ = class_means(points.Z, points.codes, points.n_classes)[1]


class WithMore(Whole):
    __doc__ = Whole.__doc__

    def __init__(self, step=0.3, power=1.0):
        super().__init__(step)
        self.power = power


def loops_elsewhere(X, y, step, sample_weight=None, later=None):
    return X


@pytest.mark.parametrize(
    ("kind", "row", "expected"),
    [
        (Whole, Row(Whole(), reference.shrink, uses_labels=True, in_parts=True, can_be_saved=False), []),
        (Whole, None, ["no row in tests/tables.py"]),
        (
            Whole,
            Row(Whole(), loops_elsewhere, uses_labels=True, in_parts=True, can_be_saved=False),
            ["its truth is not in tests/reference.py"],
        ),
        (
            Undocumented,
            Row(Undocumented(), reference.shrink, uses_labels=True, in_parts=True, can_be_saved=False),
            [
                *("no section Parameters", "no section Attributes", "no section Examples"),
                *("step is not in Parameters", "means_ is not in Attributes"),
                "nothing says what it is good for",
            ],
        ),
        (
            Forgetful,
            Row(Forgetful(), reference.shrink, uses_labels=True, in_parts=True),
            ["can_be_saved is False", "_learned lacks ['sizes_']"],
        ),
        (
            WithMore,
            Row(WithMore(), reference.shrink, uses_labels=True, in_parts=True, can_be_saved=False),
            ["power is not in Parameters", "its truth does not take ['power']"],
        ),
        (
            Whole,
            Row(Whole(), reference.shrink, adds_column=True, can_be_saved=False),
            ["uses_labels is True", "adds_column is False", "in_parts is True"],
        ),
    ],
)
def test_each_forgotten_edit_is_noticed(kind, row, expected):
    assert problems(kind, row) == expected


def test_a_mover_missing_from_all_is_noticed():
    hidden = type("Hidden", (Mover,), {"__module__": "hubless.movers.prototypes"})
    assert public_movers() != MOVERS
    assert public_movers()["Hidden"] is hidden
    hidden.__module__ = __name__


# --- properties that data show ------------------------------------------------------------------------------


@each({name: row for name, row in CASES.items() if row.same_bits})
def test_other_libraries_that_compute_by_numpy_give_the_same_bits(blobs, row):
    X, y, queries = blobs

    def moved(convert):
        mover = row.new()
        stored = mover.fit_transform(convert(X), convert(y))
        return [to_numpy(array) for array in (stored, mover.move(convert(queries), convert(y[:25])))]

    for ours, theirs in zip(moved(np.asarray), moved(array_api_strict.asarray), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@each(IN_PARTS)
def test_learning_in_parts_gives_the_mover_of_memory(blobs, row):
    X, y, queries = blobs
    whole, parts = row.new().fit(X, y), fit_large(row.new(), X, y, max_pairs=None)
    learned = {name.partition(".")[0] for name in whole._learned} & vars(whole).keys()
    for name in learned:
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts.move(queries, y[:25]), whole.move(queries, y[:25]), rtol=1e-9, atol=1e-9)


@each({name: row for name, row in CASES.items() if not row.in_parts})
def test_others_say_that_they_need_all_objects(blobs, row):
    X, y, _ = blobs
    able = ", ".join(name for name, other in TABLE.items() if other.in_parts)
    kind = type(row.mover).__name__
    with pytest.raises(ValueError, match=rf"{kind} needs all objects at once.* Dask, are {able}\."):
        fit_large(row.new(), X, y)


def test_the_table_of_the_documentation_is_that_of_the_classes():
    made = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "movers_table.py"))
    assert made["page"]() == made["PAGE"].read_text(), "run: python docs/movers_table.py"


def test_parameters_are_stored_as_scikit_learn_requires():
    for kind in MOVERS.values():
        assert issubclass(kind, BaseEstimator)
        assert all(not name.startswith("_") for name in signature(kind).parameters)
