from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from overhead_lens.machine.process import Worker
from tests.caches import of_a_session
from tests.worker.answering import answering_here
from tests.worker.warm import warm_workers

if TYPE_CHECKING:
    from tests.export.trace_processor import Program

pytest_plugins = ["pytester", "tests.browser", "tests.skips"]

# How long an example takes is the machine's, and a busy one's no reason to fail.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"


def pytest_configure(config: pytest.Config) -> None:
    """Whoever starts the tests, and however, they find the same: a cache of their own, and an interrupt that interrupts.

    The processes of xdist inherit the folder.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in the background so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    stack = ExitStack()
    os.environ["XDG_CACHE_HOME"] = str(stack.enter_context(of_a_session(BUILD)))
    # Trust the processor's flags: otherwise every process that compiles spends two seconds on trying its instruction sets.
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    config.add_cleanup(stack.close)


# They take half a minute or more, most of it in one process.
_LONGEST = (
    "test_a_gate_in_instructions",
    "test_every_cell_runs",
    "test_remedies_of_ones_own",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests come first, then all that measure: the last to end are short."""
    items.sort(
        key=lambda item: (item.name.partition("[")[0] not in _LONGEST, item.get_closest_marker("measures") is None)
    )


class _Scheduling(LoadScopeScheduling):
    """Any test goes to whichever process is free, those of a file that share a fixture together.

    So do all that compile or make an optimizer: a process imports the compiler for as long as ten of them take.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        text = _text(file)
        if re.search(r"needs_compiler|torch\.(compile|optim\.\w+)\(", text):
            return "compiled"
        return file if re.search(r'scope="(module|session)"|chromium: Any', text) else nodeid


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Scheduling:
    config.option.loadscopereorder = False
    return _Scheduling(config, log)


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """What a worker freezes for its lifetime is freed here: frozen objects outlive the interpreter, DuckDB's with a complaint."""
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _only_marked_tests_measure(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts a worker without the mark fails, so that all without it stay fast; those with it fork their workers."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("measures") is None:
            patch.setattr(Worker, "__init__", _refuse)
            yield
        elif "started_workers" in request.fixturenames:
            yield
        else:
            with warm_workers():
                yield


@pytest.fixture
def started_workers() -> None:
    """Every worker is a program that imports torch, as for users."""


_START = Worker.__init__


@pytest.fixture
def stand_in_workers(_only_marked_tests_measure: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test start workers, which run a stand-in."""
    monkeypatch.setattr(Worker, "__init__", _START)


def _refuse(*_: object, **__: object) -> NoReturn:
    pytest.fail("it starts a worker process: mark it with `measures`")


@pytest.fixture
def answered_here(_only_marked_tests_measure: None) -> Iterator[None]:
    """Workers answer in this process, up to where they would measure."""
    with answering_here():
        yield


@pytest.fixture(scope="session")
def trace_processor() -> Program:
    from tests.export.trace_processor import Program

    return Program(BUILD / "trace_processor")
