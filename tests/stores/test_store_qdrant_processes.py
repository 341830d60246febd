"""Collections of Qdrant in a folder that several processes want, and processes that are killed."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from qdrant_client.local.persistence import CollectionPersistence
from qdrant_client.local.qdrant_local import QdrantLocal

from hubless.repair.apply import apply_index, promote_index
from hubless.stores.qdrant.qdrant_collection import QdrantCollection
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.killer import killed_at
from tests.stores.qdrant_cases import dump, few_rows, skip_syncing, unsynced

__all__ = ["few_rows", "unsynced"]  # fixtures
pytestmark = pytest.mark.services


# Holds a folder open until it reads a line.
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
    with subprocess.Popen([sys.executable, "-c", HOLDER, store.address], **options) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match="another process or client"):
            store.facts()
        holder.communicate("\n")
    assert store.facts().count == 60


READER = """
import sys
from hubless.stores.qdrant.qdrant_collection import QdrantCollection
store = QdrantCollection(sys.argv[1], "items")
sys.stdout.write(str(store.facts().count))
store.itself = store  # so that it lives until Python shuts down, as it does in a traceback
"""


def test_a_program_ends_without_a_warning_about_open_folders(few):
    store, *_ = few
    command = [sys.executable, "-W", "error", "-c", READER, store.address]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("60", "", 0)


def count_writes(counted):
    """Let all that an apply writes to the disk be counted."""
    skip_syncing()
    CollectionPersistence.persist = counted(CollectionPersistence.persist)
    QdrantLocal._save = counted(QdrantLocal._save)


def apply_again(folder):
    _, X, y, _ = sample(60)
    apply_index(model_for(X, y, "l2"), QdrantCollection(folder, "items"), "moved")


@pytest.mark.faults
def test_an_apply_that_was_killed_is_resumed(few, tmp_path):
    store, ids, X, model = few
    before = dump(store.connection.client, "items_v1")
    store.connection.close()
    # writes: the collection with its mark, 60 points, the mark when done
    moments = [0, 1, *np.random.default_rng().integers(2, 61, 4).tolist(), 61]
    folders = [str(tmp_path / f"db{number}") for number in range(len(moments))]
    for folder, moment in zip(folders, moments, strict=True):
        shutil.copytree(store.address, folder)
        killed_at(moment, count_writes, apply_again, folder)
    for folder, moment in zip(folders, moments, strict=True):
        resumed = QdrantCollection(folder, "items")
        green = resumed.sibling("moved")
        assert green.exists() == (moment > 0)
        if green.exists():
            assert not green.mark().done
        with pytest.raises(StoreError, match=r"not finished|not there|does not exist"):
            promote_index(resumed, "moved")
        assert apply_index(model, resumed, "moved")["written"] == 60 - max(moment - 1, 0), moment
        promote_index(resumed, "moved")
        np.testing.assert_allclose(resumed.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
        assert dump(resumed.connection.client, "items_v1") == before
        resumed.connection.close()
