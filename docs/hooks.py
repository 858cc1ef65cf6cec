"""Fills documentation pages with results, command output and reference tables (``make docs-tables``).

A page therefore reads the same in the repository and on the site, and a test checks that it is up to date. The text between one
of these comments and ``<!-- end -->`` is generated:

=====================================  =================================================================
``<!-- result: known-costs -->``       ``docs/results/known-costs.json``: method, command, table
``<!-- commands -->``                  every command, from the program's own ``--help``
``<!-- schemas -->``                   every JSON document, from ``docs/reference/NAME.json``
``<!-- rules -->``                     ``overhead_lens/taxonomy/rules.toml`` with its sources
``<!-- remedies -->``                  the remedies that ``advise`` tries
``<!-- results: published -->``        every ``docs/results/published-*.json``, each below its question
``<!-- api -->``                       what ``import overhead_lens`` offers, from its signatures and docstrings
=====================================  =================================================================

In running text a figure is a link to its result, whose title says which figure it is (``;`` parts conditions on rows)::

    [31 %](results/verdicts-eager.json "slower; slow-down=0.01; in=a new function")   a cell: exactly one row must be left
    [13](results/wild.json "count; verdict=right")                                    a number of rows
    [2 %](results/run-cost.json "mean of inside less outside")                        mean, median, least or largest
    [...](results/wild.json "measured")                                               the day and the machine

A block ```` ```console run ```` holds one command after ``$`` and its output. Below ```` ```console page ```` the site
embeds the page that the command writes with ``--html``.
Whatever is missing or fails is an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import inspect
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
SCHEMAS = ROOT / "docs" / "reference"

# The program is this checkout's, wherever mkdocs was started.
sys.path.insert(0, str(ROOT))

from overhead_lens.units import format_ns  # noqa: E402

_BLOCK = re.compile(
    r"^(?P<asked><!-- (?P<what>result|results|commands|schemas|rules|remedies|categories|parts|api)(?:: (?P<name>[\w-]+))? -->)"
    r"\n.*?^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
_FIGURE = re.compile(r'\[[^\[\]]*\]\((?P<path>[./]*results/(?P<name>[\w-]+)\.json) "(?P<asked>[^"]+)"\)')
_CONDITION = re.compile(r"(?P<column>.+?)(?P<sign>>=|<=|!~|!=|=|~)(?P<value>.*)")
_RUN = re.compile(r"^```console run\n\$ (?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"^```console page\n\$ (?P<command>.+ --html (?P<file>\S+))\n```$", re.MULTILINE)

# Letters of a line of output, and of a list in a rule, in the site's column.
WIDTH = 104
_TOML_WIDTH = 90

# From here on a measured number has no decimals.
_WHOLE = 1_000


class MissingError(PluginError):
    """A page asks for what is not there; mkdocs says so and ends."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its frames, and its blocks as the site's highlighter knows them (an event of mkdocs)."""
    shown = markdown.replace("```console run\n", "```console\n")
    return _PAGE.sub(lambda found: _framed(found["command"], found["file"]), shown)


def filled(markdown: str) -> str:
    """The page with its generated blocks, figures and outputs up to date.

    Raises:
        MissingError: Something is not there, or a command fails.
    """
    shown = _BLOCK.sub(lambda found: f"{found['asked']}\n\n{_rendered(found).strip()}\n\n<!-- end -->", markdown)
    return _RUN.sub(lambda found: _with_output(_command(found["text"])), _FIGURE.sub(_linked, shown))


def write_tables() -> None:
    """Update every page below ``docs``, and print the names of those that changed."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (now := filled(text)) != text:
            page.write_text(now, encoding="utf-8")
            print(page.relative_to(ROOT))


def on_post_build(config: Any) -> None:
    """Write the pages that frames show, beside those of the site (an event of mkdocs)."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        folder = Path(config["site_dir"], page.relative_to(ROOT / "docs").with_suffix(""))
        for found in _PAGE.finditer(page.read_text(encoding="utf-8")):
            written = folder / found["file"]
            _succeeded(found["command"].replace(f"--html {found['file']}", f"--html {shlex.quote(str(written))}"))


