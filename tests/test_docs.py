"""README and site: every command and snippet is executed, and what they say of the program is what it is.

Blocks are fenced as ``console`` (lines after ``$`` are run by a shell), ``python`` or ``ipython`` (cells with an empty line between
them). A Python or TOML block whose first line is ``# NAME`` is that file, for the blocks after it. A comment in the line before a block says what is special about it::

    <!-- exit 1 -->            its last command ends with 1
    <!-- measures -->          it records a workload: only options are checked, unless tests marked ``measures`` run
    <!-- not run: REASON -->   only options are checked

Lines of an output that is longer, or that a test draws, stand in a block ``text`` below ``<!-- excerpt: NAME -->``.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

import overhead_lens
from docs import hooks
from overhead_lens.__main__ import application
from overhead_lens.documents.registry import SUMMARIES, json_schema
from overhead_lens.machine.process import Worker
from overhead_lens.taxonomy.categories import HOST_CATEGORIES, PARTS
from tests.cli.run import inside, lens
from tests.documented_constants import ANYWHERE, OF_A_PAGE
from tests.excerpts import assert_shows, excerpts
from tests.public_traces import public_trace
from tests.recorder.effort import little_effort
from tests.worker.warm import TORCH, WORKERS, ended, warm_workers

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = (
    README,
    *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
CAPTURES = ROOT / "traces" / "reference"

# They ask a worker, also where nothing is measured; or are of another process's streams.
ASKING = ("scenarios", "doctor")
IN_A_SHELL = ("run", "attach")
_START = Worker.__init__

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>exit 1|measures|not run: [^\n]+) -->\n)?```(?P<language>console|ipython|python|toml)(?P<shown> run)?(?: page)?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; ``mark`` is what the comment before it says, ``shown`` whether the site shows its output."""

    page: Path
    line: int
    mark: str
    language: str
    shown: bool
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that it is; None for one that is run."""
        found = re.match(r"# (\S+\.(?:py|toml))\n", self.text)
        return found[1] if found else None

    @property
    def commands(self) -> list[str]:
        return (
            [line[2:] for line in self.text.splitlines() if line.startswith("$ ")] if self.language == "console" else []
        )

    @property
    def of_the_program(self) -> Iterator[list[str]]:
        """Arguments of every call of overhead-lens."""
        for command in self.commands:
            words = shlex.split(command, comments=True)
            if words and words[0] == "overhead-lens":
                yield words[1 : words.index("|") if "|" in words else None]


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            found["mark"] or "",
            found["language"],
            bool(found["shown"]),
            found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


EVERY_BLOCK = [block for page in PAGES for block in blocks(page)]


def named(chosen: list[Block]) -> list[Any]:
    return [pytest.param(each, id=each.name) for each in chosen]


def pages_with(mark: str) -> list[Any]:
    """Pages on which a block with that mark is run."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(each.mark == mark and (each.commands or not each.file) for each in blocks(page))
    ]


# ---------------------------------------------------------------- blocks
@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if blocks(page)])
def test_what_a_page_runs_works(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, {}, measuring=False)


@pytest.mark.measures
@pytest.mark.parametrize("page", pages_with("measures"))
def test_what_a_page_measures_works(page: Path, tmp_path: Path) -> None:
    with little_effort(processes=1, sampled=False):
        run_page(page, tmp_path, {"PYTEST_ADDOPTS": "-p tests.recorder.effort"}, measuring=True)


def run_page(page: Path, folder: Path, env: Mapping[str, str], *, measuring: bool) -> None:
    """Run the page's blocks in their order, in one folder that has the reference captures."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"PATH": path, "PYTHONPATH": str(ROOT), **env}
    (folder / "traces").mkdir()
    (folder / "traces" / "reference").symlink_to(CAPTURES)
    for block in blocks(page):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.shown or block.language == "toml":
            continue  # `test_pages_repeat_what_holds_now` runs what is shown
        elif block.mark.startswith("not run") or (block.mark == "measures") != measuring:
            continue
        else:
            run(block, folder, env)


# Runs the cells of its argument; raises what the first that fails does.
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from tests.recorder.effort import little_effort
shell = InteractiveShell()
with little_effort(processes=1, sampled=False):
    for cell in sys.argv[1].split("\\n\\n"):
        shell.run_cell(cell).raise_error()
shell.history_manager.end_session()
"""


