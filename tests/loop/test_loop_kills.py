"""A step that is killed before each thing that it writes or switches: the next call completes it."""

import shutil

import numpy as np
import pytest

import hubless
from hubless.loop import loop_journal, read_history, versions, watch
from hubless.stores import switch
from tests.loop.loop_world import N_ITEMS, LoopWorld
from tests.stores.killer import killed_at

pytestmark = pytest.mark.faults
STEPS = {
    watch: ("keep_version", "write_pending", "serve", "close_decision", "remove_versions"),
    versions: ("rollback_index", "apply_index", "promote_index", "_remove_copies", "remove"),
    switch: ("exchange_names",),  # of the way back, and of the way forward
    loop_journal: ("sync_folder",),  # when what is pending is written, in the journal, and removed
}
MOMENTS = range(15)  # of a step that promotes a version in the place of another


def count_steps(counted):
    for module, names in STEPS.items():
        for name in names:
            setattr(module, name, counted(getattr(module, name)))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A loop whose next step promotes a version in the place of another one, with a copy of its files."""
    folder = tmp_path_factory.mktemp("loop") / "files"
    folder.mkdir()
    world = LoopWorld(folder)
    world.steps(2)
    world.judge()
    told = world.watch(write=False)
    assert (told["decision"], told["served before"]) == ("promote", 1)
    shutil.copytree(folder, folder.with_name("copy"))  # with the times of files, which marks have
    return world


@pytest.fixture
def restored(world):
    """The same loop, with all files as they were."""
    shutil.rmtree(world.folder)
    shutil.copytree(world.folder.with_name("copy"), world.folder)
    return world


def served_by(world, number):
    """Return the vectors that a version serves."""
    if number == 0:
        return world.items
    folder = next((world.loop / "versions").glob(f"{number:04d}-*"))
    return hubless.load(folder).move(world.items, range(N_ITEMS))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_step_is_completed_by_the_next(moment, restored):
    world = restored
    killed_at(moment, count_steps, LoopWorld.watch, world)
    kept = sorted(int(path.name[:4]) for path in (world.loop / "versions").iterdir())
    now = np.load(world.index)
    assert any(np.array_equal(now, served_by(world, number)) for number in (0, *kept))

    step = world.watch()
    assert (step["decision"], step["serving"]) in (("promote", 2), ("wait", 2))
    np.testing.assert_array_equal(np.load(world.index), served_by(world, 2))
    decisions = read_history(world.loop).decisions
    assert [decision["number"] for decision in decisions] == [1, 2, 3]
    assert decisions[-1]["serving"] == 2
    assert {path.name for path in world.loop.iterdir()} == {"journal.jsonl", "versions"}
    assert {path.name for path in world.folder.glob("*items*")} == {
        "items.npy",
        "items.npy.hubless.json",
        "items.original.npy",
    }


def test_these_are_all_moments(restored, monkeypatch):
    count = [0]

    def counted(step):
        def counting(*args, **options):
            count[0] += 1
            return step(*args, **options)

        return counting

    for module, names in STEPS.items():
        for name in names:
            monkeypatch.setattr(module, name, counted(getattr(module, name)))
    restored.watch()
    assert count[0] == len(MOMENTS)