def _framed(command: str, file: str) -> str:
    """The command, a link to the page that it writes, and that page."""
    title = html.escape(command)
    return (
        f"```console\n$ {command}\n```\n\n"
        f'<p><a href="{file}">Open it by itself</a></p>\n'
        f'<iframe src="{file}" title="{title}" loading="lazy" style="width:100%;height:42rem;border:1px solid #8886"></iframe>\n'
    )


def _rendered(asked: re.Match[str]) -> str:
    write: Mapping[str, Callable[[], str]] = {
        "result": lambda: result_text(asked["name"]),
        "results": lambda: results_text(asked["name"]),
        "commands": commands_text,
        "schemas": schemas_text,
        "rules": rules_text,
        "remedies": remedies_text,
        "categories": categories_text,
        "parts": parts_text,
        "api": api_text,
    }
    return write[asked["what"]]()


# ---------------------------------------------------------------- a figure that was measured
def result_text(name: str) -> str:
    """The method, the command, the machine and the table of a claim.

    Raises:
        MissingError: There is no such file.
    """
    result = _result(name)
    versions = ", ".join(
        f"{what} {result[key]}" for key, what in (("torch", "torch"), ("python", "Python")) if result.get(key)
    )
    revision = f", revision {result['revision']}" if result.get("revision") else ""
    units = [each.get("unit", "") for each in result["columns"]]
    headings = [
        f"{each['name']}, {unit}" if unit not in {"", "share"} else each["name"]
        for each, unit in zip(result["columns"], units, strict=True)
    ]
    rows = [[_measured(value, unit) for value, unit in zip(row, units, strict=True)] for row in result["rows"]]
    return "\n".join(
        [
            result["method"],
            "",
            *([f"```bash\n{result['command']}\n```", ""] if result["command"] else ()),
            f"Measured on {result['measured_on']}{revision}: {result['machine']}{'; ' if versions else ''}{versions}.",
            "",
            *table(headings, rows),
            "",
            *(f"- {note}" for note in result.get("notes", ())),
        ]
    )


def _result(name: str) -> dict[str, Any]:
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise MissingError(f"a page asks for {path.relative_to(ROOT)}, which is not there")
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _linked(found: re.Match[str]) -> str:
    asked = " ".join(found["asked"].split())
    return f'[{_figure(found["name"], asked)}]({found["path"]} "{asked}")'


def _figure(name: str, asked: str) -> str:
    """One figure of a result, as a sentence can hold it.

    Raises:
        MissingError: There is no such result or column, or not exactly one row for a cell.
    """
    result = _result(name)
    what, *conditions = asked.split("; ")
    if what == "measured":
        return f"{result['measured_on']}, {result['machine']}"
    units = {each["name"]: each.get("unit", "") for each in result["columns"]}
    rows = [dict(zip(units, row, strict=True)) for row in result["rows"]]
    for condition in conditions:
        rows = [row for row in rows if _holds(condition, row, f"{name}: {asked}")]
    if what == "count":
        return str(len(rows))
    statistic, _, column = what.partition(" of ") if what not in units else ("", "", what)
    values = [row[column] for row in rows] if column in units and (statistic in _STATISTICS or len(rows) == 1) else []
    if not values:
        raise MissingError(f"{name}: {asked}: no such column, or {len(rows)} rows where one is needed")
    value = _STATISTICS[statistic](values) if statistic else values[0]
    match units[column]:
        case "" | "share" as unit:
            return _measured(value, unit)
        case "ns":
            return format_ns(value)
        case unit:
            return f"{value:.3g} {unit}"


_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "least": min,
    "largest": max,
}


