"""The headline of a recorded trace: its cause, how long the device idles, and what recording would tell more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from overhead_lens.report.forms import to_text
from overhead_lens.report.outlines.recorded.findings import headline
from overhead_lens.traces.findings.model import Finding
from overhead_lens.traces.job.ranks import Job
from tests.drawn.timelines import WORKER, analyzer_of, call, drawn, kernel, timed

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOADING = (
    drawn("[-----------)", LOADER, "user_annotation"),
    call("             [-)", 1),
    kernel("               [---)", 1),
    call("                    [)", 2),
    kernel("                     [----)", 2),
)
LOADED = LOADING[0], drawn("             [---)", "aten::mm")
STACK = drawn("[---------------------------)", "train.py(12): step", "python_function")
COMMUNICATION = (
    call("[)", 1),
    kernel(" [-)", 1),
    call(" [)", 2),
    kernel("    [----------------)", 2, "ncclDevKernel_AllReduce"),
    call("  [)", 3),
    kernel("                      [--)", 3),
)


def of(*entries: dict[str, Any], **metadata: Any) -> str:
    return headline(analyzer_of(*entries, **metadata).analysis())


def test_a_cause_of_the_host_begins_with_how_long_the_device_idles() -> None:
    # It works for nine of 28 ns; the loader is called by the step's function.
    told = of(*LOADING, STACK)
    assert (
        told
        == "The device idles 68% of the window: the host loads data for 12 ns (43%), mostly step (train.py:12) 12 ns."
    )


def test_a_cause_of_one_device_begins_with_how_long_that_one_idles() -> None:
    """Device 0, of a model that is spread over two, has little to do and idles for longer."""
    analysis = analyzer_of(
        call("[)", 1),
        kernel(" [-)", 1),
        call("   [)", 2),
        kernel("    [-------)", 2, device=1),
    ).analysis()
    cause = "launches by the host come 4 ns (33%) too late"
    late = Finding("host_bound", "python", "1", "s", 4, (), "train.py(12): step", "r", share=0.33333, sentence=cause)
    assert headline(replace(analysis, findings=(late,))) == f"Device 1 idles 33% of the window: {cause}."


def test_without_a_cause_of_a_quarter_it_says_what_there_is() -> None:
    assert of(
        *LOADING[1:], drawn("[----------------------------------------)", "train.py(12): step", "python_function")
    ) == (
        "No single cause: the device computes 22%, idles 78% of the window; the largest known cause: launches by the host come "
        "2 ns (5%) too late, led by cudaLaunchKernel 1 ns at train.py:12."
    )


@pytest.mark.parametrize(
    ("entries", "metadata", "hint"),
    [
        (LOADING, {}, "Record with with_stack=True to see which line."),
        ((*LOADING, STACK), {}, ""),
        # Stacks were recorded, and show no line of what loads.
        ((*LOADING, drawn("[)", "train.py(1): f", "python_function", thread=WORKER)), {}, ""),
        (
            COMMUNICATION,
            {"distributedInfo": {"rank": 3, "world_size": 8}},
            "Analyze the traces of all 8 ranks together to see whether one comes late.",
        ),
        (COMMUNICATION, {}, ""),
        ((kernel("[--)", 1),), {}, "Record with activities=[CPU, CUDA] to see what the host does."),
        (LOADED, {}, "Record with with_stack=True to see which line."),
        (LOADED, {"deviceProperties": [{"id": 0}]}, "Record with with_stack=True to see which line."),
        (
            (*LOADED, call("    [)", 1)),
            {"deviceProperties": [{"id": 0}]},
            "Record with with_stack=True to see which line.",
        ),
    ],
)
def test_what_would_tell_more(entries: tuple[dict[str, Any], ...], metadata: dict[str, Any], hint: str) -> None:
    told = of(*entries, **metadata)
    hints = [part for part in ("Record with", "Analyze the") if part in told]
    assert (told.endswith(f" {hint}"), len(hints)) == (True, 1) if hint else hints == []


@pytest.mark.parametrize(
    ("entries", "issues", "why"),
    [
        ((drawn("[--)", "hipMalloc", ""),), {"no_category": 1}, "its events have no category"),
        ((), {"begin_end_event": 4}, "its events begin and end apart"),
        (
            (drawn("[--)", "MatMul", ""),),
            {"begin_end_event": 4, "no_category": 1},
            "its events begin and end apart and have no category",
        ),
        ((drawn("[--)", "aten::mm"), drawn("[--)", "aclnnMm", "", thread=WORKER)), {"no_category": 1}, ""),
        ((call("[)", 1), kernel("  [)", 1)), {"begin_end_event": 4}, ""),
    ],
)
def test_a_trace_that_another_profiler_wrote(
    entries: tuple[dict[str, Any], ...], issues: dict[str, int], why: str
) -> None:
    said = headline(replace(analyzer_of(*entries).analysis(), issues=issues))
    assert (
        said == f"torch.profiler's own export did not write this trace: {why}, so most of it cannot be analyzed."
    ) == bool(why)


@pytest.mark.parametrize("issues", [{"damaged_event": 3}, {"other_category": 2}])
def test_a_trace_of_which_everything_was_left_out(issues: dict[str, int]) -> None:
    analysis = replace(analyzer_of().analysis(), issues=issues)
    assert headline(analysis) == "Nothing in the trace can be analyzed: its events were left out."
    assert headline(replace(analysis, issues={"truncated": 1})) == "The trace holds neither host nor device work."


def test_a_file_that_is_cut_off_may_lack_the_cause() -> None:
    """The profiler writes the host's events first: those that are lost are not the last ones in time."""
    analysis = replace(analyzer_of(*LOADING).analysis(), issues={"truncated": 1})
    assert headline(analysis).endswith(
        "The file is cut off: the cause may lie in the missing part, often the device's work."
    )


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_are_asked_for_only_where_some_are_missing(size: int) -> None:
    analyses = [
        replace(
            analyzer_of(*COMMUNICATION, distributedInfo={"rank": rank, "world_size": size}).analysis(), path=f"{rank}"
        )
        for rank in range(2)
    ]
    said = " ".join(to_text(Job.of(analyses), whole=True).split())
    assert ("Analyze the traces of all" in said) == (size == 3)


def test_a_line_does_not_tell_why_launched_work_does_not_begin() -> None:
    told = of(
        timed(0, 300_000, "aten::mm"),
        timed(0, 1_000, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(290_000, 10_000, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=1),
    )
    assert told == (
        "The device idles 97% of the window: launched work does not begin for 289.0 µs (96%), mostly gemm 289.0 µs."
    )
