"""Records some steps of the running program with torch.profiler."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from overhead_lens.torch_profiler import device_activities, in_main_thread, stderr_into, without_inductor

TRACE = ".kineto.json"

_TRACED_NS = 150_000_000
_LEAST_STEPS, _MOST_STEPS = 3, 50
# A step this long has too many events.
_LONGEST_STEP_NS = 3_000_000_000
# When recording ends whatever the steps do.
_LEAST_S, _PATIENCE = 0.5, 2
_OWN_PROFILER = "the program uses torch.profiler itself"


class StepTrace:
    """torch.profiler over some whole steps.

    Attributes:
        steps: How many are recorded as a whole.
        reason: Why no more are; empty otherwise.
        sees_device: Whether a device is recorded, too.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._log = folder / TRACE, folder / "profiler.log"
        self._profile: Any = None
        self._window: Any = None
        self._cancel_limit: Callable[[], object] = lambda: None
        self._silenced: list[Any] = []
        self._others: Any = None
        self._number = 0
        self.steps = 0
        self.reason = ""
        self.sees_device = False

    def would_see_device(self) -> bool:
        """Whether the program uses a device that the profiler records."""
        torch = sys.modules.get("torch")
        return torch is not None and next(device_activities(torch), None) is not None

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
        activities = [torch.profiler.ProfilerActivity.CPU, *device_activities(torch)]
        self.sees_device = len(activities) > 1
        profile = torch.profiler.profile(activities=activities)
        with stderr_into(self._log), without_inductor():
            profile.__enter__()
        # Not before: it starts as the program's own profilers do, for which it would make way.
        self._profile = profile
        # The steps may end before they have been recorded, and the program go on for long.
        limit_s = _LEAST_S + _PATIENCE * self.steps * step_ns / 1e9
        self._cancel_limit = _later(limit_s, lambda: self._cut("the steps paused while they were recorded"))
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
            with stderr_into(self._log):
                profile.export_chrome_trace(str(self._file))

    def _stop(self) -> Any:
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        self._cancel_limit()
        while self._silenced:
            self._silenced.pop().record_steps = True
        # One that is left after its profiler crashes the process (torch 2.13).
        self.close_window()
        with stderr_into(self._log):
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


def _later(seconds: float, action: Callable[[], object]) -> Callable[[], None]:
    """Make the main thread run something after some time; returns a function that prevents it."""
    prevented = threading.Event()

    def wait() -> None:
        if not prevented.wait(seconds):
            with suppress(Exception):
                in_main_thread(action, prevented.is_set)

    # Without a name it would take the next one that Python gives the program's threads.
    threading.Thread(target=wait, name="overhead-lens", daemon=True).start()
    return prevented.set
