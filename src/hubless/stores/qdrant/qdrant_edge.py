"""Qdrant Edge: the engine of Qdrant without a server, a shard in a folder.

Green is another folder with the same settings; the mark is a file in it, so that it goes where the folder
goes. `promote` exchanges the names of the two folders. Only one process can open a shard at a time: one that
serves it must close it before it is moved, and open it again afterwards.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...support.imports import need
from ...support.writing import new_folder
from ..checks import check_unchanged
from ..store import Facts, Mark, StoreError
from ..switch import moved_copy_of, original_of, put_in_place, recover_switch, write_text
from .qdrant_points import Point, PointStore, point_id

KIND = "qdrant-edge:"  # what names start with
SETTINGS = "edge_config.json"  # of a shard, in its folder
MARK = "hubless.json"  # beside them


def _edge() -> Any:
    return need("qdrant_edge", "qdrant-edge")


class QdrantEdge(PointStore):
    """The shard in a folder; `vector` names the vector to move, where it has several."""

    def __init__(
        self, path: str | os.PathLike[str], *, vector: str | None = None, metric: str | None = None
    ) -> None:
        self.path = Path(os.fspath(path)).expanduser().resolve()
        self.name = f"{KIND}{self.path}"
        self.vector, self.metric = vector, metric
        self._shards: dict[Path, Any] = {}  # those that are open, which blue and green share

    @classmethod
    def from_source(cls, source: str, *, id: str | None = None, items: Any = None, **options: Any) -> Self:
        for name, value in (("items", items), ("id", id)):
            if value is not None:
                raise StoreError(f"{source} has its own {name}; leave out --{name}.")
        return cls(source.removeprefix(KIND), **options)

    @property
    def shard(self) -> Any:
        """The shard; StoreError where there is none, or another process has it."""
        if self.path not in self._shards:
            self._settings()
            try:
                self._shards[self.path] = _edge().EdgeShard.load(str(self.path))
            except Exception as error:  # the engine raises no other kind
                raise StoreError(
                    f"{self.path} cannot be opened ({error}). If another process has it open, close it there."
                ) from error
        return self._shards[self.path]

    def close(self) -> None:
        """Close the shards that were opened here, so that others can open them."""
        while self._shards:
            self._shards.popitem()[1].close()

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return (self.path / SETTINGS).exists()

    def facts(self) -> Facts:
        layout = self._layout()
        count = self.shard.count(_edge().CountRequest(exact=True))
        hnsw = self._settings().get("hnsw_config") or {}
        index = f"HNSW, m={hnsw.get('m', 16)}, once it is large"
        return layout.facts("Qdrant Edge shard", int(count), index, self._columns())

    def mark(self) -> Mark | None:
        file = self.path / MARK
        return Mark.from_json(file.read_text(encoding="utf-8")) if file.exists() else None

    def _settings(self) -> dict[str, Any]:
        if not self.exists():
            raise StoreError(f"there is no shard of Qdrant Edge at {self.path}. Give the folder of one.")
        return dict(json.loads((self.path / SETTINGS).read_text(encoding="utf-8")))

    def _dense(self) -> dict[str, dict[str, Any]]:
        return dict(self._settings().get("vectors") or {})

    def _scroll(self, offset: Any, size: int, is_whole: bool) -> tuple[list[Any], Any]:
        wanted = {"with_payload": is_whole, "with_vector": is_whole}
        records, following = self.shard.scroll(_edge().ScrollRequest(offset=offset, limit=size, **wanted))
        return records, following

    def _retrieve(self, ids: list[int | str], is_whole: bool) -> list[Any]:
        return list(self.shard.retrieve(ids, is_whole, is_whole))

    def _nearest(self, queries: list[list[float]], k: int, name: str) -> list[list[Any]]:
        near = [_edge().Query.Nearest(query, using=name or None) for query in queries]
        requests = [_edge().QueryRequest(limit=k, query=query) for query in near]
        responses = self.shard.query_batch(_edge().QueryBatchRequest(requests))
        return [[point.id for point in response] for response in responses]

    # --- building green ------------------------------------------------------------------------------------

    def sibling(self, name: str) -> "QdrantEdge":
        """Return the shard of this name in the same folder, or at another path."""
        path = Path(name.removeprefix(KIND)).expanduser()
        path = path if path.is_absolute() else self.path.with_name(str(path))
        twin = QdrantEdge(path, vector=self.vector, metric=self.metric)
        twin._shards = self._shards
        return twin

    def _payload_schema(self) -> dict[str, Any]:
        return dict(self.shard.info().payload_schema)

    def _index_payload(self, field: str, schema: Any) -> None:
        self.shard.update(_edge().UpdateOperation.create_field_index(field, schema))

    def create(self, blue: Any, mark: Mark) -> None:
        """Create an empty shard, which is a folder with settings."""
        if self.path.exists():
            self.check_resumable(blue, mark)  # which refuses it: it is not a shard
        settings = blue._settings()
        if mark.width is not None:
            settings["vectors"][blue._layout().name]["size"] = mark.width
        with new_folder(self.path) as part:
            (part / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
            (part / MARK).write_text(mark.to_json(), encoding="utf-8")

    def _upsert(self, points: list[Point]) -> None:
        rows = [_edge().Point(**point.as_written()) for point in points]
        self.shard.update(_edge().UpdateOperation.upsert_points(rows))

    def remove(self, ids: np.ndarray) -> None:
        points = [point_id(value) for value in ids.tolist()]
        self.shard.update(_edge().UpdateOperation.delete_points(points))

    def finish(self, blue: Any, mark: Mark) -> None:
        self.shard.optimize()
        self.shard.flush()
        self.set_mark(mark)

    def set_mark(self, mark: Mark) -> None:
        write_text(self.path / MARK, mark.to_json())

    # --- switching -----------------------------------------------------------------------------------------

    def recover(self) -> None:
        recover_switch(self.path)

    def promote(self, green: Any) -> str:
        kept = self.sibling(str(original_of(self.path)))
        mark = check_unchanged(self, green)
        green.set_mark(replace(mark, original=kept.name))  # first: it has no effect until the switch
        self.close()
        put_in_place(green.path, self.path, kept.path)
        return kept.name

    def rollback(self) -> str:
        mark = self.mark()
        if mark is None or mark.original is None or mark.source != self.name:
            raise StoreError(f"{self.name} does not serve a moved copy: there is nothing to roll back.")
        kept = self.sibling(str(original_of(self.path)))  # never a path from a file
        if not kept.exists():
            raise StoreError(f"the original, {kept.path}, no longer exists: {self.name} stays as it is.")
        moved = self.sibling(str(moved_copy_of(self.path, mark.model)))
        self.close()
        put_in_place(kept.path, self.path, moved.path)
        return moved.name
