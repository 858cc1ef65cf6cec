"""Runs measuring processes: requests operations, limits their time, ends them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.operations import Operation, Reply

IN_WORKER = "OVERHEAD_LENS_WORKER"
"""Environment variable of measuring processes."""

_WORKER = Path(__file__).parent.parent / "worker" / "serve.py"
_LOG_TAIL_BYTES = 4_000

# Time between the death of a worker and the end of its output, in either order.
_LAST_WORDS_S = 2.0

_Job = TypeVar("_Job")


class Process(ABC):
    """A measuring process, which does one operation after the other."""

    name: str

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id."""

    @abstractmethod
    def send(self, operation: Operation[Any], **arguments: Any) -> None:
        """Request an operation without waiting for it.

        Raises:
            MeasurementError: The process is gone.
        """

    @abstractmethod
    def next_reply(self, operation: Operation[Any]) -> str:
        """The next reply, a line of JSON; see ``worker/serve.py``.

        Raises:
            MeasurementError: It took longer than the limit, or the process is gone.
        """

    def receive(self, operation: Operation[Reply]) -> Reply:
        """Wait for the reply to an operation.

        Raises:
            UsageError: The process reports wrong input.
            MeasurementError: It failed, took longer than the limit, replied something else, or died.
        """
        answer = json.loads(self.next_reply(operation))
        if "error" in answer:
            kind = UsageError if answer["error"]["kind"] == "usage" else MeasurementError
            raise kind(answer["error"]["message"])
        try:
            return msgspec.convert(answer["ok"], operation.reply)
        except msgspec.ValidationError as error:
            raise MeasurementError(
                f"{self.name} replied to '{operation.title}' with something else: {error}"
            ) from error

    def ask(self, operation: Operation[Reply], **arguments: Any) -> Reply:
        """Send an operation and wait for its reply."""
        self.send(operation, **arguments)
        return self.receive(operation)


class Worker(Process):
    """A fresh process in a process group of its own.

    Args:
        variables: Environment variables beside those of this process.
        launcher: Command line that the worker's own is appended to, as valgrind's.

    Raises:
        MeasurementError: It cannot be started.
    """

    def __init__(
        self,
        name: str,
        log: Path,
        timeout_s: float,
        python: str = sys.executable,
        variables: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._log = log
        self._timeout_s = timeout_s
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_stopped = False
        with log.open("wb") as output:
            try:
                self._process = _start(
                    [*launcher, python, str(_WORKER), str(os.getpid())],
                    {**os.environ, **(variables or {}), IN_WORKER: "1"},
                    output,
                )
            except OSError as error:
                raise MeasurementError(f"{name} could not be started: {error.strerror or error}") from error
        self._reader = threading.Thread(target=self._read_replies, daemon=True)
        self._reader.start()
        if hasattr(os, "waitid"):
            threading.Thread(target=self._notice_death, daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def send(self, operation: Operation[Any], **arguments: Any) -> None:
        """Write the request; a worker that was stopped goes on."""
        stdin = self._process.stdin
        assert stdin is not None
        if self._is_stopped:
            self._signal(signal.SIGCONT)
            self._is_stopped = False
        try:
            stdin.write(json.dumps({"do": operation.name, **arguments}) + "\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            raise MeasurementError(self._death(operation)) from None

    def stop(self) -> None:
        """Stop the worker's threads until the next request."""
        if hasattr(signal, "SIGSTOP"):
            self._signal(signal.SIGSTOP)
            self._is_stopped = True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def next_reply(self, operation: Operation[Any]) -> str:
        """The next reply; a worker that takes longer than the limit is ended."""
        try:
            line = self._replies.get(timeout=self._timeout_s)
        except queue.Empty:
            self.end()
            raise MeasurementError(
                f"{self.name} did not finish '{operation.title}' within {self._timeout_s:g} s and was ended "
                "(raise --timeout)"
            ) from None
        if not line:
            raise MeasurementError(self._death(operation))
        return line

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
                # A reply breaks off when the worker dies, which the end of the stream reports.
                if line.endswith("\n"):
                    self._replies.put(line)
        self._replies.put("")

    def _notice_death(self) -> None:
        """Report the worker's death also where a process that the workload forked keeps the stream open."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._reader.join(_LAST_WORDS_S)
        self._replies.put("")

    def _death(self, operation: Operation[Any]) -> str:
        how = self._how_it_ended()
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return f"{self.name} {how} during '{operation.title}'{last}"

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            self.end()
            return "closed its connection and was ended"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            return f"was killed by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"


def _start(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[str]:
    """A process in a session of its own, whose stdin and stdout are pipes."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        text=True,
        encoding="utf-8",
        env=environment,
        start_new_session=True,
    )


def ask_all(workers: Sequence[Worker], operation: Operation[Reply], **arguments: Any) -> list[Reply]:
    """Send an operation to all workers, then wait for their replies, in order."""
    for worker in workers:
        worker.send(operation, **arguments)
    return [worker.receive(operation) for worker in workers]


def in_batches(jobs: Sequence[_Job]) -> list[Sequence[_Job]]:
    """Batches of jobs whose workers get ready side by side: at most one per core, or three."""
    most = max(3, os.cpu_count() or 3)
    return [jobs[at : at + most] for at in range(0, len(jobs), most)]
