"""A finding in a sentence: how long, led by what, in which module, at which line."""

from __future__ import annotations

import re
from dataclasses import replace

from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.host_budget import BETWEEN
from overhead_lens.units import format_ns

_CLAUSES = {
    "exposed_communication": "the device only communicates for {time}",
    "exposed_copies": "the device only copies for {time}",
    "device_bound": "the device computes for {time}",
    "host_bound": "launches by the host come {time} too late",
    "stalled_queue": "launched work does not begin for {time}",
    "graphs_could_close_idle": "a captured graph could close {time} of idle time",
    "blocking_copies": "copies from the device hold the host for {time}",
    "copies_to_device": "copies to the device hold the host for {time}",
    "scalar_reads": "the host reads single values from the device and waits {time}",
    "nonzero": "the host waits {time} for sizes that depend on data",
    "exposed_waits": "the host waits for the device for {time}",
    "data_loading": "the host loads data for {time}",
    "compilation": "the host compiles for {time}",
    "graph_capture": "the host captures a graph for {time}",
    "driver_allocations": "the driver's allocator takes {time}",
    "memory_growth": "memory grows at every step, and the driver's allocator takes {time}",
    "slow_launches": "slow calls to the driver hold the host for {time}",
    "unfused_optimizer": "the optimizer goes from parameter to parameter for {time}",
    "compiled_runtime": "calls of compiled code take {time} around their kernels",
    "host_python": "the host works in Python for {time}",
    "host_work": "the host works on its own for {time}",
    "slow_preparation": "operators prepare single launches for {time}",
    "starved_backward": "the backward pass does not get on for {time}",
    "fusible_kernels": "launches that fusion would save take {time}",
    "many_small_operators": "getting from operators to kernels takes {time}",
    "kernels_on_host": "operators compute on the host for {time}",
    "warm_up": "a slow first step lengthens the recording by {time}",
    "slow_step": "a slow step lengthens the recording by {time}",
}
_BUILT_IN = re.compile(r"<(?:built-in )?(?:function|method) '?(?P<name>[\w.]+)'?")
_PLACE = re.compile(r"(?:.*/)?(?P<file>[^/]+)\((?P<line>\d+)\): (?P<function>.*)$")
_LONGEST = 60
_UNNAMED = re.compile(r"\(|waiting hidden")
_OF_CALLS = frozenset({"data_loading", "graph_capture", "unfused_optimizer"})
"""Findings about calls, with what runs in them as evidence."""


def sentence(finding: Finding) -> str:
    """The finding in one sentence, without its full stop and its capital letter: others are built around it.

    The place is that of the event it names. Findings about calls give the place of the call.
    """
    time = f"{format_ns(finding.bound_ns)} ({finding.share:.0%})"
    clause = _CLAUSES.get(finding.id, finding.summary + ": {time}").format(time=time)
    led = next((each for each in finding.evidence if not _UNNAMED.match(each.name) and each.ns), None)
    where = _where(finding.module, finding.line, "" if led is None else short_name(led.name))
    if finding.id in _OF_CALLS:
        clause, where = clause + where, ""
    largest = finding.evidence[0] if finding.evidence else None
    if largest is not None and largest.name == BETWEEN:
        return f"{clause}, {'mostly' if 2 * largest.ns > finding.bound_ns else 'led by time'} between events"
    if led is None:
        return clause + where
    led = led if finding.id not in _OF_CALLS and (finding.module or finding.line) else replace(led, module="", line="")
    source = ""
    if finding.id == "memory_growth":
        source = next((f"; the largest that stays: {_at(each)}" for each in finding.evidence if not each.ns), "")
    if led.ns > finding.bound_ns:
        return f"{clause}, out of {format_ns(led.ns)} of {_at(led)}{source}"
    leads = "led by" if led.ns >= finding.evidence[0].ns else "including"
    return f"{clause}, {'mostly' if 2 * led.ns > finding.bound_ns else leads} {_at(led, format_ns(led.ns))}{source}"


def _at(led: Evidence, time: str = "") -> str:
    """How many events of which name, how long, and where the longest is."""
    name = short_name(led.name)
    where = _where(led.module, led.line, name)
    many = f"{led.count:,} x " if led.count > 1 else ""
    longest = ", the longest" if many and led.ns and where else ""
    return f"{many}{name}{' ' if time else ''}{time}{longest}{where}"


def _where(module: str, line: str, name: str) -> str:
    """`` in Linear_0 (train.py:9)``; no module or line that is unknown, and no line that ``name`` contains."""
    place = short_place(line)
    line = place if place not in name else ""
    if module:
        return f" in {module}" + (f" ({line})" if line else "")
    return f" at {line}" if line else ""


def short_name(name: str) -> str:
    """A frame in short form: ``zoom_shift``, ``normalize (image_transforms.py:390)``, the name of a kernel."""
    if built_in := _BUILT_IN.match(name):
        return built_in["name"]
    if place := _PLACE.match(name):
        return f"{place['function']} ({place['file']}:{place['line']})"
    name = kernel_name(name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def short_place(line: str) -> str:
    """``pt_utils.py:249``."""
    place = _PLACE.match(line)
    return line if place is None else f"{place['file']}:{place['line']}"
