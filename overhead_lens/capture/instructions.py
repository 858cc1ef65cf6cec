"""The instructions instrument: the measured loop of a worker of its own under ``valgrind --tool=callgrind``.

    worker under valgrind:  load | check, compile, warm up | count N calls | dump | killed
    callgrind               off ------------------------->  on             off

What would differ from run to run is fixed: the number of calls (warm-up included), the seed of Python's hashes, one thread
(threads that wait for each other spin), code for a processor that valgrind knows (no AVX-512), compiled anew in a folder of
its own. Valgrind lays out memory the same in every run.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead_lens.capture.directory import CALLGRIND
from overhead_lens.capture.process import Worker
from overhead_lens.errors import MeasurementError, OverheadLensError

# Calls of the measured loop by the bare time of one: what is in the window besides them is some 3,000 instructions in all.
_CALLS = ((200_000, 500), (2_000_000, 50), (20_000_000, 5))

# Contexts of a call graph are kept apart by this many callers.
_CALLERS = 64

_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",
}


def calls_to_count(call_ns: float) -> int:
    """How many calls are counted of a workload whose bare call takes ``call_ns``."""
    return next((calls for limit_ns, calls in _CALLS if call_ns < limit_ns), 1)


def count_instructions(load: Mapping[str, Any], call_ns: float, folder: Path, timeout_s: float) -> dict[str, Any]:
    """Count the instructions of the measured loop and write callgrind's output into ``folder``.

    Args:
        load: What the worker is told to load.
        call_ns: Bare time of one call.
        folder: The capture.
        timeout_s: Limit for one step under valgrind.

    Returns:
        ``calls``: in the window; ``reason``: why nothing was counted, None where it was.
    """
    calls = calls_to_count(call_ns)
    try:
        with tempfile.TemporaryDirectory(prefix="overhead_lens_") as scratch:
            output = _count(load, calls, folder, Path(scratch), timeout_s)
            with output.open("rb") as source, gzip.open(folder / CALLGRIND, "wb") as target:
                shutil.copyfileobj(source, target)
    except OverheadLensError as error:
        return {"calls": calls, "reason": str(error)}
    return {"calls": calls, "reason": None}


def _count(load: Mapping[str, Any], calls: int, folder: Path, scratch: Path, timeout_s: float) -> Path:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise MeasurementError("valgrind is not installed (apt-get install valgrind)")
    launcher = [valgrind, "--quiet", "--tool=callgrind", "--instr-atstart=no", "--trace-children=no"]
    launcher += [f"--separate-callers={_CALLERS}", f"--callgrind-out-file={scratch / 'out'}"]
    environment = {**_ENVIRONMENT, "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor")}
    log = folder / "instructions.log"
    with Worker("the worker under valgrind", log, timeout_s, tuple(launcher), environment) as worker:
        worker.ask("load", **load)
        worker.ask("count_instructions", calls=calls)
    # Callgrind numbers its dumps.
    dumps = sorted(scratch.glob("out.[0-9]*"))
    if not dumps:
        raise MeasurementError("callgrind wrote no counts")
    return dumps[0]
