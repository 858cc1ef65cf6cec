from __future__ import annotations

import pytest

from tests.export.trace_processor import Program


@pytest.fixture(scope="session")
def trace_processor(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("wasm"))