def run(block: Block, folder: Path, env: Mapping[str, str]) -> None:
    """Run the commands of a block, or its code."""
    if block.language == "python":
        path = [str(folder), *sys.path]  # as of a script in that folder
        with inside(folder), mock.patch.dict(os.environ, env), mock.patch.object(sys, "path", path):
            exec(compile(block.text, block.name, "exec"), {"__name__": "__main__"})
    elif block.language == "ipython":
        variables = {**os.environ, **env, "IPYTHONDIR": str(folder / ".ipython")}
        if block.mark == "measures":  # it measures in its own process
            done = ended("-c", CELLS, block.text, cwd=folder, env=variables, modules=WORKERS)
            assert done.returncode == 0, f"{block.name}\n{done.stdout}{done.stderr}"
        else:
            argv = mock.patch.object(sys, "argv", ["-c", block.text])
            with inside(folder), mock.patch.dict(os.environ, variables), argv:
                exec(CELLS, {})
    for command in block.commands:
        done = started(command, folder, env)
        expected = 1 if block.mark == "exit 1" and command == block.commands[-1] else 0
        assert done.returncode == expected, f"{block.name}: {command}\n{done.stdout}{done.stderr}"


def started(command: str, folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run in this process, which has everything imported, or one forked from another that has torch, unless it takes a shell."""
    name, *words = shlex.split(command, comments=True)
    if name == "overhead-lens" and "|" not in words and words[0] not in IN_A_SHELL:
        with asking() if words[0] in ASKING else nullcontext():
            return lens(*words, cwd=folder, env=env)
    if name == "pytest":
        return ended("-m", "pytest", *words, cwd=folder, env={**os.environ, **env}, modules=WORKERS)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@contextmanager
def asking() -> Iterator[None]:
    """A worker may start, by a fork."""
    with warm_workers(TORCH), mock.patch.object(Worker, "__init__", _START):
        yield


@pytest.mark.parametrize("block", named([each for each in EVERY_BLOCK if any(each.of_the_program)]))
def test_the_options_of_a_command_exist(block: Block) -> None:
    for arguments in block.of_the_program:
        parse(program(), arguments)


@cache
def program() -> Any:
    return typer.main.get_command(application())


def parse(command: Any, arguments: list[str]) -> None:
    """Raises what a wrong command line raises; nothing is run."""
    if not hasattr(command, "commands"):
        command.make_context(command.name, list(arguments))
        return
    if arguments[0].startswith("-"):
        assert any(arguments[0] in option.opts for option in command.params), f"no option {arguments[0]}"
        return
    assert arguments[0] in command.commands, f"no command {arguments[0]}"
    parse(command.commands[arguments[0]], arguments[1:])


def inline_commands(page: Path) -> list[list[str]]:
    """Arguments of the calls of overhead-lens that stand in running text: ``overhead-lens profile my.py:f``."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(found.replace("PID", "4711")) for found in re.findall(r"`overhead-lens\s([^`]+)`", text)]


@pytest.mark.parametrize(
    ("page", "arguments"),
    [
        pytest.param(page, arguments, id=f"{page.relative_to(ROOT)}:{' '.join(arguments)}")
        for page in PAGES
        for arguments in inline_commands(page)
    ],
)
def test_a_command_in_running_text_can_be_called(page: Path, arguments: list[str]) -> None:
    """A command that stands alone is a name: its arguments may be left out."""
    if arguments != ["--help"] and not (len(arguments) == 1 and arguments[0] in program().commands):
        parse(program(), arguments)


# ---------------------------------------------------------------- what pages say
def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def commands_in(section: str) -> set[str]:
    return {found for found in re.findall(r"`([a-z]+)(?: update)?`", section)} - set(HOST_CATEGORIES)


def test_the_readme_has_every_command() -> None:
    paragraph = README.read_text(encoding="utf-8").split("All commands")[1].split("\n\n")[0]
    assert commands_in(paragraph) == set(program().commands)


def test_the_page_of_commands_has_every_one() -> None:
    table = (ROOT / "docs" / "guide" / "commands.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert commands_in(table) == set(program().commands)


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_pages_repeat_what_holds_now(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else run ``make docs-tables``."""

    codes = []

    def executed(command: str) -> subprocess.CompletedProcess[str]:
        done = started(command, ROOT, {"COLUMNS": str(hooks.WIDTH)})
        codes.append(done.returncode)
        return done

    monkeypatch.setattr(hooks, "executed", executed)
    text = page.read_text(encoding="utf-8")
    assert hooks.filled(text) == text
    assert codes == [int(block.mark == "exit 1") for block in blocks(page) if block.shown]


SHOWN = [(page, name, lines) for page in PAGES for name, lines in excerpts(page)]


@pytest.mark.parametrize("name", sorted({name for _, name, _ in SHOWN if name.startswith(("analyze ", "report "))}))
def test_an_excerpt_is_what_its_command_prints(name: str) -> None:
    command, what, *options = shlex.split(name)
    place = public_trace(what) if command == "analyze" else ROOT / what
    done = lens(command, place, *options, cwd=ROOT, env={"COLUMNS": str(hooks.WIDTH)})
    for _, shown, lines in SHOWN:
        if shown == name:
            assert_shows(done.stdout, lines)


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_every_output_is_one_that_a_test_gives(page: Path) -> None:
    text = hooks._BLOCK.sub("", page.read_text(encoding="utf-8"))
    before = [text[: found.start()].splitlines()[-1] for found in re.finditer(r"^```text$", text, re.MULTILINE)]
    assert [line for line in before if not re.fullmatch(r"<!-- (excerpt: .+|diagram) -->", line)] == []


