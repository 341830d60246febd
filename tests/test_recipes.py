"""The recipes for Spark and Ray: on an engine of plain loops, and on their own where it is installed."""

import json
import re
import subprocess
import sys
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from hubless import MoveLabeled, fit_large
from hubless.large.fit import learn
from hubless.movers import LabelRidge, Shrink

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "recipes.md").read_text()
ENGINES = {"recipe_spark": "pyspark", "recipe_ray": "ray"}


class Elements:
    """An RDD as a list. What is brought together comes in the wrong order, as it may."""

    def __init__(self, values):
        self.values = list(values)
        self.context = SimpleNamespace(
            broadcast=lambda value: SimpleNamespace(value=value),
            parallelize=lambda values, n: Elements(values),
        )

    def map(self, function):
        return Elements(map(function, self.values))

    def flatMap(self, function):
        return Elements(one for value in self.values for one in function(value))

    def groupByKey(self, n, place):
        groups = {}
        for key, value in reversed(self.values):
            assert 0 <= place(key) < n
            groups.setdefault(key, []).append(value)
        return Elements(groups.items())

    def treeReduce(self, function):
        return reduce(function, self.values)

    def collect(self):
        return self.values


class Task:
    """A function that Ray runs as a task: here at once, and a reference is what it refers to."""

    def __init__(self, function, n=1):
        self.function, self.n = function, n

    def options(self, num_returns):
        return Task(self.function, num_returns)

    def remote(self, *values):
        found = self.function(*values)
        assert self.n == 1 or len(found) == self.n  # which Ray insists on
        return found


LOOPS = SimpleNamespace(remote=Task, put=lambda value: value, get=lambda reference: reference)


@pytest.fixture(params=ENGINES)
def recipe(request, monkeypatch):
    """A recipe, its class of objects from blocks, and its parts."""
    monkeypatch.syspath_prepend(DOCS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(sys.modules, "ray", LOOPS)
    for name in (*ENGINES, "recipe_parts"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = import_module(request.param)
    if request.param == "recipe_ray":
        return SimpleNamespace(main=found.main, objects=found.OnRay, moved=found.moved, parts=found.parts)
    return SimpleNamespace(
        main=lambda: found.main(Elements([]).context),
        objects=lambda blocks, *how: found.OnSpark(Elements(blocks), *how),
        moved=lambda blocks, mover: found.moved(Elements(blocks), mover).collect(),
        parts=found.parts,
    )


@pytest.fixture
def blocks(rng):
    """Objects of 12 classes, some of them alone in theirs, in blocks of unequal length; and all of them."""
    y = np.concatenate([rng.choice(8, 292, p=np.arange(8, 0, -1) / 36), np.arange(8, 12), np.arange(4)])
    y = rng.permutation(y)
    X = rng.standard_normal((12, 6))[y] + rng.standard_normal((300, 6))
    parts = np.split(np.arange(300), [40, 41, 170])
    return [(number, X[rows], y[rows]) for number, rows in enumerate(parts)], X, y


def test_a_recipe_finds_what_a_fit_in_memory_finds(recipe):
    found = recipe.main()
    assert found["largest difference of W"] < 1e-12
    assert found["largest difference of a moved object"] < 1e-12


@pytest.mark.parametrize("name", ENGINES)
def test_a_recipe_runs_on_its_engine_where_that_is_installed(name):
    """Where it is not, the run that the page tells of must have been a good one."""
    told = json.loads((ROOT / "benchmarks/results/scale/recipes.json").read_text())[ENGINES[name]]
    if find_spec(ENGINES[name]):
        done = subprocess.run([sys.executable, DOCS / f"{name}.py"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told = {"runs": [json.loads(done.stdout.splitlines()[-1])]}
    for run in told["runs"]:
        assert run["largest difference of W"] < 1e-12
        assert run["largest difference of a moved object"] < 1e-12


@pytest.mark.parametrize("at_once", [1, 100, 10_000])
@pytest.mark.parametrize("mover", [MoveLabeled(n_targets=3), LabelRidge(), Shrink()], ids=str)
def test_movers_that_learn_part_by_part(recipe, blocks, monkeypatch, mover, at_once):
    monkeypatch.setattr(recipe.parts, "AT_ONCE", at_once)
    parts, X, y = blocks
    learn(mover, recipe.objects(parts))
    truth = clone(mover).fit(X, y)
    np.testing.assert_allclose(mover.move(X, y), truth.move(X, y), rtol=1e-9, atol=1e-12)


def test_a_sample_is_that_of_fit_large(recipe, blocks):
    parts, X, y = blocks
    mover, truth = MoveLabeled(), fit_large(MoveLabeled(), X, y, max_pairs=60)
    learn(mover, recipe.objects(parts, 60))
    assert mover.n_pairs_ == truth.n_pairs_ <= 60
    np.testing.assert_allclose(mover.W_, truth.W_, rtol=1e-9, atol=1e-12)
    there = np.concatenate([Z for _, Z, _ in recipe.moved(parts, mover)])
    np.testing.assert_allclose(there, truth.move(X), rtol=1e-9, atol=1e-12)


def test_a_bad_block_is_named(recipe, blocks):
    parts, _, _ = blocks
    parts[2][1][0, 3] = np.nan
    with pytest.raises(ValueError, match="row 0 of block 2 has NaN"):
        recipe.objects(parts)


def test_the_comparison_can_fail(recipe):
    parts = recipe.parts
    block = parts.read(0)
    mover = MoveLabeled().fit(*block[1:])
    assert parts.check(mover, [parts.move(block, mover)])["largest difference of W"] == 0
    mover.W_ = mover.W_ * (1 + 1e-6)
    with pytest.raises(AssertionError):
        parts.check(mover, [parts.move(block, mover)])


def test_the_page_shows_the_files():
    shown = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown == [(DOCS / f"{name}.py").read_text() for name in ("recipe_parts", *ENGINES)]


def test_the_page_tells_of_the_runs():
    raw = json.loads((ROOT / "benchmarks/results/scale/recipes.json").read_text())
    machine = raw["machine"]
    told = [
        f"on {machine['date']} with Python {machine['python']}",
        f"{machine['cores']} cores and {machine['memory_gib']} GiB of memory",
        f"Spark {raw['pyspark']['runs'][0]['spark']} and Ray {raw['ray']['runs'][0]['ray']}",
    ]
    for engine, name in (("pyspark", "Spark"), ("ray", "Ray")):
        worst = max(run["largest difference of W"] for run in raw[engine]["runs"])
        told.append(f"{worst:.1g} with {name}")
    for text in told:
        assert text in PAGE, text
