"""Watches a running process from outside for a while; nothing is left in it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.guard import descendants, threads_of
from overhead_lens.machine.other_process import (
    OtherProcess,
    cpu_ns,
    examine,
    looks_like_python,
    permission_remedy,
    runs,
    thread_cpu_ns,
)
from overhead_lens.machine.placement import Placement
from overhead_lens.machine.request import Listener
from overhead_lens.machine.thread_clocks import ThreadClocks
from overhead_lens.samplers.py_spy import PySpy, python_threads, start_py_spy
from overhead_lens.samplers.sampler import NoInterpreterError, NoStackError, NotPermittedError, SamplerRun, Watch
from overhead_lens.studies.attach.slowdown import Reading
from overhead_lens.units import NS_PER_S

_PIECES, _PIECE_S = 8, 0.25
_LOOK_S = 0.1
# When the sampler has taken its first stacks, and how long it is waited for to catch up.
_FIRST_S, _FIRST_STACKS, _CATCHING_UP_S, _SOON_S = 0.5, 5, 20.0, 0.01


@dataclass(frozen=True, slots=True)
class Watched:
    """The outcome of a watch; fields without a description as in ``ProcessMeta``.

    Attributes:
        duration_ns: From the moment from which on the sampler kept pace until it was stopped.
        thread: The busiest one that runs Python, on whose core it was sampled.
        alive: Threads that were there at the end.
    """

    process: OtherProcess
    run: SamplerRun
    rate_hz: int
    duration_ns: int
    thread: int
    alive: frozenset[int]
    before: tuple[Reading, ...]
    during: tuple[Reading, ...]
    unplaced: str
    notes: tuple[str, ...]
    running: Mapping[int, float]
    in_system: Mapping[int, float]


def watch(watched: Watch, seconds: float, interrupted: Event, listener: Listener, *, load: bool = True) -> Watched:
    """Watch a process for ``seconds``, or until it ends or ``interrupted`` is set.

    Args:
        watched: The request to the sampler, which ends by itself after ``duration_s`` should this program be killed.
        load: Read its CPU clock for two seconds before.

    Raises:
        UsageError: There is no such process, or it is not a Python process.
        MeasurementError: It cannot be watched.
    """
    listener.step(f"looking at process {watched.pid}")
    process = examine(watched.pid)
    clocks = ThreadClocks(watched.pid)
    spent_ns = thread_cpu_ns(watched.pid)
    before = _load_before(watched.pid) if load else ()
    time.sleep(0 if load else _PIECE_S)
    thread = _busiest(watched.pid, spent_ns)
    listener.step("reading symbols")
    with _explained(process), start_py_spy(watched) as running, Placement(watched.pid) as placement:
        during = _reading(watched.pid)
        running.wait_until_begun()
        if not clocks.end():
            placement.place(thread, running.pid)
        overdue = watched.rate_hz * _caught_up_s(running, watched.rate_hz, interrupted)
        listener.step(f"watching process {watched.pid} for {seconds:g} s")
        clocks = ThreadClocks(watched.pid)
        begun_ns = time.monotonic_ns()
        left_s = seconds
        while left_s > 0 and not running.over and not interrupted.wait(min(_LOOK_S, left_s)):
            placement.follow()
            left_s = seconds - (time.monotonic_ns() - begun_ns) / NS_PER_S
        duration_ns = time.monotonic_ns() - begun_ns
        clocks.end()
        alive = frozenset(threads_of(watched.pid))
        during += _reading(watched.pid)
        running.stop()
        run = running.finish()
        due = watched.rate_hz * duration_ns / NS_PER_S
        run = run.without_first(_before(max(map(len, run.sequences)), overdue, due))
        if not run.sequences:
            raise NoStackError("py-spy took no samples")
        unplaced = placement.reason
    notes = tuple(_notes(watched, duration_ns, seconds))
    known = process, run, watched.rate_hz, duration_ns, thread, alive, before, during, unplaced, notes
    return Watched(*known, clocks.running, clocks.in_system)


def _caught_up_s(running: PySpy, rate_hz: int, interrupted: Event) -> float:
    """Wait until the sampler has taken its first stacks and none is overdue; returns the seconds, 0 if that was not seen.

    The first stacks hold the process while py-spy reads symbols: for seconds, where a library is as large as libtorch_cuda. The
    overdue ones are then taken one right after the other, at one place of the program.
    """
    begun_s = time.monotonic()
    interrupted.wait(max(_FIRST_S, _FIRST_STACKS / rate_hz))
    while not running.over and not interrupted.is_set() and time.monotonic() - begun_s < _CATCHING_UP_S:
        if (caught_up := running.caught_up) is None:
            break
        if caught_up:
            return time.monotonic() - begun_s
        interrupted.wait(_SOON_S)
    return 0.0


def _before(looks: int, overdue: float, due: float) -> int:
    """The looks to leave out of all, of which ``overdue`` were due before the watch and ``due`` within.

    py-spy draws the times between them (exponentially distributed), so two standard deviations more than that share.
    """
    share = overdue / (overdue + due or 1.0)
    return math.ceil(looks * share + 2 * math.sqrt(looks * share * (1 - share)))


def limit_s(seconds: float) -> int:
    """The sampler's own limit for a watch: late enough that it is stopped before."""
    return math.ceil(1.5 * seconds + _CATCHING_UP_S) + 5