def test_every_command_that_is_shown_is_followed_by_what_it_prints() -> None:
    page = '```console run\n$ overhead-lens schema delta --no "\n  such" option\nold\n```'
    assert (
        hooks._command(page.partition("$ ")[2].removesuffix("```"))
        == 'overhead-lens schema delta --no "\n  such" option'
    )


def test_the_readme_shows_what_its_command_prints() -> None:
    shown = re.search(r"^```console\n\$ (.+)\n(.+\n(?:.+\n)+)```$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown is not None
    done = started(shown[1], ROOT, {"COLUMNS": str(hooks.WIDTH)})
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[: shown[2].count("\n")] == shown[2].splitlines()


def test_figures_of_the_readme_are_those_of_the_results() -> None:
    """The list under "How accurate is it?" is that of docs/accuracy.md, with its figures filled in."""
    page = re.sub(
        r'\[([^\[\]]*)\]\(results/[^)]+ "[^"]+"\)', r"\1", (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    )
    expected = points(page.split("## In five lines")[1].split("\n## ")[0])
    said = points(README.read_text(encoding="utf-8").split("## How accurate is it?")[1].split("\n[")[0])
    assert [each.replace("](docs/", "](") for each in said] == expected
    assert len(said) == 5


def points(text: str) -> list[str]:
    """The points of a list, each on one line."""
    return [" ".join(each.split()) for each in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]


# What a figure counts, in seconds, bytes, shares or as such.
_UNITS = {
    **{"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    **{"second": 1.0, "seconds": 1.0, "minute": 60.0, "minutes": 60.0, "hour": 3600.0, "hours": 3600.0},
    **{"bytes": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    **{"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    **{"%": 0.01, "percent": 0.01, "point": 0.01, "points": 0.01, "times": 1.0, "Hz": 1.0},
}
_NUMBER = r"[-+−]?\d(?:[\d.,]*\d)?"
_QUANTITY = re.compile(rf"(?<![\w.])({_NUMBER}\s(?:to|and|or|\.\.|→)\s)*{_NUMBER}\s?({'|'.join(_UNITS)})(?!\w)")
_CODE = re.compile(r"^```.*?^```$|`[^`]*`", re.MULTILINE | re.DOTALL)
_TEXT_BLOCK = re.compile(r"^```text$.*?^```$", re.MULTILINE | re.DOTALL)


def running_text(text: str) -> str:
    """A page without what is generated, comments, and links to results."""
    return hooks._FIGURE.sub("", re.sub("<!--.*?-->", "", hooks._BLOCK.sub("", text), flags=re.DOTALL))


def figures_in(text: str) -> set[str]:
    """Figures with a unit, outside of code."""
    return {" ".join(found[0].split()) for found in _QUANTITY.finditer(_CODE.sub("", running_text(text)))}


def typed_figures(text: str) -> set[str]:
    """Those that appear in no command or output of the page either; 59.5% there is 59.5 % in a sentence."""
    code = "\n".join(_CODE.findall(_TEXT_BLOCK.sub("", running_text(text))))
    shown = {each: re.escape(each).replace(r"\ ", r"\s?") for each in figures_in(text)}
    return {each for each, pattern in shown.items() if not re.search(rf"(?<![\d.,]){pattern}(?!\w)", code)}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if page == README or page.parent != ROOT],
)
def test_a_measured_figure_is_a_link_to_its_result(page: Path) -> None:
    """Else link it as ``docs/hooks.py`` describes; a constant belongs into ``tests/documented_constants.py``."""
    text = page.read_text(encoding="utf-8")
    if page == README:  # its list is held equal to that of docs/accuracy.md, whose figures are links
        text = re.sub(r"^## How accurate is it\?$.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)
    constants = set(OF_A_PAGE.get(str(page.relative_to(ROOT)), {}))
    assert typed_figures(text) - constants - set(ANYWHERE) == set()
    assert constants - figures_in(text) == set()


def test_constants_are_of_pages_that_exist() -> None:
    assert set(OF_A_PAGE) <= {str(page.relative_to(ROOT)) for page in PAGES}


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        pytest.param(figure, value, id=f"{page}: {figure}")
        for page, figures in {"anywhere": ANYWHERE, **OF_A_PAGE}.items()
        for figure, values in figures.items()
        if not isinstance(values, str)
        for value in (values if isinstance(values, tuple) else (values,))
    ],
)
def test_a_documented_constant_is_that_of_the_code(figure: str, value: float) -> None:
    number, unit = re.fullmatch(r"(\S+) (\S+)", figure).groups()  # type: ignore[union-attr]
    quantity = float(number) * _UNITS[unit]
    # The code counts in ns where a name says so, and the reader's sizes are powers of two.
    assert value in [pytest.approx(quantity * scale) for scale in (1, 1e9, *([2**20 / 1e6] if unit == "MB" else []))]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("It takes 3.5 ms, 12 to\n14 % of it.", {"3.5 ms", "12 to 14 %"}),
        ('It takes [3 ms](results/run-cost.json "mean of step outside") of [4 %](page.md).', {"4 %"}),
        ("With `total=3%` it fails above 3 %, not above 30 %.", {"30 %"}),
        ("```console run\n$ it\n2.50 µs\n```\nIt takes 2.50 µs, not 5 µs.", {"5 µs"}),
        ("```text\n2.50 µs\n```\nIt takes 2.50 µs.", {"2.50 µs"}),
        ("<!-- result: loop -->\n\n3 s\n\n<!-- end -->\n<!-- not run: takes 90 s -->\nPython 3.11, 12 steps", set()),
        ("<!-- measures -->\n4 s\n<!-- result: loop -->\n\n3 s\n\n<!-- end -->", {"4 s"}),
    ],
)
def test_a_figure_that_is_typed_is_noticed(text: str, typed: set[str]) -> None:
    assert typed_figures(text) == typed


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    found = [f"{page.name}: {line}" for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    assert [line for line in found if re.search(r"pip install '?overhead-lens", line)] == []


def test_the_page_of_odd_budgets_quotes_what_is_printed() -> None:
    texts = "\0".join(text for path in (ROOT / "overhead_lens").rglob("*.py") for text in texts_of(path))
    assert [quote for quote in odd_quotes() if quote not in texts] == []


@pytest.mark.parametrize("module", ["budget/warnings.py", "studies/run/warnings.py", "traces/health.py"])
def test_every_warning_is_explained(module: str) -> None:
    quotes = odd_quotes()
    warnings = [text for text in texts_of(ROOT / "overhead_lens" / module) if len(text) >= 60]
    assert [text for text in warnings if not any(quote in text for quote in quotes)] == []


def odd_quotes() -> list[str]:
    """What the first cells of the page of odd budgets quote."""
    page = (ROOT / "docs" / "guide" / "odd.md").read_text(encoding="utf-8")
    return [
        quote for row in re.findall(r"^\| (`.+?) \| ", page, re.MULTILINE) for quote in re.findall("`([^`]+)`", row)
    ]


def texts_of(path: Path) -> list[str]:
    """String literals of a module without its docstrings; of an f-string its fixed text, with … for what is filled in."""
    return [fixed(node) for node in outermost(ast.parse(path.read_text(encoding="utf-8")))]


def outermost(node: ast.AST) -> Iterator[ast.JoinedStr | ast.Constant]:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        for child in ast.iter_child_nodes(node):
            yield from outermost(child)


def fixed(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "…".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))


