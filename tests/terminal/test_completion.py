"""What could follow: by what is asked, and typed into a real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from overhead_lens.__main__ import application
from overhead_lens.target import builtin_paths
from overhead_lens.terminal.completion import (
    complete_capture,
    complete_capture_or_trace,
    complete_parameter,
    complete_target,
    join_words,
    outline_of,
)
from tests.cli.run import TINY, inside, lens_apart
from tests.drawn.captures import draw_capture
from tests.terminal.pseudo import CTRL_A, CTRL_E, ENTER, TAB, Terminal, terminal

ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
SHELL = {"PATH": PATH, "PYTHONPATH": str(ROOT), "HISTFILE": "", "INPUTRC": "/dev/null"}

MINE = '''
raise SystemExit("it is run")

def f(x):
    """Adds; `rm -rf ~` $(exit) 'one'.

    And more.
    """

def g(x): ...
async def later(x): ...
def _own(x): ...
class Model:
    def forward(self): ...
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, a folder of captures, and names that a shell would have to quote."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "mine.py").write_text(MINE)
    (folder / "tiny.py").write_text(TINY.replace("BODY", "raise SystemExit('it is run')"))
    (folder / "notes.txt").write_text("")
    for name in ("$(touch obeyed).py", "a b.py", "-x.py", "a\nb.py", "x:y.py", "'.py", ".hidden.py"):
        (folder / name).write_text("def f(): ...")
    (folder / "traces" / "unfinished").mkdir(parents=True)
    draw_capture(folder / "traces" / "first")
    draw_capture(folder / "traces" / "second")
    (folder / "traces" / "t.json.gz").write_bytes(b"")
    (folder / "only" / "below").mkdir(parents=True)
    (folder / "only" / "below" / "deep.py").write_text("def f(): ...")
    return folder


def values(candidates: list[tuple[str, str]]) -> list[str]:
    return [value for value, _ in candidates]


# ---------------------------------------------------------------- candidates
def test_targets_are_scenarios_files_and_folders(folder: Path) -> None:
    with inside(folder):
        assert values(complete_target("")) == [*builtin_paths(), "mine.py", "only/", "tiny.py", "traces/"]


def test_a_scenario_shows_its_summary(folder: Path) -> None:
    with inside(folder):
        assert (
            dict(complete_target(""))["linear_loop"] == "nn.Linear on many vectors, one by one or batched; per vector"
        )


def test_the_only_one_left_shows_what_it_offers(folder: Path) -> None:
    with inside(folder):
        assert values(complete_target("lin")) == ["linear_loop", "linear_loop:loop", "linear_loop:batched"]
        assert values(complete_target("gel")) == ["gelu"]
        assert complete_target("mi") == [("mine.py:f", "Adds; rm -rf (exit) one ."), ("mine.py:g", "")]
        assert values(complete_target("ti")) == ["tiny.py"]
        assert values(complete_target("on")) == ["only/below/deep.py:f"]
        assert complete_target("nothing") == []


def test_after_the_colon_come_variants_and_functions(folder: Path) -> None:
    with inside(folder):
        assert values(complete_target("linear_loop:")) == ["linear_loop:loop", "linear_loop:batched"]
        assert values(complete_target("./mine.py:")) == ["./mine.py:f", "./mine.py:g"]
        assert values(complete_target("tiny.py:")) == ["tiny.py:total"]
        assert complete_target("gone.py:") == complete_target("torch.nn:") == []


def context(**params: object) -> typer.Context:
    made = typer.Context(typer.main.get_command(application()))  # type: ignore[arg-type]
    made.params = params
    return made


def test_parameters_are_those_of_the_target(folder: Path) -> None:
    typed = context(target="linear_loop:batched")
    assert complete_parameter(typed, "") == [
        ("vectors=", "default 10000"),
        ("features=", "default 256"),
        ("dtype=", "default float32"),
        ("device=", "default cpu"),
        ("requires_grad=", "default false"),
    ]
    assert values(complete_parameter(typed, "f")) == ["features=", "features=256"]
    assert values(complete_parameter(typed, "dtype=")) == [
        f"dtype={name}" for name in ("float32", "float64", "float16", "bfloat16")
    ]
    assert values(complete_parameter(typed, "requires_grad=")) == ["requires_grad=false", "requires_grad=true"]
    assert values(complete_parameter(context(base="linear_loop -p features=3", new="add1"), "v"))[0] == "vectors="
    assert values(complete_parameter(context(targets=["linear_loop:loop"]), "v"))[0] == "vectors="
    with inside(folder):
        assert values(complete_parameter(context(target="tiny.py"), "")) == ["size=", "size=50"]
        assert complete_parameter(context(target="mine.py:f"), "") == complete_parameter(context(), "") == []


def test_captures_are_finished_directories(folder: Path) -> None:
    with inside(folder):
        assert values(complete_capture("traces/")) == ["traces/first", "traces/second", "traces/unfinished/"]
        assert values(complete_capture("tr")) == values(complete_capture("traces/"))
        assert values(complete_capture("./traces/s")) == ["./traces/second"]
        assert values(complete_capture_or_trace("traces/t")) == ["traces/t.json.gz"]
        assert complete_capture("gone/") == complete_capture("\0") == []


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("def f(: ...", {}),
        ("\0", {}),
        ("(" * 5_000, {}),
        ("SCENARIO = make()\ndef f(): ...", {}),
        (
            "SCENARIO: Scenario = Scenario(variants={'a': f, 'b': lambda: 0, **more})\ndef f():\n    'Says.'",
            {"a": "Says.", "b": ""},
        ),
        ("SCENARIO = Scenario(variants=dict(a=f), params=other.Params)\ndef f(): ...", {}),
        ("x = '\\d'\ndef f(): ...", {"f": ""}),
    ],
)
def test_outlines_of_odd_files(tmp_path: Path, text: str, members: dict[str, str]) -> None:
    (tmp_path / "odd.py").write_text(text)
    outline = outline_of(tmp_path / "odd.py")
    assert (outline.members, outline.parameters) == (members, {})


# ---------------------------------------------------------------- words of bash
@pytest.mark.parametrize(
    ("words", "joined", "before"),
    [
        (["ol", "profile", "ad"], ["ol", "profile", "ad"], ""),
        (["ol", "profile", "loop", ":", "ba"], ["ol", "profile", "loop:ba"], "loop:"),
        (["ol", "profile", "loop", ":"], ["ol", "profile", "loop:"], "loop:"),
        (["ol", "profile", "loop", ":", "ba", ""], ["ol", "profile", "loop:ba", ""], ""),
        (["ol", "profile", "loop:ba"], ["ol", "profile", "loop:ba"], ""),
        (["ol", "-p", "size", "=", "3", "-p", "n", "="], ["ol", "-p", "size=3", "-p", "n="], "n="),
        (["ol", "--param", "=", "n", "=", "1"], ["ol", "--param=n=1"], "n="),
        (["ol", "--html", "=", "fi"], ["ol", "--html=fi"], ""),
    ],
)
def test_words_that_bash_split_are_joined(words: list[str], joined: list[str], before: str) -> None:
    variables = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    assert join_words(variables) == before
    assert (variables["COMP_WORDS"].split("\n"), variables["COMP_CWORD"]) == (joined, str(len(joined) - 1))


# ---------------------------------------------------------------- shells
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_what_is_typed(folder: Path) -> None:
    with terminal(["bash", "--norc", "--noprofile", "-i"], folder, {**SHELL, "TERM": "dumb", "PS1": "ready> "}) as bash:
        bash.wait_for("ready> ")
        bash.type('eval "$(_OVERHEAD_LENS_COMPLETE=source_bash overhead-lens)"' + ENTER)
        bash.wait_for("ready> ")
        assert typed(bash, "profile linear_loop:ba") == "profile linear_loop:batched "
        assert typed(bash, "profile line") == "profile linear_loop"
        assert typed(bash, "profile min") == "profile mine.py:"
        assert typed(bash, "advise min") == "advise mine.py:"
        assert typed(bash, "profile linear_loop:loop -p fe") == "profile linear_loop:loop -p features="
        assert typed(bash, "profile add1 -p dtype=b") == "profile add1 -p dtype=bfloat16 "
        assert typed(bash, "report traces/f") == "report traces/first "
        assert typed(bash, "profile notes") == "profile notes.txt "
    assert not (folder / "obeyed").exists()


def typed(bash: Terminal, start: str) -> str:
    """What stands on the command line after ``start`` and the tabulator: echo shows it."""
    bash.type(f"overhead-lens {start}{TAB}{CTRL_E}.{CTRL_A}echo =; echo {ENTER}")
    bash.wait_for("\n=\r\n")
    return bash.wait_for("\r\nready> ").partition("\r\n")[0].removeprefix("overhead-lens ").removesuffix(".")


def asked(folder: Path, shell: str, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    return lens_apart(
        cwd=folder, env={**env, "_OVERHEAD_LENS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    )


def test_zsh_is_told_words_and_explanations(folder: Path) -> None:
    done = asked(folder, "zsh", "overhead-lens profile mine.py")
    offered = r"""_arguments '*: :(("mine.py\\:f":"Adds; rm -rf (exit) one ."\n"mine.py\\:g"))'"""
    assert done.stdout == offered.replace(r"\n", "\n") + "\n"


def test_fish_is_told_words_and_explanations_and_whether_files_are_its_own(folder: Path) -> None:
    done = asked(folder, "fish", "overhead-lens profile mi", _TYPER_COMPLETE_FISH_ACTION="get-args")
    assert done.stdout == "mine.py:f\tAdds; rm -rf (exit) one .\nmine.py:g\n"
    asks = {"_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert asked(folder, "fish", "overhead-lens profile mi", **asks).returncode == 0
    assert asked(folder, "fish", "overhead-lens profile notes", **asks).returncode == 1


# ---------------------------------------------------------------- errors
@pytest.mark.parametrize(
    "asked", ["complete_bash", "complete_zsh", "complete_fish", "complete_nothing", "nonsense", ""]
)
def test_nothing_is_said_on_any_error(tmp_path: Path, asked: str) -> None:
    env = {"_OVERHEAD_LENS_COMPLETE": asked, "COMP_WORDS": "x", "COMP_CWORD": "many", "_TYPER_COMPLETE_ARGS": "'"}
    done = lens_apart("profile", cwd=tmp_path, env=env)
    assert done.stderr == ""


def test_neither_torch_nor_pandas_is_waited_for(tmp_path: Path) -> None:
    env = {"_OVERHEAD_LENS_COMPLETE": "complete_bash", "COMP_WORDS": "overhead-lens\nprofile\n", "COMP_CWORD": "2"}
    code = (
        "import sys; sys.argv = ['overhead-lens']\n"
        "from overhead_lens.__main__ import main\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'numpy', 'pandas', 'rich'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.splitlines() == [*builtin_paths(), "[]"]
