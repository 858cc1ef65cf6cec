"""The terminal report of an analyzed trace: host and device at a glance, blame, costliest names, footnotes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, bar, bar_row, cut, print_footnotes, section
from overhead_lens.report.text.figures import figures, plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.report.text.ranks import print_ranks
from overhead_lens.report.text.recorded.collectives import collective_blocks
from overhead_lens.report.text.recorded.counters import counter_blocks, counter_notes
from overhead_lens.report.text.recorded.critical_path import path_blocks, path_notes
from overhead_lens.report.text.recorded.findings import finding_blocks
from overhead_lens.report.text.recorded.headline import headline
from overhead_lens.report.text.recorded.launches import batch_blocks, launch_blocks
from overhead_lens.report.text.recorded.memory import memory_blocks, memory_notes
from overhead_lens.report.text.recorded.modules import module_blocks
from overhead_lens.report.text.recorded.sequences import sequence_blocks
from overhead_lens.taxonomy.categories import CATEGORIES, COLORS, QUEUE
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.budgets import Cost, DeviceBudget, Launches, ThreadBudget, TraceStep
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from overhead_lens.traces.ranks import Job
from overhead_lens.units import format_ns

_TOP = 5
_MOST_DEVICES = 2
_MOST_BRIEF = 8
_MOST_THREADS = 4
_MOST_NAME = 60
_COST_COLUMNS = 64
_KERNEL_ROOM = 20
_SHOWN_SHARE = 0.0005
_SLOW_STEP = 1.2

_BLAME_COLORS = {**COLORS, QUEUE: "bright_black"}
_KIND_COLORS = {"compute": "green", "communication": "magenta", "copy": "cyan", "both at once": "bright_black"}

_EXPLAINED = {
    "partial_overlap": "{n} host events end after the event they began in; every instant still has one owner",
    "negative_duration": "{n} events had a negative duration and were taken as 0 ns long",
    "missing_duration": "{n} complete events had no duration and were taken as 0 ns long",
    "bad_duration": "{n} events had a duration that is not a number and count as 0 ns",
    "bad_timestamp": "{n} events had no readable timestamp and were left out",
    "damaged_event": "{n} entries of the file are damaged and were left out",
    "missing_phase": "{n} entries name no phase and were left out",
    "begin_end_event": "{n} begin and end events (ph B, E) were left out: only complete events are read",
    "stray_comma": "{n} stray commas in the file were passed over",
    "truncated": "the file is cut off: this is what could be read of it",
    "unlinked_device_event": (
        "{n} of {device_events} device events have no launch in the trace (launched before the recording began, or lost): "
        "they count as busy, have no launch latency, and the idle time before them is unattributed"
    ),
    "kernel_before_launch": "{n} launches have a device event that starts before them (clock skew): latency taken as 0",
    "launch_without_device_event": (
        "{n} launches have no device event: captured into a graph, still queued at the end of the recording, or lost"
    ),
    "overlap_in_stream": "{n} device events start before the one before them in their stream ended; busy is their union",
    "profiler_overhead": "{n} pauses of the profiler itself lie in the recording",
    "bad_counter_event": "{n} counter events hold no finite number and were left out: what they would say is a gap",
    "bad_memory_event": "{n} memory events do not say how many bytes and were left out",
    "other_category": "{n} events of categories that are neither host nor device work were left out",
}


def print_job(console: Console, job: Job, *, whole: bool = False) -> None:
    """Print how the traces compare, then one of them; not ``whole``, the others only in a sentence."""
    if job.ranks is not None:
        print_ranks(console, job.ranks)
        console.print()
    if job.batches is not None:
        for block in batch_blocks(job.batches):
            console.print(block)
        console.print()
    brief = 0
    for result in job.by_weight:
        if isinstance(result, TraceFailure):
            print_failure(console, result)
        elif whole or result is job.detailed:
            print_analysis(console, result, whole=whole)
        elif (brief := brief + 1) <= _MOST_BRIEF:
            console.print(Text(f"\n{title(result)}\n{sentence(result)}"))
    if brief > _MOST_BRIEF:
        console.print(Text(f"\n{brief - _MOST_BRIEF} more traces: --all prints every one", style="dim"))


def print_failure(console: Console, failure: TraceFailure) -> None:
    """Print a trace that could not be analyzed."""
    console.print(Text(plain(failure.path), style="bold"))
    console.print(Text(f"  {plain(failure.error)}", style="red"), soft_wrap=True)


def print_analysis(console: Console, analysis: TraceAnalysis, *, whole: bool = False) -> None:
    """Print the analysis of a trace: what to try, steps, devices, host; and, if ``whole``, every other part."""
    console.print(_headline(analysis))
    console.print(Text(sentence(analysis), style="bold"))
    devices = analysis.devices if whole else analysis.devices[:_MOST_DEVICES]
    details = list(_details(analysis, max(20, console.width - _COST_COLUMNS)))
    asked_for = _asked_for(analysis)
    shown = [block for name, block in details if whole or name in asked_for]
    for block in (
        *finding_blocks(analysis.findings, whole=whole),
        _steps(analysis.steps),
        *(_device(device, whole=whole) for device in devices),
        _host(analysis, whole=whole),
        *path_blocks(analysis.critical_path),
        *shown,
    ):
        if block is not None:
            console.print()
            console.print(block)
    print_footnotes(console, footnotes(analysis))
    if len(shown) < len(details):
        left_out = ", ".join(dict.fromkeys(name for name, _ in details if name not in asked_for))
        console.print()
        console.print(Text(f"with --all also: {left_out}", style="dim"))


def _asked_for(analysis: TraceAnalysis) -> frozenset[str]:
    """Details that are printed because they were requested, or because the report would be empty without them."""
    if not analysis.devices:
        return frozenset({"operators"} if analysis.threads else {"memory"})
    per_token = any(device.kernels_per_token is not None for device in analysis.launch_figures)
    return frozenset({"launches"} if per_token else ())


def _details(analysis: TraceAnalysis, name_width: int) -> Iterator[tuple[str, RenderableType]]:
    """Every further part with its name."""
    wall_ns = analysis.window.wall_ns
    parts: Mapping[str, Iterable[RenderableType | None]] = {
        "other threads": [_other_threads(analysis)],
        "operators": [_costs("costliest operators by self time", "operator", analysis.operators, wall_ns, name_width)],
        "kernels": [_costs("costliest kernels", "kernel", analysis.kernels, wall_ns, name_width + _KERNEL_ROOM)],
        "modules": module_blocks(analysis.modules),
        "collectives": collective_blocks(analysis.collectives, analysis.collective_costs),
        "counters": counter_blocks(analysis.counters),
        "memory": memory_blocks(analysis.memory),
        "launches": launch_blocks(analysis.launch_figures),
        "what repeats": sequence_blocks(analysis.sequences, wall_ns),
    }
    return ((name, block) for name, blocks in parts.items() for block in blocks if block is not None)


def sentence(analysis: TraceAnalysis) -> str:
    """The dominant category in a sentence."""
    return headline(analysis)


def footnotes(analysis: TraceAnalysis) -> list[str]:
    """Issues and notes as sentences."""
    events = f"{sum(device.events for device in analysis.devices):,}"
    explained = [
        _EXPLAINED.get(reason, reason.replace("_", " ") + ": {n} events").format(n=f"{count:,}", device_events=events)
        for reason, count in analysis.issues.items()
    ]
    return [
        *explained,
        *memory_notes(analysis.memory),
        *counter_notes(analysis.counters),
        *path_notes(analysis.critical_path),
        *analysis.notes,
    ]


def title(analysis: TraceAnalysis) -> str:
    """The file name, with the rank."""
    if analysis.rank is None:
        return plain(analysis.path)
    of = f" of {analysis.world_size}" if analysis.world_size is not None else ""
    return f"{plain(analysis.path)}, rank {analysis.rank}{of}"


def extent(analysis: TraceAnalysis) -> str:
    """The size of the trace: window, events, threads, steps."""
    steps = f", {len(analysis.steps)} steps" if analysis.steps else ""
    if len(analysis.steps) == 1:
        steps = f", 1 step of {format_ns(analysis.steps[0].window.wall_ns)}"
    threads = f"{len(analysis.threads)} host thread{'' if len(analysis.threads) == 1 else 's'}"
    return f"window {format_ns(analysis.window.wall_ns)}, {analysis.events:,} events, {threads}{steps}"


def _headline(analysis: TraceAnalysis) -> Text:
    path = plain(analysis.path)
    return Text.assemble((path, "bold"), title(analysis).removeprefix(path), (f"\n{extent(analysis)}", "dim"))


def _host(analysis: TraceAnalysis, *, whole: bool) -> RenderableType | None:
    if not analysis.threads:
        return None
    busiest = analysis.threads[0]
    table = _bars()
    for category in busiest.host:
        if category.ns and (whole or category.share >= _SHOWN_SHARE):
            table.add_row(*_category_row(category, analysis.window.wall_ns))
    return section(f"host: {thread_name(busiest)}, sum = window", table)


def thread_name(thread: ThreadBudget) -> str:
    """Name and number of a host thread."""
    if thread.name and thread.tid in thread.name:
        return plain(thread.name)
    return plain(f"thread {thread.tid or 'without a number'} {thread.name}".strip())


def _category_row(category: HostCategory, wall_ns: int) -> Sequence[RenderableType]:
    color = COLORS[category.category]
    label = category.category + (" (estimate)" if category.evidence == "estimate" else "")
    top = category.top[0] if category.top else None
    led = f"{format_ns(top.ns)} {shortened(top.frame)}" if top is not None else ""
    return (
        Text(label, style=f"bold {color}"),
        Text(bar(category.share), style=color),
        _share(category.ns, wall_ns),
        format_ns(category.ns),
        Text(led, style="dim"),
    )


def _other_threads(analysis: TraceAnalysis) -> RenderableType | None:
    others = sorted(
        (thread for thread in analysis.threads[1:] if thread.covered_ns), key=lambda thread: -thread.covered_ns
    )
    if not others:
        return None
    table = plain_figures()
    for thread in others[:_MOST_THREADS]:
        ranked = sorted((category for category in thread.host if category.ns), key=lambda category: -category.ns)[:3]
        parts = ", ".join(f"{category.category} {_share(category.ns, analysis.window.wall_ns)}" for category in ranked)
        table.add_row(Text(thread_name(thread)), format_ns(thread.covered_ns), Text(parts, style="dim"))
    more = len(others) - _MOST_THREADS
    if more > 0:
        table.add_row(Text(f"{more} more", style="dim"), "", "")
    return section("other threads: covered by events, and the window by category", table)


def _device(device: DeviceBudget, *, whole: bool) -> RenderableType:
    table = _bars()
    kinds = device.kinds
    launched = launches(device.launch) if whole else launches(device.launch).partition(", p99")[0]
    table.add_row(*bar_row("busy", "bold", device.busy_ns, device.span_ns, launched))
    for name, ns in (
        ("compute", kinds.compute_ns),
        ("communication", kinds.communication_ns),
        ("copy", kinds.copy_ns),
        ("both at once", kinds.overlap_ns),
    ):
        if ns:
            table.add_row(*bar_row(f"  {name}", _KIND_COLORS[name], ns, device.span_ns, ""))
    table.add_row(*bar_row("idle, due to", "bold", device.idle_ns, device.span_ns, ""))
    for name, ns in sorted(device.idle_blame.items(), key=lambda item: -item[1]):
        if ns >= _SHOWN_SHARE * device.span_ns:
            table.add_row(*bar_row(f"  {name}", _BLAME_COLORS[name], ns, device.span_ns, BLAME_REMARKS[name]))
    name = f" {plain(device.name)}" if device.name else ""
    return section(f"device {device.device}{name}: {device.events:,} events, span {format_ns(device.span_ns)}", table)


BLAME_REMARKS = {
    **{category.name: category.blame_remark for category in CATEGORIES},
    QUEUE: "launched, but not started",
}


def launches(launch: Launches) -> str:
    """Statistics of launches in a sentence."""
    if not launch.count:
        return "no launch in the trace"
    graphs = (
        f", {launch.graph_launches} graph launches of {launch.graph_events:,} events" if launch.graph_launches else ""
    )
    return (
        f"{launch.count:,} launches, latency median {format_ns(launch.median_ns)}, p99 {format_ns(launch.p99_ns)}, "
        f"queue depth mean {launch.queue_depth_mean:.1f}, max {launch.queue_depth_max}{graphs}"
    )


def _costs(title: str, what: str, costs: Sequence[Cost], wall_ns: int, name_width: int) -> RenderableType | None:
    if not costs:
        return None
    heads, rows = cost_cells(what, costs[:_TOP], wall_ns, name_width)
    table = figures(*heads, left=["category", what], folded=[what])
    for (*cells, name), cost in zip(rows, costs, strict=False):
        color = {**COLORS, **_KIND_COLORS}.get(cost.category, "default")
        table.add_row(*cells[:-1], Text(cells[-1], style=color), Text(name))
    return section(title, table)


def cost_cells(what: str, costs: Sequence[Cost], wall_ns: int, name_width: int) -> Cells:
    """A row for each; ``what`` is ``operator``, whose time is divided, or ``kernel``."""
    divided = what == "operator"
    rows = [
        (
            format_ns(cost.self_ns),
            _share(cost.self_ns, wall_ns),
            f"{cost.count:,}x",
            *(map(format_ns, (cost.dispatch_ns, cost.kernel_ns)) if divided else ()),
            cost.category,
            shortened(kernel_name(cost.name), name_width),
        )
        for cost in costs
    ]
    return (
        "self" if divided else "time",
        "share",
        "events",
        *(("dispatch", "kernel") if divided else ()),
        "category",
        what,
    ), rows


def _steps(steps: Sequence[TraceStep]) -> RenderableType | None:
    return Text(steps_in_words(steps), style="dim") if len(steps) > 1 else None


def steps_in_words(steps: Sequence[TraceStep]) -> str:
    """The length of the steps (at least two), and the cause of the slowest."""
    walls = [step.window.wall_ns for step in steps]
    text = f"{len(steps)} steps: median {format_ns(median(walls))}"
    text += f", {format_ns(min(walls))} .. {format_ns(max(walls))}"
    slowest = max(steps, key=lambda step: step.window.wall_ns)
    if slowest.window.wall_ns > _SLOW_STEP * median(walls):
        excess = [
            (category.ns - median(step.host[at].ns for step in steps), category.category)
            for at, category in enumerate(slowest.host)
        ]
        if excess:
            ns, name = max(excess)
            text += f"; step {slowest.step} is the slowest, mostly by {name} (+{format_ns(ns)} over the median step)"
    return text


def _bars() -> Table:
    table = plain_figures()
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _share(ns: float, whole_ns: float) -> str:
    return f"{ns / whole_ns:.1%}" if whole_ns else "-"


def shortened(name: str, width: int = _MOST_NAME) -> str:
    """A name on one line that leaves room for the figures beside it."""
    return cut(plain(name), width)
