"""The page of an analyzed trace: host, device and who let it idle, steps, launches, costliest names, what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from overhead_lens.report.page.charts.axes import paled
from overhead_lens.report.page.charts.bars import Bar, Stretch, bars_chart, bars_table, host_bar
from overhead_lens.report.page.charts.steps import busy_steps, trace_steps
from overhead_lens.report.page.charts.strip import IDLE_INKS, KIND_INKS, strip
from overhead_lens.report.page.model import Block, Page, Section, Table, Text
from overhead_lens.report.page.recorded.collectives import collective_sections
from overhead_lens.report.page.recorded.counters import counter_sections
from overhead_lens.report.page.recorded.critical_path import path_sections
from overhead_lens.report.page.recorded.findings import finding_sections
from overhead_lens.report.page.recorded.launches import launch_blocks
from overhead_lens.report.page.recorded.memory import memory_sections
from overhead_lens.report.page.recorded.modules import module_sections
from overhead_lens.report.page.recorded.sequences import sequence_sections
from overhead_lens.report.text import analysis as told
from overhead_lens.taxonomy.categories import HATCHES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.budgets import Cost, DeviceBudget, ThreadBudget
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.units import format_ns

_MOST_THREADS = 24
_MOST_DEVICES = 16
_MOST_COSTS = 25
_LONGEST_NAME = 120


def trace_page(analysis: TraceAnalysis, _classifier: Classifier) -> Page:
    """The page of one trace."""
    provenance = [("trace", analysis.path), ("extent", told.extent(analysis))]
    return Page(told.title(analysis), told.sentence(analysis), list(trace_sections(analysis)), provenance)


def trace_sections(analysis: TraceAnalysis) -> Iterator[Section]:
    """The sections of one trace: what to try, the picture over time, the budgets; the rest is folded."""
    yield from finding_sections(analysis.findings)
    yield from _over_time(analysis)
    if analysis.threads:
        yield Section("Host", list(_host(analysis)))
    if analysis.devices:
        yield Section("Device", list(_devices(analysis.devices)))
    yield from path_sections(analysis.critical_path)
    for section in _details(analysis):
        yield replace(section, is_open=False)


def _over_time(analysis: TraceAnalysis) -> Iterator[Section]:
    thread = told.thread_name(analysis.threads[0]) if analysis.threads else ""
    blocks = [] if analysis.over_time is None else list(strip(analysis.over_time, analysis.steps, thread))
    if len(analysis.steps) > 1:
        blocks.append(Text([told.steps_in_words(analysis.steps)]))
    if blocks:
        yield Section("Over time", blocks)


def _details(analysis: TraceAnalysis) -> Iterator[Section]:
    if len(analysis.steps) > 1:
        yield Section("Steps over time", [*trace_steps(analysis.steps), *busy_steps(analysis.steps)])
    costs = [*_costs("operator", analysis.operators, analysis), *_costs("kernel", analysis.kernels, analysis)]
    if costs:
        yield Section("Costliest operators and kernels", costs)
    yield from module_sections(analysis.modules)
    yield from collective_sections(analysis.collective_costs)
    yield from counter_sections(analysis.counters)
    yield from memory_sections(analysis.memory)
    if analysis.devices:
        latencies = _launches(analysis.devices[:_MOST_DEVICES])
        yield Section("Launches", [latencies, *launch_blocks(analysis.launch_figures)])
    yield from sequence_sections(analysis.sequences)
    if others := _others(analysis):
        yield Section("Other threads", others)
    if notes := told.footnotes(analysis):
        counted = [(reason.replace("_", " "), f"{count:,}") for reason, count in analysis.issues.items()]
        tables = [Table(("", "events"), counted, frozenset({1}), "counted")] if counted else []
        yield Section("What was dropped, repaired or is uncertain", [Text(notes), *tables])


def _host(analysis: TraceAnalysis) -> Iterator[Block]:
    busiest, wall_ns = analysis.threads[0], analysis.window.wall_ns
    bar = host_bar(told.thread_name(busiest), format_ns(wall_ns), busiest.host, wall_ns)
    yield bars_chart([bar], f"The categories of the busiest thread, which sum to the window of {format_ns(wall_ns)}.")
    rows = [
        (
            category.category + (" (estimate)" if category.evidence == "estimate" else ""),
            f"{category.share:.1%}",
            format_ns(category.ns),
            ", ".join(f"{part.name} {format_ns(part.ns)}" for part in category.parts if part.ns),
            ", ".join(f"{told.shortened(frame.frame)} {format_ns(frame.ns)}" for frame in category.top[:2]),
        )
        for category in busiest.host
        if category.ns
    ]
    rows.append(("sum = window", "100 %", format_ns(wall_ns), "", ""))
    yield Table(("where", "share", "time", "parts", "mostly"), rows, frozenset({1, 2}))


def _devices(devices: Sequence[DeviceBudget]) -> Iterator[Block]:
    shown = devices[:_MOST_DEVICES]
    yield bars_chart(
        [_device_bar(device) for device in shown],
        "The span of each device: busy by kind of work, then idle by what the host was doing when it should have fed it.",
    )
    if more := len(devices) - len(shown):
        yield Text([f"{more} further devices are left out; --json has them."])
    yield _partition(shown)


def _device_bar(device: DeviceBudget) -> Bar:
    name = f"device {device.device} {device.name}".strip()
    busy = f"busy {_share(device.busy_ns, device.span_ns)} of {format_ns(device.span_ns)}"
    stretches = [
        *(_stretch(kind, KIND_INKS[kind], "", ns, device) for kind, ns in _busy(device).items()),
        *(
            _stretch(f"idle: {cause}", paled(IDLE_INKS[cause]), HATCHES.get(cause, ""), ns, device)
            for cause, ns in device.idle_blame.items()
        ),
    ]
    return Bar(name, busy, stretches, device.span_ns)


def _stretch(name: str, ink: str, hatch: str, ns: int, device: DeviceBudget) -> Stretch:
    return Stretch(name, ink, hatch, ns, f"{name} {format_ns(ns)} ({_share(ns, device.span_ns)})")


def _busy(device: DeviceBudget) -> dict[str, int]:
    """Busy time in pieces that sum to it; ``copy`` is what runs beside nothing else."""
    kinds = device.kinds
    compute, communication = kinds.compute_ns - kinds.overlap_ns, kinds.communication_ns - kinds.overlap_ns
    alone = {"compute": compute, "communication": communication, "both at once": kinds.overlap_ns}
    return {**alone, "copy": device.busy_ns - sum(alone.values())}


def _partition(devices: Sequence[DeviceBudget]) -> Table:
    """Busy and idle of every device in words."""
    idle = dict.fromkeys(name for device in devices for name, ns in device.idle_blame.items() if ns)
    rows = [
        ("busy", *(_amount(device.busy_ns, device.span_ns) for device in devices), ""),
        *(
            (f"· {kind}", *(_amount(_busy(device)[kind], device.span_ns) for device in devices), "")
            for kind in KIND_INKS
            if any(_busy(device)[kind] for device in devices)
        ),
        ("idle", *(_amount(device.idle_ns, device.span_ns) for device in devices), ""),
        *(
            (
                f"· {name}",
                *(_amount(device.idle_blame[name], device.span_ns) for device in devices),
                told.BLAME_REMARKS[name],
            )
            for name in idle
        ),
    ]
    heads = ("", *(f"device {device.device}" for device in devices), "idle because")
    return Table(heads, rows, frozenset(range(1, len(devices) + 1)), "shares of each device's span")


def _amount(ns: int, whole_ns: int) -> str:
    return f"{_share(ns, whole_ns)}  {format_ns(ns)}" if ns else ""


def _launches(devices: Sequence[DeviceBudget]) -> Table:
    rows = [
        (
            f"device {device.device}",
            f"{launch.count:,}",
            *map(format_ns, (launch.median_ns, launch.p99_ns, launch.max_ns)),
            f"{launch.queue_depth_mean:.1f} / {launch.queue_depth_max}",
            f"{launch.graph_launches:,}",
            f"{launch.unlinked:,}",
        )
        for device in devices
        for launch in (device.launch,)
    ]
    latency = ("latency median", "p99", "max")
    heads = ("launches", "count", *latency, "queue mean / max", "of graphs", "device events without one")
    return Table(heads, rows, frozenset(range(1, len(heads))))


def _costs(what: str, costs: Sequence[Cost], analysis: TraceAnalysis) -> Iterator[Block]:
    if costs:
        heads, rows = told.cost_cells(what, costs[:_MOST_COSTS], analysis.window.wall_ns, _LONGEST_NAME)
        captions = {"operator": "self time, divided by an estimate of kernels on the host", "kernel": "on the device"}
        yield Table(heads, rows, frozenset(range(len(heads) - 2)), captions[what])


def _others(analysis: TraceAnalysis) -> list[Block]:
    others = sorted((thread for thread in analysis.threads[1:] if thread.covered_ns), key=lambda one: -one.covered_ns)
    if not others:
        return []
    shown = others[:_MOST_THREADS]
    bars = [_thread_bar(thread, analysis.window.wall_ns) for thread in shown]
    chart = bars_chart(bars, f"The window of {len(bars)} other threads by category.")
    told_too = bars_table(bars, "thread", "")
    more = len(others) - len(shown)
    return [chart, told_too, *([Text([f"{more} threads with less are left out; --json has them."])] if more else [])]


def _thread_bar(thread: ThreadBudget, wall_ns: int) -> Bar:
    return host_bar(told.thread_name(thread), f"events cover {format_ns(thread.covered_ns)}", thread.host, wall_ns)


def _share(ns: float, whole_ns: float) -> str:
    return f"{ns / whole_ns:.1%}" if whole_ns else "-"
