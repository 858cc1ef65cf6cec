"""The page of a history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from overhead_lens.report.page import history as page_of
from overhead_lens.report.page.history import history_page
from overhead_lens.studies.history.analysis import ENVIRONMENT, History, Point, Skipped, canonical, make_history
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import charts, headings, notes, tables, traces, words

SUBJECT = {"kind": "scenario", "variant": "add1", "params": {"size": 10}, "compile": False, "device": "cpu"}
JITTER = (0, 3, -2, 1, -1, 2)


def point(number: int, ns: Mapping[str, float], name: str = "add1") -> Point:
    jitter = JITTER[number % len(JITTER)]
    times: dict[str, float] = {
        category: ns.get(category, 0) + jitter * bool(ns.get(category)) for category in HOST_CATEGORIES
    }
    times["wall"] = sum(times.values())
    return Point(
        f"traces/{number}",
        canonical({"subject": {**SUBJECT, "name": name}, "compile_options": None}),
        canonical(dict.fromkeys(ENVIRONMENT, "same")),
        datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=number),
        f"{number:010x}",
        times,
        {category: (each - 5, each + 5) for category, each in times.items()},
        100.0,
        "loop",
    )


def stepped(count: int = 24, change: int = 14, **skipped: str) -> History:
    points = [point(at, {"python": 1_000 + 400 * (at >= change), "kernel": 500}) for at in range(count)]
    return make_history("traces", points, [Skipped(path, "damaged", why) for path, why in skipped.items()], [])


def test_captures_levels_and_the_change() -> None:
    history = stepped()
    page = history_page(history, CLASSIFIER)
    title = history.series[0].title
    (chart,) = charts(page, title)
    points = traces(chart)
    segment = history.series[0].segments[0]
    assert set(points) == {"wall", "python", "kernel"}
    for name in ("wall", "python", "kernel"):
        assert points[name]["y"] == [each.ns[name] for each in segment.points]
    (band, line) = chart.figure["layout"]["shapes"]
    assert (line["x0"], band["x0"], band["x1"]) == (13.5, 13, 14)
    assert notes(chart) == [" 1"]
    levels = [trace for trace in chart.figure["data"] if trace["mode"] == "lines" and trace["legendgroup"] == "python"]
    assert levels[0]["x"] == [-0.5, 13.5, None, 13.5, 23.5, None]
    changes, between = tables(page, title)
    assert [row[:2] for row in changes.rows] == [("1", segment.changes[0].sentence)]
    assert between.heads == ("category", "from 0000000000 (14)", "from 000000000e (10)")
    assert page.answer == f"{title}: {segment.changes[0].sentence}."


def test_without_a_change_and_with_what_was_skipped() -> None:
    page = history_page(stepped(change=99, **{"traces/bad": "cut off"}), CLASSIFIER)
    assert page.answer == "No change point in 1 series of captures."
    assert headings(page) == ["add1:add1, eager, cpu  size=10", "Skipped", "Method"]
    assert "no change point" in words(page, headings(page)[0])
    assert tables(page, "Skipped")[0].rows == [("damaged", "traces/bad", "cut off")]


def test_of_many_captures_the_last_are_drawn_and_that_is_said() -> None:
    history = stepped(count=page_of._MOST_POINTS + 5, change=10**6)
    page = history_page(history, CLASSIFIER)
    (chart,) = charts(page, headings(page)[0])
    shown = traces(chart)["wall"]["x"]
    assert (shown[0], len(shown)) == (5, page_of._MOST_POINTS)
    assert any(f"the last {page_of._MOST_POINTS}" in text for text in words(page, headings(page)[0]))


def test_the_latest_of_several_changes_is_the_answer() -> None:
    first = [point(at, {"python": 1_000 + 400 * (at >= 6)}) for at in range(12)]
    second = [point(at, {"kernel": 900 - 300 * (at >= 20)}, "later") for at in range(12, 28)]
    history = make_history("traces", [*first, *second], [], [])
    page = history_page(history, CLASSIFIER)
    assert page.answer.startswith("later:add1, eager, cpu  size=10: kernel -300 ns")
    assert page.answer.endswith("It is the latest of 2 changes.")
