"""What comes with the package: its types, and how to cite it."""

import tomllib
from importlib.resources import files
from pathlib import Path

from hubless import __version__

ROOT = Path(__file__).parent.parent


def test_the_types_of_hubless_are_seen_by_type_checkers():
    assert files("hubless").joinpath("py.typed").is_file()


def test_the_citation_names_this_version_and_license():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"version: {__version__}" in lines
    assert f"license: {project['license']}" in lines
