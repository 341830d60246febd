"""Steps of a loop: what is decided, what is written, and what is never touched."""

import json

import numpy as np
import pytest

import hubless
from hubless.evaluation import BeforeAfter
from hubless.loop import read_history, versions, watch_index
from hubless.neighbors import nearest
from hubless.repair import apply_index, promote_index, rollback_index
from hubless.selection.from_pairs import choose_setting, score_held_out
from hubless.selection.pair_map import JudgedQueries, PairMap
from hubless.stores.checks import path_lock
from hubless.stores.store import StoreError
from tests.loop.loop_world import N_ITEMS, SLICE, LoopWorld


def against_moving(world):
    """Return answers to the next queries that what serves has lost: those of the original."""
    queries = world.queries[world.asked : world.asked + SLICE]
    return nearest(queries, world.items, 1, return_distance=False)[:, 0]


def poison(world):
    """Return wrong answers to the next queries, by a rule that can be learned: columns in reverse order."""
    queries = world.queries[world.asked : world.asked + SLICE]
    return nearest(queries[:, ::-1], world.items, 1, return_distance=False)[:, 0]


def test_a_loop_learns_and_promotes(world):
    first = world.found()
    world.judge(n=SLICE - 1)
    assert world.watch()["decision"] == "wait"
    assert not (world.loop / "journal.jsonl").exists()
    world.judge(n=1)
    assert world.watch()["decision"] == "keep"
    last = world.steps(1)
    assert (last["decision"], last["serving"], last["candidate"]["learned from"]) == ("promote", 1, [1, 2])
    assert world.found() > first + 0.1
    model = hubless.load(world.loop / "versions" / f"0001-{last['candidate']['model'][:12]}")
    np.testing.assert_array_equal(np.load(world.index), model.move(world.items, range(N_ITEMS)))
    np.testing.assert_array_equal(np.load(world.folder / "items.original.npy"), world.items)


def learned_from(world, *slices, chosen_on):
    """Return the items as one map of slices moves them, with nothing of the loop.

    Its setting is chosen on `chosen_on`, slices that were known before the candidate was tested.
    """

    def judged(numbers):
        rows = np.concatenate([np.arange(SLICE * (number - 1), SLICE * number) for number in numbers])
        return JudgedQueries(world.queries[rows], [{int(world.answers[row]): 1.0} for row in rows])

    def ways(known, vectors):
        return PairMap(known, vectors, False).ways(vectors)

    setting, _ = choose_setting(score_held_out(world.items, judged(chosen_on), ways, repeats=1))
    pairs = PairMap(judged(slices), world.items, False)
    return pairs.stepped(setting.step, pairs.moved(setting.alpha, world.items))


def assert_serves(world, *slices, chosen_on):
    expected = learned_from(world, *slices, chosen_on=chosen_on)
    np.testing.assert_allclose(np.load(world.index), expected, rtol=1e-5, atol=1e-5)


def test_what_serves_has_learned_from_the_slice_that_confirmed_it_too(world):
    world.steps(2)
    assert_serves(world, 1, 2, chosen_on=[1])
    step = world.steps(1)
    assert (step["decision"], step["candidate"]["learned from"]) == ("promote", [1, 2, 3])
    assert_serves(world, 1, 2, 3, chosen_on=[1, 2])


def test_what_is_promoted_was_tested_on_a_slice_that_it_had_not_seen(world):
    world.steps(1)
    step = world.steps(1)
    stored, queries = learned_from(world, 1, chosen_on=[1]), world.queries[SLICE : 2 * SLICE]
    scores = []
    for vectors in (world.items, stored):
        near = nearest(queries, vectors, 10, return_distance=False)
        ranks = [
            np.flatnonzero(row == a) for row, a in zip(near, world.answers[SLICE : 2 * SLICE], strict=True)
        ]
        scores.append(np.array([1 / np.log2(2 + rank[0]) if len(rank) else 0 for rank in ranks]))
    figure = next(f for f in step["figures"] if f["what"] == "candidate over the original, this slice")
    assert figure["mean"] == pytest.approx((scores[1] - scores[0]).mean())
    assert figure["n"] == SLICE


def test_versions_are_always_made_from_the_original_vectors(world):
    world.steps(7)
    promoted = [d for d in read_history(world.loop).decisions if d["decision"] == "promote"]
    assert len(promoted) >= 2
    model = hubless.load(next((world.loop / "versions").glob(f"{promoted[-1]['serving']:04d}-*")))
    np.testing.assert_array_equal(np.load(world.index), model.move(world.items, range(N_ITEMS)))
    # of all copies, the one that serves; of the versions, the last three at most
    assert {path.name for path in world.folder.glob("items*")} == {
        "items.npy",
        "items.npy.hubless.json",
        "items.original.npy",
    }
    assert len([*(world.loop / "versions").iterdir()]) <= 3


