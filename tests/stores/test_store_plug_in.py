"""Stores of other packages, found by the entry points of what is installed."""

import sqlite3
import sys

import numpy as np
import pytest

from hubless.stores.files.plain_files import NpyFile
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import Case, exact
from hubless.testing.store_contract import StoreContract
from tests.stores.example_store import LiteTable


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package with entry points, as pip would."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(package, points, code=""):
        (site / f"{package}.py").write_text(code)
        monkeypatch.delitem(sys.modules, package, raising=False)
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[hubless.stores]", *lines, ""]))

    return install


EXAMPLE = "tests.stores.example_store:LiteTable"


class TestExample(StoreContract):
    """The contract on the worked example, opened by its scheme."""

    @pytest.fixture(params=[True, False], ids=["texts", "numbers"])
    def case(self, request, install):
        install("example", {"litetable": EXAMPLE})

        def make(folder, ids, X, texts, metric):
            with sqlite3.connect(folder / "db") as database:
                database.execute("CREATE TABLE items (id PRIMARY KEY, vector BLOB, text TEXT)")
                insert(database, ids, X, texts)
            database.close()
            return open_store(f"litetable:{folder / 'db'}#items", metric=metric)

        def insert(database, ids, X, texts):
            rows = zip(ids.tolist(), [x.tobytes() for x in X.astype(np.float32)], texts, strict=True)
            database.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)

        def ask(store, queries, k):
            with sqlite3.connect(store.address) as database:
                rows = database.execute("SELECT id, vector FROM items").fetchall()
            database.close()
            X = np.array([np.frombuffer(vector, np.float32) for _, vector in rows])
            return exact([i for i, _ in rows], X, queries, k, store.metric)

        def add(store, ids, X, texts):
            with sqlite3.connect(store.address) as database:
                insert(database, ids, X, texts)
            database.close()

        return Case(make, ask, add, text_ids=request.param)


def test_a_suffix_of_another_package(install, tmp_path):
    code = "from hubless.stores.files.plain_files import NpyFile\nclass Vectors(NpyFile):\n    pass\n"
    install("vectors", {".vec": "vectors:Vectors"}, code)
    with (tmp_path / "v.VEC").open("wb") as file:
        np.save(file, np.eye(3, dtype=np.float32))
    store = open_store(tmp_path / "v.VEC")
    assert type(store).__module__ == "vectors"
    assert store.facts().count == 3


def test_built_in_names_win(install, tmp_path):
    install("greedy", {".npy": EXAMPLE, "lancedb": "no.such.module:Kind"})
    assert type(open_store(tmp_path / "v.npy")) is NpyFile
    assert open_store(f"lancedb:{tmp_path}#items").name == f"lancedb:{tmp_path}#items"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_module", r"'far' of the package broken.*ModuleNotFoundError.*no_such_module"),
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
        ("", "AttributeError.*Kind"),
        ("Kind = dict", "not a subclass of hubless.stores.store.Store"),
    ],
)
def test_a_broken_plug_in_is_named_when_it_is_used(install, tmp_path, code, message):
    install("broken", {"far": "broken:Kind"}, code)
    np.save(tmp_path / "v.npy", np.eye(2))
    assert open_store(tmp_path / "v.npy").facts().count == 2  # others work
    with pytest.raises(StoreError, match=message):
        open_store("far:away#items")


def test_two_packages_with_one_name(install):
    install("first", {"far": EXAMPLE})
    install("second", {"far": EXAMPLE})
    with pytest.raises(StoreError, match="package first and the package second both provide a store 'far'"):
        open_store("far:away#items")


def test_options_are_parsed_by_the_class(install):
    install("example", {"litetable": EXAMPLE})
    assert isinstance(open_store("litetable:somewhere#items"), LiteTable)
    with pytest.raises(StoreError, match="leave --vector and --id out"):
        open_store("litetable:somewhere#items", id="key")
    with pytest.raises(StoreError, match="after a #: litetable:ADDRESS#NAME"):
        open_store("litetable:somewhere")


def test_unknown_stores_are_refused_with_all_that_are_known(install, tmp_path):
    install("broken", {"far": "broken:Kind"}, "1 / 0")  # which is not loaded for this
    with pytest.raises(StoreError, match=r"not a known store.*\.npy.*lancedb:FOLDER#TABLE.*add far"):
        open_store(tmp_path / "v.doc")
    with pytest.raises(StoreError, match="not a known store"):
        open_store("unknown:v")
