"""Arrays of an engine are handed to its module, by one lazy call."""

import ast
import inspect
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.utils.validation import has_fit_parameter

import hubless
from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, movers, nearest
from hubless.arrays import devices
from hubless.arrays.devices import dispatched, is_on_engine


class Lazy:
    """An array of the engine `abacus`."""


Lazy.__module__ = "abacus.beads"


@pytest.fixture
def calls(monkeypatch):
    """What the engine was called with; its module does not exist before it is imported."""
    made, engine = [], ModuleType("abacus_engine")
    engine.add = lambda *args, **kwargs: made.append((args, kwargs)) or "by the engine"
    monkeypatch.setitem(devices.ENGINES, "abacus", "abacus_engine")
    monkeypatch.setitem(sys.modules, "abacus_engine", engine)
    return made


@dispatched
def add(a, b, *, scale=1):
    """Return the sum."""
    return scale * (a + b)


class Model:
    def __init__(self, moved=None):
        if moved is not None:
            self.moved_ = moved

    @dispatched
    def add(self, a, sample_weight=None):
        return a, sample_weight

    @dispatched
    def fit(self, a):
        return a


@pytest.mark.usefixtures("calls")
def test_other_arguments_stay_here():
    assert add(1, 2) == 3
    assert add(1, b=2, scale=3) == 9
    assert Model().add(4) == (4, None)
    assert Model(np.ones(2)).add(4, sample_weight=5) == (4, 5)


@pytest.mark.parametrize("call", [lambda x: add(x, 2), lambda x: add(1, x), lambda x: add(1, b=x)])
def test_an_argument_of_the_engine_goes_there(calls, call):
    lazy = Lazy()
    assert call(lazy) == "by the engine"
    (args, kwargs), *more = calls
    assert lazy in (*args, *kwargs.values())
    assert len((*args, *kwargs.values())) == 2
    assert more == []


def test_a_model_whose_objects_are_on_the_engine_goes_there(calls):
    model = Model(Lazy())
    assert model.add(4, sample_weight=5) == "by the engine"
    assert calls == [((model, 4), {"sample_weight": 5})]


@pytest.mark.usefixtures("calls")
def test_a_model_that_is_fitted_again_leaves_the_engine():
    assert Model(Lazy()).fit(4) == 4


def test_the_engine_is_imported_only_for_its_arrays(monkeypatch):
    monkeypatch.setitem(devices.ENGINES, "abacus", "module_that_does_not_exist")
    assert is_on_engine(Lazy())
    assert not any(is_on_engine(value) for value in (np.ones(2), [1], None, "abacus", Model()))
    assert add(1, 2) == 3
    with pytest.raises(ModuleNotFoundError, match="module_that_does_not_exist"):
        add(1, Lazy())


def test_a_function_keeps_its_name_docstring_and_signature():
    assert (add.__name__, add.__doc__) == ("add", "Return the sum.")
    assert str(inspect.signature(add)) == "(a, b, *, scale=1)"
    assert list(inspect.signature(nearest).parameters)[:3] == ["queries", "objects", "k"]


@pytest.mark.parametrize("model", [MoveLabeledClassifier(), MoveLabeledClassifierCV(), movers.MoveLabeled()])
def test_scikit_learn_still_sees_sample_weight(model):
    assert has_fit_parameter(model, "sample_weight")
    assert has_fit_parameter(model, "targets")


def dispatched_functions():
    """Name and arguments of every function and method of hubless that is handed to engines."""
    for file in Path(hubless.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and "dispatched" in map(ast.unparse, node.decorator_list):
                yield node.name, [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]


def test_dask_has_every_dispatched_function_with_the_same_arguments():
    engine = pytest.importorskip(devices.ENGINES["dask"])
    functions = list(dispatched_functions())
    assert {"nearest", "fit", "predict", "move"} <= {name for name, _ in functions}
    for name, arguments in functions:
        parameters = inspect.signature(getattr(engine, name)).parameters
        kinds = {parameter.kind for parameter in parameters.values()}
        takes_any = inspect.Parameter.VAR_KEYWORD in kinds
        assert takes_any or set(arguments) - {"self"} <= set(parameters), name
