"""A program that a trace is injected into: it does what it reads from stdin, a word a line, and answers in JSON.

Python 3.14 runs a file between two instructions of the main thread (``sys.remote_exec``). Here a signal does: its handler runs the file
whose name stands in ``NAME``.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import torch

NAME = Path(sys.argv[1])
# Python 3.12 and newer warn of a fork beside other threads, torch's among them.
warnings.filterwarnings("ignore", "This process .* is multi-threaded")
__warningregistry__: dict[Any, Any] = {}


def run_file(*_: object) -> None:
    exec(compile(NAME.with_suffix(".py").read_text(), "file", "exec"), {})


def train(steps: int = 1_000) -> str:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(16, 8)
    for _ in range(steps):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    return hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest()


def until(recorded: bool) -> None:
    while torch._C._autograd._profiler_enabled() != recorded:
        torch.ones(8) + 1


def own_profiler(**options: Any) -> torch.profiler.profile:
    torch._lazy_modules.discard("_inductor")  # it would import that, which takes long
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


def profile_meanwhile() -> bool:
    until(recorded=True)
    with own_profiler() as own:
        torch.ones(8) + 1
    return "aten::add" in {event.name for event in own.events()}


def stay_in_regions() -> bool:
    """Regions that are entered while a trace is made, and left after it."""
    until(recorded=True)
    with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
        until(recorded=False)
    return True


class Slow(torch.autograd.Function):
    """Nearly all of its time is inside of a backward pass, in Python."""

    @staticmethod
    def forward(context: Any, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            gradient = gradient + 0
        return gradient * 2


def go_backward() -> bool:
    for recorded in (True, False):
        while torch._C._autograd._profiler_enabled() != recorded:
            Slow.apply(torch.ones(8, requires_grad=True)).sum().backward()
    with own_profiler():
        torch.ones(8) + 1
    return True


def fork() -> Any:
    """What a child says of a profiler, and that it can compute."""
    until(recorded=True)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        kept = torch.autograd.profiler.record_function.__exit__.__qualname__
        said = [torch._C._autograd._profiler_enabled(), float((torch.ones(8) + 1).sum()), kept]
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    said = json.loads(os.read(read, 100))
    os.close(read)
    os.close(write)
    until(recorded=False)
    return said


def profile_for_long() -> None:
    with own_profiler():
        time.sleep(1.5)


def profile_by_schedule() -> None:
    """A profiler that warms up for long before it records."""
    with own_profiler(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)) as own:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            torch.ones(8) + 1
        own.step()
        torch.ones(8) + 1
        own.step()


def train_with_disabled_profiler() -> None:
    with torch.autograd.profiler.profile(enabled=False):
        train()


def wait_in_c() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    time.sleep(1.5)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])


def has_inductor() -> bool:
    return "torch._inductor" in sys.modules


def state() -> dict[str, Any]:
    """What an injected trace must not change."""
    return {
        "globals": sorted(globals()),
        "threads": [each.name for each in threading.enumerate()],
        "hooks": len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks),
        "profile": torch.autograd.profiler.profile._prepare_trace.__qualname__,
        "region": torch.autograd.profiler.record_function.__exit__.__qualname__,
        "profiler": torch._C._autograd._profiler_enabled(),
        "loudness": os.environ.get("KINETO_LOG_LEVEL"),
        "files": len(os.listdir("/proc/self/fd")),
    }


signal.signal(signal.SIGUSR1, run_file)
for line in sys.stdin:
    print(json.dumps(globals()[line.strip()]()), flush=True)
if len(sys.argv) > 2:
    train(int(sys.argv[2]))
