"""Qdrant: a collection on a server, or in a folder of qdrant-client.

Green is another collection, with a mark in its metadata. What serves is an alias: `promote` points it to
green.
"""

import time
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ...support.imports import need
from ...support.nearest import did_you_mean
from ..checks import check_unchanged
from ..database import Database
from ..store import Facts, Mark, StoreError
from .qdrant_connection import Connection, place
from .qdrant_points import Point, PointStore, point_id

KEY = "hubless"  # of the mark, in the metadata of a collection
# where the original is: a key of its own, so that an apply beside a promote, which sets the mark, keeps it
ORIGINAL = "hubless_original"
OLDEST = (1, 16)  # version of a server that keeps metadata of collections
PAGE = 256  # points of a request to a server: it takes 32 MB, and a number is up to 20 bytes
PAUSE = 0.5  # seconds between two checks of an index that is being built


class QdrantCollection(PointStore, Database):
    """A collection, or the alias of one, on a server or in a folder of qdrant-client.

    The address is a folder or http(s)://HOST:PORT; `vector` names the vector to move, where it has several;
    `api_key` is that of a server, by default the environment variable QDRANT_API_KEY.
    """

    schemes = ("qdrant:",)

    def __init__(self, address: str, table: str, *, api_key: str | None = None, **options: Any) -> None:
        super().__init__(address, table, **options)
        self.connection = Connection(self.address, api_key)
        self._call = self.connection.call
        if not self.connection.is_folder:
            self.page = PAGE

    @classmethod
    def from_source(cls, source: str, *, id: str | None = None, **options: Any) -> Self:
        if id is not None:
            raise StoreError("points of Qdrant have ids already; leave out --id.")
        return super().from_source(source, **options)

    def place(self, address: str) -> str:
        return place(super().place(address))

    def rename(self, table: str) -> None:
        super().rename(table)
        self._pinned: str | None = None

    def pinned(self) -> Self:
        twin = copy(self)
        twin._pinned = self._alias_target() if self.connection.exists() else None
        return twin

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self.connection.exists() and bool(self._call("collection_exists", self.table))

    def facts(self) -> Facts:
        if not self.exists():
            known = sorted(item.name for item in self._call("get_collections").collections)
            near = did_you_mean(self.table, known)
            raise StoreError(f"{self.name} does not exist; there are {', '.join(known) or 'none'}.{near}")
        info, layout, kind = self._info(), self._layout(), "Qdrant collection"
        count = int(self._call("count", self.table, exact=True).count)
        index = _index(info, layout.dense[layout.name])
        if self.connection.is_folder:
            kind, index = f"{kind} in a folder", "exhaustive"
        return layout.facts(kind, count, index, self._columns())

    def mark(self) -> Mark | None:
        metadata = self._info().config.metadata or {}
        mark, original = Mark.from_json(metadata.get(KEY)), metadata.get(ORIGINAL)
        return replace(mark, original=original) if mark and isinstance(original, str) else mark

    def _info(self) -> Any:
        return self._call("get_collection", self.table)

    def _dense(self) -> dict[str, dict[str, Any]]:
        vectors = self._info().config.params.vectors or {}
        vectors = vectors if isinstance(vectors, dict) else {"": vectors}
        return {name: params.model_dump(mode="json") for name, params in vectors.items()}

    def _scroll(self, offset: Any, size: int, is_whole: bool) -> tuple[list[Any], Any]:
        wanted = {"with_payload": is_whole, "with_vectors": is_whole}
        records, following = self._call(
            "scroll", self._pinned or self.table, offset=offset, limit=size, **wanted
        )
        return records, following

    def _retrieve(self, ids: list[int | str], is_whole: bool) -> list[Any]:
        wanted = {"with_payload": is_whole, "with_vectors": is_whole}
        return list(self._call("retrieve", self._pinned or self.table, ids, **wanted))

    def _nearest(self, queries: list[list[float]], k: int, name: str) -> list[list[Any]]:
        request = need("qdrant_client.models", "qdrant").QueryRequest
        options = {"using": name or None, "limit": k, "with_payload": False}
        requests = [request(query=query, **options) for query in queries]
        responses = self._call("query_batch_points", self.table, requests)
        return [[point.id for point in response.points] for response in responses]

    # --- building green ------------------------------------------------------------------------------------

    def is_made_from(self, blue: Any, mark: Mark) -> bool:
        """Say whether it was made from the collection that blue is, by whatever name."""
        source = self.sibling(mark.source.rpartition("#")[2])
        return source.exists() and source._collection() == blue._collection()

    def _payload_schema(self) -> dict[str, Any]:
        return dict(self._info().payload_schema)

    def _index_payload(self, field: str, schema: Any) -> None:
        self._call("create_payload_index", self._collection(), field, field_schema=schema, wait=True)

    def create(self, blue: Any, mark: Mark) -> None:
        version = str(self._call("info").version)
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise StoreError(
                f"{self.address} runs Qdrant {version}; update it to 1.16 or later, which can store the mark."
            )
        info = blue._info()
        if info.config.params.sharding_method == "custom":
            raise StoreError(
                f"{blue.name} is sharded by custom keys, which Qdrant does not report: it cannot be copied."
            )
        settings = _settings(info.config)
        if mark.width is not None:
            settings["vectors_config"] = _widened(info.config.params.vectors, blue._layout().name, mark.width)
        metadata = {key: value for key, value in (info.config.metadata or {}).items() if key != ORIGINAL}
        metadata[KEY] = mark.to_json()
        self._call("create_collection", self.table, metadata=metadata, **settings)

    def begin(self, blue: Any, mark: Mark) -> None:
        super().begin(blue, mark)
        self.connection.write_ahead(self._collection(), True)

    def _upsert(self, points: list[Point]) -> None:
        struct = need("qdrant_client.models", "qdrant").PointStruct
        rows = [struct(**point.as_written()) for point in points]
        self._call("upsert", self.table, rows, wait=True)

    def remove(self, ids: np.ndarray) -> None:
        points = [point_id(value) for value in ids.tolist()]
        self._call("delete", self.table, points, wait=True)

    def finish(self, blue: Any, mark: Mark) -> None:
        """Wait for the index, which the server builds by itself, then set the mark."""
        while (status := self._info().status) != "green":
            if status == "red":
                raise StoreError(f"{self.address} could not build the index of {self.name}: see its log.")
            if status == "grey":  # after a restart it waits for a change
                changes = need("qdrant_client.models", "qdrant").OptimizersConfigDiff()
                self._call("update_collection", self._collection(), optimizers_config=changes)
            time.sleep(PAUSE)
        self.connection.write_ahead(self._collection(), False)
        self.set_mark(mark)

    def set_mark(self, mark: Mark) -> None:
        self._call("update_collection", self._collection(), metadata={KEY: mark.to_json()})

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green: Any) -> str:
        served = self._alias_target()
        if served is None:
            raise StoreError(
                f"{self.name} is a collection, not an alias, and Qdrant cannot rename collections. Create an "
                f"alias of {self.table!r} once, let clients query the alias, then apply and promote by "
                "its name (moved points are not written again). Or let clients query "
                f"{green.table!r}."
            )
        check_unchanged(self, green)
        collection = green._collection()
        # first: it has no effect until the alias is switched
        self._call("update_collection", collection, metadata={ORIGINAL: served})
        self._serve(collection)
        return served

    def rollback(self) -> str:
        moved, mark = self._alias_target(), self.mark()
        if moved is None or mark is None or mark.original is None:
            raise StoreError(
                f"{self.name} is not an alias of a moved collection: there is nothing to roll back."
            )
        if not self.sibling(mark.original).exists():
            raise StoreError(f"the original, {mark.original}, no longer exists: nothing was changed.")
        self._serve(mark.original)
        return moved

    def _alias_target(self) -> str | None:
        """Return the collection that this alias points to now; None where it is not an alias."""
        aliases = {item.alias_name: item.collection_name for item in self._call("get_aliases").aliases}
        return aliases.get(self.table)

    def _collection(self) -> str:
        """Return the name of the collection itself: Qdrant does not change one by its alias."""
        return self._alias_target() or self.table

    def _serve(self, collection: str) -> None:
        """Point the alias elsewhere, in one step."""
        # Creating it again replaces it. Deleting it first would be a separate step, which Qdrant does not
        # undo where the next one fails.
        models = need("qdrant_client.models", "qdrant")
        alias = models.CreateAlias(collection_name=collection, alias_name=self.table)
        self._call("update_collection_aliases", [models.CreateAliasOperation(create_alias=alias)])


