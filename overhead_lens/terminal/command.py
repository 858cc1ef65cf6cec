"""What all commands share: how their help is shown, and the old names of options (docs/reference/stability.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo

from overhead_lens.errors import UsageError

# Panels of `--help`, in this order.
TARGET, EFFORT, ANALYSIS, OUTPUT = "What to measure", "How to measure", "Analysis", "Output"
_PANELS = (TARGET, EFFORT, ANALYSIS, OUTPUT)

# Old to new names of options, by command.
_RENAMED = {"export": {"--to": "--format"}, "open": {"--timeout": "--wait"}, "run": {"--json": "--json-file"}}


def _panel(param: Any) -> Any:
    """An option's panel; options that click itself adds, such as ``--help``, have none."""
    return getattr(param, "rich_help_panel", None)


class Command(TyperCommand):
    """A command that accepts old option names and whose help shows no Python types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line after replacing old option names."""
        return super().parse_args(ctx, list(self._renamed(args, interspersed=ctx.allow_interspersed_args)))

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments, then options in the order of their panels."""
        params: list[Any] = super().get_params(ctx)
        panels = {_panel(param) for param in params} & {*_PANELS}
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            if param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: ""  # noqa: ARG005  (its name says what it is)
            if panels and "--help" in param.opts:
                param.rich_help_panel = OUTPUT
        return sorted(params, key=lambda param: _PANELS.index(_panel(param)) if _panel(param) in _PANELS else -1)

    def _renamed(self, words: Sequence[str], *, interspersed: bool) -> Iterator[str]:
        renamed = _RENAMED.get(self.name or "", {})
        options = {name: param for param in self.params for name in param.opts}
        rest = iter(words)
        for word in rest:
            name, equals, value = word.partition("=")
            if not word.startswith("-") or word == "--":
                yield word
                if word == "--" or not interspersed:
                    yield from rest
                continue
            if name in renamed:
                deprecated(name, renamed[name])
                name = renamed[name]
            yield name + equals + value
            if not equals and name in options and not getattr(options[name], "is_flag", False):
                yield from (following for following in [next(rest, None)] if following is not None)


def option(panel: str, spelled: str, what: str, **settings: Any) -> OptionInfo:
    """An option in a panel of the help.

    Args:
        spelled: As the help shows it: ``-r --rate N``. It is named here, since typer 0.27 would name an option in capitals that
            has its name as its metavar.
        what: What the help says of it.
        settings: typer's.
    """
    *names, metavar = spelled.split() if spelled.rsplit(maxsplit=1)[-1][0] != "-" else [*spelled.split(), None]
    made: OptionInfo = typer.Option(*names, help=what, rich_help_panel=panel, metavar=metavar, **settings)
    return made


def argument(metavar: str, what: str, complete: Callable[[str], object] | None = None, **settings: Any) -> ArgumentInfo:
    """An argument of which the help says ``what``; ``complete`` has the shell's candidates, ``settings`` are typer's."""
    made: ArgumentInfo = typer.Argument(metavar=metavar, help=what, autocompletion=complete, **settings)
    return made


def examples(*commands: str) -> str:
    """The end of a command's help: command lines, without the program's name."""
    return "\n\n".join(["Examples:", *(f"  overhead-lens {command}" for command in commands)])


def deprecated(old: str, new: str) -> None:
    """Say on stderr that a spelling will go away."""
    print(f"overhead-lens: {old} is deprecated, use {new}", file=sys.stderr)


def refuse_on_windows(what: str, otherwise: str = "") -> None:
    """Refuse a command where nothing can be measured; ``otherwise`` says what can be done there, as the rest of the sentence.

    Raises:
        UsageError: This is Windows.
    """
    if sys.platform == "win32":
        raise UsageError(f"{what} measures on Linux and macOS only{otherwise}")


def refuse(context: typer.Context, reason: str, *names: str) -> None:
    """Refuse options that would be ignored; ``reason`` says why they have no effect, as the rest of a sentence.

    Raises:
        UsageError: One of them is on the command line.
    """
    for param in context.command.params:
        source = context.get_parameter_source(str(param.name))
        if param.name in names and source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{max(param.opts, key=len)} has no effect {reason}")
