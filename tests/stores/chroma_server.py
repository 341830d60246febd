"""The server that comes with chromadb."""

import socket
import subprocess
import sys
import time
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

from hubless.stores.chroma.chroma_connection import _close

LONG = 60  # seconds, for a machine that is busy


class Server:
    """A server in a process of its own."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        chroma = Path(sys.executable).with_name("chroma")
        options = ["--path", folder, "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [chroma, "run", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    @cached_property
    def client(self):
        """A client, as soon as the server answers."""
        end = time.monotonic() + LONG
        while True:
            try:
                return import_module("chromadb").HttpClient("127.0.0.1", self.port)
            except ValueError:
                assert time.monotonic() < end, "the server does not start"
                time.sleep(0.05)

    def stop(self):
        if "client" in vars(self):
            _close(self.client)
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session", name="chroma_server")
def one_chroma_server(tmp_path_factory):
    """A server for all tests of a process: it takes seconds to start."""
    server = Server(tmp_path_factory.mktemp("chroma"))
    yield server
    server.stop()
