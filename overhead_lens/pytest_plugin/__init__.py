"""The pytest plugin: the fixture ``overhead`` compares a call with the baseline stored beside its test.

pytest loads this in every session: it imports nothing that measures until a test asks for the fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from overhead_lens.pytest_plugin.summary import Summary

if TYPE_CHECKING:
    from overhead_lens.pytest_plugin.gate import Overhead

_MARKER = (
    'overhead(total="+3%", guard="+100ns", instructions="+0.5%"): by how much calls of the fixture `overhead` may exceed '
    "their baseline; without it, they may not become slower"
)
_IN_PARALLEL = (
    "calls are timed one at a time: run with `-n 0` or `-p no:xdist`, or count instead with "
    '@pytest.mark.overhead(instructions="+0.5%")'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("overhead", "overhead-lens")
    group.addoption(
        "--overhead-update", action="store_true", help="Record the baselines of the fixture `overhead` again."
    )
    group.addoption(
        "--overhead-markdown", type=Path, metavar="FILE", help="Append a table of what was measured to this file."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what reports at the end."""
    config.addinivalue_line("markers", _MARKER)
    if hasattr(config, "workerinput"):
        return
    markdown: Path | None = config.getoption("--overhead-markdown")
    if markdown is not None:
        try:
            markdown.open("a").close()
        except OSError as error:
            raise pytest.UsageError(
                f"--overhead-markdown: cannot write to {markdown}: {error.strerror or error}"
            ) from error
    config.pluginmanager.register(Summary(markdown), "overhead-summary")


@pytest.fixture
def overhead(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Overhead:
    """Measure ``overhead(fn, *args, compile=False)`` and fail where it takes more than its baseline.

    Without a baseline the call records one and passes. ``@pytest.mark.overhead(total="+3%")`` sets limits.
    """
    from overhead_lens.errors import OverheadLensError
    from overhead_lens.pytest_plugin.gate import Overhead, limits_of
    from overhead_lens.studies.check.limits import Limits

    wrong, limits = "", Limits()
    try:
        limits = limits_of(request.node.get_closest_marker("overhead"))
    except OverheadLensError as error:
        wrong = str(error)
    if getattr(request.config, "workerinput", {}).get("workercount", 1) > 1 and not limits.only_counts:
        wrong = wrong or _IN_PARALLEL
    if wrong:
        pytest.fail(wrong, pytrace=False)
    return Overhead(request.node, limits, request.config.getoption("--overhead-update"), tmp_path_factory)
