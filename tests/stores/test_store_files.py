"""Vectors in files: how they are replaced, and what is refused."""

import os
import pickle

import numpy as np
import pytest

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.stores import switch
from hubless.stores.files.plain_files import NpyFile
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests.stores.file_cases import make_arrow, make_hdf5, make_npy, make_parquet, make_parts, read_again
from tests.stores.store_contract import exact, model_for, sample


def parts_moved(tmp_path):
    """Make a folder of parts with a moved copy; return it, the model, queries, and results of both."""
    ids, X, y, texts = sample(text_ids=True)
    store = make_parts(tmp_path, ids, X, texts, "l2")
    model = model_for(X, y, "l2")
    apply_index(model, store, "green")
    queries = X[:20] + 0.1
    after = exact(ids, model.move(X), queries, 5, "l2")
    return store, model, queries, read_again(store, queries, 5), after


@pytest.mark.parametrize("step", ["rename", "exchange"])
def test_an_interrupted_switch_of_folders_is_recovered(tmp_path, monkeypatch, step):
    """Stopped before its first or its second step, a promote or a rollback leaves one of the two serving."""
    store, _, queries, before, after = parts_moved(tmp_path)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "rename") if step == "rename" else (switch, "_exchange")), interrupt)
        with pytest.raises(KeyboardInterrupt):
            promote_index(store, "green")
    assert read_again(store, queries, 5) == before
    assert index_status(store)["status"] == "original"
    promote_index(store, "green")  # which finds green under its name again
    assert read_again(store, queries, 5) == after
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "rename") if step == "rename" else (switch, "_exchange")), interrupt)
        with pytest.raises(KeyboardInterrupt):
            rollback_index(store)
    assert read_again(store, queries, 5) == after
    rollback_index(store.sibling(store.name))
    assert read_again(store, queries, 5) == before


