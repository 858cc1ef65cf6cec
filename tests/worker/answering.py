"""Workers that are no processes: for what ends before anything is measured, such as a wrong input."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from overhead_lens.machine.operations import Operation
from overhead_lens.machine.process import Worker
from overhead_lens.worker.session import Session, answer


class Answering:
    """The methods of a ``Worker`` that answers here, by the code that its process would run."""

    answers = (":load", ":describe_runtime", ":warm_up")

    def __init__(self, name: str, log: Path, *_: object, **__: object) -> None:
        self.name = name
        self._log = log
        self._session = Session(io.StringIO(), lambda _: None)
        self._answers: list[str] = []

    def send(self, operation: Operation[Any], **arguments: Any) -> None:
        if not operation.name.endswith(Answering.answers):
            pytest.fail(f"'{operation.title}' needs a process: mark the test with `measures`")
        with self._log.open("a") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            said = answer(self._session, {"do": operation.name, **json.loads(json.dumps(arguments))})
        self._answers.append(json.dumps(said, default=str))

    def next_reply(self, operation: Operation[Any]) -> str:
        return self._answers.pop(0)

    def end(self) -> None:
        """Nothing was started."""


@contextlib.contextmanager
def answering_here() -> Iterator[None]:
    """Have every worker answer here."""
    methods = {name: vars(Answering)[name] for name in ("__init__", "send", "next_reply", "end")}
    with (
        mock.patch.multiple(Worker, **methods),
        mock.patch.object(Worker, "pid", os.getpid()),
        mock.patch.object(sys, "path", [*sys.path]),
    ):
        yield


def session_of(workload: Any, call_ns: float = 0.0) -> Session:
    """A session that has loaded a workload."""
    session = Session(io.StringIO(), lambda _: None)
    session.workload, session.call_ns = workload, call_ns
    return session
