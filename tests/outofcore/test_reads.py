"""How often `fit_large` reads the data: twice at most, however it learns."""

import numpy as np
import pytest

from hubless import MoveLabeled
from hubless.movers import LabelRidge, Shrink
from hubless.outofcore import copy, one_pass, pair_sums
from hubless.outofcore.fit import fit_large
from hubless.outofcore.sources import ArrayObjects
from tests.outofcore.made_objects import assert_same, fresh, objects, searches
from tests.outofcore.test_large import hold

MOVERS = [MoveLabeled(n_targets=3), LabelRidge(n_targets=2), Shrink()]


@pytest.fixture
def rows_read(monkeypatch):
    """The number of rows of every block that is read."""
    read, blocks = [], ArrayObjects.blocks

    def counted(self, wanted=None):
        for number, block in blocks(self, wanted):
            read.append(len(block.X))
            yield number, block

    monkeypatch.setattr(ArrayObjects, "blocks", counted)
    return read


@pytest.mark.parametrize("group", [None, 10**6, 37], ids=["in memory", "one group", "groups"])
@pytest.mark.parametrize("mover", MOVERS, ids=repr)
@pytest.mark.parametrize("max_pairs", [None, 60])
def test_twice_at_most(rng, monkeypatch, rows_read, group, mover, max_pairs):
    hold(monkeypatch, 23, group)
    X, y = objects(rng, grid=True)
    got = fit_large(fresh(mover), X, y, max_pairs=max_pairs)
    assert sum(rows_read) <= 2 * len(X)
    if max_pairs is None:
        assert_same(got, fresh(mover).fit(X, y), X, y, 1e-12)


@pytest.mark.parametrize("group", [10**6, 37], ids=["one group", "groups"])
@pytest.mark.parametrize("step", range(4))
def test_a_run_that_stops_resumes_with_two_reads(rng, monkeypatch, tmp_path, rows_read, group, step):
    """In a search of a block, after as many others."""
    hold(monkeypatch, 40, group)
    X, y = objects(rng)
    want = fit_large(LabelRidge(), X, y, max_pairs=None)
    module, left, searched = one_pass if group > 37 else pair_sums, [step], []
    search = module.nearest_of_sources

    def stopped(*given):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return search(*given)

    with monkeypatch.context() as patch:
        patch.setattr(module, "nearest_of_sources", stopped)
        with pytest.raises(KeyboardInterrupt):
            fit_large(LabelRidge(), X, y, max_pairs=None, scratch=tmp_path)
    monkeypatch.setattr(module, "nearest_of_sources", lambda *given: searched.append(1) or search(*given))
    rows_read.clear()
    got = fit_large(LabelRidge(), X, y, max_pairs=None, scratch=tmp_path)
    np.testing.assert_array_equal(got.W_, want.W_)
    assert sum(rows_read) <= 2 * len(X)
    wanted = [range(4)] if group > 37 else searches(y, 40, group)
    assert len(searched) == sum(map(len, wanted)) - step


def test_without_room_for_a_copy(rng, monkeypatch):
    """The objects are read from where they are, once for each group and step."""
    hold(monkeypatch, 23, 37)
    X, y = objects(rng)

    def refuse(**given):
        raise OSError("no room")

    monkeypatch.setattr(copy, "TemporaryFile", refuse)
    got = fit_large(MoveLabeled(), X, y, max_pairs=None)
    assert_same(got, MoveLabeled().fit(X, y), X, y, 1e-12)
