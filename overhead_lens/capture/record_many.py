"""What the recorders of ladders and of sweeps have in common: fresh workers, prepared side by side, measured one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from overhead_lens.capture import directory
from overhead_lens.capture.process import Worker, in_batches
from overhead_lens.capture.record import Listener, Order, provenance
from overhead_lens.errors import MeasurementError


class Measurement(Protocol):
    """What is done with the workers, and what was found so far."""

    def load(self, workers: Sequence[Worker]) -> None:
        """Have all of them load the scenario."""

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        """Have all of them do what comes before timing: one step of the listener."""

    def measure(self, worker: Worker, process: int) -> None:
        """Have one of them time, while the others are blocked."""

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the timed blocks and return what ``meta.json`` says of them."""


def record_many(kind: str, schema: str, order: Order, measurement: Measurement, listener: Listener) -> Path:
    """Record a ``kind`` (``ladder``, ``sweep``); returns the new directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: Nothing could be timed, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    with directory.recording_directory(order.output, order.parent, f"{kind}-{order.path.stem}") as folder:
        try:
            runtime = _run(kind, order, folder, measurement, listener)
            meta = {**measurement.write(folder), **provenance(order, runtime, started)}
            directory.write_meta(folder, meta, schema)
        except OSError as error:
            raise MeasurementError(directory.cannot_write(folder, error)) from error
        return folder


def _run(kind: str, order: Order, folder: Path, measurement: Measurement, listener: Listener) -> dict[str, Any]:
    """All workers, batch by batch; returns the environment that one of them describes."""
    batches = in_batches(range(order.effort.processes))
    listener.begin(2 * len(batches) + order.effort.processes + 1)
    for batch in batches:
        with ExitStack() as stack:
            names = [f"{kind}-{process}" for process in batch]
            workers = [stack.enter_context(Worker(name, folder / f"{name}.log", order.timeout_s)) for name in names]
            listener.step("loading")
            measurement.load(workers)
            measurement.warm_up(workers, listener)
            for process, worker in zip(batch, workers, strict=True):
                listener.step(f"measuring: {worker.name}")
                measurement.measure(worker, process)
            runtime = workers[0].ask("environment")
    listener.step(f"writing the {kind}")
    return runtime
