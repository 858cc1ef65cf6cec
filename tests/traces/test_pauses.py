"""Pauses of the profiler itself: they name no thread, and are nothing that the program did."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.taxonomy.torch_names import PROFILER_PAUSE
from overhead_lens.traces.host import host_events
from tests.drawn.timelines import (
    AUTOGRAD,
    CLASSIFIER,
    MAIN,
    analyzer_of,
    blame,
    call,
    drawn,
    host,
    kernel,
    timed,
    trace_of,
)


def pause(drawing: str, name: str = PROFILER_PAUSE) -> dict:
    return drawn(drawing, name, "overhead", (-1, 0))


def test_a_pause_interrupts_the_innermost_operator_around_it() -> None:
    analysis = analyzer_of(
        drawn("[-------------------------)      ", "aten::linear"),
        drawn("  [----------------)             ", "aten::addmm"),
        pause("     [----)                      "),
        call("                [)               ", 1),
        # Not in one operator from its start to its end; and nothing that stops this thread.
        pause("                         [---)   "),
        pause("                    [---)        ", "Buffer Flush"),
        kernel("                              [-)", 1),
    ).analysis()
    assert host(analysis.host) == {"dispatcher": 26 - 5 - 1, "unattributed": 5 + 6, "launch": 1}
    (device,) = analysis.devices
    assert blame(device) == {}
    (addmm,) = (cost for cost in analysis.operators if cost.name == "aten::addmm")
    assert (addmm.self_ns, addmm.category) == (17 - 5 - 1, "dispatcher")


def test_an_operator_of_that_name_is_no_pause() -> None:
    analysis = analyzer_of(drawn("[---------)", "aten::mm"), drawn("  [---)    ", PROFILER_PAUSE)).analysis()
    assert sum(host(analysis.host).values()) == 10
    assert [(each.name, each.self_ns, each.count) for each in analysis.operators] == [
        ("aten::mm", 6, 1),
        (PROFILER_PAUSE, 4, 1),
    ]


def test_a_pause_outside_of_all_operators_is_left_out() -> None:
    analysis = analyzer_of(drawn("[---)      ", "aten::mm"), pause("    [--)   ")).analysis()
    assert host(analysis.host) == {"dispatcher": 4}


@pytest.mark.parametrize("thread", [MAIN, AUTOGRAD])
def test_its_thread_is_that_of_what_it_interrupts(thread: tuple[int, int]) -> None:
    other = AUTOGRAD if thread == MAIN else MAIN
    analyzer = analyzer_of(
        drawn("[---------)       ", "aten::mm", thread=thread),
        # Longer and open as well, but it began earlier; a call of the runtime and an annotation hold no pause.
        timed(-5, 100, "aten::cat", thread=other),
        call("  [------)        ", 1, thread=other),
        drawn("  [-----)         ", "step", "user_annotation", other),
        pause("   [---)          "),
    )
    by_thread = {(each.pid, each.tid): host(each.host) for each in analyzer.analysis().threads}
    assert by_thread[str(thread[0]), str(thread[1])]["unattributed"] >= 4
    assert by_thread[str(thread[0]), str(thread[1])]["dispatcher"] == 10 - 4


@settings(max_examples=50)
@given(data=st.data())
def test_every_pause_that_an_operator_holds_counts_there(data: st.DataObject) -> None:
    draw = data.draw(st.randoms(use_true_random=False))
    starts = draw.sample(range(2_000), 60)
    operators = [(start, draw.randint(1, 200), AUTOGRAD if draw.random() < 0.3 else MAIN) for start in starts]
    pauses = [(50 * slot + draw.randint(0, 20), draw.randint(1, 30)) for slot in range(40) if draw.random() < 0.7]
    entries = [timed(start, dur, "aten::mm", thread=thread) for start, dur, thread in operators]
    entries += [timed(start, dur, PROFILER_PAUSE, "overhead", (-1, 0)) for start, dur in pauses]
    held = {MAIN: 0, AUTOGRAD: 0}
    for start, dur in pauses:
        around = [each for each in operators if each[0] <= start and start + dur <= each[0] + each[1]]
        if around:
            held[max(around)[2]] += dur
    found = host_events(trace_of(entries).columns, CLASSIFIER)
    assert found.rows.tolist() == sorted(found.rows.tolist())
    shown = {MAIN: 0, AUTOGRAD: 0}
    for name, thread, ns in zip(found.name.tolist(), found.thread.tolist(), found.dur_ns.tolist(), strict=True):
        pid, tid = found.threads[thread]
        shown[int(pid), int(tid)] += ns if found.names[name] == PROFILER_PAUSE else 0
    assert shown == held
