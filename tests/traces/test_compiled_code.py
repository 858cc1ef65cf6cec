"""Code that Inductor generated for the CPU: its kernels are kernels where an event shows them, and unattributed elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.report.outlines.recorded.findings import headline
from overhead_lens.traces.health import HIDDEN_KERNELS
from overhead_lens.traces.model import TraceAnalysis
from tests.drawn.timelines import analyzer_of, call, drawn, host, kernel, timed

GENERATED = f"/tmp/torchinductor_me/aa/c{'q2' * 25}.py(105): call"
GRAPH = "## Call CompiledFxGraph fqqihf62w43e ##"
REGION = "Torch-Compiled Region: 0/0"


def python(drawing: str, name: str) -> dict:
    return drawn(drawing, name, "python_function")


def parts(analysis: TraceAnalysis) -> dict[str, int]:
    return {f"{each.category}/{part.name}": part.ns for each in analysis.host for part in each.parts if part.ns}


def test_the_innermost_call_of_compiled_code_hides_kernels() -> None:
    analysis = analyzer_of(
        drawn("[----------------------)", REGION),
        drawn("  [---------------)     ", GRAPH),
        drawn("     [-----)            ", "aten::mm"),
    ).analysis()
    assert host(analysis.host) == {"python": 7, "dispatcher": 6, "unattributed": 10}
    assert HIDDEN_KERNELS in analysis.notes
    categories = {cost.name: cost.category for cost in analysis.operators}
    assert categories == {REGION: "python", GRAPH: "unattributed", "aten::mm": "dispatcher"}


def test_a_region_without_a_graph_of_its_own_hides_them_too() -> None:
    analysis = analyzer_of(drawn("[----)      ", REGION), drawn("      [---) ", GRAPH)).analysis()
    assert host(analysis.host) == {"python": 1, "unattributed": 9}
    assert "90% of the busiest thread is unattributed" in headline(analysis)


def test_compiled_code_that_launches_hides_nothing() -> None:
    analysis = analyzer_of(
        drawn("[---------------)  ", GRAPH), call("   [---)           ", 7), kernel("       [-------)   ", 7)
    ).analysis()
    assert host(analysis.host) == {"python": 12, "launch": 4}
    assert HIDDEN_KERNELS not in analysis.notes


@pytest.mark.parametrize(
    ("function", "caller", "below", "category"),
    [
        ("<built-in function kernel>", GENERATED, None, "kernel"),
        ("<built-in function kernel>", GENERATED, "graph_0_cpp_fused_add_0", "kernel"),
        ("<built-in function inductor_entry_cpp>", GENERATED.replace("call", "g"), None, "unattributed"),
        ("<built-in function inductor_entry_cpp>", GENERATED, "aten::mm", "unattributed"),
        ("<built-in function assert_size_stride>", GENERATED, None, "python/binding"),
        ("<built-in function _empty_strided_cpu>", GENERATED, None, "allocation/tensor"),
        # A function of that name that others call is not Inductor's.
        ("<built-in function kernel>", "train.py(7): kernel", None, "python/binding"),
        ("<built-in function kernel>", "scipy/signal/_wavelets.py(7): cwt", None, "python/extension"),
    ],
)
def test_stacks_show_kernels(function: str, caller: str, below: str | None, category: str) -> None:
    events = [
        drawn("[--------------------)", GRAPH),
        python(" [-----------------)  ", caller),
        python("     [-------)        ", function),
    ]
    if below is not None:
        events.append(drawn("       [--)           ", below))
    analysis = analyzer_of(*events).analysis()
    found = host(analysis.host) | parts(analysis)
    inside = 3 if below is not None and category != "kernel" else 0
    assert found[category] == 8 - inside
    assert (HIDDEN_KERNELS in analysis.notes) == (category == "unattributed")
    # The graph's own time is its wrapper.
    assert found["python/compiled_runtime"] == 3 + (10 if caller.startswith("/tmp") else 0)


def test_a_wrapper_in_cpp_that_launches_hides_nothing() -> None:
    analysis = analyzer_of(
        python("[---------------)  ", GENERATED),
        python(" [------------)    ", "<built-in function inductor_entry_cpp>"),
        call("   [---)           ", 7),
        kernel("       [-------)   ", 7),
    ).analysis()
    assert parts(analysis) == {"python/compiled_runtime": 3, "python/binding": 9}
    assert host(analysis.host) == {"python": 12, "launch": 4}


@settings(max_examples=25)
@given(
    wrapper_ns=st.integers(20, 60),
    binding_ns=st.integers(1, 30),
    kernel_ns=st.integers(1, 200),
    user_ns=st.integers(1, 50),
    calls=st.integers(1, 4),
)
def test_what_compiled_code_takes_around_its_kernels(
    wrapper_ns: int, binding_ns: int, kernel_ns: int, user_ns: int, calls: int
) -> None:
    """By stacks: guards, wrappers and the C functions that they call; neither kernels nor the user's Python."""
    events, at = [], 0
    guard_ns = 7
    for _ in range(calls):
        length = guard_ns + wrapper_ns + binding_ns + kernel_ns
        events += [
            timed(at, user_ns + length, "train.py(7): step", "python_function"),
            timed(at, guard_ns, "TorchDynamo Cache Lookup"),
            timed(at + guard_ns, length - guard_ns, GENERATED, "python_function"),
            timed(at + guard_ns + 5, binding_ns, "<built-in function assert_size_stride>", "python_function"),
            timed(at + guard_ns + binding_ns + 8, kernel_ns, "<built-in function kernel>", "python_function"),
        ]
        at += user_ns + length
    found = {finding.id: finding.bound_ns for finding in analyzer_of(*events).analysis().findings}
    assert found["compiled_runtime"] == calls * (guard_ns + wrapper_ns + binding_ns)
    assert found["host_python"] == calls * user_ns


def test_without_stacks_nobody_knows_what_it_takes_around_its_kernels() -> None:
    analysis = analyzer_of(drawn("[----------------)", REGION), drawn("   [-------)", GRAPH)).analysis()
    assert "compiled_runtime" not in {finding.id for finding in analysis.findings}
