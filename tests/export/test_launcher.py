"""The launcher over real HTTP on the loopback address, and once in a real browser where there is one."""

from __future__ import annotations

import http.client
import queue
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.export.launcher import serve


class Launched:
    """A launcher in a thread, its address, and what ``serve`` returned."""

    def __init__(self, trace: Path, timeout_s: float = 20.0, **options: str) -> None:
        self.address: queue.Queue[str] = queue.Queue()
        self.result: queue.Queue[bool] = queue.Queue()

        def run() -> None:
            self.result.put(serve(trace, timeout_s=timeout_s, on_ready=self.address.put, **options))

        threading.Thread(target=run, daemon=True).start()
        self.url = self.address.get(timeout=10)
        self.host = self.url.split("/")[2]
        self.secret = self.url.split("/")[3]

    def ask(self, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        connection.request(method, path, headers={"Host": host or self.host})
        answer = connection.getresponse()
        found = answer.status, answer.read(), dict(answer.getheaders())
        connection.close()
        return found


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a <b>&.pftrace"
    path.write_bytes(bytes(range(256)) * 100)
    return path


def test_hands_over_and_stops(trace: Path) -> None:
    launched = Launched(trace)
    assert launched.host.startswith("127.0.0.1:")
    assert launched.ask(f"/{launched.secret}/trace")[:2] == (200, trace.read_bytes())
    assert launched.ask(f"/{launched.secret}/done", "POST")[0] == 204
    assert launched.result.get(timeout=10) is True
    with pytest.raises(OSError):
        launched.ask("/")


def test_refuses_what_it_should(trace: Path) -> None:
    launched = Launched(trace)
    assert launched.ask("/")[0] == 404
    assert launched.ask("/wrong/trace")[0] == 404
    assert launched.ask(f"/{launched.secret}/../etc/passwd")[0] == 404
    assert launched.ask(f"/{launched.secret}/other")[0] == 404
    assert launched.ask(f"/{launched.secret}/trace", host="evil.example")[0] == 403
    assert launched.ask(f"/{launched.secret}/trace", "POST")[0] == 404


def test_page_escapes_the_name_and_allows_only_its_own_script(trace: Path) -> None:
    launched = Launched(trace)
    status, page, headers = launched.ask(f"/{launched.secret}/")
    assert status == 200
    assert b"<h1>a &lt;b&gt;&amp;.pftrace</h1>" in page
    assert b'title = "a \\u003cb>&.pftrace"' in page
    policy = headers["Content-Security-Policy"]
    nonce = policy.split("script-src 'nonce-")[1].split("'")[0]
    assert policy.startswith("default-src 'none'; connect-src 'self';")
    assert page.count(b"<script") == page.count(f'<script nonce="{nonce}">'.encode()) == 1


def test_gives_up_after_its_time(trace: Path) -> None:
    assert Launched(trace, timeout_s=0.2).result.get(timeout=10) is False


def test_missing_trace(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot read .*gone\.pftrace: No such file or directory$"):
        serve(tmp_path / "gone.pftrace", timeout_s=1, on_ready=lambda _: None)


UI = b"""<!doctype html><title>ui</title><script>
addEventListener("message", event => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin);
  else if (event.data.perfetto) fetch("/got/" + event.data.perfetto.buffer.byteLength + "/" + event.data.perfetto.title);
});
</script>"""


def test_browser_hands_the_trace_to_the_ui(trace: Path, tmp_path: Path) -> None:
    """Headless Chromium clicks the button; a stand-in for the UI answers as Perfetto's does and reports what it got."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    got: queue.Queue[str] = queue.Queue()

    class Ui(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/got/"):
                got.put(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(UI)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Ui) as ui:
        threading.Thread(target=ui.serve_forever, daemon=True).start()
        launched = Launched(trace, timeout_s=90, ui=f"http://127.0.0.1:{ui.server_port}")
        clicker = tmp_path / "clicker"
        clicker.mkdir()
        (clicker / "manifest.json").write_text(
            '{"manifest_version": 3, "name": "clicker", "version": "1", "content_scripts": '
            '[{"matches": ["http://127.0.0.1/*"], "js": ["click.js"], "run_at": "document_idle"}]}'
        )
        (clicker / "click.js").write_text("const b = document.getElementById('open'); if (b) b.click();")
        flags = (
            "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
        )
        browser = subprocess.Popen(
            [
                chromium,
                *flags.split(),
                "--disable-popup-blocking",
                "--disable-features=DisableLoadExtensionCommandLineSwitch",
                f"--load-extension={clicker}",
                f"--user-data-dir={tmp_path / 'profile'}",
                launched.url,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert got.get(timeout=60) == f"/got/{trace.stat().st_size}/a%20%3Cb%3E&.pftrace"
            assert launched.result.get(timeout=30) is True
        finally:
            browser.kill()
            browser.wait()
            ui.shutdown()
