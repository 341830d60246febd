"""What is loaded: help loads no NumPy, `import hubless` nearly nothing, the movers only the core."""

import json
import subprocess
import sys

import pytest

from hubless import cli, repair
from hubless.integrations import FORMS, forms
from hubless.paper import datasets, experiment, names

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "torch", "dask", "distributed", "pyarrow", "tqdm"}

SCRIPT = """
import contextlib, io, json, sys
loaded, before = {}, set(sys.modules)
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        exec(line)
    loaded[line] = sorted(set(sys.modules) - before)
print(json.dumps(loaded))
"""


def loaded_by(*lines):
    """Return the modules that each line of a fresh process has loaded, together with those before it."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *lines], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def packages(modules):
    return {name.split(".")[0] for name in modules}


def rooms(modules):
    """Return the rooms of hubless among modules."""
    return {name.split(".")[1] for name in modules if name.startswith("hubless.")}


def verbs():
    (subparsers,) = [action for action in cli.parser()._actions if action.choices and action.required]
    return sorted(subparsers.choices)


def test_import_and_help_load_nothing_heavy():
    """Loading NumPy alone takes longer than help may."""
    first = "import hubless"
    helps = [f"from hubless.cli import main; main([{verb!r}, '--help'])" for verb in verbs()]
    loaded = loaded_by(first, "from hubless.cli import main; main(['--help'])", *helps)
    assert rooms(loaded[first]) == {"support"}
    assert packages(loaded[first]) & HEAVY == set()
    for line, modules in loaded.items():
        assert packages(modules) & HEAVY == set(), line
    assert len(verbs()) >= 17


def test_movers_load_no_store_no_report_and_no_engine():
    first, line = "import sklearn.neighbors", "import hubless.movers"  # scikit-learn itself loads pandas
    scikit_learn, movers = loaded_by(first, line).values()
    loaded = {*movers} - {*scikit_learn}
    assert not rooms(loaded) & {"saving", "stores", "outofcore", "repair", "report", "plot", "paper", "cli"}
    assert not packages(loaded) & {"dask", "distributed", "torch", "pyarrow", "faiss", "matplotlib", "tqdm"}
    assert len([name for name in loaded if name.startswith("hubless")]) < 50


def test_langchain_and_llama_index_are_loaded_late():
    line = """
import numpy as np
from hubless.integrations.langchain import MovedEmbeddings
from hubless.integrations.llama_index import move_nodes
from hubless.movers import Scale
from hubless.repair import Repair
MovedEmbeddings(object(), Repair(Scale().fit(np.eye(4), [0, 0, 1, 1])))
"""
    assert not {name for name in packages(loaded_by(line)[line]) if name.startswith(("langchain", "llama_"))}


def test_light_names_are_those_of_the_tables():
    assert list(datasets.RECIPES) == list(names.DATASETS)
    of_the_paper = [name for name, kind in names.KIND_OF.items() if kind != "extra"]
    assert of_the_paper == [*names.PAPER_DATASETS]
    assert {*names.METHODS} == {*experiment.METHODS, "auto"}
    assert tuple(forms.WRITERS) == FORMS


@pytest.mark.parametrize("name", repair.__all__)
def test_names_of_repair_are_loaded_when_used(name):
    assert getattr(repair, name).__name__ == name
    assert getattr(repair, name).__doc__


def test_unknown_names_of_repair_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        repair.nothing  # noqa: B018
