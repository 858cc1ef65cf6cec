"""Skips that nobody expects fail a session."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("expected", "code", "said"),
    [
        (None, 0, []),
        ("not (here|there)", 0, []),
        ("not there|root", 1, ["*skipped unexpectedly: Skipped: it is not here"]),
    ],
)
@pytest.mark.parametrize("processes", [0, 1])
def test_a_skip_that_is_not_expected_fails(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    expected: str | None,
    code: int,
    said: list[str],
    processes: int,
) -> None:
    pytester.makepyfile(
        "import pytest\n\ndef test_it():\n    pytest.skip('it is not here')\n\ndef test_other():\n    pass\n"
    )
    monkeypatch.delenv("EXPECTED_SKIPS", raising=False)
    if expected is not None:
        monkeypatch.setenv("EXPECTED_SKIPS", expected)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = pytester.runpytest_subprocess("-p", "tests.skips", "-p", "xdist", "-n", str(processes))
    assert done.ret == code
    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(said)
    assert ("skipped unexpectedly" in done.stdout.str()) == bool(said)
