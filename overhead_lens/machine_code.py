"""Loops over arrays, compiled by numba once per machine and loaded without it.

Importing numba and what it needs to read its own cache takes half a second: longer than the analysis of most traces. So the
object code of a loop is kept, and a later process links it by llvmlite, which takes a tenth of a second and no compiler::

    loop --numba, once--> object code in the user's cache --llvmlite--> C function <--ctypes-- arrays as pointers and lengths

The key in the file's name covers everything that the code depends on: the text of its module, the types of its arguments, the
versions of numba and Python, the processor. The file begins with a digest of the rest, so that one that was cut off is compiled
again.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from overhead_lens import user_cache

_DIGEST_BYTES = 32
_CPU_INFO_BYTES = 1 << 13
_RELEASES_MEMORY = "NRT_MemInfo_call_dtor"

Described: TypeAlias = "str | tuple[Described, ...]"
"""An argument: ``int``, an array as ``uint8/1`` (dtype and dimensions), or a tuple of arguments."""

Native = Callable[..., int]


@dataclass(slots=True)
class MachineCode:
    """A loop of numba's that is called as machine code.

    Its arguments are integers, C-contiguous arrays, and tuples of these. It must not raise.

    Attributes:
        function: ``package.module:name``; the module is imported where it has to be compiled, and only there.
        results: How many integers it returns: none, one, or a tuple of them.
        depends: Modules whose constants its code holds.
    """

    function: str
    results: int = 1
    depends: tuple[str, ...] = ()
    _natives: dict[Described, Native | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, *arguments: Any) -> tuple[int, ...]:
        """Run the loop; returns its integers."""
        described = tuple(_described(argument) for argument in arguments)
        with self._lock:
            if described not in self._natives:
                self._natives[described] = self._native(described)
        native = self._natives[described]
        if native is None:
            result = _dispatcher(self.function)(*arguments)
            return tuple(map(int, result if self.results > 1 else [result][: self.results]))
        returned = np.empty(self.results, dtype=np.int64)
        status = native(*_flat(arguments), returned.ctypes.data)
        if status:
            raise RuntimeError(f"{self.function} ended with status {status}")
        return tuple(returned.tolist())

    def is_stored(self, *arguments: Any) -> bool:
        """Whether the code for such arguments is in the cache; nothing is loaded."""
        described = tuple(_described(argument) for argument in arguments)
        return described in self._natives or _read(self._place(described)) is not None

    def _native(self, described: tuple[Described, ...]) -> Native | None:
        """The loop for such arguments; None where numba cannot give its object code away, and has to call it itself."""
        place = self._place(described)
        code = _read(place)
        if code is None:
            code = _compiled(self.function, described, self.results)
            if code is None:
                return None
            _store(place, code)
        # One more says where the results go.
        return _linked(code, _leaves(described) + 1)

    def _place(self, described: tuple[Described, ...]) -> Path:
        module, _, name = self.function.partition(":")
        digest = hashlib.sha256()
        for each in (module, *self.depends):
            digest.update(_source(each))
        digest.update(repr((described, self.results, *_of_machine())).encode())
        return user_cache.folder() / f"{name.strip('_')}-{digest.hexdigest()[:20]}.code"


def _described(argument: Any) -> Described:
    if isinstance(argument, np.ndarray):
        if not argument.flags.c_contiguous:
            raise ValueError("an array that is not contiguous cannot be passed to machine code")
        return _array(argument.dtype, argument.ndim)
    if isinstance(argument, tuple):
        return tuple(_described(part) for part in argument)
    return "int"


@cache
def _array(dtype: np.dtype[Any], dimensions: int) -> str:
    return f"{dtype.name}/{dimensions}"


def _flat(arguments: Sequence[Any]) -> Iterator[int]:
    """Addresses and lengths of arrays, integers, in the order of ``_leaves``."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            yield argument.__array_interface__["data"][0]
            yield from argument.shape
        elif isinstance(argument, tuple):
            yield from _flat(argument)
        else:
            yield int(argument)


def jit(function: Any, *, inline: bool = False) -> Any:
    """A function that numba compiles when it is first called, in every process if its cache cannot be written.

    With ``inline`` its code becomes part of every function that calls it.
    """
    from numba import njit

    options = {"nogil": True, "boundscheck": False, "forceinline": inline}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)


# ---------------------------------------------------------------- stored code


def _source(module: str) -> bytes:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"{module} has no source")
    return Path(spec.origin).read_bytes()


@cache
def _of_machine() -> tuple[str | bytes, ...]:
    return sys.version, sys.platform, platform.machine(), metadata.version("numba"), _processor()


