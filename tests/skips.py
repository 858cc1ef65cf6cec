"""Where it is said which skips are expected, any other fails the session: what a machine lacks is seen, not passed over."""

from __future__ import annotations

import os
import re

import pytest


def pytest_sessionfinish(session: pytest.Session) -> None:
    """``EXPECTED_SKIPS`` is a pattern of reasons; without it, or in a process of xdist, any skip is fine."""
    expected = os.environ.get("EXPECTED_SKIPS")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if expected is None or reporter is None:
        return
    reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", ())}
    for reason in sorted(reason for reason in reasons if not re.search(expected, reason)):
        reporter.write_line(f"skipped unexpectedly: {reason}", red=True)
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
