"""The guards of a compiled call put together: by kind, by place, by module, per layer, and by what ready filters leave out.

The source of a guard is the expression that it looks at::

    G['model']._modules['layers']._modules['3']._parameters['weight']     module  model.layers.3
                                                                          layer   model.layers[*]
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from overhead_lens.budget.model import GroupedBy, Guard, GuardGroup
from overhead_lens.instruments.guards.evidence import INBUILT, Guards, Leaf

PYTHON = "LAMBDA_GUARD"
"""Kinds that begin so call a Python function at each check."""

_ROOT = re.compile(r"(L|G)?(\[[^\[\]]*\])?$")
_BASE = re.compile(r"(?:L|G)\['(?P<name>[^']*)'\]")
_CHILD = re.compile(r"(?:\._modules\['(?P<key>[^']*)'\])")
_OF_MODULE = re.compile(r"\.(_modules|_parameters|_buffers|training|__dict__)\b")

_FILTERS: Mapping[str, Callable[[Leaf], bool]] = {
    "skip_guard_on_inbuilt_nn_modules_unsafe": lambda leaf: leaf.owner == INBUILT,
    "skip_guard_on_all_nn_modules_unsafe": lambda leaf: leaf.owner != "",
    "keep_tensor_guards_unsafe": lambda leaf: leaf.type != "TENSOR_MATCH",
    "skip_guard_on_globals_unsafe": lambda leaf: leaf.source.startswith("G["),
}
"""The filters of torch.compiler by what they leave out (torch/compiler/__init__.py)."""


def guard_groups(recorded: Guards, guards: Sequence[Guard]) -> tuple[GuardGroup, ...]:
    """Groups, one way of putting together after the other, each by time.

    Args:
        recorded: As the worker listed them.
        guards: The same with their sampled times, which are equal for all of one kind.
    """
    if not recorded.guards:
        return ()
    sampled = {guard.guard.partition(" ")[0]: guard.sampled_ns for guard in guards}
    ways: Mapping[GroupedBy, Callable[[Leaf], str]] = {
        "kind": lambda leaf: leaf.type,
        "place": _place,
        "module": _module,
    }
    groups = [group for by, name in ways.items() for group in _grouped(by, recorded.guards, name, sampled)]
    return (*groups, *_layers(recorded.guards, sampled), *_filtered(recorded.guards, sampled))


def _place(leaf: Leaf) -> str:
    if leaf.type.startswith(PYTHON):
        return "python"
    return "root" if _ROOT.fullmatch(leaf.source) else "inside"


def _module(leaf: Leaf) -> str:
    """Path of the module that it looks at; empty for none."""
    base = _BASE.match(leaf.source)
    if base is None or (not leaf.owner and _OF_MODULE.search(leaf.source) is None):
        return ""
    return ".".join((base["name"], *(child["key"] for child in _children(leaf, base.end()))))


def _children(leaf: Leaf, start: int) -> Iterator[re.Match[str]]:
    """The child modules that follow one another from ``start`` on."""
    while (child := _CHILD.match(leaf.source, start)) is not None:
        yield child
        start = child.end()


def _layer(leaf: Leaf) -> tuple[str, str] | None:
    """The outermost numbered container of a guard (``model.layers[*]``) and the index in it; None for none."""
    names = _module(leaf).split(".")
    at = next((at for at, name in enumerate(names) if name.isdecimal()), None)
    return None if at is None else (f"{'.'.join(names[:at])}[*]", names[at])


def _layers(leaves: Sequence[Leaf], sampled: Mapping[str, float | None]) -> Iterator[GuardGroup]:
    """Mean guard cost of one layer, for each container with several layers."""
    found: defaultdict[str, list[Leaf]] = defaultdict(list)
    which: defaultdict[str, set[str]] = defaultdict(set)
    for leaf in leaves:
        layer = _layer(leaf)
        if layer is not None:
            found[layer[0]].append(leaf)
            which[layer[0]].add(layer[1])
    for name, mine in found.items():
        count = len(which[name])
        if count > 1:
            whole = _group("layer", name, mine, sampled)
            sampled_ns = None if whole.sampled_ns is None else whole.sampled_ns / count
            yield GuardGroup("layer", name, round(len(mine) / count), sampled_ns, whole.warm_ns / count, count)


def _filtered(leaves: Sequence[Leaf], sampled: Mapping[str, float | None]) -> Iterator[GuardGroup]:
    for name, drops in _FILTERS.items():
        dropped = [leaf for leaf in leaves if drops(leaf)]
        if dropped:
            yield _group("filter", name, dropped, sampled)


def _grouped(
    by: GroupedBy, leaves: Sequence[Leaf], name: Callable[[Leaf], str], sampled: Mapping[str, float | None]
) -> list[GuardGroup]:
    found: defaultdict[str, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        found[name(leaf)].append(leaf)
    groups = [_group(by, each, mine, sampled) for each, mine in found.items() if each]
    return sorted(groups, key=lambda group: (-(group.sampled_ns or 0.0), -group.warm_ns, group.name))


def _group(by: GroupedBy, name: str, leaves: Sequence[Leaf], sampled: Mapping[str, float | None]) -> GuardGroup:
    times = [sampled.get(leaf.type) for leaf in leaves]
    known = [ns for ns in times if ns is not None]
    warm_ns = sum(max(0.0, statistics.median(leaf.warm_ns)) for leaf in leaves if leaf.warm_ns)
    return GuardGroup(by, name, len(leaves), sum(known) if known else None, warm_ns, 0)