def _holds(condition: str, row: Mapping[str, Any], asked: str) -> bool:
    """Whether a row meets ``column=value``; ``~`` is "contains", ``!`` negates."""
    found = _CONDITION.fullmatch(condition)
    if found is None or found["column"] not in row:
        raise MissingError(f"{asked}: no condition on a column: {condition!r}")
    value, wanted = row[found["column"]], found["value"]
    match found["sign"]:
        case "~" | "!~" as sign:
            return (wanted in str(value)) == (sign == "~")
        case ">=" | "<=" as sign:
            return value is not None and (value >= float(wanted) if sign == ">=" else value <= float(wanted))
        case sign:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            same = value == float(wanted) if number else _measured(value, "") == wanted
            return same == (sign == "=")


def results_text(prefix: str) -> str:
    """Every result whose name begins so.

    Raises:
        MissingError: There is none.
    """
    paths = sorted(RESULTS.glob(f"{prefix}-*.json"))
    if not paths:
        raise MissingError(f"a page asks for {(RESULTS / prefix).relative_to(ROOT)}-*.json, of which there is none")
    questions = {path.stem: json.loads(path.read_text(encoding="utf-8"))["question"] for path in paths}
    return "\n\n".join(f"## {question}\n\n{result_text(name)}" for name, question in questions.items())


def _measured(value: Any, unit: str) -> str:
    """A cell of a result; a share in percent, an interval with its ends."""
    if value is None:
        return ""
    if isinstance(value, list):
        return f"{_measured(value[0], unit)} .. {_measured(value[1], unit)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if unit == "share":
        return f"{100 * value:.3g} %"
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < _WHOLE else f"{value:,.0f}"


# ---------------------------------------------------------------- the program
def commands_text() -> str:
    """Every command with its arguments and options."""
    import typer

    from overhead_lens.__main__ import application

    return "\n".join(_command_lines((), typer.main.get_command(application())))


def _command_lines(path: tuple[str, ...], command: Any) -> Iterator[str]:
    """A command; of a group its commands, in the order of ``--help``."""
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from _command_lines((*path, name), each)
        return
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    usage = " ".join(["overhead-lens", *path, *command.collect_usage_pieces(context)])
    yield from (f"## {' '.join(path)}", "", command.help, "", f"```text\n{usage}\n```", "")
    records = [each.get_help_record(context) for each in command.params]
    rows = [(f"`{name}`", said) for name, said in filter(None, records) if "--help" not in name]
    if rows:
        yield from (*table(("argument or option", "what it does"), rows), "")


# ---------------------------------------------------------------- the Python API
def api_text() -> str:
    """What ``import overhead_lens`` offers, then the results that it returns."""
    import overhead_lens

    offered = {name: getattr(overhead_lens, name) for name in overhead_lens.__all__}
    functions = (line for name, function in offered.items() for line in _function_lines(name, function))
    return "\n".join([*functions, *(line for result in _results() for line in _result_lines(result))])


def _results() -> list[type]:
    """The classes of results by name, and what they consist of that every reader needs."""
    from overhead_lens import api
    from overhead_lens.budget.model import HostCategory, Wall
    from overhead_lens.comparison.model import CategoryChange
    from overhead_lens.result import Result

    found = [each for each in vars(api).values() if isinstance(each, type) and issubclass(each, Result)]
    return [*sorted(found, key=lambda each: each.__name__), Wall, HostCategory, CategoryChange]


def _function_lines(name: str, function: Callable[..., Any]) -> Iterator[str]:
    # Annotations are strings: without their quotes they read as they are written.
    parameters = str(inspect.signature(function)).replace("'", "")
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("Example:")
    said, _, raised = text.replace("``", "`").partition("Raises:")
    described, _, arguments = said.partition("Args:")
    yield from (f"## ol.{name}", "", f"```text\nol.{name}{parameters}\n```", "", " ".join(described.split()), "")
    for heading, rows in (("argument", arguments), ("raises", raised)):
        if rows.strip():
            yield from (*table((heading, "what it is" if heading == "argument" else "when"), _named(rows)), "")
    if example.strip():
        yield from (f"```pycon\n{inspect.cleandoc(example)}\n```", "")


