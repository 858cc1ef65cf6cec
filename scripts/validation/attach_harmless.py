"""Does watching a process change what it computes? Attach to a training loop many times, and kill some of the watchers.

    python -m scripts.validation.attach_harmless [--attaches 100] [--killed 20]

The killed ones end by SIGKILL while they take stacks: by turns the command, and py-spy under it. Then as many steps are trained
undisturbed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from scripts.results import Claim, Column, print_heading, print_row, write_result
from scripts.validation.attached import started

CLAIM = Claim(
    claim="attach-harmless",
    question="Does watching a process change what it computes, or stop it?",
    method=(
        "A training loop is watched many times in a row. "
        "Some of the watchers are killed by SIGKILL in the middle, by turns the command and py-spy. "
        "As many steps are then trained undisturbed, and every bit of the weights is compared."
    ),
    command="python -m scripts.validation.attach_harmless",
    columns=(
        Column("attached"),
        Column("of them killed"),
        Column("budgets"),
        Column("refused"),
        Column("steps"),
        Column("traced after"),
        Column("weights bit-identical"),
    ),
)

SEED = 5
SECONDS = 2.0


def main() -> None:
    """Attach, compare, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--attaches", type=int, default=100)
    parser.add_argument("--killed", type=int, default=20)
    options = parser.parse_args()
    choice = random.Random(SEED)
    killed = set(choice.sample(range(options.attaches), options.killed))
    ends: Counter[str] = Counter()
    with started("train") as loop, tempfile.TemporaryDirectory() as folder:
        for number in range(options.attaches):
            by_turns = number in killed and ("command", "py-spy")[sorted(killed).index(number) % 2]
            ends[attach(loop.pid, Path(folder, str(number)), by_turns or None)] += 1
            if loop.poll() is not None:
                raise SystemExit("the loop has ended")
        traced = "TracerPid:\t0" not in Path(f"/proc/{loop.pid}/status").read_text(encoding="utf-8")
        steps, digest = ended(loop)
    with started("train", str(steps)) as undisturbed:
        same = ended(undisturbed) == (steps, digest)
    row = (options.attaches, options.killed, ends["budget"], ends["refused"], steps, traced, same)
    print_heading(CLAIM.columns)
    print_row(row)
    asked = f"{CLAIM.command} --attaches {options.attaches} --killed {options.killed}"
    write_result(options.result, replace(CLAIM, command=asked).answered([row]))


def attach(pid: int, output: Path, kill: str | None) -> str:
    """Watch a process; returns ``budget``, ``refused`` or ``killed``."""
    command = [
        sys.executable,
        "-m",
        "overhead_lens",
        "attach",
        str(pid),
        "--duration",
        f"{SECONDS:g}",
        "-o",
        str(output),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as watcher:
        if kill is not None:
            sampler = sampler_of(watcher)
            time.sleep(0.7)
            with contextlib.suppress(ProcessLookupError):
                os.kill(watcher.pid if kill == "command" else sampler, signal.SIGKILL)
            watcher.communicate()
            while Path(f"/proc/{sampler}").exists():
                time.sleep(0.05)
            return "killed"
        _, complaint = watcher.communicate()
    if watcher.returncode:
        print(complaint.strip(), file=sys.stderr)
    return "refused" if watcher.returncode else "budget"


def sampler_of(watcher: subprocess.Popen[str]) -> int:
    """PID of the py-spy that a command starts."""
    children = Path(f"/proc/{watcher.pid}/task/{watcher.pid}/children")
    while watcher.poll() is None:
        for child in map(int, children.read_text(encoding="utf-8").split()):
            if b"record" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return child
        time.sleep(0.02)
    raise SystemExit("a watcher ended before it watched")


def ended(loop: subprocess.Popen[str]) -> tuple[int, str]:
    """End a loop; its steps and the digest of its weights."""
    said, _ = loop.communicate("\n", timeout=3600)
    steps, digest = said.split()
    return int(steps), digest


if __name__ == "__main__":
    main()
