"""Where a test's baseline lies, and what of a capture is kept in it.

    tests/test_ops.py::TestAdd::test_add[10]
    tests/__overhead__/test_ops/TestAdd.test_add-10-1c9a03e4/amd-epyc-torch-2.13.0-5d41402a/

A machine is its processor, the number of its cores, torch and Python: each has a baseline of its own, so that all of them can be
kept in one repository. Instructions are the same on every processor.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
from importlib import metadata
from pathlib import Path

from overhead_lens.budget.trace import loop_events
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.captures.files import ABLATION, CALIBRATION, KINETO, KINETO_STACK, PERFETTO, STACKS
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.samples.record import Sampled
from overhead_lens.instruments.trace.record import read_trace
from overhead_lens.machine.environment import describe_machine

FOLDER = "__overhead__"

_MOST_LETTERS = 80
_SPARE = (ABLATION, KINETO_STACK, PERFETTO, "*.log")
_OF_THE_TRACE = (KINETO, CALIBRATION)


def place_of(file: Path, test: str, call: int, *, counts: bool) -> Path:
    """The directory of a baseline on this machine.

    Args:
        test: The test in its file: ``TestAdd::test_add[10]``.
        counts: Whether it holds instructions only.
    """
    name = _safe(test.replace("::", "."))
    return file.parent / FOLDER / file.stem / (name if call == 1 else f"{name}.{call}") / _key(counts=counts)


def keep(capture: Path, place: Path) -> None:
    """Copy what a comparison needs of a capture to where its baseline lies, in place of an older one.

    Raises:
        MeasurementError: Nothing can be written there.
    """
    fresh = place.with_name(f"{place.name}.new")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(capture, fresh, ignore=shutil.ignore_patterns(*_SPARE, *_decided_by_samples(capture)))
        if place.exists():
            shutil.rmtree(place)
        fresh.rename(place)
    except OSError as error:
        raise MeasurementError(f"cannot write the baseline {place}: {error.strerror or error}") from error


def _decided_by_samples(folder: Path) -> tuple[str, ...]:
    """The trace's files if samples make them redundant, which they do for calls without a device.

    The trace may decide where autograd's threads work for the call, as those of a device do that no argument of the call is on.
    """
    if not (folder / STACKS).exists():
        return ()
    capture = read_capture(folder)
    sampled = capture.note("samples", Sampled)
    enough = sampled is not None and sampled.reason is None and capture.meta.subject.device == "cpu"
    return _OF_THE_TRACE if enough and not _has_backward_threads(capture) else ()


def _has_backward_threads(capture: Capture) -> bool:
    """Whether autograd's threads work in the capture's trace."""
    trace = read_trace(capture)
    return trace is not None and bool(loop_events(trace.events, with_backward=True)[0]["is_backward"].any())


def _key(*, counts: bool) -> str:
    """This machine, so that people and file systems can read it."""
    torch, python = metadata.version("torch"), platform.python_version()
    if counts:
        return f"instructions-torch-{torch}-{_digest(torch, python, *platform.libc_ver())}"
    about = describe_machine()
    cpu = re.sub(r"\W+", "-", str(about["cpu"] or platform.machine())).strip("-").lower()
    return f"{cpu[:_MOST_LETTERS]}-torch-{torch}-{_digest(cpu, str(about['cores']), torch, python)}"


def _safe(name: str) -> str:
    """A name of a directory; what it loses is made up for by a digest."""
    safe = re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-.")[:_MOST_LETTERS]
    return safe if safe == name else f"{safe}-{_digest(name)}"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]
