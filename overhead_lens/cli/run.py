"""``overhead-lens run``: an unmodified program, once, and the budget of its steps."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from overhead_lens.errors import MeasurementError, OverheadLensError, UsageError, internal_error
from overhead_lens.report.text.plain import plain
from overhead_lens.terminal.arguments import Force, Rules, check_new_file, check_own_file
from overhead_lens.terminal.command import argument, option, refuse_on_windows

REPORT = "report.txt"
_PRINTING = ".printing"


def run(
    command: Annotated[
        list[str] | None, argument("SCRIPT|-m MODULE [ARGS]...", "The program and its arguments.")
    ] = None,
    step: Annotated[str, option("--step PLACE")] = "",
    rules: Rules = None,
    output: Annotated[Path | None, option("-o --output DIR", "run")] = None,
    html: Annotated[Path | None, option("--html FILE", callback=check_own_file)] = None,
    json_file: Annotated[Path | None, option("--json-file FILE", callback=check_own_file)] = None,
    force: Force = False,
    quiet: Annotated[bool, option("-q --quiet", "no report on stderr")] = False,
) -> None:
    """Run a program as Python would and print where the time of its steps goes.

    The report goes to stderr at the end, with --output to that directory. The exit code is the program's.
    """
    from overhead_lens.machine.request import CAPTURES
    from overhead_lens.studies.run.record import NotStoredError, Program, record_run
    from overhead_lens.taxonomy.classifier import default_classifier

    refuse_on_windows("run", "; runs made there can be read here")
    program = Program(_checked_command(command or []), _checked(step))
    json_file, html = (
        _file_of_rank(name, file, force=force) for name, file in (("--json-file", json_file), ("--html", html))
    )
    classifier = default_classifier(rules)
    try:
        path, exit_code = record_run(program, _of_rank(output, program.label), CAPTURES)
    except NotStoredError as error:
        _say(str(error))
        _end_as(error.code)
    with _noting_failures():
        # The program has not waited for these imports.
        from overhead_lens.report.forms import to_html, to_json
        from overhead_lens.studies.run.analysis import run_budget_of
        from overhead_lens.terminal.output import print_result, write_text

        budget = run_budget_of(path, classifier)
        with _noting_failures():
            if output is not None:
                with (path / REPORT).open("w", encoding="utf-8") as file:
                    print_result(budget, file)
            elif not quiet:
                with _alone(path.parent if _rank() else None):
                    print_result(budget, sys.stderr)
                    sys.stderr.flush()
        with _noting_failures():
            if json_file is not None:
                write_text(json_file, f"{to_json(budget)}\n", force=force)
        with _noting_failures():
            if html is not None:
                write_text(html, to_html(budget, classifier), force=force)
    _end_as(exit_code)


def _checked_command(command: list[str]) -> list[str]:
    if not command or command == ["-m"]:
        raise UsageError("name a script, or a module with -m")
    if command[0].startswith("-") and command[0] != "-m":
        raise UsageError(f"unknown option {command[0]}; options for your program go after its name")
    return command


def _checked(step: str) -> str:
    place, _, at = step.rpartition(":")
    if step and not (place and at):
        raise UsageError(f"--step {step}: write FILE:LINE or MODULE:FUNCTION")
    return step


@contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    """Print while no other rank of the job prints, whose directory is ``folder``."""
    if folder is None:
        yield
        return
    import fcntl

    with ExitStack() as stack:
        with suppress(OSError):
            file = stack.enter_context((folder / _PRINTING).open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _file_of_rank(option: str, file: Path | None, *, force: bool) -> Path | None:
    """A file to write; each rank under torchrun has its own: ``page.html`` becomes ``page-rank-1.html``."""
    rank = _rank()
    if file is not None and rank is not None:
        file = file.with_name(f"{file.stem}-{rank}{file.suffix}")
    if file is not None:
        check_new_file(option, file, force=force)
    return file


@contextmanager
def _noting_failures() -> Iterator[None]:
    """Report what fails after the program has ended in a line on stderr: the exit code is the program's."""
    try:
        yield
    except SystemExit:
        # Rich ends so where nobody reads stderr.
        return
    except Exception as error:
        message = str(error) if isinstance(error, (OverheadLensError, OSError)) else internal_error(error)
        _say(message)


def _say(line: str) -> None:
    with suppress(OSError):
        print(f"overhead-lens: {plain(line)}", file=sys.stderr)


def _rank() -> str | None:
    """The name of this process's rank under torchrun, ``rank-1``."""
    from overhead_lens.captures.files import RANK

    rank = os.environ.get("RANK", "")
    return f"{RANK}{rank}" if rank.isdigit() else None


def _of_rank(output: Path | None, label: str) -> Path | None:
    """The directory to record into; under torchrun the rank's own, in a directory of the job named after the agent's process."""
    rank = _rank()
    if rank is None:
        return output
    if output is not None:
        return output / rank
    job = f"run-{label}-{os.getppid()}"
    places = (Path("traces", f"{job}-{number}" if number > 1 else job, rank) for number in count(1))
    return next(place for place in places if not place.exists())


def _end_as(exit_code: int) -> NoReturn:
    """End as the program did, by the same signal if it was one."""
    sys.stdout.flush()
    try:
        sys.stderr.flush()
    except OSError:
        # At its end the interpreter would try again, fail and exit with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if exit_code < 0:
        if -exit_code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-exit_code, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_code)
        raise MeasurementError(f"the program was ended by signal {-exit_code}")
    raise typer.Exit(exit_code)
