"""Connections to Qdrant, which blue and green share: a folder belongs to one client at a time."""

import os
import re
import sqlite3
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from ...support.imports import need
from ..store import StoreError
from .qdrant_folder import check_folder

TIMEOUT = 60  # seconds of a request
SERVER = ("http://", "https://")  # what addresses of servers start with; others are folders


def place(address: str) -> str:
    """Return an address in one spelling: that of a server, or the absolute path of a folder."""
    is_server = address.startswith(SERVER)
    # without http://, USER:PASSWORD@HOST would be taken for a folder, and shown
    is_mistyped = re.search(":.*@", address, re.DOTALL) and not os.path.exists(address)
    if is_mistyped or (is_server and ("@" in address or "?" in address)):
        raise StoreError("leave the password or key out of the address; put the key into QDRANT_API_KEY.")
    return address.rstrip("/") if is_server else str(Path(os.path.expanduser(address)).absolute())


class Connection:
    """A client of qdrant-client for a folder or http(s)://HOST:PORT, made when it is first used.

    The key of a server is by default the environment variable QDRANT_API_KEY.
    """

    def __init__(self, address: str, api_key: str | None = None) -> None:
        self.address, self.is_folder = address, not address.startswith(SERVER)
        self._api_key = api_key or os.environ.get("QDRANT_API_KEY")

    @cached_property
    def client(self) -> Any:
        """The client; StoreError where there is no such folder, or another client has it."""
        client = self._open_folder() if self.is_folder else self._reach_server()
        weakref.finalize(self, client.close)  # at the latest before Python ends
        return client

    def close(self) -> None:
        """Close the client, so that others can open the folder."""
        client = self.__dict__.pop("client", None)
        if client is not None:
            client.close()

    def exists(self) -> bool:
        """Say whether the folder is one of Qdrant; servers are taken to exist."""
        return not self.is_folder or Path(self.address, "meta.json").exists()

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method of the client; StoreError where it, or the server, fails."""
        client = self.client
        http = need("qdrant_client.http.exceptions", "qdrant")
        busy = need("qdrant_client.common.client_exceptions", "qdrant").QdrantException
        again = "The original is untouched; the same command can be run again."
        try:
            with _without_advice():
                return getattr(client, method)(*args, **options)
        except http.ResponseHandlingException as error:
            raise StoreError(f"{self.address} did not answer ({error.source}). {again}") from error
        except http.UnexpectedResponse as error:
            key = " Set QDRANT_API_KEY to a key that may do this." if error.status_code in (401, 403) else ""
            raise StoreError(f"{self.address} refused {method} ({error}). {again}{key}") from error
        except busy as error:
            raise StoreError(f"{self.address} is busy ({error}). {again}") from error
        except sqlite3.Error as error:  # of a folder: a full disk, or no right to write
            raise StoreError(f"{self.address} cannot be read or written ({error}). {again}") from error
        except ValueError as error:  # of a folder, or of the client itself
            raise StoreError(f"{self.address}: {error}") from error

    def write_ahead(self, collection: str, is_on: bool) -> None:
        """Let a collection in a folder be written without waiting for the disk after each point, or end that.

        qdrant-client commits every point, which takes 9 of 10 seconds. With a write-ahead log, a power cut
        may lose the last points but damages nothing; when it ends, everything is on the disk.
        """
        stored = getattr(getattr(self.client, "_client", None), "collections", {}).get(collection)
        database = getattr(getattr(stored, "storage", None), "storage", None)
        if not self.is_folder or database is None:  # another version of it: slower, but right
            return
        with suppress(sqlite3.Error):  # not every file system has shared memory
            (mode,) = database.execute(f"PRAGMA journal_mode={'WAL' if is_on else 'DELETE'}").fetchone()
            database.execute(f"PRAGMA synchronous={'NORMAL' if mode == 'wal' else 'FULL'}")

    def _reach_server(self) -> Any:
        client = need("qdrant_client", "qdrant").QdrantClient
        # whether the server is new enough is checked where it matters: before a collection is created
        return client(url=self.address, api_key=self._api_key, timeout=TIMEOUT, check_compatibility=False)

    def _open_folder(self) -> Any:
        client = need("qdrant_client", "qdrant").QdrantClient
        if not self.exists():
            raise StoreError(
                f"there is no Qdrant database at {self.address}. Give its folder, or http://HOST:PORT."
            )
        in_use = f"another process or client has {self.address} open; Qdrant allows one. Close it there."
        if _is_locked(Path(self.address, ".lock")):
            raise StoreError(in_use)
        check_folder(Path(self.address))
        try:
            with _without_advice():
                return client(path=self.address)
        except RuntimeError as error:  # another was faster
            raise StoreError(in_use) from error
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise StoreError(f"{self.address} is a damaged Qdrant database: {error}") from error


def _is_locked(lock: Path) -> bool:
    """Say whether a folder is in use; a client would read all of it before it fails."""
    portalocker = need("portalocker", "qdrant")
    if not lock.exists():
        return False
    with lock.open("r+") as handle:
        try:
            portalocker.lock(handle, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.exceptions.LockException:
            return True
    return False


@contextmanager
def _without_advice() -> Iterator[None]:
    """Hide the advice to use a server above 20,000 points: the user chose the folder."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
        yield