def _result_lines(result: type) -> Iterator[str]:
    described, said = _described(re.sub(r"\n {8,}", " ", inspect.cleandoc(result.__doc__ or "")))
    yield from (f"## {result.__name__}", "", described, "")
    rows = [(f"`{each.name}`", f"`{each.type}`", said.get(each.name, "")) for each in dataclasses.fields(result)]
    yield from (*table(("attribute", "type", "what it is"), rows), "")


def _named(lines: str) -> Iterator[tuple[str, str]]:
    """The names of a Google-style section with what it says of each."""
    for line in re.sub(r"\n {8,}", " ", inspect.cleandoc("\n" + lines)).splitlines():
        name, _, said = line.strip().partition(": ")
        yield f"`{name}`", said


# ---------------------------------------------------------------- JSON documents
def schemas_text() -> str:
    """Every document: what prints it, its schema's file, and its types with their fields."""
    from overhead_lens.documents.registry import SUMMARIES

    return "\n".join(line for name, summary in SUMMARIES.items() for line in _schema_lines(name, summary))


def _schema_lines(name: str, summary: str) -> Iterator[str]:
    path = SCHEMAS / f"{name}.json"
    if not path.is_file():
        raise MissingError(f"{path.relative_to(ROOT)} is not there: run `make schemas`")
    schema = json.loads(path.read_text(encoding="utf-8"))
    what, _, command = summary.partition(" (")
    yield from (f"## {name}", "", f"{_capital(what)}. Printed by {command.removesuffix(')')}.", "")
    yield from (f'`"schema": "{schema["$id"]}"`, [{name}.json]({name}.json)', "")
    for title, kind in schema["$defs"].items():
        described, fields = _described(kind.get("description", ""))
        if "properties" not in kind:
            continue
        yield from (f"### {title} {{#{name}-{title.lower()}}}", "", described, "")
        rows = [(f"`{key}`", _type(name, value), fields.get(key, "")) for key, value in kind["properties"].items()]
        headings = ("field", "type", "what it says")
        yield from (*(table(headings, rows) if fields else table(headings[:2], [row[:2] for row in rows])), "")


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """A type's docstring in Markdown, and what it says of each attribute."""
    text, _, attributes = docstring.replace("``", "`").partition("Attributes:")
    fields: dict[str, str] = {}
    for line in re.sub(r"\n {12,}", " ", attributes).splitlines():
        names, colon, said = line.strip().partition(": ")
        fields.update(dict.fromkeys(names.split(", "), said) if colon else {})
    return " ".join(text.split()), fields


def _type(document: str, value: Mapping[str, Any]) -> str:
    """A JSON schema's type in words, types of the document linked."""
    match value:
        case {"$ref": reference}:
            title = reference.rpartition("/")[2]
            said = f"[{title}](#{document}-{title.lower()})"
        case {"anyOf": kinds}:
            said = " or ".join(_type(document, each) for each in kinds)
        case {"enum": values}:
            said = " or ".join(f"`{json.dumps(each)}`" for each in values)
        case {"prefixItems": kinds}:
            said = f"[{', '.join(_type(document, each) for each in kinds)}]"
        case {"type": "array", "items": {} as kind}:
            said = f"list of {_type(document, kind)}"
        case {"additionalProperties": {} as kind}:
            said = f"object of {_type(document, kind)}"
        case _:
            said = str(value.get("type", "any"))
    return said


# ---------------------------------------------------------------- categories and rules of the classifier
def categories_text() -> str:
    """The categories in their order, and what belongs to each."""
    from overhead_lens.taxonomy.categories import CATEGORIES

    return "\n".join(table(("category", "what belongs to it"), ((f"`{row.name}`", row.summary) for row in CATEGORIES)))


