"""``overhead-lens run``: an unmodified program, once, and the budget of its steps."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import MeasurementError, OverheadLensError, UsageError
from overhead_lens.report.text.plain import plain
from overhead_lens.terminal.arguments import Html, Rules, directory_option

REPORT = "report.txt"
_PRINTING = ".printing"


def run(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT|-m MODULE [ARGS]...", help="The program and its arguments.")
    ] = None,
    step: Annotated[
        str, typer.Option(metavar="FILE:LINE|MODULE:FUNCTION", help="A step begins whenever this is reached.")
    ] = "",
    output: Annotated[Path | None, directory_option("run")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the budget to FILE as JSON.")
    ] = None,
    html: Html = None,
    rules: Rules = None,
) -> None:
    """Run a program as Python would and print where the time of its steps goes.

    The report goes to stderr at the end, with --output to that directory. The exit code is the program's.
    """
    from overhead_lens.machine.request import CAPTURES
    from overhead_lens.report.forms import to_json
    from overhead_lens.studies.run.analysis import run_budget_of
    from overhead_lens.studies.run.record import Program, record_run
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import print_into, write_page

    if sys.platform == "win32":
        raise UsageError("run measures on Linux and macOS only; runs made there can be read here")
    json_, html = (_file_of_rank(name, file) for name, file in (("json", json_), ("html", html)))
    program = Program(_checked_command(command or []), _checked(step))
    classifier = default_classifier(rules)
    path, exit_code = record_run(program, _of_rank(output, program.label), CAPTURES)
    budget = run_budget_of(path, classifier)
    if output is None:
        with _alone(path.parent if _rank() else None):
            print_into(sys.stderr, budget)
            sys.stderr.flush()
    else:
        with (path / REPORT).open("w", encoding="utf-8") as file:
            print_into(file, budget)
    if json_ is not None:
        _try(lambda: json_.write_text(to_json(budget) + "\n", encoding="utf-8"))
    if html is not None:
        _try(lambda: write_page(budget, html, classifier))
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


def _file_of_rank(option: str, file: Path | None) -> Path | None:
    """A file to write; of a rank under torchrun one of its own: ``page.html`` becomes ``page-rank-1.html``.

    Raises:
        UsageError: It exists.
    """
    rank = _rank()
    if file is not None and rank is not None:
        file = file.with_name(f"{file.stem}-{rank}{file.suffix}")
    if file is not None and file.exists():
        raise UsageError(f"{file} exists; nothing is overwritten, name another --{option}")
    return file


def _try(write: Callable[[], object]) -> None:
    """Write a file when the program has ended; a failure is a line on stderr, since the exit code is the program's."""
    try:
        write()
    except (OverheadLensError, OSError) as error:
        print(f"overhead-lens: {plain(str(error))}", file=sys.stderr)


def _rank() -> str | None:
    """The name of this process's rank under torchrun, ``rank-1``."""
    from overhead_lens.studies.run.job import RANK

    rank = os.environ.get("RANK", "")
    return f"{RANK}{rank}" if rank.isdigit() else None


def _of_rank(output: Path | None, label: str) -> Path | None:
    """The directory to record into; of a rank under torchrun, its own in the job's, which is named after the agent's process."""
    rank = _rank()
    if rank is None:
        return output
    return (output or Path("traces", f"run-{label}-{os.getppid()}")) / f"{rank}"


def _end_as(exit_code: int) -> None:
    """End as the program did, by the same signal if it was one."""
    sys.stdout.flush()
    sys.stderr.flush()
    if exit_code < 0:
        if -exit_code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-exit_code, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_code)
        raise MeasurementError(f"the program was ended by signal {-exit_code}")
    raise typer.Exit(exit_code)
