"""Limits: what is allowed, what breaks one, and what only puts it in doubt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from overhead_lens.comparison.model import CategoryChange, Contributor, Delta
from overhead_lens.errors import UsageError
from overhead_lens.report.forms import to_junit, to_markdown
from overhead_lens.studies.check.gate import confirmed
from overhead_lens.studies.check.limits import (
    BROKEN,
    DOUBTFUL,
    KEPT,
    Finding,
    Limit,
    TimeOutcome,
    check_limits,
    parse_limit,
)
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.drawn.builders import breakdown


def delta(guard_ns: int, spread_ns: float, name: str = "drawn", moved: str = "f (a.py)") -> Delta:
    """``guard`` grew by so much of a call of 10,000 ns, give or take ``spread_ns``."""
    base, new = (breakdown(scenario=name, python=8_000, guard=2_000 + more) for more in (0, guard_ns))
    interval = (guard_ns - spread_ns, guard_ns + spread_ns)
    host = tuple(
        CategoryChange(each, guard_ns, interval, "slower", (Contributor("frame", moved, guard_ns),))
        if each == "guard"
        else CategoryChange(each, 0, (-spread_ns, spread_ns), "same")
        for each in HOST_CATEGORIES
    )
    return Delta(
        base,
        new,
        "slower",
        0.01,
        guard_ns,
        interval,
        1 + guard_ns / 10_000,
        host,
        ("guard",),
        "slower: guard",
        0.01,
        ("w",),
    )


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("total=3%", Limit("total", None, 0.03)),
        ("guard=100ns", Limit("guard", 100.0, None)),
        ("kernel=1.5us", Limit("kernel", 1_500.0, None)),
        (" allocation=2ms ", Limit("allocation", 2e6, None)),
        ("python=0%", Limit("python", None, 0.0)),
    ],
)
def test_what_a_limit_says(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit


@pytest.mark.parametrize(
    "text", ["", "total", "total=", "total=3", "guards=3%", "total=-3%", "total=3 %", "total=1e3ns", "=3%"]
)
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(UsageError, match="--max takes NAME=NUMBER and %, ns, us or ms"):
        parse_limit(text)


@pytest.mark.parametrize(
    ("limit", "spread_ns", "state"),
    [
        ("guard=300ns", 1.0, KEPT),
        ("guard=299ns", 1.5, DOUBTFUL),
        ("guard=299ns", 0.5, BROKEN),
        ("total=3%", 1.0, KEPT),
        ("total=2%", 99.0, BROKEN),
        ("total=2%", 100.0, DOUBTFUL),
        ("python=0%", 50.0, KEPT),
    ],
)
def test_broken_only_where_the_whole_interval_is_above(limit: str, spread_ns: float, state: str) -> None:
    (finding,) = check_limits(delta(300, spread_ns), [parse_limit(limit)])
    assert finding.state == state


def test_a_difference_that_rounds_to_what_is_allowed_breaks_the_limit_above_it() -> None:
    (finding,) = check_limits(replace(delta(100, 0.0), wall_ci95_ns=(100.1, 100.5)), [parse_limit("total=1%")])
    assert (finding.delta, finding.allowed, finding.state) == (100, 100.0, BROKEN)


def test_stacks_and_a_trace_keep_and_break_no_limit_of_a_category() -> None:
    found = delta(300, 0.5)
    host = tuple(replace(each, evidence="trace" if each.ns else "none") for each in found.new.host)
    unlike = replace(found, new=replace(found.new, host=host))
    limits = [parse_limit(text) for text in ("guard=299ns", "python=0%", "total=2%")]
    assert [finding.state for finding in check_limits(found, limits)] == [BROKEN, KEPT, BROKEN]
    assert [finding.state for finding in check_limits(unlike, limits)] == [DOUBTFUL, KEPT, BROKEN]


def test_a_finding_in_words() -> None:
    (finding,) = check_limits(delta(300, 20.0), [parse_limit("total=1%")])
    assert str(finding) == "total: +300 ns [+280 ns .. +320 ns], at most +100 ns allowed: broken"


def test_markdown_is_a_summary_that_names_cannot_break() -> None:
    found = delta(300, 20.0, moved="<b>|x| `y`\n*z*")
    text = to_markdown(
        TimeOutcome(found, check_limits(found, [parse_limit("total=1%"), parse_limit("guard=1us")]), regressed=True)
    )
    assert text.startswith(
        "### Regression: drawn:drawn\n\nslower: guard.\n\n10.00 µs → 10.30 µs per call (1.030x): slower\n\ndrawn, eager, cpu\n"
    )
    assert "| total | +100 ns | +300 ns | +280 ns .. +320 ns | broken |" in text
    assert "| guard | +1.00 µs | +300 ns | +280 ns .. +320 ns | kept |" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| guard | 2.00")]
    assert row.endswith(r"| slower | +300 ns &lt;b>\|x\| \`y\`\\n\*z\* |")
    assert text.endswith("\n- w\n")


def test_junit_has_a_case_per_limit() -> None:
    found = delta(300, 20.0, name='<&"')
    findings = check_limits(found, [parse_limit("total=1%"), parse_limit("guard=1us")])
    suite = ET.fromstring(to_junit(TimeOutcome(found, findings, regressed=True)))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    broken, kept = suite.findall("testcase")
    assert broken.get("classname") == 'overhead-lens.<&":<&"'
    assert broken.find("failure") is not None
    assert (kept.get("name"), kept.find("failure")) == ("guard", None)


def test_junit_without_limits_is_the_verdict() -> None:
    for regressed in (True, False):
        (case,) = ET.fromstring(to_junit(TimeOutcome(delta(300, 20.0), (), regressed=regressed))).findall("testcase")
        assert (case.get("name"), case.find("failure") is not None) == ("verdict", regressed)


def outcome(guard_ns: int, *limits: str, spread_ns: float = 10.0) -> TimeOutcome:
    """A capture whose ``guard`` grew by so much, held against limits."""
    found = delta(guard_ns, spread_ns)
    findings = check_limits(found, [parse_limit(limit) for limit in limits])
    return TimeOutcome(found, findings, regressed=any(finding.state == BROKEN for finding in findings) or not limits)


def never() -> TimeOutcome:
    raise AssertionError("a second capture is recorded")


def once(second: TimeOutcome) -> Callable[[], TimeOutcome]:
    """Gives an outcome, the first time."""
    left = [second]
    return left.pop


def test_a_capture_that_keeps_its_limits_decides() -> None:
    first = outcome(100, "total=1%")
    assert confirmed(first, never) is first


def test_a_second_capture_that_keeps_the_limits_passes_and_says_why_there_are_two() -> None:
    found = confirmed(outcome(300, "total=1%"), once(outcome(50, "total=1%")))
    assert not found.regressed
    assert (found.delta.wall_delta_ns, [finding.state for finding in found.findings]) == (50, [KEPT])
    assert found.delta.warnings == (
        (
            "this is the second of two captures, since the first one failed: "
            "total: +300 ns [+290 ns .. +310 ns], at most +100 ns allowed: broken"
        ),
        "w",
    )


def test_two_captures_that_break_the_limit_fail() -> None:
    found = confirmed(outcome(300, "total=1%"), once(outcome(200, "total=1%")))
    assert found.regressed
    assert [str(finding) for finding in found.findings] == [
        "total: +200 ns [+190 ns .. +210 ns], at most +100 ns allowed: broken"
    ]


def test_a_limit_that_only_the_second_capture_breaks_is_in_doubt() -> None:
    found = confirmed(outcome(300, "total=1%", "guard=400ns"), once(outcome(500, "total=9%", "guard=400ns")))
    assert not found.regressed
    assert [finding.state for finding in found.findings] == [KEPT, DOUBTFUL]


def test_without_limits_two_verdicts_decide() -> None:
    same = TimeOutcome(delta(0, 10.0), (), regressed=False)
    assert confirmed(outcome(300), once(outcome(200))).regressed
    found = confirmed(outcome(300), once(same))
    assert not found.regressed
    assert found.delta.warnings[0].endswith("since the first one failed: slower: guard")


def test_instructions_that_break_their_limit_are_not_counted_again() -> None:
    timed = outcome(300, "total=1%")
    counted = Finding(Limit("instructions", 10, None), 10, 11, BROKEN, base_count=1_000)
    first = TimeOutcome(timed.delta, [*timed.findings, counted], regressed=True)
    assert confirmed(first, never) is first