def _index(info: Any, params: dict[str, Any]) -> str:
    """Return how a server searches, in words."""
    hnsw = params.get("hnsw_config") or {}
    m = info.config.hnsw_config.m if hnsw.get("m") is None else hnsw["m"]
    quantised = params.get("quantization_config") or info.config.quantization_config
    return (f"HNSW, m={m}" if m else "exhaustive") + (", quantised first" if quantised else "")


def _settings(config: Any) -> dict[str, Any]:
    """Return the settings for another collection like this one: all that `create_collection` takes."""
    models = need("qdrant_client.models", "qdrant")
    params = config.params
    settings = {
        "vectors_config": params.vectors,
        "sparse_vectors_config": params.sparse_vectors,
        "quantization_config": config.quantization_config,
        "hnsw_config": _as(models.HnswConfigDiff, config.hnsw_config),
        "optimizers_config": _as(models.OptimizersConfigDiff, config.optimizer_config),
        "wal_config": _as(models.WalConfigDiff, config.wal_config),
        "strict_mode_config": _as(models.StrictModeConfig, config.strict_mode_config),
    }
    copies = "shard_number replication_factor write_consistency_factor on_disk_payload payload id_tracker"
    settings |= {name: getattr(params, name, None) for name in copies.split()}
    return {name: value for name, value in settings.items() if value is not None}


def _widened(vectors: Any, name: str, width: int) -> Any:
    """Return the settings of vectors, of which one, "" where it has no name, gets another size."""
    if not isinstance(vectors, dict):
        return vectors.model_copy(update={"size": width})
    return {**vectors, name: vectors[name].model_copy(update={"size": width})}


def _as(kind: Any, settings: Any) -> Any:
    """Return settings that Qdrant reports in the form that it takes, without those that it does not take."""
    if settings is None:
        return None
    values = settings.model_dump(mode="json", exclude_none=True)
    return kind(**{name: value for name, value in values.items() if name in kind.model_fields})
