"""Vectors in files: how they are replaced, and what is refused."""

import json
import os
import pickle

import numpy as np
import pytest

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.stores import journal as journal_room
from hubless.stores import switch
from hubless.stores.file_marks import fingerprint
from hubless.stores.files.plain_files import NpyFile
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import exact, model_for, sample
from tests.stores.file_cases import make_arrow, make_hdf5, make_npy, make_parquet, make_parts, read_again


def parts_moved(tmp_path):
    """Make a folder of parts with a moved copy; return it, the model, queries, and results of both."""
    ids, X, y, texts = sample(text_ids=True)
    store = make_parts(tmp_path, ids, X, texts, "l2")
    model = model_for(X, y, "l2")
    apply_index(model, store, "green")
    queries = X[:20] + 0.1
    after = exact(ids, model.move(X), queries, 5, "l2")
    return store, model, queries, read_again(store, queries, 5), after


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


def test_a_copy_never_runs_as_who_copied_it(tmp_path):
    """A stranger's folder may have a program with the right to run as its owner, and links to elsewhere."""
    ids, X, y, texts = sample(text_ids=True)
    store, model = make_parts(tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    (store.path / "deep").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("of the user")
    (store.path / "out").symlink_to(tmp_path / "private")
    for path in (store.path / "program", store.path / "deep" / "program"):
        path.write_text("#!/bin/sh")
    for path in (path for path in store.path.rglob("*") if path.is_file() and "out" not in path.parts):
        path.chmod(0o6755)
    apply_index(model, store, "green")
    promote_index(store, "green")
    made = [path for path in store.path.rglob("*") if path.is_file() and "out" not in path.parts]
    assert {path.stat().st_mode & 0o7777 for path in made} == {0o755}
    assert {"program", "deep"} < {path.relative_to(store.path).parts[0] for path in made}
    assert (store.path / "out").is_symlink()  # and no copy of what it leads to
    store = make_npy(tmp_path, ids, X, texts, "l2")
    store.path.chmod(0o4700)
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    assert store.path.stat().st_mode & 0o7777 == 0o700


def test_a_pipe_beside_the_parts_is_refused(tmp_path):
    ids, X, y, texts = sample(text_ids=True)
    store = make_parts(tmp_path, ids, X, texts, "l2")
    os.mkfifo(store.path / "pipe")
    with pytest.raises(StoreError, match="pipe, a socket or a device"):
        apply_index(model_for(X, y, "l2"), store, "green")
    assert not (tmp_path / "green").exists()


def rights_of(path):
    return path.stat().st_mode & 0o777


def test_permissions_of_the_original_are_kept(served):
    store, *_ = served
    store.path.chmod(0o640)
    promote_index(store, "green")
    assert rights_of(store.path) == 0o640


def test_nothing_of_a_copy_has_wider_rights_than_the_original(tmp_path, monkeypatch):
    """Neither while it is built, nor in a folder of parts, nor the files beside it."""
    ids, X, y, texts = sample(text_ids=True)
    store, model = make_parts(tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    for path in store.path.iterdir():
        path.chmod(0o600)
    write, seen = type(store).write, []

    def look(green, batch, moved):
        write(green, batch, moved)
        seen.append({path.name: rights_of(path) for path in tmp_path.iterdir() if path.name[0] == "."})

    monkeypatch.setattr(type(store), "write", look)
    apply_index(model, store, "green")
    assert seen
    assert {rights for found in seen for rights in found.values()} <= {0o700, 0o600}
    promote_index(store, "green")
    assert {rights_of(path) for path in store.path.iterdir()} == {0o600}
    store = make_npy(tmp_path, ids, X, texts, "l2")
    store.path.chmod(0o600)
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    assert {rights_of(path) for path in tmp_path.glob("*v*.npy*")} == {0o600}


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
    exchange, met = switch.exchange_names, []

    def meet(new, target):
        with pytest.raises(StoreError, match="another process"):
            promote_index(store.sibling(store.name), "green")
        met.append(target)
        return exchange(new, target)

    monkeypatch.setattr(switch, "exchange_names", meet)
    promote_index(store, "green")
    assert met == [store.path]
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


@pytest.mark.parametrize("make", [lambda path: np.save(path, np.zeros((3, 4))), os.mkdir, os.mkfifo])
def test_a_refused_promote_does_not_make_another_file_the_original(served, make):
    store, X, _ = served
    make(store.path.with_name("v.original.npy"))
    with pytest.raises(StoreError, match="exists already"):
        promote_index(store, "green")
    assert index_status(store)["status"] == "original"
    with pytest.raises(StoreError, match="nothing to roll back"):
        rollback_index(store)
    np.testing.assert_array_equal(np.load(store.path), X)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_an_original_that_became_something_else_is_not_rolled_back_to(served, make):
    store, _, moved = served
    promote_index(store, "green")
    store.path.with_name("v.original.npy").unlink()
    make(store.path.with_name("v.original.npy"))
    with pytest.raises(StoreError, match="no longer exists"):
        store.rollback()
    np.testing.assert_array_equal(np.load(store.path), moved)
    np.save(store.path, moved + 1)  # which compares it with the original
    index_status(store)


@pytest.mark.parametrize("target", ["nowhere", "v.npy"])
def test_a_link_under_the_name_of_the_moved_copy_does_not_stop_a_rollback(served, target):
    store, X, moved = served
    promote_index(store, "green")
    name = f"v.moved-{index_status(store)['model'][:8]}"
    link = store.path.with_name(f"{name}.npy")
    link.symlink_to(target)
    rollback_index(store)
    np.testing.assert_array_equal(np.load(store.path), X)
    np.testing.assert_array_equal(np.load(store.path.with_name(f"{name}-2.npy")), moved)
    assert link.is_symlink()
    assert os.readlink(link) == target


def test_a_name_that_starts_like_a_home_folder(tmp_path):
    ids, X, y, texts = sample()
    store = make_npy(tmp_path, ids, X, texts, "l2")
    odd = NpyFile(store.path.rename(tmp_path / "~nobody-here.npy"), metric="l2", items=store.items)
    apply_index(model_for(X, y, "l2"), odd, "~nobody-there.npy")
    promote_index(odd, "~nobody-there.npy")
    rollback_index(odd)
    np.testing.assert_array_equal(np.load(odd.path), X)


def test_a_file_that_changes_after_it_was_opened_is_read_again(served):
    """A store that was opened before must not give old rows under the new state."""
    store, X, _ = served
    model = model_for(X, sample()[2], "l2")
    store.facts()
    np.save(store.path, X + 1)
    apply_index(model, store, "later")
    np.testing.assert_array_equal(np.load(store.path.with_name("later.npy")), model.move(X + 1))


def test_parts_that_are_links_are_moved_under_their_own_names(tmp_path):
    """As in a cache whose folders are links to files of the same name, or of another order."""
    _, X, y, _ = sample()
    folder, halves = tmp_path / "parts", {"a": X[:100], "b": X[100:]}
    folder.mkdir()
    for name, rows in halves.items():
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "data.npy", rows)
        (folder / f"{name}.npy").symlink_to(tmp_path / name / "data.npy")
    model = model_for(X, y, "l2")
    apply_index(model, open_store(folder, metric="l2"), "green")
    green = sorted((tmp_path / "green").iterdir())
    assert [file.name for file in green] == ["a.npy", "b.npy"]
    assert not any(file.is_symlink() for file in green)
    moved = np.concatenate([np.load(file) for file in green])
    np.testing.assert_allclose(moved, model.move(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "data.npy"), halves["a"])


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


# --- what others plant, and what others do meanwhile -------------------------------------------------------


@pytest.fixture
def neighbours(tmp_path):
    """A folder that serves, with a moved copy, and a folder of somebody else beside it."""
    store, *_ = parts_moved(tmp_path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a.txt").write_text("mine")
    return store, tmp_path


def everything(folder):
    """All files and folders of a folder, with contents and times of change."""
    paths = sorted(folder.rglob("*"))
    return [(str(path), path.lstat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in paths]


def journals(store, folder):
    """Journals that somebody may plant, from naive ones to one that knows the inodes."""
    paths = (store.path, folder / "precious", folder / "green")
    served, precious, green = ([path.stat().st_dev, path.stat().st_ino] for path in paths)
    names = {"new": "parts2", "kept": "precious"}
    yield {**names, "inode": 1}  # as older versions wrote them
    yield {**names, "before": precious, "after": served}
    yield {"new": "precious", "kept": "elsewhere", "before": precious, "after": served}
    yield {"new": "../precious", "kept": "parts.original", "before": precious, "after": served}
    yield {"new": "green", "kept": "../parts.original", "before": green, "after": served}
    yield {"new": "green", "kept": "parts.original", "before": served, "after": precious}
    yield {"new": "green", "kept": "parts.original", "before": [1, 2], "after": [3, 4]}
    yield {"new": "green", "kept": "parts.original", "before": [True, None], "after": "x"}
    yield ["new", "kept"]


@pytest.mark.parametrize("number", range(9))
def test_a_planted_journal_leads_nowhere(neighbours, words, number):
    store, folder = neighbours
    journal = folder / ".parts.hubless-switch"
    journal.write_text(json.dumps(list(journals(store, folder))[number]))
    before = everything(folder)
    for verb in ("doctor", "status"):
        words(verb, store.path)
    assert everything(folder) == before  # a reader never writes
    words("recover", store.path)
    assert not journal.exists()
    assert everything(folder) == [entry for entry in before if entry[0] != str(journal)]
    promote_index(store, "green")
    rollback_index(store)
    assert (folder / "precious" / "a.txt").read_text() == "mine"


def test_a_journal_of_another_user_is_not_believed(neighbours, words, monkeypatch):
    """Who knows the inodes can plant one that fits, in a folder for all; there, only its owner is wrong."""
    store, folder = neighbours
    served, precious = (
        [path.stat().st_dev, path.stat().st_ino] for path in (store.path, folder / "precious")
    )
    planted = {"new": "precious", "kept": "parts.original", "before": precious, "after": served}
    journal = folder / ".parts.hubless-switch"
    journal.write_text(json.dumps(planted))
    owner = journal_room._owner_of
    monkeypatch.setattr(journal_room, "_owner_of", lambda path: 54321 if path == journal else owner(path))
    assert "interrupted" not in words("status", store.path)
    words("recover", store.path)
    assert (folder / "precious" / "a.txt").read_text() == "mine"
    assert not journal.exists()


def test_rights_are_never_set_through_a_link(tmp_path):
    (tmp_path / "private").write_text("mine")
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    with pytest.raises(OSError, match="link"):
        switch.set_rights(tmp_path / "link", os.stat(tmp_path))
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", '{"new": 1}', "\x00", '{"new": "a", "new": "b"}'])
def test_a_damaged_journal_is_ignored(neighbours, text):
    store, *_ = neighbours
    (store.path.parent / ".parts.hubless-switch").write_text(text)
    promote_index(store, "green")
    assert index_status(store)["status"] == "serving moved"


def test_a_planted_lock_that_is_a_link_is_not_followed(served, tmp_path):
    store, *_ = served
    (tmp_path / ".v.npy.hubless-lock").symlink_to(tmp_path / "made by a link")
    with pytest.raises(StoreError, match=r"is a link, which is not followed\. Remove it"):
        promote_index(store, "green")
    assert not (tmp_path / "made by a link").exists()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_another_program_that_replaces_what_is_switched(tmp_path, monkeypatch, kind):
    """It does so right before the exchange: its rows must not be lost, and the switch is undone."""
    ids, X, y, texts = sample(text_ids=True)
    store = (make_npy if kind == "file" else make_parts)(tmp_path, ids, X, texts, "l2")
    apply_index(model_for(X, y, "l2"), store, "green")
    other = tmp_path / "other"
    other.mkdir()
    theirs = (make_npy if kind == "file" else make_parts)(other, ids, X + 1, texts, "l2").path
    exchange, is_first = switch.exchange_names, [True]

    def meet(new, served):
        if is_first.pop() if is_first else False:
            os.rename(store.path, tmp_path / "old")
            os.rename(theirs, store.path)
        return exchange(new, served)

    monkeypatch.setattr(switch, "exchange_names", meet)
    with pytest.raises(StoreError, match="the switch was undone"):
        promote_index(store, "green")
    monkeypatch.undo()
    again = store.sibling(store.name)
    np.testing.assert_array_equal(again.fetch(ids.tolist()).vectors, X + 1)
    assert index_status(again)["status"] == "original"
    apply_index(model_for(X, y, "l2"), again, "green")
    promote_index(again, "green")


@pytest.mark.parametrize("make", [make_npy, make_parquet, make_hdf5, make_parts])
def test_a_reader_never_gets_rows_of_two_versions(tmp_path, make):
    ids, X, y, texts = sample(text_ids=True)
    store, model = make(tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    apply_index(model, store, "green")
    batches = store.sibling(store.name).batches(size=77)
    first = next(batches).vectors
    np.testing.assert_array_equal(first, X[: len(first)])
    promote_index(store, "green")
    with pytest.raises(StoreError, match=r"was replaced by another while it was read\. Run the command"):
        next(batches)


def test_a_moved_copy_in_another_folder(served, tmp_path):
    store, X, moved = served
    (tmp_path / "elsewhere").mkdir()
    apply_index(model_for(X, sample()[2], "l2"), store, str(tmp_path / "elsewhere" / "w.npy"))
    promote_index(store, str(tmp_path / "elsewhere" / "w.npy"))
    np.testing.assert_array_equal(np.load(store.path), moved)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    rollback_index(store)
    np.testing.assert_array_equal(np.load(store.path), X)


def test_folders_with_links_and_pipes_have_a_fingerprint(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("one", "two"):
        (tmp_path / "inner" / name).symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    before = fingerprint(tmp_path)
    (tmp_path / "inner" / "a.txt").write_text("more")
    assert fingerprint(tmp_path) != before


def test_a_name_from_which_there_is_no_way_back_is_refused(tmp_path):
    ids, X, y, texts = sample(text_ids=True)
    store = make_npy(tmp_path, ids, X, texts, "l2")
    long = store.path.rename(tmp_path / f"{'v' * 210}.npy")
    store = NpyFile(long, metric="l2", items=store.items)
    apply_index(model_for(X, y, "l2"), store, "w")
    with pytest.raises(StoreError, match="the way back would need the name"):
        promote_index(store, "w")
    assert index_status(store)["status"] == "original"


def test_a_promote_that_is_run_again_says_that_it_was_done(served):
    store, *_ = served
    promote_index(store, "green")
    with pytest.raises(StoreError, match=r"serves a moved copy.* an earlier promote may have completed"):
        promote_index(store, "green")
