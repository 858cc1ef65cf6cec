"""Runs inside a process that was not prepared: its main thread records itself with torch.profiler for a moment.

``studies/attach/inject.py`` sends the texts of ``torch_profiler.py`` and this file, and a call of ``begin``. They have their own
namespace, need the standard library and the program's torch, and put back what they change. The two sides share a folder:

    lock         locked (flock(2)) by the sender as long as it lives; whoever finds it free removes the folder
    answer       "starting", "recording", "finished", or why there is no trace
    trace.json   the trace, whole
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Their text comes before this one.
    from overhead_lens.torch_profiler import device_activities, in_main_thread, without_inductor

_LOOK_S, _LAST_S = 0.01, 30.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# A step, and one that recording ends in: as long, since it is renamed in place.
_STEP, _CUT_STEP = "ProfilerStep#", "cut-off step "
_CHUNK_BYTES = 1 << 20
# Kineto prints to stderr when it begins and ends; it reads this once, when it is first used.
_LOUDNESS, _SILENT = "KINETO_LOG_LEVEL", "99"


def begin(folder: str, seconds: float, most_steps: int, most_bytes: int) -> None:
    """Start recording in this thread, and a thread that ends it.

    Args:
        folder: Where the other side waits.
        seconds: When recording ends, whatever happens.
        most_steps: Calls of optimizers after which it ends.
        most_bytes: Growth of this process's memory after which it ends.
    """
    shared = _Folder(folder)
    if shared.is_abandoned():
        shared.remove()
        return
    shared.answer("starting")
    torch = sys.modules.get("torch")
    if torch is None:
        shared.answer("it has not imported torch")
    elif torch._C._autograd._profiler_enabled() or _is_other_prepared(torch):
        shared.answer("it uses torch.profiler itself")
    else:
        limits = (_Recording(torch), shared, seconds, most_steps, most_bytes)
        threading.Thread(target=_record, args=limits, name="overhead-lens", daemon=True).start()


def _is_other_prepared(torch: Any) -> bool:
    """Whether a profiler of the program warms up: it records as soon as its schedule says so."""
    kind = torch.autograd.profiler.profile
    # An object refers to its type; to look at every object from here would take five times as long.
    profiles: list[Any] = [each for each in gc.get_referrers(kind) if type(each) is kind]
    # A profile that is not enabled has no attribute `entered`.
    return any(profile.enabled and profile.entered and profile.kineto_results is None for profile in profiles)


class _Folder:
    """The folder that both sides share."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.trace = self._path / "trace.json"

    def is_abandoned(self) -> bool:
        """Whether the other side is gone."""
        try:
            with (self._path / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def answer(self, text: str) -> None:
        """Write the answer, whole or not at all."""
        with contextlib.suppress(OSError):
            part = self._path / "answer.part"
            part.write_text(text, encoding="utf-8")
            part.replace(self._path / "answer")

    def remove(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


class _Recording:
    """torch.profiler at work in the main thread.

    Attributes:
        is_busy: Whether the main thread is entering or leaving a region, in the middle of which nothing can be stopped.
        full: Whether it has as many steps as are requested.
        stopped: Set when it has ended.
        written: Set when nothing more is done with the trace.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._profile: Any = None
        self._ended: Any = None
        self._step: Any = None
        self._steps, self._is_cut = 0, False
        self._regions: list[Any] = []
        self._restore: list[Callable[[], object]] = []
        self.is_busy = self.full = False
        self.stopped, self.written = threading.Event(), threading.Event()

    def start(self, most_steps: int) -> None:
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU, *device_activities(self._torch)]
        loud = os.environ.get(_LOUDNESS)
        os.environ[_LOUDNESS] = _SILENT
        try:
            profile = profiler.profile(activities=activities)
            with without_inductor():
                profile.start()
        finally:
            del os.environ[_LOUDNESS]
            if loud is not None:
                os.environ[_LOUDNESS] = loud
        self._profile = profile
        self._note_regions()
        self._mark_steps(most_steps)
        self._make_way()
        atexit.register(self._leave)
        self._restore.append(lambda: atexit.unregister(self._leave))
        os.register_at_fork(after_in_child=self._leave_child)

    def stop(self) -> None:
        """Stop recording, in the main thread; once."""
        profile, self._profile = self._profile, None
        if profile is None:
            return
        self._is_cut = self._step is not None
        try:
            with contextlib.suppress(Exception):
                self._put_back()
                self._close_regions()
            profile.stop()
        finally:
            self._ended = profile
            self.stopped.set()

    def _put_back(self) -> None:
        while self._restore:
            self._restore.pop()()

    def write(self, path: Path) -> None:
        """Write the trace, and forget it."""
        profile, self._ended = self._ended, None
        profile.export_chrome_trace(str(path))
        if self._is_cut:
            self._rename_cut_step(path)

    def _rename_cut_step(self, path: Path) -> None:
        """Rename the last step wherever a trace, which may be large, names it: in chunks, so that no thread stands still."""
        step, cut_step = (f'"{name}{self._steps - 1}"'.encode() for name in (_STEP, _CUT_STEP))
        with path.open("r+b") as file:
            rest = b""
            while chunk := file.read(_CHUNK_BYTES):
                text, end = rest + chunk, file.tell()
                at = text.find(step)
                while at >= 0:
                    file.seek(end - len(text) + at)
                    file.write(cut_step)
                    at = text.find(step, at + len(step))
                file.seek(end)
                rest = text[1 - len(step) :]

    def _leave(self) -> None:
        """The program ends: the trace is written before."""
        self.stop()
        self.written.wait(_LAST_S)

    def _note_regions(self) -> None:
        """Know the program's regions that are open: one that outlives its profiler crashes torch 2.13."""
        kind, regions = self._torch.autograd.profiler.record_function, self._regions
        enter, leave = kind.__enter__, kind.__exit__

        def entered(region: Any) -> Any:
            if not _is_main():
                return enter(region)
            self.is_busy = True
            try:
                entering = enter(region)
                regions.append(region)
                return entering
            finally:
                self.is_busy = False

        def left(region: Any, *error: Any) -> Any:
            if not _is_main():
                return leave(region, *error)
            self.is_busy = True
            try:
                regions[:] = [each for each in regions if each is not region]
                return leave(region, *error)
            finally:
                self.is_busy = False

        kind.__enter__, kind.__exit__ = entered, left
        self._restore.append(lambda: setattr(kind, "__enter__", enter))
        self._restore.append(lambda: setattr(kind, "__exit__", leave))

    def _close_regions(self) -> None:
        """Leave what is open now, so that the program leaves it without effect."""
        while self._regions:
            region = self._regions.pop()
            region.__exit__(None, None, None)
            region.run_callbacks_on_exit = False

    def _mark_steps(self, most: int) -> None:
        """A window from one call of an optimizer to the next."""
        optimizers = sys.modules.get("torch.optim.optimizer")
        register = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if register is None:
            return

        def mark(*_: object) -> None:
            if self._profile is None or not _is_main():
                return
            self._close_step()
            self.full = self._steps == most
            if not self.full:
                self._step = self._torch.profiler.record_function(f"{_STEP}{self._steps}")
                self._step.__enter__()
                self._steps += 1

        self._restore.append(register(mark).remove)

    def _close_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def _make_way(self) -> None:
        """End before the program starts a profiler of its own: there can be only one."""
        owner = self._torch.autograd.profiler.profile
        own = owner._prepare_trace

        def prepare(profile: Any) -> Any:
            if _is_main():
                self.stop()
            return own(profile)

        owner._prepare_trace = prepare
        self._restore.append(lambda: setattr(owner, "_prepare_trace", own))

    def _leave_child(self) -> None:
        """A child of the program would record for ever."""
        if self._profile is not None:
            self._profile = None
            self._regions.clear()
            with contextlib.suppress(Exception):
                self._put_back()
                self._torch.autograd._disable_profiler()


def _record(recording: _Recording, shared: _Folder, seconds: float, most_steps: int, most_bytes: int) -> None:
    """Have the main thread begin and end a recording, and write the trace; in a thread of its own."""

    def is_busy() -> bool:
        return recording.is_busy

    try:
        in_main_thread(lambda: recording.start(most_steps), shared.is_abandoned, is_busy)
        shared.answer("recording")
        deadline, memory = time.monotonic() + seconds, _resident_bytes() + most_bytes
        while not (
            recording.stopped.wait(_LOOK_S)
            or recording.full
            or time.monotonic() > deadline
            or _resident_bytes() > memory
            or shared.is_abandoned()
        ):
            pass
        in_main_thread(recording.stop, recording.stopped.is_set, is_busy)
        if not shared.is_abandoned():
            recording.write(shared.trace)
            shared.answer("finished")
    except BaseException as error:  # nothing may reach the program
        in_main_thread(recording.stop, lambda: False, is_busy)
        shared.answer(f"torch.profiler fails: {error!r}")
    recording.written.set()
    if shared.is_abandoned():
        shared.remove()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
