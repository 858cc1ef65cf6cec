"""Pages in a real browser: complete, readable by everybody, deaf to any network, and safe whatever the names in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.api import analyze
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
from tests.studies.test_advise import BASES, near, tried
from tests.studies.test_advise import advice as drawn_advice
from tests.studies.test_attach import drawn as drawn_process
from tests.studies.test_sweep import draw as drawn_sweep
from tests.traces.test_ranks import rank

REFERENCE = Path(__file__).parents[3] / "traces" / "reference"
CLASSIFIER = default_classifier()
MOST_BYTES = 1_500_000


@cache
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
    "advice": lambda _: drawn_advice(tried("a"), tried("b"), times={"a": near(BASES, *5 * [-300]), "b": BASES}),
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
        shown.page.evaluate(Axe().axe_script)
        for width, scheme in ((PHONE, "dark"), (WIDE, "light")):
            shown.page.set_viewport_size({"width": width, "height": 900})
            shown.page.emulate_media(color_scheme=scheme)
            shown.draw_all()
            shown.until(f"document.documentElement.scrollWidth === {width}")
            assert shown.page.evaluate("axe.run({ resultTypes: ['violations'] }).then(found => found.violations)") == []
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
        bars = [bar.bounding_box() for bar in shown.page.query_selector_all("td svg.bar rect")]
        changes = [change for change in result.host if change.delta_ns]
        assert len(bars) == len(changes)
        # Each begins where the one before it ends, from the base's time to the new one's.
        at = result.base.wall.ns
        whole = shown.page.query_selector("td svg.bar").bounding_box()
        scale = whole["width"] / (result.base.wall.ns + sum(max(0, change.delta_ns) for change in changes))
        for bar, change in zip(bars, changes, strict=True):
            ends = sorted((at, at + change.delta_ns))
            assert [bar["x"] - whole["x"], bar["width"]] == [
                pytest.approx(ends[0] * scale, abs=1.0),
                pytest.approx((ends[1] - ends[0]) * scale, abs=1.0),
            ]
            at = at + change.delta_ns
            assert f"{change.category}\t" in shown.text
            assert format_signed_ns(change.delta_ns) in shown.text
        assert "Frames of both sides" in shown.text


def tree_of(shown: Opened) -> Any:
    shown.draw_all()
    return shown.page.wait_for_selector(".tree[data-ready]")


def test_an_icicle_is_searched(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        search, output = tree.query_selector("[type=search]"), tree.query_selector("output")
        search.fill("Measured_LOOP")
        assert output.inner_text() == "1 frame, 100.0 % of the width"
        (found,) = tree.query_selector_all(".tile.found")
        assert found.evaluate("tile => getComputedStyle(tile).outlineWidth") == "2px"
        # One frame lies in another of that name: it is counted, its width is not.
        search.fill("at::_ops")
        whole = shown.page.evaluate(SUMMED, "at::_ops")
        assert output.inner_text() == f"{whole['frames']} frames, {whole['percent']} % of the width"
        # What is folded is named by its number of frames.
        assert shown.page.evaluate("document.getElementById('icicles').textContent.includes(' smaller frame')")
        for words in ("no such frame", "smaller frame"):
            search.fill(words)
            assert output.inner_text() == "no frame of that name is shown"
        search.press("Escape")
        assert output.inner_text() == ""
        assert tree.query_selector_all(".tile.other") == []


def test_the_root_is_no_frame_that_is_found(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["run"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        # The root is named "all stacks of the step".
        tree.query_selector("[type=search]").fill("step")
        assert tree.query_selector("output").inner_text() == "no frame of that name is shown"


def test_a_search_is_of_what_is_shown(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["run"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        search, output = tree.query_selector("[type=search]"), tree.query_selector("output")
        search.fill("nanosleep")
        assert output.inner_text() == "1 frame, 25.0 % of the width"
        tree.query_selector(".tile.found").click()
        assert output.inner_text() == "1 frame, 100.0 % of the width"
        # Its caller is shown above it, as wide as the picture; the one beside it is not.
        search.fill("train")
        assert output.inner_text() == "1 frame, 100.0 % of the width"
        search.fill("add_kernel")
        assert output.inner_text() == "no frame of that name is shown"
        tree.query_selector("button").click()
        assert output.inner_text() == "1 frame, 15.0 % of the width"


def test_frames_that_are_hidden_are_not_found(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["compiled"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        read = "const { trees: [[{ names, framework }]], texts } = JSON.parse(document.getElementById('icicles').textContent)"
        output = tree.query_selector("output")
        name = shown.page.evaluate(f"() => {{ {read}; return texts[names[framework[0]]]; }}")
        tree.query_selector("[type=search]").fill(name)
        assert output.inner_text().endswith(" % of the width")
        tree.query_selector("[name=hide]").check()
        assert output.inner_text() == "no frame of that name is shown"


# The widths of the outermost frames of a name, summed another way: down from the root.
SUMMED = """words => {
  const { trees: [[{ names: places, parents, sizes }]], texts } = JSON.parse(document.getElementById("icicles").textContent);
  const names = places.map(place => texts[place]);
  const down = node => names[node].includes(words) ? sizes[node]
    : names.reduce((sum, _, child) => sum + (parents[child] === node ? down(child) : 0), 0);
  const frames = names.filter(name => name.includes(words)).length;
  return { frames, percent: (100 * down(0) / sizes[0]).toFixed(1) };
}"""


def level(tree: Any) -> str:
    """The frame that is as wide as the picture."""
    number: str = tree.query_selector(".icicle").get_attribute("data-level")
    return number


def boxes(tree: Any) -> list[tuple[str, dict[str, float]]]:
    """Names and places of the frames that are to be seen."""
    found: list[tuple[str, dict[str, float]]] = tree.evaluate(
        """tree => [...tree.querySelectorAll(".tile")].filter(tile => tile.checkVisibility()).map(tile => {
          const { x, y, width, height } = tile.getBoundingClientRect();
          return [tile.textContent, { x, y, width, height }];
        })"""
    )
    return found


def test_an_icicle_shows_every_frame_below_its_caller(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["compiled"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        columns = shown.page.evaluate("JSON.parse(document.getElementById('icicles').textContent).trees[0][0]")
        places = [box for _, box in boxes(tree)]
        whole = places[0]
        bottom = tree.evaluate("tree => tree.querySelector('.icicle').getBoundingClientRect().bottom")
        assert len(places) == len(columns["names"])
        for place, parent, size in zip(places, columns["parents"], columns["sizes"], strict=True):
            assert place["width"] == pytest.approx(whole["width"] * size / columns["sizes"][0], abs=0.1)
            assert place["y"] + place["height"] <= bottom + 0.1
            if parent >= 0:
                above = places[parent]
                assert place["y"] == pytest.approx(above["y"] + above["height"])
                assert above["x"] - 0.1 <= place["x"]
                assert place["x"] + place["width"] <= above["x"] + above["width"] + 0.1


def test_an_icicle_is_zoomed_by_a_click(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        button = tree.query_selector("button")
        assert not button.is_visible()
        tree.query_selector("[data-node='3']").hover()
        hovered = tree.query_selector("figcaption").inner_text()
        frame = tree.query_selector("[data-node='4']")
        frame.click()
        assert button.is_visible()
        told = tree.query_selector("figcaption").inner_text()
        assert told != hovered
        for name in ("frame", "category", "self", "with what it calls", "rule", "source of the rule"):
            assert f"{name}\n" in told
        assert "stacks)" in told
        assert level(tree) == "4"
        whole = tree.query_selector(".icicle").bounding_box()
        assert frame.bounding_box()["width"] == pytest.approx(whole["width"], abs=0.1)
        button.click()
        assert level(tree) == "0"


def test_an_icicle_is_walked_with_the_keyboard(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        chart, caption = tree.query_selector(".icicle"), tree.query_selector("figcaption")
        chart.focus()
        chart.press("ArrowDown")
        assert "frame\nmeasured_loop" in caption.inner_text()
        chart.press("ArrowDown")
        first = caption.inner_text()
        assert first != "" and "measured_loop" not in first
        (at,) = tree.query_selector_all(".tile.at")
        assert at.evaluate("tile => getComputedStyle(tile).outlineWidth") == "3px"
        chart.press("ArrowRight")
        assert caption.inner_text() != first
        chart.press("ArrowLeft")
        assert caption.inner_text() == first
        chart.press("Enter")
        assert level(tree) == "2"
        chart.press("Escape")
        assert level(tree) == "1"
        assert "frame\nmeasured_loop" in caption.inner_text()
        chart.press("Escape")
        assert level(tree) == "0"


def test_an_icicle_stands_on_its_head(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    result, file = pages["run"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        tree.query_selector("[name=callers]").check()
        (_, whole), *_ = boxes(tree)
        seen = [(name, round(100 * box["width"] / whole["width"]), box["y"] - whole["y"]) for name, box in boxes(tree)]
        assert sorted(seen, key=lambda each: (each[2], -each[1])) == [
            ("all stacks of the step", 100, 0),
            ("train (train.py:5)", 60, 20),
            ("clock_nanosleep (libc.so.6)", 25, 20),
            ("at::native::add_kernel (libtorch_cpu.so)", 15, 20),
            ("train (train.py:5)", 25, 40),
            ("train (train.py:5)", 15, 40),
        ]
        tree.query_selector("[name=callers]").uncheck()
        assert len(boxes(tree)) == 4
        assert result.samples


def test_frames_of_the_framework_can_be_hidden(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["compiled"]
    with opened(chromium, file) as shown:
        tree = tree_of(shown)
        columns = shown.page.evaluate("JSON.parse(document.getElementById('icicles').textContent).trees[0][0]")
        hidden = set(columns["framework"])
        before = dict(enumerate(boxes(tree)))
        tree.query_selector("[name=hide]").check()
        kept = [at for at in before if at not in hidden]
        after = boxes(tree)
        assert 0 < len(kept) < len(before)
        assert [name for name, _ in after] == [before[at][0] for at in kept]
        for at, (_, box) in zip(kept, after, strict=True):
            callers, node = 0, columns["parents"][at]
            while node >= 0:
                callers, node = callers + (node not in hidden), columns["parents"][node]
            assert (box["x"], box["width"]) == (before[at][1]["x"], before[at][1]["width"])
            assert box["y"] - after[0][1]["y"] == 20 * callers


def test_the_colors_follow_the_system(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    _, file = pages["eager"]
    with opened(chromium, file) as shown:
        ink = "getComputedStyle(document.querySelector('.plot text')).fill"
        assert shown.page.evaluate(ink) == "rgb(91, 101, 112)"
        shown.page.emulate_media(color_scheme="dark")
        shown.until(f"{ink} === 'rgb(162, 171, 180)'")


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
        points = shown.page.query_selector_all(".plot .points > svg")
        assert len(points) == len(run.times.ns) + len(run.slowest)
        rings = shown.page.query_selector_all(".plot .points > svg:has(.open) title")
        assert [ring.text_content() for ring in rings] == [
            f"step {slow.step:,}: {format_ns(slow.wall_ns)}: {slow.because}" for slow in run.slowest
        ]
        for slow in run.slowest:
            assert f"{slow.step:,}\t{format_ns(slow.wall_ns)}\t" in shown.text
            assert slow.because in shown.text
        for category in run.host:
            row = rf"{category.category}\t\s*{category.share:.1%}\t{re.escape(format_ns(category.ns))}\t"
            is_shown = bool(category.ns) or category.category == "unattributed"
            assert (re.search(row, shown.text) is not None) == is_shown, category.category
        assert len(shown.page.query_selector_all(".tree .tile")) == 4


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
        bars = shown.page.query_selector_all("figure:has(.beside:has-text('step 7')) .bars rect:has(title)")
        present = {category.category for step in analysis.steps for category in step.host if category.ns}
        assert len(bars) == len(present) * len(analysis.steps)
        mark = shown.page.query_selector("figure:has(.bars) .beside").bounding_box()
        assert mark["y"] + mark["height"] <= min(bar.bounding_box()["y"] for bar in bars) + 1.0
        for category in analysis.host:
            if category.ns:
                row = rf"{category.category}\t\s*{category.share:.1%}\t{re.escape(format_ns(category.ns))}"
                assert re.search(row, shown.text)
        (device,) = analysis.devices
        assert re.search(rf"busy\t\s*{device.busy_ns / device.span_ns:.1%}", shown.text)


def test_what_the_sentence_says_is_not_said_again_by_the_first_card(chromium: Any, tmp_path: Path) -> None:
    analysis = analyze(REFERENCE / "training.json.gz")
    with opened(chromium, write(tmp_path, analysis)) as shown:
        first, second = analysis.findings[:2]
        assert shown.text.count(first.sentence[1:]) == shown.text.count(second.sentence[1:]) == 1
        summaries = [card.inner_text() for card in shown.page.query_selector_all(".card summary")]
        assert summaries[0] == f"try {first.remedy}"
        assert summaries[1] == f"{second.sentence[:1].upper()}{second.sentence[1:]}."


def test_the_waterfall_of_a_ladder_has_a_bar_for_each_layer(chromium: Any, pages: dict[str, tuple[Any, Path]]) -> None:
    ladder, file = pages["ladder"]
    with opened(chromium, file) as shown:
        layers, rungs = shown.page.query_selector_all("details:has(svg.length)")[:2]
        assert len(layers.query_selector_all("svg.length")) == len(ladder.layers)
        timed = [rung for rung in ladder.rungs if rung.ns is not None]
        assert len(rungs.query_selector_all("svg.length")) == len(timed)