def test_a_dry_run_writes_nothing(world):
    world.judge()
    assert watch_index(
        world.store(), world.log, world.loop, queries=world.folder / "queries.npy", slice_size=40
    )
    assert not world.loop.exists()
    world.watch()
    world.judge()
    before = world.tree()
    told = world.watch(write=False)
    assert world.tree() == before
    assert not told["written"]
    done = world.watch()
    same = ("number", "decision", "why", "serving", "slices", "candidate", "figures", "guards", "state")
    assert [told[name] for name in same] == [done[name] for name in same]
    assert world.tree() != before


def test_a_backlog_is_tested_on_its_last_slice(world):
    world.judge(n=130)
    step = world.watch()
    assert step["decision"] == "promote"
    assert [each["number"] for each in step["slices"]] == [1, 2, 3]
    assert step["candidate"]["learned from"] == [1, 2, 3]
    assert world.watch()["why"].startswith("10 of 40")


def test_random_clicks_promote_nothing(tmp_path):
    rng, promoted = np.random.default_rng(0), 0
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = LoopWorld(folder, seed=seed)
        curve = 1 / np.arange(1, 11) if seed % 2 else np.full(10, 0.3)
        near = nearest(world.queries, world.items, 10, return_distance=False)
        for start in range(0, 240, 80):
            world.write(
                {"query": i, "shown": near[i].tolist(), "clicked": near[i][rng.random(10) < curve].tolist()}
                for i in range(start, start + 80)
            )
            promoted += world.watch()["decision"] == "promote"
    assert promoted == 0


def test_clicks_on_what_is_relevant_promote(world):
    """The user looks at rank r with probability 1 / r, and clicks on the answer when he sees it."""
    rng, near = np.random.default_rng(0), nearest(world.queries, world.items, 10, return_distance=False)
    decisions = []
    for start in range(0, 400, 100):
        for i in range(start, start + 100):
            seen = near[i][rng.random((6, 10)).min(axis=0) < 1 / np.arange(1, 11)]
            clicked = [int(item) for item in seen if item == world.answers[i]]
            world.write([{"query": i, "shown": near[i].tolist(), "clicked": clicked}])
        decisions.append(world.watch()["decision"])
    assert "promote" in decisions


def test_one_poisoned_slice_is_rolled_back_and_then_left_out(world):
    world.steps(3)
    assert world.watch(write=False)["serving"] == 2
    world.judge(against_moving(world))
    step = world.watch()
    assert (step["decision"], step["serving"]) == ("roll back", 0)
    np.testing.assert_array_equal(np.load(world.index), world.items)
    step = world.steps(1)  # the next slice says that the version was right
    assert step["state"]["left_out"] == (4,)
    assert (step["decision"], step["candidate"]["learned from"]) == ("promote", [1, 2, 3, 5])


def test_poison_that_poison_confirms_is_rolled_back_by_the_next_slice(world):
    first = world.found()
    for _ in range(2):
        world.judge(poison(world))
        step = world.watch()
    assert step["decision"] == "promote"  # two poisoned slices agree
    assert world.found() < first
    step = world.steps(1)
    assert (step["decision"], step["serving"], world.found()) == ("roll back", 0, first)
    step = world.steps(1)  # the next slice says again that the version was wrong
    assert step["state"]["left_out"] == (1, 2)
    assert (step["decision"], step["candidate"]["learned from"]) == ("promote", [3, 4])
    assert world.found() > first + 0.1


def test_a_slice_that_confirmed_and_then_harmed_is_left_out(world):
    """Slice 3 is poisoned in part: the candidate wins on it, and what is learned with it is worse."""
    world.steps(2)
    start = world.asked
    wrong = nearest(world.queries[start : start + 16, ::-1], world.items, 6, return_distance=False)
    world.write({"query": start + i, "item": int(item), "score": 1} for i in range(16) for item in wrong[i])
    world.asked += 16
    world.judge(n=SLICE - 16)
    step = world.watch()
    assert (step["decision"], step["candidate"]["learned from"]) == ("promote", [1, 2, 3])
    step = world.steps(1)
    assert (step["decision"], step["serving"]) == ("roll back", 1)
    assert_serves(world, 1, 2, chosen_on=[1])
    step = world.steps(1)
    assert step["state"]["left_out"] == (3,)
    assert (step["decision"], step["candidate"]["learned from"]) == ("promote", [1, 2, 4, 5])
    assert_serves(world, 1, 2, 4, 5, chosen_on=[1, 2, 4])


def test_slices_can_be_left_out_by_hand(world):
    world.steps(2)
    world.judge()
    step = world.watch(leave_out=[1])
    assert step["candidate"]["learned from"] == [2, 3]
    assert world.steps(1)["state"]["left_out"] == (1,)


def test_a_newest_slice_that_is_left_out_by_hand_is_only_a_test(world):
    world.steps(1)
    world.judge()
    step = world.watch(leave_out=[2])
    assert (step["decision"], step["candidate"]["learned from"]) == ("promote", [1])
    assert_serves(world, 1, chosen_on=[1])
    world.judge()
    step = world.watch(leave_out=[3])
    assert step["why"] == "Version 1 has learned from all slices but those left out."


