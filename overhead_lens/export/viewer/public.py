"""Handing a trace to the public Perfetto UI: a page on 127.0.0.1 that opens the UI and posts the trace to it.

The UI answers PING with PONG once it listens, then takes ``{perfetto: {buffer, title, ...}}``
(https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui). The trace goes from this machine's disk to a tab
of this machine's browser, marked as local, so that the UI offers no way to share it.
"""

from __future__ import annotations

import html
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from overhead_lens.export.viewer.server import Document

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
trace.catch(() => {{
  state.textContent = "The trace is no longer served, or there is no room for it in this browser.";
  button.disabled = true;
}});
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


def launcher_documents(trace: Path, title: str, ui: str) -> Mapping[str, Document]:
    """The page that opens the UI at address ``ui`` (``picture_address``), and the trace."""
    nonce = secrets.token_urlsafe(16)
    safe = title.encode("utf-8", "replace").decode()
    page = _PAGE.format(title=html.escape(safe), json_title=_script(safe), ui=_script(ui), nonce=nonce).encode()
    headers = {"Content-Security-Policy": _POLICY.format(nonce=nonce)}
    return {"": Document(page, "text/html; charset=utf-8", headers), "trace": Document(trace)}


def _script(text: str) -> str:
    """A JavaScript string literal that cannot end the script element it stands in."""
    return json.dumps(text).replace("<", "\\u003c")
