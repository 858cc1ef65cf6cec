"""Pages in a real browser: complete, readable by everybody, deaf to any network, and safe whatever the names in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.comparison.model import Delta
from overhead_lens.directories import load_directory
from overhead_lens.report.forms import to_html
from overhead_lens.stored import compare_captures
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.taxonomy.host import Frame
from overhead_lens.traces.job.ranks import Job
from overhead_lens.units import format_ns, format_signed_ns
from tests.browser import PHONE, WIDE, Opened, opened
from tests.comparison.test_structure import compared, mm
from tests.drawn.captures import draw_capture
from tests.report.page.seen import EVIL
from tests.report.page.test_history import stepped as drawn_history
from tests.report.page.test_hostile import MAKERS
from tests.report.page.test_process import LINES as PROCESS
from tests.report.page.test_process import two as two_processes
from tests.report.page.test_run import ranks as drawn_job
from tests.report.page.test_run import stored as stored_run
from tests.report.page.test_trace import steps as drawn_trace
from tests.studies.test_attach import drawn as drawn_process
from tests.studies.test_sweep import draw as drawn_sweep
from tests.traces.test_ranks import rank

REFERENCE = Path(__file__).parents[3] / "traces" / "reference"
CLASSIFIER = default_classifier()
MOST_BYTES = 6_000_000


def budget(name: str) -> Any:
    return load_directory(REFERENCE / name, CLASSIFIER)


def difference() -> Delta:
    return compare_captures(REFERENCE / "eager", REFERENCE / "compiled", CLASSIFIER, 0.01, force=True)


RESULTS: Mapping[str, Callable[[Path], Any]] = {
    "eager": lambda _: budget("eager"),
    "compiled": lambda _: budget("compiled"),
    "difference": lambda _: difference(),
    "ladder": lambda _: budget("ladder"),
    "sweep": lambda _: drawn_sweep({"slow_start": lambda n: 2_000 + n * 0.1, "slow_rate": lambda n: 200 + n}),
    "history": lambda _: drawn_history(),
    "run": stored_run,
    "job": lambda _: drawn_job(2_000_000, 3_000_000, 2_000_000),
    "process": lambda folder: drawn_process(folder, *PROCESS),
    "processes": two_processes,
    "trace": lambda _: drawn_trace(100, 100, 300, 100),
    "ranks": lambda _: Job.of([rank(0, 100, [50, 30], python_ns=20), rank(1, 140, [10, 30], python_ns=90)]),
    "structure": lambda _: compared(mm(3), mm(3, kernel="B", kernel_ns=20)),
}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Path]]:
    """Results and their pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, make in RESULTS.items():
        result = make(folder / name)
        file = folder / f"{name}.html"
        file.write_text(to_html(result), encoding="utf-8")
        made[name] = result, file
    return made


@pytest.fixture(params=RESULTS)
def page(request: pytest.FixtureRequest, pages: dict[str, tuple[Any, Path]]) -> tuple[Any, Path]:
    return pages[request.param]


def write(folder: Path, result: object) -> Path:
    file = folder / "page.html"
    file.write_text(to_html(result), encoding="utf-8", errors="backslashreplace")
    return file


