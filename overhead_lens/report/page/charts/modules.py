"""The modules of a trace inside each other, as wide as their time on the host or on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from overhead_lens.report.looks import ink
from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.icicle import LEAST_SHARE, MOST_NODES
from overhead_lens.report.page.charts.tree import ROOT
from overhead_lens.report.page.model import Icicle, Tile, Tiles
from overhead_lens.traces.modules.model import ModuleBudgets, ModuleTime
from overhead_lens.units import format_ns


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
    """The category that takes most of the host."""
    return next((category for category, _ in time.categories), "unattributed")


def _kind(time: ModuleTime) -> str:
    """Communication where that is most of the device's time."""
    return "communication" if 2 * time.communication_ns > time.device_ns else "compute"
