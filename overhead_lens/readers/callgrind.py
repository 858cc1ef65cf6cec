"""Reads callgrind's output into a call graph with instruction counts.

The format, from the valgrind manual ("Callgrind Format Specification")::

    fn=(7) malloc                   names are given a number where they first stand, and are their number later
    +3 120                          self cost: position, instructions
    cob=(2) libc.so.6               of the call that follows; without it the caller's own
    cfn=(9) _int_malloc
    calls=500 0                     how often, and where to
    +1 61000                        inclusive cost of these calls

With ``--separate-callers`` the callers follow a function's name, ``malloc'operator new'...``, and each such context is a node
of the graph. Parts of a file (one per dump) are summed. Inlined code (``fi``, ``fe``) and jumps are ignored. Lines that cannot
be read are counted in ``issues``, never guessed. A truncated file lacks the closing ``totals``.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TRUNCATED = "truncated"

_NAME = re.compile(r"\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"(?:[+-]?(?:0x[0-9a-fA-F]+|\d+)|\*)(?: |$)")
_UNKNOWN = "???"
_ADDRESS = re.compile(r"0x[0-9a-f]+$")
_IGNORED = ("fi=", "fe=", "fl=", "cfi=", "cfl=", "jump=", "jcnd=", "jfi=", "jfn=")


@dataclass(frozen=True, slots=True)
class Function:
    """A node of the call graph.

    Attributes:
        symbol: As callgrind writes it; empty for an address without a symbol.
        module: File name of the object; empty where unknown.
        context: Its callers, innermost first, as far as ``--separate-callers`` goes.
    """

    symbol: str
    module: str
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """Calls from one function to another.

    Attributes:
        caller, callee: Indices into the graph's functions.
        inclusive_count: Instructions of the callee and of everything below it in these calls.
    """

    caller: int
    callee: int
    call_count: int
    inclusive_count: int


@dataclass(frozen=True, slots=True)
class CallGraph:
    """A call graph with instruction counts.

    Attributes:
        functions: In order of appearance.
        self_counts: Instructions of each function itself, one entry per function.
        edges: One per pair of caller and callee, in order of appearance.
    """

    functions: tuple[Function, ...]
    self_counts: tuple[int, ...]
    edges: tuple[Edge, ...]
    issues: Mapping[str, int]

    def __post_init__(self) -> None:
        if len(self.functions) != len(self.self_counts):
            raise ValueError(f"{len(self.functions)} functions have {len(self.self_counts)} counts")

    @property
    def total_count(self) -> int:
        """Instructions of all functions."""
        return sum(self.self_counts)


def parse_callgrind(lines: Iterable[str]) -> CallGraph:
    """Parse callgrind's output: parts are summed, damaged lines are counted."""
    reader = _Reader()
    for line in lines:
        reader.read(line.rstrip("\r\n"))
    return reader.graph()


def read_callgrind(path: Path) -> CallGraph:
    """Read a gzipped file. A truncated one is read as far as it goes, with the issue ``truncated``."""
    return parse_callgrind(_lines(path))


def _lines(path: Path) -> Iterator[str]:
    with (
        gzip.open(path, "rt", encoding="utf-8", errors="replace") as source,
        contextlib.suppress(EOFError, OSError, zlib.error),
    ):
        yield from source


class _Reader:
    """Parser state between two lines."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._functions: dict[Function, int] = {}
        self._self_counts: Counter[int] = Counter()
        self._calls: Counter[tuple[int, int]] = Counter()
        self._inclusive: Counter[tuple[int, int]] = Counter()
        self._issues: Counter[str] = Counter()
        self._position_columns, self._count_column = 1, 0
        self._module = ""
        self._current: int | None = None
        self._callee_module: str | None = None
        self._callee = ""
        self._pending_calls: int | None = None
        self._part_count = self._totals = 0
        self._complete = False

    def read(self, line: str) -> None:
        """Parse one line."""
        if not line or line.startswith("#"):
            return
        if _COST.match(line):
            self._cost(line)
            return
        key, equals, value = line.partition("=")
        if not equals or key.endswith(":") or ":" in key:
            self._header(line)
        elif key == "ob":
            self._module = self._name("ob", value)
        elif key == "fn":
            self._current = self._function(self._module, self._name("fn", value))
        elif key == "cob":
            self._callee_module = self._name("ob", value)
        elif key == "cfn":
            self._callee = self._name("fn", value)
        elif key == "calls":
            self._begin_calls(value)
        elif not line.startswith(_IGNORED):
            self._issues["unknown_line"] += 1

    def graph(self) -> CallGraph:
        """Return the graph of all lines read so far."""
        if not self._complete:
            self._issues[TRUNCATED] += 1
        elif self._totals != sum(self._self_counts.values()):
            self._issues["totals_differ"] += 1
        edges = tuple(
            Edge(caller, callee, calls, self._inclusive[caller, callee])
            for (caller, callee), calls in self._calls.items()
        )
        counts = tuple(self._self_counts[index] for index in range(len(self._functions)))
        return CallGraph(tuple(self._functions), counts, edges, dict(self._issues))

    def _header(self, line: str) -> None:
        key, colon, value = line.partition(":")
        if not colon:
            self._issues["unknown_line"] += 1
        elif key == "positions":
            self._position_columns = len(value.split())
        elif key == "events":
            self._complete = False
            self._count_column = value.split().index("Ir") if "Ir" in value.split() else 0
        elif key == "totals":
            figures = value.split()
            self._complete = len(figures) > self._count_column and figures[self._count_column].isdigit()
            self._totals += int(figures[self._count_column]) if self._complete else 0

    def _name(self, kind: str, text: str) -> str:
        match = _NAME.match(text)
        if match is None:
            return text
        number, name = match.groups()
        if name is not None:
            self._names[kind, number] = name
        elif (kind, number) not in self._names:
            self._issues["undefined_name"] += 1
        return self._names.get((kind, number), "")

    def _function(self, module: str, name: str) -> int:
        # ``function'caller'caller...``; the level of a recursion (``'2``) is dropped.
        symbol, *context = [piece for piece in name.split("'") if not piece.isdigit()] or [name]
        module = "" if module == _UNKNOWN else module.rpartition("/")[2]
        function = Function("" if symbol == _UNKNOWN or _ADDRESS.match(symbol) else symbol, module, tuple(context))
        return self._functions.setdefault(function, len(self._functions))

    def _begin_calls(self, value: str) -> None:
        count = value.partition(" ")[0]
        if count.isdigit() and self._callee:
            self._pending_calls = int(count)
        else:
            self._issues["bad_calls"] += 1

    def _cost(self, line: str) -> None:
        columns = line.split()[self._position_columns :]
        cost = columns[self._count_column] if len(columns) > self._count_column else "0"
        calls, self._pending_calls = self._pending_calls, None
        if not cost.isdigit() or self._current is None:
            self._issues["bad_cost"] += 1
        elif calls is None:
            self._self_counts[self._current] += int(cost)
        else:
            module = self._module if self._callee_module is None else self._callee_module
            edge = (self._current, self._function(module, self._callee))
            self._calls[edge] += calls
            self._inclusive[edge] += int(cost)
        if calls is not None:
            self._callee_module, self._callee = None, ""
