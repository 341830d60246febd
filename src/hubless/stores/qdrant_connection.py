"""The way to Qdrant, which stores beside one another share: a folder belongs to one client at a time.

Qdrant itself reads a folder with pickle: open only folders that you trust.
"""

import os
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .store import StoreError, need

TIMEOUT = 60  # seconds for an answer


def place(address: str) -> str:
    """An address in one spelling: that of a server, or the absolute path of a folder."""
    if not is_server(address):
        return str(Path(address).expanduser().absolute())
    if "@" in address:
        raise StoreError("leave the password out of the address; the key is that of QDRANT_API_KEY.")
    return address.rstrip("/")


def is_server(address: str) -> bool:
    return address.startswith(("http://", "https://"))


class Connection:
    """A client of qdrant-client, made when it is first asked.

    Parameters
    ----------
    address : folder, or http(s)://HOST:PORT
    api_key : for a server; else that of the environment, QDRANT_API_KEY
    """

    def __init__(self, address: str, api_key: str | None = None) -> None:
        self.address = place(address)
        self.is_folder = not is_server(address)
        self._api_key = api_key or os.environ.get("QDRANT_API_KEY")
        self._client: Any = None

    @property
    def client(self) -> Any:
        """The client; StoreError where there is no such folder, or another client has it."""
        if self._client is None:
            self._client = self._open_folder() if self.is_folder else self._reach_server()
            weakref.finalize(self, self._client.close)  # at the latest when Python ends, while it still can
        return self._client

    def close(self) -> None:
        """Let others have the folder."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def is_there(self) -> bool:
        """Whether the folder is one of Qdrant; servers are taken to be there."""
        return not self.is_folder or Path(self.address, "meta.json").exists()

    def ask(self, verb: str, *args: Any, **options: Any) -> Any:
        """What the client answers; StoreError where it, or the server, cannot."""
        client = self.client
        http = need("qdrant_client.http.exceptions", "qdrant")
        busy = need("qdrant_client.common.client_exceptions", "qdrant").QdrantException
        again = "The original is untouched; the same command can be run again."
        try:
            with _quiet():
                return getattr(client, verb)(*args, **options)
        except http.ResponseHandlingException as error:
            raise StoreError(f"{self.address} did not answer ({error.source}). {again}") from error
        except http.UnexpectedResponse as error:
            key = " Set QDRANT_API_KEY to a key that may do this." if error.status_code in (401, 403) else ""
            raise StoreError(f"{self.address} refused {verb} ({error}). {again}{key}") from error
        except busy as error:
            raise StoreError(f"{self.address} is busy ({error}). {again}") from error
        except ValueError as error:  # what a folder answers, and what the client itself finds
            raise StoreError(f"{self.address}: {error}") from error

    def _reach_server(self) -> Any:
        client = need("qdrant_client", "qdrant").QdrantClient
        # whether the server is new enough is asked where it matters: before a collection is made
        return client(url=self.address, api_key=self._api_key, timeout=TIMEOUT, check_compatibility=False)

    def _open_folder(self) -> Any:
        client = need("qdrant_client", "qdrant").QdrantClient
        if not self.is_there():
            raise StoreError(
                f"there is no folder of Qdrant at {self.address}. Give one, or http://HOST:PORT."
            )
        taken = f"another process or client has {self.address} open; Qdrant allows one. Close it first."
        if _is_locked(Path(self.address, ".lock")):
            raise StoreError(taken)
        try:
            with _quiet():
                return client(path=self.address)
        except RuntimeError as error:  # another was faster
            raise StoreError(taken) from error


def _is_locked(lock: Path) -> bool:
    """Asked before the client is made: it reads everything first, and does not tidy up if it then fails."""
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
def _quiet() -> Iterator[None]:
    """Without the advice to take a server above 20,000 points: slow is no fault, and the user knows it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
        yield
