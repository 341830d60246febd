"""Qdrant: a collection on a server, or in a folder that qdrant-client keeps itself.

Green is another collection, with a mark in its metadata. What serves is an alias: to promote is to point it
at green.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from .points import Point, PointStore, point_id
from .qdrant_connection import Connection, place
from .store import Facts, Mark, StoreError, need

KIND = "qdrant:"  # what names start with
KEY = "hubless"  # of the mark, in the metadata of a collection
OLDEST = (1, 16)  # server that keeps metadata of collections
PAGE = 256  # points of a request to a server: it takes 32 MB, and a number is up to 20 bytes
PAUSE = 0.5  # seconds between two looks at an index that is being built


class QdrantCollection(PointStore):
    """A collection, or the alias of one.

    Parameters
    ----------
    address : folder, or http(s)://HOST:PORT
    collection : name of a collection or of an alias
    vector : name of the vector to move, where it has several
    metric : what it must compare by
    api_key : for a server; else that of the environment, QDRANT_API_KEY
    """

    def __init__(
        self,
        address: str,
        collection: str,
        *,
        vector: str | None = None,
        metric: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self.at, self.collection = Connection(address, api_key), collection
        self.vector, self.metric = vector, metric
        self.name = f"{KIND}{self.at.address}#{collection}"
        self.page = type(self).page if self.at.is_folder else PAGE

    @property
    def client(self) -> Any:
        """The client of qdrant-client, which stores beside this one share."""
        return self.at.client

    # --- to read -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self.at.is_there() and bool(self.at.ask("collection_exists", self.collection))

    def facts(self) -> Facts:
        if not self.exists():
            known = sorted(item.name for item in self.at.ask("get_collections").collections)
            raise StoreError(f"{self.name} is not there; there are {', '.join(known) or 'none'}.")
        info, layout = self._info(), self._layout()
        return Facts(
            kind="Qdrant collection in a folder" if self.at.is_folder else "Qdrant collection",
            metric=layout.metric,
            dimension=layout.dimension,
            count=int(self.at.ask("count", self.collection, exact=True).count),
            dtype=layout.dtype,
            index="exhaustive" if self.at.is_folder else _index(info, layout.dense[layout.name]),
            columns=tuple(sorted(self._columns() | set(info.payload_schema))),
            is_exact=layout.is_exact,
        )

    def mark(self) -> Mark | None:
        return Mark.from_json((self._info().config.metadata or {}).get(KEY))

    def _info(self) -> Any:
        return self.at.ask("get_collection", self.collection)

    def _dense(self) -> dict[str, dict[str, Any]]:
        vectors = self._info().config.params.vectors or {}
        vectors = vectors if isinstance(vectors, dict) else {"": vectors}
        return {name: params.model_dump(mode="json") for name, params in vectors.items()}

    def _scroll(self, offset: Any, size: int, is_whole: bool) -> tuple[list[Any], Any]:
        options = {"with_payload": is_whole, "with_vectors": is_whole}
        records, following = self.at.ask("scroll", self.collection, offset=offset, limit=size, **options)
        return records, following

    def _retrieve(self, ids: list[int | str], is_whole: bool) -> list[Any]:
        options = {"with_payload": is_whole, "with_vectors": is_whole}
        return list(self.at.ask("retrieve", self.collection, ids, **options))

    def _nearest(self, queries: list[list[float]], k: int, name: str) -> list[list[Any]]:
        request = need("qdrant_client.models", "qdrant").QueryRequest
        asked = [request(query=query, using=name or None, limit=k, with_payload=False) for query in queries]
        found = self.at.ask("query_batch_points", self.collection, asked)
        return [[point.id for point in answer.points] for answer in found]

    # --- to build beside it --------------------------------------------------------------------------------

    def beside(self, name: str) -> "QdrantCollection":
        if name.startswith(KIND):
            address, _, name = name.removeprefix(KIND).rpartition("#")
            if place(address) != self.at.address:
                raise StoreError(f"{address} is not where {self.name} is: both must be in one place.")
        twin = QdrantCollection(self.at.address, name, vector=self.vector, metric=self.metric)
        twin.at = self.at
        return twin

    def begin(self, blue: Any, mark: Mark) -> None:
        if self.exists():
            own = self.mark()
            if own is None or own.model != mark.model or not self._is_from(blue, own):
                told = f"is {own.source} moved by {own.model[:12]}" if own else "was not made by hubless"
                raise StoreError(f"{self.name} is there and {told}. Give another name, or remove it.")
            self._put_mark(mark)
        else:
            self._create(blue, mark)
        done = self._info().payload_schema
        for field, index in blue._info().payload_schema.items():
            if field not in done:
                schema = index.params or index.data_type
                self.at.ask("create_payload_index", self._collection(), field, field_schema=schema, wait=True)

    def _is_from(self, blue: Any, own: Mark) -> bool:
        """Whether it was made from the collection that blue is, under whatever name."""
        source = self.beside(own.source.rpartition("#")[2])
        return source.exists() and source._collection() == blue._collection()

    def _create(self, blue: Any, mark: Mark) -> None:
        version = str(self.at.ask("info").version)
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise StoreError(f"{self.at.address} runs Qdrant {version}; it takes 1.16 to keep the mark.")
        info = blue._info()
        if info.config.params.sharding_method == "custom":
            raise StoreError(f"{blue.name} has shards by a key, which points do not tell: it stays as it is.")
        metadata = {**(info.config.metadata or {}), KEY: mark.to_json()}
        self.at.ask("create_collection", self.collection, metadata=metadata, **_settings(info.config))

    def _upsert(self, points: list[Point]) -> None:
        struct = need("qdrant_client.models", "qdrant").PointStruct
        rows = [
            struct(id=id, vector=vectors[""] if vectors.keys() == {""} else vectors, payload=payload)
            for id, vectors, payload in points
        ]
        self.at.ask("upsert", self.collection, rows, wait=True)

    def remove(self, ids: np.ndarray) -> None:
        selector = need("qdrant_client.models", "qdrant").PointIdsList
        points = [point_id(value) for value in ids.tolist()]
        self.at.ask("delete", self.collection, selector(points=points), wait=True)

    def finish(self, blue: Any, mark: Mark) -> None:
        """Wait for the index, which the server builds by itself, then set the mark."""
        while (status := self._info().status) != "green":
            if status == "red":
                raise StoreError(f"{self.at.address} could not build the index of {self.name}: see its log.")
            if status == "grey":  # after a restart it waits to be asked
                changes = need("qdrant_client.models", "qdrant").OptimizersConfigDiff()
                self.at.ask("update_collection", self._collection(), optimizers_config=changes)
            time.sleep(PAUSE)
        self._put_mark(mark)

    def _put_mark(self, mark: Mark) -> None:
        self.at.ask("update_collection", self._collection(), metadata={KEY: mark.to_json()})

    # --- to switch -----------------------------------------------------------------------------------------

    def promote(self, green: Any) -> str:
        served = self._behind()
        if served is None:
            raise StoreError(
                f"{self.name} is a collection, not an alias, and Qdrant cannot rename collections. Once and "
                f"for all: create an alias of {self.collection!r} and let clients ask under that, then apply "
                "and promote under it (rows that are there are not written again). Or let clients ask "
                f"{green.collection!r}."
            )
        mark = self._check_unchanged(green)
        green._put_mark(replace(mark, original=served))  # first: it says nothing until the alias is there
        self._serve(green._collection())
        return served

    def rollback(self) -> str:
        moved, mark = self._behind(), self.mark()
        if moved is None or mark is None or mark.original is None:
            raise StoreError(f"{self.name} is no alias of a moved collection: there is nothing to roll back.")
        if not self.beside(mark.original).exists():
            raise StoreError(f"the original, {mark.original}, is not there any more: nothing was changed.")
        self._serve(mark.original)
        return moved

    def _behind(self) -> str | None:
        """The collection that this alias stands for now; None for what is no alias."""
        aliases = {item.alias_name: item.collection_name for item in self.at.ask("get_aliases").aliases}
        return aliases.get(self.collection)

    def _collection(self) -> str:
        """The collection itself: to change one, Qdrant takes no alias."""
        return self._behind() or self.collection

    def _serve(self, collection: str) -> None:
        """Point the alias elsewhere, in one step."""
        # To create it anew replaces it. To delete it before would be another step, which Qdrant saves by
        # itself and does not take back where the next one fails.
        models = need("qdrant_client.models", "qdrant")
        alias = models.CreateAlias(collection_name=collection, alias_name=self.collection)
        self.at.ask("update_collection_aliases", [models.CreateAliasOperation(create_alias=alias)])


def _index(info: Any, params: dict[str, Any]) -> str:
    """How a server searches, in words."""
    own = params.get("hnsw_config") or {}
    m = info.config.hnsw_config.m if own.get("m") is None else own["m"]
    quantised = params.get("quantization_config") or info.config.quantization_config
    return (f"HNSW, m={m}" if m else "exhaustive") + (", quantised first" if quantised else "")


def _settings(config: Any) -> dict[str, Any]:
    """What makes another collection like this one: all that `create_collection` takes."""
    models = need("qdrant_client.models", "qdrant")
    params = config.params
    found = {
        "vectors_config": params.vectors,
        "sparse_vectors_config": params.sparse_vectors,
        "quantization_config": config.quantization_config,
        "hnsw_config": _as(models.HnswConfigDiff, config.hnsw_config),
        "optimizers_config": _as(models.OptimizersConfigDiff, config.optimizer_config),
        "wal_config": _as(models.WalConfigDiff, config.wal_config),
        "strict_mode_config": _as(models.StrictModeConfig, config.strict_mode_config),
    }
    copies = "shard_number replication_factor write_consistency_factor on_disk_payload payload id_tracker"
    found |= {name: getattr(params, name, None) for name in copies.split()}
    return {name: value for name, value in found.items() if value is not None}


def _as(kind: Any, settings: Any) -> Any:
    """Settings that Qdrant told, in the form that it takes; what it tells but does not take is left out."""
    if settings is None:
        return None
    told = settings.model_dump(mode="json", exclude_none=True)
    return kind(**{name: value for name, value in told.items() if name in kind.model_fields})
