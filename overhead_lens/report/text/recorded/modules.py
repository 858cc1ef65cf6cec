"""The budget per module of a recorded trace in the terminal: costliest classes, and how the layers differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section, table_of, without_empty
from overhead_lens.report.text.plain import plain
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleClass, ModuleTime
from overhead_lens.units import format_ns

_TOP = 4
_FEWEST_LAYERS = 3
_NAME = 40

NAMED = frozenset({"class", "module", "below"})
"""Columns that hold names."""


def module_blocks(modules: ModuleBudgets | None) -> Iterator[RenderableType]:
    """What is printed: the costliest classes and the costliest layers; nothing if the trace names no module."""
    if modules is None:
        return
    heads, rows = without_empty(class_cells(costliest(modules)[:_TOP]))
    lines = [Text(line, style="dim") for line in layers_in_words(modules)]
    yield section(headline(modules), Group(table_of((heads, rows), left=NAMED), *lines))


def headline(modules: ModuleBudgets) -> str:
    """The number of modules, and the time spent in them."""
    count, classes = len({node.name for node in modules.nodes}), len(modules.classes)
    text = f"modules: {count:,} of {classes:,} class{'es' if classes != 1 else ''}"
    shares = [f"{_share(modules.inside.host_ns, modules.whole.host_ns)} of the busiest thread's time"]
    if device_ns := modules.whole.device_ns + modules.unlinked_ns:
        shares.append(f"{_share(modules.inside.device_ns, device_ns)} of the device's")
    return f"{text}, with {' and '.join(shares)}"


def costliest(modules: ModuleBudgets) -> Sequence[ModuleClass]:
    """Classes by the larger of their shares of host and device."""
    inside = modules.inside
    return sorted(modules.classes, key=lambda each: -_weight(each.own, inside))


def _weight(time: ModuleTime, whole: ModuleTime) -> float:
    """The larger of the shares of host and device."""
    host_ns, device_ns = whole.host_ns + whole.others_ns, whole.device_ns
    return max((time.host_ns + time.others_ns) / max(1, host_ns), time.device_ns / max(1, device_ns))


def class_cells(classes: Sequence[ModuleClass]) -> Cells:
    """A row for each class: its own time, and how often it is called."""
    heads = (*TIMES, "with inner ones", "instances", "calls", "class")
    return heads, [
        (
            *time_cells(each.own),
            format_ns(each.total.host_ns) if each.total.host_ns != each.own.host_ns else "",
            f"{each.instances:,}",
            f"{each.calls:,}",
            cut(plain(each.class_name), _NAME),
        )
        for each in classes
    ]


TIMES = ("host", "other threads", "device forward", "backward", "communication")


def time_cells(time: ModuleTime) -> Sequence[str]:
    """Times in the order of ``TIMES``; nothing for none."""
    times = (time.host_ns, time.others_ns, time.device_forward_ns, time.device_backward_ns, time.communication_ns)
    return [format_ns(ns) if ns else "" for ns in times]


def costliest_layers(modules: ModuleBudgets) -> Sequence[Layers]:
    """Groups of at least three layers by their share of host or device."""
    inside = modules.inside
    able = [each for each in modules.layers if len(each.nodes) >= _FEWEST_LAYERS]
    return sorted(able, key=lambda each: -sum(_weight(modules.nodes[at].total, inside) for at in each.nodes))


def layers_in_words(modules: ModuleBudgets) -> list[str]:
    """The time of the costliest layers, and the slowest of them, on host and device."""
    told = []
    for layers in costliest_layers(modules)[:1]:
        nodes = [modules.nodes[at] for at in layers.nodes]
        spans = []
        for where, times in (
            ("host", [node.total.host_ns + node.total.others_ns for node in nodes]),
            ("device", [node.total.device_ns for node in nodes]),
        ):
            if any(times):
                most = nodes[times.index(max(times))].name
                spans.append(
                    f"{where} {format_ns(min(times))} .. {format_ns(max(times))}, median {format_ns(median(times))}, "
                    f"most in {cut(plain(most), _NAME)}"
                )
        below = f" in {cut(plain(modules.nodes[layers.parent].name), _NAME)}" if layers.parent is not None else ""
        told.append(f"{len(nodes)} layers {cut(plain(layers.class_name), _NAME)}{below}: {'; '.join(spans)}")
    return told


def _share(ns: int, whole_ns: int) -> str:
    return f"{ns / whole_ns:.1%}" if whole_ns else "-"
