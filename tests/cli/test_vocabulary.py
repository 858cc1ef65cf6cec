"""What all commands share: percentages, old spellings, refused options, ``--force``, the newest capture, project settings."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from overhead_lens.__main__ import application
from overhead_lens.errors import UsageError
from overhead_lens.studies.history import store
from overhead_lens.terminal.arguments import parse_share
from overhead_lens.terminal.progress import announcement
from overhead_lens.terminal.project import Project, read_project
from tests.cli.recorders import RULES, Recorders
from tests.cli.run import error_line, inside, lens
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.drawn.ladders import draw_stored
from tests.drawn.processes import draw_process, thread
from tests.drawn.runs import slow_run
from tests.drawn.timelines import document, drawn

COMMANDS: dict[str, Any] = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
COMMANDS = {**COMMANDS, **COMMANDS["baseline"].commands}
OPTIONS = {
    (name, param.name): param
    for name, command in COMMANDS.items()
    for param in getattr(command, "params", ())
    if param.param_type_name == "option"
}


# ---------------------------------------------------------------- one meaning everywhere
def test_a_short_option_means_the_same_in_every_command() -> None:
    meanings: dict[str, set[str]] = {}
    for (_, name), param in OPTIONS.items():
        for short in (each for each in param.opts if not each.startswith("--")):
            meanings.setdefault(short, set()).add(name.rstrip("_"))
    assert meanings == {
        **{"-c": {"compile"}, "-d": {"duration"}, "-f": {"format"}, "-o": {"output"}},
        **{"-p": {"param"}, "-q": {"quiet"}, "-r": {"rate"}},
    }


def test_every_option_has_a_panel_and_names_its_value_in_capitals() -> None:
    for param in OPTIONS.values():
        assert param.rich_help_panel in {"What to measure", "How to measure", "Analysis", "Output"} or param.hidden
        assert param.is_flag or re.fullmatch(r"[A-Z]+(=[A-Z]+)?|N,N,\.\.\.", param.metavar), param.name


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"baseline"}))
def test_help_has_two_examples_that_can_be_parsed(name: str) -> None:
    heading, *lines = COMMANDS[name].epilog.split("\n\n")
    assert (heading, len(lines)) == ("Examples:", 2)
    shown = lens(*(["baseline"] if name == "update" else []), name, "--help", cwd=Path(), env={"COLUMNS": "80"}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert [line for line in lines if line.strip() not in shown] == []


# ---------------------------------------------------------------- percentages
@pytest.mark.parametrize(
    ("text", "share", "said"),
    [
        ("3%", 0.03, ""),
        (" +0.5 %", 0.005, ""),
        ("99.9%", 0.999, ""),
        ("0.03", 0.03, "overhead-lens: --x 0.03 is deprecated, use --x 3%\n"),
    ],
)
def test_percentages(text: str, share: float, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_share("--x", text, 0.001, 0.999) == share
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("text", ["", "x", "3%%", "0%", "100%", "-3%", "nan", "nan%", "inf%", "3", "0.05%"])
def test_no_percentages(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--x takes a percentage from 0\.1% to 99\.9%, not "):
        parse_share("--x", text, 0.001, 0.999)


# ---------------------------------------------------------------- old spellings
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (["export", "base", "--to=collapsed", "-o", "{}"], ["export", "base", "--format=collapsed", "-o", "{}"], "--to is deprecated, use --format"),
        (["run", "--json", "{}", "-o", "drawn", "train.py", "--to", "x"], ["run", "--json-file", "{}", "-o", "drawn", "train.py", "--to", "x"], "--json is deprecated, use --json-file"),
        (["diff", "base", "new", "--margin", "3.1", "--json"], ["diff", "base", "new", "--margin", "3.1%", "--json"], "--margin 3.1 is deprecated, use --margin 3.1%"),
        (["diff", "base", "far", "--force", "--json"], ["diff", "base", "far", "--allow-mismatch", "--json"], "--force without a file to overwrite is deprecated, use --allow-mismatch"),
        (["analyze", "--diff", "a.json", "a.json"], ["diff", "a.json", "a.json"], "analyze --diff is deprecated, use overhead-lens diff"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_an_old_spelling_works_and_says_so(
    here: Path,
    recorders: Recorders,
    tmp_path_factory: pytest.TempPathFactory,
    old: list[str],
    new: list[str],
    said: str,
) -> None:
    draw_capture(here / "base")
    draw_capture(here / "new", call_ns=1_030)
    draw_capture(here / "far", environment={"torch": "1.0"})
    (here / "a.json").write_text(document([drawn("[---)", "aten::add")]))
    results = []
    for number, words in enumerate((old, new)):
        recorders.folder = tmp_path_factory.mktemp("recorded")
        file = here / f"file-{number}"
        done = lens(*(word.format(file.name) for word in words), cwd=here)
        texts = [done.stdout, file.read_text() if file.exists() else ""]
        results.append([text.replace(file.name, "").replace(str(recorders.folder), "") for text in texts])
        assert done.returncode == 0
        assert [line for line in done.stderr.splitlines() if "deprecated" in line] == [f"overhead-lens: {said}"][
            number:
        ]
    assert results[0] == results[1]


def test_force_says_nothing_of_captures_that_are_not_compared(here: Path) -> None:
    (here / "a.json").write_text(document([drawn("[---)", "aten::add")]))
    done = lens("diff", "a.json", "a.json", "--force", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_group_without_a_command_is_an_error_of_one_line(here: Path) -> None:
    done = lens("baseline", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "overhead-lens: Missing command.\n")


def test_the_old_name_of_a_side(here: Path, recorders: Recorders) -> None:
    (here / "python").write_text("#!/bin/sh\n")
    done = lens("compare", "add1", "add1", "--python", "old=./gone", "-q", cwd=here)
    assert done.stderr.splitlines() == [
        "overhead-lens: --python old= is deprecated, use --python base=",
        "overhead-lens: no interpreter ./gone",
    ]


# ---------------------------------------------------------------- options without effect
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["advise", "run", "--quick"], "--quick has no effect with a run, which is not measured again"),
        (["advise", "run", "-o", "x"], "--output has no effect with a run, which is not measured again"),
        (["attach", "1", "--top", "--html", "x"], "--html has no effect with --top, which stores nothing"),
        (["attach", "1", "--top", "--json"], "--json has no effect with --top, which stores nothing"),
        (["compare", "add1", "add1", "--quick", "--rounds", "5"], "--quick and --rounds do not go together"),
        (["check", "base", "tiny.py", "--instructions", "--max", "total=3%"], "--instructions measures no times: use --max total without it"),
        (["report", "ladder", "--rules", "mine.toml"], "--rules has no effect with ladder, whose times have no categories"),
        (["open", "native.pftrace", "--rules", "mine.toml"], "--rules has no effect with native.pftrace, which is shown as it is"),
        (["diff", "run", "run", "--allow-mismatch"], "--allow-mismatch has no effect with runs and watched processes, whose machines are not compared"),
        (["diff", "process", "process", "--allow-mismatch"], "--allow-mismatch has no effect with runs and watched processes, whose machines are not compared"),
        (["diff", "a.json", "a.json", "--margin", "3%"], "--margin has no effect with traces, whose times are not judged"),
        (["analyze", "a.json", "--query", "select 1", "--all"], "--all has no effect with --query"),
        (["profile", "add1", "--cold", "1MB", "--until", "3%"], "--cold measures two sides in turns: leave --until and --instructions out"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_option_that_would_be_ignored_is_refused(here: Path, words: list[str], message: str) -> None:
    draw_capture(here / "base")
    slow_run(here / "run")
    draw_process(here / "process", *thread(10, "MainThread", 600, 400))
    draw_stored(here / "ladder", {"eager": [10.0, 11.0], "compiled": [30.0, 33.0]})
    (here / "a.json").write_text(document([drawn("[---)", "aten::add")]))
    (here / "native.pftrace").write_bytes(b"\n\x00")
    done = lens(*words, cwd=here)
    assert (error_line(done), done.returncode) == (message, 2)


# ---------------------------------------------------------------- files
@pytest.mark.parametrize(
    "words",
    [
        ["report", "base", "--html", "there"],
        ["diff", "base", "base", "--html", "there"],
        ["check", "base", "tiny.py", "--html", "there", "-q"],
        ["check", "base", "tiny.py", "--junit", "there", "-q"],
        ["history", "captures", "--html", "there", "-q"],
        ["export", "base", "-o", "there"],
        ["analyze", "a.json", "--pftrace", "there"],
        ["run", "-o", "drawn", "--json-file", "there", "train.py"],
        ["run", "-o", "drawn", "--html", "there", "train.py"],
    ],
    ids=" ".join,
)
def test_force_overwrites_files(here: Path, recorders: Recorders, words: list[str]) -> None:
    draw_capture(here / "base")
    (here / "captures").mkdir()
    draw_capture(here / "captures" / "one", started="2026-01-01T00:00:00+00:00")
    (here / "a.json").write_text(document([drawn("[---)", "aten::add")]))
    file = here / next(word for word in words if word.startswith("there"))
    file.write_text("mine")
    option = words[words.index(file.name) - 1].replace("-o", "--output")
    refused = lens(*words, cwd=here)
    assert (error_line(refused), refused.returncode) == (
        f"{file.name} exists: name another {option}, or overwrite it with --force",
        2,
    )
    assert file.read_text() == "mine"
    done = lens(words[0], "--force", *words[1:], cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert b"mine" != file.read_bytes() != b""


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "a.json", "--html", "there", "--pftrace", "./there", "--force"],
        ["check", "base", "tiny.py", "--markdown", "there", "--html", "there", "-q"],
        ["check", "base", "tiny.py", "--junit", "there", "--markdown", "there", "-q"],
        ["run", "--html", "there", "--json-file", "there", "tiny.py"],
    ],
    ids=" ".join,
)
def test_a_file_is_written_once(here: Path, recorders: Recorders, words: list[str]) -> None:
    draw_capture(here / "base")
    (here / "a.json").write_text(document([drawn("[---)", "aten::add")]))
    done = lens(*words, cwd=here)
    assert (error_line(done), done.returncode) == ("there is named twice: each output needs a file of its own", 2)
    assert not (here / "there").exists()


def test_a_check_has_a_page(here: Path, recorders: Recorders) -> None:
    draw_capture(here / "base")
    lens("check", "base", "tiny.py", "--max", "total=3%", "--html", "page.html", "-q", cwd=here)
    page = (here / "page.html").read_text(encoding="utf-8")
    assert re.findall("<h1>(.*?)</h1>", page) == [
        "No regression: drawn:drawn: 1.00 µs → 1.00 µs per call (1.000x): same"
    ]
    assert re.search(r"Limits.*total.*\+3", page, re.DOTALL)


# ---------------------------------------------------------------- the newest capture
def test_report_and_open_take_the_newest_capture(here: Path) -> None:
    none = lens("report", cwd=here)
    assert (error_line(none), none.returncode) == ("no capture in ./traces: name one", 2)
    (here / "traces" / "unfinished").mkdir(parents=True)
    draw_capture(here / "traces" / "older")
    draw_process(here / "traces" / "newer", *thread(10, "MainThread", 600, 400))
    for name, seconds in (("older", 1_000), ("newer", 2_000)):
        os.utime(here / "traces" / name / "meta.json", (seconds, seconds))
    done = lens("report", "--json", cwd=here)
    assert done.stderr == "overhead-lens: newest capture: traces/newer\n"
    assert validated(done.stdout)["schema"] == "overhead-lens/process/1"
    os.utime(here / "traces" / "older" / "meta.json", (3_000, 3_000))
    assert validated(lens("report", "--json", cwd=here).stdout)["schema"] == "overhead-lens/breakdown/2"


# ---------------------------------------------------------------- a project's settings
def test_rules_and_limits_of_a_project(here: Path, recorders: Recorders) -> None:
    draw_capture(here / "base")
    (here / "sub").mkdir()
    settings = '[tool.overhead-lens]\nrules = "mine.toml"\nmax = ["total=3%", "instructions=0.5%"]\n'
    (here / "pyproject.toml").write_text(settings)
    (here / "sub" / "pyproject.toml").write_text("[tool.other]\n")
    with inside(here / "sub"):
        assert read_project() == Project(here / "mine.toml", ("total=3%", "instructions=0.5%"))
    host = validated(lens("report", here / "base", "--json", cwd=here / "sub").stdout)["host"]
    assert {row["category"] for row in host if row["ns"]} == {"kernel"}
    (here / "none.toml").write_text(RULES.replace("drawn|train", "nothing"))
    host = validated(lens("report", "base", "--rules", "none.toml", "--json", cwd=here).stdout)["host"]
    assert {row["category"] for row in host if row["ns"]} == {"python"}
    (here / "pyproject.toml").write_text(settings.replace(', "instructions=0.5%"', ""))
    checked = validated(lens("check", "base", "tiny.py", "--json", "-q", cwd=here).stdout)
    assert [limit["name"] for limit in checked["limits"]] == ["total"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule = 1", "has an unknown key 'rule': did you mean 'rules'?"),
        ("speed = 1", "has an unknown key 'speed': it takes rules and max"),
        ("rules = 1", "rules must be a file name"),
        ('max = "total=3%"', 'max must be a list of limits, e.g. ["total=3%"]'),
        ("rules = ", "cannot read {}: Invalid value"),
    ],
)
def test_wrong_settings(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.overhead-lens]\n{text}\n")
    with inside(tmp_path), pytest.raises(UsageError) as refused:
        read_project()
    assert message.format(file) in str(refused.value)


def test_rules_of_a_history_and_an_export(here: Path) -> None:
    (here / "captures").mkdir()
    capture = draw_capture(here / "captures" / "a", started="2026-01-01T00:00:00+00:00")
    assert store.key_of(capture) != store.key_of(capture, RULES.encode())
    for rules, category in (([], "python"), (["--rules", "mine.toml"], "kernel"), ([], "python")):
        history = validated(lens("history", "captures", *rules, "--json", "-q", cwd=here).stdout)
        point = history["series"][0]["segments"][0]["captures"][0]["ns"]
        assert {name for name, ns in point.items() if ns} == {category, "wall"}
    sizes = set()
    for name, rules in (("x", []), ("y", ["--rules", "mine.toml"])):
        lens("export", "captures/a", "-o", name, *rules, cwd=here)
        sizes.add((here / name).read_bytes())
    assert len(sizes) == 2


# ---------------------------------------------------------------- what is said at the start
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["profile", "add1"], "measuring add1, about 20 s"),
        (["profile", "add1", "--compile", "--quick"], "measuring add1, about 20 s"),
        (["profile", "add1", "-c"], "measuring add1, about 30 s"),
        (["profile", "add1", "--until", "3%"], "measuring add1"),
        (["compare", "add1", "add1 -c"], "measuring add1 and add1 -c in turns, about 90 s"),
        (["compare", "add1", "add1", "--quick"], "measuring add1 and add1 in turns, about 45 s"),
        (["ladder", "add1"], "measuring add1, about 2 min"),
        (["advise", "add1"], "measuring add1, about 3 min"),
        (["sweep", "add1", "-p", "size=10,100"], "measuring add1"),
        (["attach", "10", "-d", "7"], "watching process 10 for 7 s"),
        (["check", "base", "tiny.py"], "measuring tiny.py"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_measurement_is_announced(here: Path, recorders: Recorders, words: list[str], said: str) -> None:
    draw_capture(here / "base")
    assert lens(*words, cwd=here).stderr == f"{said}\n"


def test_an_announcement_without_a_time() -> None:
    assert (announcement("a"), announcement("a", 99)) == ("measuring a", "measuring a, about 99 s")


def test_half_the_rounds(here: Path, recorders: Recorders) -> None:
    for words, processes in ((["add1", "add1"], 6), (["add1", "add1", "--compile"], 4)):
        lens("compare", *words, "--quick", "-q", cwd=here)
        assert recorders.asked.effort.processes == processes
    draw_capture(here / "base")
    lens("check", "base", "tiny.py", "--quick", "-q", cwd=here)
    assert recorders.asked.effort.processes == 3


def test_a_quiet_run_prints_no_report(here: Path, recorders: Recorders) -> None:
    assert lens("run", "-q", "train.py", cwd=here).stderr == ""
