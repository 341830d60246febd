"""The recipes for Spark and Ray: on engines of plain loops, and on the real ones where they are installed."""

import json
import random
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from hubless import MoveLabeled, fit_large
from hubless.movers import LabelRidge, Shrink
from hubless.outofcore import pair_sums
from hubless.outofcore.learn import Plan, fit

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "recipes.md").read_text()
ENGINES = {"recipe_spark": "pyspark", "recipe_ray": "ray"}


class Elements:
    """An RDD as a list. What is brought together or collected comes in another order, as it may."""

    def __init__(self, values):
        self.values = list(values)
        self.context = SimpleNamespace(
            broadcast=lambda value: SimpleNamespace(value=value),
            parallelize=lambda values, n: Elements(values),
        )

    def getNumPartitions(self):
        return len(self.values)

    def map(self, function):
        return Elements(map(function, self.values))

    def filter(self, function):
        return Elements(filter(function, self.values))

    def mapValues(self, function):
        return Elements((key, function(value)) for key, value in self.values)

    def groupByKey(self):
        groups = {}
        for key, value in self.collect():
            groups.setdefault(key, []).append(value)
        return Elements(groups.items())

    def collect(self):
        return random.Random(0).sample(self.values, len(self.values))


class Reference:
    """A reference of Ray: here, what it refers to."""

    def __init__(self, value):
        self.value = value


class Task:
    """A function that Ray runs as a task: here at once."""

    def __init__(self, function):
        self.function = function

    def remote(self, *values):
        return Reference(
            self.function(*(LOOPS.get(value) if isinstance(value, Reference) else value for value in values))
        )


def fetched(reference):
    return [one.value for one in reference] if isinstance(reference, list) else reference.value


LOOPS = SimpleNamespace(
    remote=Task, put=Reference, get=fetched, wait=lambda references: None, ObjectRef=Reference
)


