"""The contract, on every built-in kind of store."""

import inspect
from importlib import import_module
from pkgutil import walk_packages

import pytest

import hubless.stores
from hubless.stores.kinds import BUILT_IN
from hubless.stores.opening import class_of
from hubless.stores.store import Store
from hubless.testing.store_contract import StoreContract
from tests.stores.cases import CASES, case_of, parameters


class TestContract(StoreContract):
    @pytest.fixture(params=parameters())
    def row(self, request):
        return request.param

    @pytest.fixture
    def case(self, row, request):
        return case_of(row, request)

    def test_its_kinds_lead_to_its_class(self, row, made):
        store, *_ = made
        assert {class_of(kind) for kind in row.kinds} == {type(store)}


def stores_of_the_package():
    """Classes of stores that can be opened, wherever in the package they are."""
    modules = [info.name for info in walk_packages(hubless.stores.__path__, "hubless.stores.")]
    classes = [kind for name in modules for kind in vars(import_module(name)).values()]
    return {
        kind
        for kind in classes
        if isinstance(kind, type) and issubclass(kind, Store) and not inspect.isabstract(kind)
    }


def test_every_store_has_a_row_of_kinds():
    assert {class_of(kind) for kind in BUILT_IN} == stores_of_the_package()


def test_every_built_in_kind_has_a_case():
    assert {kind for row in CASES for kind in row.kinds} == set(BUILT_IN)
