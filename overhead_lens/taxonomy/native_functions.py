"""Classifies C functions of a trace with stacks by their callers.

torch.profiler names a C function without its module: ``<built-in function zoom_shift>``. A method has the type that it is of,
``<built-in method astype of numpy.ndarray object at 0x7f..>``, and a function is taken for its caller's, if that is a file of a
package, unless the interpreter, its standard library or torch has one of that name.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import re
import sys
from functools import cache

from overhead_lens.taxonomy.rules import Attribution

EXTENSION, KERNEL, UNKNOWN = Attribution("python", "extension"), Attribution("kernel"), Attribution("unattributed")

_METHOD = re.compile(r"<(?:built-in )?method '?\w*'? of '?(?P<type>[\w.]+)'? object")
_FUNCTION = re.compile(r"<built-in function (?P<name>\w+)>")
_CALLER = re.compile(r"(?:.*/(?:site|dist)-packages/)?(?P<package>[A-Za-z_]\w*)/.*\(\d+\): ")
_GENERATED = re.compile(r"(?:.*/)?c[a-z2-7]{50,}\.py\(\d+\): ")
_OF_GENERATED = {"<built-in function kernel>": KERNEL, "<built-in function inductor_entry_cpp>": UNKNOWN}
_OF_TORCH = re.compile(
    r"_?(cuda|xpu|mps|mtia)_|_reinterpret_tensor|.*torch|.*(grad|autocast|inference|tracing|compiling)"
)
_TORCH = frozenset({"torch", "pybind11_builtins"})
_STANDARD = (
    "math", "time", "posix", "itertools", "operator", "_functools", "_struct", "_json", "_random", "zlib", "gc", "sys",
    "_thread", "_io", "_abc", "_socket", "select", "_pickle", "_codecs", "binascii", "_contextvars", "_weakref",
    "marshal", "_hashlib", "unicodedata", "_bisect", "_heapq", "_signal", "_collections", "_warnings", "_imp",
    "_opcode", "_string",
)  # fmt: skip


def by_caller(function: str, caller: str, *, calls_torch: bool, launches: bool) -> Attribution | None:
    """The attribution of a C function by the event around it; None where its own name decides.

    Args:
        caller: Name of the event around it.
        calls_torch: Whether operators or calls of a device's runtime were recorded below it.
        launches: Whether calls of a device's runtime were.
    """
    if _GENERATED.match(caller):
        return None if launches else _OF_GENERATED.get(function)
    return EXTENSION if not calls_torch and is_other_package(function, caller) else None


@cache
def is_other_package(function: str, caller: str) -> bool:
    """Whether ``function`` is native code of a package that is neither the interpreter's nor torch's.

    Args:
        caller: Name of the event around it.
    """
    if method := _METHOD.match(function):
        package, _, rest = method["type"].partition(".")
        return bool(rest) and package not in _TORCH and package not in sys.stdlib_module_names
    callee, around = _FUNCTION.match(function), _CALLER.match(caller)
    if callee is None or around is None or _OF_TORCH.match(callee["name"]) or callee["name"] in _interpreters():
        return False
    return around["package"] not in _TORCH and around["package"] not in sys.stdlib_module_names


@cache
def _interpreters() -> frozenset[str]:
    """Names of the interpreter's own C functions."""
    there = [module for module in _STANDARD if importlib.util.find_spec(module) is not None]
    return frozenset(dir(builtins)).union(*(dir(importlib.import_module(module)) for module in there))
