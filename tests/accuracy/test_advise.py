"""What the script that validates ``advise`` makes of its documents."""

from __future__ import annotations

from typing import Any

import pytest

from overhead_lens.remedies.registry import built_in
from overhead_lens.worker.remedied import VARIANT
from scripts.validation import advise_programs
from scripts.validation.advise_programs import PROGRAMS, Flawed


def measured(name: str, ratio: float, verdict: str = "faster") -> dict[str, Any]:
    return {"remedy": name, "status": "measured", "wall": {"ratio": ratio}, "verdict": verdict, "output": "equal"}


def row(*remedies: dict[str, Any]) -> list[Any]:
    advice = {"base": {"wall": {"ns": 100}}, "verdict": "overhead", "remedies": list(remedies)}
    return advise_programs.row_of(FLAWED, advice, 7.5)


FLAWED = Flawed("loop", "a loop", ("f",), ("compile", "variant_at_once"))


def test_the_first_that_helps_has_to_undo_the_flaw() -> None:
    slower, other = measured("no_grad", 1.2, "slower"), measured("threads_1", 0.9)
    right = row(measured("compile", 0.6), other)
    assert right == [
        *("loop", "a loop", 100, "overhead", "compile", 0.4, "equal"),
        *("compile, variant_at_once", 7.5, True),
    ]
    assert row(other, measured("compile", 0.95))[-1] is False
    nothing = row(slower)
    assert (nothing[4:7], nothing[-1]) == ([None, None, None], False)


@pytest.mark.parametrize(
    ("verdict", "first", "right"), [("work", None, True), ("work", "compile", False), ("mixed", None, False)]
)
def test_where_nothing_is_wrong_nothing_may_help(verdict: str, first: str | None, right: bool) -> None:
    assert advise_programs.is_right(Flawed("matmul", "nothing", ("f",), ()), verdict, first) is right


def test_only_remedies_that_there_are_undo_a_flaw() -> None:
    known = {remedy.name for remedy in built_in()}
    named = {name for flawed in PROGRAMS for name in flawed.undone_by if not name.startswith(VARIANT)}
    assert named <= known
    assert sum(bool(flawed.undone_by) for flawed in PROGRAMS) == 10
