"""Records some steps of the running program with torch.profiler."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from overhead_lens.torch_profiler import without_inductor

TRACE = ".kineto.json"

_DEVICES = ("CUDA", "XPU", "MTIA")

_TRACED_NS = 150_000_000
_LEAST_STEPS, _MOST_STEPS = 3, 50
# A step this long has too many events.
_LONGEST_STEP_NS = 3_000_000_000
# When recording ends whatever the steps do.
_LEAST_S, _PATIENCE = 0.5, 2
_AGAIN_S = 0.01
_OWN_PROFILER = "the program uses torch.profiler itself"


class StepTrace:
    """torch.profiler over some whole steps.

    Attributes:
        steps: How many are recorded as a whole.
        reason: Why no more are; empty otherwise.
        sees_device: Whether a device is recorded, too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._profile: Any = None
        self._window: Any = None
        self._limit = threading.Timer(0, self._stop)
        self._silenced: list[Any] = []
        self._others: Any = None
        self._number = 0
        self.steps = 0
        self.reason = ""
        self.sees_device = False

    def would_see_device(self) -> bool:
        """Whether the program uses a device that the profiler records."""
        torch = sys.modules.get("torch")
        return torch is not None and next(_device_activities(torch), None) is not None

    def begin(self, step_ns: float) -> bool:
        """Start recording, unless torch is not there, the program profiles itself, or its steps are too long."""
        torch, self.reason = sys.modules.get("torch"), ""
        if torch is None:
            self.reason = "the program does not import torch"
        elif torch._C._autograd._profiler_enabled() or self._is_other_prepared():
            self.reason = _OWN_PROFILER
        elif step_ns > _LONGEST_STEP_NS:
            self.reason = "a step takes too long to be recorded"
        if self.reason:
            return False
        assert torch is not None
        self.steps = int(min(_MOST_STEPS, max(_LEAST_STEPS, _TRACED_NS / max(step_ns, 1.0))))
        activities = [torch.profiler.ProfilerActivity.CPU, *_device_activities(torch)]
        self.sees_device = len(activities) > 1
        profile = torch.profiler.profile(activities=activities)
        with self._quiet(), without_inductor():
            profile.__enter__()
        # Not before: it starts as the program's own profilers do, for which it would make way.
        self._profile = profile
        # The steps may end before they have been recorded, and the program go on for long.
        self._limit = threading.Timer(
            _LEAST_S + _PATIENCE * self.steps * step_ns / 1e9, _in_main_thread, [self._paused]
        )
        self._limit.daemon = True
        self._limit.start()
        return True

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Record a step's window."""
        self._number = number
        if self._profile is not None:
            self._window = sys.modules["torch"].profiler.record_function(f"ProfilerStep#{number}")
            self._window.__enter__()
        try:
            yield
        finally:
            self.close_window()

    def end(self) -> None:
        """Stop recording and write the trace, if that has not been done."""
        profile = self._stop()
        if profile is not None:
            with self._quiet():
                profile.export_chrome_trace(str(self._folder / TRACE))

    def _stop(self) -> Any:
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        self._limit.cancel()
        while self._silenced:
            self._silenced.pop().record_steps = True
        # One that is left after its profiler crashes the process (torch 2.13).
        self.close_window()
        with self._quiet():
            try:
                profile.__exit__(None, None, None)
            except Exception:
                # It waits for the device first, which may have failed; left on, it would crash the process.
                sys.modules["torch"].autograd._disable_profiler()
                raise
        return profile

    def close_window(self) -> None:
        """End the recorded step's window, if it has not ended."""
        window, self._window = self._window, None
        if window is not None:
            window.__exit__(None, None, None)

    def _paused(self) -> None:
        self._cut("the steps paused while they were recorded")

    def abandon(self) -> None:
        """End where the program enters its loop again after it left it within a step, whose window reaches to here."""
        self._cut("the program left its loop within a recorded step")

    def _cut(self, reason: str) -> None:
        """End within a step."""
        if self._profile is not None:
            self.steps, self.reason = self._number, reason
            self.end()

    def make_way(self, profile: object) -> None:
        """End before the program starts or prepares a profiler of its own: there can be only one."""
        self._others = weakref.ref(profile)
        self._cut(_OWN_PROFILER)

    def _is_other_prepared(self) -> bool:
        """Whether a profiler of the program warms up: it records as soon as its schedule says so."""
        other = self._others and self._others()
        return getattr(other, "entered", False) and getattr(other, "kineto_results", other) is None

    def silence(self, profile: Any) -> None:
        """Keep the steps' windows of the program's own profiler, which does not record now, out of this recording."""
        if self._profile is not None and getattr(profile, "record_steps", False):
            profile.record_steps = False
            self._silenced.append(profile)

    def forget(self) -> None:
        """In a forked child: let go of the recording, which would go on for ever."""
        profile, self._profile = self._profile, None
        if profile is not None:
            with suppress(Exception):
                self.close_window()
                sys.modules["torch"].autograd._disable_profiler()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Keep the messages of libkineto off the program's stderr."""
        before = os.dup(2)
        try:
            log = os.open(self._folder / "profiler.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError:
            log = os.open(os.devnull, os.O_WRONLY)
        os.dup2(log, 2)
        os.close(log)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)


def _device_activities(torch: Any) -> Iterator[Any]:
    """The profiler's activities of the devices that the program uses; AMD's are ``cuda`` as well.

    A profiler that was built without a device's activity fails within operators if that is requested.
    """
    for activity in torch.profiler.supported_activities():
        device = getattr(torch, activity.name.lower(), None) if activity.name in _DEVICES else None
        if device is not None and device.is_initialized():
            yield activity


_Pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_callbacks: list[object] = []


def _in_main_thread(action: Callable[[], object]) -> None:
    """Make the main thread run something soon, between two of its instructions (CPython's ``Py_AddPendingCall``).

    Not within a backward pass, after which the autograd engine restores what was on before it, profilers included.
    """

    def act(_: object) -> int:
        with suppress(Exception):
            if _is_in_backward(sys._getframe()):
                again = threading.Timer(_AGAIN_S, _in_main_thread, [action])
                again.daemon = True
                again.start()
            else:
                action()
        return 0

    pending = _Pending(act)
    _callbacks.append(pending)
    ctypes.pythonapi.Py_AddPendingCall(pending, None)


def _is_in_backward(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_name != "_engine_run_backward":
        frame = frame.f_back
    return frame is not None
