"""A server of a few documents to this machine's browser.

It binds to a free port of the loopback address, serves what it was given under a secret name, refuses requests made out to
another host (DNS rebinding), and stops by itself: when a page says that it is done, or when the page that held a connection open
is gone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

DONE = "done"
"""A page posts here when it needs nothing more."""

ALIVE = "alive"
"""A page reads from here as long as it is open."""

_LOOPBACK = "127.0.0.1"
_CHUNK_BYTES = 1 << 20
_BEAT_S = 1.0
_RELOAD_S = 3.0


@dataclass(frozen=True, slots=True)
class Document:
    """A served document: bytes, or a file, which is never held in memory."""

    body: bytes | Path
    kind: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


def serve(documents: Mapping[str, Document], *, timeout_s: float, on_ready: Callable[[str], None]) -> bool:
    """Serve documents until a page is done with them; whether one came to that.

    Args:
        documents: By their path.
        on_ready: Is called once with the address that stands before the paths.
    """
    with _Server(documents) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            on_ready(f"http://{server.host}/{server.secret}/")
            return server.wait(timeout_s)
        finally:
            server.shutdown()


class _Server(ThreadingHTTPServer):
    def __init__(self, documents: Mapping[str, Document]) -> None:
        super().__init__((_LOOPBACK, 0), _Handler)
        self.documents = documents
        self.host = f"{_LOOPBACK}:{self.server_port}"
        self.secret = secrets.token_urlsafe(24)
        self._changed = threading.Condition()
        self._done = False
        self._pages = 0

    def wait(self, timeout_s: float) -> bool:
        """Wait until a page is done, or all connections have been closed for longer than a reload takes; false if none came."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._done or self._pages, timeout_s):
                return False
            while not self._done:
                self._changed.wait_for(lambda: self._done or not self._pages)
                if not self._changed.wait_for(lambda: self._done or self._pages, _RELOAD_S):
                    break
            return True

    def finish(self) -> None:
        """A page is done."""
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def count(self, pages: int) -> None:
        """So many pages more hold a connection."""
        with self._changed:
            self._pages += pages
            self._changed.notify_all()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is not reported."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "overhead-lens"
    sys_version = ""

    def do_GET(self) -> None:
        """Serve a document, or hold the line."""
        path = self._requested_path()
        if path == ALIVE:
            self._hold()
        elif path is not None:
            self._send(path, with_body=True)

    def do_HEAD(self) -> None:
        """Answer with a document's headers."""
        path = self._requested_path()
        if path is not None:
            self._send(path, with_body=False)

    def do_POST(self) -> None:
        """Record that a page is done."""
        path = self._requested_path()
        if path == DONE:
            self.send_response(HTTPStatus.NO_CONTENT)
            self.end_headers()
            self.server.finish()
        elif path is not None:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, *_: object) -> None:
        """Do not print requests."""

    def end_headers(self) -> None:
        """Add what every answer carries."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def _requested_path(self) -> str | None:
        """The path below the secret; None if the request was already refused."""
        if self.headers.get("Host") != self.server.host:
            self.send_error(HTTPStatus.FORBIDDEN)
            return None
        given, slash, rest = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(given.encode(), self.server.secret.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return rest

    def _send(self, path: str, *, with_body: bool) -> None:
        document = self.server.documents.get(path)
        if document is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with document.body.open("rb") if isinstance(document.body, Path) else BytesIO(document.body) as source:
            size = source.seek(0, os.SEEK_END)
            source.seek(0)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", document.kind)
            self.send_header("Content-Length", str(size))
            for name, value in document.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                shutil.copyfileobj(source, self.wfile, _CHUNK_BYTES)

    def _hold(self) -> None:
        """Write an empty event every now and then, until the page is gone."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.server.count(1)
        try:
            while not threading.Event().wait(_BEAT_S):
                self.wfile.write(b":\n\n")
        except OSError:
            pass
        finally:
            self.server.count(-1)
