"""JSON of a comparison of ranks: the key ``ranks`` of an analysis document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from overhead_lens.analysis.ranks import RanksAnalysis


def ranks_document(ranks: RanksAnalysis) -> dict[str, Any]:
    """JSON values of a comparison; every duration in integer ns."""
    return {
        "slowest": ranks.slowest,
        "by_collectives": ranks.by_collectives,
        "ranks": [{**asdict(each), "quantities": dict(each.quantities)} for each in ranks.ranks],
        "spreads": [asdict(each) for each in ranks.spreads],
        "straggler": [asdict(each) for each in ranks.straggler],
        "notes": list(ranks.notes),
    }