def test_every_recipe_is_in_the_index() -> None:
    folder = ROOT / "docs" / "recipes"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(path.name for path in folder.glob("*.md") if path.name != "index.md")


def test_every_category_is_explained_in_order() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in rows if name in HOST_CATEGORIES] == list(HOST_CATEGORIES)


def test_pages_render_categories_and_parts() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", hooks.categories_text(), re.MULTILINE) == list(HOST_CATEGORIES)
    parts = [(category, part) for category, parts in PARTS.items() for part in parts]
    assert re.findall(r"^\| `([a-z]+)/([a-z_]+)` \|", hooks.parts_text(), re.MULTILINE) == parts


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_code_names_pages_that_exist() -> None:
    sources = [path for folder in ("overhead_lens", "scenarios") for path in (ROOT / folder).rglob("*.py")]
    found = {page for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))}
    assert sorted(page for page in found if not (ROOT / page).is_file()) == []


# ---------------------------------------------------------------- what the site renders
def test_every_document_has_its_schema_stored() -> None:
    stored = {path.stem: path for path in (ROOT / "docs" / "reference").glob("*.json")}
    assert sorted(stored) == sorted(SUMMARIES)
    for name, path in stored.items():
        assert plain(json.loads(path.read_text(encoding="utf-8"))) == plain(json_schema(name)), (
            f"run `make schemas`: {name}"
        )


