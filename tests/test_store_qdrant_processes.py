"""Qdrant in a folder that several processes want, and processes that are killed."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hubless.index.apply import apply, promote
from hubless.stores.qdrant import QdrantCollection
from hubless.stores.store import StoreError
from tests.store_contract import model_for, sample
from tests.test_store_qdrant import dump, make, unsynced

ROOT = Path(__file__).parent.parent


__all__ = ["unsynced"]  # a fixture for all tests


@pytest.fixture
def few(tmp_path):
    """60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")


# Has a folder open until it reads a line.
HOLDER = """
import sys
from qdrant_client import QdrantClient
client = QdrantClient(path=sys.argv[1])
print("open", flush=True)
input()
client.close()
"""


def test_a_folder_that_another_process_has_open(few):
    store, *_ = few
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDER, store.at.address], **options) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match="another process or client"):
            store.facts()
        holder.communicate("\n")
    assert store.facts().count == 60


ASKER = """
import sys
from hubless.stores.qdrant import QdrantCollection
store = QdrantCollection(sys.argv[1], "items")
sys.stdout.write(str(store.facts().count))
store.itself = store  # so that it lives until Python tidies up, as it does in a traceback
"""


def test_a_program_ends_without_a_word_about_open_folders(few):
    store, *_ = few
    command = [sys.executable, "-W", "error", "-c", ASKER, store.at.address]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("60", "", 0)


# Runs an apply in a child of its own for each folder, and kills it -9 before its n-th write to the disk.
KILLER = """
import os, signal, sys
from qdrant_client.local.persistence import CollectionPersistence
from qdrant_client.local.qdrant_local import QdrantLocal
from hubless.index.apply import apply
from hubless.stores.qdrant import QdrantCollection
from tests.store_contract import model_for, sample

def until(write, left):
    def counted(*args, **options):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return write(*args, **options)
    return counted

prepare = CollectionPersistence._ensure_table
def faster(self):
    self.storage.execute("PRAGMA synchronous=OFF")
    prepare(self)
CollectionPersistence._ensure_table = faster
_, X, y, _ = sample(60)
for folder, moment in zip(sys.argv[1::2], sys.argv[2::2]):
    if os.fork() == 0:
        left = [int(moment)]
        CollectionPersistence.persist = until(CollectionPersistence.persist, left)
        QdrantLocal._save = until(QdrantLocal._save, left)
        apply(model_for(X, y, "l2"), QdrantCollection(folder, "items"), "moved")
        os._exit(0)
    print(os.WTERMSIG(os.wait()[1]))
"""


def test_an_apply_that_was_killed_is_resumed(few, tmp_path):
    store, ids, X, model = few
    before = dump(store.client, "items_v1")
    store.at.close()
    # writes: the collection with its mark, 60 points, the mark when done
    moments = [0, 1, *np.random.default_rng().integers(2, 61, 4).tolist(), 61]
    told = [(str(tmp_path / f"db{number}"), moment) for number, moment in enumerate(moments)]
    for folder, _ in told:
        shutil.copytree(store.at.address, folder)
    arguments = [str(value) for pair in told for value in pair]
    ran = subprocess.run([sys.executable, "-c", KILLER, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.split() == ["9"] * len(moments), ran.stderr
    for folder, moment in told:
        resumed = QdrantCollection(folder, "items")
        green = resumed.beside("moved")
        assert green.exists() == (moment > 0)
        if green.exists():
            assert not green.mark().done
        with pytest.raises(StoreError, match=r"not finished|not there"):
            promote(resumed, "moved")
        assert apply(model, resumed, "moved")["written"] == 60 - max(moment - 1, 0), moment
        promote(resumed, "moved")
        np.testing.assert_allclose(resumed.fetch(ids).vectors, model.move(X), rtol=1e-5)
        assert dump(resumed.client, "items_v1") == before
        resumed.at.close()