def _notes(watched: Watch, duration_ns: int, seconds: float) -> Iterator[str]:
    if not runs(watched.pid):
        yield f"the process ended after {duration_ns / NS_PER_S:.1f} s of {seconds:g} s"
    elif duration_ns < 0.99 * seconds * NS_PER_S:
        yield f"stopped after {duration_ns / NS_PER_S:.1f} s of {seconds:g} s"
    if not watched.subprocesses and (count := len([*descendants(watched.pid)])):
        yield f"child processes were not watched: {count} (--subprocesses watches them)"


def _busiest(pid: int, before_ns: Mapping[int, int]) -> int:
    """The Python thread with the most CPU time since then; threads of OpenMP's teams run no Python."""
    after_ns = thread_cpu_ns(pid)
    spent_ns = {each: after_ns[each] - before_ns.get(each, 0) for each in python_threads(pid) if each in after_ns}
    return max(spent_ns, key=lambda thread: (spent_ns[thread], thread == pid), default=pid)


def _load_before(pid: int) -> tuple[Reading, ...]:
    readings = _reading(pid)
    for _ in range(_PIECES):
        time.sleep(_PIECE_S)
        readings += _reading(pid)
    return readings


def _reading(pid: int) -> tuple[Reading, ...]:
    """The clocks now; nothing if the process's cannot be read."""
    spent_ns = cpu_ns(pid)
    return () if spent_ns is None else (Reading(time.monotonic_ns(), spent_ns),)


@contextmanager
def _explained(process: OtherProcess) -> Iterator[None]:
    """Explain a sampler's failure for this process."""
    pid = process.pid
    try:
        yield
    except MeasurementError as error:
        if not runs(pid):
            raise MeasurementError(f"process {pid} ended before it could be watched") from error
        if isinstance(error, NoStackError):
            raise NoStackError(
                "no sample was taken: py-spy reads symbols first, so watch for longer (--duration)"
            ) from error
        examine(pid)
        if isinstance(error, NotPermittedError):
            raise NotPermittedError(f"no permission to watch process {pid}: {permission_remedy(pid)}") from error
        if isinstance(error, NoInterpreterError) and not looks_like_python(pid):
            raise UsageError(f"process {pid} ({process.command}) is not a Python process") from error
        if isinstance(error, NoInterpreterError):
            reason = "one that is static, stripped or not CPython cannot be watched"
            raise NoInterpreterError(f"the interpreter of process {pid} is not known to py-spy: {reason}") from error
        raise
