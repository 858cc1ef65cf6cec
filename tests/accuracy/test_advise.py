"""What the scripts that validate ``advise`` make of its documents."""

from __future__ import annotations

from typing import Any

import pytest

from overhead_lens.remedies.registry import built_in
from overhead_lens.worker.remedied import VARIANT
from scripts.validation import advise_ladder, advise_nested, advise_nothing, advise_programs
from scripts.validation.advise_programs import PROGRAMS, Flawed
from scripts.validation.advising import Advised


def measured(name: str, base_ns: float, new_ns: float, half_ns: float = 1.0, verdict: str = "faster") -> dict[str, Any]:
    delta_ns = new_ns - base_ns
    wall = {
        **{"base_ns": base_ns, "new_ns": new_ns, "delta_ns": delta_ns, "ratio": new_ns / base_ns},
        "ci95_ns": [delta_ns - half_ns, delta_ns + half_ns],
    }
    return {"remedy": name, "status": "measured", "wall": wall, "verdict": verdict, "output": "equal"}


def advised(*remedies: dict[str, Any], verdict: str = "overhead") -> Advised:
    return Advised({"base": {"wall": {"ns": 100}}, "verdict": verdict, "remedies": list(remedies)}, 7.5)


FLAWED = Flawed("loop", "a loop", ("f",), ("compile", "variant_at_once"))


def test_the_first_that_helps_has_to_undo_the_flaw() -> None:
    slower, other = measured("no_grad", 100, 120, verdict="slower"), measured("threads_1", 100, 90)
    right = advise_programs.row_of(FLAWED, advised(measured("compile", 100, 60), other))
    assert right == [
        *("loop", "a loop", 100, "overhead", "compile", 0.4, "equal"),
        *("compile, variant_at_once", 7.5, True),
    ]
    assert advise_programs.row_of(FLAWED, advised(other, measured("compile", 100, 95)))[-1] is False
    nothing = advise_programs.row_of(FLAWED, advised(slower))
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


def test_verdicts_on_remedies_that_do_nothing_are_counted() -> None:
    idle = [
        *(measured(f"nothing_{number}", 100, 100, verdict="same") for number in range(5)),
        *(measured("nothing_5", 100, 98), measured("nothing_6", 100, 97)),
        measured("nothing_7", 100, 103, verdict="slower"),
        measured("nothing_8", 100, 99, verdict="inconclusive"),
    ]
    row = advise_nothing.row_of("add1", advised(measured("compile", 100, 50), *idle))
    assert row == ["add1", 9, 5, 1, 2, 1, 0.03, 7.5]


LADDER = {
    "rungs": [
        {"name": "eager", "step_ns": None, "step_ci95_ns": None, "reason": None},
        {"name": "compiled", "step_ns": 900.0, "step_ci95_ns": [880.0, 920.0], "reason": None},
        {"name": "guards_filtered", "step_ns": -50.0, "step_ci95_ns": [-53.0, -47.0], "reason": None},
        {"name": "cpp_wrapper", "step_ns": None, "step_ci95_ns": None, "reason": "no compiler"},
    ]
}


def test_rungs_are_held_against_the_compiled_call() -> None:
    assert advise_ladder.difference(LADDER, "eager") == (900.0, 20.0)
    assert advise_ladder.difference(LADDER, "guards_filtered") == (50.0, 3.0)
    assert advise_ladder.difference(LADDER, "cpp_wrapper") is None
    assert advise_ladder.difference(LADDER, "compiled_warm_heap") is None


@pytest.mark.parametrize(("saved_ns", "agree"), [(55.0, True), (45.0, True), (55.1, False), (44.9, False)])
def test_intervals_have_to_meet(saved_ns: float, agree: bool) -> None:
    # Half widths of 4 and 3 allow 5.
    said = advised(measured("guard_filter_all", 1_000, 1_000 - saved_ns, half_ns=4.0))
    row = advise_ladder.row_of("guard_filter_all", "guards_filtered", said, LADDER)
    assert row is not None
    assert row[-1] is agree


@pytest.mark.parametrize(("bare_ns", "right"), [(600, True), (550, True), (540, False), (666, True), (667, False)])
def test_ratios_within_a_tenth(bare_ns: float, right: bool) -> None:
    row = advise_nested.row_of("size_asserts_off", 1_000, bare_ns, advised(measured("size_asserts_off", 200, 120)))
    assert row[-1] is right
