"""Tables of a database in a file: the marks, the lock, the switch and the way back.

Green is another table of the same file. A switch renames both tables, and changes their marks, in one
transaction: others see all of it or nothing, and a killed process leaves nothing half done.
"""

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from ...support.outputs import real_path
from ..checks import changed_since, check_path, check_promoted, path_lock
from ..database import Database
from ..store import Mark, StoreError
from .sql_marks import check_marks, is_marks, put_mark, read_mark

LONGEST = 100  # characters of the name of a new table


class SqlTable(Database):
    """A table of a database in a file."""

    # --- what an engine provides ---------------------------------------------------------------------------

    @abstractmethod
    def _session(self, *, writes: bool = False) -> AbstractContextManager[Any]:
        """Open a transaction: all is written at its end, or nothing after an error."""

    @abstractmethod
    def _has(self, connection: Any, name: str) -> bool:
        """Say whether a table or view has this name."""

    def _names(self, table: str) -> Iterable[str]:
        """Return all names that a table of this name takes."""
        return [table]

    @abstractmethod
    def _state(self, connection: Any) -> str:
        """Return `state()`."""

    @abstractmethod
    def _check_movable(self, connection: Any) -> None:
        """Refuse a table that cannot be copied or renamed as a whole."""

    @abstractmethod
    def _check_alike(self, connection: Any, other: Any, width: int | None) -> None:
        """Refuse another table unless it has the same columns; its vectors may have another width."""

    @abstractmethod
    def _make_twin(self, connection: Any, blue: Any, width: int | None) -> None:
        """Create this table, empty, with the columns of blue."""

    @abstractmethod
    def _switch(self, connection: Any, kept: str, comes: Any) -> None:
        """Rename this table, and give its name to another one."""

    # --- reading -------------------------------------------------------------------------------------------

    def place(self, address: str) -> str:
        path = real_path(check_path(super().place(address)))
        return str(path)

    @property
    def file(self) -> Path:
        """The file of the database."""
        return Path(self.address)

    def exists(self) -> bool:
        if not self.file.exists():
            return False
        with self._session() as connection:
            return self._has(connection, self.table)

    def mark(self) -> Mark | None:
        with self._session() as connection:
            return read_mark(connection, self.table)

    def state(self) -> str:
        with self._session() as connection:
            return self._state(connection)

    # --- building green ------------------------------------------------------------------------------------

    def lock(self) -> AbstractContextManager[None]:
        self._check_name()  # or the lock is elsewhere
        name = quote(self.table.lower(), safe=" ")
        if len(name) > LONGEST:  # of a file name
            name = hashlib.sha256(name.encode()).hexdigest()
        return path_lock(self.file.with_name(f"{self.file.name}.{name}"))

    def _check_name(self) -> None:
        is_taken = is_marks(self.table) or self.table.lower().startswith("sqlite_")
        if is_taken or len(self.table) > LONGEST or not self.table.isprintable():
            raise StoreError(
                f"{self.table!r} cannot be a new table: names have 1 to {LONGEST} printable characters, do "
                "not begin with sqlite_, and are not hubless_marks."
            )

    def check_target(self, blue: Self, mark: Mark) -> None:
        self._check_name()
        # one session after the other: a second one in a first waits where another program is about to commit
        super().check_target(blue, mark)
        with blue._session() as connection:
            check_marks(connection)
            blue._check_movable(connection)
            if self._has(connection, self.table):
                blue._check_alike(connection, self, mark.width)

    def begin(self, blue: Self, mark: Mark) -> None:
        is_begun = self.exists()
        if is_begun:
            self.check_resumable(blue, mark)
        with self._session(writes=True) as connection:
            if self._has(connection, self.table) != is_begun:
                raise StoreError(f"another program made or removed {self.name} in this moment. Apply again.")
            blue._check_movable(connection)
            if is_begun:
                blue._check_alike(connection, self, mark.width)
            else:
                self._make_twin(connection, blue, mark.width)
            put_mark(connection, self.table, mark)

    def set_mark(self, mark: Mark) -> None:
        with self._session(writes=True) as connection:
            if not self._has(connection, self.table):
                raise StoreError(f"{self.name} was removed or renamed meanwhile. Apply again.")
            put_mark(connection, self.table, mark)

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green: Any) -> str:
        with green.lock(), self._session(writes=True) as connection:
            mark = read_mark(connection, green.table)
            is_finished = mark is not None and mark.done and green.is_made_from(self, mark)
            if mark is None or not is_finished or read_mark(connection, self.table) is not None:
                raise changed_since(self.name, green.name)
            self._check_movable(connection)
            self._check_alike(connection, green, mark.width)
            if mark.state != self._state(connection):
                raise changed_since(self.name, green.name)
            kept = self._free_name(connection, f"{self.table}_original")
            self._switch(connection, kept, green)
            put_mark(connection, green.table, None)
            put_mark(connection, self.table, replace(mark, original=kept))
        return kept

    def rollback(self) -> str:
        with self._session(writes=True) as connection:
            mark = check_promoted(self.name, read_mark(connection, self.table))
            original = self.sibling(str(mark.original))
            if not self._has(connection, original.table) or read_mark(connection, original.table):
                raise StoreError(f"{original.name} is not there, or is not an original: nothing was changed.")
            original._check_movable(connection)
            original._check_alike(connection, self, mark.width)
            start = re.sub("[^0-9a-f]", "0", mark.model[:8])
            kept = self._free_name(connection, f"{self.table}_moved_{start}")
            self._switch(connection, kept, original)
            put_mark(connection, self.table, None)
            put_mark(connection, kept, replace(mark, original=None))
        return kept

    def _free_name(self, connection: Any, wanted: str) -> str:
        """Return a name that nothing has: the wanted one, or with a number after it."""
        name, number = wanted, 1
        while any(self._has(connection, taken) for taken in self._names(name)):
            number += 1
            name = f"{wanted}_{number}"
        return name
