"""This process as a measuring one, on request of a recorder in another thread."""

from __future__ import annotations

import gc
import json
import os
import queue
import threading
from typing import Any

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.operations import Operation
from overhead_lens.machine.process import Process
from overhead_lens.worker.session import Session, answer


class Here(Process):
    """This process, measured in the thread that calls ``serve``.

    So grad mode and what else torch keeps by thread are the caller's. Requests cross a pipe, as to a worker, so that an operation
    can run until the next line arrives.
    """

    def __init__(self) -> None:
        self.name = "this process"
        reading, writing = os.pipe()
        self._requests = os.fdopen(writing, "w", encoding="utf-8", buffering=1)
        self._received = os.fdopen(reading, "r", encoding="utf-8", buffering=1)
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._abandoned = threading.Event()
        self.session = Session(self._received, lambda result: self._reply({"ok": result}))

    @property
    def pid(self) -> int:
        """Process id."""
        return os.getpid()

    def __enter__(self) -> Here:
        self._is_frozen = gc.get_freeze_count() > 0
        return self

    def __exit__(self, *_: object) -> None:
        # The warm-up froze what the collector knew, and this process goes on. What the program froze itself stays so.
        if not self._is_frozen:
            gc.unfreeze()
        self._requests.close()
        self._received.close()

    def send(self, operation: Operation[Any], **arguments: Any) -> None:
        """Write the request."""
        self._requests.write(json.dumps({"do": operation.name, **arguments}) + "\n")

    def next_reply(self, operation: Operation[Any]) -> str:
        """The next reply, as JSON."""
        line = "" if self._abandoned.is_set() else self._replies.get()
        if not line:
            raise MeasurementError(f"interrupted during '{operation.title}'")
        return line

    def serve(self) -> None:
        """Answer requests until ``dismiss``; after an interrupt every reply is an error."""
        try:
            while line := self._received.readline().strip():
                self._reply(answer(self.session, json.loads(line)))
        except BaseException:
            self._abandoned.set()
            self._replies.put("")
            raise

    def dismiss(self) -> None:
        """Make ``serve`` return."""
        self._requests.write("\n")

    def _reply(self, message: dict[str, Any]) -> None:
        self._replies.put(json.dumps(message, default=str))
