"""Records ladders and sweeps: fresh workers get ready side by side and measure one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from overhead_lens.captures.directory import Kind, recording_directory, write_meta
from overhead_lens.machine.operations import DESCRIBE_RUNTIME
from overhead_lens.machine.process import Worker, in_batches
from overhead_lens.machine.request import Listener, Order
from overhead_lens.recorder.side import provenance

Meta = TypeVar("Meta", bound=Struct)
Written_co = TypeVar("Written_co", bound=Struct, covariant=True)


class Measurement(Protocol[Written_co]):
    """A study's operations on its workers, and the rows so far."""

    def load(self, workers: Sequence[Worker]) -> None:
        """Load the scenario in all workers."""

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        """Warm up all workers: one step of the listener."""

    def measure(self, worker: Worker, process: int) -> None:
        """Measure in one worker, while the others are blocked."""

    def write(self, folder: Path, provenance: Mapping[str, Any]) -> Written_co:
        """Write the timed blocks; returns ``meta.json``, with its provenance."""


def record_many(kind: Kind[Meta], order: Order, measurement: Measurement[Meta], listener: Listener) -> Path:
    """Record a directory of a kind; returns its path.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: Nothing could be timed, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    with recording_directory(order.output, order.parent, f"{kind.noun}-{order.target.label}") as folder:
        runtime = _run(kind.noun, order, folder, measurement, listener)
        meta = measurement.write(folder, provenance(order, runtime, started))
        write_meta(folder, kind, meta)
        return folder


def _run(noun: str, order: Order, folder: Path, measurement: Measurement[Any], listener: Listener) -> dict[str, Any]:
    """Measure in all workers, batch by batch; returns the runtime that one of them describes."""
    batches = in_batches(range(order.effort.processes))
    listener.begin(2 * len(batches) + order.effort.processes + 1)
    for batch in batches:
        with ExitStack() as stack:
            names = [f"{noun}-{process}" for process in batch]
            workers = [stack.enter_context(Worker(name, folder / f"{name}.log", order.timeout_s)) for name in names]
            listener.step("loading")
            measurement.load(workers)
            measurement.warm_up(workers, listener)
            for process, worker in zip(batch, workers, strict=True):
                listener.step(f"measuring: {worker.name}")
                measurement.measure(worker, process)
            runtime = workers[0].ask(DESCRIBE_RUNTIME)
    listener.step(f"writing the {noun}")
    return runtime
