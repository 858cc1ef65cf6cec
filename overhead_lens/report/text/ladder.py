"""The terminal report of an ablation ladder."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, interval_text, signed_interval_text, table_of
from overhead_lens.report.text.plain import plain
from overhead_lens.stats.values import Interval
from overhead_lens.studies.ladder.analysis import Ladder, LadderStep, Layer, Rung
from overhead_lens.units import format_ns, format_signed_ns


def print_ladder(console: Console, ladder: Ladder) -> None:
    """Print the rungs, the layers of the compiled call, the single steps and a sentence."""
    console.print(Text(title(ladder), style="bold"))
    console.print(Text(how(ladder)))
    console.print(table_of(rung_cells(ladder), left=["rung"]))
    if reasons := not_done(ladder):
        console.print()
        for reason in reasons:
            console.print(Text(reason, style="dim"))
    if ladder.layers:
        console.print()
        heads, rows = layer_cells(ladder.layers)
        console.print(table_of((heads, rows), left=heads[:1]))
    console.print()
    console.print(table_of(step_cells(ladder), left=["single step", "instead of"]))
    for reason in steps_not_done(ladder):
        console.print(Text(reason, style="dim"))
    if sentence := ladder.sentence:
        console.print()
        console.print(Text(sentence, style="bold"))
    for warning in ladder.warnings:
        console.print(Text(f"warning: {plain(warning)}", style="yellow"))
    console.print(Text(f"ladder: {plain(ladder.directory)}", style="dim"), soft_wrap=True)


def how(ladder: Ladder) -> str:
    """How the times came about, in a line."""
    processes = f"medians of {ladder.processes} processes"
    return f"per call, {processes}; a step is the paired difference to the rung it is indented under"


def title(ladder: Ladder) -> str:
    """What the ladder is of: scenario, variant, parameters."""
    params = " ".join(f"{name}={value}" for name, value in ladder.subject.params.items())
    return plain(f"ladder of {ladder.subject.name}:{ladder.subject.variant}  {params}")


def not_done(ladder: Ladder) -> list[str]:
    """Rungs that could not be timed, and why."""
    return [f"not done: {rung.kind.title}: {plain(rung.reason)}" for rung in ladder.rungs if rung.reason]


def steps_not_done(ladder: Ladder) -> list[str]:
    """Single steps that could not be timed, and why."""
    reasons = dict.fromkeys(f"{step.kind.pair}: {step.reason}" for step in ladder.steps if step.reason)
    return [f"not done: {plain(reason)}" for reason in reasons]


def rung_cells(ladder: Ladder) -> Cells:
    """Every rung, indented under the one that it is compared with."""
    faults = any((rung.minor_faults or 0) >= 1 for rung in ladder.rungs)
    heads = ("rung", "time", "step", "95 % interval", "x eager", *(("faults",) if faults else ()), "published")
    eager = ladder.rung("eager")
    return heads, [_rung(rung, eager, len(heads), faults=faults) for rung in ladder.rungs]


def _rung(rung: Rung, eager: Rung | None, width: int, *, faults: bool) -> Sequence[str]:
    name = " " * rung.depth + rung.kind.title
    if rung.ns is None:
        return name, "not done", *[""] * (width - 2)
    return (
        name,
        format_ns(rung.ns),
        _signed(rung.step_ns),
        _interval(rung.step_ci95_ns),
        f"{rung.ns / eager.ns:.2f}" if eager is not None and eager.ns else "",
        *((f"{rung.minor_faults:.0f}" if rung.minor_faults and rung.minor_faults >= 1 else "",) if faults else ()),
        _published(rung),
    )


def _published(rung: Rung) -> str:
    """The first published figure and its multiple of the eager call of the same source."""
    if not rung.published:
        return ""
    first = rung.published[0]
    multiple = f" {first.ns / first.eager_ns:.2f}x" if first.eager_ns else ""
    return f"{first.ns / 1e3:,.1f} µs{multiple}"


def layer_cells(layers: Sequence[Layer]) -> Cells:
    """The layers of the compiled call and their sum."""
    total = sum(layer.ns for layer in layers)
    rows = [
        (layer.name, format_ns(layer.ns), f"{layer.ns / total:.1%}", interval_text(layer.ci95_ns)) for layer in layers
    ]
    heads = ("the compiled call, from outside in", "time", "share", "95 % interval")
    return heads, [*rows, ("sum", format_ns(total), "", "")]


def step_cells(ladder: Ladder) -> Cells:
    """Small jobs done in two ways."""
    heads = ("single step", "time", "instead of", "time", "difference", "95 % interval", "ratio", "published")
    return heads, [_step(step) for step in ladder.steps]


def _step(step: LadderStep) -> Sequence[str]:
    kind = step.kind
    if step.slow_ns is None or step.fast_ns is None:
        return kind.slow, "not done", kind.fast, "", "", "", "", ""
    return (
        kind.slow,
        format_ns(step.slow_ns),
        kind.fast,
        format_ns(step.fast_ns),
        _signed(step.delta_ns),
        _interval(step.delta_ci95_ns),
        f"{step.slow_ns / step.fast_ns:.1f}x",
        _signed(kind.published_ns),
    )


def _signed(ns: float | None) -> str:
    return "" if ns is None else format_signed_ns(ns)


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else signed_interval_text(interval)
