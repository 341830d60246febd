"""A page that answers what one types: served to the browser of this computer alone, and nothing is written.

Other pages that are open in the browser, and other users' programs, must not be able to ask: the address has
a random token, and the headers Host and Origin are checked.
"""

import json
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from ..support.text import as_json, encodable
from ..support.untrusted_json import parse_json

HOST = "127.0.0.1"
LARGEST, LONGEST = 10_000, 2000  # bytes of a request, characters of a text
POLICY = "default-src 'none';"  # of a page that is a file: it connects to nothing
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class PageServer(ThreadingHTTPServer):
    """Serves one page at `address` and, if there is an `answer`, what it returns for a text."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self.page = b""
        self.answer: Callable[[str], dict[str, Any]] | None = None
        self.answering = Lock()  # one text at a time: models are not made for threads
        self.path = f"/{secrets.token_urlsafe(24)}/"
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.address = f"http://{HOST}:{self.server_port}{self.path}"

    def show(self, page: str, answer: Callable[[str], dict[str, Any]] | None = None) -> None:
        """Set the page, and what answers a text."""
        if page.count(POLICY, 0, 1000) != 1:
            raise ValueError("the page has no policy that a server could widen.")
        self.page = page.replace(POLICY, f"{POLICY} connect-src 'self';", 1).encode()
        self.answer = answer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a browser has closed a connection."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: PageServer
    timeout = 30  # seconds to send a request in
    server_version, sys_version = "hubless", ""

    def do_GET(self) -> None:
        """Send the page."""
        if self._is_allowed(needs_origin=False):
            if self._is_path(self.server.path):
                self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
            else:
                self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def do_POST(self) -> None:
        """Answer a text: {"text": …} → {"before": items, "after": items}, or {"error": …}."""
        if not self._is_allowed(needs_origin=True):
            return
        if self.server.answer is None or not self._is_path(f"{self.server.path}search"):
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address")
            return
        text = self._text()
        if text is None:
            return
        try:
            with self.server.answering:
                found = self.server.answer(text)
        except (ValueError, OSError) as error:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
            return
        self._send(HTTPStatus.OK, "application/json", json.dumps(as_json(found), allow_nan=False).encode())

    def _is_path(self, path: str) -> bool:
        return secrets.compare_digest(self.path.encode(), path.encode())

    def _is_allowed(self, needs_origin: bool) -> bool:
        """Refuse what another page or another name of this computer asks."""
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        is_ours = host in self.server.hosts
        is_ours &= self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        if origin is None:
            is_ours &= not needs_origin
        else:
            is_ours &= origin == f"http://{host}"
        if not is_ours:
            self._refuse(HTTPStatus.FORBIDDEN, "only the page itself may ask")
        return is_ours

    def _text(self) -> str | None:
        """Return the text of a request; None where it was refused."""
        length, kind = self.headers.get("Content-Length", ""), self.headers.get("Content-Type")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a request says how long it is")
        elif len(length) > 9 or int(length) > LARGEST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {LARGEST} bytes")
        elif kind != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request is JSON")
        else:
            text = _text_of(self.rfile.read(int(length)))
            if text is not None:
                return text
            self._refuse(HTTPStatus.BAD_REQUEST, f'give {{"text": …}} with 1 to {LONGEST} characters')
        return None

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        self._send(status, "application/json", json.dumps({"error": words}).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses have the token, and may have what steers a terminal."""


def _text_of(body: bytes) -> str | None:
    """Return the text of {"text": …}; None where it is something else."""
    try:
        asked = parse_json(body)
    except ValueError:
        return None
    text = asked.get("text") if isinstance(asked, dict) else None
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        return None
    return encodable(text)
