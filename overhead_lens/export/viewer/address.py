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


def duration_sql(ns: str) -> str:
    """SQL of the text that ``format_ns`` writes for an integer; null for null."""
    return (
        f"case when {ns} < 1000 then {ns} || ' ns' "
        f"when {ns} < 999500 then printf('%.*f µs', 2 - ({ns} >= 99995), {ns} / 1e3) "
        f"when {ns} < 999500000 then printf('%.*f ms', 2 - ({ns} >= 99995000), {ns} / 1e6) "
        f"when {ns} >= 999500000 then printf('%.*f s', 2 - ({ns} >= 99995000000) - ({ns} >= 999950000000), {ns} / 1e9) end"
    )


SUMS = f"""\
with sums as (
  select
    track.name as track,
    extract_arg(slice.arg_set_id, 'debug.category') as category,
    sum(slice.dur) as ns,
    cast(round(min(extract_arg(slice.arg_set_id, 'debug.ci95_low_ns'))) as int) as low,
    cast(round(max(extract_arg(slice.arg_set_id, 'debug.ci95_high_ns'))) as int) as high,
    ifnull(min(extract_arg(slice.arg_set_id, 'debug.evidence')), '') as evidence
  from slice join track on slice.track_id = track.id
  where slice.category in ({_KINDS})
  group by 1, 2
)
select
  track,
  category,
  {duration_sql("ns")} || ifnull(' [' || {duration_sql("low")} || ' .. ' || {duration_sql("high")} || ']', '') as time,
  round(100.0 * ns / sum(ns) over (partition by track), 1) as percent,
  evidence,
  ns
from sums
order by track, ns desc"""  # noqa: S608  (names of our own)
"""Sums per category: of a call, of a step, or of the time watched; of a device what was busy, and whom idle time is blamed on."""

SUMS_TITLE = "Sums per category"

_OPENED = (r"^0*1\. Budget", r"^\d+\. Device", rf"^{UNNAMED_PROCESS} \d+$")
_BY_NAME = "name"


def picture_address(ui: str, trace: str | None = None, *, is_ours: bool = True) -> str:
    """Address of a UI that opens with the budget opened and summed, and the devices of a trace pinned above it.

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
        # What is pinned is drawn in its place too: the budget is the first track there anyway.
        _command("PinTracksByRegex", r"^\d+\. Device \S+$", _BY_NAME),
        *(_command("ExpandTracksByRegex", pattern, _BY_NAME) for pattern in _OPENED),
        _command("RunQueryAndShowTab", SUMS, SUMS_TITLE),
    ]


def _command(name: str, *arguments: str) -> dict[str, object]:
    return {"id": f"dev.perfetto.{name}", "args": arguments}