@pytest.mark.parametrize("step", range(5))
def test_a_system_that_cannot_exchange_names(tmp_path, monkeypatch, step):
    """It takes four renames instead; stopped before any of them, opening the folder again recovers it."""
    store, _, queries, before, after = parts_moved(tmp_path)
    rename, left = os.rename, [step]

    def rename_until(*arguments):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        rename(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(switch.ctypes, "CDLL", lambda *_, **__: object())
        patch.setattr(os, "rename", rename_until)
        if step < 4:
            with pytest.raises(KeyboardInterrupt):
                promote_index(store, "green")
        else:
            promote_index(store, "green")
    again = open_store(store.path, metric="l2")
    assert read_again(again, queries, 5) == (before if step < 3 else after)
    if step < 3:
        promote_index(again, "green")
    rollback_index(again)
    assert read_again(again, queries, 5) == before


@pytest.fixture
def served(tmp_path):
    """A .npy file that serves, with a moved copy beside it, and the vectors of both."""
    ids, X, y, texts = sample()
    store, model = make_npy(tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    apply_index(model, store, "green")
    return store, X, model.move(X)


def test_a_link_stays_one(served, tmp_path):
    store, X, moved = served
    (tmp_path / "current.npy").symlink_to(store.path)
    linked = NpyFile(tmp_path / "current.npy", metric="l2", items=store.items)
    promote_index(linked, "green")
    assert (tmp_path / "current.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "current.npy"), moved)
    rollback_index(linked)
    np.testing.assert_array_equal(np.load(tmp_path / "current.npy"), X)


def test_a_file_system_without_links(served, monkeypatch):
    store, X, moved = served

    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    promote_index(store, "green")
    np.testing.assert_array_equal(np.load(store.path), moved)
    np.testing.assert_array_equal(np.load(store.path.with_name("v.original.npy")), X)


def test_permissions_of_the_original_are_kept(served):
    store, *_ = served
    store.path.chmod(0o640)
    promote_index(store, "green")
    assert store.path.stat().st_mode & 0o777 == 0o640


def test_marks_of_an_untrusted_file_lead_nowhere(served, tmp_path):
    """A file of marks that names any path as the original must not let that file be moved."""
    store, *_ = served
    promote_index(store, "green")
    victim = tmp_path / "secret" / "v.npy"
    victim.parent.mkdir()
    np.save(victim, np.zeros((2, 8), np.float32))
    marks = tmp_path / "v.npy.hubless.json"
    marks.write_text(marks.read_text().replace("v.original.npy", str(victim)))
    rollback_index(store.sibling(store.name))
    assert np.load(victim).shape == (2, 8)
    np.testing.assert_array_equal(np.load(store.path), served[1])


def test_a_promoted_file_that_others_wrote_to_is_still_moved(served, tmp_path):
    """Moved items were added to it: it is not an original, so it is not moved again; a rollback keeps it."""
    store, X, moved = served
    model = model_for(X, sample()[2], "l2")
    promote_index(store, "green")
    np.save(store.path, moved + 1)
    again = store.sibling(store.name)
    assert index_status(again)["status"] == "serving moved, changed since"
    with pytest.raises(StoreError, match="already moved"):
        apply_index(model, again, "twice")
    kept = rollback_index(again)["moved_kept_as"]
    np.testing.assert_array_equal(np.load(kept), moved + 1)
    np.testing.assert_array_equal(np.load(store.path), X)


def test_two_promotes_at_once_lose_nothing(served, tmp_path, monkeypatch):
    """The second starts while the first is between its two steps; the user has a second name for the file."""
    store, X, moved = served
    os.link(store.path, tmp_path / "backup.npy")
    replace = os.replace

    def meet(new, target):
        if str(target) == str(store.path):
            with pytest.raises(StoreError, match="another process"):
                promote_index(store.sibling(store.name), "green")
        replace(new, target)

    monkeypatch.setattr(os, "replace", meet)
    promote_index(store, "green")
    np.testing.assert_array_equal(np.load(tmp_path / "backup.npy"), X)
    np.testing.assert_array_equal(np.load(tmp_path / "v.original.npy"), X)
    np.testing.assert_array_equal(np.load(store.path), moved)


def test_an_original_that_is_kept_cannot_be_switched(served, tmp_path):
    store, X, _ = served
    promote_index(store, "green")
    kept = store.sibling("v.original")
    apply_index(model_for(X[:200], sample()[2][:200], "l2"), kept, "other")
    with pytest.raises(StoreError, match="kept to roll back to"):
        promote_index(kept, "other")


def test_a_file_that_changes_after_it_was_opened_is_read_again(served):
    """A store that was opened before must not give old rows under the new state."""
    store, X, _ = served
    model = model_for(X, sample()[2], "l2")
    store.facts()
    np.save(store.path, X + 1)
    apply_index(model, store, "later")
    np.testing.assert_array_equal(np.load(store.path.with_name("later.npy")), model.move(X + 1))


def test_other_files_of_a_folder_are_copied(tmp_path):
    store, *_ = parts_moved(tmp_path)
    (store.path / "meta.json").write_text("{}")
    (store.path / "more").mkdir()
    apply_index(model_for(*sample()[1:3], "l2"), store, "other")
    promote_index(store, "other")
    assert (store.path / "meta.json").exists()
    assert (store.path / "more").is_dir()


@pytest.mark.parametrize("make", [make_parquet, make_arrow, make_hdf5])
def test_a_mark_goes_with_a_copy_where_the_format_has_a_place(tmp_path, make):
    ids, X, y, texts = sample(text_ids=True)
    store, model = make(tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    apply_index(model, store, "green")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = store.path.with_name(f"green{store.path.suffix}").rename(elsewhere / store.path.name)
    with pytest.raises(StoreError, match="already moved"):
        apply_index(model, store.sibling(str(copy)), "twice")


class Trap:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickles_in_files_of_vectors_are_refused_and_run_nothing(tmp_path, suffix):
    array = np.array([Trap(tmp_path / "sprung")], dtype=object)
    path = tmp_path / f"v.{suffix}"
    if suffix == "npy":
        np.save(path, array, allow_pickle=True)
    else:
        np.savez(path, vectors=np.zeros((1, 3), np.float32), label=array)
    store = open_store(path)
    with pytest.raises(StoreError):
        store.facts()
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(StoreError):
        store.facts()
    assert not (tmp_path / "sprung").exists()


def test_a_matrix_that_claims_more_than_it_holds_is_refused(tmp_path):
    """Its head says a billion rows: nothing of that size may be allocated before that is checked."""
    np.save(tmp_path / "v.npy", np.zeros((2, 3), np.float32))
    whole = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(
        whole.replace(b"'shape': (2, 3), }        ", b"'shape': (1000000000, 3), }")
    )
    with pytest.raises(StoreError, match="NumPy's format"):
        NpyFile(tmp_path / "v.npy").facts()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", b"something else"])
@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "hdf5", "faiss"])
def test_files_of_another_format_are_refused(tmp_path, suffix, content):
    (tmp_path / f"v.{suffix}").write_bytes(content)
    with pytest.raises(StoreError, match=r"v\."):
        open_store(tmp_path / f"v.{suffix}").facts()
