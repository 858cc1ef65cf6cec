"""Handing a trace to the Perfetto UI: a page on 127.0.0.1 that opens the UI and posts the trace to it.

The UI answers PING with PONG once it listens, then takes ``{perfetto: {buffer, title, ...}}``
(https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui). The trace goes from this machine's disk to a tab
of this machine's browser, marked as local, so that the UI offers no way to share it. The server binds to the loopback
address only, serves two paths under a secret name, refuses requests made out to another host (DNS rebinding), and stops
once the tab has the trace.
"""

from __future__ import annotations

import html
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from overhead_lens.errors import UsageError
from overhead_lens.export.lanes.budget import BUDGET_LANE

PERFETTO_UI = "https://ui.perfetto.dev"

_LOOPBACK = "127.0.0.1"

_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Overhead Lens: {title}</title>
<style nonce="{nonce}">body {{ font: 16px sans-serif; margin: 3em }} button {{ font-size: 1.2em; padding: .6em 1.2em }}</style>
<h1>{title}</h1>
<button id="open">Open in Perfetto</button>
<p id="state">The trace is handed from this page to the tab that opens; it is sent nowhere else.</p>
<script nonce="{nonce}">
const ui = {ui}, title = {json_title}, origin = new URL(ui).origin;
const button = document.getElementById("open"), state = document.getElementById("state");
const trace = fetch("trace").then(answer => answer.ok ? answer.arrayBuffer() : Promise.reject());
trace.catch(() => {{ state.textContent = "The trace is no longer served: run the command again."; button.disabled = true; }});
button.onclick = async () => {{
  const tab = window.open(ui);
  if (!tab) {{ state.textContent = "The browser blocked the new tab: allow pop-ups for this page."; return; }}
  button.disabled = true;
  state.textContent = "Waiting for the Perfetto UI ...";
  const buffer = await trace;
  const ping = setInterval(() => {{
    if (!tab.closed) {{ tab.postMessage("PING", origin); return; }}
    stop("The new tab was closed before it had the trace.");
  }}, 50);
  function stop(word) {{
    clearInterval(ping);
    removeEventListener("message", hear);
    button.disabled = false;
    state.textContent = word;
  }}
  function hear(event) {{
    if (event.source !== tab || event.origin !== origin || event.data !== "PONG") return;
    tab.postMessage({{perfetto: {{buffer, title, fileName: title, localOnly: true}}}}, origin);
    stop("Sent. This page can be closed.");
    button.disabled = true;
    fetch("done", {{method: "POST"}});
  }}
  addEventListener("message", hear);
}};
</script>
"""


_POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def budget_view(ui: str = PERFETTO_UI, wall_ns: int | None = None) -> str:
    """Address of a Perfetto UI that opens with the budget pinned above everything.

    Args:
        ui: Address of the UI.
        wall_ns: Zoom to one call of this length. Beside traced events and sampled seconds it is too short to be seen;
            None shows the whole trace.
    """
    pin = {"id": "dev.perfetto.PinTracksByRegex", "args": [f"^{re.escape(BUDGET_LANE)}$"]}
    options = {"startupCommands": json.dumps([pin], separators=(",", ":"))}
    if wall_ns:
        options |= {"visStart": "0", "visEnd": str(wall_ns + wall_ns // 20)}
    return f"{ui.rstrip('/')}/#!/viewer?{urlencode(options, quote_via=quote)}"


def serve(trace: Path, *, timeout_s: float, on_ready: Callable[[str], None], ui: str | None = None) -> bool:
    """Serve the launcher page until the trace was handed over; whether it was.

    Args:
        trace: The file.
        timeout_s: Give up after so many seconds.
        on_ready: Is called once with the page's address.
        ui: Address of the Perfetto UI that is opened; by default that of ``budget_view``.

    Raises:
        UsageError: The trace cannot be read.
    """
    try:
        trace.open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {trace}: {error.strerror or error}") from error
    with _Launcher(trace, budget_view() if ui is None else ui) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            on_ready(f"http://{server.host}/{server.secret}/")
            return server.handed_over.wait(timeout_s)
        finally:
            server.shutdown()


class _Launcher(ThreadingHTTPServer):
    """The server of one trace, on a free port of the loopback address."""

    daemon_threads = True

    def __init__(self, trace: Path, ui: str) -> None:
        super().__init__((_LOOPBACK, 0), _Handler)
        self.trace = trace
        self.ui = ui
        self.host = f"{_LOOPBACK}:{self.server_port}"
        self.secret = secrets.token_urlsafe(24)
        self.handed_over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    """Serves page and trace under the secret, for this host only, and takes the word that it arrived."""

    server: _Launcher
    server_version = "overhead-lens"
    sys_version = ""

    def do_GET(self) -> None:
        """Serve the page or the trace."""
        path = self._wanted()
        if path == "":
            self._send_page()
        elif path == "trace":
            self._send_trace()
        elif path is not None:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Take the word that the tab has the trace."""
        path = self._wanted()
        if path == "done":
            self.send_response(HTTPStatus.NO_CONTENT)
            self.end_headers()
            self.server.handed_over.set()
        elif path is not None:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, *_: object) -> None:
        """Requests are nobody's output."""

    def end_headers(self) -> None:
        """Add what every answer carries."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def _wanted(self) -> str | None:
        """The path below the secret; None where the request was already refused."""
        if self.headers.get("Host") != self.server.host:
            self.send_error(HTTPStatus.FORBIDDEN)
            return None
        given, slash, rest = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(given.encode(), self.server.secret.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return rest

    def _send_page(self) -> None:
        nonce = secrets.token_urlsafe(16)
        page = _page(self.server.trace.name, self.server.ui, nonce).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Content-Security-Policy", _POLICY.format(nonce=nonce))
        self.end_headers()
        self.wfile.write(page)

    def _send_trace(self) -> None:
        with self.server.trace.open("rb") as source:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(os.fstat(source.fileno()).st_size))
            self.end_headers()
            shutil.copyfileobj(source, self.wfile)


def _page(title: str, ui: str, nonce: str) -> str:
    safe = title.encode("utf-8", "replace").decode()
    return _PAGE.format(title=html.escape(safe), json_title=_script(safe), ui=_script(ui), nonce=nonce)


def _script(text: str) -> str:
    """A JavaScript string literal that cannot end the script element it stands in."""
    return json.dumps(text).replace("<", "\\u003c")
