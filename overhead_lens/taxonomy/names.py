"""Shortens names of frames for display: C++ symbols without long template arguments."""

from __future__ import annotations

import re
from functools import lru_cache

from overhead_lens.stack import StackFrame

GIL_HOLDER = "GIL held by "
"""A frame that begins so waits for the GIL (``rules.toml``); in an import, compilation, collection or guard it is theirs."""

_UNCUT_LENGTH = 48
_NOISE = re.compile(r"\(anonymous namespace\)::|c10::detail::intrusive_target_default_null_type|\[abi:\w+\]| const$")
_LONGEST = 110
_INSTALLED = re.compile(r"^(site-packages|lib/python3(\.\d+)?)/")
_NO_MODULE = "?"
RUNTIMES = re.compile(r"(?P<library>lib(?P<name>gomp|omp|iomp5|tbb))\b")


def gil_held_by(thread: str) -> StackFrame:
    """The innermost frame of a thread that waits for the GIL, which ``thread`` holds."""
    return StackFrame(f"{GIL_HOLDER}thread {thread}", "", 0, native=True)


def is_nameless(frame: StackFrame) -> bool:
    """Whether nothing names the frame's function; a runtime of threads is named by its library."""
    return frame.native and not frame.function and not RUNTIMES.match(frame.location)


@lru_cache(maxsize=65_536)
def display_name(frame: StackFrame) -> str:
    """``function (file or module)``; a file from its package on, long template arguments and argument lists cut to ``...``.

    Code outside all modules is what a library such as oneDNN generated.
    """
    location = "generated code" if frame.location == _NO_MODULE else frame.location
    if not frame.function:
        runtime = RUNTIMES.match(location)
        if runtime is None:
            return f"[unresolved] ({location})"
        return f"{'TBB' if runtime['name'] == 'tbb' else 'OpenMP'} runtime ({runtime['library']})"
    if frame.native:
        return f"{short_symbol(frame.function)} ({location})" if location else frame.function
    return f"{frame.function.replace('.<locals>', '')} ({_INSTALLED.sub('', frame.location)})"


@lru_cache(maxsize=65_536)
def short_symbol(symbol: str) -> str:
    """A C++ symbol without long template arguments, argument lists and anonymous namespaces."""
    symbol = _NOISE.sub("", symbol)
    if len(symbol) <= _UNCUT_LENGTH:
        return symbol
    for opening, closing in ("<>", "()"):
        symbol = _cut_brackets(symbol, opening, closing)
    return symbol if len(symbol) <= _LONGEST else symbol[: _LONGEST - 1] + "…"


@lru_cache(maxsize=65_536)
def kernel_name(symbol: str) -> str:
    """A kernel without ``void`` and argument list; template arguments, which identify it, stay, and a name all in brackets."""
    return _cut_brackets(_NOISE.sub("", symbol.removeprefix("void ")), "(", ")").removesuffix("(...)") or symbol


def _cut_brackets(symbol: str, opening: str, closing: str) -> str:
    """Replace the long contents of outermost brackets by ``...``; ``operator<`` and ``operator()`` stay."""
    cut: list[str] = []
    depth = start = 0
    for position, letter in enumerate(symbol):
        if letter == opening and not symbol.endswith("operator", 0, position):
            depth += 1
            if depth == 1:
                start = position + 1
                cut.append(letter)
        elif letter == closing and depth and symbol[position - 1] != "-":
            depth -= 1
            if depth == 0:
                inner = symbol[start:position]
                cut.append(f"{inner if len(inner) <= 24 else '...'}{letter}")
        elif depth == 0:
            cut.append(letter)
    return "".join(cut) if depth == 0 else symbol
