"""The hint to scale: given where one column decides alone, and nowhere else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import hubless
from hubless import MoveLabeledClassifierCV, ScaleWarning
from hubless.paper import datasets
from hubless.paper.names import DATASETS
from hubless.selection.columns import hint_to_scale, largest_share


def test_shares_are_those_of_numpy(asarray, rng):
    for dtype in (np.float32, np.float64):
        X = (rng.standard_normal((500, 5)) * [1, 2, 30, 4, 5] + 1000).astype(dtype)
        column, share = largest_share(asarray(X))
        variances = X.astype(float).var(axis=0)
        assert column == 2
        assert share == pytest.approx(variances[2] / variances.sum(), rel=1e-9)


@pytest.mark.parametrize("mover", ["ridge", "auto"])
def test_one_wide_column_gets_a_hint(asarray, rng, mover):
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    model = MoveLabeledClassifierCV(mover=mover, n_neighbors=[1], max_seconds=0.01)
    assert "scale" not in model.fit(asarray(X), y).explain()
    hint = r"Column 1 \(counted from 0\) has 99.\d+% of the variance of all 4 columns.*StandardScaler"
    with pytest.warns(ScaleWarning, match=hint) as caught:
        words = model.fit(asarray(X * [1, 1e4, 1, 1]), y).explain()
    assert words.endswith(str(caught[0].message))
    assert caught[0].filename == __file__
    assert "answered correctly" in words


def test_a_wide_column_is_named_before_it_is_warned_of():
    X, y = load_wine(as_frame=True, return_X_y=True)
    assert 0.99 < X.var().max() / X.var().sum() < 0.999
    words = MoveLabeledClassifierCV(n_neighbors=[1]).fit(X, y).explain()
    assert "Column 'proline' has 99.77% of the variance of all 13 columns" in words
    scaled = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)
    assert "proline" not in MoveLabeledClassifierCV(n_neighbors=[1]).fit(scaled, y).explain()


def test_data_without_other_columns_gets_no_hint(rng):
    line = rng.standard_normal((40, 1))
    assert hint_to_scale(line) == ""
    assert hint_to_scale(np.hstack([line, np.full((40, 3), 7.0)])) == ""
    assert hint_to_scale(np.ones((40, 3))) == ""
    on_a_line = PCA().fit_transform(line * [1.0, 2.0, 3.0] + 5)  # the second and third column are rounding
    assert hint_to_scale(on_a_line) == ""
    assert hint_to_scale(np.hstack([line, line]) * 1e200) == ""  # squares are not numbers


def test_seconds_since_1970_in_float32_get_a_hint(rng):
    X = np.column_stack([1.7e9 + 1e7 * rng.random(50), rng.standard_normal((50, 3))]).astype(np.float32)
    with pytest.warns(ScaleWarning, match=r"Column 0 \(counted from 0\) has 99.99% of the variance"):
        hint_to_scale(X)


def test_principal_components_of_scaled_columns_get_no_hint(rng):
    common = rng.standard_normal((200, 1))  # one cause of all columns, as in spectra or prices
    X = StandardScaler().fit_transform(common + 0.3 * rng.standard_normal((200, 50)))
    parts = PCA().fit_transform(X)
    assert parts.var(axis=0).max() / parts.var(axis=0).sum() > 0.9
    assert hint_to_scale(parts) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_data_sets_of_the_paper_get_no_hint(data_dir, name):
    data = datasets.load(name)
    X = StandardScaler().fit_transform(data.X) if data.standardize else data.X
    assert hint_to_scale(X) == ""
    assert largest_share(X)[1] < 0.7


def test_the_warning_can_be_filtered_by_its_name():
    assert issubclass(hubless.ScaleWarning, UserWarning)


def test_auto_sees_past_a_column_that_dwarfs_the_others():
    X, y = make_blobs(900, 20, centers=8, cluster_std=2.0, center_box=(-2, 2), random_state=0)
    stretched = X * np.where(np.arange(20) == 7, 1e4, 1.0)
    plain = KNeighborsClassifier(10).fit(X[:500], y[:500]).score(X[500:], y[500:])
    with pytest.warns(ScaleWarning):
        model = MoveLabeledClassifierCV(mover="auto").fit(stretched[:500], y[:500])
    assert (
        KNeighborsClassifier(10).fit(stretched[:500], y[:500]).score(stretched[500:], y[500:]) < plain - 0.4
    )
    assert model.score(stretched[500:], y[500:]) > plain - 0.02
