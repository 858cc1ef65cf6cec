"""The terminal report of an ablation ladder."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import figures, interval_text, signed_interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.stats.values import Interval
from overhead_lens.studies.ladder.analysis import Ladder, Layer, Rung
from overhead_lens.units import format_ns, format_signed_ns


def print_ladder(console: Console, ladder: Ladder) -> None:
    """Print the rungs, the layers of the compiled call, the single steps and a sentence."""
    params = " ".join(f"{name}={value}" for name, value in ladder.subject.params.items())
    console.print(Text(plain(f"ladder of {ladder.subject.name}:{ladder.subject.variant}  {params}"), style="bold"))
    console.print(
        Text(
            f"per call, medians of {ladder.processes} processes; a step is the paired difference to the rung it is indented under"
        )
    )
    console.print(_rungs(ladder))
    if any(rung.reason for rung in ladder.rungs):
        console.print()
        for rung in ladder.rungs:
            if rung.reason:
                console.print(Text(f"not done: {rung.kind.title}: {plain(rung.reason)}", style="dim"))
    if ladder.layers:
        console.print()
        console.print(_layers(ladder.layers))
    console.print()
    console.print(_steps(ladder))
    for reason in dict.fromkeys(f"{step.kind.pair}: {step.reason}" for step in ladder.steps if step.reason):
        console.print(Text(f"not done: {plain(reason)}", style="dim"))
    if sentence := ladder.sentence:
        console.print()
        console.print(Text(sentence, style="bold"))
    for warning in ladder.warnings:
        console.print(Text(f"warning: {plain(warning)}", style="yellow"))
    console.print(Text(f"ladder: {plain(ladder.directory)}", style="dim"), soft_wrap=True)


def _rungs(ladder: Ladder) -> Table:
    faults = any((rung.minor_faults or 0) >= 1 for rung in ladder.rungs)
    names = ("rung", "time", "step", "95 % interval", "x eager", *(("faults",) if faults else ()), "published")
    table = figures(*names, left=["rung"])
    eager = ladder.rung("eager")
    for rung in ladder.rungs:
        title = " " * rung.depth + rung.kind.title
        if rung.ns is None:
            table.add_row(Text(title, style="dim"), "not done")
            continue
        table.add_row(
            title,
            format_ns(rung.ns),
            _signed(rung.step_ns),
            _interval(rung.step_ci95_ns),
            f"{rung.ns / eager.ns:.2f}" if eager is not None and eager.ns else "",
            *((f"{rung.minor_faults:.0f}" if rung.minor_faults and rung.minor_faults >= 1 else "",) if faults else ()),
            _published(rung),
        )
    return table


def _published(rung: Rung) -> str:
    """The first published figure and its multiple of the eager call of the same source."""
    if not rung.published:
        return ""
    first = rung.published[0]
    multiple = f" {first.ns / first.eager_ns:.2f}x" if first.eager_ns else ""
    return f"{first.ns / 1e3:,.1f} µs{multiple}"


def _layers(layers: Sequence[Layer]) -> Table:
    title = "the compiled call, from outside in"
    table = figures(title, "time", "share", "95 % interval", left=[title])
    total = sum(layer.ns for layer in layers)
    for layer in layers:
        table.add_row(layer.name, format_ns(layer.ns), f"{layer.ns / total:.1%}", interval_text(layer.ci95_ns))
    table.add_row(Text("sum", style="dim"), format_ns(total), "", "")
    return table


def _steps(ladder: Ladder) -> Table:
    names = ("single step", "time", "instead of", "time", "difference", "95 % interval", "ratio", "published")
    table = figures(*names, left=["single step", "instead of"])
    for step in ladder.steps:
        kind = step.kind
        if step.slow_ns is None or step.fast_ns is None:
            table.add_row(kind.slow, "not done", kind.fast)
            continue
        table.add_row(
            kind.slow,
            format_ns(step.slow_ns),
            kind.fast,
            format_ns(step.fast_ns),
            _signed(step.delta_ns),
            _interval(step.delta_ci95_ns),
            f"{step.slow_ns / step.fast_ns:.1f}x",
            _signed(kind.published_ns),
        )
    return table


def _signed(ns: float | None) -> str:
    return "" if ns is None else format_signed_ns(ns)


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else signed_interval_text(interval)
