"""How torch.profiler is started and ended. Runs in measured processes: needs torch and the standard library only.

``studies/attach/inject.py`` sends the text of this file to processes that have no such package.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

_DEVICES = ("CUDA", "XPU", "MTIA")
_LOOK_S = 0.01
_Pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


@contextmanager
def without_inductor() -> Iterator[None]:
    """Start a ``torch.profiler.profile`` in here, and it sees Inductor only if something has imported it.

    Otherwise the profiler's own ``hasattr(torch, "_inductor")`` imports it: 800 modules in 2 s (torch/profiler/profiler.py).
    """
    module: Any = sys.modules.get("torch.profiler.profiler")
    torch = getattr(module, "torch", None)
    if torch is None:  # a torch that keeps it elsewhere
        yield
        return
    module.torch = SimpleNamespace(**vars(torch))
    try:
        yield
    finally:
        module.torch = torch


@contextmanager
def profiling(**options: Any) -> Iterator[Any]:
    """A ``torch.profiler.profile`` with these options, entered."""
    profile = sys.modules["torch"].profiler.profile(**options)
    with without_inductor():
        profile.__enter__()
    try:
        yield profile
    finally:
        profile.__exit__(*sys.exc_info())


@contextmanager
def stderr_into(log: Path) -> Iterator[None]:
    """Send stderr, where libkineto reports each recording, to a file, or nowhere, unless no file can be opened."""
    with ExitStack() as undoing:
        with suppress(OSError):
            before = os.dup(2)
            undoing.callback(os.close, before)
            try:
                file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError:
                file = os.open(os.devnull, os.O_WRONLY)
            undoing.callback(os.close, file)
            undoing.callback(os.dup2, before, 2)
            os.dup2(file, 2)
        yield


def device_activities(torch: Any) -> Iterator[Any]:
    """The profiler's activities of the devices that the program uses; AMD's are ``cuda`` as well.

    A profiler that was built without a device's activity fails within operators if that is requested.
    """
    for activity in torch.profiler.supported_activities():
        device = getattr(torch, activity.name.lower(), None) if activity.name in _DEVICES else None
        if device is not None and device.is_initialized():
            yield activity


def is_in_backward(frame: FrameType | None) -> bool:
    """Whether a frame is within a backward pass, after which autograd restores what was on before it, profilers included."""
    while frame is not None and frame.f_code.co_name != "_engine_run_backward":
        frame = frame.f_back
    return frame is not None


def in_main_thread(
    action: Callable[[], object], is_over: Callable[[], bool], is_busy: Callable[[], bool] = lambda: False
) -> None:
    """Have the main thread do something as soon as it can, unless ``is_over`` before; raises what that raises.

    It does so between two of its instructions (CPython's ``Py_AddPendingCall``), but not within a backward pass: see
    ``is_in_backward``.
    """
    done, looked = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def act(_: object) -> int:
        if not (done.is_set() or is_over() or is_busy() or is_in_backward(sys._getframe())):  # noqa: SLF001
            done.set()
            try:
                action()
            except BaseException as error:  # nothing may reach the program
                raised.append(error)
        looked.set()
        return 0

    pending = _Pending(act)
    looks = 0
    while not (done.is_set() or is_over()):
        looked.clear()
        is_requested = ctypes.pythonapi.Py_AddPendingCall(pending, None) == 0  # else too many calls are pending
        while is_requested and not looked.wait(_LOOK_S):
            pass
        looks += 1
        # A look requested within a backward pass comes at its end, still within; the next, requested at once, comes later.
        # Only then there is a pause: a backward pass that runs Python would do little else than look.
        if looks % 2 == 0:
            done.wait(_LOOK_S)
    if raised:
        raise raised[0]
