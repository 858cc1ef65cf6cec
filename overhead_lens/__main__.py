"""The command line: one typer app, one file per command, one place that turns errors into a line and an exit code."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import typer

from overhead_lens import __version__
from overhead_lens.errors import (
    EXIT_INTERRUPTED,
    EXIT_MEASUREMENT,
    EXIT_USAGE,
    Interrupted,
    OverheadLensError,
    internal_error,
)
from overhead_lens.report.text.plain import plain
from overhead_lens.terminal.call import CommandLineError
from overhead_lens.terminal.command import Command, examples
from overhead_lens.terminal.completion import COMPLETE_VARIABLE, answer
from overhead_lens.terminal.interrupt import listen, send_again
from overhead_lens.terminal.welcome import welcome

_NO_READER = 141

# Starting makes many objects but no garbage; searching for it took a tenth of a second.
_OBJECTS_BEFORE_COLLECTION = 100_000

# If set, an internal error ends in its traceback instead of a line.
_TRACEBACK = "OVERHEAD_LENS_TRACEBACK"

_COMMANDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "Measure": {
        "profile": ["profile add1 --compile", "profile my.py:f --inputs my.py:make --html f.html"],
        "compare": ['compare add1 "add1 --compile"', "compare bench.py bench.py --rev base=v1.2 --rev new=HEAD"],
        "run": ["run train.py --epochs 3", "run --html steps.html --step train.py:40 train.py"],
        "attach": ["attach 4711", "attach 4711 -d 10 -r 100 --subprocesses"],
        "ladder": ["ladder add1", "ladder my.py:f --inputs my.py:make --quick"],
        "advise": ["advise my.py:f --inputs my.py:make", "advise traces/run-train"],
        "sweep": [
            "sweep sum_elements --all-variants -p n=100,1000,10000",
            "sweep add1 --compile -p size=10,1000 --html sizes.html",
        ],
    },
    "Look at what is stored": {
        "report": ["report", "report traces/reference/eager --html eager.html"],
        "analyze": ["analyze trace.json.gz", "analyze traces-of-ranks/ --critical-path --html job.html"],
        "diff": ["diff before after", "diff before.json.gz after.json.gz --html diff.html"],
        "open_": ["open", "open trace.json.gz --ui bundled"],
        "export": ["export traces/reference/eager", "export traces/reference/eager -f speedscope"],
    },
    "Keep it fast": {
        "check": [
            "check baseline --max total=3% --max guard=100ns",
            "check baseline --instructions --junit check.xml",
        ],
        "history": ["history captures", "history captures --html history.html"],
    },
    "Prepare": {
        "scenarios": ["scenarios", "scenarios --json"],
        "doctor": ["doctor", "doctor --json"],
        "calibrate": ["calibrate", "calibrate --json"],
        "schema": ["schema", "schema breakdown"],
    },
}
"""By panel of the help: the commands, each a function of the file of its name in ``cli/``, with examples of its command line."""

_SETTINGS = {"run": {"ignore_unknown_options": True, "allow_interspersed_args": False}}


@cache
def application(only: str = "") -> typer.Typer:
    """All commands; or one alone if it has this name, since typer takes a tenth of a second to make the others."""
    app = typer.Typer(
        name="overhead-lens",
        help="Where every microsecond of a PyTorch call goes: a closed budget of real measurements.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    commands = {name: (panel, lines) for panel, named in _COMMANDS.items() for name, lines in named.items()}
    chosen = {name: what for name, what in commands.items() if name.removesuffix("_") == only}
    for name, (panel, lines) in (chosen or commands).items():
        app.command(
            name.removesuffix("_"),
            cls=Command,
            rich_help_panel=panel,
            epilog=examples(*lines),
            context_settings=_SETTINGS.get(name),
        )(getattr(importlib.import_module(f"overhead_lens.cli.{name}"), name))
    if not chosen:
        from overhead_lens.cli import baseline

        app.add_typer(baseline.app, name="baseline", rich_help_panel="Keep it fast")
    return app


def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "-V", "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"overhead-lens {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(welcome(shutil.get_terminal_size().columns))
    else:
        return
    raise typer.Exit


def _listen_for_the_end() -> None:
    """End on SIGINT and SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        listen(number, _interrupt)
    sys.unraisablehook = _interrupt_again


def _skip_last_collection() -> None:
    """Spare the search for garbage at exit, a tenth of a second; DuckDB would report its own objects as leaked."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the program; never returns normally."""
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    atexit.register(_skip_last_collection)
    _listen_for_the_end()
    _complete_standard_streams()
    try:
        code = _run()
        # Here and not at the interpreter's end, where a reader that is gone or a full disk could only be a traceback.
        sys.stdout.flush()
    except CommandLineError as error:
        # Recent versions of typer check values by pydantic, which begins its messages so.
        _fail(error.format_message().replace(": Value error, ", ": "), error.exit_code)
    except OverheadLensError as error:
        _fail(str(error), error.exit_code)
    except (Interrupted, typer.Abort):
        _fail("interrupted", EXIT_INTERRUPTED)
    except SystemExit as end:
        # typer and rich end with 1, which is taken, where the reader of stdout is gone (`| head`).
        sys.exit(_NO_READER if end.code == 1 else end.code)
    except BrokenPipeError:
        _drop_stdout()
        sys.exit(_NO_READER)
    except OSError as error:
        _drop_stdout()
        _fail(*_refusal(error))
    except Exception as error:
        # The interpreter would exit with 1, which says "a regression was found".
        if os.environ.get(_TRACEBACK):
            raise
        _fail(f"{internal_error(error)} (run again with {_TRACEBACK}=1 for a traceback)", EXIT_MEASUREMENT)
    sys.exit(code)


def _run() -> int | None:
    """The exit code of the command, or of the answer to a shell that asks what could follow."""
    if COMPLETE_VARIABLE in os.environ:
        return answer(application())
    code: int | None = application(*sys.argv[1:2])(standalone_mode=False)
    return code


def _complete_standard_streams() -> None:
    """Open the null device for closed standard streams, before another file gets their number; replace unprintable characters."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_stdout() -> None:
    """Redirect stdout to the null device, so that flushing the buffer at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _refusal(error: OSError) -> tuple[str, int]:
    """The line and the code for what the operating system refused: a path of the user's, or the output."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"cannot write the output: {reason}", EXIT_MEASUREMENT
    return f"cannot use {error.filename}: {reason}", EXIT_USAGE


def _fail(message: str, exit_code: int) -> NoReturn:
    print(f"overhead-lens: {plain(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(exit_code)


def _interrupt(number: int) -> NoReturn:
    # Whoever presses on must not break what is being put away.
    signal.signal(number, signal.SIG_IGN)
    raise Interrupted


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Repeat an interruption that Python dropped, as it does with any exception raised while an object is freed."""
    if not isinstance(dropped.exc_value, Interrupted):
        sys.__unraisablehook__(dropped)
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    listen(signal.SIGINT, _interrupt)
    send_again(signal.SIGINT)


if __name__ == "__main__":
    main()
