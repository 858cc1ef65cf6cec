"""The budget per module of a recorded trace on its page: icicles of host and device time, classes, layers, single modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from overhead_lens.report.page.charts.icicle import LEAST_SHARE, MOST_NODES, Tile, tile_chart
from overhead_lens.report.page.charts.tree import ROOT
from overhead_lens.report.page.model import Block, Section, Table, Text
from overhead_lens.report.text.blocks import Cells, cut, without_empty
from overhead_lens.report.text.plain import plain
from overhead_lens.report.text.recorded import modules as told
from overhead_lens.taxonomy.categories import HATCHES, INKS
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleTime
from overhead_lens.units import format_ns

_MOST_CLASSES = 30
_MOST_MODULES = 20
_MOST_LEADING = 2
_MOST_GROUPS = 4
_MOST_LAYERS = 100
_NAME = 80
_PATH = 200
_COMPUTE_INK, _COMMUNICATION_INK = INKS["kernel"], "#aa3377"


def module_sections(modules: ModuleBudgets | None) -> Iterator[Section]:
    """One section; none if the trace names no module."""
    if modules is not None:
        yield Section("Modules", list(_blocks(modules)))


def _blocks(modules: ModuleBudgets) -> Iterator[Block]:
    headline = told.headline(modules)
    yield Text([f"{headline[:1].upper()}{headline[1:]}.", *told.layers_in_words(modules)])
    yield from _icicle(modules, "host threads", lambda time: time.host_ns + time.others_ns, _host_ink)
    yield from _icicle(modules, "device", lambda time: time.device_ns, _device_ink)
    yield _table(told.class_cells(told.costliest(modules)[:_MOST_CLASSES]), "classes, by their own time")
    for layers in told.costliest_layers(modules)[:_MOST_GROUPS]:
        yield _layers(modules, layers)
    yield _single(modules)
    yield _remainder(modules)


def _icicle(
    modules: ModuleBudgets,
    where: str,
    time_of: Callable[[ModuleTime], int],
    ink_of: Callable[[ModuleTime], tuple[str, str]],
) -> Iterator[Block]:
    """Modules inside each other, as wide as their time; nothing if they have none."""
    whole_ns = time_of(modules.inside)
    if not whole_ns:
        return
    sizes = [time_of(node.total) for node in modules.nodes]
    ranked = sorted(sizes, reverse=True)
    # A module is never smaller than those inside it, so whoever stays has its parents.
    least = max(LEAST_SHARE * whole_ns, 1, ranked[MOST_NODES] + 1 if len(ranked) > MOST_NODES else 0)
    places: dict[int | None, int] = {None: 0}
    tiles = [Tile(ROOT, "all modules", whole_ns, INKS["unattributed"], "", (format_ns(whole_ns), "", "", ""))]
    for at, node in enumerate(modules.nodes):
        if sizes[at] >= least:
            places[at] = len(tiles)
            own_ns = time_of(node.own)
            described = (_of(sizes[at], whole_ns), _of(own_ns, whole_ns), f"{node.calls:,}", _parts(node.own))
            tiles.append(Tile(places[node.parent], node.name, sizes[at], *ink_of(node.own), described))
    title = f"Modules on the {where}, inside each other, each as wide as its share of {format_ns(whole_ns)}."
    yield tile_chart(tiles, ("with inner ones", "own", "calls", "own host time"), title)
    left_out = len(modules.nodes) + 1 - len(tiles)
    more = f" {left_out:,} small ones are left out." if left_out else ""
    yield Text([f"{title}{more}"])


def _of(ns: int, whole_ns: int) -> str:
    return f"{format_ns(ns)} ({ns / whole_ns:.1%})"


def _parts(time: ModuleTime) -> str:
    return ", ".join(f"{category} {format_ns(ns)}" for category, ns in _categories(time))


def _led_by(time: ModuleTime) -> str:
    whole_ns = max(1, time.host_ns + time.others_ns)
    return ", ".join(f"{category} {ns / whole_ns:.0%}" for category, ns in _categories(time)[:_MOST_LEADING])


def _categories(time: ModuleTime) -> list[tuple[str, int]]:
    """Host time of all threads by category, the most first."""
    sums = {name: time.host.get(name, 0) + time.others.get(name, 0) for name in (*time.host, *time.others)}
    return sorted(sums.items(), key=lambda item: -item[1])


def _host_ink(time: ModuleTime) -> tuple[str, str]:
    """Color and pattern of the category that takes most."""
    most = next((category for category, _ in _categories(time)), "unattributed")
    return INKS[most], HATCHES.get(most, "")


def _device_ink(time: ModuleTime) -> tuple[str, str]:
    """Color of communication where that is most of the device's time."""
    return (_COMMUNICATION_INK if 2 * time.communication_ns > time.device_ns else _COMPUTE_INK), ""


def _layers(modules: ModuleBudgets, layers: Layers) -> Table:
    shown = layers.nodes[:_MOST_LAYERS]
    heads = (*told.TIMES, "calls", "module")
    rows = [
        (*told.time_cells(node.total), f"{node.calls:,}", cut(plain(node.name), _NAME))
        for node in (modules.nodes[at] for at in shown)
    ]
    below = f" in {cut(plain(modules.path(layers.parent)), _PATH)}" if layers.parent is not None else ""
    more = f"; the first {len(shown)} of {len(layers.nodes):,}" if len(shown) < len(layers.nodes) else ""
    caption = f"layer by layer, with inner modules: {cut(plain(layers.class_name), _NAME)}{below}{more}"
    return _table((heads, rows), caption)


def _single(modules: ModuleBudgets) -> Table:
    nodes = modules.nodes
    ranked = sorted(
        range(len(nodes)),
        key=lambda at: -(nodes[at].own.host_ns + nodes[at].own.others_ns + nodes[at].own.device_ns),
    )
    rows = [
        (*told.time_cells(nodes[at].own), f"{nodes[at].calls:,}", _led_by(nodes[at].own), plain(modules.path(at)))
        for at in ranked[:_MOST_MODULES]
    ]
    return _table(((*told.TIMES, "calls", "host led by", "module"), rows), "modules with the most own time")


def _remainder(modules: ModuleBudgets) -> Table:
    rows: list[Sequence[str]] = [
        (*told.time_cells(modules.inside), "in modules"),
        (*told.time_cells(modules.outside), "outside of any module"),
    ]
    if modules.unlinked_events:
        rows.append(("", "", "", "", "", f"no launch in the trace: device {format_ns(modules.unlinked_ns)}"))
    rows.append((*told.time_cells(modules.whole), "sum"))
    return _table(((*told.TIMES, "where"), rows), "what sums to the threads and the device")


def _table(cells: Cells, caption: str) -> Table:
    heads, rows = without_empty(cells)
    names = {*told.NAMED, "host led by", "where"}
    return Table(heads, rows, frozenset(at for at, head in enumerate(heads) if head not in names), caption)
