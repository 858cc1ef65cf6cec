"""A program on a terminal of its own, and what a user types there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from overhead_lens.terminal.refine import NEEDED
from tests.worker.warm import WORKERS, Forked, fork

# The terminal becomes the controlling one, so that it turns a typed Ctrl-C into a signal; who is forked has a session already.
_CONTROL = """
import fcntl, os, sys, termios
if os.getsid(0) != os.getpid():
    os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
"""
# The place of the local modes in what termios gets.
_LOCAL = 3
# What a profile imports, and its workers.
_PROFILE = (*WORKERS, "overhead_lens.__main__", "overhead_lens.recorder.single", "tests.recorder.effort", *NEEDED)
_Process = subprocess.Popen[bytes] | Forked
CTRL_A, CTRL_C, CTRL_E, TAB, ENTER = "\x01", "\x03", "\x05", "\t", "\r"


class Terminal:
    """The program's terminal, seen from the keyboard and the screen."""

    def __init__(self, number: int, process: _Process) -> None:
        self._number = number
        self.process = process
        self.text = ""
        self._given = 0

    def type(self, keys: str) -> None:
        os.write(self._number, keys.encode())

    def wait_for(self, text: str, timeout_s: float = 180) -> str:
        """Read until ``text`` has come since what the last wait gave; returns all up to its end."""
        end = time.monotonic() + timeout_s
        while text not in self.text[self._given :]:
            assert time.monotonic() < end, f"no {text!r} in {self.text[self._given :]!r}"
            assert self._read(0.5), f"it ended without {text!r}: {self.text[self._given :]!r}"
        begin, self._given = self._given, self.text.index(text, self._given) + len(text)
        return self.text[begin : self._given]

    def pause(self, seconds: float) -> None:
        """Let the program go on, and read what it writes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._read(0.01):
            pass

    def ended(self, timeout_s: float = 180) -> int:
        """Read to the end; the exit code."""
        end = time.monotonic() + timeout_s
        while self._read(0.5):
            assert time.monotonic() < end, self.text
        return self.process.wait(timeout_s)

    def _read(self, timeout_s: float) -> bool:
        """Read what there is; whether the program still has the terminal."""
        if not select.select([self._number], [], [], timeout_s)[0]:
            return True
        try:
            read = os.read(self._number, 65_536)
        except OSError:
            return False
        self.text += read.decode(errors="replace")
        return bool(read)


@contextlib.contextmanager
def terminal(
    command: Sequence[str], cwd: Path, env: Mapping[str, str] = {}, size: tuple[int, int] = (24, 80)
) -> Iterator[Terminal]:
    """``command`` on a terminal of so many rows and columns."""

    def start(theirs: IO[Any], env: Mapping[str, str]) -> _Process:
        words = [sys.executable, "-c", f"{_CONTROL}os.execvp(sys.argv[1], sys.argv[1:])", *command]
        return subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env)

    with _with_terminal(start, env, size) as seen:
        yield seen


@contextlib.contextmanager
def forked_terminal(
    code: str,
    words: Sequence[object],
    cwd: Path,
    env: Mapping[str, str] = {},
    size: tuple[int, int] = (24, 80),
    modules: tuple[str, ...] = _PROFILE,
) -> Iterator[Terminal]:
    """The same for Python code and its arguments, where modules are imported."""

    def start(theirs: IO[Any], env: Mapping[str, str]) -> _Process:
        return fork(["-c", _CONTROL + code, *words], [theirs] * 3, cwd, env, modules)

    with _with_terminal(start, env, size) as seen:
        yield seen


@contextlib.contextmanager
def _with_terminal(
    start: Callable[[IO[Any], Mapping[str, str]], _Process], env: Mapping[str, str], size: tuple[int, int]
) -> Iterator[Terminal]:
    # A test runner says how wide its own terminal is.
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    # Else a typed Ctrl-C throws away what was written just before and is not read yet.
    modes = termios.tcgetattr(theirs)
    modes[_LOCAL] |= termios.NOFLSH
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    with open(theirs, "wb", buffering=0) as stream:
        process = start(stream, {**inherited, "TERM": "xterm-256color", **env})
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
