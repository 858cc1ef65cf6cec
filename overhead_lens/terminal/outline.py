"""What a Python file offers to measure, read from its syntax tree: the file is never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_LARGEST_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Outline:
    """The names in a file that can be measured.

    Attributes:
        summary: The scenario's; empty if the file defines none.
        members: Variants of the scenario, the default one first, or else public functions; name to its docstring's first line.
        parameters: Fields of the scenario's parameters; name to the values that are known, the default one first.
        is_scenario: Whether it defines one.
    """

    summary: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_scenario: bool = False


def outline_of(path: Path) -> Outline:
    """The outline of a file; an empty one if it cannot be read or is not Python."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return Outline()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return Outline()
    functions = {
        node.name: (ast.get_docstring(node) or "").partition("\n")[0]
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    scenario = _scenario(tree)
    if scenario is None:
        return Outline(members={name: summary for name, summary in functions.items() if not name.startswith("_")})
    given = {keyword.arg: keyword.value for keyword in scenario.keywords}
    return Outline(
        _text(given.get("summary")),
        {name: functions.get(function, "") for name, function in _variants(given.get("variants"))},
        _parameters(tree, given.get("params")),
        is_scenario=True,
    )


def _scenario(tree: ast.Module) -> ast.Call | None:
    """``Scenario(...)`` of ``SCENARIO = Scenario(...)``."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "SCENARIO" for target in targets):
                return node.value
    return None


def _text(value: ast.expr | None) -> str:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _variants(value: ast.expr | None) -> list[tuple[str, str]]:
    """Names of the variants, each with that of its function."""
    if not isinstance(value, ast.Dict):
        return []
    pairs = zip(value.keys, value.values, strict=True)
    return [
        (_text(key), function.id if isinstance(function, ast.Name) else "") for key, function in pairs if _text(key)
    ]


def _parameters(tree: ast.Module, value: ast.expr | None) -> dict[str, Sequence[str]]:
    """Fields of the class that ``params`` names, if it is defined in the same file."""
    name = value.id if isinstance(value, ast.Name) else ""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields = [
                each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            return {each.target.id: _values(each) for each in fields if isinstance(each.target, ast.Name)}
    return {}


def _values(each: ast.AnnAssign) -> list[str]:
    """The default of a field, and what else it may be: the other choices of a ``Literal`` or a ``bool``."""
    default = [_shown(each.value)] if isinstance(each.value, ast.Constant) else []
    kind = each.annotation
    choices: list[str] = []
    if isinstance(kind, ast.Name) and kind.id == "bool":
        choices = ["false", "true"]
    elif isinstance(kind, ast.Subscript) and ast.unparse(kind.value).endswith("Literal"):
        elements = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        choices = [_shown(element) for element in elements if isinstance(element, ast.Constant)]
    return list(dict.fromkeys(default + choices))


def _shown(value: ast.Constant) -> str:
    """A value as ``-p`` takes it."""
    return str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
