"""Sampled stacks as one tree of frames, each with the rule that claimed it; small shares folded.

A tree is a sequence of nodes, parents before their children, so that a stack of any depth is handled without recursion::

    stacks                 nodes (parent, frame, total, own)
    loop;f;aten::add  3    0  -  loop        5 0
    loop;f            1    1  0  f           4 1
    loop;g            1    2  1  aten::add   3 3
                           3  0  g           1 1
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from overhead_lens.report.text.blocks import counted
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.taxonomy.classifier import Carried, Classifier
from overhead_lens.taxonomy.names import display_name
from overhead_lens.taxonomy.rules import Attribution, Rule

ROOT = -1


@dataclass(frozen=True, slots=True)
class Node:
    """A frame as called from its parent.

    Attributes:
        parent: The parent's place in the tree, ``ROOT`` for the outermost frame.
        name: Function and file or module.
        line: The source line that was seen most; 0 if none is known.
        attribution: What time in it counts as.
        rule: The rule that fits the frame itself; None if none does.
        inherited: Whether the attribution is that of a frame above it.
        total: Stacks through it.
        own: Stacks that end in it.
        folded: Number of frames it represents; 0 for a frame.
    """

    parent: int
    name: str
    line: int
    attribution: Attribution
    rule: Rule | None
    inherited: bool
    total: int
    own: int
    folded: int = 0


@dataclass(frozen=True, slots=True)
class Folded:
    """A tree whose small frames are folded into one node per parent: how many, and the stacks that end in them."""

    nodes: Sequence[Node]
    frames: int
    stacks: int


@dataclass(slots=True)
class _Growing:
    """A node while stacks are counted; ``lines`` are the source lines that they show, by count."""

    node: Node
    carried: Carried
    lines: Counter[int] = field(default_factory=Counter)
    total: int = 0
    own: int = 0


def tree_of(stacks: Iterable[Stack], classifier: Classifier, root: str) -> list[Node]:
    """The tree of ``stacks`` below a root of that name, by a classifier that is fitted to them; empty without stacks."""
    growing = [_Growing(Node(ROOT, root, 0, Carried().attribution, None, inherited=False, total=0, own=0), Carried())]
    places: dict[tuple[int, str, str], int] = {}
    for stack in stacks:
        place = 0
        growing[0].total += stack.count
        for frame in stack.frames:
            key = place, frame.function, frame.location
            if key not in places:
                places[key] = len(growing)
                growing.append(_child(frame, place, growing[place].carried, classifier))
            place = places[key]
            growing[place].total += stack.count
            growing[place].lines[frame.line] += stack.count
        growing[place].own += stack.count
    nodes = [replace(each.node, line=_most_seen(each.lines), total=each.total, own=each.own) for each in growing]
    return nodes if nodes[0].total else []


def _child(frame: StackFrame, parent: int, carried: Carried, classifier: Classifier) -> _Growing:
    claim = classifier.claim(frame, carried)
    attribution = claim.carried.attribution
    inherited = claim.rule is None or claim.rule.attribution != attribution
    return _Growing(Node(parent, display_name(frame), 0, attribution, claim.rule, inherited, 0, 0), claim.carried)


def callers_of(nodes: Sequence[Node]) -> list[Node]:
    """The stacks of a tree from their innermost frames on: below each frame its callers; the root stays on top.

    The time of a stack belongs to the frame directly below the root; callers have none of their own. A frame gets the line that
    most of its stacks show, where all stacks of a node show the node's line.
    """
    places: dict[tuple[int, str, Attribution], int] = {}
    frames = list(nodes[:1])
    # Stacks through each frame by its line.
    lines: list[Counter[int]] = [Counter() for _ in frames]
    for node in nodes:
        place, frame = 0, node
        lines[0][0] += node.own
        while node.own and frame.parent != ROOT:
            key = place, frame.name, frame.attribution
            if key not in places:
                places[key] = len(frames)
                frames.append(replace(frame, parent=place, own=0))
                lines.append(Counter())
            place = places[key]
            lines[place][frame.line] += node.own
            frame = nodes[frame.parent]
    return [
        replace(frame, line=_most_seen(seen), total=seen.total(), own=frame.own if frame.parent else seen.total())
        for frame, seen in zip(frames, lines, strict=True)
    ]


def _most_seen(lines: Counter[int]) -> int:
    return max(lines, key=lambda line: lines[line], default=0)


def folded(nodes: Sequence[Node], most: int, least_share: float) -> Folded:
    """The tree with at most ``most`` frames, each of at least ``least_share`` of the root; what is smaller is folded.

    Frames directly below the root are chosen first, then the largest; of frames of equal size, the outermost. A frame is at
    least as large as each frame that it calls, so the callers of a chosen frame are chosen, too.
    """
    if not nodes:
        return Folded((), 0, 0)
    depths = [0]
    for node in nodes[1:]:
        depths.append(depths[node.parent] + 1)
    large = [at for at, node in enumerate(nodes) if node.total >= least_share * nodes[0].total]
    stays = set(sorted(large, key=lambda at: (depths[at] > 1, -nodes[at].total, depths[at]))[:most])
    # Where a frame stands in the result; one that is folded stands at its nearest caller that is not.
    places = [0]
    result = [nodes[0]]
    below: defaultdict[int, list[Node]] = defaultdict(list)
    totals: Counter[int] = Counter()
    for at, node in enumerate(nodes[1:], 1):
        caller = places[node.parent]
        if at in stays:
            places.append(len(result))
            result.append(replace(node, parent=caller))
        else:
            places.append(caller)
            below[caller].append(node)
            totals[caller] += node.total * (node.parent in stays)
    result.extend(_sum_of(small, totals[caller], caller, result[caller].attribution) for caller, small in below.items())
    frames = sum(map(len, below.values()))
    return Folded(result, frames, sum(node.own for small in below.values() for node in small))


def _sum_of(small: Sequence[Node], total: int, caller: int, attribution: Attribution) -> Node:
    """One node for the folded frames below a caller, with the category of most of its time."""
    weights: Counter[Attribution] = Counter({attribution: 0})
    for node in small:
        weights[node.attribution] += node.own
    most = max(weights, key=lambda one: weights[one])
    name = counted(len(small), "smaller frame")
    return Node(caller, name, 0, most, None, inherited=True, total=total, own=weights.total(), folded=len(small))
