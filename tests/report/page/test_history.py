"""The page of a history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

import pytest

from overhead_lens.report.outline import Table
from overhead_lens.report.outlines.history import MOST_POINTS, history_outline
from overhead_lens.studies.history.analysis import ENVIRONMENT, History, Point, Skipped, canonical, make_history
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.report.page.seen import headings, plots, rows, series, words

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
    page = history_outline(history)
    title = history.series[0].title
    (plot,) = plots(page, title)
    points = series(plot)
    segment = history.series[0].segments[0]
    assert set(points) == {"wall", "python", "kernel"}
    for name in ("wall", "python", "kernel"):
        assert points[name].y == [each.ns[name] for each in segment.points]
    (upright,) = plot.uprights
    assert (upright.x, upright.text, upright.interval) == (13.5, "1", (13, 14))
    levels = [each for each in plot.series if each.form == "line" and each.ink == points["python"].ink]
    assert levels[0].x == [-0.5, 13.5, 13.5, 13.5, 23.5, 23.5]
    assert levels[0].y == [level for ns in (1_000, 1_400) for level in (*[pytest.approx(ns, abs=3)] * 2, None)]
    (_, change), (heads, *_) = rows(page, title)
    assert change[:2] == ["1", segment.changes[0].sentence]
    assert heads == ["category", "trend", "from 0000000000 (14)", "95 %", "from 000000000e (10)", "95 %"]
    assert page.sentence == f"{title}: {segment.changes[0].sentence}."


def test_without_a_change_and_with_what_was_skipped() -> None:
    page = history_outline(stepped(change=99, **{"traces/bad": "cut off"}))
    assert page.sentence == "No change point in 1 series of captures."
    assert headings(page) == [
        *("add1:add1, eager, cpu  size=10", "Skipped: 1 damaged", "What a change point is worth"),
    ]
    assert "no change point" in words(page, headings(page)[0])
    assert rows(page, "Skipped: 1 damaged")[0][1:] == [["damaged", "traces/bad", "cut off"]]


def test_of_many_captures_the_last_are_drawn_and_that_is_said() -> None:
    history = stepped(count=MOST_POINTS + 5, change=10**6)
    page = history_outline(history)
    (plot,) = plots(page, headings(page)[0])
    wall = series(plot)["wall"]
    assert wall.y == [each.ns["wall"] for each in history.series[0].segments[0].points[5:]]
    assert len(wall.y) == MOST_POINTS
    (table,) = [block for block in page.sections[0].blocks if isinstance(block, Table)]
    assert table.caption.endswith(f"the chart shows the last {MOST_POINTS} captures")


def test_the_latest_of_several_changes_is_the_answer() -> None:
    first = [point(at, {"python": 1_000 + 400 * (at >= 6)}) for at in range(12)]
    second = [point(at, {"kernel": 900 - 300 * (at >= 20)}, "later") for at in range(12, 28)]
    history = make_history("traces", [*first, *second], [], [])
    page = history_outline(history)
    assert page.sentence.startswith("later:add1, eager, cpu  size=10: kernel -300 ns")
    assert page.sentence.endswith("It is the latest of 2 changes.")
