from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.export.trace_processor import Program

# How long an example takes is the machine's, and a busy one's no reason to fail.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def trace_processor(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("wasm"))
