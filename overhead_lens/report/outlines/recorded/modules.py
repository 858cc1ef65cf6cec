"""The budget per module of a recorded trace, in words and as a picture: costliest classes, how layers differ, single modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from overhead_lens.report.cells import heads, row, sum_row, time
from overhead_lens.report.looks import ink
from overhead_lens.report.outline import Cell, Column, Drawing, Notes, Picture, Section, Table
from overhead_lens.report.page.charts.icicle import LEAST_SHARE, MOST_NODES
from overhead_lens.report.page.charts.tree import ROOT
from overhead_lens.report.page.model import Icicle, Tile, Tiles
from overhead_lens.report.text.blocks import counted, cut, share_text
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleClass, ModuleNode, ModuleTime
from overhead_lens.units import format_ns

_FEWEST_LAYERS = 3
_NAME = 40
_MOST_CLASSES, _MOST_MODULES, _MOST_LEADING, _MOST_GROUPS, _MOST_LAYERS = 30, 20, 2, 4, 100


def module_section(modules: ModuleBudgets | None) -> Section | None:
    """Nothing where the trace names no module."""
    if modules is None:
        return None
    layers = _costliest_layers(modules)[:_MOST_GROUPS]
    return Section.folded(
        _headline(modules),
        Notes([_in_words(modules, each) for each in layers[:1]]),
        Drawing(lambda _: modules_chart(modules)),
        _classes(modules),
        *(_layers(modules, each) for each in layers),
        _single(modules),
        _remainder(modules),
    )


def _headline(modules: ModuleBudgets) -> str:
    """How many there are, and how much is spent in them."""
    number, classes = len({node.name for node in modules.nodes}), len(modules.classes)
    text = f"Modules: {number:,} in {counted(classes, 'class')}"
    shares = [f"{share_text(modules.inside.host_ns, modules.whole.host_ns, 1)} of the busiest thread's time"]
    if device_ns := modules.whole.device_ns + modules.unlinked_ns:
        shares.append(f"{share_text(modules.inside.device_ns, device_ns, 1)} of the device's")
    return f"{text}, with {' and '.join(shares)}"


def _times(others: str) -> list[Column]:
    return heads(f">host | >other threads ~1 | >device forward | >backward | >communication ~2 | {others}")


def _cells(spent: ModuleTime) -> list[Cell]:
    """Nothing for no time."""
    times = (spent.host_ns, spent.others_ns, spent.device_forward_ns, spent.device_backward_ns, spent.communication_ns)
    return [time(ns or None) for ns in times]


def _weight(time: ModuleTime, whole: ModuleTime) -> float:
    """The larger of the shares of host and device."""
    host_ns, device_ns = whole.host_ns + whole.others_ns, whole.device_ns
    return max((time.host_ns + time.others_ns) / max(1, host_ns), time.device_ns / max(1, device_ns))


def _classes(modules: ModuleBudgets) -> Table:
    inside = modules.inside
    ranked: list[ModuleClass] = sorted(modules.classes, key=lambda each: -_weight(each.own, inside))
    rows = []
    for each in ranked[:_MOST_CLASSES]:
        total_ns = each.total.host_ns if each.total.host_ns != each.own.host_ns else 0
        counts = (each.instances, each.calls)
        rows.append(row(*_cells(each.own), time(total_ns or None), *counts, cut(each.class_name, _NAME)))
    return Table(_times(">with inner ~1 | >instances ~3 | >calls ~3 | class"), rows, "classes, by their own time")


def _costliest_layers(modules: ModuleBudgets) -> Sequence[Layers]:
    """Groups of at least three layers by their share of host or device."""
    inside = modules.inside
    able = [each for each in modules.layers if len(each.nodes) >= _FEWEST_LAYERS]
    return sorted(able, key=lambda each: -sum(_weight(modules.nodes[at].total, inside) for at in each.nodes))


def _in_words(modules: ModuleBudgets, layers: Layers) -> str:
    """How long layers take, and which takes longest, on host and device."""
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
                f"most in {cut(most, _NAME)}"
            )
    below = f" in {cut(modules.nodes[layers.parent].name, _NAME)}" if layers.parent is not None else ""
    return f"{len(nodes)} layers {cut(layers.class_name, _NAME)}{below}: {'; '.join(spans)}"


def _layers(modules: ModuleBudgets, layers: Layers) -> Table:
    shown = layers.nodes[:_MOST_LAYERS]
    rows = [row(*_cells(node.total), node.calls, node.name) for node in (modules.nodes[at] for at in shown)]
    below = f" in {modules.path(layers.parent)}" if layers.parent is not None else ""
    more = f"; the first {len(shown)} of {len(layers.nodes):,}" if len(shown) < len(layers.nodes) else ""
    caption = f"layer by layer, with inner modules: {cut(layers.class_name, _NAME)}{below}{more}"
    return Table(_times(">calls ~3 | module"), rows, caption)


def _single(modules: ModuleBudgets) -> Table:
    def own_ns(node: ModuleNode) -> int:
        return node.own.host_ns + node.own.others_ns + node.own.device_ns

    ranked = sorted(enumerate(modules.nodes), key=lambda item: -own_ns(item[1]))
    rows = [
        row(*_cells(node.own), node.calls, _led_by(node.own), modules.path(at)) for at, node in ranked[:_MOST_MODULES]
    ]
    return Table(_times(">calls ~3 | host led by ~4 | module"), rows, "modules with the most own time")


def _led_by(time: ModuleTime) -> str:
    whole_ns = max(1, time.host_ns + time.others_ns)
    return ", ".join(f"{category} {ns / whole_ns:.0%}" for category, ns in time.categories[:_MOST_LEADING])


def _remainder(modules: ModuleBudgets) -> Table:
    rows = [row(*_cells(modules.inside), "in modules"), row(*_cells(modules.outside), "outside of any module")]
    if modules.unlinked_events:
        rows.append(row("", "", "", "", "", f"no launch in the trace: device {format_ns(modules.unlinked_ns)}"))
    rows.append(sum_row(*_cells(modules.whole), "sum"))
    return Table(_times("where"), rows, "what sums to the threads and the device")


def modules_chart(modules: ModuleBudgets) -> Iterator[Picture]:
    """An icicle of host threads, and one of the device."""
    yield from _icicle(modules, "host threads", lambda time: time.host_ns + time.others_ns, _most)
    yield from _icicle(modules, "device", lambda time: time.device_ns, _kind)


def _icicle(
    modules: ModuleBudgets, where: str, time_of: Callable[[ModuleTime], int], look_of: Callable[[ModuleTime], str]
) -> Iterator[Picture]:
    """Nothing where modules have no time."""
    whole_ns = time_of(modules.inside)
    if not whole_ns:
        return
    sizes = [time_of(node.total) for node in modules.nodes]
    ranked = sorted(sizes, reverse=True)
    # A module is never smaller than those inside it, so whoever stays has its parents.
    least = max(LEAST_SHARE * whole_ns, 1, ranked[MOST_NODES] + 1 if len(ranked) > MOST_NODES else 0)
    places: dict[int | None, int] = {None: 0}
    tiles = [Tile(ROOT, "all modules", whole_ns, ink("unattributed"), (format_ns(whole_ns), "", "", ""))]
    for at, node in enumerate(modules.nodes):
        if sizes[at] >= least:
            places[at] = len(tiles)
            parts = ", ".join(f"{category} {format_ns(ns)}" for category, ns in node.own.categories)
            described = (_of(sizes[at], whole_ns), _of(time_of(node.own), whole_ns), f"{node.calls:,}", parts)
            tiles.append(Tile(places[node.parent], node.name, sizes[at], ink(look_of(node.own)), described))
    title = f"Modules on the {where}, inside each other, each as wide as its share of {format_ns(whole_ns)}."
    yield Icicle(Tiles(("with inner ones", "own", "calls", "own host time"), tiles), title)
    left_out = len(modules.nodes) + 1 - len(tiles)
    yield Notes([f"{title} {left_out:,} small ones are left out." if left_out else title])


def _of(ns: int, whole_ns: int) -> str:
    return f"{format_ns(ns)} ({ns / whole_ns:.1%})"


def _most(time: ModuleTime) -> str:
    return next((category for category, _ in time.categories), "unattributed")


def _kind(time: ModuleTime) -> str:
    """Communication where that is most of the device's time."""
    return "communication" if 2 * time.communication_ns > time.device_ns else "compute"
