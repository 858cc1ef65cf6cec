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
from dataclasses import dataclass, replace

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


def tree_of(stacks: Iterable[Stack], classifier: Classifier, root: str) -> list[Node]:
    """The tree of ``stacks`` below a root of that name, by a classifier that is fitted to them; empty without stacks."""
    growing = _Growing(classifier, root)
    for stack in stacks:
        growing.add(stack)
    return growing.nodes() if growing.total[0] else []


class _Growing:
    """Nodes as columns, the root first."""

    def __init__(self, classifier: Classifier, root: str) -> None:
        self._classifier = classifier
        self._places: dict[tuple[int, str, str], int] = {}
        self._frames = [Node(ROOT, root, 0, Carried().attribution, None, inherited=False, total=0, own=0)]
        self._carried = [Carried()]
        self._lines: list[Counter[int]] = [Counter()]
        self.total = [0]
        self._own = [0]

    def add(self, stack: Stack) -> None:
        """Count one stack along its frames."""
        place = 0
        self.total[place] += stack.count
        for frame in stack.frames:
            place = self._child(place, frame)
            self.total[place] += stack.count
            self._lines[place][frame.line] += stack.count
        self._own[place] += stack.count

    def _child(self, parent: int, frame: StackFrame) -> int:
        key = parent, frame.function, frame.location
        if key not in self._places:
            self._places[key] = len(self._frames)
            claim = self._classifier.claim(frame, self._carried[parent])
            inherited = claim.rule is None or claim.rule.attribution != claim.carried.attribution
            name, attribution = display_name(frame), claim.carried.attribution
            self._frames.append(Node(parent, name, 0, attribution, claim.rule, inherited, total=0, own=0))
            self._carried.append(claim.carried)
            self._lines.append(Counter())
            self.total.append(0)
            self._own.append(0)
        return self._places[key]

    def nodes(self) -> list[Node]:
        """The tree."""
        columns = zip(self._frames, self._lines, self.total, self._own, strict=True)
        return [replace(frame, line=_most_seen(lines), total=total, own=own) for frame, lines, total, own in columns]


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
    name = f"{len(small):,} smaller frame{'s' * (len(small) > 1)}"
    return Node(caller, name, 0, most, None, inherited=True, total=total, own=weights.total(), folded=len(small))
