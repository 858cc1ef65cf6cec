"""What TraceLens says of a trace, as JSON; run in the environment that has it: ``PYTHON tracelens_figures.py TRACE``.

Every figure is what a public function returns with the options that it has by default, in its own unit. A function that
fails is named under ``errors`` with the first line of its error.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


def main() -> None:
    """Print the figures, or why the trace could not be read, as the last line."""
    with contextlib.redirect_stdout(io.StringIO()):
        said = figures(sys.argv[1])
    print(json.dumps(said))


def figures(path: str) -> dict[str, Any]:
    """Figures by name, and errors by the function that failed."""
    from TraceLens import TreePerfAnalyzer

    try:
        analyzer = TreePerfAnalyzer.from_file(path)
    except Exception as error:
        return {"failed": first_line(error)}
    said: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for ask, of in ((timeline, analyzer), (device_events, analyzer), (kernels, analyzer), (collectives, path)):
        try:
            said |= ask(of)
        except Exception as error:  # noqa: PERF203
            errors[ask.__name__] = first_line(error)
    return {"figures": finite(said), "errors": errors}


def timeline(analyzer: Any) -> dict[str, Any]:
    """Each part of the GPU timeline in ms."""
    table = analyzer.get_df_gpu_timeline()
    return {str(name): float(value) for name, value in zip(table["type"], table["time ms"], strict=True)}


def device_events(analyzer: Any) -> dict[str, Any]:
    """Device events that it linked to their launch."""
    on_device = {"kernel", "gpu_memcpy", "gpu_memset"}
    events = [event for event in analyzer.tree.events if event.get("cat") in on_device]
    return {"device_events": len(events), "linked": sum(1 for event in events if event.get("tree"))}


def kernels(analyzer: Any) -> dict[str, Any]:
    """Count and total time in µs of each kernel by name."""
    table = analyzer.get_df_kernels(cpu_op_detail=False)
    by_name = table.groupby("Kernel name")["Kernel duration (µs)"]
    return {
        "kernel_count": {str(name): int(value) for name, value in by_name.count().items()},
        "kernel_sum": {str(name): float(value) for name, value in by_name.sum().items()},
    }


def collectives(path: str) -> dict[str, Any]:
    """Count and total time in µs of the collectives."""
    from TraceLens import NcclAnalyser

    table = NcclAnalyser([path], world_size=1).build_df_long()
    if table.empty:
        return {"collective_count": 0, "collective_sum": 0.0}
    return {"collective_count": len(table), "collective_sum": float(table["dur"].sum())}


def finite(value: Any) -> Any:
    """The same with None for what is no number."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def first_line(error: BaseException) -> str:
    """Type and first line of an error."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".strip(": ")


if __name__ == "__main__":
    main()
