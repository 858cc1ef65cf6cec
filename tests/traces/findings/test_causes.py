"""Drawn programs with one cause at some 40 % of each step: it is the first finding, bounded by what taking it out saves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.report.outlines.recorded.findings import headline
from tests.drawn.causes import LAUNCH_NS, Act, drawing, without_cause
from tests.drawn.timelines import analyzer_of

_FINDINGS = {
    "communicate": "exposed_communication",
    "download": "blocking_copies",
    "upload": "copies_to_device",
    "data": "data_loading",
    "python": "host_python",
    "compile": "compilation",
    "allocate": "driver_allocations",
    "grow": "memory_growth",
    "launches": "host_bound",
}
_CLOSE = 0.05


@st.composite
def programs(draw: st.DrawFn, cause: str) -> list[list[Act]]:
    """Steps whose device is busy for some 60 % of the time, or as good as never where it is the launches' turn."""
    kernels = draw(st.integers(24, 40))
    lengths = [draw(st.integers(10, 30)) * 1_000 for _ in range(kernels)]
    work_ns = sum(lengths)
    more_ns = work_ns * 2 // 3
    if cause == "launches":
        step = [
            act for ns in lengths for act in (Act("launch", ns // 10), Act("python", draw(st.integers(2, 9)) * 1_000))
        ]
        return [step] * draw(st.integers(4, 6))
    step = [Act("launch", ns) for ns in lengths]
    at = draw(st.integers(2, kernels - 2))
    if cause == "communicate":
        step.insert(at, Act(cause, more_ns, is_cause=True))
    elif cause == "download":
        step.append(Act(cause, more_ns, is_cause=True))
    else:
        step += [Act("synchronize", 0), Act(cause, more_ns, is_cause=True)]
    return [step] * draw(st.integers(4, 6))


@pytest.mark.parametrize("cause", _FINDINGS)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_cause_is_found_first_and_bounded(cause: str, data: st.DataObject) -> None:
    steps = data.draw(programs(cause))
    events, wall_ns = drawing(steps)
    analysis = analyzer_of(*events).analysis()
    first = analysis.findings[0]
    assert first.id == _FINDINGS[cause]
    assert "No single cause" not in headline(analysis)
    saved_ns = wall_ns - _fastest(steps, cause)
    assert saved_ns >= 0.25 * wall_ns
    assert abs(first.bound_ns - saved_ns) <= _CLOSE * saved_ns


def _fastest(steps: Sequence[Sequence[Act]], cause: str) -> int:
    """How long the program takes without the cause; without launches of the host the device's own work."""
    if cause == "launches":
        return sum(act.ns for acts in steps for act in acts if act.what == "launch") + 2 * LAUNCH_NS
    return drawing(without_cause(steps))[1]
