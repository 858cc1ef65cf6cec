"""Icicles: a tree of sampled frames colored by category, and two trees laid over each other, colored by what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import hatched, label
from overhead_lens.report.page.charts.tree import ROOT, Node, folded
from overhead_lens.report.page.model import Chart
from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.categories import HATCHES, INKS
from overhead_lens.taxonomy.rules import Rule
from overhead_lens.units import format_ns, format_signed_ns

MOST_NODES = 1_200
LEAST_SHARE = 0.0005
_LEVEL_PX = 20
_MOST_LEVELS = 36
_BESIDE_PX = 40
_NAME = 140
_LONGEST_PATTERN = 160
_FINE = 10**6
_SLOWER, _FASTER, _EVEN = "#e45756", "#4c78a8", "#bab0ac"


@dataclass(frozen=True, slots=True)
class Tile:
    """One frame, or one module, as drawn.

    Attributes:
        size: Its width; those of its children sum to no more.
        told: Pairs of a name and a text, for who asks for the frame.
    """

    parent: int
    text: str
    size: int
    ink: str
    hatch: str
    told: Sequence[str]


def icicle(nodes: Sequence[Node], whole_ns: float, per: str) -> list[Picture]:
    """Sampled frames, the outermost on top; nothing without nodes.

    Args:
        nodes: A tree of ``tree_of``.
        whole_ns: Time of the root.
        per: What that time is one of: ``call``, ``step``.
    """
    if not nodes:
        return []
    tree = folded(nodes, MOST_NODES, LEAST_SHARE)
    whole = tree.nodes[0].total
    fields = ("category", "self", "with what it calls", "rule", "source of the rule")
    tiles = [
        Tile(
            node.parent,
            _place(node),
            node.total,
            INKS[node.attribution.category],
            HATCHES[node.attribution.category],
            (
                _category(node),
                _time(node.own, whole, whole_ns),
                _time(node.total, whole, whole_ns),
                *_rule(node),
            ),
        )
        for node in tree.nodes
    ]
    described = f"Sampled frames of a {per}, outermost on top, each as wide as its share of {whole:,} stacks."
    notes = [f"{whole:,} stacks; the whole width is {format_ns(whole_ns)} per {per}."]
    if tree.frames:
        notes.append(
            f"Folded: {tree.frames:,} frames of less than {LEAST_SHARE:.2%} each or beyond the {MOST_NODES:,} largest, "
            f"{tree.stacks / whole:.1%} of the stacks."
        )
    return [tile_chart(tiles, fields, described), Notes(notes)]


def difference_icicle(
    base: Sequence[Node], new: Sequence[Node], walls_ns: tuple[float, float], per: str
) -> list[Picture]:
    """Two trees laid over each other; a frame is as wide as the mean of both sides, and colored by what it gained or lost."""
    if not base or not new:
        return []
    merged = _merged(base, new)
    scales = [wall_ns / tree[0].total for wall_ns, tree in zip(walls_ns, (base, new), strict=True)]
    most_ns = max((abs(_delta_ns(pair, scales)) for pair in merged[1:]), default=0.0) or 1.0
    tiles = [_changed(pair, scales, most_ns) for pair in merged]
    described = (
        f"Frames of both sides, each as wide as the mean of its times: red where the new one takes longer (+), "
        f"blue where it takes less (-); the strongest color is {format_ns(most_ns)} per {per}."
    )
    return [tile_chart(tiles, ("base", "new", "difference", "category"), described), Notes([described])]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A frame on both sides: the node that names it, and the stacks through it."""

    node: Node
    parent: int
    counts: tuple[int, int]


def _merged(base: Sequence[Node], new: Sequence[Node]) -> list[_Pair]:
    """Both trees as one, a frame being the same if its callers are; the smallest folded."""
    found: dict[tuple[int, str], int] = {}
    nodes: list[Node] = []
    counts: list[list[int]] = []
    for side, tree in enumerate((base, new)):
        places: list[int] = []
        for node in tree:
            parent = ROOT if node.parent == ROOT else places[node.parent]
            place = found.setdefault((parent, node.name if parent != ROOT else ""), len(nodes))
            if place == len(nodes):
                nodes.append(node)
                counts.append([0, 0])
            places.append(place)
            counts[place][side] += node.total
    return _largest(found, nodes, counts)


