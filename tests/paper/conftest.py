"""What tests of data sets share."""

import pytest


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """No folder is set, and the home folder is a new one."""
    for name in ("HUBLESS_DATA", "HUBLESS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path