def plain(schema: Any) -> Any:
    """A schema without the white space of docstrings, which Python 3.13 dedents."""
    if isinstance(schema, dict):
        return {
            key: " ".join(value.split()) if key == "description" and isinstance(value, str) else plain(value)
            for key, value in schema.items()
        }
    return [plain(each) for each in schema] if isinstance(schema, list | tuple) else schema


def test_every_result_is_on_a_page_and_every_page_has_its_result() -> None:
    asked = re.findall(
        r"^<!-- (results?): ([\w-]+) -->$", "".join(page.read_text(encoding="utf-8") for page in PAGES), re.MULTILINE
    )
    patterns = [name if what == "result" else f"{name}-*" for what, name in asked]
    shown = [path.name for pattern in patterns for path in (ROOT / "docs" / "results").glob(f"{pattern}.json")]
    assert sorted(shown) == sorted(path.name for path in (ROOT / "docs" / "results").glob("*.json"))


def stored(folder: Path, monkeypatch: pytest.MonkeyPatch, result: dict[str, Any]) -> None:
    """Have the documentation find a result, ``sums``."""
    monkeypatch.setattr(hooks, "RESULTS", folder)
    (folder / "sums.json").write_text(json.dumps(result))


def test_a_result_is_its_method_its_command_its_machine_and_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = {
        "claim": "sums",
        "question": "Do sums close?",
        "method": "They are added up.",
        "command": "python -m scripts.sums",
        "measured_on": "2026-11-23",
        "machine": "AMD EPYC, 2 cores",
        "torch": "2.13.0",
        "python": "3.11.7",
        "columns": [{"name": "call", "unit": ""}, {"name": "wall", "unit": "ns"}, {"name": "off", "unit": "share"}],
        "rows": [["a|b", 1234.5, 0.0316], ["c", None, -0.5]],
        "notes": ["One of two."],
    }
    stored(tmp_path, monkeypatch, result)
    assert hooks.filled("Before\n<!-- result: sums -->\nold\n<!-- end -->\nafter").splitlines() == [
        "Before",
        "<!-- result: sums -->",
        "",
        "They are added up.",
        "",
        "```bash",
        "python -m scripts.sums",
        "```",
        "",
        "Measured on 2026-11-23: AMD EPYC, 2 cores; torch 2.13.0, Python 3.11.7.",
        "",
        "| call | wall, ns | off |",
        "| --- | ---: | ---: |",
        "| a\\|b | 1,234 | 3.16 % |",
        "| c |  | -50 % |",
        "",
        "- One of two.",
        "",
        "<!-- end -->",
        "after",
    ]


def test_a_settled_fact_has_no_command_and_a_result_its_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = {
        "method": "They are added up.",
        "command": "",
        "measured_on": "2026-11-23",
        "machine": "AMD EPYC, 2 cores",
        "revision": "0123abc+",
        "columns": [{"name": "call", "unit": ""}],
        "rows": [["a"]],
    }
    stored(tmp_path, monkeypatch, result)
    assert hooks.result_text("sums").splitlines() == [
        "They are added up.",
        "",
        "Measured on 2026-11-23, revision 0123abc+: AMD EPYC, 2 cores.",
        "",
        "| call |",
        "| --- |",
        "| a |",
    ]


