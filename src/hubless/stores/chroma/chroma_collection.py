"""Chroma: a collection on a server, or in a folder.

Green is another collection, with a mark in its metadata. `promote` renames both (chroma_switch.py).
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import numpy as np

from ...support.nearest import did_you_mean
from ..checks import check_promoted, check_unchanged, pad_ids, path_lock
from ..database import Database
from ..kinds import METRICS
from ..store import ROWS, Batch, Facts, Mark, StoreError
from .chroma_connection import ChromaConnection, place
from .chroma_records import WHOLE, Record, SameSettings, records_of
from .chroma_switch import SUFFIX, Names, Switch

KEY = "hubless"  # of the mark, in the metadata of a collection
SAMPLE = 100  # records whose metadata shows the columns: Chroma has no list of them
NUMBERS = 2**20  # of a request, at most: a server takes 40 MB, and a number may be 20 bytes
LONGEST = 512  # characters of a name


class ChromaCollection(Database):
    """A collection of Chroma, on a server or in a folder.

    The address is a folder or http(s)://HOST:PORT. Ids are texts; columns are the keys of the metadata, and
    "document" and "uri".
    """

    schemes = ("chroma:",)
    may_lack_vectors = False
    has_fixed_columns = False  # each record has metadata of its own
    switch_note = (
        "Chroma renames one collection at a time: for a moment, nothing had this name. Programs that opened "
        "the collection before go on with the one they opened, until they open it by its name again."
    )

    def __init__(self, address: str, table: str, **options: Any) -> None:
        super().__init__(address, table, **options)
        self.connection = ChromaConnection(self.address)
        self._call = self.connection.call

    @classmethod
    def from_source(
        cls, source: str, *, vector: str | None = None, id: str | None = None, **options: Any
    ) -> Self:
        if vector is not None or id is not None:
            raise StoreError("records of Chroma have one vector and an id already; leave out --vector, --id.")
        return super().from_source(source, **options)

    def place(self, address: str) -> str:
        return place(super().place(address))

    def rename(self, table: str) -> None:
        super().rename(table)
        self._pinned: UUID | None = None

    def pinned(self) -> Self:
        twin = copy(self)
        twin._pinned = self._collection().id if self.exists() else None
        return twin

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self.connection.exists() and self.connection.find(self.table) is not None

    def facts(self) -> Facts:
        collection = self._collection()
        model = collection.get_model()
        settings = model.configuration_json.get("hnsw") or model.configuration_json.get("spann") or {}
        metric = settings.get("space")
        if metric not in METRICS or self.metric not in (None, metric):
            raise StoreError(
                f"{self.name} compares by {metric}; got metric={self.metric!r}, and hubless knows "
                f"{', '.join(METRICS)}. Leave the metric out: Chroma knows its own."
            )
        first = self._call(collection.get, limit=SAMPLE, include=WHOLE[1:])  # what needs no index
        shown = [record.columns() for record in records_of(first)]
        return Facts(
            kind="Chroma collection" + (" in a folder" if self.connection.is_folder else ""),
            metric=metric,
            dimension=model.dimension or 0,
            count=int(self._call(collection.count)),
            dtype="float32",
            index=f"HNSW, M={settings.get('max_neighbors')}",
            columns=tuple(sorted(set().union(*shown))),
        )

    def mark(self) -> Mark | None:
        collection = self._collection()
        mark = Mark.from_json((collection.metadata or {}).get(KEY))
        switch = None if mark is None else self._names.last()
        is_served = switch is not None and switch.moved == str(collection.id)
        return replace(mark, original=switch.original_name) if mark and switch and is_served else mark

    def state(self) -> str:
        """Return the number of records and a sum over all of them, in any order."""
        self.connection.renew()
        count = total = 0
        for batch in self.batches():
            count += len(batch.ids)
            for id, vector, record in zip(batch.ids, batch.vectors, batch.rows, strict=True):
                digest = hashlib.blake2b(f"{id} {record.as_text()}".encode(), digest_size=8)
                digest.update(vector.tobytes())
                total += int.from_bytes(digest.digest(), "little")
        return f"{count}-{total % 2**64:016x}"

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        collection, start = self._collection(), 0
        while True:
            got = self._get(collection, limit=size, offset=start)
            if not got["ids"]:
                return
            yield self._batch(got, collection, columns)
            start += len(got["ids"])

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        collection, wanted = self._collection(), list(dict.fromkeys(map(str, ids)))
        parts = [
            self._batch(self._get(collection, ids=wanted[start : start + ROWS]), collection, columns)
            for start in range(0, len(wanted), ROWS)
        ] or [self._batch(self._get(collection, limit=0), collection, columns)]
        rows = [row for part in parts for row in part.rows]
        known = {id: place for place, id in enumerate(id for part in parts for id in part.ids)}
        places = [known[id] for id in map(str, ids) if id in known]
        return Batch(
            np.concatenate([part.ids for part in parts])[places],
            np.concatenate([part.vectors for part in parts])[places],
            {name: [rows[place].value(name) for place in places] for name in columns},
            [rows[place] for place in places],
        )

    def contains(self, ids: np.ndarray) -> np.ndarray:
        collection, wanted, known = self._collection(), list(map(str, ids.tolist())), set()
        for start in range(0, len(wanted), ROWS):
            known |= set(self._known(collection, list(dict.fromkeys(wanted[start : start + ROWS]))))
        return np.array([id in known for id in wanted], dtype=bool)

    def ids(self) -> Iterator[np.ndarray]:
        collection, start = self._collection(), 0
        while ids := self._call(collection.get, limit=ROWS, offset=start, include=[])["ids"]:
            yield np.array(ids, dtype=object)
            start += len(ids)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        collection, nearest = self._collection(), []
        page = max(1, NUMBERS // queries.shape[1])
        for start in range(0, len(queries), page):
            part = np.asarray(queries[start : start + page], dtype=np.float32)
            nearest += self._call(collection.query, query_embeddings=part, n_results=k, include=[])["ids"]
        return pad_ids(nearest, k)

    def refresh(self) -> None:
        super().refresh()
        self.connection.renew()

    @property
    def _names(self) -> Names:
        return Names(self.connection, self.table)

    def _collection(self) -> Any:
        """Return the collection that the name refers to now, or did when this was pinned."""
        find = self.connection.find
        found = find(self.table) if self._pinned is None else self.connection.find_id(self._pinned)
        if found is None:
            known = sorted(item.name for item in self._call(self.connection.client.list_collections, 20))
            near = did_you_mean(self.table, known)
            begun = (
                " It is in the middle of a switch: run `hubless recover`." if self.is_interrupted() else ""
            )
            raise StoreError(
                f"{self.name} does not exist; there are {', '.join(known) or 'none'}.{near}{begun}"
            )
        return found

    def _get(self, collection: Any, **which: Any) -> Any:
        return self._call(collection.get, include=WHOLE, **which)

    def _known(self, collection: Any, ids: list[str]) -> list[str]:
        return list(self._call(collection.get, ids=ids, include=[])["ids"]) if ids else []

    def _batch(self, got: Any, collection: Any, columns: Sequence[str]) -> Batch:
        width = len(got["embeddings"][0]) if len(got["ids"]) else collection.get_model().dimension or 0
        vectors = np.asarray(got["embeddings"], dtype=np.float32).reshape(len(got["ids"]), width)
        rows = records_of(got)
        values = {name: [row.value(name) for row in rows] for name in columns}
        return Batch(np.array(got["ids"], dtype=object), vectors, values, rows)

    # --- building green ------------------------------------------------------------------------------------

    def lock(self) -> AbstractContextManager[None]:
        self._check_name()  # or the lock is elsewhere
        if not self.connection.is_folder:  # two processes that build the same collection write the same
            return nullcontext()
        return path_lock(Path(self.address, self.table))

    def _check_name(self) -> None:
        is_name = re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]+[a-zA-Z0-9]", self.table)
        if not is_name or ".." in self.table or len(self.table) > LONGEST - len(SUFFIX):
            raise StoreError(
                f"{self.table!r} cannot be a collection: names have 3 to {LONGEST - len(SUFFIX)} letters, "
                "digits, '.', '_' and '-', and begin and end with a letter or digit."
            )

    def check_target(self, blue: Any, mark: Mark) -> None:
        self._check_name()
        super().check_target(blue, mark)

    def create(self, blue: Any, mark: Mark) -> None:
        settings = blue._collection().get_model().serialized_schema
        if not settings:
            raise StoreError(
                f"{blue.name} is on an older Chroma, which does not report all settings: update it."
            )
        self._call(
            self.connection.client.create_collection,
            self.table,
            schema=SameSettings(settings),
            metadata={KEY: mark.to_json()},
            embedding_function=None,
        )

    def have_same_rows(self, stored: Batch, wanted: Batch) -> np.ndarray:
        pairs = zip(stored.rows, wanted.rows, strict=True)
        return np.array([mine == other or mine.as_text() == other.as_text() for mine, other in pairs], bool)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        collection = self._collection()
        page = max(1, min(NUMBERS // moved.shape[1], self._call(self.connection.client.get_max_batch_size)))
        for start in range(0, len(moved), page):
            part = slice(start, start + page)
            self._replace(collection, batch.ids[part].tolist(), moved[part], batch.rows[part])

    def _replace(self, collection: Any, ids: list[str], moved: np.ndarray, rows: list[Record]) -> None:
        """Write records; those with these ids are removed first, since Chroma would merge their metadata."""
        known = self._known(collection, ids)
        if known:
            self._call(collection.delete, ids=known)
        self._call(  # `Collection.upsert` would make the embedding function that the collection names
            self.connection.client._upsert,
            collection.id,
            ids=ids,
            embeddings=list(np.asarray(moved, dtype=np.float32)),
            metadatas=[row.metadata or None for row in rows],
            documents=[row.document for row in rows],
            uris=[row.uri for row in rows],
        )

    def remove(self, ids: np.ndarray) -> None:
        self._call(self._collection().delete, ids=ids.tolist())

    def finish(self, blue: Any, mark: Mark) -> None:
        self._set_metadata({**(blue._collection().metadata or {}), KEY: mark.to_json()})

    def set_mark(self, mark: Mark) -> None:
        self._set_metadata({**(self._collection().metadata or {}), KEY: mark.to_json()})

    def _set_metadata(self, metadata: dict[str, Any]) -> None:
        """Replace the metadata; `Collection.modify` refuses what older clients wrote there, "hnsw:space"."""
        self._call(self.connection.client._modify, self._collection().id, new_metadata=metadata)

    # --- switching -----------------------------------------------------------------------------------------

    def is_interrupted(self) -> bool:
        return self._names.is_interrupted()

    def recover(self) -> bool:
        if not self.connection.exists() or not self.is_interrupted():
            return False
        with self.lock():
            return self._names.complete()

    def promote(self, green: Any) -> str:
        with self.lock(), green.lock():
            check_unchanged(self, green)
            original, moved = self._collection(), green._collection()
            kept = self._names.free(f"{self.table}_original")
            self._names.carry_out(Switch(str(original.id), kept, str(moved.id), green.table, True))
        return kept

    def rollback(self) -> str:
        with self.lock():
            mark, switch = check_promoted(self.name, self.mark()), self._names.last()
            if switch is None or self.connection.find_id(UUID(switch.original)) is None:
                raise StoreError(f"the original, {mark.original}, no longer exists: nothing was changed.")
            kept = self._names.free(f"{self.table}_moved_{re.sub('[^0-9a-f]', '0', mark.model[:8])}")
            self._names.carry_out(replace(switch, moved_name=kept, serves_moved=False, is_done=False))
        return kept
