"""The one family of errors that a command turns into a line on stderr and an exit code."""

from __future__ import annotations

EXIT_REGRESSION = 1
EXIT_USAGE = 2
EXIT_MEASUREMENT = 3


class OverheadLensError(Exception):
    """An error whose message is one line that says what to do.

    Attributes:
        exit_code: What the process exits with when this error ends it.
    """

    exit_code = EXIT_USAGE


class UsageError(OverheadLensError):
    """Wrong usage or input: the user can mend it and run the command again."""

    exit_code = EXIT_USAGE


class MeasurementError(OverheadLensError):
    """A measurement could not be made on this machine or did not finish."""

    exit_code = EXIT_MEASUREMENT
