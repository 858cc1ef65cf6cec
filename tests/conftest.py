from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.export.trace_processor import Program

# How long an example takes is the machine's, and a busy one's no reason to fail.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """What a worker freezes for its lifetime is freed here: frozen objects outlive the interpreter, DuckDB's with a complaint."""
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def trace_processor(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("wasm"))
