"""What a scenario is, and how one is found and loaded.

A scenario is one Python file that defines ``SCENARIO``. Built-in scenarios and a user's own file go through the same
functions: a name on the command line is looked up in the built-in folder, anything that looks like a path is a path.

Standard library only: the measuring worker imports this module, possibly under another interpreter that has
nothing but torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib.util
import math
import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from overhead_lens.errors import OverheadLensError, UsageError


@dataclass(frozen=True, slots=True)
class Work:
    """The work that one measured call does, for figures per unit and for the roofline floor.

    Attributes:
        units: What the call processes (vectors, rows, elements), as named by the scenario's summary.
        flops: Floating-point operations of the algorithm, not of an implementation.
        bytes: Bytes that must at least cross to or from memory: each input read once, each output written once.
        shared_bytes: Those of ``bytes`` that every unit needs (a layer's weight): units that are processed one at a time read
            them again for each.
    """

    units: int = 1
    flops: int = 0
    bytes: int = 0
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        if self.units < 1 or self.flops < 0 or not 0 <= self.shared_bytes <= self.bytes:
            raise UsageError(f"work needs units >= 1, flops >= 0 and bytes >= shared_bytes >= 0, not {self}")


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that somebody printed for this workload; never a pass mark.

    Attributes:
        label: What was measured, in the author's words.
        ns: Nanoseconds per call.
        variant: The variant it belongs to.
        compile: Whether it was measured under torch.compile.
        source: Document and machine.
        params: Parameter values it holds for, by field name; the others, or all when empty, at their defaults.
        rung: Rung of the ablation ladder it belongs to; empty if it is none.
    """

    label: str
    ns: float
    variant: str
    compile: bool = False
    source: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    rung: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workload with its inputs, variants, check and reference figures.

    Attributes:
        name: Short identifier; also the stem of its file when built in.
        summary: One line that says what is measured.
        source: Where the workload comes from.
        params: Frozen dataclass type whose fields all have defaults.
        inputs: ``inputs(params) -> tuple``: the arguments of one call. Random seeds are set before it.
        variants: Name to function of those arguments; the first is the default.
        check: ``check(params, inputs, output)`` raises if the result is wrong; runs before anything is timed.
        work: ``work(params) -> Work``.
        published: Reference figures.
    """

    name: str
    summary: str
    source: str
    params: type
    inputs: Callable[[Any], tuple[Any, ...]]
    variants: Mapping[str, Callable[..., Any]]
    check: Callable[[Any, tuple[Any, ...], Any], None] | None = None
    work: Callable[[Any], Work] | None = None
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or not self.variants:
            raise UsageError("a scenario needs a name and at least one variant")
        if not (isinstance(self.params, type) and dataclasses.is_dataclass(self.params)):
            raise UsageError(f"scenario {self.name}: params must be a dataclass type, not {self.params!r}")
        for each in dataclasses.fields(self.params):
            if each.init and each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
                raise UsageError(f"scenario {self.name}: parameter {each.name} needs a default")
        self._check_published({each.name for each in dataclasses.fields(self.params)})

    def _check_published(self, parameters: set[str]) -> None:
        for each in self.published:
            if each.variant not in self.variants:
                raise UsageError(f"scenario {self.name}: figure {each.label!r} names no variant {each.variant!r}")
            for unknown in sorted(set(each.params) - parameters):
                raise UsageError(f"scenario {self.name}: figure {each.label!r} names no parameter {unknown!r}")

    def variant(self, name: str | None) -> str:
        """The variant called ``name``, or the default one.

        Raises:
            UsageError: No variant has that name.
        """
        if name is None:
            return next(iter(self.variants))
        if name not in self.variants:
            raise UsageError(f"scenario {self.name} has no variant {name!r}{_nearest(name, self.variants)}")
        return name


@dataclass(frozen=True, slots=True)
class Target:
    """What the command line names: a scenario file and, after a colon, one of its variants."""

    path: Path
    variant: str | None


def builtin_folder() -> Path:
    """The folder of built-in scenarios: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "scenarios"
    return installed if installed.is_dir() else package.parent / "scenarios"


def builtin_paths() -> dict[str, Path]:
    """Built-in scenario name to file, sorted by name."""
    return {path.stem: path for path in sorted(builtin_folder().glob("*.py")) if not path.stem.startswith("_")}


def parse_target(text: str) -> Target:
    """Read ``NAME[:VARIANT]`` or ``path/to/file.py[:VARIANT]``.

    Raises:
        UsageError: No such built-in name or no such file.
    """
    name, colon, variant = text.rpartition(":")
    if not colon or name == "" or variant.endswith(".py") or "/" in variant or "\\" in variant:
        name, variant = text, ""
    builtin = builtin_paths()
    if name in builtin:
        return Target(builtin[name], variant or None)
    path = Path(name)
    if path.suffix == ".py" or len(path.parts) > 1:
        if not path.is_file():
            hint = f"; did you mean the built-in {path.stem!r}?" if path.stem in builtin else ""
            raise UsageError(f"no scenario file {name}{hint}")
        return Target(path.resolve(), variant or None)
    close = difflib.get_close_matches(name, builtin, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"no scenario {name!r}{hint} (`overhead-lens scenarios` lists them)")


def load(path: Path) -> Scenario:
    """Execute a scenario file and return its ``SCENARIO``.

    Raises:
        UsageError: The file cannot be executed or defines no Scenario; the message names the line at fault.
    """
    path = path.absolute()
    module = _execute(path)
    scenario = getattr(module, "SCENARIO", None)
    if not isinstance(scenario, Scenario):
        raise UsageError(f"{path} defines no SCENARIO = Scenario(...) (import it from overhead_lens.scenario)")
    return scenario


def _execute(path: Path) -> ModuleType:
    # A module name of its own: Dynamo, dataclasses and typing look a function's or class's module up in sys.modules.
    module_name = f"overhead_lens_scenario_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise UsageError(_why_not_executed(error, path)) from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(path.parent))
    return module


def _why_not_executed(error: BaseException, path: Path) -> str:
    """One line that names the line of ``path`` at fault, also where the error is from a file that ``path`` imports."""
    line = _line_in(error, path)
    message = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and line is None:
        return f"{path}:{error.lineno or 1}: syntax error: {error.msg}"
    if isinstance(error, OSError) and line is None:
        return f"cannot read {path}: {error.strerror or message}"
    if isinstance(error, SystemExit):
        return f"{path}:{line or 1}: the file ended the process; a scenario only defines SCENARIO"
    if isinstance(error, OverheadLensError):
        return f"{path}:{line or 1}: {message}"
    return f"{path}:{line or 1}: {type(error).__name__}: {message}"


def make_params(scenario: Scenario, assignments: Mapping[str, str]) -> Any:
    """The scenario's parameters with ``assignments`` (field name to text) applied by each field's type.

    Raises:
        UsageError: An unknown field, or a text that is not of the field's type.
    """
    known = [each.name for each in dataclasses.fields(scenario.params) if each.init]
    for name in assignments:
        if name not in known:
            raise UsageError(f"scenario {scenario.name} has no parameter {name!r}{_nearest(name, known)}")
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
    if kind in (int, float):
        return _parse_number(name, kind, text)
    raise UsageError(f"parameter {name} has type {kind!r}, which cannot be set from the command line")


def _parse_number(name: str, kind: type, text: str) -> int | float:
    try:
        value: int | float = float(text) if kind is float else int(text)
    except ValueError:
        raise UsageError(f"parameter {name} must be of type {kind.__name__}, not {text!r}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"parameter {name} must be finite, not {text!r}")
    return value


def _nearest(name: str, known: typing.Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f" (it has: {', '.join(known) or 'none'})"


def _line_in(error: BaseException, path: Path) -> int | None:
    """The last line of ``path`` in the error's traceback, None if no frame of it is there."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
