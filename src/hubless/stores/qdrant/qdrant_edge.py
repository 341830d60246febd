"""Qdrant Edge: the engine of Qdrant without a server, a shard in a folder.

Green is another folder with the same settings; the mark is a file in it, so that it goes where the folder
goes. `promote` exchanges the names of the two folders. Only one process can open a shard at a time: one that
serves it must close it before it is moved, and open it again afterwards.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...support.imports import need
from ...support.outputs import check_output, real_path
from ...support.text import short
from ...support.untrusted_json import SMALL, read_bounded, read_json
from ...support.writing import new_file, new_folder, remove_parts
from .. import switch
from ..checks import check_outside, check_path, check_promoted, check_unchanged, path_lock
from ..journal import was_interrupted
from ..kept_copies import moved_copy_of, original_of
from ..store import Facts, Mark, StoreError
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
        self.path = real_path(path)
        self.name = f"{KIND}{self.path}"
        self.vector, self.metric = vector, metric
        self._shards: dict[Path, Any] = {}  # those that are open, which blue and green share

    @classmethod
    def from_source(cls, source: str, *, id: str | None = None, items: Any = None, **options: Any) -> Self:
        path = check_path(source.removeprefix(KIND))
        for name, value in (("items", items), ("id", id)):
            if value is not None:
                raise StoreError(f"{source} has its own {name}; leave out --{name}.")
        return cls(path, **options)

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
        try:
            mark = Mark.from_json(read_bounded(self.path / MARK, SMALL))
        except FileNotFoundError:
            return None
        if mark is None or mark.original is None:
            return mark
        # where the original is follows from the path, never from a file; and only what serves has one
        return replace(mark, original=f"{KIND}{original_of(self.path)}" if mark.source == self.name else None)

    def _settings(self) -> dict[str, Any]:
        if not self.exists():
            raise StoreError(f"there is no shard of Qdrant Edge at {self.path}. Give the folder of one.")
        try:
            settings = read_json(self.path / SETTINGS)
        except ValueError as error:
            raise StoreError(f"{self.path / SETTINGS} cannot be read: {error}") from error
        if not isinstance(settings, dict):
            raise StoreError(f"{self.path / SETTINGS} contains {short(settings)}, not an object of settings.")
        return settings

    def _dense(self) -> dict[str, dict[str, Any]]:
        vectors = self._settings().get("vectors") or {}
        if not isinstance(vectors, dict) or not all(isinstance(one, dict) for one in vectors.values()):
            raise StoreError(
                f"{self.path / SETTINGS} has the vectors {short(vectors)}, not an object of settings."
            )
        return vectors

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

    @property
    def moved_name(self) -> str:
        return f"{self.path.name}-moved"

    def sibling(self, name: str) -> "QdrantEdge":
        """Return the shard of this name in the same folder, or at another path."""
        path = Path(os.path.expanduser(name.removeprefix(KIND)))
        path = path if path.is_absolute() else self.path.with_name(str(path))
        twin = QdrantEdge(path, vector=self.vector, metric=self.metric)
        twin._shards = self._shards
        return twin

    @contextmanager
    def lock(self) -> Iterator[None]:
        with path_lock(self.path):
            remove_parts(self.path.parent, re.escape(self.path.name))
            remove_parts(self.path, re.escape(MARK))
            yield

    def check_target(self, blue: Any, mark: Mark) -> None:
        check_outside(blue, self.path)
        check_output(self.path)
        if self.path.exists():
            self.check_resumable(blue, mark)  # which refuses a folder that is not a shard

    def _payload_schema(self) -> dict[str, Any]:
        return dict(self.shard.info().payload_schema)

    def _index_payload(self, field: str, schema: Any) -> None:
        self._update(_edge().UpdateOperation.create_field_index(field, schema))

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

    def _update(self, operation: Any) -> None:
        with self._writing():
            self.shard.update(operation)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say in words that the engine could not write: it raises no other kind of error than `Exception`."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(
                f"{self.path} cannot be written ({error}). The original is untouched; remove the cause, such "
                "as a full disk, and run the same command again."
            ) from error

    def _upsert(self, points: list[Point]) -> None:
        rows = [_edge().Point(**point.as_written()) for point in points]
        self._update(_edge().UpdateOperation.upsert_points(rows))

    def remove(self, ids: np.ndarray) -> None:
        points = [point_id(value) for value in ids.tolist()]
        self._update(_edge().UpdateOperation.delete_points(points))

    def finish(self, blue: Any, mark: Mark) -> None:
        with self._writing():
            self.shard.optimize()
            self.shard.flush()
        self.set_mark(mark)

    def set_mark(self, mark: Mark) -> None:
        with new_file(self.path / MARK, sync=True) as file:
            file.write(mark.to_json().encode())

    # --- switching -----------------------------------------------------------------------------------------

    def is_interrupted(self) -> bool:
        return was_interrupted(self.path)

    def recover(self) -> bool:
        with path_lock(self.path):
            return switch.recover(self.path)

    def promote(self, green: Any) -> str:
        kept = self.sibling(str(original_of(self.path)))
        with switch.switching(self.path, green.path):
            mark = check_unchanged(self, green)
            green.set_mark(replace(mark, original=kept.name))  # first: it has no effect until the switch
            self.close()
            switch.put_in_place(green.path, self.path, kept.path)
        return kept.name

    def rollback(self) -> str:
        with switch.switching(self.path):
            mark = check_promoted(self.name, self.mark())
            kept = self.sibling(str(mark.original))
            if not kept.exists():
                raise StoreError(f"the original, {kept.path}, no longer exists: {self.name} stays as it is.")
            moved = self.sibling(str(moved_copy_of(self.path, mark.model)))
            self.close()
            switch.put_in_place(kept.path, self.path, moved.path)
        return moved.name
