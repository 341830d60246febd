"""Switch a name of Chroma from one collection to another, and back.

Chroma can rename a collection, but neither exchange two names nor give a collection two. So a switch is two
renames, with a moment in between in which nobody has the name. What is to be done is written down before:
as metadata of an empty collection, NAME.hubless, which stays as long as the moved collection serves, since it
knows the way back. From it, `complete` brings any interrupted switch to its end. Collections are known by
their ids, which no rename changes.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self
from uuid import UUID

from ..store import StoreError
from .chroma_connection import ChromaConnection

SUFFIX = ".hubless"
ABOUT = "Written by hubless. Keep it: it knows the original of the collection of this name."
TRIES = 9  # to take a name that others take, too


@dataclass(frozen=True)
class Switch:
    """Which of two collections is to have a name, and what the other one is called."""

    original: str  # id of the collection that was first
    original_name: str  # while it does not serve
    moved: str  # id of the moved collection
    moved_name: str  # while it does not serve
    serves_moved: bool  # which of the two is to have the name
    is_done: bool = False

    @property
    def comes(self) -> str:
        """Id of the collection that is to have the name."""
        return self.moved if self.serves_moved else self.original

    @property
    def leaves(self) -> tuple[str, str]:
        """Id and name of the other one."""
        if self.serves_moved:
            return self.original, self.original_name
        return self.moved, self.moved_name

    @classmethod
    def of(cls, metadata: Any) -> Self | None:
        """Return the switch in metadata, which anybody may have written; None where it is none."""
        names = cls.__annotations__
        values = {name: value for name, value in (metadata or {}).items() if name in names}
        if values.keys() != names.keys() or any(type(values[name]) is not names[name] for name in names):
            return None
        try:
            UUID(values["original"]), UUID(values["moved"])
        except ValueError:
            return None
        return cls(**values)


class Names:
    """Who has a name, and the record of its switches."""

    def __init__(self, connection: ChromaConnection, name: str) -> None:
        self.connection, self.name, self.record = connection, name, f"{name}{SUFFIX}"

    def last(self) -> Switch | None:
        """Return the last switch of the name, done or not; None where none is known."""
        record = self.connection.find(self.record)
        return None if record is None else Switch.of(record.metadata)

    def is_interrupted(self) -> bool:
        """Say whether a switch has begun, and has not ended."""
        switch = self.last()
        return switch is not None and self._is_begun(switch)

    def _is_begun(self, switch: Switch) -> bool:
        holder = self.connection.find(self.name)
        return not switch.is_done and (holder is None or str(holder.id) != switch.leaves[0])

    def carry_out(self, switch: Switch) -> None:
        """Switch the name."""
        self._note(switch)
        id, name = switch.leaves
        leaving = self.connection.find_id(UUID(id))
        if leaving is None:
            raise StoreError(f"{self.name} was removed or replaced in this moment: nothing was changed.")
        self._rename(leaving, name)
        self.complete()

    def complete(self) -> bool:
        """Bring a switch that has begun to its end; say whether there was one."""
        switch = self.last()
        if switch is None or not self._is_begun(switch):
            return False
        coming = self.connection.find_id(UUID(switch.comes))
        if coming is None:  # somebody removed it
            switch = replace(switch, serves_moved=not switch.serves_moved)
            coming = self.connection.find_id(UUID(switch.comes))
        if coming is None:
            raise StoreError(
                f"both collections that {self.record} names were removed: there is nothing left."
            )
        self._give_name(coming)
        if switch.serves_moved:
            self._note(replace(switch, is_done=True))
        else:
            self.connection.call(self.connection.client.delete_collection, self.record)
        return True

    def _give_name(self, coming: Any) -> None:
        """Give a collection the name; one that a program created under it in between makes room."""
        for _ in range(TRIES):
            holder = self.connection.find(self.name)
            if holder is not None and holder.id == coming.id:
                return
            if holder is not None:
                self._rename(holder, self.free(f"{self.name}_meanwhile"))
            try:
                self._rename(coming, self.name)
            except StoreError:
                if self.connection.find(self.name) is None:
                    raise
        raise StoreError(f"other programs keep creating {self.name}: stop them, then run `hubless recover`.")

    def free(self, wanted: str) -> str:
        """Return a name that no collection has."""
        name, number = wanted, 1
        while self.connection.find(name) is not None:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _rename(self, collection: Any, name: str) -> None:
        self.connection.call(collection.modify, name=name)

    def _note(self, switch: Switch) -> None:
        values, client = {"about": ABOUT, **asdict(switch)}, self.connection.client
        record = self.connection.find(self.record)
        if record is None:
            self.connection.call(
                client.create_collection, self.record, metadata=values, embedding_function=None
            )
        elif Switch.of(record.metadata) is None:
            raise StoreError(f"{self.record} is not a record of hubless, and needs that name. Rename it.")
        else:
            self.connection.call(record.modify, metadata=values)
