"""What a budget that is refined shows, and when it is precise enough."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from overhead_lens import stored
from overhead_lens.errors import MeasurementError
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.terminal.refine import Refining
from tests.drawn.builders import breakdown

BUDGET = breakdown({}, python=600, kernel=400)


def budget(wall: tuple[float, float], python: tuple[float, float]) -> Any:
    host = tuple(
        replace(category, ci95_ns=python) if category.category == "python" else category for category in BUDGET.host
    )
    return replace(BUDGET, wall=replace(BUDGET.wall, ci95_ns=wall), host=host)


class Screen:
    """Keeps the text of what is shown."""

    def __init__(self, shows: bool = True) -> None:
        self.shows = shows
        self.texts: list[str] = []

    def begin(self, steps: int) -> None: ...

    def step(self, text: str) -> None: ...

    def show(self, result: RenderableType) -> None:
        console = Console(file=io.StringIO(), width=120)
        console.print(result)
        self.texts.append(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.fixture
def analyzed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The budgets that analyses give, in order; the last one again and again."""
    budgets: list[Any] = []

    def budget_of(_path: Path, _classifier: object) -> Any:
        found = budgets.pop(0) if len(budgets) > 1 else budgets[0]
        if isinstance(found, Exception):
            raise found
        return Analyzed(found)

    class Analyzed:
        def __init__(self, found: Any) -> None:
            self.breakdown = found

    monkeypatch.setattr(stored, "budget_of", budget_of)
    return budgets


def refining(screen: Screen, most: int = 5, until_share: float | None = None) -> Refining:
    return Refining(most, default_classifier(), screen, until_share)


def answers(watch: Refining, processes: int) -> list[str]:
    return [watch.so_far(lambda: Path(), number) for number in range(1, processes + 1)]


def test_precision_is_the_wider_of_wall_and_largest_category() -> None:
    assert budget((900, 1_100), (590, 610)).precision_share == 0.1
    assert budget((990, 1_010), (300, 900)).precision_share == 0.5


def test_the_range_of_few_processes_is_not_precise() -> None:
    made = budget((999, 1_001), (300, 900))
    few = replace(made, wall=replace(made.wall, interval="range of 3 processes"))
    assert few.precision_share == 0.5
    wide = replace(few, wall=replace(few.wall, ci95_ns=(0.0, 5_000.0)))
    assert wide.precision_share == 0.5


def test_every_budget_but_the_last_is_shown(analyzed: list[Any]) -> None:
    analyzed.append(BUDGET)
    screen = Screen()
    assert answers(refining(screen, most=3), 3) == ["", "", ""]
    first, second = screen.texts
    assert "1 of 3 processes; how processes differ is not in the intervals yet" in first
    assert "2 of 3 processes; further ones narrow the intervals" in second
    assert all("sum = wall" in text and "python dominates" in text for text in screen.texts)


def test_nothing_is_analyzed_for_nobody(analyzed: list[Any]) -> None:
    analyzed.append(AssertionError("analyzed"))
    assert answers(refining(Screen(shows=False)), 5) == [""] * 5


def test_too_little_for_a_budget_is_not_shown(analyzed: list[Any]) -> None:
    analyzed += [MeasurementError("no samples"), BUDGET]
    screen = Screen()
    answers(refining(screen), 2)
    assert len(screen.texts) == 1


def test_until_looks_after_three_processes_and_then_every_other_one(analyzed: list[Any]) -> None:
    wide, narrow = budget((900, 1_100), (500, 700)), budget((980, 1_020), (582, 618))
    analyzed += [wide, narrow]
    assert answers(refining(Screen(shows=False), 25, 0.03), 5) == [
        *("", "", "", ""),
        "--until 3% was reached with 5 processes: 3.00%",
    ]


def test_until_looks_less_often_where_processes_measure_several_at_once(analyzed: list[Any]) -> None:
    wide, narrow = budget((900, 1_100), (500, 700)), budget((980, 1_020), (582, 618))
    analyzed += [wide, narrow]
    watch = refining(Screen(shows=False), 25, 0.03)
    said = [watch.so_far(lambda: Path(), number) for number in (2, 3, 4, 6)]
    assert said == ["", "", "", "--until 3% was reached with 6 processes: 3.00%"]


def test_what_is_needed_can_be_imported() -> None:
    refining(Screen()).prepare()


def test_until_says_where_it_stands_after_the_most(analyzed: list[Any]) -> None:
    analyzed.append(budget((900, 1_100), (500, 700)))
    *before, last = answers(refining(Screen(shows=False), 6, 0.03), 6)
    assert before == [""] * 5
    assert last == "--until 3% was not reached: 16.67% after 6 processes, the most"


def test_until_is_said_as_it_was_asked_for(analyzed: list[Any]) -> None:
    analyzed.append(budget((997.4, 1_002.6), (599, 601)))
    *_, last = answers(refining(Screen(shows=False), 3, 0.0025), 3)
    assert last == "--until 0.25% was not reached: 0.26% after 3 processes, the most"
