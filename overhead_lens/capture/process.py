"""A worker process as the recorder sees it: started, asked, given a time limit, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from overhead_lens.errors import MeasurementError, UsageError

_WORKER = Path(__file__).with_name("worker.py")
_LOG_TAIL_BYTES = 4_000


class Worker:
    """One measuring process in a process group of its own.

    Args:
        name: How messages call it.
        log: File that takes what the process prints.
        timeout_s: Limit for one step; a worker that takes longer is ended.
    """

    def __init__(self, name: str, log: Path, timeout_s: float) -> None:
        self.name = name
        self._log = log
        self._timeout_s = timeout_s
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(_WORKER), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        threading.Thread(target=self._read_replies, daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def send(self, step: str, **arguments: Any) -> None:
        """Ask for a step without waiting for it.

        Raises:
            MeasurementError: The worker is gone.
        """
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps({"do": step, **arguments}) + "\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            raise MeasurementError(self._death(step)) from None

    def receive(self, step: str) -> dict[str, Any]:
        """The reply to the step asked for.

        Raises:
            UsageError: The worker says the input is wrong.
            MeasurementError: The step failed, took longer than the limit, or the worker died.
        """
        try:
            line = self._replies.get(timeout=self._timeout_s)
        except queue.Empty:
            self.end()
            message = (
                f"{self.name} did not finish '{step}' within {self._timeout_s:.0f} s and was ended (raise --timeout)"
            )
            raise MeasurementError(message) from None
        if not line:
            raise MeasurementError(self._death(step))
        answer = json.loads(line)
        if "error" in answer:
            kind = UsageError if answer["error"]["kind"] == "usage" else MeasurementError
            raise kind(answer["error"]["message"])
        result: dict[str, Any] = answer["ok"]
        return result

    def ask(self, step: str, **arguments: Any) -> dict[str, Any]:
        """Send a step and wait for its reply."""
        self.send(step, **arguments)
        return self.receive(step)

    def stop_spinning(self) -> dict[str, Any]:
        """End a ``spin`` step; returns its final reply."""
        return self.ask("stop")

    def end(self) -> None:
        """Kill the process and everything it started; safe to call twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read_replies(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in stdout:
                self._replies.put(line)
        self._replies.put("")

    def _death(self, step: str) -> str:
        code = self._process.wait()
        how = f"was killed by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return f"{self.name} {how} during '{step}'{last}"
