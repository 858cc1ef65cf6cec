"""The one family of errors that a command turns into a line on stderr and an exit code."""

from __future__ import annotations

EXIT_REGRESSION = 1
EXIT_USAGE = 2
EXIT_MEASUREMENT = 3
EXIT_INTERRUPTED = 130


class OverheadLensError(Exception):
    """An error whose message is one line that says what to do."""

    exit_code = EXIT_USAGE


class UsageError(OverheadLensError):
    """Wrong usage or input: the user can mend it and run the command again."""


class MismatchError(UsageError):
    """Two captures differ in more than the code: machine, versions or sizes."""


class MeasurementError(OverheadLensError):
    """A measurement could not be made on this machine or did not finish."""

    exit_code = EXIT_MEASUREMENT


class InvariantError(ValueError):
    """A result that does not add up, or a value that breaks the contract of its type: a defect of this program."""


def require(holds: bool, message: str) -> None:
    """Check an invariant.

    Raises:
        InvariantError: It does not hold.
    """
    if not holds:
        raise InvariantError(message)


def internal_error(error: Exception) -> str:
    """The message for a defect of this program."""
    return f"internal error (please report): {in_one_line(error)}"


def in_one_line(error: BaseException) -> str:
    """``ValueError: its message``, or the type alone if there is no message, as in a bare ``assert``."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def first_line(error: BaseException) -> str:
    """The same with the first line of the message only: torch's messages go on with places in its own source."""
    return f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}".removesuffix(": ")


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM."""


class EndedEarly(Interrupted):
    """The first Ctrl-C where what there is can be kept."""
