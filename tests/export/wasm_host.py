"""The host side of an Emscripten program without files: its imports answered, its memory read and written.

Only what trace_processor needs is answered (clock, growing memory, standard error, an empty environment); everything
else reports "not implemented", and what would end the program raises.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import wasmtime

_PAGE_BYTES = 65536
_MEMORY_LIMIT_BYTES = 0xFFFF0000
_ENOSYS = -52
_FATAL = ("_abort_js", "__assert_fail")


class WasmError(Exception):
    """The program stopped itself."""


class WasmHost:
    """A started instance of ``module`` and the services it imports."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module) -> None:
        self._store = wasmtime.Store(engine)
        self._console: list[str] = []
        linker = wasmtime.Linker(engine)
        for wanted in module.imports:
            assert isinstance(wanted.type, wasmtime.FuncType)
            assert wanted.name is not None
            service = wasmtime.Func(self._store, wanted.type, self._service(wanted.name, wanted.type))
            linker.define(self._store, wanted.module, wanted.name, service)
        self._exports = linker.instantiate(self._store, module).exports(self._store)
        memory = self._exports["memory"]
        assert isinstance(memory, wasmtime.Memory)
        self._memory = memory

    def call(self, function: str, *arguments: int) -> int:
        """Call an exported function."""
        exported = self._exports[function]
        assert isinstance(exported, wasmtime.Func)
        answer = exported(self._store, *arguments)
        return answer if isinstance(answer, int) else 0

    def add_callback(self, callback: Callable[[int, int], None]) -> int:
        """Make ``callback(address, size)`` callable by the program; returns its function pointer."""
        i32 = wasmtime.ValType.i32()
        function = wasmtime.Func(self._store, wasmtime.FuncType([i32, i32], []), callback)
        table = self._exports["__indirect_function_table"]
        assert isinstance(table, wasmtime.Table)
        return table.grow(self._store, 1, function)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the program's memory; addresses arrive as signed 32 bit and count as unsigned."""
        start = address & 0xFFFFFFFF
        return bytes(self._memory.read(self._store, start, start + size))

    def write(self, address: int, data: bytes) -> None:
        """Write into the program's memory."""
        self._memory.write(self._store, data, address & 0xFFFFFFFF)

    def _service(self, name: str, kind: wasmtime.FuncType) -> Callable[..., Any]:
        services: dict[str, Callable[..., Any]] = {
            "emscripten_get_now": lambda: time.monotonic() * 1e3,
            "emscripten_date_now": lambda: time.time() * 1e3,
            "emscripten_get_heap_max": lambda: _MEMORY_LIMIT_BYTES - (1 << 32),
            "emscripten_resize_heap": self._grow,
            "clock_time_get": self._clock,
            "environ_sizes_get": self._no_environment,
            "environ_get": lambda *_: 0,
            "fd_write": self._fd_write,
            **dict.fromkeys(_FATAL, self._stop),
        }
        result = [str(each) for each in kind.results]
        default = None if not result else 0.0 if result == ["f64"] else _ENOSYS
        return services.get(name, lambda *_: default)

    def _stop(self, *_: int) -> None:
        raise WasmError("".join(self._console)[-400:] or "the program stopped")

    def _grow(self, wanted_bytes: int) -> int:
        have_bytes = self._memory.data_len(self._store)
        goal_bytes = min(max(wanted_bytes & 0xFFFFFFFF, have_bytes + have_bytes // 5), _MEMORY_LIMIT_BYTES)
        try:
            self._memory.grow(self._store, -(-(goal_bytes - have_bytes) // _PAGE_BYTES))
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def _clock(self, _clock: int, _precision: int, address: int) -> int:
        self.write(address, struct.pack("<Q", time.time_ns()))
        return 0

    def _no_environment(self, count_address: int, size_address: int) -> int:
        self.write(count_address, bytes(4))
        self.write(size_address, bytes(4))
        return 0

    def _fd_write(self, _descriptor: int, vectors: int, count: int, written_address: int) -> int:
        written = 0
        for index in range(count):
            address, size = struct.unpack("<II", self.read(vectors + 8 * index, 8))
            self._console.append(self.read(address, size).decode("utf-8", "replace"))
            written += size
        self.write(written_address, struct.pack("<I", written))
        return 0
