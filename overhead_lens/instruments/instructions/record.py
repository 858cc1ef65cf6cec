"""Instructions of the measured loop, counted in a worker of its own under ``valgrind --tool=callgrind``.

    worker under valgrind:  load, compile | warm up | N calls | dump | warm up | N calls | dump | ... | killed
    callgrind               off                     on        off              on        off

Whatever would differ from run to run is fixed: the number of calls (warm-up included), the seed of Python's hashes, one thread
(threads that wait for each other spin), a processor that valgrind knows (no AVX-512). Memory layout is the same in every run of
one environment, but compiling leaves addresses to chance: a worker that compiled is ended, and the next, which finds the code in
a cache of the same name, is counted. The round (``worker.py``) with the fewest instructions is kept.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from overhead_lens.captures.directory import Capture, empty
from overhead_lens.captures.files import CALLGRIND
from overhead_lens.errors import MeasurementError, OverheadLensError
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import COMPILE_CALL, LOAD, Nothing, Operation
from overhead_lens.machine.process import Worker
from overhead_lens.readers.callgrind import CallGraph, read_callgrind

ON_A_DEVICE = "a call that gives work to a device is not counted"

_COUNT = Operation("instruments.instructions.worker:count", Nothing)

# Bare time of a call, calls in a round, rounds. About 1,500 instructions of a round are not of its calls.
_EFFORT = ((200_000, 200, 12), (2_000_000, 20, 4), (20_000_000, 2, 2))

_END_BYTES = 200
_MOST_SCRATCH = 20

# A function is counted by this many of its callers.
_CALLERS = 64

_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",
}


class Counted(Struct, frozen=True):
    """The outcome of counting: calls in the window, or the reason why nothing was counted."""

    calls: Annotated[int, Meta(gt=0)]
    reason: str | None = None


class CountInstructions(Instrument):
    """The outcome of counting; None if not requested."""

    name = "instructions"
    when = When.AFTERWARDS
    note: Counted | None = None

    def measure(self, turn: Turn) -> None:
        """Count, if it was requested."""
        request, recording = turn.request, turn.recording
        if not request.instructions:
            return
        recording.listener.step("counting instructions")
        assert recording.workload is not None
        if recording.workload.device != "cpu":
            self.note = Counted(1, ON_A_DEVICE)
            return
        rows = recording.of(Clock).rows
        calls = request.counted_calls or calls_of(min(row["wall_ns"] / row["calls"] for row in rows))
        load, folder = request.load_arguments(), recording.folder
        self.note = count_instructions(load, calls, folder, request.timeout_s, request.variables)


def calls_of(call_ns: float) -> int:
    """Calls in a round for a bare call of ``call_ns``."""
    return next((calls for limit_ns, calls, _ in _EFFORT if call_ns < limit_ns), 1)


def count_instructions(
    load: Mapping[str, Any], calls: int, folder: Path, timeout_s: float, variables: Mapping[str, str] | None = None
) -> Counted:
    """Count the instructions of the measured loop and write callgrind's output into ``folder``.

    Args:
        calls: In the window; counts compare only with those of as many calls.
        variables: Environment variables of the worker, beside those that are fixed.
    """
    rounds = next((rounds for _, least, rounds in _EFFORT if calls >= least), 1)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return Counted(calls, "valgrind is not installed (apt-get install valgrind)")
    log = folder / "instructions.log"
    try:
        with _scratch() as scratch:
            launcher = [valgrind, "--quiet", "--tool=callgrind", "--instr-atstart=no", "--vgdb=no"]
            launcher += [f"--separate-callers={_CALLERS}", f"--callgrind-out-file={scratch / 'out'}"]
            cache = scratch / "inductor"
            fixed = {**_ENVIRONMENT, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TMPDIR": str(scratch)}
            environment = {**(variables or {}), **fixed}
            for _ in range(2):
                was_cached = cache.exists()
                with Worker(
                    "the worker under valgrind", log, timeout_s, variables=environment, launcher=launcher
                ) as worker:
                    worker.ask(LOAD, **load)
                    worker.ask(COMPILE_CALL)
                    if was_cached or not cache.exists():
                        worker.ask(_COUNT, calls=calls, rounds=rounds)
                        break
            # Callgrind numbers its dumps.
            dumps = sorted(scratch.glob("out.[0-9]*"))
            if not dumps:
                return Counted(calls, "callgrind wrote no counts")
            # The round with the fewest instructions.
            with min(dumps, key=_total).open("rb") as source, gzip.open(folder / CALLGRIND, "wb") as target:
                shutil.copyfileobj(source, target)
    except (OverheadLensError, OSError) as error:
        return Counted(calls, str(error))
    return Counted(calls)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """An empty directory of the same name in every run: names are hashed. A concurrent run takes the next."""
    # Not at the top: Windows has none.
    import fcntl

    for number in range(_MOST_SCRATCH):
        folder = Path(tempfile.gettempdir(), f"overhead_lens_counting_{number:02}")
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            continue
        # Freed by the system when this process ends, however it ends.
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        try:
            empty(folder)
            yield folder
        finally:
            empty(folder)
            os.close(lock)
        return
    raise MeasurementError(f"no directory for counting is free in {tempfile.gettempdir()}")


def _total(dump: Path) -> float:
    """Instructions in a dump by its last line; infinite where it was cut off."""
    with dump.open("rb") as source:
        source.seek(max(0, dump.stat().st_size - _END_BYTES))
        totals = re.search(rb"^totals: (\d+)", source.read(), re.MULTILINE)
    return int(totals[1]) if totals else math.inf


@dataclass(frozen=True, slots=True)
class Instructions:
    """Callgrind's counts (None without them), and how counting went."""

    graph: CallGraph | None
    about: Counted


def read_instructions(capture: Capture) -> Instructions | None:
    """The counts; None if none were requested."""
    about = capture.note("instructions", Counted)
    if about is None:
        return None
    path = capture.existing(CALLGRIND)
    return Instructions(None if path is None else read_callgrind(path), about)
