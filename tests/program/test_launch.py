"""Starting a program: the user's step in a file that it imports."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from overhead_lens.program import launch, start
from overhead_lens.program.area import NOTES, Area, Word


def run(folder: Path, step: str, *command: str) -> str:
    """Run a program under the watcher, without a recorder; what it prints."""
    Area.create(folder)
    settings = json.dumps({"tracer_pid": 1, "step": step})
    done = subprocess.run(
        [sys.executable, start.__file__, str(folder), settings, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert '"found_by": "explicit"' in (folder / NOTES).read_text(encoding="utf-8")
    return done.stdout


@pytest.mark.parametrize("step", ["lib.py:2", "link.py:2", "lib:work"])
def test_a_step_in_an_imported_file_is_reached(tmp_path: Path, step: str) -> None:
    (tmp_path / "lib.py").write_text("def work():\n    return 1\n", encoding="utf-8")
    (tmp_path / "link.py").symlink_to("lib.py")
    (tmp_path / "main.py").write_text("import json, lib\nfor _ in range(4):\n    lib.work()\n", encoding="utf-8")
    run(tmp_path, step, "main.py")


@pytest.mark.parametrize("command", [("main.py",), ("-m", "main"), (".",)])
def test_a_step_in_the_main_file_leaves_imports_alone(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The first finder, which is ours, knows of no module whose import it must act around."""
    text = "import sys\nfor _ in range(4):\n    pass\nprint(sys.meta_path[0].find_spec('json', None))\n"
    file = "__main__.py" if command == (".",) else "main.py"
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert run(tmp_path, f"{file}:3", *command) == "None\n"


def test_steps_of_a_thread_that_outlives_the_main_one_count(tmp_path: Path) -> None:
    text = """
import threading, time
from overhead_lens import marks
def serve():
    for _ in range(20):
        time.sleep(0.02)
        marks.step()
threading.Thread(target=serve).start()
"""
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    run(tmp_path, "", "main.py")
    area = Area.open(tmp_path)
    rows = area.rows()
    assert len(rows) >= 15
    assert area.read(Word.FINISHED_NS) >= rows[-1].end_ns


@pytest.mark.parametrize(
    ("command", "folder"), [(("main.py",), "."), (("-m", "main"), "."), (("main.py",), "of PYTHONPATH")]
)
def test_a_module_of_the_program_goes_before_one_of_the_standard_library(
    tmp_path: Path, command: tuple[str, ...], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "of PYTHONPATH"))
    (place / "statistics.py").write_text("who = 'the program'\n", encoding="utf-8")
    (tmp_path / "resource").mkdir()  # not a module
    text = "import resource, statistics\nfor _ in range(4):\n    resource.getpagesize()\nprint(statistics.who)\n"
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    assert run(tmp_path, "main.py:3", *command) == "the program\n"


@pytest.mark.parametrize(
    ("path", "is_kept"), [(["", "site-packages"], True), (["lib-dynload"], True), (["site-packages/tool", ""], False)]
)
def test_a_folder_within_that_of_the_standard_library_is_the_programs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: list[str],
    is_kept: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(os, "__file__", str(tmp_path / "os.py"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / folder) for folder in path])
    for folder in path:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "drawn_module.py").touch()
    before = frozenset(sys.modules)
    monkeypatch.setitem(sys.modules, "drawn_module", sys)
    launch._forget_hidden(before)
    assert ("drawn_module" in sys.modules) == is_kept


@pytest.mark.parametrize("command", [("main.py", "-m", "x"), ("-m", "main", "y")])
def test_the_command_line_that_started_python_is_the_programs(tmp_path: Path, command: tuple[str, ...]) -> None:
    text = "import sys\nfor _ in range(4):\n    pass\nprint(*sys.orig_argv[1:])\n"
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    assert run(tmp_path, "main.py:3", *command) == " ".join(command) + "\n"


def test_an_archive_is_one_whatever_its_name(tmp_path: Path) -> None:
    text = "from overhead_lens import marks\nfor _ in range(4):\n    marks.step()\nprint(__name__)\n"
    with zipfile.ZipFile(tmp_path / "train.pex", "w") as archive:
        archive.writestr("__main__.py", text)
    assert run(tmp_path, "", "train.pex") == "__main__\n"


def test_no_loop_is_marked_beside_the_users_step(tmp_path: Path) -> None:
    text = (
        "import builtins\nfor _ in range(4):\n    pass\nprint(*[name for name in vars(builtins) if 'each' in name])\n"
    )
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    assert run(tmp_path, "main.py:3", "main.py") == "\n"


@pytest.mark.parametrize(
    ("module", "imported"), [("package.train", ""), ("package.train", "import package.train"), ("package", "")]
)
def test_loops_of_the_module_that_is_run_are_marked_only_where_it_is_run(
    tmp_path: Path, module: str, imported: str
) -> None:
    """Another module may hand a function of its other copy to a compiler."""
    (tmp_path / "package").mkdir()
    text = "def layers():\n    for _ in (): pass\nlayers()\n"
    main = (
        f"{text}import {module}\nfrom overhead_lens import marks\n"
        "if __name__ == '__main__':\n"
        "    for _ in range(4): marks.step()\n"
        f"    for each in (vars(), vars({module})):\n"
        "        print(len(each['layers'].__code__.co_names))\n"
    )
    (tmp_path / "package" / "__init__.py").write_text(text + imported, encoding="utf-8")
    for file in ("__main__.py", "train.py"):
        (tmp_path / "package" / file).write_text(main, encoding="utf-8")
    assert run(tmp_path, "", "-m", module) == "2\n0\n"


def test_threads_have_the_names_that_python_gives_them(tmp_path: Path) -> None:
    text = "import threading\nfor _ in range(4):\n    pass\nprint(threading.Thread().name)\n"
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    assert run(tmp_path, "main.py:3", "main.py") == "Thread-1\n"


@pytest.mark.parametrize("module", ["package.train", "package.__main__", "package"])
def test_a_step_in_the_module_that_is_run(tmp_path: Path, module: str) -> None:
    (tmp_path / "package").mkdir()
    file = "__init__" if module == "package" else module.partition(".")[2]
    (tmp_path / "package" / "__main__.py").touch()
    text = "def step():\n    pass\nfor _ in range(4):\n    step()\n"
    (tmp_path / "package" / f"{file}.py").write_text(text, encoding="utf-8")
    run(tmp_path, f"{module}:step", "-m", module.removesuffix(".__main__"))
