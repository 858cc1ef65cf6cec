"""Names from programs, traces and captures that are markup, control characters or without end do nothing on a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.report.forms import to_html
from overhead_lens.studies.attach.delta import compare_processes
from overhead_lens.studies.history.analysis import make_history
from overhead_lens.studies.run.analysis import run_budget_of
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.studies.run.stored import Place, StoredRegion
from overhead_lens.taxonomy.host import Frame
from overhead_lens.traces.job.ranks import Job
from tests.comparison.test_structure import compared, mm
from tests.drawn.runs import WORK, bare, main, run_of, store
from tests.drawn.stacks import CLASSIFIER
from tests.drawn.timelines import analyzer_of, timed
from tests.report.page.seen import EVIL, strings
from tests.report.page.test_history import point
from tests.report.page.test_ladder import drawn as drawn_ladder
from tests.studies.test_attach import drawn as drawn_process
from tests.studies.test_sweep import draw as draw_sweep

LONG = "x" * 100_000
NAME = f"{EVIL}{LONG}"
# Semicolons separate frames, and a line is one stack.
IN_STACKS = EVIL.replace(";", "").replace("\0", "").replace("\u2028", "")


def ladder(_: Path) -> object:
    made = drawn_ladder(reasons={"cpp_wrapper": NAME}, names=["eager", "compiled", "cpp_wrapper"])
    return replace(
        made,
        subject=replace(made.subject, name=NAME, variant=NAME, params={NAME: NAME}),
        directory=NAME,
        warnings=(NAME,),
    )


def sweep(_: Path) -> object:
    made = draw_sweep({f"{EVIL}1": lambda n: 2_000 + n * 0.1, f"{EVIL}2{LONG}": lambda n: 200 + n})
    return replace(made, against=NAME, directory=NAME, warnings=(NAME,))


def history(_: Path) -> object:
    points = [replace(point(at, {"python": 1_000}, NAME), commit=NAME, path=NAME) for at in range(6)]
    return make_history(NAME, points, [], [NAME])


def run(folder: Path) -> Any:
    regions = [
        StoredRegion(NAME, [Place("/home/ada/train.py", "train", 5, 5)], 20, 20e6, 2e13),
        StoredRegion(f"{NAME}2", [], 1, 1.0, 1.0),
    ]
    lines = [
        main(WORK, 50),
        main(f"{WORK};{EVIL.replace(chr(0), '')} (x.py:1)", 50),
        f"thread (11): {EVIL};f (x.py:1) 9",
    ]
    stored = run_of(
        *bare(*(20 * [1_000_000])), turns=[lines], regions=regions, program=[NAME], where=NAME, warnings=[NAME]
    )
    made = run_budget_of(store(folder / "run", stored, [lines]), CLASSIFIER)
    return replace(made, slowest=(Slow(9, 5_000_000, NAME),), environment={NAME: NAME})


def job(folder: Path) -> object:
    made = run(folder)
    return RunJob((replace(made, rank=0), replace(made, rank=1)), NAME)


def process(folder: Path) -> Any:
    lines = [
        f"thread (10): MainThread;f (x.py:1);{IN_STACKS} (x.py:2) 500",
        f"thread (11): {IN_STACKS}{LONG};g (x.py:1) 500",
    ]
    return replace(drawn_process(folder / "p", *lines, process_command=NAME, warnings=[NAME]), python=NAME)


def processes(folder: Path) -> object:
    made = process(folder)
    return replace(compare_processes(made, made, 0.01), gone=(NAME,), came=(NAME,), sentence=NAME)


def trace(_: Path) -> Any:
    entries = [
        timed(0, 100, "ProfilerStep#1", "user_annotation"),
        timed(0, 10, NAME),
        timed(2, 4, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(50, 50, NAME, thread=(EVIL, EVIL)),
        timed(10, 40, NAME, "kernel", (0, 7), device=0, stream=7, correlation=1),
    ]
    made = analyzer_of(*entries).analysis()
    python = replace(made.threads[0].host[0], top=(Frame(NAME, 1),))
    first = replace(made.threads[0], name=NAME, host=(python, *made.threads[0].host[1:]))
    devices = tuple(replace(device, name=NAME, device=EVIL) for device in made.devices)
    return replace(made, path=NAME, threads=(first, *made.threads[1:]), devices=devices, notes=(NAME,))


def ranks(folder: Path) -> object:
    made = trace(folder)
    return Job.of([made, replace(made, path=f"{NAME}2")])


def structure(_: Path) -> object:
    made = compared(mm(3, kernel=f"A{EVIL}"), mm(3, kernel=f"{EVIL}{LONG}", kernel_ns=20))
    return replace(made, base=replace(made.base, path=NAME))


MAKERS = [ladder, sweep, history, run, job, process, processes, trace, ranks, structure]


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def html(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    make: Callable[[Path], object] = request.param
    return to_html(make(tmp_path), CLASSIFIER)


def test_names_are_text_in_elements_and_in_icicles(html: str) -> None:
    script = html.index("<script>")
    assert html[:script].count("<script") == 1
    body = html[html.index("<body>") : script]
    elements = Elements(body).found
    assert {tag for tag, _ in elements} <= {
        *("body", "header", "main", "h1", "h2", "p", "details", "summary", "figure", "figcaption", "div", "label"),
        *(
            "input",
            "output",
            "button",
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "dl",
            "dt",
            "dd",
            "script",
        ),
        *("strong", "em", "span", "ul", "li", "i", "svg", "path", "line", "title", "rect", "defs", "pattern", "b"),
        *("g", "text", "circle"),
    }
    assert not [
        name for _, attributes in elements for name in attributes if name.startswith("on") or name in ("href", "src")
    ]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", html[:script])
    assert "window.hit=1" in body
    (drawn,) = re.findall('id="icicles">(.*?)</script>', html, re.DOTALL)
    texts = list(strings(json.loads(drawn)))
    assert not [text for text in texts if re.search("[\x00-\x1f\u202e]", text)]
    assert max(map(len, texts), default=0) < 1_000


def test_no_name_makes_a_page_large(html: str) -> None:
    assert len(html[: html.index("<script>")]) < 400_000
