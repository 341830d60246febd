"""Records, as Chroma calls rows, and the settings of a collection."""

import json
from typing import Any, NamedTuple

WHOLE = ["embeddings", "metadatas", "documents", "uris"]  # all parts of a record, as `get` calls them


class Record(NamedTuple):
    """What a record has besides its id and its vector."""

    metadata: dict[str, Any] | None
    document: str | None
    uri: str | None

    def as_text(self) -> str:
        """Return it as a text, for comparison; NaN is equal to itself there."""
        return json.dumps([self.metadata or None, self.document, self.uri], sort_keys=True, default=repr)

    def value(self, column: str) -> Any:
        """Return a value of the metadata, or else the document or the URI; None if missing."""
        own = {"document": self.document, "uri": self.uri}
        return (own | (self.metadata or {})).get(column)

    def columns(self) -> set[str]:
        """Return the names of what it has."""
        own = {name for name in ("document", "uri") if getattr(self, name) is not None}
        return own | set(self.metadata or {})


class SameSettings:
    """The settings of a collection as Chroma keeps them, in the form in which `create_collection` takes them.

    Chroma's own objects for them would make the embedding function that they name.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def serialize_to_json(self) -> dict[str, Any]:
        """Return the settings; chromadb calls this."""
        return self.settings


def records_of(got: Any) -> list[Record]:
    """Return what Chroma's `get` returned, record by record."""
    nothing = [None] * len(got["ids"])
    parts = (got[name] or nothing for name in ("metadatas", "documents", "uris"))
    return [Record(*values) for values in zip(*parts, strict=True)]
