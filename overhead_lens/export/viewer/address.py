"""What a Perfetto UI is asked to do with a picture: its address with commands that run once the trace is loaded.

Commands and their arguments: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui and
``ui/src/core/startup_command_allowlist.ts``; those here are in versions 52 and 58. What they do not find they leave alone.
"""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

from overhead_lens.export.lanes.budget import BUDGET, DEVICE_BUDGET
from overhead_lens.export.perfetto.picture import UNNAMED_PROCESS

PUBLIC_UI = "https://ui.perfetto.dev"

_KINDS = f"'{BUDGET}', '{DEVICE_BUDGET}'"

SUMS = f"""\
select
  track.name as track,
  extract_arg(slice.arg_set_id, 'debug.category') as category,
  sum(slice.dur) / max(ifnull(extract_arg(slice.arg_set_id, 'debug.times'), 1)) as ns,
  round(100.0 * sum(slice.dur) / sum(sum(slice.dur)) over (partition by track.name), 1) as percent,
  cast(round(min(extract_arg(slice.arg_set_id, 'debug.ci95_low_ns'))) as int) as ci95_low_ns,
  cast(round(max(extract_arg(slice.arg_set_id, 'debug.ci95_high_ns'))) as int) as ci95_high_ns,
  min(extract_arg(slice.arg_set_id, 'debug.evidence')) as evidence
from slice join track on slice.track_id = track.id
where slice.category in ({_KINDS})
group by 1, 2
order by track.name, ns desc"""  # noqa: S608  (names of our own)
"""Sums per category: of a call, of a step, or of the time watched; of a device what was busy, and whom idle time is blamed on."""

_BUDGET_TRACK = r"^0*1\. Budget"
_OPENED = (_BUDGET_TRACK, r"^\d+\. Device", rf"^{UNNAMED_PROCESS} \d+$")
_BY_NAME = "name"


def picture_address(ui: str, trace: str | None = None, *, is_ours: bool = True) -> str:
    """Address of a UI that opens with the budget pinned, opened and summed.

    Args:
        ui: Address of the UI's page.
        trace: Address from which it takes the trace; None if the trace is handed to it.
        is_ours: Whether the trace is a picture of ours.
    """
    options = {"hideSidebar": "true"} if trace is None else {"hideSidebar": "true", "url": trace}
    if is_ours:
        options["startupCommands"] = json.dumps(_commands(), separators=(",", ":"))
    route = "/viewer" if trace is None else "/"
    return f"{ui}#!{route}?{urlencode(options, quote_via=quote)}"


def _commands() -> list[dict[str, object]]:
    return [
        _command("PinTracksByRegex", _BUDGET_TRACK, _BY_NAME),
        *(_command("ExpandTracksByRegex", pattern, _BY_NAME) for pattern in _OPENED),
        _command("RunQueryAndShowTab", SUMS, "Sums per category"),
    ]


def _command(name: str, *arguments: str) -> dict[str, object]:
    return {"id": f"dev.perfetto.{name}", "args": arguments}