def _processor() -> bytes:
    """Identity of this machine's processor: compiled code may use instructions that another processor lacks."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            lines = file.read(_CPU_INFO_BYTES).splitlines()
    except OSError:
        return platform.processor().encode()
    first = lines[: lines.index(b"") if b"" in lines else None]
    # The frequency changes from one moment to the next.
    return b"".join(line for line in first if line.startswith((b"model", b"flags", b"Features", b"CPU")))


def _read(place: Path) -> bytes | None:
    """The stored code; None if absent or damaged."""
    try:
        data = place.read_bytes()
    except OSError:
        return None
    digest, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _store(place: Path, code: bytes) -> None:
    try:
        user_cache.replace(place, hashlib.sha256(code).digest() + code)
    except OSError:
        return  # compiled in every process, then


# ---------------------------------------------------------------- compiled, linked


_engines: list[Any] = []  # code is gone with its engine


# Stands for the release of an array's memory: whoever passes an array in releases it, so that nothing calls this.
_never = ctypes.CFUNCTYPE(None)(lambda: None)


@cache
def _target() -> Any:
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol(_RELEASES_MEMORY, ctypes.cast(_never, ctypes.c_void_p).value)
    return llvm.Target.from_default_triple().create_target_machine()


def _linked(code: bytes, count: int) -> Native:
    """The C function of stored code: its name, a line end, the object code; ``count`` integers are passed to it."""
    from llvmlite import binding as llvm

    name, _, object_code = code.partition(b"\n")
    target = _target()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
    engine.finalize_object()
    _engines.append(engine)
    # numba's calling convention: where the result and an exception go, then the arguments; the status is returned.
    result, exception = ctypes.c_int64(), ctypes.c_void_p()
    kinds = (ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * count)
    function = ctypes.CFUNCTYPE(*kinds)(engine.get_function_address(name.decode()))
    return partial(function, ctypes.byref(result), ctypes.byref(exception))


def _leaves(part: Described) -> int:
    """Integers that are passed for arguments."""
    if isinstance(part, tuple):
        return sum(map(_leaves, part))
    return 1 + int(part.partition("/")[2] or 0)


def _dispatcher(function: str) -> Any:
    """The loop as numba itself calls it."""
    from numba import njit
    from numba.core.registry import CPUDispatcher

    module, _, name = function.partition(":")
    loop = getattr(importlib.import_module(module), name)
    return loop if isinstance(loop, CPUDispatcher) else njit(nogil=True)(loop)


def _compiled(function: str, described: tuple[Described, ...], results: int) -> bytes | None:
    """Name and object code of the loop with arrays as pointers and lengths; None if this numba has no way to them."""
    loop = _dispatcher(function)
    names, kinds, expressions = _parameters(described)
    places = [f"returned[{at}] = result[{at}]" for at in range(results)]
    filled = "returned[0] = result" if results == 1 else "; ".join(places) or "pass"
    text = (
        f"def entry({', '.join(names)}, to):\n"
        f"    returned = carray(to, ({results},))\n"
        f"    result = loop({', '.join(expressions)})\n"
        f"    {filled}\n"
        "    return 0\n"
    )
    try:
        import numba.core.types
        from numba import carray
        from numba.core.compiler import Flags, compile_extra
        from numba.core.registry import cpu_target

        types: Any = numba.core.types
        scope: dict[str, Any] = {"loop": loop, "carray": carray}
        exec(text, scope)  # noqa: S102 - of names, numbers and dtypes of arrays alone
        flags = Flags()
        flags.nrt, flags.no_cpython_wrapper, flags.no_cfunc_wrapper = True, True, True
        contexts = cpu_target.typing_context, cpu_target.target_context
        done = compile_extra(*contexts, scope["entry"], (*kinds, types.CPointer(types.int64)), types.int64, flags, {})
        _, _, (code, *_) = done.library.serialize_using_object_code()
        return str(done.fndesc.llvm_func_name).encode() + b"\n" + bytes(code)
    except (ImportError, AttributeError, TypeError, ValueError):  # parts of numba that it does not document
        return None


def _parameters(described: tuple[Described, ...]) -> tuple[list[str], list[Any], list[str]]:
    """Names and numba types of the C function's parameters, and the loop's arguments made of them."""
    import numba.core.types

    types: Any = numba.core.types
    names: list[str] = []
    kinds: list[Any] = []

    def parameter(kind: Any) -> str:
        names.append(f"p{len(names)}")
        kinds.append(kind)
        return names[-1]

    def expression(part: Described) -> str:
        if isinstance(part, tuple):
            return f"({' '.join(f'{expression(inner)},' for inner in part)})"
        if part == "int":
            return parameter(types.int64)
        dtype, _, dimensions = part.partition("/")
        pointer = parameter(types.CPointer(getattr(types, dtype)))
        shape = " ".join(f"{parameter(types.int64)}," for _ in range(int(dimensions)))
        return f"carray({pointer}, ({shape}))"

    return names, kinds, [expression(part) for part in described]
