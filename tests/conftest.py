from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from overhead_lens.machine.process import Worker
from tests.export.trace_processor import Program
from tests.worker.answering import answering_here

pytest_plugins = ["pytester", "tests.browser"]

# How long an example takes is the machine's, and a busy one's no reason to fail.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """What a worker freezes for its lifetime is freed here: frozen objects outlive the interpreter, DuckDB's with a complaint."""
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _only_marked_tests_measure(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts a worker without the mark fails, so that all without it stay fast."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("measures") is None:
            patch.setattr(Worker, "__init__", _refuse)
        yield


def _refuse(*_: object, **__: object) -> NoReturn:
    pytest.fail("it starts a worker process: mark it with `measures`")


@pytest.fixture
def answered_here(_only_marked_tests_measure: None) -> Iterator[None]:
    """Workers answer in this process, up to where they would measure."""
    with answering_here():
        yield


@pytest.fixture(scope="session")
def trace_processor() -> Program:
    return Program(Path(__file__).parents[1] / "build" / "trace_processor")
