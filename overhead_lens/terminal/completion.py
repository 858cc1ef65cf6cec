r"""Candidates for shell completion: targets, parameters, captures. typer asks, when the shell does.

A shell waits for it at a key press: the standard library only, no file is run, errors are silent. Names that a shell
would have to quote are left out, for what it makes of them is its own; so no name of a file is ever obeyed.

bash splits words at ``:`` and ``=`` and replaces the last piece only::

    linear_loop:ba|     COMP_WORDS = linear_loop  :  ba     joined: linear_loop:ba    answered: batched
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from overhead_lens.target import builtin_paths

COMPLETE_VARIABLE = "_OVERHEAD_LENS_COMPLETE"

Candidate = tuple[str, str]

_PLAIN = re.compile(r"[\w.,+%][\w.,+%-]*")
_NOT_PLAIN = re.compile(r"[^\w .,:;+=/()<>%-]+")
_LARGEST_BYTES = 2_000_000
_TRACES = (".json", ".json.gz", ".pftrace")


# ---------------------------------------------------------------- what typer asks
def complete_target(incomplete: str) -> list[Candidate]:
    """Built-in scenarios, Python files and folders; after the colon of one of them what it offers.

    Where only one is left its variants are listed beside it, so that a shell does not end the word.
    """
    place, colon, _ = incomplete.rpartition(":")
    if colon:
        return _members(place, outline_of(_file(place)))
    scenarios = [(name, path) for name, path in builtin_paths().items() if name.startswith(incomplete)]
    candidates = [(name, _help(outline_of(path).summary)) for name, path in scenarios]
    candidates += _paths(incomplete, lambda entry: entry.name.endswith(".py") and entry.is_file())
    if len(candidates) != 1 or candidates[0][0].endswith("/"):
        return candidates
    name = candidates[0][0]
    outline = outline_of(_file(name))
    more = _members(name, outline)
    if not outline.is_scenario:
        return more or candidates
    return candidates + more if len(more) > 1 else candidates


def complete_parameter(context: typer.Context, incomplete: str) -> list[Candidate]:
    """``NAME=`` for the parameters of the scenario that the command line names; after it the values that are known."""
    target = _named(context)
    known = outline_of(_file(target.rpartition(":")[0] or target)).parameters
    name, equals, _ = incomplete.partition("=")
    if equals:
        return _assignments(name, known.get(name, ()))
    matches = [each for each in known if each.startswith(name)]
    candidates = [(f"{each}=", _help(f"default {known[each][0]}" if known[each] else "")) for each in matches]
    return candidates + _assignments(matches[0], known[matches[0]]) if len(matches) == 1 else candidates


def complete_capture(incomplete: str) -> list[Candidate]:
    """Directories that a recording has finished, and folders that may hold some."""
    return _paths(incomplete, _is_capture)


def complete_capture_or_trace(incomplete: str) -> list[Candidate]:
    """Captures, as above, and exported traces."""
    return _paths(incomplete, lambda entry: entry.name.endswith(_TRACES) or _is_capture(entry))


# ---------------------------------------------------------------- candidates
def _members(place: str, outline: Outline) -> list[Candidate]:
    return [(f"{place}:{name}", _help(summary)) for name, summary in outline.members.items() if _PLAIN.fullmatch(name)]


def _assignments(name: str, values: Sequence[str]) -> list[Candidate]:
    return [(f"{name}={value}", "") for value in values if _PLAIN.fullmatch(value)]


def _named(context: typer.Context) -> str:
    """The first target on the command line, taken from unparsed words if an option without its value ended the parsing."""
    values = [context.params.get(name) for name in ("target", "targets", "base")]
    words = [word for value in values if value for word in ([value] if isinstance(value, str) else value)]
    return str([*words, *context.args, ""][0]).partition(" ")[0]


def _file(place: str) -> Path:
    return builtin_paths().get(place) or Path(place).expanduser()


def _is_capture(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and os.path.isfile(os.path.join(entry.path, "meta.json"))  # noqa: PTH113, PTH118


def _paths(incomplete: str, is_candidate: Callable[[os.DirEntry[str]], bool]) -> list[Candidate]:
    """Matching entries of the folder that is being typed, and its folders; a folder that is the only one is entered."""
    paths = list(_entries(incomplete, is_candidate))
    while len(paths) == 1 and paths[0].endswith("/"):
        inside = list(_entries(paths[0], is_candidate))
        if not inside:
            break
        paths = inside
    return [(path, "") for path in paths]


def _entries(incomplete: str, is_candidate: Callable[[os.DirEntry[str]], bool]) -> Iterator[str]:
    folder, slash, start = incomplete.rpartition("/")
    hidden = start.startswith(".")
    try:
        entries = sorted(os.scandir(Path(folder + slash or ".").expanduser()), key=lambda entry: entry.name)
    except (OSError, ValueError, RuntimeError):
        return
    for entry in entries:
        if (
            entry.name.startswith(start)
            and _PLAIN.fullmatch(entry.name)
            and (hidden or not entry.name.startswith((".", "__")))
        ):
            if is_candidate(entry):
                yield folder + slash + entry.name
            elif entry.is_dir():
                yield f"{folder}{slash}{entry.name}/"


def _help(text: str) -> str:
    """An explanation of characters that mean nothing to a shell or to markup."""
    return " ".join(_NOT_PLAIN.sub(" ", text).split())


# ---------------------------------------------------------------- the shell
def answer(app: typer.Typer) -> int:
    """Print what the shell in ``_OVERHEAD_LENS_COMPLETE`` asks for; returns the exit code."""
    code: object = 0
    before, printed = "", io.StringIO()
    with contextlib.suppress(Exception), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        before = join_words(os.environ) if os.environ[COMPLETE_VARIABLE] == "complete_bash" else ""
        try:
            app(standalone_mode=False, complete_var=COMPLETE_VARIABLE)
        except SystemExit as end:
            code = end.code
    for line in printed.getvalue().splitlines():
        print(line.removeprefix(before))
    return code if isinstance(code, int) else 0


def join_words(variables: MutableMapping[str, str]) -> str:
    """Join words that bash split at ``:`` and ``=``; returns the part of the current word before the piece to be replaced."""
    words, current = variables["COMP_WORDS"].split("\n"), int(variables["COMP_CWORD"])
    joined: list[str] = []
    after_break = False
    for word in words[: current + 1]:
        is_break = bool(word) and not word.strip(":=")
        if joined and word and (is_break or after_break):
            joined[-1] += word
        else:
            joined.append(word)
        after_break = is_break
    variables["COMP_WORDS"], variables["COMP_CWORD"] = "\n".join(joined), str(len(joined) - 1)
    before = joined[-1] if after_break else joined[-1].removesuffix(words[current])
    # --param=size= : what typer answers begins behind the option's name.
    return before.partition("=")[2] if before.startswith("--") else before


# ---------------------------------------------------------------- what a file offers, by its syntax tree: it is never run
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
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), [])
    fields = [each for each in body if isinstance(each, ast.AnnAssign)]
    return {each.target.id: _values(each) for each in fields if isinstance(each.target, ast.Name)}


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
    return str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
