"""This process as a measuring one."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.instruments.samples import worker
from overhead_lens.instruments.samples.record import SPIN
from overhead_lens.machine.here import Here
from overhead_lens.machine.operations import DESCRIBE, WARM_UP, Operation, WarmUp
from overhead_lens.scenario import Arguments
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.workload import of_callable

_STOP: Operation[dict[str, int]] = Operation("instruments.samples.worker:stop", dict[str, int])


def _asked(here: Here, ask: Callable[[], Any]) -> Any:
    """What ``ask`` returns in a thread of its own while this one serves."""
    found: list[Any] = []

    def recorder() -> None:
        try:
            found.append(ask())
        except Exception as error:
            found.append(error)
        finally:
            here.dismiss()

    thread = threading.Thread(target=recorder)
    thread.start()
    here.serve()
    thread.join()
    (only,) = found
    return only


def test_the_calling_thread_makes_the_calls() -> None:
    seen = set()

    def call(x: int, *, y: int) -> None:
        seen.add((threading.get_ident(), torch.is_grad_enabled(), x, y))

    with torch.no_grad(), Here() as here:
        here.session.workload = of_callable(call, Arguments((1,), {"y": 2}), None)
        warm = _asked(here, lambda: here.ask(WARM_UP))
    assert isinstance(warm, WarmUp)
    assert seen == {(threading.get_ident(), False, 1, 2)}


@pytest.mark.parametrize("is_frozen", [False, True])
def test_what_the_program_froze_stays_frozen_and_else_nothing_does(is_frozen: bool) -> None:
    if is_frozen:
        gc.freeze()
    before = gc.get_freeze_count()
    with Here() as here:
        here.session.workload = of_callable(len, Arguments(([1],)), None)
        _asked(here, lambda: here.ask(WARM_UP))
    assert (before > 0) == is_frozen
    # A frozen object that is released leaves.
    assert gc.get_freeze_count() >= before - 100 if is_frozen else gc.get_freeze_count() == 0


def test_it_says_what_it_calls() -> None:
    with Here() as here:
        here.session.workload = of_callable(len, Arguments(([1],)), None)
        found = _asked(here, lambda: here.ask(DESCRIBE))
    assert (found.kind, found.scenario, found.variant, found.params) == ("callable", "len", "len", {})


def test_an_operation_that_waits_for_a_line_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(worker, "settle", lambda *_: None)

    def spin(here: Here) -> Any:
        here.send(SPIN, chunk_ns=1_000_000)
        here.receive(SPIN)
        while len(calls) <= 1_000:
            time.sleep(0.001)
        return here.ask(_STOP)

    with Here() as here:
        here.session.workload = of_callable(lambda: calls.append(1), Arguments(), None)
        here.session.call_ns = 1_000.0
        found = _asked(here, lambda: spin(here))
    assert found == {}
    assert len(calls) > 1_000


def test_an_interrupt_ends_the_recorder_and_goes_on() -> None:
    def interrupted() -> None:
        if len(calls) > 3:
            raise KeyboardInterrupt
        calls.append(1)

    calls: list[int] = []
    found: list[str] = []
    with Here() as here:
        here.session.workload = of_callable(interrupted, Arguments(), None)

        def recorder() -> None:
            for _ in range(2):
                try:
                    here.ask(WARM_UP)
                except MeasurementError as error:
                    found.append(str(error))

        thread = threading.Thread(target=recorder)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            here.serve()
        thread.join()
    assert found == ["interrupted during 'warm up'"] * 2


def test_a_call_that_fails_is_a_line() -> None:
    with pytest.raises(UsageError) as refused:
        of_callable(lambda: 1 / 0, Arguments(), None)
    assert str(refused.value) == (
        "test_a_call_that_fails_is_a_line.<locals>.<lambda> failed: ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize("keywords", [(), ("b",), ("a", "b")])
def test_the_loop_passes_by_name_what_was_named(keywords: tuple[str, ...]) -> None:
    seen = []
    loop = make_measured_loop(2, keywords=keywords)
    loop(lambda *args, **given: seen.append((args, given)), (1, 2), 3)
    values = dict(zip(("a", "b"), (1, 2), strict=True))
    by_position = tuple(value for name, value in values.items() if name not in keywords)
    assert seen == [(by_position, {name: values[name] for name in keywords})] * 3
