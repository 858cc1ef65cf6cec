"""Icicles: a tree of sampled frames colored by category, and two trees laid over each other, colored by what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.tree import ROOT, Node, callers_of, folded
from overhead_lens.report.page.model import Icicle, Tile, Tiles
from overhead_lens.report.text.blocks import counted, cut
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.categories import INKS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns, format_signed_ns

MOST_NODES = 1_200
LEAST_SHARE = 0.0005
_SMALL = f"of less than {LEAST_SHARE:.2%} each or beyond the {MOST_NODES:,} largest"
# Corrections below this share of the whole are not mentioned.
_CORRECTED_SHARE = 0.01
_NAME = 140
_LONGEST_PATTERN = 160
_FINE = 10**6
_FRAMEWORK = frozenset({"framework", "compiled_runtime", "binding"})
_SLOWER, _FASTER, _EVEN = "#e45756", "#4c78a8", "#bab0ac"


def icicle(nodes: Sequence[Node], whole_ns: float, per: str, host: Sequence[HostCategory]) -> list[Picture]:
    """Sampled frames of a tree of ``tree_of``, the outermost on top; nothing without nodes. Its root takes ``whole_ns``.

    ``host`` is the budget of the same stacks.
    """
    if not nodes:
        return []
    tree = folded(nodes, MOST_NODES, LEAST_SHARE)
    callers = folded(callers_of(nodes), MOST_NODES, LEAST_SHARE)
    whole = nodes[0].total

    def time_of(stacks: int) -> str:
        return f"{format_ns(whole_ns * stacks / whole)} ({stacks / whole:.1%}, {counted(stacks, 'stack')})"

    fields = ("category", "self", "with what it calls", "rule", "source of the rule")
    of_callers = ("category", "self, of the top frame called so", "rule", "source of the rule")
    described = f"Sampled frames of a {per}, outermost on top, each as wide as its share of {counted(whole, 'stack')}."
    notes = [f"{counted(whole, 'stack')}; the whole width is {format_ns(whole_ns)} per {per}."]
    for how, each in (("", tree), (" with the innermost on top", callers)):
        if each.frames:
            ends = f"{each.stacks / whole:.1%} of the stacks end in them"
            notes.append(f"Folded{how}: {counted(each.frames, 'frame')} {_SMALL}; {ends}.")
    notes += corrected(nodes, whole_ns, host)
    picture = Icicle(
        Tiles(fields, [_tile(node, [time_of(node.own), time_of(node.total)]) for node in tree.nodes]),
        described,
        Tiles(of_callers, [_tile(node, [time_of(node.total)]) for node in callers.nodes]),
    )
    return [picture, Notes(notes)]


def corrected(nodes: Sequence[Node], whole_ns: float, host: Sequence[HostCategory]) -> list[str]:
    """The categories of which the budget has clearly more or less than the stacks show, scaled to ``whole_ns``."""
    if not nodes:
        return []
    stacks: Counter[str] = Counter()
    for node in nodes:
        stacks[node.attribution.category] += node.own
    divided = [each for each in host if each.evidence != "clock"]
    scale = whole_ns / max(1, sum(each.ns for each in divided))
    times = [(each.category, each.ns * scale, whole_ns * stacks[each.category] / nodes[0].total) for each in divided]
    others = [
        f"{category} {format_ns(ns)} (by stacks {format_ns(shown_ns)})"
        for category, ns, shown_ns in times
        if abs(ns - shown_ns) > _CORRECTED_SHARE * whole_ns
    ]
    said = f"Other evidence corrects these stacks in the budget, here on the scale of the stacks: {', '.join(others)}."
    return [said] if others else []


def _tile(node: Node, times: Sequence[str]) -> Tile:
    look = node.attribution
    values = (_category(node), *times, *_rule(node))
    is_framework = look.category == "python" and look.part in _FRAMEWORK
    return Tile(node.parent, _place(node), node.total, INKS[look.category], values, is_framework)


def difference_icicle(
    base: Sequence[Node], new: Sequence[Node], walls_ns: tuple[float, float], per: str
) -> list[Picture]:
    """Two trees laid over each other; a frame is as wide as the mean of both sides, and colored by what it gained or lost."""
    if not base or not new:
        return []
    merged, frames = _merged(base, new)
    scales = [wall_ns / tree[0].total for wall_ns, tree in zip(walls_ns, (base, new), strict=True)]
    moved_ns = (pair.counts[1] * scales[1] - pair.counts[0] * scales[0] for pair in merged[1:])
    most_ns = max(map(abs, moved_ns), default=0.0) or 1.0
    tiles = [_changed(pair, scales, most_ns) for pair in merged]
    described = (
        f"Frames of both sides, each as wide as the mean of its times: red where the new one takes longer (+), "
        f"blue where it takes less (-); the strongest color is {format_ns(most_ns)} per {per}."
    )
    gone = [f"Folded: {counted(frames, 'frame')} {_SMALL}."] if frames else []
    return [Icicle(Tiles(("base", "new", "difference", "category"), tiles), described), Notes([described, *gone])]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A frame on both sides: the node that names it, and the stacks through it, base and new."""

    node: Node
    parent: int
    counts: list[int]


