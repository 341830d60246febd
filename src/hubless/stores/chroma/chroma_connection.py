"""Connections to Chroma: to a folder, or to a server. Blue and green share one."""

import os
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...support.imports import need
from ...support.text import reason
from ..store import StoreError

SERVER = ("http://", "https://")  # what addresses of servers start with; others are folders
FILE = "chroma.sqlite3"  # which every folder of Chroma contains
PORT = 8000  # of a server, unless the address has another


def place(address: str) -> str:
    """Return an address in one spelling: that of a server, or the absolute path of a folder."""
    is_server = address.startswith(SERVER)
    # without http://, USER:PASSWORD@HOST would be taken for a folder, and shown
    is_mistyped = re.search(":.*@", address, re.DOTALL) and not os.path.exists(address)
    if is_mistyped or (is_server and ("@" in address or "?" in address)):
        raise StoreError(
            "leave the password or token out of the address; put it into CHROMA_CLIENT_AUTH_CREDENTIALS, and "
            "the kind into CHROMA_CLIENT_AUTH_PROVIDER, which Chroma's client reads."
        )
    return address.rstrip("/") if is_server else str(Path(address).expanduser().absolute())


class ChromaConnection:
    """A client of chromadb for a folder or http(s)://HOST:PORT, made when it is first used.

    Tenant and database are the environment variables CHROMA_TENANT and CHROMA_DATABASE, or Chroma's defaults.
    """

    def __init__(self, address: str) -> None:
        self.address, self.is_folder = address, not address.startswith(SERVER)

    def exists(self) -> bool:
        """Say whether the folder is one of Chroma; servers are taken to exist."""
        return not self.is_folder or Path(self.address, FILE).is_file()

    @cached_property
    def client(self) -> Any:
        """The client; StoreError where there is no such folder, or no server answers."""
        chromadb = need("chromadb", "chroma")
        if not self.exists():
            raise StoreError(
                f"there is no Chroma database at {self.address}. Give its folder, which contains {FILE}, or "
                "http://HOST:PORT."
            )
        place = {
            "tenant": os.environ.get("CHROMA_TENANT", chromadb.DEFAULT_TENANT),
            "database": os.environ.get("CHROMA_DATABASE", chromadb.DEFAULT_DATABASE),
        }
        with self._errors():
            client = self._open_folder(place) if self.is_folder else self._reach_server(place)
        weakref.finalize(self, _close, client)  # others in this process may open it with other settings
        return client

    def close(self) -> None:
        """Close the client."""
        client = self.__dict__.pop("client", None)
        if client is not None:
            _close(client)

    def renew(self) -> None:
        """Open a folder anew when it is next used: an open one does not see what other processes write."""
        if self.is_folder:
            self.close()

    def call(self, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of the client or of a collection; StoreError where it, or the server, fails."""
        with self._errors():
            return work(*args, **options)

    def find(self, name: str) -> Any:
        """Return the collection of this name; None where there is none."""
        return self._found(self.client.get_collection, name)

    def find_id(self, id: Any) -> Any:
        """Return the collection of this id, which no change of its name changes; None where there is none."""
        return self._found(self.client.get_collection_by_id, id)

    def _found(self, work: Callable[..., Any], key: Any) -> Any:
        try:  # an embedding function is never made: it might load, or ask, what a stranger wrote there
            return self.call(work, key, embedding_function=None)
        except StoreError as error:
            if isinstance(error.__cause__, need("chromadb.errors", "chroma").NotFoundError):
                return None
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        errors, http = need("chromadb.errors", "chroma"), need("httpx", "chroma")
        again = "The original is untouched; the same command can be run again."
        try:
            yield
        except http.HTTPError as error:
            raise StoreError(f"{self.address} did not answer ({reason(error)}). {again}") from error
        except (errors.ChromaError, ValueError, TypeError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{self.address}: {reason(error)}. {again}") from error

    def _reach_server(self, place: dict[str, str]) -> Any:
        chromadb, url = need("chromadb", "chroma"), urlsplit(self.address)
        settings = chromadb.Settings(anonymized_telemetry=False)
        is_https = url.scheme == "https"
        try:
            return chromadb.HttpClient(
                str(url.hostname), url.port or PORT, ssl=is_https, settings=settings, **place
            )
        except ValueError as error:
            raise StoreError(
                f"{self.address} did not answer: {reason(error)}. Start it, for example by `chroma run`."
            ) from error

    def _open_folder(self, place: dict[str, str]) -> Any:
        """Open a folder, but bring none of an older version up to date."""
        chromadb = need("chromadb", "chroma")
        settings = chromadb.Settings(anonymized_telemetry=False, migrations="validate")
        try:
            return chromadb.PersistentClient(self.address, settings=settings, **place)
        except ValueError as error:
            if "different settings" not in str(error):
                raise
            return chromadb.PersistentClient(self.address, **place)  # as users open it


def _close(client: Any) -> None:
    """Close a client, and its connections to a server, which its own `close` leaves open."""
    parts = (client, getattr(client, "_admin_client", None))
    sessions = [getattr(getattr(part, "_server", None), "_session", None) for part in parts]
    client.close()
    for session in sessions:
        if session is not None:
            session.close()
