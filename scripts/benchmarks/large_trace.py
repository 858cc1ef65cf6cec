"""Writes a drawn trace of the requested number of events: a training job on a device, step after step.

    python -m scripts.benchmarks.large_trace FILE.json.gz [--events N] [--rich]

A step is a forward pass on the main thread, a backward pass on autograd's, and the kernels of both on one stream. One step in
fifty waits for the device. Times follow a fixed seed. A rich trace has a module around each forward operator, the sequence
numbers that join the two passes, and an allocation and its release for each of them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isal import igzip

_PID, _MAIN, _AUTOGRAD, _DEVICE, _STREAM = 100, 100, 101, 0, 7
_LAYERS = 64
_OPERATORS = ("linear", "addmm", "layer_norm", "gelu", "matmul", "softmax", "dropout", "add")
_PARTS = ("t", "view", "empty")
_STALL = 50
_SEED = 20_260_301


def main() -> None:
    """Write the trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rich", action="store_true", help="modules, sequence numbers and allocations, too")
    options = parser.parse_args()
    print(f"{write_trace(options.file, options.events, rich=options.rich):,} events in {options.file}")


def write_trace(path: Path, events: int, *, rich: bool = False) -> int:
    """Write at least ``events`` events, whole steps of them; returns their number."""
    drawn = _Drawn(rich)
    with igzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Drawn GPU"}], "traceEvents": [\n')
        file.write(",\n".join(_names()))
        step = 0
        while drawn.count < events:
            file.write("".join(f",\n{line}" for line in drawn.step(step)))
            step += 1
        file.write("\n]}\n")
    return drawn.count


def _names() -> Iterator[str]:
    for thread, name in ((_MAIN, "python"), (_AUTOGRAD, "pt_autograd_0")):
        named = {"name": f"thread {thread} ({name})"}
        yield json.dumps({"ph": "M", "name": "thread_name", "pid": _PID, "tid": thread, "args": named})


@dataclass(slots=True)
class _Drawn:
    """What has been drawn so far: the clocks of host and device in ns, and how many events."""

    rich: bool = False
    now_ns: int = 0
    device_ns: int = 0
    count: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(_SEED))

    def step(self, number: int) -> list[str]:
        """The events of one step."""
        begin_ns, lines = self.now_ns, []
        for thread, prefix in ((_MAIN, "aten::"), (_AUTOGRAD, "autograd::engine::evaluate_function: ")):
            for layer in range(_LAYERS):
                begun_ns, number_of_pass = self.now_ns, number * _LAYERS + layer
                name = f"{prefix}{_OPERATORS[layer % len(_OPERATORS)]}"
                drawn = self._operator(thread, name, layer, number_of_pass)
                lines += self._around(thread, layer, begun_ns, drawn) if self.rich else drawn
        if number % _STALL == _STALL - 1:
            lines.append(self._event("cudaDeviceSynchronize", "cuda_runtime", self.now_ns, 5_000_000))
            self.now_ns += 5_000_000
        lines.append(self._event(f"ProfilerStep#{number}", "user_annotation", begin_ns, self.now_ns - begin_ns))
        self.now_ns += 10_000
        return lines

    def _around(self, thread: int, layer: int, begun_ns: int, drawn: list[str]) -> list[str]:
        """The module around a forward operator; memory that it allocates and the backward operator releases."""
        sign, at_ns = (1, begun_ns + 100) if thread == _MAIN else (-1, self.now_ns - 100)
        self.count += 1
        memory = (
            f'{{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": {_PID}, "tid": {thread}, "s": "t", '
            f'"ts": {at_ns / 1_000:.3f}, "args": {{"Addr": {(layer + 1) << 20}, "Bytes": {sign << 20}, '
            f'"Device Type": 1, "Device Id": {_DEVICE}, "Total Allocated": {(layer + 1) << 20}}}}}'
        )
        if thread != _MAIN:
            return [*drawn, memory]
        dur_ns = self.now_ns - begun_ns
        self.now_ns += 100
        module = self._event(f"nn.Module: Layer_{layer}", "python_function", begun_ns, dur_ns, thread)
        return [module, *drawn, memory]

    def _operator(self, thread: int, name: str, layer: int, number_of_pass: int) -> list[str]:
        """An operator with its parts, its launch, and its kernel."""
        begin_ns = self.now_ns
        self.now_ns += 2_000
        lines = []
        for part in _PARTS:
            dur_ns = self.random.randrange(500, 2_000)
            lines.append(self._event(f"aten::{part}", "cpu_op", self.now_ns, dur_ns, thread))
            self.now_ns += dur_ns + 300
        lines += self._launch(thread, f"void kernel_{layer}<float, {layer}>(int, float*)")
        self.now_ns += 1_000
        sequence = number_of_pass if self.rich else None
        return [self._event(name, "cpu_op", begin_ns, self.now_ns - begin_ns, thread, sequence=sequence), *lines]

    def _launch(self, thread: int, kernel: str) -> list[str]:
        called_ns, dur_ns = self.now_ns, self.random.randrange(2_000, 20_000)
        self.now_ns += 4_000
        self.device_ns = max(self.device_ns, self.now_ns) + 1_000
        number = self.count
        launch = self._event("cudaLaunchKernel", "cuda_runtime", called_ns, 4_000, thread, number)
        line = self._event(kernel, "kernel", self.device_ns, dur_ns, _STREAM, number, _DEVICE)
        self.device_ns += dur_ns
        return [launch, line]

    def _event(
        self,
        name: str,
        category: str,
        start_ns: int,
        dur_ns: int,
        thread: int = _MAIN,
        correlation: int | None = None,
        process: int = _PID,
        sequence: int | None = None,
    ) -> str:
        self.count += 1
        place = f', "device": {_DEVICE}, "stream": {_STREAM}' if category == "kernel" else ""
        args = "" if correlation is None else f', "args": {{"correlation": {correlation}{place}}}'
        if sequence is not None:
            args = f', "args": {{"Sequence number": {sequence}}}'
        return (
            f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {process}, "tid": {thread}, '
            f'"ts": {start_ns / 1_000:.3f}, "dur": {dur_ns / 1_000:.3f}{args}}}'
        )


if __name__ == "__main__":
    main()
