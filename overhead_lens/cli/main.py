"""The command line: one typer app, one file per command, one place that turns errors into a line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import typer

from overhead_lens import __version__
from overhead_lens.cli import diff, doctor, export, open_, profile, report, scenarios
from overhead_lens.errors import OverheadLensError

_INTERRUPTED = 130

# What typer raises for a wrong command line. Newer releases carry a click of their own, so it is found by descent:
# BadParameter is a UsageError, which is a ClickException.
_CommandLineError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="overhead-lens",
    help="Where every microsecond of a PyTorch call goes: a closed budget of real measurements.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("profile")(profile.profile)
app.command("diff")(diff.diff)
app.command("report")(report.report)
app.command("export")(export.export)
app.command("open")(open_.open_)
app.command("scenarios")(scenarios.scenarios)
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"overhead-lens {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit


class _InterruptedError(BaseException):
    """Ctrl-C or SIGTERM; not KeyboardInterrupt, which typer turns into a silent exit."""


def main() -> None:
    """Run the program; never returns normally."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        sys.exit(app(standalone_mode=False))
    except _CommandLineError as error:
        _fail(error.format_message(), error.exit_code)
    except OverheadLensError as error:
        _fail(str(error), error.exit_code)
    except (_InterruptedError, typer.Abort):
        _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of stdout is gone (`| head`): nothing to say, and nothing more can be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_INTERRUPTED + 11)


def _fail(message: str, exit_code: int) -> NoReturn:
    print(f"overhead-lens: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(exit_code)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise _InterruptedError
