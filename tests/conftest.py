"""Array libraries that every formula is tested on, small data, and verbs of the command line."""

import json
import os

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn's checks of array libraries ask for it, before SciPy loads

from pathlib import Path

import array_api_strict
import numpy as np
import pytest
import torch

from hubless import cli

collect_ignore = ["oracle/ask.py"]  # runs in an environment of its own, with what it asks

LIBRARIES = {
    "numpy": np.asarray,
    "torch": torch.as_tensor,
    # a device of its own, so that nothing slips through host memory unnoticed
    "strict": lambda array: array_api_strict.asarray(array, device=array_api_strict.Device("device1")),
}
if torch.cuda.is_available():
    LIBRARIES["cuda"] = lambda array: torch.as_tensor(array, device="cuda")


@pytest.fixture(params=LIBRARIES, ids=str)
def asarray(request):
    """Converts a NumPy array to one of the array libraries."""
    return LIBRARIES[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs(rng):
    """60 objects in 6 dimensions, far from the origin, of 4 classes of 30, 20, 9 and 1; 25 queries."""
    sizes = [30, 20, 9, 1]
    y = rng.permutation(np.repeat(np.arange(4), sizes))
    centres = 2 * rng.standard_normal((4, 6)) + 5
    X = centres[y] + rng.standard_normal((60, 6))
    queries = centres[rng.integers(0, 4, 25)] + rng.standard_normal((25, 6))
    return X, y, queries


@pytest.fixture(scope="session")
def data_dir():
    """Folder with the data sets of the paper."""
    folder = os.environ.get("HUBLESS_DATA")
    if not folder:
        pytest.skip("HUBLESS_DATA is not set: the data of the paper is not here")
    return Path(folder)


def pytest_collection_modifyitems(config, items):
    """Leave out scikit-learn's checks for array libraries and devices that this machine does not have."""

    def is_here(item):
        text = item.name
        return not any(name in text for name in ("cupy", "dpnp", "mps", "xpu")) and (
            "cuda" not in text or torch.cuda.is_available()
        )

    kept = [item for item in items if is_here(item)]
    config.hook.pytest_deselected(items=[item for item in items if not is_here(item)])
    items[:] = kept


@pytest.fixture
def run(capsys):
    """Runs a verb with --json: what it prints, which must be JSON in the strict sense and nothing else."""

    def run(*arguments):
        assert cli.main([*map(str, arguments), "--json"]) == 0, capsys.readouterr().err
        shown = capsys.readouterr()
        assert shown.err == ""  # no progress bar where nobody looks
        return json.loads(shown.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))

    return run


@pytest.fixture
def words(capsys):
    """Runs a verb without --json: what it says."""

    def words(*arguments):
        assert cli.main([*map(str, arguments)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return words


@pytest.fixture
def refused(capsys):
    """Runs a verb that must refuse, with exit code 1: its message, one of ours and no traceback."""

    def refused(*arguments):
        assert cli.main([*map(str, arguments)]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("hubless: ")
        assert "This should have been said better" not in shown.err
        return shown.err

    return refused
