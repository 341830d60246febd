"""Examples in docstrings run in an empty folder, since some of them write files."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Run each example in a folder of its own."""
    monkeypatch.chdir(tmp_path)
