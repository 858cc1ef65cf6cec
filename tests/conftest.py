from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from overhead_lens.machine.process import Worker
from tests.export.trace_processor import Program
from tests.worker.answering import answering_here

pytest_plugins = ["pytester", "tests.browser"]

# How long an example takes is the machine's, and a busy one's no reason to fail.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

BUILD = Path(__file__).parents[1] / "build"


def pytest_configure() -> None:
    """Whoever starts the tests, and however, they find the same: a cache of their own, and an interrupt that interrupts.

    The processes of xdist inherit the folder. Machine code, extensions and fonts stay in it from one session to the next, what an
    earlier session measured or left half built does not.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in the background so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    cache = BUILD / "cache"
    for left in (*cache.glob("overhead-lens/*.json"), *cache.glob("torch_extensions/*/*/lock")):
        left.unlink(missing_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(cache)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For several processes: tests that share a fixture stay together, and the last ones to start are short."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        if _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(item.config.rootpath))))
    items.sort(key=lambda item: item.get_closest_marker("measures") is None)


def _shares_a_fixture(item: pytest.Item) -> bool:
    used: dict[str, Any] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    fixtures = [fixture for several in used.values() for fixture in several]
    return any(each.scope != "function" and each.func.__module__.startswith("tests.") for each in fixtures)


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
    return Program(BUILD / "trace_processor")
