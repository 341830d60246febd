"""Checks of single values: what passes, and what the message says."""

import numpy as np
import pytest

from hubless.arrays import inputs, to_numpy


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_counts(value):
    assert inputs.check_count("k", value) == int(value)
    assert type(inputs.check_count("k", value)) is int


@pytest.mark.parametrize("value", [0, -1, 2.0, True, None, "3", np.float64(2)])
def test_invalid_counts(value):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1; got"):
        inputs.check_count("k", value)


def test_several_counts():
    assert inputs.check_counts("ks", [5, 1, 5, np.int32(3)]) == (1, 3, 5)
    assert inputs.check_counts("ks", 4) == (4,)
    with pytest.raises(ValueError, match="ks must hold at least one number"):
        inputs.check_counts("ks", [])
    with pytest.raises(ValueError, match="each of ks must be a whole number of at least 1; got 0"):
        inputs.check_counts("ks", [1, 0])


def test_a_list_of_one():
    assert inputs.as_list((1, 2)) == [1, 2]
    assert inputs.as_list(3) == [3]
    assert inputs.as_list("scale") == ["scale"]


def test_choices():
    inputs.check_choice("weights", "uniform", ("uniform", "distance"))
    with pytest.raises(ValueError, match="weights must be one of 'uniform', 'distance'; got 'rank'"):
        inputs.check_choice("weights", "rank", ("uniform", "distance"))


def test_fractions():
    for value in (0, 1, 0.3, np.float32(0.5)):
        inputs.check_fraction("step", value)
    for value in (-0.1, 1.1, np.nan, True, "0.5", None):
        with pytest.raises(ValueError, match="step must be a number from 0 to 1; got"):
            inputs.check_fraction("step", value)


def test_positive_numbers():
    for value in (1, 1e-300, np.float32(2)):
        inputs.check_positive("scale", value)
    inputs.check_positive("scale", 0, or_zero=True)
    for value in (0, -1, np.inf, np.nan, True, "1", None):
        with pytest.raises(ValueError, match="scale must be a finite number above 0; got"):
            inputs.check_positive("scale", value)
    with pytest.raises(ValueError, match="scale must be a finite number of at least 0; got -1"):
        inputs.check_positive("scale", -1, or_zero=True)


def test_labels_as_text():
    assert [inputs.label_text(value) for value in (3, "3", 3.0, np.float32(3))] == ["3"] * 4
    assert [inputs.label_text(value) for value in (3.5, "a", None, np.nan)] == ["3.5", "a", "None", "nan"]


def test_numbers_of_known_classes(asarray):
    X, classes = asarray(np.ones((4, 2))), np.array(["a", "c", "d"])
    codes = inputs.check_class_numbers(["d", "a", "c", "a"], X, classes, "Shrink")
    assert type(codes) is type(X)
    np.testing.assert_array_equal(to_numpy(codes), [2, 0, 1, 0])
    for labels, names in ((["a", "b", "e", "b"], "'b', 'e'"), (["a"] * 3 + ["z"], "'z'")):
        with pytest.raises(
            ValueError, match=f"y has classes that Shrink was not fitted with: {names}. Fit again"
        ):
            inputs.check_class_numbers(labels, X, classes, "Shrink")
    with pytest.raises(ValueError, match=r"Shrink moves an object by its class; got no y. Call move\(Z, y\)"):
        inputs.check_class_numbers(None, X, classes, "Shrink")


def test_squares():
    inputs.check_squares(1e300)
    for size in (np.inf, np.nan):
        with pytest.raises(ValueError, match="overflow float64; divide X by its largest value"):
            inputs.check_squares(size)
