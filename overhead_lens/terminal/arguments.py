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
        help="A scenario (built-in name or .py file, optionally with :VARIANT) or a function (my.py:f, package.module:f).",
        autocompletion=complete_target,
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(help="Function that returns the target's arguments as a tuple, e.g. my.py:make."),
]
Device = Annotated[str | None, typer.Option(help="Shorthand for -p device=DEVICE.")]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--param", help="Set a parameter of the scenario: NAME=VALUE.", autocompletion=complete_parameter
    ),
]
Mode = Annotated[str | None, typer.Option(help="Mode of torch.compile, with --compile.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer processes: takes half as long, intervals are wider.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Rules = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Your own rules (TOML), tried before the built-in ones.")
]
Margin = Annotated[
    float,
    typer.Option(help="Differences within this percentage of the base's wall time count as none.", min=0.0, max=100.0),
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
    typer.Option("--html", metavar="FILE", help="Also write an HTML report to FILE.", callback=_new_file),
]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Append a Markdown table to FILE.")]
Timeout = Annotated[
    float,
    typer.Option(help="Give up if a single measuring step takes longer than this many seconds.", min=1.0, max=1e6),
]


def directory_option(what: str) -> OptionInfo:
    """``--output`` of a command that records ``what``."""
    option: OptionInfo = typer.Option("-o", "--output", help=f"Directory for the {what}; must be new or empty.")
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
            raise UsageError("--mode needs --compile")
        return None
    return {} if mode is None else {"mode": mode}