def test_what_somebody_switched_by_hand_is_noticed(world):
    world.steps(2)
    rollback_index(world.store())
    world.judge()
    step = world.watch()
    assert step["notes"] == ["The original serves, and not version 1: it was switched."]
    assert step["served before"] == 1
    assert step["decision"] == "promote"


def test_an_index_that_another_model_moved_is_refused(world):
    step = world.steps(2)
    rollback_index(world.store())
    other = hubless.load(next((world.loop / "versions").iterdir()))
    other.mover.W_ = other.mover.W_ * 0.9
    apply_index(other, world.store(), "other.npy")
    promote_index(world.store(), "other.npy")
    world.judge()
    with pytest.raises(StoreError, match="which this loop did not make"):
        world.watch()
    assert step["serving"] == 1


def test_rows_that_only_the_moved_index_has_are_never_lost(world):
    world.steps(2)
    world.judge(against_moving(world))
    np.save(world.index, np.vstack([np.load(world.index), np.ones((1, 8), np.float32)]))
    served = world.index.read_bytes()
    for _ in range(2):  # the second call would complete the first
        with pytest.raises(StoreError, match="would no longer be found"):
            world.watch()
        assert world.index.read_bytes() == served


def test_a_guard_holds_a_copy_back_whose_index_finds_less(world, monkeypatch):
    monkeypatch.setattr(versions, "measure_recall", lambda blue, green: BeforeAfter(0.99, 0.9))
    step = world.steps(2)
    assert (step["decision"], step["serving"]) == ("keep", 0)
    assert "90.0% of the true neighbours instead of 99.0%" in step["why"]
    np.testing.assert_array_equal(np.load(world.index), world.items)
    assert not [*(world.loop / "versions").iterdir()]
    assert {path.name for path in world.folder.glob("items*")} == {"items.npy"}
    monkeypatch.undo()
    assert world.steps(1)["decision"] == "promote"


def test_what_a_loop_did_not_make_stays(world):
    others = [world.folder / "items-moved-0123456789ab.npy", world.loop / "versions" / "0007-0123456789ab"]
    np.save(others[0], world.items)
    others[1].mkdir(parents=True)
    (others[1] / "mine.txt").write_text("mine")
    world.steps(4)
    assert others[0].exists()
    assert (others[1] / "mine.txt").read_text() == "mine"


def test_two_calls_do_not_run_at_once(world):
    world.judge()
    world.loop.mkdir()
    with path_lock(world.loop / "journal.jsonl"), pytest.raises(StoreError, match="another process"):
        world.watch()
    assert world.watch(write=False)["decision"] == "keep"


@pytest.mark.parametrize("wrong", [{"slice_size": 19}, {"keep": 0}, {"eta": -1.0}, {"eta": float("nan")}])
def test_wrong_numbers_are_refused(world, wrong):
    world.judge()
    with pytest.raises(ValueError, match="a slice has 20 questions or more"):
        world.watch(**wrong)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("journal.jsonl", "{}\n"),
        ("journal.jsonl", "no JSON\n"),
        ("journal.jsonl", '{"number": 1, "state": {"serving": -1}}\n'),
        ("journal.jsonl", '{"number": 1}\n'),
        ("pending.json", "[]"),
        ("pending.json", '{"number": 9}'),
    ],
)
def test_a_damaged_journal_is_refused(world, name, content):
    world.steps(1)
    (world.loop / name).write_text(content)
    served = world.index.read_bytes()
    world.judge()
    with pytest.raises(StoreError, match=r"damaged|Restore it"):
        world.watch()
    assert world.index.read_bytes() == served


def test_a_line_that_was_not_finished_is_written_again(world):
    world.steps(2)
    journal = world.loop / "journal.jsonl"
    whole = journal.read_text()
    journal.write_text(whole + '{"number": 3, "deci')
    assert world.steps(1)["number"] == 3
    assert [json.loads(line)["number"] for line in journal.read_text().splitlines()] == [1, 2, 3]
    assert journal.read_text().startswith(whole)


def test_a_folder_of_another_index_is_refused(world, tmp_path):
    world.judge()
    world.watch()
    np.save(tmp_path / "other.npy", world.items)
    with pytest.raises(StoreError, match=r"is the folder of the loop of .*items\.npy"):
        watch_index(tmp_path / "other.npy", world.log, world.loop, queries=world.folder / "queries.npy")


def test_rows_that_are_left_out_are_counted(world):
    world.judge(n=10)
    world.write({"query": i, "item": "unknown", "score": 1} for i in range(3))
    step = world.watch()
    assert step["decision"] == "wait"
    assert step["notes"] == [
        "3 rows are left out, since the query, or every item, is unknown; the first is line 11."
    ]