def _largest(found: dict[tuple[int, str], int], nodes: Sequence[Node], counts: Sequence[Sequence[int]]) -> list[_Pair]:
    wholes = counts[0]
    shares = [sum(count / whole for count, whole in zip(pair, wholes, strict=True)) / 2 for pair in counts]
    least = max(LEAST_SHARE, sorted(shares, reverse=True)[min(MOST_NODES, len(shares)) - 1])
    places: dict[int, int] = {ROOT: ROOT}
    pairs: list[_Pair] = []
    for (parent, _), place in found.items():
        if shares[place] >= least:
            places[place] = len(pairs)
            pairs.append(_Pair(nodes[place], places[parent], (counts[place][0], counts[place][1])))
    return pairs


def _delta_ns(pair: _Pair, scales: Sequence[float]) -> float:
    base, new = pair.counts
    return new * scales[1] - base * scales[0]


def _changed(pair: _Pair, scales: Sequence[float], most_ns: float) -> Tile:
    times = [count * scale for count, scale in zip(pair.counts, scales, strict=True)]
    delta_ns = times[1] - times[0]
    strength = min(1.0, abs(delta_ns) / most_ns)
    is_clear = strength >= 0.05
    sign = ("+ " if delta_ns > 0 else "- ") if is_clear else ""
    ink = _mixed(_EVEN, _SLOWER if delta_ns > 0 else _FASTER, strength**0.5 if is_clear else 0.0)
    told = (*map(format_ns, times), format_signed_ns(delta_ns), pair.node.attribution.category)
    # Whole numbers, so that the parts of a frame never sum to more than it.
    size = sum(count * round(scale * _FINE) for count, scale in zip(pair.counts, scales, strict=True))
    return Tile(pair.parent, sign + _place(pair.node), size, ink, "", told)


def _mixed(one: str, other: str, share: float) -> str:
    """A color between two."""
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


def _place(node: Node) -> str:
    return f"{node.name[:-1]}:{node.line})" if node.line and node.name.endswith(")") else node.name


def _category(node: Node) -> str:
    part = f", {node.attribution.part}" if node.attribution.part else ""
    return f"{node.attribution.category}{part}"


def _time(stacks: int, whole: int, whole_ns: float) -> str:
    return f"{format_ns(whole_ns * stacks / whole)} ({stacks / whole:.1%}, {stacks:,} stacks)"


def _rule(node: Node) -> tuple[str, str]:
    """The rule that claimed the frame, and its source."""
    if node.folded:
        return "several", ""
    if node.rule is None:
        kept = node.attribution.category != "unattributed"
        return ("none of its own: the frame above keeps what is below it" if kept else "no rule claims it"), ""
    said = _pattern(node.rule)
    return (f"{said}; counts as the frame above" if node.inherited else said), cut(plain(node.rule.source), _NAME)


def _pattern(rule: Rule) -> str:
    """The patterns of a rule."""
    named = (("native", rule.native), ("module", rule.module), ("file", rule.file), ("function", rule.function))
    return cut(
        plain(", ".join(f"{name} ~ {text.pattern}" for name, text in named if text is not None)), _LONGEST_PATTERN
    )


def tile_chart(tiles: Sequence[Tile], fields: Sequence[str], described: str) -> Chart:
    """Plotly's icicle, which zooms into a frame that is clicked."""
    depths: list[int] = []
    for tile in tiles:
        depths.append(0 if tile.parent == ROOT else depths[tile.parent] + 1)
    levels = min(max(depths) + 1, _MOST_LEVELS)
    inks = [tile.ink for tile in tiles]
    data: dict[str, Any] = {
        "type": "icicle",
        "ids": [str(place) for place in range(len(tiles))],
        "parents": ["" if tile.parent == ROOT else str(tile.parent) for tile in tiles],
        "labels": [label(tile.text, _NAME) for tile in tiles],
        "values": [tile.size for tile in tiles],
        "branchvalues": "total",
        "customdata": [[label(text, _LONGEST_PATTERN) for text in tile.told] for tile in tiles],
        "hovertemplate": "<b>%{label}</b><br>"
        + "<br>".join(f"{name}: %{{customdata[{at}]}}" for at, name in enumerate(fields))
        + "<extra></extra>",
        "marker": {
            "colors": inks,
            "line": {"width": 1},
            "pattern": hatched(inks, [tile.hatch for tile in tiles]),
        },
        "tiling": {"orientation": "v", "pad": 0},
        "pathbar": {"visible": True, "thickness": _LEVEL_PX, "edgeshape": "|"},
        "textposition": "middle left",
        "textinfo": "text",
        "textfont": {"size": 11},
        "maxdepth": levels,
        "sort": True,
    }
    layout = {
        "margin": {"l": 0, "r": 0, "t": _LEVEL_PX + 4, "b": 0},
        "meta": {"fields": fields},
    }
    return Chart({"data": [data], "layout": layout}, described, levels * _LEVEL_PX + _BESIDE_PX, tree=True)
