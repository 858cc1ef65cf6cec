"""Peaks: the machine's rates, in the last timed process, while the calibration lacks processes; then those stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import Operation

Positive = Annotated[float, Meta(gt=0)]
Size = Annotated[int, Meta(gt=0)]


class Level(Struct, frozen=True, omit_defaults=True):
    """Bandwidth of a memory level with all threads, or with one if that is faster.

    Attributes:
        bytes: The working set.
        bytes_per_s: The larger of reading and copying (read + written).
        capacity_bytes: Size of the level, over the threads; None for main memory; not set in captures that know no levels.
        level: None in captures that know none.
    """

    bytes: Size
    bytes_per_s: Positive
    capacity_bytes: int | UnsetType | None = UNSET
    level: str | None = None

    @property
    def holds_bytes(self) -> int | None:
        """Size of the level, None for main memory; the working set where no levels are known."""
        return self.bytes if isinstance(self.capacity_bytes, UnsetType) else self.capacity_bytes

    @property
    def name(self) -> str:
        """``L2``; a size where no levels are known."""
        return self.level or f"a working set of {self.bytes / 2**20:.4g} MiB"


class DevicePeaks(Struct, frozen=True):
    """Peaks of a device: copy (read + written), float32 arithmetic, an empty launch; 0 for an unknown cache."""

    bytes_per_s: Positive
    flops_per_s: Positive
    cache_bytes: int = 0
    launch_ns: float | None = None
    round_trip_ns: float | None = None


class Peaks(Struct, frozen=True):
    """Peak rates of the machine.

    Attributes:
        copy: Memory levels, smallest first, main memory last.
        levels_from: ``sysfs``, or ``assumed`` where the machine does not say.
        flops_per_s: float32 matrix-matrix product.
        device: None without a GPU in use; ``device_reason`` says why.
    """

    copy: Annotated[list[Level], Meta(min_length=1)]
    flops_per_s: Positive
    levels_from: str = ""
    threads: int = 1
    device: DevicePeaks | None = None
    device_reason: str | None = None
    seconds: float = 0.0

    def level_of(self, size_bytes: int) -> Level:
        """The smallest memory level that holds a number of bytes; main memory if none does."""
        return next((level for level in self.copy if (level.holds_bytes or 0) >= size_bytes), self.copy[-1])


MEASURE = Operation("instruments.peaks.worker:measure_peaks", Peaks)


class MeasurePeaks(Instrument):
    """The machine's peaks; None if they could not be measured."""

    name = "peaks"
    when = When.LAST
    note: Peaks | None = None

    def measure(self, turn: Turn) -> None:
        """Use the stored peaks, or measure; the faster of both are stored, since other load only makes them slower."""
        calibrate = turn.recording.of(Calibrate)
        stored = stored_peaks((calibrate.calibration or {}).get("peaks"), turn.recording.device)
        self.note = stored
        if stored is not None and not calibrate.measured:
            return
        try:
            measured = turn.present_worker.ask(MEASURE)
        except MeasurementError as error:
            turn.warn("no roofline floor", error)
            return
        self.note = measured if stored is None else faster(stored, measured)
        calibrate.keep(turn.recording, peaks=msgspec.to_builtins(self.note))


def stored_peaks(entry: Mapping[str, Any] | None, device: str) -> Peaks | None:
    """Peaks stored with a calibration; None if damaged or without a call's device, so that they are measured again."""
    try:
        peaks = msgspec.convert(entry, Peaks)
    except msgspec.ValidationError:
        return None
    return peaks if device == "cpu" or peaks.device is not None else None


def faster(stored: Peaks, measured: Peaks) -> Peaks:
    """The peaks whose matrix product and main memory are faster, by the product of their rates."""
    return max(stored, measured, key=lambda peaks: peaks.flops_per_s * peaks.copy[-1].bytes_per_s)
