"""Differences in instructions: who is blamed, and what a gate allows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from overhead_lens.budget.model import InstructionBudget, InstructionCategory, InstructionFrame
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.instructions import (
    InstructionContributor,
    InstructionDelta,
    compare_instructions,
)
from overhead_lens.errors import InvariantError, UsageError
from overhead_lens.report.forms import to_junit, to_markdown
from overhead_lens.studies.check.gate import count_mismatches
from overhead_lens.studies.check.limits import BROKEN, KEPT, CountOutcome, Limit, check_counts, parse_limit
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES


def counted(frames: dict[str, dict[str, int]] | None = None, **counts: int) -> InstructionBudget:
    """A budget of one call; ``frames`` of a category make up all or some of it."""
    whole = sum(counts.values())
    host = tuple(
        InstructionCategory(
            name,
            counts.get(name, 0),
            frames=tuple(InstructionFrame(*each) for each in (frames or {}).get(name, {}).items()),
        )
        for name in HOST_CATEGORIES
    )
    return InstructionBudget(whole, whole, 1, host)


def guard_moves(delta: InstructionDelta) -> tuple[InstructionContributor, ...]:
    return delta.host[HOST_CATEGORIES.index("guard")].moved


BASE = counted({"guard": {"check": 900, "lookup": 100}}, python=9_000, guard=1_000)


def test_the_category_and_the_function_that_grew_are_named() -> None:
    delta = compare_instructions(
        BASE, counted({"guard": {"check": 890, "lookup": 150, "hash": 60}}, python=9_005, guard=1_100)
    )
    assert (delta.verdict, delta.delta_count, delta.blame) == ("more", 105, ("guard",))
    assert delta.sentence == "+105 instructions per call (+1.05%): guard +100"
    assert guard_moves(delta) == (
        InstructionContributor("hash", 60),
        InstructionContributor("lookup", 50),
        InstructionContributor("check", -10),
    )


@pytest.mark.parametrize(
    ("python", "guard", "verdict", "blame"),
    [
        (9_020, 1_000, "same", ()),
        (9_021, 1_000, "more", ("python",)),
        (8_979, 1_000, "fewer", ("python",)),
        (9_011, 1_011, "more", ("python",)),
        (9_030, 1_040, "more", ("guard", "python")),
        (9_100, 950, "more", ("python",)),
        (9_000, 1_000, "same", ()),
    ],
)
def test_who_is_blamed(python: int, guard: int, verdict: str, blame: tuple[str, ...]) -> None:
    delta = compare_instructions(BASE, counted(python=python, guard=guard))
    assert (delta.verdict, delta.blame) == (verdict, blame)


def test_swapped_sides_negate_everything() -> None:
    other = counted({"guard": {"check": 500}}, python=9_300, guard=800)
    there, back = compare_instructions(BASE, other), compare_instructions(other, BASE)
    assert [change.delta_count for change in back.host] == [-change.delta_count for change in there.host]
    assert [move.delta_count for move in guard_moves(back)] == [400, 100]


def test_a_difference_that_does_not_close_is_refused() -> None:
    delta = compare_instructions(BASE, BASE)
    with pytest.raises(InvariantError, match="do not sum"):
        InstructionDelta(1, 2, "more", delta.host, (), "")
    with pytest.raises(InvariantError, match="every category once"):
        InstructionDelta(1, 1, "same", delta.host[1:], (), "")


def test_what_cannot_be_compared() -> None:
    subject = Subject("scenario", "a", "a", compile=True)
    base = CaptureMeta(subject=subject, environment={"torch": "2.13.0", "host": "here", "cpu": "x"})
    elsewhere = CaptureMeta(subject=subject, environment={"torch": "2.13.0", "host": "there", "cpu": "y"})
    other = CaptureMeta(subject=replace(subject, compile=False), environment={"torch": "2.14.0"})
    assert count_mismatches(base, elsewhere) == []
    assert count_mismatches(base, other) == ["compile: True against False", "torch: '2.13.0' against '2.14.0'"]


@pytest.mark.parametrize(
    ("text", "limit", "state"),
    [
        ("instructions=1%", Limit("instructions", None, 0.01), KEPT),
        ("instructions=0.5%", Limit("instructions", None, 0.005), BROKEN),
        ("instructions.guard=120", Limit("instructions.guard", 120.0, None), KEPT),
        (" instructions.guard=119.5 ", Limit("instructions.guard", 119.5, None), BROKEN),
        ("instructions.guard=1.2%", Limit("instructions.guard", None, 0.012), KEPT),
        ("instructions.python=0%", Limit("instructions.python", None, 0.0), KEPT),
    ],
)
def test_limits_in_instructions(text: str, limit: Limit, state: str) -> None:
    parsed = parse_limit(text)
    assert parsed == limit
    assert parsed.counts
    # 100 more in all, 120 more in guard, 20 fewer in python.
    (finding,) = check_counts(compare_instructions(BASE, counted(python=8_980, guard=1_120)), [parsed])
    assert finding.state == state


@pytest.mark.parametrize(
    "text", ["instructions=100ns", "instructions.guards=1%", "instructions.total=1", "instructions.=1", "instructions"]
)
def test_what_is_no_limit_in_instructions(text: str) -> None:
    with pytest.raises(UsageError, match="--max"):
        parse_limit(text)


def test_a_gate_in_words_and_in_files() -> None:
    delta = compare_instructions(BASE, counted({"guard": {"a|b": 1_100}}, python=9_000, guard=1_100))
    limit = parse_limit("instructions=0.5%")
    findings = check_counts(delta, [limit])
    assert str(findings[0]) == "instructions: +100 (+1.00%), at most +50 (+0.50%) allowed: broken"
    outcome = CountOutcome(Subject("scenario", "drawn", "drawn"), "base", "new", 10, delta, findings, regressed=True)
    text = to_markdown(outcome)
    assert text.splitlines()[0] == "### Regression: drawn:drawn"
    assert "| instructions | +50 (+0.50%) | +100 (+1.00%) | exact | broken |" in text
    assert "| guard | 1,000 | 1,100 | +100 | +1.00% | +1,100 a\\|b |" in text
    assert 'failures="1"' in to_junit(outcome)