def _merged(base: Sequence[Node], new: Sequence[Node]) -> tuple[list[_Pair], int]:
    """Both trees as one, a frame being the same if its callers are, and how many frames, the smallest, are folded."""
    index: dict[tuple[int, str], int] = {}
    pairs: list[_Pair] = []
    for side, tree in enumerate((base, new)):
        places: list[int] = []
        for node in tree:
            parent = ROOT if node.parent == ROOT else places[node.parent]
            place = index.setdefault((parent, node.name if parent != ROOT else ""), len(pairs))
            if place == len(pairs):
                pairs.append(_Pair(node, parent, [0, 0]))
            places.append(place)
            pairs[place].counts[side] += node.total
    wholes = pairs[0].counts
    shares = [sum(count / whole for count, whole in zip(pair.counts, wholes, strict=True)) / 2 for pair in pairs]
    # The sort is stable: outer frames come before inner frames of the same size.
    stays = sorted(range(len(shares)), key=lambda at: -shares[at])[:MOST_NODES]
    moved: dict[int, int] = {ROOT: ROOT}
    large: list[_Pair] = []
    for at in sorted(stays):
        if shares[at] >= LEAST_SHARE:
            pair = pairs[at]
            moved[at] = len(large)
            large.append(replace(pair, parent=moved[pair.parent]))
    return large, len(pairs) - len(large)


def _changed(pair: _Pair, scales: Sequence[float], most_ns: float) -> Tile:
    times = [count * scale for count, scale in zip(pair.counts, scales, strict=True)]
    delta_ns = times[1] - times[0]
    strength = min(1.0, abs(delta_ns) / most_ns)
    is_clear = strength >= 0.05
    sign = ("+ " if delta_ns > 0 else "- ") if is_clear else ""
    ink = _mixed(_EVEN, _SLOWER if delta_ns > 0 else _FASTER, strength**0.5 if is_clear else 0.0)
    values = (*map(format_ns, times), format_signed_ns(delta_ns), _category(pair.node))
    # Whole numbers, so that the parts of a frame never sum to more than it.
    size = sum(count * round(scale * _FINE) for count, scale in zip(pair.counts, scales, strict=True))
    return Tile(pair.parent, sign + _place(pair.node), size, ink, values)


def _mixed(one: str, other: str, share: float) -> str:
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


def _place(node: Node) -> str:
    return f"{node.name[:-1]}:{node.line})" if node.line and node.name.endswith(")") else node.name


def _category(node: Node) -> str:
    """Category and part; nothing of the root."""
    if node.parent == ROOT:
        return ""
    part = f", {node.attribution.part}" if node.attribution.part else ""
    return f"{node.attribution.category}{part}"


def _rule(node: Node) -> tuple[str, str]:
    """The rule that claimed the frame, and its source; nothing of the root."""
    if node.parent == ROOT:
        return "", ""
    if node.folded:
        return "several", ""
    if node.rule is None:
        is_attributed = node.attribution.category != "unattributed"
        return ("none of its own: the frame above keeps what is below it" if is_attributed else "no rule claims it"), ""
    rule = node.rule
    named = (("native", rule.native), ("module", rule.module), ("file", rule.file), ("function", rule.function))
    patterns = ", ".join(f"{name} ~ {text.pattern}" for name, text in named if text is not None)
    pattern = cut(plain(patterns), _LONGEST_PATTERN)
    return (f"{pattern}; counts as the frame above" if node.inherited else pattern), cut(plain(rule.source), _NAME)