def parts_text() -> str:
    """The parts of the categories, and what belongs to each."""
    from overhead_lens.taxonomy.categories import CATEGORIES

    rows = ((f"`{row.name}/{part}`", summary) for row in CATEGORIES for part, summary in row.parts.items())
    return "\n".join(table(("part", "what belongs to it"), rows))


def remedies_text() -> str:
    """The remedies, folder by folder: what each does, by which line, and how safe it is."""
    from overhead_lens.remedies.registry import built_in

    rows = (
        (f"[`{each.name}`]({each.source})", html.escape(each.summary), f"`{each.how}`", each.safety.replace("_", " "))
        for each in built_in()
    )
    return "\n".join(table(("remedy", "what it does", "how", "safety"), rows))


def rules_text() -> str:
    """The rules in their order, each with what it matches and the source that justifies it."""
    rules = tomllib.loads((ROOT / "overhead_lens" / "taxonomy" / "rules.toml").read_text(encoding="utf-8"))["rule"]
    return "\n".join(line for number, rule in enumerate(rules, 1) for line in _rule_lines(number, rule))


def _rule_lines(number: int, rule: Mapping[str, Any]) -> Iterator[str]:
    claim = "/".join(filter(None, (rule["category"], rule.get("part"))))
    yield from (f"### {number}. {claim} {{#rule-{number}}}", "", f"Source: {html.escape(rule['source'])}", "")
    conditions = {key: value for key, value in rule.items() if key not in {"category", "part", "source"}}
    yield "```toml"
    yield from (f"{key} = {_toml(value)}" for key, value in conditions.items())
    yield from ("```", "")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    line = f"[{', '.join(map(_toml, value))}]"
    return line if len(line) <= _TOML_WIDTH else "\n  ".join(["[", *(f"{_toml(each)}," for each in value)]) + "\n]"


# ---------------------------------------------------------------- output of commands
def _command(text: str) -> str:
    """The command at the start of a block: up to the line that closes its quotes."""
    lines = text.splitlines()
    for count in range(1, len(lines)):
        with contextlib.suppress(ValueError):
            shlex.split("\n".join(lines[:count]))
            return "\n".join(lines[:count])
    return text.rstrip("\n")


def _with_output(command: str) -> str:
    output = "\n".join(line.rstrip() for line in _succeeded(command).stdout.splitlines())
    return f"```console run\n$ {command}\n{output}\n```"


def _succeeded(command: str) -> subprocess.CompletedProcess[str]:
    """What became of a command; 1 is a regression that was found, which may be what the page shows."""
    done = executed(command)
    if done.returncode not in {0, 1}:
        raise MissingError(f"`{command}` ended with {done.returncode}: {done.stderr.strip()}")
    return done


@functools.cache
def executed(command: str) -> subprocess.CompletedProcess[str]:
    """What became of a command of this program, run in the checkout; once for all pages."""
    program, *arguments = shlex.split(command)
    if program != "overhead-lens":
        raise MissingError(f"only overhead-lens is run at build time, not {command!r}")
    return subprocess.run(
        [sys.executable, "-m", "overhead_lens", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(WIDTH)},
        capture_output=True,
        text=True,
        check=False,
    )


# ---------------------------------------------------------------- Markdown
def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; columns of numbers stand to the right."""
    cells = [[each.replace("|", "\\|") for each in row] for row in rows]
    numeric = [all(_is_number(row[column]) for row in cells) for column in range(len(headings))]
    yield f"| {' | '.join(headings)} |"
    yield f"| {' | '.join('---:' if each else '---' for each in numeric)} |"
    yield from (f"| {' | '.join(row)} |" for row in cells)


def _is_number(cell: str) -> bool:
    return not cell or cell[0] in "+-−0123456789"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    write_tables()
