"""Programs that are watched while they run, started without the tool; a step is the same in each.

python -m scripts.validation.attached train [STEPS]   until stdin ends, or so many; prints steps and a digest of the weights
python -m scripts.validation.attached steady          calls ``step`` for ever, as a profile of it does
python -m scripts.validation.attached threads         trains beside four other threads; prints time and steps five times a second
"""

from __future__ import annotations

import contextlib
import hashlib
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count

import torch

ROWS, WIDTH = 16, 32
LEFT, RIGHT = torch.ones(ROWS, WIDTH), torch.ones(WIDTH, WIDTH)
PRINT_S = 0.2


def trainer() -> tuple[torch.nn.Module, Callable[[], None]]:
    """A model with fixed weights, and one step of its training."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(ROWS, WIDTH)

    def train() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return model, train


def step(left: torch.Tensor = LEFT, right: torch.Tensor = RIGHT) -> torch.Tensor:
    """A few operators of the size that overhead is of."""
    return torch.relu(left @ right + 1).sum(dim=1)


def digest(model: torch.nn.Module) -> str:
    """Of every bit of the weights."""
    content = b"".join(bytes(parameter.detach().numpy().data) for parameter in model.parameters())
    return hashlib.sha256(content).hexdigest()


def train_steps(steps: int | None) -> None:
    """Train so many steps, or until stdin ends."""
    model, train = trainer()
    done = 0
    while done < steps if steps is not None else not select.select([sys.stdin], [], [], 0)[0]:
        train()
        done += 1
    print(done, digest(model), flush=True)


def call_steadily() -> None:
    """Call ``step`` for ever, on one thread as a profile does."""
    while True:
        step()


def train_beside_threads() -> None:
    """Train while two threads sleep and two compute now and then."""

    def compute() -> None:
        while True:
            sum(range(20_000))
            time.sleep(0.005)

    for target, arguments in ((time.sleep, (1e6,)), (time.sleep, (1e6,)), (compute, ()), (compute, ())):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    _, train = trainer()
    printed_s = 0.0
    for done in count():
        now_s = time.monotonic()
        if now_s - printed_s >= PRINT_S:
            print(now_s, done, flush=True)
            printed_s = now_s
        train()


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """One of these programs while the block runs, past its imports."""
    command = [sys.executable, "-m", "scripts.validation.attached", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    """Say that the imports are over, then run."""
    torch.set_num_threads(1)
    kind, *steps = sys.argv[1:]
    print("ready", flush=True)
    if kind == "train":
        train_steps(int(steps[0]) if steps else None)
    elif kind == "steady":
        call_steadily()
    else:
        train_beside_threads()


if __name__ == "__main__":
    main()
