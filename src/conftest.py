"""Examples in docstrings run in an empty folder, since some of them write files."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each example in a folder of its own."""
    monkeypatch.chdir(tmp_path)
