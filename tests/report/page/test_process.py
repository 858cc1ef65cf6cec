"""The page of a watched process, and of two watches."""

from __future__ import annotations

from pathlib import Path

from overhead_lens.report.page.process import process_delta_page, process_page
from overhead_lens.studies.attach.delta import ProcessDelta, compare_processes
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import charts, headings, notes, section, tables, words
from tests.studies.test_attach import drawn, thread

LINES = [*thread(10, "MainThread", 600, 400), *thread(11, "idle", 0, 1000), *thread(12, "busy", 900, 100)]


def test_a_bar_a_thread_the_main_one_first(tmp_path: Path) -> None:
    page = process_page(drawn(tmp_path / "p", *LINES), CLASSIFIER)
    (chart,) = charts(page, "Threads")
    assert notes(chart)[::2] == ["<b>MainThread</b>", "<b>busy</b>", "<b>idle</b>"]
    assert notes(chart)[1::2] == ["busy 60% of 10.00 s", "busy 90% of 10.00 s", "busy 0% of 10.00 s"]
    found = {trace["name"]: list(zip(trace["y"], trace["x"], strict=True)) for trace in chart.figure["data"]}
    assert found == {"python": [(0, 0.6), (1, 0.9)], "wait": [(0, 0.4), (1, 0.1), (2, 1.0)]}
    (table,) = tables(page, "Threads")
    assert [row[0] + row[2] for row in table.rows] == ["MainThread6.00 s", "busy9.00 s", "idle"]


def test_an_icicle_for_each_thread_at_work_and_only_the_main_ones_is_open(tmp_path: Path) -> None:
    page = process_page(drawn(tmp_path / "p", *LINES), CLASSIFIER)
    of = ["Stacks of MainThread", "Stacks of busy"]
    assert [heading for heading in headings(page) if heading.startswith("Stacks")] == of
    assert [section(page, heading).is_open for heading in of] == [True, False]
    tree = charts(page, of[1])[0].figure["data"][0]
    assert tree["values"] == [1_000, 1_000, 100]
    assert tree["labels"][:2] == ["all stacks of busy", "train (train.py:3)"]


def test_a_watch_whose_directory_is_gone_says_so(tmp_path: Path) -> None:
    process = drawn(tmp_path / "p", *LINES)
    (tmp_path / "p").rename(tmp_path / "q")
    assert words(process_page(process, CLASSIFIER), "Stacks") == [f"No stacks to draw: no process {tmp_path / 'p'}"]


def two(folder: Path) -> ProcessDelta:
    folder.mkdir(exist_ok=True)
    before = [*thread(10, "MainThread", 500, 500), *thread(11, "even", 500, 500), *thread(12, "gone", 1, 1)]
    after = [*thread(10, "MainThread", 800, 200), *thread(11, "even", 500, 500)]
    return compare_processes(drawn(folder / "a", *before), drawn(folder / "b", *after), 0.01)


def test_two_watches(tmp_path: Path) -> None:
    page = process_delta_page(two(tmp_path), CLASSIFIER)
    assert headings(page) == ["MainThread", "Other threads", "Warnings"]
    (chart,) = charts(page, "MainThread")
    assert notes(chart)[::2] == ["<b>before</b>", "<b>after</b>"]
    assert {trace["name"]: trace["x"] for trace in chart.figure["data"]} == {"python": [0.5, 0.8], "wait": [0.5, 0.2]}
    assert tables(page, "MainThread")[0].rows[0][:4] == ("python", "50.0%", "80.0%", "+30.0 points")
    assert words(page, "Other threads") == ["1 other thread divides as before", "gone: gone"]
