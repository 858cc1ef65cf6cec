"""An analyzed trace in words: what to try, time over the window, devices and what they idle for, host, then every other part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from overhead_lens.report.cells import bounds, heads, length, row, share, sum_row, text, time
from overhead_lens.report.looks import IDLE
from overhead_lens.report.outline import Bar, Bars, Block, Cell, Drawing, Notes, Outline, Piece, Row, Section, Table
from overhead_lens.report.outlines.host import apart, frames_section, hosts_table, part_row, whole_bar
from overhead_lens.report.outlines.recorded.collectives import collective_section
from overhead_lens.report.outlines.recorded.counters import counter_section
from overhead_lens.report.outlines.recorded.critical_path import path_notes, path_sections
from overhead_lens.report.outlines.recorded.findings import finding_sections, headline
from overhead_lens.report.outlines.recorded.launches import launch_sections
from overhead_lens.report.outlines.recorded.memory import memory_notes, memory_sections
from overhead_lens.report.outlines.recorded.modules import module_section
from overhead_lens.report.outlines.recorded.sequences import sequence_section
from overhead_lens.report.page.charts.trace_steps import busy_steps, strip, trace_steps
from overhead_lens.report.text.blocks import counted, left_out, share_text
from overhead_lens.taxonomy.categories import CATEGORIES, QUEUE
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.budgets import Cost, DeviceBudget, Launches, ThreadBudget, TraceStep
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.units import format_ns

_BRIEF_DEVICES, _MOST_DEVICES = 2, 16
_BRIEF_THREADS, _MOST_THREADS = 4, 24
_BRIEF_COSTS, _MOST_COSTS = 5, 25
_MOST_FRAMES = 100
_SHOWN_SHARE = 0.0005
_SLOW_STEP = 1.2

_REMARKS = {**{category.name: category.blame_remark for category in CATEGORIES}, QUEUE: "launched, but not started"}

_EXPLAINED = {
    "partial_overlap": "host events end after the event they began in ({n}); every instant still has one owner",
    "negative_duration": "events had a negative duration and were taken as 0 ns long ({n})",
    "missing_duration": "complete events had no duration and were taken as 0 ns long ({n})",
    "bad_duration": "events had a duration that is not a number and count as 0 ns ({n})",
    "bad_timestamp": "events had no readable timestamp and were left out ({n})",
    "untimed_event": (
        "events have no time and were left out ({n}): they are of the profiler's warm-up, or the trace was exported after the "
        "next recording had begun"
    ),
    "damaged_event": "entries of the file are damaged and were left out ({n})",
    "missing_phase": "entries name no phase and were left out ({n})",
    "begin_end_event": "begin and end events (ph B, E) were left out ({n}): only complete events are read",
    "stray_comma": "stray commas in the file were passed over ({n})",
    "truncated": "the file is cut off: this is what could be read of it",
    "unlinked_device_event": (
        "device events have no launch in the trace ({n} of {device_events}; launched before the recording began, or lost): "
        "they count as busy, have no launch latency, and the idle time before them is unattributed"
    ),
    "kernel_before_launch": "launches have a device event that starts before them ({n}; clock skew): latency taken as 0",
    "launch_without_device_event": (
        "launches have no device event ({n}): captured into a graph, still queued at the end of the recording, or lost"
    ),
    "overlap_in_stream": "device events start before the one before them in their stream ended ({n}); busy is their union",
    "profiler_overhead": "events are work of the profiler itself ({n}); its pauses inside an operator are unattributed",
    "driver_overhead": (
        "the driver loaded or compiled code, or waited for room in its queue ({n}): this counts with the call around it"
    ),
    "bad_counter_event": "counter events hold no finite number and were left out ({n}): their curves have gaps there",
    "bad_memory_event": "memory events do not say how many bytes and were left out ({n})",
    "no_category": (
        "events have no category, so another profiler or EventList.export_chrome_trace wrote them ({n}): they count as host "
        "work, even those of a device"
    ),
    "other_category": "events of categories that are neither host nor device work were left out ({n})",
}


def trace_outline(analysis: TraceAnalysis) -> Outline:
    """The outline."""
    first = [*finding_sections(analysis.findings), _over_time(analysis), *_devices(analysis.devices)]
    first += [*_host(analysis), *path_sections(analysis.critical_path)]
    parts, essential = _parts(analysis), _essential_parts(analysis)
    shown = [replace(parts[name][0], reach="everywhere") for name in parts if name in essential]
    further = [each for name, those in parts.items() for each in (those[1:] if name in essential else those)]
    issues = [row(reason.replace("_", " "), events) for reason, events in analysis.issues.items()]
    table = Table(heads(" | >events"), issues)
    notes = [*memory_notes(analysis.memory), *analysis.counters.notes, *path_notes(analysis.critical_path)]
    hidden = ", ".join(name for name in parts if name not in essential)
    return Outline(
        title(analysis),
        headline(analysis),
        Section.filled(*first, *shown, *further, Section.folded("What was dropped, repaired or is uncertain", table)),
        about=[_extent(analysis)],
        warnings=[*issue_lines(analysis), *notes, *analysis.notes],
        origin=lambda: [("trace", analysis.path), ("extent", _extent(analysis))],
        has_answer=False,
        hint=f"with --all also: {hidden}" if hidden else "",
    )


def _parts(analysis: TraceAnalysis) -> dict[str, list[Section]]:
    """Every further part that holds something, by name."""
    wall_ns = analysis.window.wall_ns
    steps = Drawing(lambda _: [*trace_steps(analysis.steps), *busy_steps(analysis.steps)])
    parts: Mapping[str, Sequence[Section | None]] = {
        "steps": [Section.folded("Steps over time", steps)] if analysis.steps[1:] else [],
        "other threads": [threads_beside(analysis)],
        "operators": [_costs("Costliest operators by self time", "operator", analysis.operators, wall_ns)],
        "kernels": [_costs("Costliest kernels", "kernel", analysis.kernels, wall_ns)],
        "modules": [module_section(analysis.modules)],
        "collectives": [collective_section(analysis.collectives, analysis.collective_costs)],
        "counters": [counter_section(analysis.counters)],
        "memory": list(memory_sections(analysis.memory)),
        "launches": list(launch_sections(analysis.devices[:_MOST_DEVICES], analysis.launch_figures)),
        "what repeats": [sequence_section(analysis.sequences)],
    }
    return {name: held for name, those in parts.items() if (held := Section.filled(*those))}


def _essential_parts(analysis: TraceAnalysis) -> frozenset[str]:
    """Parts without which a report would not answer its question, or would be empty."""
    if not analysis.devices:
        return frozenset({"operators"} if analysis.threads else {"memory"})
    per_token = any(device.kernels_per_token is not None for device in analysis.launch_figures)
    return frozenset({"launches"} if per_token else ())


def issue_lines(analysis: TraceAnalysis) -> list[str]:
    """Issues as sentences."""
    events = f"{sum(device.events for device in analysis.devices):,}"
    return [
        _EXPLAINED.get(reason, reason.replace("_", " ") + " ({n})").format(n=f"{number:,}", device_events=events)
        for reason, number in analysis.issues.items()
    ]


def title(analysis: TraceAnalysis) -> str:
    """The file, and the rank that it is of."""
    if analysis.rank is None:
        return analysis.path
    of = f" of {analysis.world_size}" if analysis.world_size is not None else ""
    return f"{analysis.path}, rank {analysis.rank}{of}"


def _extent(analysis: TraceAnalysis) -> str:
    """How much the trace holds."""
    steps = f", {len(analysis.steps)} steps" if analysis.steps else ""
    if len(analysis.steps) == 1:
        steps = f", 1 step of {format_ns(analysis.steps[0].window.wall_ns)}"
    threads = counted(len(analysis.threads), "host thread")
    return f"window {format_ns(analysis.window.wall_ns)}, {counted(analysis.events, 'event')}, {threads}{steps}"


def _over_time(analysis: TraceAnalysis) -> Section:
    over_time = analysis.over_time
    thread = _thread_name(analysis.threads[0]) if analysis.threads else ""
    blocks: list[Block] = []
    if over_time is not None and over_time.lanes:
        blocks.append(Drawing(lambda _: [strip(over_time, analysis.steps, thread), *_zero(analysis)]))
    several = len(analysis.steps) > 1
    blocks += [Notes([_steps_in_words(analysis.steps)])] if several else []
    return Section("Over time", blocks, reach="everywhere" if several else "page")


def _zero(analysis: TraceAnalysis) -> Iterator[Notes]:
    """Where the picture begins, if others begin earlier."""
    start_ns = analysis.window.start_ns
    if start_ns and (analysis.memory or analysis.counters.tracks):
        when = f"{format_ns(start_ns)} after the file's first event"
        yield Notes([f"The picture begins {when}, from which times of memory and counters count."])


def _steps_in_words(steps: Sequence[TraceStep]) -> str:
    """How long the steps are, at least two, and why the slowest is."""
    walls = [step.window.wall_ns for step in steps]
    words = f"{len(steps)} steps: median {format_ns(median(walls))}"
    words += f", {format_ns(min(walls))} .. {format_ns(max(walls))}"
    slowest = max(steps, key=lambda step: step.window.wall_ns)
    if slowest.window.wall_ns > _SLOW_STEP * median(walls):
        excess = [
            (category.ns - median(step.host[at].ns for step in steps), category.category)
            for at, category in enumerate(slowest.host)
        ]
        ns, name = max(excess, default=(0, ""))
        words += f"; step {slowest.step} is the slowest"
        if ns > 0:
            led = "mostly" if 2 * ns > slowest.window.wall_ns - median(walls) else "led"
            words += f", {led} by {name} (+{format_ns(ns)} over the median step)"
    return words


def _devices(devices: Sequence[DeviceBudget]) -> Iterator[Section]:
    for at, device in enumerate(devices[:_MOST_DEVICES]):
        name = f"{device.device} {device.name}".strip()
        heading = f"Device {name}: {counted(device.events, 'event')}, span {format_ns(device.span_ns)}"
        described = "Busy by kind of work, then idle by what the host was doing when it should have fed the device."
        pieces = {**_alone(device), **{f"{IDLE}{cause}": ns for cause, ns in device.idle_blame.items()}}.items()
        drawn = [Piece(look, ns, f"{look} {format_ns(ns)} ({ns / device.span_ns:.1%})") for look, ns in pieces if ns]
        bar = Bar("", "", drawn, max(1, device.span_ns))
        blocks: list[Block] = [
            Bars([bar], described),
            _partition(device),
            Notes([_launches(device.launch)], tone="dim"),
        ]
        yield Section(heading, blocks, "everywhere" if at < _BRIEF_DEVICES else "page")
    yield Section.folded("Further devices", Notes(left_out(len(devices) - _MOST_DEVICES, "further device")))


def _alone(device: DeviceBudget) -> dict[str, int]:
    """Busy time in pieces that sum to it; ``copy`` is what runs beside nothing else."""
    kinds = device.kinds
    compute, communication = kinds.compute_ns - kinds.overlap_ns, kinds.communication_ns - kinds.overlap_ns
    alone = {"compute": compute, "communication": communication, "both at once": kinds.overlap_ns}
    return {**alone, "copy": device.busy_ns - sum(alone.values())}


def _partition(device: DeviceBudget) -> Table:
    """Busy by kind of work, where kinds overlap with the time that each is alone, and idle by cause."""
    kinds, alone, span_ns = device.kinds, _alone(device), max(1, device.span_ns)
    rows = [part_row("busy", device.busy_ns, span_ns)]
    times_ns = (kinds.compute_ns, kinds.communication_ns, kinds.copy_ns, kinds.overlap_ns)
    for name, ns in zip(("compute", "communication", "copy", "both at once"), times_ns, strict=True):
        if ns:
            remark = apart(name, alone[name]) if alone[name] != ns else ""
            rows.append(part_row(name, ns, span_ns, name, remark))
    rows.append(part_row("idle, due to", device.idle_ns, span_ns))
    for name, ns in sorted(device.idle_blame.items(), key=lambda item: -item[1]):
        if ns:
            idle = part_row(name, ns, span_ns, f"{IDLE}{name}", _REMARKS[name])
            rows.append(replace(idle, is_minor=ns < _SHOWN_SHARE * span_ns))
    return Table(heads(" | ~2 | > | > | ~1"), rows, more="")


def _launches(launch: Launches) -> str:
    """How device work reached the device."""
    if not launch.count:
        return "no launch in the trace"
    graphs = counted(launch.graph_launches, "graph launch") + f" of {counted(launch.graph_events, 'event')}"
    return (
        f"{counted(launch.count, 'launch')}, latency median {format_ns(launch.median_ns)}, p99 {format_ns(launch.p99_ns)}, "
        f"queue depth mean {launch.queue_depth_mean:.1f}, max {launch.queue_depth_max}"
        + (f", {graphs}" if launch.graph_launches else "")
    )


def _host(analysis: TraceAnalysis) -> Iterator[Section]:
    if not analysis.threads:
        return
    busiest, wall_ns = analysis.threads[0], analysis.window.wall_ns
    rows = [each for category in busiest.host if category.ns for each in _category(category, wall_ns)]
    rows.append(sum_row("sum = window", "", "100 %", time(wall_ns), "", ""))
    columns = heads("where | ~3 | >share | >time | 95 % interval ~2 | most in ~1")
    name, table = _thread_name(busiest), Table(columns, rows, more="")
    yield Section(f"Host: {name}, sum = window", [whole_bar(busiest.host, wall_ns), table], reach="everywhere")
    yield replace(frames_section(busiest.host, wall_ns, _MOST_FRAMES, 0, f" of {name}"), reach="page")


def _category(category: HostCategory, wall_ns: int) -> Iterator[Row]:
    look = category.category
    label = text(look + (" (estimate)" if category.evidence == "estimate" else ""), look)
    first = f"{format_ns(category.top[0].ns)} {category.top[0].frame}" if category.top else ""
    yield row(
        *(label, length(category.ns, wall_ns, category.ci95_ns, look), share(category.share), time(category.ns)),
        bounds(category.ci95_ns) if category.evidence == "estimate" else Cell(),
        text(first, tone="dim"),
        is_minor=category.share < _SHOWN_SHARE,
    )
    for part in category.parts:
        if part.ns:
            shown = part_row(part.name, part.ns, max(1, wall_ns), look)
            yield replace(shown, cells=[*shown.cells[:-1], Cell(), Cell()], tone="dim", is_minor=True)


def _thread_name(thread: ThreadBudget) -> str:
    if thread.name and thread.tid in thread.name:
        return thread.name
    return f"thread {thread.tid or 'without a number'} {thread.name}".strip()


def threads_beside(analysis: TraceAnalysis) -> Section:
    """Threads but the busiest: their time in events, and by category."""
    others = sorted((thread for thread in analysis.threads[1:] if thread.covered_ns), key=lambda one: -one.covered_ns)
    shown = [(_thread_name(thread), thread.covered_ns, thread.host) for thread in others[:_MOST_THREADS]]
    table = hosts_table("thread", "covered by events", shown, _BRIEF_THREADS)
    more = left_out(len(others) - _MOST_THREADS, "thread", " with less")
    return Section.folded("Other threads: covered by events, and the window by category", table, Notes(more))


def _costs(heading: str, what: str, costs: Sequence[Cost], wall_ns: int) -> Section:
    """A row for each; ``what`` is ``operator``, whose time is divided, or ``kernel``."""
    divided = what == "operator"
    rows = []
    for cost in costs[:_MOST_COSTS]:
        # A divided operator has the category of its larger part.
        name = "kernel" if cost.kernel_ns > cost.dispatch_ns else cost.category
        part, category = share_text(cost.self_ns, wall_ns, 1), text(name, name)
        # What is neither dispatched nor a kernel, such as Python code, has no parts.
        parts = map(time, (cost.dispatch_ns, cost.kernel_ns) if cost.category == "dispatcher" else (None, None))
        rows.append(row(time(cost.self_ns), part, f"{cost.count:,}x", *parts, category, kernel_name(cost.name)))
    time_head = "self" if divided else "time"
    columns = heads(f">{time_head} | >share ~2 | >events | >dispatch ~1 | >kernel ~1 | category ~3 | {what}")
    caption = "self time, divided by an estimate of kernels on the host" if divided else "on the device"
    return Section.folded(heading, Table(columns, rows, caption, brief=_BRIEF_COSTS, more=""))
