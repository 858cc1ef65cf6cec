"""A finding in a sentence: how long, led by what, in which module, at which line."""

from __future__ import annotations

import re

from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.units import format_ns

_SAID = {
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
    "exposed_waits": "the host waits for the device, which then idles: {time}",
    "data_loading": "the host loads data for {time}",
    "compilation": "the host compiles for {time}",
    "graph_capture": "the host captures a graph for {time}",
    "driver_allocations": "the driver's allocator takes {time}",
    "memory_growth": "memory grows at every step, and the driver's allocator takes {time}",
    "slow_launches": "a few slow launches hold the host for {time}",
    "unfused_optimizer": "the optimizer goes from parameter to parameter for {time}",
    "compiled_runtime": "calls of compiled code take {time} around their kernels",
    "host_python": "the host works in Python for {time}",
    "host_work": "the host works on its own for {time}",
    "starved_backward": "the backward pass does not get on for {time}",
    "fusible_kernels": "launches that fusion would save take {time}",
    "many_small_operators": "getting from operators to kernels takes {time}",
    "warm_up": "the first step takes {time} longer than the others",
    "slow_step": "one step takes {time} longer than the others",
}
_BUILT_IN = re.compile(r"<(?:built-in )?(?:function|method) '?(?P<name>[\w.]+)'?")
_PLACE = re.compile(r"(?:.*/)?(?P<file>[^/]+)\((?P<line>\d+)\): (?P<function>.*)$")
_LONGEST = 60
_UNNAMED = re.compile(r"\(|waiting hidden")


def sentence(finding: Finding) -> str:
    """The finding in one sentence, without its full stop and its capital letter: others are built around it."""
    time = f"{format_ns(finding.bound_ns)} ({finding.share:.0%})"
    said = _SAID.get(finding.id, finding.summary + ": {time}").format(time=time)
    led = next((each for each in finding.evidence if not _UNNAMED.match(each.name) and each.ns), None)
    first = ""
    if led is not None:
        first = f", {'mostly' if 2 * led.ns > finding.bound_ns else 'led by'} {_amount(led)}"
    module = f" in {finding.module}" if finding.module else ""
    place = f" ({short_place(finding.line)})" if finding.line and short_place(finding.line) not in first else ""
    return said + first + module + place


def _amount(led: Evidence) -> str:
    many = f"{led.count:,} x " if led.count > 1 else ""
    return f"{many}{short_name(led.name)} {format_ns(led.ns)}"


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
