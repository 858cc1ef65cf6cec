"""Arguments and options that several commands take, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from overhead_lens.errors import UsageError
from overhead_lens.terminal.completion import complete_parameter, complete_target

TIMEOUT_S = 300.0

Target = Annotated[
    str,
    typer.Argument(
        help="A built-in scenario or a .py file, with :VARIANT; a function, my.py:f or package.module:f.",
        autocompletion=complete_target,
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(help="my.py:make, a function that returns the arguments of the target's function in a tuple."),
]
Device = Annotated[str | None, typer.Option(help="Shorthand for -p device=DEVICE.")]
Param = Annotated[
    list[str] | None,
    typer.Option("-p", "--param", help="NAME=VALUE, a parameter of the scenario.", autocompletion=complete_parameter),
]
Mode = Annotated[str | None, typer.Option(help="torch.compile's mode, with --compile.")]
Quick = Annotated[bool, typer.Option("--quick", help="Half the time, wider intervals.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Rules = Annotated[Path | None, typer.Option(help="Rules of your own (TOML), tried before the built-in ones.")]
Margin = Annotated[
    float, typer.Option(help="Percent of the base's wall time that count as no difference.", min=0.0, max=100.0)
]


def _new_file(path: Path | None) -> Path | None:
    """A file that is not there yet, in a directory that is: known before anything is measured."""
    if path is not None and path.exists():
        raise UsageError(f"{path} exists; nothing is overwritten, name another --html")
    if path is not None and not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no directory {path.parent}")
    return path


Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write it as a page to look at, too.", callback=_new_file),
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Append it as a Markdown table to this file.")
]
Timeout = Annotated[float, typer.Option(help="Seconds that one step of one worker may take.", min=1.0, max=1e6)]


def directory_option(what: str) -> OptionInfo:
    """``--output`` of a command that records ``what``."""
    option: OptionInfo = typer.Option("-o", "--output", help=f"Directory of the {what}; new or empty.")
    return option


def json_option(what: str) -> OptionInfo:
    """``--json`` of a command that prints ``what``."""
    option: OptionInfo = typer.Option("--json", help=f"Print the {what} as JSON and nothing else.")
    return option


def assignments(texts: list[str], device: str | None) -> dict[str, str]:
    """What ``-p NAME=VALUE`` and ``--device`` assign.

    Raises:
        UsageError: An assignment has no name, or a name is assigned twice.
    """
    assigned = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"-p takes NAME=VALUE, not {text!r}")
        if name in assigned:
            raise UsageError(f"parameter {name} is given twice")
        assigned[name] = value
    if device is not None:
        if assigned.get("device", device) != device:
            raise UsageError(f"--device {device} and -p device={assigned['device']} disagree")
        assigned["device"] = device
    return assigned


def compile_options(*, compile_: bool, mode: str | None) -> dict[str, Any] | None:
    """Keyword arguments of torch.compile; None for eager.

    Raises:
        UsageError: A mode without ``--compile``.
    """
    if not compile_:
        if mode is not None:
            raise UsageError("--mode belongs to --compile")
        return None
    return {} if mode is None else {"mode": mode}