@pytest.fixture(params=ENGINES)
def recipe(request, monkeypatch):
    """A recipe: its `main`, its objects of blocks, its moved blocks, and its parts."""
    monkeypatch.syspath_prepend(DOCS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(sys.modules, "ray", LOOPS)
    for name in (*ENGINES, "recipe_parts"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = import_module(request.param)
    if request.param == "recipe_ray":
        return SimpleNamespace(
            module=module,
            main=module.main,
            objects=lambda blocks, *how: module.RayObjects([*map(Reference, blocks)], *how),
            moved=lambda blocks, mover: fetched(module.moved([*map(Reference, blocks)], mover)),
            parts=module.parts,
        )
    return SimpleNamespace(
        module=module,
        main=lambda *how: module.main(Elements([]).context, *how),
        objects=lambda blocks, *how: module.SparkObjects(Elements(blocks), *how),
        moved=lambda blocks, mover: sorted(
            module.moved(Elements(blocks), mover).collect(), key=lambda block: block[0]
        ),
        parts=module.parts,
    )


@pytest.fixture
def blocks(rng):
    """Objects of 12 classes, some of them alone in theirs, in blocks of unequal length; and all of them."""
    y = np.concatenate([rng.choice(8, 292, p=np.arange(8, 0, -1) / 36), np.arange(8, 12), np.arange(4)])
    y = rng.permutation(y)
    X = rng.standard_normal((12, 6))[y] + rng.standard_normal((300, 6))
    parts = np.split(np.arange(300), [40, 41, 100, 120, 135, 160, 170, 200, 250])
    return [(number, X[rows], y[rows]) for number, rows in enumerate(parts)], X, y


@pytest.fixture(params=[1 << 26, 1], ids=["in memory", "by sums"])
def room(request, recipe, monkeypatch):
    """Bytes that one process may hold; groups of 90 sources."""
    kind = "RayObjects" if "ray" in recipe.module.__name__ else "SparkObjects"
    monkeypatch.setattr(getattr(recipe.module, kind), "room", request.param)
    monkeypatch.setattr(pair_sums, "group_size", lambda *_: 90)


@pytest.mark.parametrize("n_blocks", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_a_recipe_learns_what_a_fit_in_memory_learns(recipe, n_blocks):
    assert_exact(recipe.main(n_blocks))


def assert_exact(run):
    assert run["largest difference of W"] < 1e-12
    assert run["largest difference of a moved object"] < 1e-12


# `make test-all` does not install the engines, which take 700 MB: benchmarks/results/scale has a run of them
if INSTALLED := [name for name, package in ENGINES.items() if find_spec(package) is not None]:

    @pytest.mark.slow
    @pytest.mark.parametrize("name", INSTALLED)
    def test_a_recipe_runs_on_its_engine(name):
        done = subprocess.run([sys.executable, DOCS / f"{name}.py"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert_exact(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("mover", [MoveLabeled(n_targets=3), LabelRidge(), Shrink()], ids=str)
def test_movers_that_learn_in_parts(recipe, blocks, room, mover):
    parts, X, y = blocks
    mover = clone(mover)
    fit(mover, recipe.objects(parts, 6), Plan(max_pairs=None))
    truth = clone(mover).fit(X, y)
    np.testing.assert_allclose(mover.move(X, y), truth.move(X, y), rtol=1e-9, atol=1e-12)
    there = np.concatenate([Z for _, Z, _ in recipe.moved(parts, mover)])
    np.testing.assert_allclose(there, truth.move(X, y), rtol=1e-9, atol=1e-12)


def test_a_sample_is_that_of_fit_large(recipe, blocks, room):
    parts, X, y = blocks
    mover, truth = MoveLabeled(), fit_large(MoveLabeled(), X, y, max_pairs=60)
    fit(mover, recipe.objects(parts, 6), Plan(max_pairs=60))
    assert mover.n_pairs_ == truth.n_pairs_ <= 60
    np.testing.assert_allclose(mover.W_, truth.W_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("room", [1], indirect=True, ids=["by sums"])
def test_an_interrupted_run_resumes(recipe, blocks, room, tmp_path, monkeypatch):
    parts, _, _ = blocks
    alone = MoveLabeled()
    fit(alone, recipe.objects(parts, 6), Plan(max_pairs=None))
    searched, search = [], pair_sums.nearest_of_sources

    def stop(block, number, *shared):
        if len(searched) == 2 * len(parts) + 4:  # within the third of four groups of sources
            raise KeyboardInterrupt
        return count(block, number, *shared)

    def count(block, number, *shared):
        searched.append(number)
        return search(block, number, *shared)

    mover, plan = MoveLabeled(), Plan(max_pairs=None, checkpoints=tmp_path / "kept")
    monkeypatch.setattr(pair_sums, "nearest_of_sources", stop)
    with pytest.raises(KeyboardInterrupt):
        fit(mover, recipe.objects(parts, 6), plan)
    monkeypatch.setattr(pair_sums, "nearest_of_sources", count)
    fit(mover, recipe.objects(parts, 6), plan)
    np.testing.assert_array_equal(mover.W_, alone.W_)
    assert len(searched) == 4 * len(parts)  # each block once for each group: none is searched again


def test_a_bad_block_is_named_or_skipped(recipe, blocks, room):
    parts, X, y = blocks
    parts[2][1][0, 3] = np.nan
    with pytest.raises(ValueError, match="row 0 of block 2 has NaN"):
        fit(MoveLabeled(), recipe.objects(parts, 6), Plan())
    mover, kept = MoveLabeled(), np.r_[:41, 100:300]
    fit(mover, recipe.objects(parts, 6, True), Plan(max_pairs=None))
    assert [part for part, _ in mover.skipped_] == ["block 2"]
    np.testing.assert_allclose(mover.W_, MoveLabeled().fit(X[kept], y[kept]).W_, rtol=1e-9, atol=1e-12)


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


def test_the_page_reports_the_runs():
    raw = json.loads((ROOT / "benchmarks/results/scale/recipes.json").read_text())
    machine, data = raw["machine"], raw["data"]
    reported = [
        f"on {machine['date']} with Python {machine['python']}",
        f"{machine['cores']} cores and {machine['memory_gib']} GiB of memory",
        f"Spark {raw['pyspark']['runs'][0]['spark']} and Ray {raw['ray']['runs'][0]['ray']}",
        f"{data['objects']:,} objects of {data['columns']} columns in {data['blocks']} blocks",
    ]
    for engine, name in (("pyspark", "Spark"), ("ray", "Ray")):
        for run in raw[engine]["runs"]:
            assert_exact(run)
        worst = max(run["largest difference of W"] for run in raw[engine]["runs"])
        reported.append(f"{worst:.1g} with {name}")
    for text in reported:
        assert text in PAGE, text
