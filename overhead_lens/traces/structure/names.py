"""Names that are compared: without signature, file and what differs from run to run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

_RUN_DEPENDENT = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (re.compile(r"(CompiledFxGraph )\w{20,}"), r"\1…"),
    (re.compile(r"(ProfilerStep#)\d+"), r"\1…"),
)
_PLACE = re.compile(r"(?P<file>.*?)\(\d+\): (?P<function>.+)", re.DOTALL)


def stable_name(name: str) -> str:
    """A name without a signature and what differs from run to run; a Python function with its file, without its line."""
    for pattern, stand_in in _RUN_DEPENDENT:
        name = pattern.sub(stand_in, name)
    if place := _PLACE.fullmatch(name):
        return f"{place['file']}: {place['function']}"
    return _without_signature(name.removeprefix("void "))


def _without_signature(name: str) -> str:
    """What stands before the bracket that the last letter closes; one after a space is none of a function."""
    depth = 0
    for at in range(len(name) - 1 if name.endswith(")") else -1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            return name[:at] if name[:at].strip() == name[:at] and at else name
    return name


def matched(*sides: Iterable[str]) -> Sequence[Mapping[str, str]]:
    """Comparable names of each side: Python functions lose their file if no side has two functions of that name."""
    stable = [{name: stable_name(name) for name in side} for side in sides]
    counts = [Counter(map(_function, set(side.values()))) for side in stable]
    alone = {name for name in set().union(*counts) if all(count[name] < 2 for count in counts)}
    return [
        {name: _function(called) if _function(called) in alone else called for name, called in side.items()}
        for side in stable
    ]


def _function(stable: str) -> str:
    file, _, function = stable.rpartition(": ")
    return function if file.endswith((".py", ">")) else stable
