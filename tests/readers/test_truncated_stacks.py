from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.readers.py_spy.stacks import parse_frame
from overhead_lens.readers.py_spy.truncated_stacks import UNKNOWN_CALLER, completed
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import default_classifier

LOOP, WRAPPER, GUARD = (
    "measured_loop (loop.py:4)",
    "compile_wrapper (torch/_dynamo/eval_frame.py:9)",
    "guard (user.py:7)",
)
EVAL, CHECK = "dynamo__custom_eval_frame (libtorch_python.so)", "lookup (libtorch_python.so)"
PYTHON_CLOCK, CLOCK, VDSO = (
    "time_perf_counter_ns (libpython3.11.so)",
    "clock_gettime (libc.so.6)",
    "0x7f51bd803b46 ([vdso])",
)


def stack(*frames: str, count: int = 1) -> Stack:
    return Stack(tuple(map(parse_frame, frames)), count)


IN_GUARD = (LOOP, WRAPPER, EVAL, CHECK, GUARD)
TRUNCATED = (LOOP, WRAPPER, GUARD, CLOCK, VDSO)


def test_what_was_cut_off_is_taken_from_a_whole_stack_of_the_same_python_frames() -> None:
    whole = [stack(*IN_GUARD, count=5), stack(*IN_GUARD, PYTHON_CLOCK, CLOCK, count=2)]
    assert completed([[*whole, stack(*TRUNCATED, count=3)]]) == [[*whole, stack(*IN_GUARD, PYTHON_CLOCK, count=3)]]


def test_then_it_belongs_to_the_guard() -> None:
    classifier = default_classifier()
    truncated = stack(*TRUNCATED, count=3)
    found = completed([[stack(*IN_GUARD, PYTHON_CLOCK, CLOCK), truncated]])[0][-1]
    assert classifier.classify(truncated).attribution.category == "python"
    assert classifier.classify(found).attribution.category == "guard"


def test_a_step_to_an_address_in_no_module_makes_no_stack_whole() -> None:
    whole = stack(*IN_GUARD, PYTHON_CLOCK, CLOCK)
    strayed = stack(LOOP, WRAPPER, GUARD, "0x7ffd1c3a2f10 (?)", CLOCK, VDSO, count=3)
    assert completed([[whole, strayed]]) == [[whole, stack(*IN_GUARD, PYTHON_CLOCK, count=3)]]


def test_its_python_frames_keep_their_lines() -> None:
    other_line = "guard (user.py:8)"
    found = completed([[stack(*IN_GUARD, PYTHON_CLOCK, CLOCK), stack(LOOP, WRAPPER, other_line, CLOCK, VDSO)]])[0][-1]
    assert found == stack(LOOP, WRAPPER, EVAL, CHECK, other_line, PYTHON_CLOCK)


def test_whole_stacks_of_another_process_tell_it_too() -> None:
    whole = stack(*IN_GUARD, PYTHON_CLOCK, CLOCK)
    assert completed([[stack(*TRUNCATED)], [whole]]) == [[stack(*IN_GUARD, PYTHON_CLOCK)], [whole]]


def test_a_function_known_to_read_the_clock_is_on_the_way_to_it() -> None:
    # Nobody was met in the clock's own function under these Python frames; elsewhere time_perf_counter_ns was seen to call it.
    elsewhere = stack(LOOP, PYTHON_CLOCK, CLOCK)
    way = stack(*IN_GUARD, PYTHON_CLOCK)
    assert completed([[elsewhere, way, stack(*TRUNCATED)]]) == [[elsewhere, way, way]]


def test_nobody_need_be_met_in_the_clock_itself_where_its_readers_are_well_known() -> None:
    whole = [stack(*IN_GUARD, PYTHON_CLOCK), stack(*IN_GUARD, "bisect_left (libpython3.11.so)", count=9)]
    assert completed([[*whole, stack(*TRUNCATED)]]) == [[*whole, stack(*IN_GUARD, PYTHON_CLOCK)]]


def test_two_ways_to_the_clock_share_in_proportion() -> None:
    kernel = "reading_kernel (libextension.so)"
    one, other = (LOOP, PYTHON_CLOCK), (LOOP, "torch::op (libtorch_python.so)", kernel)
    whole = [stack(*one, CLOCK, count=30), stack(*other, CLOCK, count=10)]
    assert completed([[*whole, stack(LOOP, CLOCK, VDSO, count=7), stack(LOOP, CLOCK, VDSO, count=1)]]) == [
        [*whole, stack(*one, count=6), stack(*other, count=2)]
    ]


def test_without_a_whole_stack_what_called_the_clock_is_not_known() -> None:
    # The whole stack is in the guard, but not on the way to the clock.
    whole = stack(*IN_GUARD)
    found = completed([[whole, stack(*TRUNCATED, count=4)]])[0]
    assert found == [whole, Stack((*stack(*IN_GUARD).frames, UNKNOWN_CALLER), 4)]
    assert default_classifier().classify(found[1]).attribution.category == "guard"


def test_nor_is_what_leads_to_it_where_whole_stacks_disagree() -> None:
    whole = [stack(*IN_GUARD), stack(LOOP, WRAPPER, "call_it (libextension.so)", GUARD, count=9)]
    found = completed([[*whole, stack(*TRUNCATED, count=4)]])[0]
    assert found == [*whole, Stack((*stack(LOOP, WRAPPER, GUARD).frames, UNKNOWN_CALLER), 4)]
    assert default_classifier().classify(found[-1]).attribution.category == "unattributed"


def test_what_calls_the_clock_above_a_python_frame_is_not_on_the_way() -> None:
    # One caller of the clock runs Python code, too: what was seen there tells nothing of who read the clock more often.
    timed = "timed_call (libextension.so)"
    whole = [
        stack(LOOP, timed, CLOCK),
        stack(LOOP, PYTHON_CLOCK, CLOCK),
        stack(LOOP, timed, GUARD, count=98),
    ]
    found = completed([[*whole, stack(LOOP, CLOCK, VDSO, count=2), stack(LOOP, GUARD, CLOCK, VDSO)]])[0][len(whole) :]
    assert found == [
        stack(LOOP, timed),
        stack(LOOP, PYTHON_CLOCK),
        Stack((*stack(LOOP, timed, GUARD).frames, UNKNOWN_CALLER), 1),
    ]


def test_a_stack_that_is_whole_in_spite_of_the_vdso_stays() -> None:
    whole = stack(*IN_GUARD, PYTHON_CLOCK, CLOCK, CLOCK, VDSO)
    assert completed([[whole, stack(*TRUNCATED)]]) == [[whole, stack(*IN_GUARD, PYTHON_CLOCK)]]


def test_without_the_vdso_nothing_changes() -> None:
    groups = [[stack(LOOP, GUARD, CLOCK), stack(*IN_GUARD)], [stack(LOOP)]]
    assert completed(groups) == groups


COUNTS = st.lists(st.integers(min_value=1, max_value=1_000), min_size=1, max_size=5)


@given(ways=COUNTS, cut=COUNTS)
def test_no_stack_is_lost(ways: list[int], cut: list[int]) -> None:
    whole = [stack(LOOP, f"caller_{number} (lib.so)", CLOCK, count=count) for number, count in enumerate(ways)]
    groups = [whole, *([stack(LOOP, CLOCK, VDSO, count=count)] for count in cut)]
    found = completed(groups)
    assert [sum(each.count for each in group) for group in found] == [sum(ways), *cut]
    assert all(each.count > 0 for group in found for each in group)
