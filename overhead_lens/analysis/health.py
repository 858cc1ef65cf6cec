"""What a reader must know before believing a budget: warnings, each one line that gives a figure and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from overhead_lens.analysis.shares import Shares

_DISTURBED_SHARE = 0.25
_LEAST_SAMPLES = 4_500
_UNATTRIBUTED_SHARE = 0.02


def clock_warnings(clock: pd.DataFrame, kept: int) -> list[str]:
    """Recompiles inside the window, a disturbed machine, few processes; ``kept`` blocks counted."""
    found = []
    if "compiles" in clock and clock["compiles"].any():
        found.append(
            f"{int(clock['compiles'].sum())} compilations fell into the measured window: the wall time holds them"
        )
    disturbed = 1 - kept / len(clock)
    if disturbed > _DISTURBED_SHARE:
        found.append(
            f"{disturbed:.0%} of the blocks were left out: the reference loop beside them shows a disturbed machine"
        )
    processes = clock["process"].nunique()
    if processes < 5:
        found.append(f"only {processes} clock processes: intervals are wider than they need be (leave --quick out)")
    return found


def share_warnings(shares: Shares, wall_ns: float, meta: Mapping[str, Any]) -> list[str]:
    """Few samples, no samples, much unattributed."""
    found = []
    if shares.evidence == "trace":
        reason = (meta.get("samples") or {}).get("reason") or "none were taken"
        found.append(f"no samples ({reason}): shares come from the corrected trace")
        found.append("evidence: trace, so the split of an operator into dispatcher, allocation and kernel is estimated")
    elif shares.weight < _LEAST_SAMPLES:
        points = 196 * (0.01 * 0.99 / shares.weight) ** 0.5
        found.append(f"only {shares.weight:.0f} samples: a category of 1 % is uncertain by {points:.1f} points")
    if shares.share("unattributed") > _UNATTRIBUTED_SHARE:
        share = shares.share("unattributed")
        found.append(
            f"{share:.1%} ({share * wall_ns:.0f} ns) is unattributed: no rule claims the frames listed under it"
        )
    return found
