"""A small index with a log that grows."""

import pytest

from tests.loop.loop_world import LoopWorld


@pytest.fixture
def world(tmp_path):
    return LoopWorld(tmp_path)