def test_a_result_that_is_missing_ends_the_build() -> None:
    with pytest.raises(hooks.MissingError, match="docs/results/unheard-of.json"):
        hooks.filled("<!-- result: unheard-of -->\n<!-- end -->")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("took; call=c", "1.23 µs"),
        ("off; call=a; load=no", "3.16 %"),
        ("count", "3"),
        ("count; off>=0.01", "2"),
        ("count; off<=0.01", "1"),
        ("count; call~b", "1"),
        ("count; call!~b", "2"),
        ("count; call!=a", "2"),
        ("count; ran=yes", "2"),
        ("largest of off", "20 %"),
        ("least of off", "-50 %"),
        ("mean of seconds", "2 s"),
        ("median of seconds", "1.5 s"),
        ("largest of cost of a step", "4 %"),
        ("measured", "2026-11-23, AMD EPYC, 2 cores"),
    ],
)
def test_a_figure_of_a_result_stands_in_a_sentence(
    asked: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path, monkeypatch, FIGURES)
    page = f'It is [{{}}](../results/sums.json "{asked}").'
    assert hooks.filled(page.format("old")) == page.format(said)


FIGURES = {
    "measured_on": "2026-11-23",
    "machine": "AMD EPYC, 2 cores",
    "columns": [
        {"name": "call", "unit": ""},
        {"name": "load", "unit": ""},
        {"name": "ran", "unit": ""},
        {"name": "took", "unit": "ns"},
        {"name": "off", "unit": "share"},
        {"name": "seconds", "unit": "s"},
        {"name": "cost of a step", "unit": "share"},
    ],
    "rows": [
        ["a", "no", True, 1000, 0.0316, 1.0, 0.04],
        ["bb", "no", False, 2000, 0.2, 1.5, 0.01],
        ["c", "yes", True, 1234, -0.5, 3.5, 0.02],
    ],
}


@pytest.mark.parametrize(
    "asked", ["took", "took; call=x", "gone; call=a", "mean of gone", "took; gone=1", "took; call"]
)
def test_a_figure_that_is_not_there_ends_the_build(asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path, monkeypatch, FIGURES)
    with pytest.raises(hooks.MissingError, match="sums: "):
        hooks.filled(f'[](results/sums.json "{asked}")')


def test_the_python_api_is_rendered_whole() -> None:
    text = hooks.api_text()
    assert re.findall(r"^## ol\.(\w+)$", text, re.MULTILINE) == overhead_lens.__all__
    assert (
        "ol.attach(pid: int, seconds: float = 20.0, *, subprocesses: bool = False) -> ProcessBudget\n```\n\nWatch a running"
        in text
    )
    assert "| `subprocesses` | Watch its children, too. |" in text
    assert "| `blame` | `tuple[str, ...]` | Categories that changed significantly" in text
    returned = set(re.findall(r"^ol\..+ -> (\w+)$", text, re.MULTILINE)) - {"None", "Region", "Stored"}
    assert returned <= set(re.findall(r"^## (\w+)$", text, re.MULTILINE))


def test_a_command_that_fails_ends_the_build() -> None:
    with pytest.raises(hooks.MissingError, match="ended with 2: overhead-lens: "):
        hooks.filled("```console run\n$ overhead-lens report no-such-capture\n```")


DIFF = """
| argument or option | what it does |
| --- | --- |
| `BASE` | Capture or exported trace to compare with.  [required] |
| `NEW` | Capture or trace that may be slower.  [required] |
| `--margin PERCENT` | Differences within this share of the base's wall time count as none.  [default: 1%] |
| `--rules FILE` | Your own rules (TOML), tried before the built-in ones.  [default: (from pyproject.toml)] |
| `--allow-mismatch` | Compare even if machine, versions or sizes differ. |
| `--html FILE` | Also write an HTML report to FILE. |
| `--json` | Print the difference as JSON and nothing else. |
| `--force` | Overwrite existing files. |
"""


def test_the_reference_says_what_the_commands_take() -> None:
    sections = dict(re.findall(r"^## ([\w ]+)\n(.*?)(?=^## |\Z)", hooks.commands_text(), re.MULTILINE | re.DOTALL))
    assert DIFF in sections["diff"]
    for path in (ROOT / "overhead_lens" / "cli").glob("[!_]*.py"):
        named = re.findall(r'^\s+"(--[a-z-]+)[/"]', path.read_text(encoding="utf-8"), re.MULTILINE)
        section = sections[{"baseline": "baseline update"}.get(path.stem, path.stem.strip("_"))]
        assert [option for option in named if not re.search(f"(`|, ){option}\\b", section)] == []
