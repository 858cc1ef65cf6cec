"""What a scenario is: one Python file that defines ``SCENARIO``. ``target.py`` finds and loads one.

Standard library only: the measuring worker imports this module, possibly under another interpreter that has
nothing but torch.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from overhead_lens.errors import UsageError
from overhead_lens.subject import Kind

# Names that a message lists.
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Work:
    """The work that one measured call does, for figures per unit and for the roofline floor.

    Attributes:
        units: What the call processes (vectors, rows, elements), as named by the scenario's summary.
        flops: Floating-point operations of the algorithm, not of an implementation.
        bytes: Bytes that must at least cross to or from memory: each input read once, each output written once.
    """

    units: int = 1
    flops: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        if self.units < 1 or self.flops < 0 or self.bytes < 0:
            raise UsageError(f"work needs units >= 1, flops >= 0 and bytes >= 0, not {self}")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of one call, and the values that its function reached where it was called, if another process did."""

    by_position: tuple[Any, ...] = ()
    by_name: Mapping[str, Any] = field(default_factory=dict)
    reached: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> tuple[Any, ...]:
        """All arguments, keyword arguments last."""
        return (*self.by_position, *self.by_name.values())


@dataclass(frozen=True, slots=True)
class NoParams:
    """Parameters of a function that has none that the command line could set."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workload with its inputs, variants and check.

    Attributes:
        name: Short identifier; also the stem of its file when built in.
        summary: One line that says what is measured.
        params: Frozen dataclass type whose fields all have defaults.
        inputs: ``inputs(params) -> tuple``: the arguments of one call; ``Arguments`` where some are passed by name. Random seeds
            are set before it.
        variants: Name to function of those arguments; the first is the default.
        check: ``check(params, inputs, output)`` raises if the result is wrong; runs before anything is timed.
        work: ``work(params) -> Work``.
        kind: What reports call it; a file that defines a scenario leaves it as it is.
    """

    name: str
    summary: str
    source: str
    params: type
    inputs: Callable[[Any], tuple[Any, ...] | Arguments]
    variants: Mapping[str, Callable[..., Any]]
    check: Callable[[Any, tuple[Any, ...], Any], None] | None = None
    work: Callable[[Any], Work] | None = None
    kind: Kind = "scenario"

    def __post_init__(self) -> None:
        if not self.name or not self.variants:
            raise UsageError("a scenario needs a name and at least one variant")
        if not (isinstance(self.params, type) and dataclasses.is_dataclass(self.params)):
            raise UsageError(f"scenario {self.name}: params must be a dataclass type, not {self.params!r}")
        for each in dataclasses.fields(self.params):
            if each.init and each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
                raise UsageError(f"scenario {self.name}: parameter {each.name} needs a default")

    def variant(self, name: str | None) -> str:
        """The variant called ``name``, or the default one.

        Raises:
            UsageError: No variant has that name.
        """
        if name is None:
            return next(iter(self.variants))
        if name not in self.variants:
            raise UsageError(f"scenario {self.name} has no variant {name!r}{nearest(name, self.variants)}")
        return name


def make_params(scenario: Scenario, assignments: Mapping[str, str]) -> Any:
    """The scenario's parameters with ``assignments`` (field name to text) applied by each field's type.

    Raises:
        UsageError: An unknown field, or a text that is not of the field's type.
    """
    known = [each.name for each in dataclasses.fields(scenario.params) if each.init]
    if assignments and scenario.kind != "scenario":
        raise UsageError(f"a {scenario.kind} has no parameters: leave -p and --device out, its inputs say it all")
    for name in assignments:
        if name not in known:
            raise UsageError(f"scenario {scenario.name} has no parameter {name!r}{nearest(name, known)}")
    try:
        hints = typing.get_type_hints(scenario.params)
    except NameError as error:
        raise UsageError(f"scenario {scenario.name}: the type of a parameter is unknown: {error}") from error
    values = {name: parse_value(name, hints[name], text) for name, text in assignments.items()}
    try:
        return scenario.params(**values)
    except (TypeError, ValueError, AssertionError) as error:
        raise UsageError(f"scenario {scenario.name}: bad parameters: {' '.join(str(error).split())}") from error


def parse_value(name: str, kind: Any, text: str) -> Any:
    """``text`` as a value of ``kind`` (bool, int, float, str or a Literal).

    Raises:
        UsageError: The text is not of that kind.
    """
    if typing.get_origin(kind) is typing.Literal:
        choices = {str(choice): choice for choice in typing.get_args(kind)}
        if text not in choices:
            raise UsageError(f"parameter {name} must be one of {', '.join(choices)}, not {text!r}")
        return choices[text]
    if kind is bool:
        values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in values:
            raise UsageError(f"parameter {name} must be true or false, not {text!r}")
        return values[text.lower()]
    if kind is str:
        return text
    if kind not in (int, float):
        raise UsageError(f"parameter {name} has type {kind!r}, which cannot be set from the command line")
    try:
        number: int | float = kind(text)
    except ValueError:
        raise UsageError(f"parameter {name} must be of type {kind.__name__}, not {text!r}") from None
    if kind is float and not math.isfinite(number):
        raise UsageError(f"parameter {name} must be finite, not {text!r}")
    return number


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """The end of a message that knows no ``name``: what was meant, else what there is."""
    known = list(known)
    if close := difflib.get_close_matches(name, known, n=1, cutoff=0.5):
        return f"; did you mean {close[0]!r}?"
    listed = [*known[:_MOST_NAMES], *(["..."] if len(known) > _MOST_NAMES else [])]
    return f" (it has: {', '.join(listed) or 'none'})"