def test_complete_and_readable_by_everybody(chromium: Any, page: tuple[Any, Path]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    _, file = page
    assert file.stat().st_size < MOST_BYTES
    with opened(chromium, file, PHONE, "dark") as shown:
        for width, scheme in ((PHONE, "dark"), (WIDE, "light")):
            shown.page.set_viewport_size({"width": width, "height": 900})
            shown.page.emulate_media(color_scheme=scheme)
            shown.draw_all()
            shown.until(f"document.documentElement.scrollWidth === {width}")
            assert Axe().run(shown.page).response["violations"] == []
        assert shown.complaints == []
        assert shown.requests == []


def test_a_budget_says_what_its_report_says(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    result, file = pages["compiled"]
    with opened(chromium, file) as shown:
        text = shown.text
        for category in result.host:
            row = rf"{category.category}\t\s*{category.share:.1%}\t{re.escape(format_ns(category.ns))}\t"
            is_shown = bool(category.ns) or category.category == "unattributed"
            assert (re.search(row, text) is not None) == is_shown, category.category
        assert re.search(rf"sum = wall\t\s*100 %\t{re.escape(format_ns(result.wall.ns))}", text)
        assert "python dominates" in shown.page.inner_text(".answer")


def test_a_difference_has_a_bar_for_each_change(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    result, file = pages["difference"]
    with opened(chromium, file) as shown:
        shown.draw_all()
        bars = shown.page.query_selector_all("[data-chart='0'] .bars .point")
        changes = [change for change in result.host if change.delta_ns]
        assert len(bars) == 2 + len(changes)
        for change in changes:
            assert f"{change.category}\t" in shown.text
            assert format_signed_ns(change.delta_ns) in shown.text
        assert "Frames of both sides" in shown.text


def tree_of(shown: Opened) -> Any:
    shown.draw_all()
    tree = shown.page.query_selector(".tree")
    tree.wait_for_selector("[data-ready]", state="attached")
    return tree


def test_an_icicle_is_searched(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        tree.query_selector("input").fill("Measured_LOOP")
        assert tree.query_selector("output").inner_text() == "1 frame, 100.0 % of the width"
        assert len(tree.query_selector_all(".slice.found")) == 1
        # One frame lies in another of that name: it is counted, its width is not.
        tree.query_selector("input").fill("at::_ops")
        found = tree.query_selector("output").inner_text()
        whole = shown.page.evaluate(SUMMED, "at::_ops")
        assert found == f"{whole['frames']} frames, {whole['percent']} % of the width"
        tree.query_selector("input").fill("no such frame")
        assert tree.query_selector("output").inner_text() == "no frame of that name"
        tree.query_selector("input").press("Escape")
        assert tree.query_selector("output").inner_text() == ""
        assert tree.query_selector_all(".slice.other") == []


# The widths of the outermost frames of a name, summed another way: down from the root.
SUMMED = """words => {
  const { labels, parents, values } = JSON.parse(document.getElementById("charts").textContent)
    .map(chart => chart.data[0]).find(trace => trace.type === "icicle");
  const down = node => labels[node].includes(words) ? values[node]
    : labels.reduce((sum, _, child) => sum + (parents[child] === String(node) ? down(child) : 0), 0);
  const frames = labels.filter(label => label.includes(words)).length;
  return { frames, percent: (100 * down(0) / values[0]).toFixed(1) };
}"""


def shown_root(tree: Any) -> str:
    """The name of the widest frame on top of the picture."""
    name: str = tree.evaluate("tree => tree.querySelector('.chart').data[0].level[0]")
    return name


def test_an_icicle_is_zoomed_by_a_click(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        button = tree.query_selector("button")
        assert not button.is_visible()
        slices = tree.query_selector_all("g.slice path.surface")
        before = slices[2].bounding_box()["width"]
        slices[2].click()
        shown.until("document.querySelector('.tree button').checkVisibility()")
        told = tree.query_selector("figcaption").inner_text()
        for name in ("frame", "category", "self", "with what it calls", "rule", "source of the rule"):
            assert f"{name}\n" in told
        assert "stacks)" in told
        assert shown_root(tree) != "0"
        assert max(each.bounding_box()["width"] for each in tree.query_selector_all("g.slice path.surface")) > before
        button.click()
        assert shown_root(tree) == "0"


def test_an_icicle_is_walked_with_the_keyboard(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        chart, caption = tree.query_selector(".chart"), tree.query_selector("figcaption")
        chart.focus()
        chart.press("ArrowDown")
        assert "frame\nmeasured_loop" in caption.inner_text()
        chart.press("ArrowDown")
        first = caption.inner_text()
        assert first != "" and "measured_loop" not in first
        assert len(tree.query_selector_all(".slice.at")) == 1
        chart.press("ArrowRight")
        assert caption.inner_text() != first
        chart.press("ArrowLeft")
        assert caption.inner_text() == first
        chart.press("Enter")
        assert shown_root(tree) == "2"
        chart.press("ArrowUp")
        assert caption.inner_text() == first
        chart.press("Escape")
        assert shown_root(tree) == "1"
        assert "frame\nmeasured_loop" in caption.inner_text()
        chart.press("Escape")
        assert shown_root(tree) == "0"


def test_the_colors_follow_the_system(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        shown.draw_all()
        ink = "document.querySelector('.chart').layout.font.color"
        assert shown.page.evaluate(ink) == "#1d2126"
        shown.page.emulate_media(color_scheme="dark")
        shown.until(f"{ink} === '#e6e9ec'")


@pytest.mark.parametrize("name", [EVIL, "x" * 100_000], ids=["markup", "100 kB"])
def test_names_do_nothing(chromium: Any, tmp_path: Path, name: str) -> None:
    stored = tmp_path / "capture"
    draw_capture(stored, frame=f"{name.replace(';', ':').replace(chr(0), '0')} (a.py:1)".replace("\u2028", "L"))
    result = load_directory(stored, CLASSIFIER)
    host = tuple(
        replace(category, top=(Frame(name, category.ns), *category.top[1:])) if category.ns else category
        for category in result.host
    )
    subject = replace(result.subject, name=name, params={name: name})
    hostile = replace(
        result, host=host, subject=subject, warnings=(name,), environment={name[:200]: name}, capture=str(stored)
    )
    with opened(chromium, write(tmp_path, hostile)) as shown:
        shown.draw_all()
        assert shown.page.evaluate("window.hit") is None
        assert shown.complaints == []
        assert shown.requests == []
        assert shown.page.query_selector_all("main a, main img, header a, header img") == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") == WIDE
        for character in "\x1b\u202e\u2028\x00":
            assert character not in shown.text
        if name is EVIL:
            assert "<script>window.hit=1</script>" in shown.text


def test_what_is_not_known_is_said(chromium: Any, tmp_path: Path) -> None:
    result = replace(budget("eager"), capture=str(tmp_path / "gone"))
    with opened(chromium, write(tmp_path, result)) as shown:
        assert "No stacks to draw" in shown.text
        assert shown.page.query_selector_all(".tree") == []


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_names_of_programs_and_traces_do_nothing(chromium: Any, tmp_path: Path, make: Callable[[Path], object]) -> None:
    with opened(chromium, write(tmp_path, make(tmp_path))) as shown:
        shown.draw_all()
        assert shown.page.evaluate("window.hit") is None
        assert shown.complaints == []
        assert shown.requests == []
        assert shown.page.query_selector_all("main a, main img, header a, header img") == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") == WIDE
        assert "<script>window.hit=1</script>" in shown.text


def test_a_run_shows_its_steps_and_marks_the_slowest(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    run, file = pages["run"]
    with opened(chromium, file) as shown:
        shown.draw_all()
        steps = shown.page.evaluate(
            "[...document.querySelectorAll('.chart')].map(chart => chart.data.find(trace => trace.name === 'slowest')?.x)"
        )
        assert [each for each in steps if each] == [[slow.step for slow in run.slowest]]
        points = shown.page.query_selector_all(".scatterlayer .trace path.point")
        assert len(points) == len(run.times.ns) + len(run.slowest)
        for slow in run.slowest:
            assert f"{slow.step:,}\t{format_ns(slow.wall_ns)}\t" in shown.text
            assert slow.because in shown.text
        for category in run.host:
            row = rf"{category.category}\t\s*{category.share:.1%}\t{re.escape(format_ns(category.ns))}\t"
            is_shown = bool(category.ns) or category.category == "unattributed"
            assert (re.search(row, shown.text) is not None) == is_shown, category.category
        assert len(shown.page.query_selector_all(".tree g.slice")) == 4


def test_ranks_stand_side_by_side(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    job, file = pages["job"]
    with opened(chromium, file) as shown:
        bars = shown.page.query_selector_all("details:nth-of-type(1) td svg.bar")
        assert len(bars) == len(job.ranks)
        for run in job.ranks:
            mark = " (slowest)" if run is job.slowest else ""
            assert f"{run.rank}{mark}\t{format_ns(run.wall.ns)}\t" in shown.text
        assert "Rank 1 is the slowest" in shown.page.inner_text(".answer")


def test_the_slowest_step_of_a_trace_is_marked_and_its_budget_is_a_bar(
    chromium: Any, pages: dict[str, tuple[Any, Path]]
) -> None:
    analysis, file = pages["trace"]
    with opened(chromium, file) as shown:
        shown.draw_all()
        bars = shown.page.query_selector_all("figure:has(.annotation-text:has-text('step 7')) .bars .point")
        present = {category.category for step in analysis.steps for category in step.host if category.ns}
        assert len(bars) == len(present) * len(analysis.steps)
        for category in analysis.host:
            if category.ns:
                row = rf"{category.category}\t\s*{category.share:.1%}\t{re.escape(format_ns(category.ns))}"
                assert re.search(row, shown.text)
        (device,) = analysis.devices
        assert re.search(rf"busy\t\s*{device.busy_ns / device.span_ns:.1%}", shown.text)


def test_the_waterfall_of_a_ladder_has_a_bar_for_each_layer(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    ladder, file = pages["ladder"]
    with opened(chromium, file) as shown:
        layers, rungs = shown.page.query_selector_all("details:has(svg.length)")[:2]
        assert len(layers.query_selector_all("svg.length")) == len(ladder.layers)
        timed = [rung for rung in ladder.rungs if rung.ns is not None]
        assert len(rungs.query_selector_all("svg.length")) == len(timed)
