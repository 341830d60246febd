"""Qdrant Edge: the engine of Qdrant without a server, a shard in a folder.

Green is another folder with the same settings, and the mark is a file in it, so that it goes where the folder
goes. To promote is to let the two folders change names. A shard belongs to one process at a time: who serves
from it closes it while it is moved, and opens it again.
"""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .points import Point, PointStore, point_id
from .store import Facts, Mark, StoreError, need
from .switch import free_name, put_in_place, settle, write_text

KIND = "qdrant-edge:"  # what names start with
SETTINGS = "edge_config.json"  # of a shard, in its folder
MARK = "hubless.json"  # beside them
KEPT = ".original"  # what the name of an original ends with, once another serves


class QdrantEdge(PointStore):
    """A shard.

    Parameters
    ----------
    path : folder of the shard
    vector : name of the vector to move, where it has several
    metric : what it must compare by
    """

    def __init__(
        self, path: str | os.PathLike[str], *, vector: str | None = None, metric: str | None = None
    ) -> None:
        self.path = Path(os.fspath(path)).expanduser().resolve()
        self.name = f"{KIND}{self.path}"
        self.vector, self.metric = vector, metric
        self._shards: dict[Path, Any] = {}  # those that are open, shared with stores beside it

    @property
    def shard(self) -> Any:
        """The shard; StoreError where there is none, or another process has it."""
        if self.path not in self._shards:
            edge = need("qdrant_edge", "qdrant-edge")
            if not self.exists():
                raise StoreError(f"there is no shard of Qdrant Edge at {self.path}.")
            try:
                self._shards[self.path] = edge.EdgeShard.load(str(self.path))
            except Exception as error:  # the engine knows no other kind
                raise StoreError(
                    f"{self.path} cannot be opened ({error}). If another process has it open, close it there."
                ) from error
        return self._shards[self.path]

    def close(self) -> None:
        """Let others have the shards that were opened here."""
        while self._shards:
            self._shards.popitem()[1].close()

    # --- to read -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return (self.path / SETTINGS).exists()

    def facts(self) -> Facts:
        layout, info = self._layout(), self.shard.info()
        hnsw = self._settings().get("hnsw_config") or {}
        return Facts(
            kind="Qdrant Edge shard",
            metric=layout.metric,
            dimension=layout.dimension,
            count=int(self.shard.count(need("qdrant_edge", "qdrant-edge").CountRequest(exact=True))),
            dtype=layout.dtype,
            index=f"HNSW, m={hnsw.get('m', 16)}, once it is large",
            columns=tuple(sorted(self._columns() | set(info.payload_schema))),
            is_exact=layout.is_exact,
        )

    def mark(self) -> Mark | None:
        return _mark_in(self.path)

    def _settings(self) -> dict[str, Any]:
        if not self.exists():
            raise StoreError(f"there is no shard of Qdrant Edge at {self.path}.")
        return dict(json.loads((self.path / SETTINGS).read_text(encoding="utf-8")))

    def _dense(self) -> dict[str, dict[str, Any]]:
        return dict(self._settings().get("vectors") or {})

    def _scroll(self, offset: Any, size: int, is_whole: bool) -> tuple[list[Any], Any]:
        request = need("qdrant_edge", "qdrant-edge").ScrollRequest
        asked = request(offset=offset, limit=size, with_payload=is_whole, with_vector=is_whole)
        records, following = self.shard.scroll(asked)
        return records, following

    def _retrieve(self, ids: list[int | str], is_whole: bool) -> list[Any]:
        return list(self.shard.retrieve(ids, is_whole, is_whole))

    def _nearest(self, queries: list[list[float]], k: int, name: str) -> list[list[Any]]:
        edge = need("qdrant_edge", "qdrant-edge")
        nearest = edge.Query.Nearest
        asked = [edge.QueryRequest(limit=k, query=nearest(query, using=name or None)) for query in queries]
        return [[point.id for point in row] for row in self.shard.query_batch(edge.QueryBatchRequest(asked))]

    # --- to build beside it --------------------------------------------------------------------------------

    def beside(self, name: str) -> "QdrantEdge":
        """The shard of this name in the same folder, or at a path of its own."""
        path = Path(name.removeprefix(KIND)).expanduser()
        path = path if path.is_absolute() else self.path.with_name(str(path))
        twin = QdrantEdge(path, vector=self.vector, metric=self.metric)
        twin._shards = self._shards
        return twin

    def begin(self, blue: Any, mark: Mark) -> None:
        if self.path.exists():
            own = self.mark()
            if own is None or (own.model, own.source) != (mark.model, mark.source):
                told = f"is {own.source} moved by {own.model[:12]}" if own else "was not made by hubless"
                raise StoreError(f"{self.path} is there and {told}. Give another name, or remove it.")
            self._put_mark(mark)
        else:
            self._create(blue, mark)
        create = need("qdrant_edge", "qdrant-edge").UpdateOperation.create_field_index
        done = self.shard.info().payload_schema
        for field, index in blue.shard.info().payload_schema.items():
            if field not in done:
                self.shard.update(create(field, index.params or index.data_type))

    def _create(self, blue: Any, mark: Mark) -> None:
        """An empty shard is a folder with settings; it gets its name once the mark is in it."""
        part = self.path.with_name(f".{self.path.name}.hubless-part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        shutil.copyfile(blue.path / SETTINGS, part / SETTINGS)
        write_text(part / MARK, mark.to_json())
        os.rename(part, self.path)

    def _upsert(self, points: list[Point]) -> None:
        edge = need("qdrant_edge", "qdrant-edge")
        rows = [
            edge.Point(id, vectors[""] if vectors.keys() == {""} else vectors, payload)
            for id, vectors, payload in points
        ]
        self.shard.update(edge.UpdateOperation.upsert_points(rows))

    def remove(self, ids: np.ndarray) -> None:
        delete = need("qdrant_edge", "qdrant-edge").UpdateOperation.delete_points
        self.shard.update(delete([point_id(value) for value in ids.tolist()]))

    def finish(self, blue: Any, mark: Mark) -> None:
        self.shard.optimize()
        self.shard.flush()
        self._put_mark(mark)

    def _put_mark(self, mark: Mark) -> None:
        write_text(self.path / MARK, mark.to_json())

    # --- to switch -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        settle(self.path)

    def _moved(self, mark: Mark) -> Path:
        """Where the moved one is kept, once rolled back."""
        return self.path.with_name(f"{self.path.name}.moved-{mark.model[:8]}")

    def promote(self, green: Any) -> str:
        kept = self.beside(self.path.name + KEPT)
        if kept.path.exists():
            raise StoreError(f"{kept.path} is in the way: the original would be kept there. Rename it.")
        mark = self._check_unchanged(green)
        green._put_mark(replace(mark, original=kept.name))  # first: it says nothing until it serves
        self.close()
        put_in_place(green.path, self.path, kept.path)
        return kept.name

    def rollback(self) -> str:
        mark = self.mark()
        if mark is None or mark.original is None or mark.source != self.name:
            raise StoreError(f"{self.name} does not serve a moved copy: there is nothing to roll back.")
        kept = self.beside(self.path.name + KEPT)  # never a path that a file names
        if not kept.exists():
            raise StoreError(f"the original, {kept.path}, is not there any more: {self.name} stays as it is.")
        moved = self.beside(str(free_name(self._moved(mark), self.path)))
        self.close()
        put_in_place(kept.path, self.path, moved.path)
        return moved.name


def _mark_in(folder: Path) -> Mark | None:
    file = folder / MARK
    return Mark.from_json(file.read_text(encoding="utf-8")) if file.exists() else None
