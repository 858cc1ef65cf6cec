"""The options that say what is called: those of ``profile``, and of each side of ``compare``."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal.arguments import Compile, Device, Inputs, Mode, Param, assignments
from overhead_lens.terminal.command import deprecated

if TYPE_CHECKING:
    from overhead_lens.machine.request import Effort, Request

SIDES = ("base", "new")
_OLD_BASE = "old"

# What typer raises for a wrong command line. Newer releases carry a click of their own, so it is found by descent:
# BadParameter is a UsageError, which is a ClickException.
CommandLineError: Any = typer.BadParameter.__mro__[2]


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a target is called; ``compiles``: by torch.compile."""

    inputs: str | None = None
    compiles: bool = False
    mode: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    def over(self, both: CallOptions) -> CallOptions:
        """These options, completed by those for both sides."""
        return CallOptions(
            inputs=self.inputs or both.inputs,
            compiles=self.compiles or both.compiles,
            mode=self.mode or both.mode,
            params={**both.params, **self.params},
        )

    @property
    def compile_options(self) -> dict[str, Any] | None:
        """Keyword arguments of torch.compile; None for eager.

        Raises:
            UsageError: A mode without ``--compile``.
        """
        if not self.compiles:
            if self.mode is not None:
                raise UsageError("--mode needs --compile")
            return None
        return {} if self.mode is None else {"mode": self.mode}

    def request(
        self, target: str, timeout_s: float, effort: Effort | None = None, output: Path | None = None
    ) -> Request:
        """A request to measure a target with these options.

        Raises:
            UsageError: There is no such target, or a mode without ``--compile``.
        """
        from overhead_lens.machine.request import STANDARD, Request
        from overhead_lens.target import parse_target

        return Request(
            target=parse_target(target, self.inputs),
            params=self.params,
            compile_options=self.compile_options,
            timeout_s=timeout_s,
            output=output,
            effort=effort or STANDARD,
        )


def call_options(
    inputs: Inputs = None, compile_: Compile = False, mode: Mode = None, device: Device = None, param: Param = None
) -> CallOptions:
    """The options on a command line."""
    return CallOptions(inputs, compile_, mode, assignments(param or [], device))


def takes_call_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of ``call_options`` in the place of its parameter ``options``."""
    offered = _parameters(call_options)
    taken = [one for each in _parameters(command) for one in (offered if each.name == "options" else [each])]
    signature = inspect.Signature(taken)

    @functools.wraps(command)
    def taking(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.arguments
        options = call_options(**{parameter.name: values.pop(parameter.name) for parameter in offered})
        return command(options=options, **values)

    taking.__signature__ = signature  # type: ignore[attr-defined]
    taking.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return taking


def parse_side(text: str) -> tuple[str, CallOptions]:
    """Read ``add1 --compile -p size=3``: a target with options of its own.

    Raises:
        UsageError: It is not one.
    """
    try:
        target, options = _side_command().main(shlex.split(text), prog_name=text, standalone_mode=False)
    except ValueError as error:
        raise UsageError(f"in {text!r}: {error}") from error
    except CommandLineError as error:
        raise UsageError(f"in {text!r}: {error.format_message()}") from error
    return target, options


def by_side(option: str, texts: Sequence[str]) -> dict[str, str]:
    """``base=X`` and ``new=Y`` of an option that names a side.

    Raises:
        UsageError: Another name, none, or one twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name == _OLD_BASE and value:
            deprecated(f"{option} {name}=", f"{option} {SIDES[0]}=")
            name = SIDES[0]
        if name not in SIDES or not equals or not value:
            raise UsageError(f"{option} takes base=... or new=..., not {text!r}")
        if name in values:
            raise UsageError(f"{option} {name}=... is given twice")
        values[name] = value
    return values


def _side_command() -> Any:
    def side(target: str, options: CallOptions) -> tuple[str, CallOptions]:
        return target, options

    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(takes_call_options(side))
    return typer.main.get_command(app)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())
