"""docs/write-a-store.md is followed: a package outside of hubless, built by pip, and its tests."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hubless.stores.store import Store
from tests.stores import example_store

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-a-store.md").read_text()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Where pip installs the package, which Python finds besides what is installed."""
    (made,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tests,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(made)
    (tmp_path / "test_litetable.py").write_text(tests)
    shutil.copy(example_store.__file__, tmp_path / "litetable.py")
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*command, "--target", site, "."], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "litetable.py").unlink()  # what is installed is used
    monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT / 'src'}")
    return site


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_package_outside_of_hubless_adds_a_store_and_runs_the_contract(site, tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE items (id PRIMARY KEY, vector BLOB, text TEXT)")
        rows = [(i, vector.tobytes(), "a") for i, vector in enumerate(np.eye(3, dtype=np.float32))]
        database.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    *_, command = re.findall(r"^hubless (.*)$", PAGE, re.MULTILINE)
    done = run(tmp_path, "bash", "-c", f"{sys.executable} -m hubless {command}")
    assert "3 rows of 3 columns" in done.stdout, done.stderr
    some = "facts or batches or promote_and or resumed"
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", some]
    done = run(tmp_path, *pytest_, "test_litetable.py")
    assert re.match(r"\.{4} ", done.stdout), done.stdout


def test_the_page_names_methods_of_the_contract_that_the_example_has():
    (table,) = re.findall(r"\| method .*?\n\n", PAGE, re.DOTALL)
    named = {
        name for row in table.strip().splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    kind = next(
        kind
        for kind in vars(example_store).values()
        if isinstance(kind, type) and issubclass(kind, Store) and kind.__module__ == example_store.__name__
    )
    abstract = {name for name in Store.__abstractmethods__ if name in vars(kind)}
    assert abstract <= named
    assert named <= set(vars(kind))
    assert f'"litetable:{kind.__name__}"' in PAGE
    assert kind.schemes[0].strip(":") + " = " in PAGE
