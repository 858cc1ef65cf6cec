"""Recordings that are short: for what any recording shows, and verdicts on what takes several times as long."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from overhead_lens import api
from overhead_lens.correction import store
from overhead_lens.machine import request
from overhead_lens.recorder import paired
from overhead_lens.studies.sweep import record as sweep
from tests.samplers.drawing import drawn_stacks
from tests.worker.forking import SHORTLY
from tests.worker.warm import warm_workers

_SECOND_OF_STACKS = 300
_CALIBRATION = Path(__file__).parents[2] / "traces" / "reference" / "compiled" / "calibration.json"


@contextlib.contextmanager
def little_effort(processes: int, *, sampled: bool = True, calibrated: bool = True) -> Iterator[None]:
    """Record with so many processes, each timed for moments, the first sampled for a second; of a pair every other.

    Processes are forked from one that has imported torch, and warm up for moments, too. Unless ``sampled``, stacks are drawn.
    Where ``calibrated``, a machine without a calibration has that of the reference capture; else its first recording calibrates
    the trace.
    """
    stacks = _SECOND_OF_STACKS if sampled else 1
    short = {"processes": processes, "clock_budget_ns": 100_000_000, "samples_per_process": stacks}
    single = replace(request.QUICK, sampled_every=processes, **short)
    pair = replace(paired.paired_effort(compiles=False), blocks=20, **short)
    points = replace(sweep.QUICK, processes=processes, clock_budget_ns=200_000_000)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warm_workers())
        stack.enter_context(mock.patch.dict(os.environ, {SHORTLY: "1"}))
        if not sampled:
            stack.enter_context(drawn_stacks())
        stack.enter_context(mock.patch.object(store, "PROCESSES", 1))
        if calibrated:
            stack.enter_context(mock.patch.object(store, "load", _load))
        for module in (request, api):
            stack.enter_context(mock.patch.multiple(module, STANDARD=single, QUICK=single))
        stack.enter_context(mock.patch.multiple(sweep, STANDARD=points, QUICK=points))
        for module in (paired, api):
            stack.enter_context(mock.patch.object(module, "paired_effort", lambda *, compiles: pair))
        yield


_LOAD = store.load


def _load(name: str) -> dict[str, Any]:
    return _LOAD(name) or json.loads(_CALIBRATION.read_text(encoding="utf-8"))


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin, ``-p tests.recorder.effort``: all that this session records is short."""
    stack = contextlib.ExitStack()
    stack.enter_context(little_effort(processes=1, sampled=False))
    config.add_cleanup(stack.close)
