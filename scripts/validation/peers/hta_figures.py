"""What HolisticTraceAnalysis says of a trace, as JSON; run in the environment that has it: ``PYTHON hta_figures.py TRACE``.

Every figure is what a public function returns, in its own unit and with the options that it has by default, but for lists that
it cuts short, which are asked for as a whole. A function that fails is named under ``errors`` with the first line of its error.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

WHOLE = 10**9


def main() -> None:
    """Print the figures, or why the trace could not be read, as the last line."""
    with contextlib.redirect_stdout(io.StringIO()):
        said = figures(sys.argv[1])
    print(json.dumps(said))


def figures(path: str) -> dict[str, Any]:
    """Figures by name, and errors by the function that failed."""
    from hta.trace_analysis import TraceAnalysis

    try:
        job = TraceAnalysis(trace_files={0: Path(path).name}, trace_dir=str(Path(path).parent))
    except Exception as error:
        return {"failed": first_line(error)}
    said: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for ask in (
        temporal, kernels, overlap, idle, launches, queue, steps, duration, device_events, linked, operators,
    ):  # fmt: skip
        try:
            said |= ask(job)
        except Exception as error:  # noqa: PERF203
            errors[ask.__name__] = first_line(error)
    return {"figures": finite(said), "errors": errors}


def temporal(job: Any) -> dict[str, Any]:
    """Busy, idle and span of the device in µs."""
    row = job.get_temporal_breakdown(visualize=False).iloc[0]
    return {key: float(row[f"{key}_time(us)"]) for key in ("idle", "compute", "non_compute", "kernel")}


def kernels(job: Any) -> dict[str, Any]:
    """Time of each type of kernel and of those that overlap, and of each kernel by name, in µs."""
    types, names = job.get_gpu_kernel_breakdown(
        visualize=False, num_kernels=WHOLE, duration_ratio=1.0, include_memory_kernels=True
    )
    return {
        "kernel_types": {row.kernel_type: float(row["sum"]) for _, row in types.iterrows()},
        "kernel_sum": named(names, "sum (us)"),
        "kernel_mean": named(names, "mean (us)"),
    }


def overlap(job: Any) -> dict[str, Any]:
    """Percent of the communication that runs beside compute."""
    return {"overlap_percent": float(job.get_comm_comp_overlap(visualize=False).comp_comm_overlap_pctg.iloc[0])}


def idle(job: Any) -> dict[str, Any]:
    """Idle time of all streams by cause, in µs."""
    by_stream, _ = job.get_idle_time_breakdown(ranks=[0], visualize=False)
    sums = by_stream.groupby("idle_category").idle_time.sum()
    return {"idle_split": {str(name): float(value) for name, value in sums.items()}}


def launches(job: Any) -> dict[str, Any]:
    """Each launch: how long the call took and how long after it the device began, in µs."""
    rows = job.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    return {"launches": rows[["cpu_duration", "launch_delay"]].astype(float).to_numpy().tolist()}


def queue(job: Any) -> dict[str, Any]:
    """The longest queue of any stream."""
    summary = job.get_queue_length_summary(ranks=[0])
    return {"queue_max": None if summary is None else float(summary["queue_length"]["max"].max())}


def steps(job: Any) -> dict[str, Any]:
    """Number of profiler steps."""
    return {"steps": len(job.get_profiler_steps())}


def duration(job: Any) -> dict[str, Any]:
    """Duration of the trace in µs."""
    return {"duration": float(job.t.get_trace_duration(0))}


def device_events(job: Any) -> dict[str, Any]:
    """Events on a stream."""
    return {"device_events": int(job.t.get_trace(0)["stream"].ne(-1).sum())}


def linked(job: Any) -> dict[str, Any]:
    """Device events with their launch."""
    from hta.common.trace import get_cpu_gpu_correlation

    return {"linked": len(get_cpu_gpu_correlation(job.t.get_trace(0)))}


def operators(job: Any) -> dict[str, Any]:
    """Count and total time in µs of each operator by name."""
    import pandas as pd
    from hta.trace_diff import LabeledTrace

    # Its constructor reads the trace again; of itself the function asks for the names only.
    asked = SimpleNamespace(s_tab=pd.Series(job.t.symbol_table.get_sym_table()))
    summary = LabeledTrace.get_ops_summary(asked, job.t.get_trace(0))
    summary = summary[summary["cat"].isin(["cpu_op", "Operator", "operator"])].groupby("name")
    return {
        "operator_count": {str(name): int(value) for name, value in summary.counts.sum().items()},
        "operator_total": {str(name): float(value) for name, value in summary.total_duration.sum().items()},
    }


def named(table: Any, column: str) -> dict[str, float]:
    """A column by the kernel's name."""
    return {str(name): float(value) for name, value in zip(table["name"], table[column], strict=True)}


def finite(value: Any) -> Any:
    """The same with None for what is no number."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def first_line(error: BaseException) -> str:
    """Type and first line of an error."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".strip(": ")


if __name__ == "__main__":
    main()
