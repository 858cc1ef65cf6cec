"""Pictures of one measured call, from what its capture holds: the sampled stacks, and the timed blocks of every process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from overhead_lens.budget.model import Breakdown
from overhead_lens.budget.wall import time_column, undisturbed, without_delays
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.errors import UsageError
from overhead_lens.instruments.clock.record import read_blocks
from overhead_lens.instruments.samples.record import read_samples
from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import close_time_axis, numbered_axis
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.page.model import Plot, Series, Symbol
from overhead_lens.report.text.blocks import call_title, counted
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns

_SPREAD = 0.8


def stacks_of(breakdown: Breakdown) -> tuple[Sequence[Stack], str]:
    """The stacks that were sampled in the call, or why there are none."""
    try:
        samples = read_samples(_capture(breakdown))
    except UsageError as error:
        return (), f"No stacks to draw: {error}"
    if not samples.stacks:
        return (), f"No stacks to draw: {samples.sampled.reason or 'none was taken'}"
    return samples.stacks, ""


def _capture(breakdown: Breakdown) -> Capture:
    """The directory that holds the budget's evidence.

    Raises:
        UsageError: It is not there, or not complete.
    """
    if not breakdown.capture:
        raise UsageError("the budget was not stored")
    return read_capture(Path(breakdown.capture))


def call_stacks(breakdown: Breakdown, classifier: Classifier) -> Iterator[Picture]:
    """The stacks as an icicle."""
    stacks, missing = stacks_of(breakdown)
    if missing:
        yield Notes([missing])
        return
    tree = tree_of(stacks, classifier.fitted(stacks), call_title(breakdown))
    yield from icicle(tree, breakdown.wall.ns, "call", breakdown.host)


def processes(breakdown: Breakdown, _classifier: Classifier) -> Iterator[Picture]:
    """Every timed block of every process, in order; medians of the blocks that the wall time rests on."""
    try:
        blocks = without_delays(read_blocks(_capture(breakdown)))
    except UsageError:
        return
    numbers = blocks["process"].rank(method="dense").astype(int)
    beside = _SPREAD * (blocks.groupby("process")["process"].rank(method="first", pct=True) - 0.5)
    table = blocks.assign(
        ns=blocks[time_column(blocks)] / blocks["calls"],
        number=numbers,
        x=numbers - 1 + beside,
        is_kept=blocks.index.isin(undisturbed(blocks).index),
    )
    kept, left_out = table[table["is_kept"]], table[~table["is_kept"]]
    medians = kept.groupby("number")["ns"].median().to_list()
    series = [_blocks("kept", "#4477aa", "circle", kept)]
    series += [_blocks("left out", "#8a9199", "x", left_out)] if len(left_out) else []
    half = _SPREAD / 2
    series += [Series("", "#e45756", [at - half, at + half], [ns, ns], "line") for at, ns in enumerate(medians)]
    low, high = float(table["ns"].min()), float(table["ns"].max())
    y = close_time_axis(low - 0.06 * (high - low), high + 0.06 * (high - low), "per call")
    walls = ", ".join(map(format_ns, medians))
    text = f"Timed blocks of {counted(len(medians), 'process')}; median of each (line): {walls}."
    yield Plot(series, numbered_axis([str(at + 1) for at in range(len(medians))], 20, "process"), y, text, 240)
    disturbed = f"{len(left_out):,} of {len(table):,} blocks, beside which the reference loop shows a disturbed machine"
    yield Notes([text, *([f"Left out: {disturbed}."] if len(left_out) else [])])


def _blocks(name: str, ink: str, symbol: Symbol, rows: pd.DataFrame) -> Series:
    tooltips = [f"process {number}: {format_ns(ns)}" for number, ns in zip(rows["number"], rows["ns"], strict=True)]
    return Series(name, ink, rows["x"].to_list(), rows["ns"].to_list(), tooltips=tooltips, symbol=symbol)
