"""cases.py has every correction with its properties; saved ones come back; scikit-learn knows them."""

import importlib
import pkgutil
import shutil
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hubless
from hubless import corrections
from hubless.corrections import CORRECTIONS, NNN, Correction, HoldHubs, Sinkhorn
from tests import reference
from tests.corrections.cases import TABLE, CorrectionRow, each_metric, each_row
from tests.corrections.conftest import make_log
from tests.saving.forging import edit_arrays, edit_config

DATA = {"queries", "objects", "later", "metric"}


def public_corrections():
    for module in pkgutil.iter_modules(corrections.__path__):
        importlib.import_module(f"hubless.corrections.{module.name}")
    kinds, found = [Correction], {}
    while kinds:
        kinds += (kind := kinds.pop()).__subclasses__()
        if kind.__module__.startswith("hubless.corrections."):
            found[kind.__name__] = kind
    del found["Correction"]
    return found


def problems(kind, row):
    if row is None:
        return ["no row in tests/corrections/cases.py"]
    found = []
    if getattr(row.truth, "__module__", None) != reference.__name__:
        found.append("its truth is not in tests/reference.py")
    missing = set(signature(kind).parameters) - {"column"} - set(signature(row.truth).parameters)
    found += [f"its truth does not take {sorted(missing)}"] * bool(missing)
    found += ["spares is wrong"] * (row.spares != kind._spares)
    found += ["metrics are wrong"] * (("ip" in row.metrics) == kind._by_distance)
    log = make_log()
    fitted = row.new("l2").fit(log.queries, log.objects)
    learned = {name.partition(".")[0] for name in fitted._learned} | {"n_features_in_"}
    unknown = {name for name in vars(fitted) if name.endswith("_")} - learned
    return found + [f"_learned lacks {sorted(unknown)}"] * bool(unknown)


def test_every_correction_is_public_and_has_a_row():
    assert public_corrections() == CORRECTIONS
    assert {name: type(row.correction) for name, row in TABLE.items()} == CORRECTIONS
    assert set(corrections.__all__) == {*CORRECTIONS, "Correction"}


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_correction_and_its_row_agree(name):
    assert problems(CORRECTIONS[name], TABLE.get(name)) == []


def test_each_forgotten_edit_is_noticed():
    class Forgetful(NNN):
        def _learn(self, objects):
            self.more_ = 1

    Forgetful.__module__ = __name__
    row = CorrectionRow(Forgetful(), reference.mean_query, spares=True)
    assert problems(Forgetful, None) == ["no row in tests/corrections/cases.py"]
    assert problems(Forgetful, row) == [
        "its truth does not take ['n_neighbors']",
        "spares is wrong",
        "_learned lacks ['more_']",
    ]


# --- scikit-learn -------------------------------------------------------------------------------------------


@each_row
def test_parameters_are_those_of_scikit_learn(row, log):
    new = clone(row.correction)
    assert new.get_params() == row.correction.get_params()
    assert repr(new) == repr(row.correction)
    assert new.set_params(metric="l2").metric == "l2"
    for call in (lambda: new.move(log.later), lambda: new.bias(log.later)):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        new.agreement(log.asked, log.objects)


# --- saving -------------------------------------------------------------------------------------------------


@each_metric
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_correction_comes_back(row, metric, dtype, tmp_path):
    log = make_log(dtype=dtype)
    fitted = row.new(metric, column=metric == "l2").fit(log.queries, log.objects)
    hubless.save(fitted, tmp_path / "model")
    loaded = hubless.load(tmp_path / "model")
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.move(log.later).tobytes() == fitted.move(log.later).tobytes()
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"an index that compares by {metric}" in card
    assert ("with a 0 in one more column" in card) == (metric == "l2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    log, root = make_log(), tmp_path_factory.mktemp("corrections")
    for correction in (HoldHubs(), Sinkhorn(), TABLE["LocalScaling"].new("cosine")):
        hubless.save(clone(correction).fit(log.queries, log.objects), root / type(correction).__name__)
    return root


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("HoldHubs", lambda a: a.update(bank_=a["bank_"][:, :5].copy()), "bank_ is float64 of shape"),
        ("HoldHubs", lambda a: a.update(weights_=-a["weights_"]), "weights_ are from"),
        ("HoldHubs", lambda a: a.update(weights_=a["weights_"][:3].copy()), "expected float32 or float64"),
        ("HoldHubs", lambda a: a["limits_"].fill(np.nan), "limits_ holds NaN"),
        ("HoldHubs", lambda a: a.pop("thresholds_"), "thresholds_ is missing"),
        ("HoldHubs", lambda a: a.update(more=np.zeros(2)), "has the arrays"),
        ("Sinkhorn", lambda a: a.update(potentials_=a["potentials_"][:-1].copy()), "potentials_ is"),
        ("Sinkhorn", lambda a: a["where_.u"].fill(np.inf), "where_.u holds NaN or infinity"),
    ],
)
def test_arrays_that_no_fit_gives_are_refused(folders, tmp_path, name, change, message):
    folder = shutil.copytree(folders / name, tmp_path / "model")
    edit_arrays(folder, change)
    with pytest.raises(ValueError, match=f"cannot be loaded: .*{message}"):
        hubless.load(folder)


@pytest.mark.parametrize(
    ("name", "learned", "value"),
    [
        ("HoldHubs", "most_", -1.0),
        ("HoldHubs", "allowed_", 0.0),
        ("HoldHubs", "allowed_", "x"),
        ("Sinkhorn", "beta_", -2.0),
        ("Sinkhorn", "where_.square", -2.0),
        ("LocalScaling", "scale_", 0.0),
    ],
)
def test_numbers_that_no_fit_gives_are_refused(folders, tmp_path, name, learned, value):
    folder = shutil.copytree(folders / name, tmp_path / "model")
    edit_config(folder, lambda config: config["model"]["learned"].update({learned: value}))
    with pytest.raises(ValueError, match="cannot be loaded: "):
        hubless.load(folder)
