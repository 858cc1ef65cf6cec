"""Is a thread that waits known to wait? Blocks in every call of ``laboratory/blocked.py``, on every Python that is named.

    python -m scripts.validation.blocking [--python COMMAND ...] [--only WORD ...]

A COMMAND is an interpreter, ``~/.pyenv/versions/3.13.0/bin/python``, or one below another root, ``/tmp/unstable:python3.14``
(which needs root, and that root's /proc). Calls of torch are made where torch is installed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.readers.py_spy.threads import SampledThread, read_threads
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.samplers.sampler import Watch
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.laboratory.blocked import CASES, Case

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

CLAIM = Claim(
    claim="blocking",
    question="Is a thread that waits known to wait?",
    method=(
        "A process of each Python blocks in one call, in its main thread and in another one. "
        "py-spy takes stacks of it for a second, which are classified as `attach` does. "
        "A row has the share of stacks that are `wait` with the right part, of the worse of the two threads."
    ),
    command="python -m scripts.validation.blocking",
    columns=(
        Column("call"),
        Column("part"),
        *(Column(f"Python {each}", "share") for each in PYTHONS),
        Column("verdict"),
    ),
)

BLOCKED = Path(__file__).with_name("laboratory") / "blocked.py"

# Of a thread's stacks: one that looks after a child wakes up many times a second.
_LEAST = 0.9

_RATE_HZ = 25
_WATCHED_S = 1
_SETTLED_S = 0.3


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter.

    Attributes:
        command: What starts it.
        script: The path of the calls as it sees it.
        version: ``3.13``.
        has_torch: Whether it can make torch's calls.
    """

    command: tuple[str, ...]
    script: str
    version: str
    has_torch: bool


def main() -> None:
    """Block in every call, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--python", nargs="+", metavar="COMMAND", default=[sys.executable], help="default: this one")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="calls whose names hold one of these; default: all")
    options = parser.parse_args()
    pythons = [python_of(each) for each in options.python]
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    for case in CASES.values():
        if not options.only or any(word in case.name for word in options.only):
            rows.append(row_of(case, pythons))
            print_row(rows[-1])
    verdicts = [row[-1] for row in rows if row[-1]]
    notes = [f"{verdicts.count('right')} of {len(verdicts)} are right."]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def python_of(text: str) -> Python:
    """The interpreter that ``text`` names.

    Raises:
        subprocess.CalledProcessError: There is none.
    """
    root, _, executable = text.rpartition(":")
    command, script = [str(Path(executable).expanduser())], str(BLOCKED)
    if root:
        command, script = ["chroot", root, executable], f"/tmp/{BLOCKED.name}"  # noqa: S108  (of that root)
        shutil.copyfile(BLOCKED, f"{root}{script}")
    asked = "import sys, importlib.util as u; print('%d.%d' % sys.version_info[:2], u.find_spec('torch') is not None)"
    said = subprocess.run([*command, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    return Python(tuple(command), script, said[0], has_torch=said[1] == "True")


def row_of(case: Case, pythons: Sequence[Python]) -> list[Cell]:
    """The shares of one call on each Python, and the verdict."""
    shares = {python.version: share_of(case, python) for python in pythons if python.has_torch or not case.torch}
    known = [share for share in shares.values() if share is not None]
    verdict = "right" if known and min(known) >= _LEAST else "wrong" if known else None
    return [case.name, case.part, *(shares.get(version) for version in PYTHONS), verdict]


def share_of(case: Case, python: Python) -> float | None:
    """The share of stacks that wait as they should, of the worse of the threads that make a call."""
    classifier = default_classifier()
    threads = {thread.name: thread for thread in watched(case, python)}
    shares = []
    for name in ("MainThread", "other")[: 1 + case.threads]:
        stacks = threads[name].stacks if name in threads else ()
        right = sum(each.count for each in stacks if str(classifier.classify(each).attribution) == f"wait/{case.part}")
        shares.append(right / max(1, sum(each.count for each in stacks)))
    return round(min(shares), 4)


def watched(case: Case, python: Python) -> list[SampledThread]:
    """The threads of a process that blocks in a call, as py-spy sees them."""
    with blocking(case, python) as pid, tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        watch = Watch(pid, _RATE_HZ, _WATCHED_S, Path(folder, "stacks"))
        with PySpy().start(watch) as sampler:
            return read_threads(sampler.finish().folded.splitlines(), pid)


@contextmanager
def blocking(case: Case, python: Python) -> Iterator[int]:
    """A process that blocks in a call, and all that it started; killed at the end.

    Raises:
        RuntimeError: It ended before it blocked.
    """
    command = [*python.command, python.script, case.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"{' '.join(command)} ended")
            time.sleep(_SETTLED_S)
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
