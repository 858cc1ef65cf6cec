"""``overhead-lens calibrate``: what recording costs on this machine, and what the machine can do at best."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overhead_lens.cli.arguments import Quiet, json_option
from overhead_lens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def calibrate(
    json_: Annotated[bool, json_option("calibration")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that one step may take.", min=1.0, max=1e6)] = 300.0,
    quiet: Quiet = False,
) -> None:
    """Measure what torch.profiler's events cost here and the machine's peaks; profiles use them from then on."""
    from overhead_lens.analysis.calibration import event_costs
    from overhead_lens.capture.calibrate import calibrate_machine
    from overhead_lens.cli.present import make_console
    from overhead_lens.cli.progress import progress
    from overhead_lens.report.calibration_text import print_calibration

    if sys.platform == "win32":
        raise UsageError("calibrate measures on Linux and macOS only")
    with progress(quiet=quiet) as listener:
        kept = calibrate_machine(timeout, listener)
    flags = list(dict.fromkeys(row["flags"] for row in kept.calibration["rows"]))
    costs = {name: event_costs(kept.calibration["rows"], name) for name in flags}
    if json_:
        print(json.dumps(_document(costs, kept.calibration), indent=1))
        return
    print_calibration(make_console(), costs, kept.calibration, kept.path, kept.not_kept)


def _document(costs: Mapping[str, Mapping[str, Any]], calibration: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schema": "overhead-lens/calibration/1",
        "unit": "ns",
        "costs": {
            flags: {
                name: {
                    "total_ns": round(cost.total_ns, 1),
                    "inside_ns": round(cost.inside_ns, 1),
                    "spread_ns": round(cost.spread_ns, 1),
                    "after_kernels": [
                        {"kernels_ns": round(time, 1), "more_ns": round(more, 1)} for time, more in cost.displaced_ns
                    ],
                }
                for name, cost in of.items()
            }
            for flags, of in costs.items()
        },
        "peaks": calibration.get("peaks", {}),
        "reasons": calibration.get("reasons", {}),
        "environment": calibration.get("environment", {}),
    }
