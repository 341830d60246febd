"""Stores that are a table or a collection of a database, which users type as KIND:ADDRESS#TABLE."""

from copy import copy
from typing import Any, Self

from ..support.credentials import without_secrets
from .checks import check_metric
from .store import Store, StoreError


class Database(Store):
    """A table or a collection of a database.

    Parameters
    ----------
    address : str
        Of the database: a folder, or what the engine takes.
    table : str
    vector, id, metric : optional, as for `open_store`
    """

    schemes: tuple[str, ...]  # what a user may type before the address; names are shown with the first

    def __init__(
        self,
        address: str,
        table: str,
        *,
        vector: str | None = None,
        id: str | None = None,
        metric: str | None = None,
    ) -> None:
        check_metric(metric)
        self.vector, self.id, self.metric = vector, id, metric
        self.address = self.place(address)
        self.rename(table)

    @classmethod
    def from_source(cls, source: str, *, items: Any = None, **options: Any) -> Self:
        kind = source.partition(":")[0]  # no more of it is in a message: it may contain a password
        if items is not None:
            raise StoreError(
                f"{kind} databases keep the columns of their items: name the column of classes "
                "(--labels COLUMN), and leave out --items."
            )
        address, _, table = source.rpartition("#")
        if not address or not table:
            raise StoreError(f"name the table or collection after a #: {kind}:ADDRESS#NAME.")
        return cls(address, table, **options)

    def place(self, address: str) -> str:
        """Return an address in one spelling, for comparison; StoreError for an invalid one."""
        return address.removeprefix(self.schemes[0])

    def rename(self, table: str) -> None:
        """Make this another table of the database."""
        self.table, self.name = table, f"{without_secrets(self.schemes[0] + self.address)}#{table}"

    def sibling(self, name: str) -> Self:
        if name.startswith(self.schemes):
            address, _, name = name.rpartition("#")
            place = without_secrets(self.place(address))
            if place != without_secrets(self.address):
                raise StoreError(f"{place}#{name} is not in the database of {self.name}. Name a table of it.")
        twin = copy(self)  # it shares the connection
        twin.rename(name)
        return twin
