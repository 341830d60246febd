"""What is published: types, metadata, the oldest packages, the recipe."""

import ast
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, get_overloads

import yaml

from hubless import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PUBLIC = ("", ".movers", ".corrections", ".repair", ".plot", ".baselines", ".calibration")
# Annotations that are Any because no type would be true: what scikit-learn or a folder decides, results that
# are one array or two of the library of the arguments, and models of every kind.
UNTYPED = {
    "BetweenSpaces.get_feature_names_out: input_features",
    "Hubness.__init__: occurrence",
    "MahalanobisLearner.get_mahalanobis_matrix: return",
    "MoveLabeledClassifierCV.__init__: cv",
    "MovedNeighbors.kneighbors: return",
    "Mover.get_feature_names_out: input_features",
    "Regress.__init__: regressor",
    "Repair.move: labels",
    "Repair.move: vectors",
    "Report.__init__: model",
    "explain_model: model",
    "load: return",
    "nearest: return",
    "predict_index: model",
    "predict_index: unknown",
    "push_to_hub: model",
    "save: model",
}


def test_the_types_of_hubless_are_seen_by_type_checkers():
    assert files("hubless").joinpath("py.typed").is_file()


def public_functions():
    """Functions and methods of the public rooms, by name; those that only wrap are unwrapped."""
    for room in PUBLIC:
        module = import_module(f"hubless{room}")
        for name in set(module.__all__) - {"__version__"}:
            value = getattr(module, name)
            kinds = inspect.getmro(value) if inspect.isclass(value) else ()
            ours = [kind for kind in kinds if kind.__module__.startswith("hubless.")]
            for found in (value, *(each for kind in ours for each in vars(kind).values())):
                function = inspect.unwrap(found) if callable(found) else found
                if inspect.isfunction(function) and re.match(r"__init__|[^_]", function.__name__):
                    yield function.__qualname__, function


def test_public_signatures_say_what_they_take_and_give():
    untyped = {
        f"{name}: {part}"
        for name, function in public_functions()
        if not get_overloads(function)
        for part, kind in function.__annotations__.items()
        if kind is Any
    }
    assert untyped == UNTYPED


def test_names_that_are_loaded_late_are_seen_by_type_checkers():
    for room in ("", ".repair"):
        module = import_module(f"hubless{room}")
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        (block,) = (node for node in tree.body if isinstance(node, ast.If))
        seen = {line.names[0].asname: line.module for line in block.body}
        assert seen == module._HOMES


def test_the_citation_names_this_version_and_license():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {__version__}" in lines
    assert f"license: {PROJECT['license']}" in lines


# --- the oldest and the newest packages ---------------------------------------------------------------------


def test_the_oldest_packages_are_those_of_pyproject():
    done = subprocess.run([sys.executable, ".ci/oldest.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == (ROOT / ".ci" / "oldest.txt").read_text(), (
        "run python .ci/oldest.py > .ci/oldest.txt" + done.stderr
    )


CONDA = {  # other names there
    "torch": "pytorch",
    "matplotlib": "matplotlib-base",
    "duckdb": "python-duckdb",
    "huggingface-hub": "huggingface_hub",
}


def test_the_recipe_agrees_with_pyproject():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == __version__
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    needed = recipe["requirements"]
    assert [line.replace(" ", "") for line in needed["run"][1:]] == PROJECT["dependencies"]
    bounds = runpy.run_path(str(ROOT / ".ci" / "oldest.py"))["bounds"]()
    known = {f"{CONDA.get(name, name)} >={version}" for name, version in bounds.items()}
    assert set(needed["run_constraints"]) <= known
    left_out = (
        known
        - set(needed["run_constraints"])
        - {line.replace(">=", " >=") for line in PROJECT["dependencies"]}
    )
    # pandas is no extra, and the others are not there
    assert {line.split()[0] for line in left_out} == {"pandas", "pysqlite3-binary", "qdrant-edge-py"}
