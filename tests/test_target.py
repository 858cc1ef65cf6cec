"""How a name finds what is measured, what is made of it, and what a user is told about code that is at fault."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

from overhead_lens import target as module
from overhead_lens.errors import UsageError
from overhead_lens.scenario import Arguments, Scenario, make_params
from overhead_lens.target import Target, builtin_folder, builtin_paths, parse_target
from overhead_lens.worker.load import load
from tests.complaint import complaint


def write(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def load_file(path: Path) -> Scenario:
    return load(Target(str(path), path))


MINIMAL = """\
from dataclasses import dataclass
from overhead_lens.scenario import Scenario
@dataclass(frozen=True)
class Params:
    size: int = 3
SCENARIO = Scenario(name="toy", summary="", source="", params=Params, inputs=lambda p: (p.size,), variants={"f": abs})
"""


class TestParseTarget:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        """Two built-in scenarios, and an empty working folder of its own."""
        builtin = tmp_path / "builtin"
        builtin.mkdir()
        for name in ("add1.py", "linear_loop.py", "_draft.py"):
            write(builtin / name, MINIMAL)
        monkeypatch.setattr(module, "builtin_folder", lambda: builtin)
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        return here

    def test_a_built_in_name(self, folder):
        path = folder.parent / "builtin" / "linear_loop.py"
        assert parse_target("linear_loop") == Target("linear_loop", path, name=None)
        assert parse_target("linear_loop:batched") == Target("linear_loop:batched", path, name="batched")

    def test_a_leading_underscore_hides_a_file(self):
        assert list(builtin_paths()) == ["add1", "linear_loop"]

    @pytest.mark.parametrize("name", ["my.py", "a:b.py", "add1.py"])
    def test_a_path(self, folder, name):
        write(folder / name, MINIMAL)
        for text in (name, f"./{name}", str(folder / name)):
            assert parse_target(text) == Target(text, folder / name, name=None)
            assert parse_target(f"{text}:f") == Target(f"{text}:f", folder / name, name="f")

    def test_a_colon_in_a_folder_is_no_variant(self, folder):
        (folder / "run:1").mkdir()
        write(folder / "run:1" / "my.py", MINIMAL)
        assert parse_target("run:1/my.py") == Target("run:1/my.py", folder / "run:1" / "my.py", name=None)
        assert parse_target("run:1/my.py:f") == Target("run:1/my.py:f", folder / "run:1" / "my.py", name="f")

    def test_an_unknown_name_names_the_nearest(self):
        assert complaint(parse_target, "linear_lop:loop") == (
            "no scenario 'linear_lop'; did you mean 'linear_loop'? (`overhead-lens scenarios` lists them)"
        )
        assert complaint(parse_target, "zzz") == "no scenario 'zzz' (`overhead-lens scenarios` lists them)"
        assert complaint(parse_target, ":x") == "no scenario ':x' (`overhead-lens scenarios` lists them)"

    def test_a_missing_file(self):
        assert complaint(parse_target, "nowhere/my.py:f") == "no file nowhere/my.py"
        assert complaint(parse_target, "my.py") == "no file my.py"
        assert complaint(parse_target, "add1.py") == "no file add1.py; did you mean the built-in 'add1'?"

    def test_a_folder_is_no_file(self, folder):
        (folder / "inner.py").mkdir()
        assert complaint(parse_target, "inner.py") == "no file inner.py"

    def test_the_windows_form_of_a_path_keeps_its_drive(self):
        assert complaint(parse_target, "C:\\work\\my.py") == "no file C:\\work\\my.py"
        assert complaint(parse_target, "C:\\work\\my.py:f") == "no file C:\\work\\my.py"


class TestLoad:
    def test_a_scenario(self, tmp_path):
        scenario = load_file(write(tmp_path / "toy.py", MINIMAL))
        assert (scenario.name, list(scenario.variants)) == ("toy", ["f"])
        assert make_params(scenario, {"size": "4"}).size == 4

    def test_its_module_can_be_looked_up_by_name(self, tmp_path):
        """Dynamo does so, and typing for annotations that are strings; file names are not always identifiers."""
        scenario = load_file(write(tmp_path / "my-toy.v2.py", "from __future__ import annotations\n" + MINIMAL))
        assert scenario.params.__module__ == "overhead_lens_scenario_my_toy_v2"
        assert sys.modules[scenario.params.__module__].SCENARIO is scenario
        assert make_params(scenario, {"size": "4"}).size == 4

    def test_it_may_import_its_neighbours_while_it_loads(self, tmp_path, monkeypatch):
        monkeypatch.delitem(sys.modules, "neighbour_of_toy", raising=False)
        before = list(sys.path)
        write(tmp_path / "neighbour_of_toy.py", "NAME = 'from a neighbour'\n")
        text = "import neighbour_of_toy\n" + MINIMAL.replace('summary=""', "summary=neighbour_of_toy.NAME")
        assert load_file(write(tmp_path / "toy.py", text)).summary == "from a neighbour"
        assert sys.path == before

    def test_what_it_adds_to_the_search_path_stays(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "path", list(sys.path))
        before = list(sys.path)
        load_file(write(tmp_path / "toy.py", "import sys; sys.path.append('/added')\n" + MINIMAL))
        assert sys.path == [*before, "/added"]

    def test_a_relative_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "toy.py", "x = 1\n1 / 0\n")
        assert complaint(load_file, Path("toy.py")) == f"{tmp_path / 'toy.py'}:2: ZeroDivisionError: division by zero"

    def test_an_error_without_a_message_is_its_type(self, tmp_path):
        path = write(tmp_path / "toy.py", "assert False\n")
        assert complaint(load_file, path) == f"{path}:1: AssertionError"

    def test_a_syntax_error_names_its_line(self, tmp_path):
        path = write(tmp_path / "toy.py", "x = 1\n\ndef f(:\n")
        assert complaint(load_file, path) == f"{path}:3: syntax error: invalid syntax"

    def test_a_syntax_error_in_an_import_names_the_line_of_the_import(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        write(tmp_path / "broken_neighbour.py", "def f(:\n")
        path = write(tmp_path / "toy.py", "x = 1\nimport broken_neighbour\n")
        assert complaint(load_file, path) == f"{path}:2: SyntaxError: invalid syntax (broken_neighbour.py, line 1)"

    def test_an_exception_names_the_innermost_line_of_the_file(self, tmp_path):
        path = write(
            tmp_path / "toy.py",
            """\
            import json
            def read():
                return json.loads("{")
            read()
            """,
        )
        assert complaint(load_file, path).startswith(f"{path}:3: JSONDecodeError: Expecting property name")

    def test_a_missing_import(self, tmp_path):
        path = write(tmp_path / "toy.py", "\nimport no_such_module_anywhere\n")
        assert complaint(load_file, path) == f"{path}:2: ModuleNotFoundError: No module named 'no_such_module_anywhere'"

    def test_a_message_of_several_lines_becomes_one(self, tmp_path):
        path = write(tmp_path / "toy.py", "raise ImportError('\\nfirst\\n\\n  second\\n')\n")
        assert complaint(load_file, path) == f"{path}:1: ImportError: first second"

    def test_a_module_of_a_package_is_named_as_it_is_imported(self, tmp_path):
        path = write(tmp_path / "toy.py", "\nfrom .base import g\n")
        assert complaint(load_file, path) == (
            f"{path}:2: ImportError: attempted relative import with no known parent package; "
            "name a module of a package as imports do: package.module:f"
        )

    def test_a_file_that_the_scenario_cannot_open_is_not_the_scenario(self, tmp_path):
        path = write(tmp_path / "toy.py", "\nopen('/no/such/data.csv')\n")
        assert complaint(load_file, path) == (
            f"{path}:2: FileNotFoundError: [Errno 2] No such file or directory: '/no/such/data.csv'"
        )

    def test_a_missing_file(self, tmp_path):
        path = tmp_path / "toy.py"
        assert complaint(load_file, path) == f"cannot read {path}: No such file or directory"

    def test_a_script_that_ends_the_process(self, tmp_path):
        path = write(tmp_path / "toy.py", "import sys\nsys.exit(0)\n")
        assert (
            complaint(load_file, path)
            == f'{path}:2: it ended the process while it was loaded: what a script runs belongs below `if __name__ == "__main__":`'
        )

    def test_an_interrupt_is_not_swallowed(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            load_file(write(tmp_path / "toy.py", "raise KeyboardInterrupt\n"))

    def test_no_scenario(self, tmp_path):
        path = write(
            tmp_path / "toy.py", "from math import sin\nimport re\nx = 1\ndef f(): ...\ndef g(): ...\ndef _h(): ...\n"
        )
        assert complaint(load_file, path) == (
            f"{path} defines no SCENARIO = Scenario(...): name one of its functions, {path}:f (it has: f, g)"
        )

    def test_a_scenario_of_another_type(self, tmp_path):
        path = write(tmp_path / "toy.py", "SCENARIO = {'name': 'toy'}\n")
        assert complaint(load_file, path) == (
            f"{path}: SCENARIO is of type dict, not a Scenario (from overhead_lens.scenario)"
        )

    def test_a_scenario_that_breaks_the_contract_names_its_line(self, tmp_path):
        path = write(tmp_path / "toy.py", MINIMAL.replace('{"f": abs}', "{}"))
        assert complaint(load_file, path) == f"{path}:6: a scenario needs a name and at least one variant"

    def test_not_python(self, tmp_path):
        path = write(tmp_path / "toy.txt", "hello")
        assert complaint(load_file, path) == f"{path} is not a Python file"

    def test_bytes_that_are_no_text(self, tmp_path):
        path = tmp_path / "toy.py"
        path.write_bytes(b"x = '\xff'\n")
        assert complaint(load_file, path).startswith(f"{path}:1: syntax error: ")

    def test_a_failed_load_leaves_no_module(self, tmp_path):
        with pytest.raises(UsageError):
            load_file(write(tmp_path / "failed_toy.py", "1 / 0\n"))
        assert "overhead_lens_scenario_failed_toy" not in sys.modules


class TestParseFunctions:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        """An empty working folder."""
        monkeypatch.chdir(tmp_path)
        return tmp_path

    @pytest.mark.parametrize("text", ["package.module:f", "package.module:Class.method", "no_such.module_here:f"])
    def test_a_dotted_name_is_a_module(self, text):
        module_name, _, name = text.partition(":")
        assert parse_target(text) == Target(text, None, module_name, name)

    def test_a_module_beside_the_working_folder(self, folder):
        assert complaint(parse_target, "mine_beside:f").startswith("no scenario 'mine_beside'")
        write(folder / "mine_beside.py", "")
        assert parse_target("mine_beside:f") == Target("mine_beside:f", module="mine_beside", name="f")

    def test_an_installed_module_and_one_of_the_interpreter(self):
        assert parse_target("json:dumps").module == "json"
        assert parse_target("sys:getsizeof").module == "sys"

    def test_a_mere_folder_is_no_module(self, folder):
        (folder / "traces").mkdir()
        assert complaint(parse_target, "traces:f").startswith("no scenario 'traces'")

    @pytest.mark.parametrize("text", ["json", "json.decoder"])
    def test_a_module_without_a_function(self, text):
        assert complaint(parse_target, text) == f"{text} is a module: name a function of it, {text}:f"

    def test_inputs_of_another_file(self, folder):
        mine, other = write(folder / "mine.py", ""), write(folder / "other.py", "")
        made_by = Target("other.py:make", other, name="make")
        assert parse_target("mine.py:f", "other.py:make") == Target("mine.py:f", mine, name="f", inputs=made_by)
        assert parse_target("package.module:f", "other.py:make").inputs == made_by

    def test_inputs_of_the_same_place_need_no_colon(self, folder):
        mine = write(folder / "mine.py", "")
        assert parse_target("mine.py:f", "make").inputs == Target("mine.py:make", mine, name="make")
        assert parse_target("a.b:f", "make").inputs == Target("a.b:make", module="a.b", name="make")
        assert parse_target("a.b:f", "make") == parse_target("a.b:f", "a.b:make")

    @pytest.mark.parametrize("inputs", ["mine.py", "make()", "mine.py:make()", "lambda: (1,)"])
    def test_inputs_that_name_no_function(self, folder, inputs):
        write(folder / "mine.py", "")
        assert complaint(parse_target, "mine.py:f", inputs) == (
            f"--inputs names a function that returns the arguments, as make or my.py:make do, not {inputs}"
        )

    def test_a_built_in_scenario_makes_its_own(self):
        assert complaint(parse_target, "add1", "mine.py:make") == (
            "add1 is built in and makes its own inputs: leave --inputs out"
        )

    def test_json_and_back(self, folder):
        write(folder / "mine.py", "")
        for target in (parse_target("add1"), parse_target("a.b:f"), parse_target("mine.py:C.f", "a.b:make")):
            assert Target.from_json(json.loads(json.dumps(target.to_json()))) == target

    def test_what_directories_are_called(self, folder):
        write(folder / "mine.py", "")
        labels = [parse_target(text).label for text in ("add1", "add1:add1", "mine.py:f", "a.b:C.f")]
        assert labels == ["add1", "add1-add1", "mine-f", "a.b-C.f"]


FUNCTIONS = """\
def nothing():
    '''Does nothing.

    At all.
    '''
def two(x, y=2, *, scale=1):
    return x + y
def pair():
    return (1, 2)
def one():
    return 1
def many():
    return (1, 2, 3)
def failing():
    raise ValueError("no\\nway")
def generate():
    yield 1
async def wait(): ...
class Box:
    size = 3
    def __call__(self, x): ...
    def method(self, x): ...
    @staticmethod
    def static(): ...
box = Box()
"""


class TestFunctions:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        write(tmp_path / "mine.py", FUNCTIONS)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def of(self, text, inputs=None):
        return load(parse_target(text, inputs))

    def test_it_becomes_a_scenario_without_parameters(self):
        scenario = self.of("mine.py:nothing")
        assert (scenario.kind, scenario.name, list(scenario.variants)) == ("function", "mine", ["nothing"])
        assert (scenario.summary, scenario.source) == ("Does nothing.", "mine.py:nothing")
        assert scenario.inputs(make_params(scenario, {})) == Arguments()
        assert complaint(make_params, scenario, {"device": "cuda"}) == (
            "a function has no parameters: leave -p and --device out, its inputs say it all"
        )

    def test_a_scenario_is_of_another_kind(self, folder):
        write(folder / "toy.py", MINIMAL)
        assert self.of("toy.py:f").kind == "scenario"

    @pytest.mark.parametrize("inputs", ["pair", "mine.py:pair"])
    def test_inputs_of_the_same_file_are_of_the_same_module(self, inputs):
        scenario = self.of("mine.py:two", inputs)
        assert scenario.inputs(None) == Arguments((1, 2))
        assert scenario.inputs.args[2].__globals__ is scenario.variants["two"].__globals__

    def test_inputs_of_a_file_of_the_same_name(self, folder):
        (folder / "sub").mkdir()
        write(folder / "sub" / "mine.py", "class Number(int): ...\ndef make():\n    return (Number(5),)\n")
        scenario = self.of("mine.py:two", "sub/mine.py:make")
        (number,) = scenario.inputs(None).values
        assert (number, sys.modules[type(number).__module__].Number) == (5, type(number))
        assert sys.modules[scenario.variants["two"].__module__].two is scenario.variants["two"]

    def test_a_module_of_the_working_folder(self, folder, monkeypatch):
        package = folder / "package_of_mine"
        package.mkdir()
        write(package / "__init__.py", "")
        write(package / "inner.py", "from package_of_mine import neighbour\ndef f():\n    return neighbour.X\n")
        write(package / "neighbour.py", "X = 7\n")
        before = list(sys.path)
        scenario = self.of("package_of_mine.inner:f")
        assert (scenario.name, scenario.variants["f"]()) == ("package_of_mine.inner", 7)
        assert sys.path == before
        assert scenario.variants["f"] is sys.modules["package_of_mine.inner"].f

    def test_an_attribute_of_an_attribute(self):
        assert self.of("mine.py:Box.static").variants["Box.static"]() is None

    def test_a_callable_object(self, folder):
        write(folder / "args.py", "def make(): return (1,)\n")
        scenario = self.of("mine.py:box", "args.py:make")
        assert type(scenario.variants["box"]).__name__ == "Box"
        assert scenario.summary == ""
        assert scenario.inputs(None) == Arguments((1,))

    @pytest.mark.parametrize(
        ("text", "inputs", "message"),
        [
            (
                "mine.py:two",
                None,
                "mine.py:two takes arguments (x, y, scale): name a function that returns them in a tuple, --inputs my.py:make",
            ),
            (
                "mine.py:box.method",
                None,
                "mine.py:box.method takes arguments (x): name a function that returns them in a tuple, --inputs my.py:make",
            ),
            ("mine.py:tow", None, "mine.py:tow: there is no 'tow'; did you mean 'two'?"),
            (
                "mine.py:zzz",
                None,
                "mine.py:zzz: there is no 'zzz' (it has: nothing, two, pair, one, many, failing, generate, wait, ...)",
            ),
            ("mine.py:Box.xmethod", None, "mine.py:Box.xmethod: there is no 'xmethod'; did you mean 'method'?"),
            ("mine.py:two", "mine.py:pare", "mine.py:pare: there is no 'pare'; did you mean 'pair'?"),
            ("mine.py:Box.size", None, "mine.py:Box.size is of type int, which cannot be called"),
            ("mine.py:two", "mine.py:Box.size", "mine.py:Box.size is of type int, which cannot be called"),
            (
                "mine.py:generate",
                None,
                "mine.py:generate is a coroutine or generator function, and calling it runs nothing: name a function that runs it",
            ),
            (
                "mine.py:wait",
                None,
                "mine.py:wait is a coroutine or generator function, and calling it runs nothing: name a function that runs it",
            ),
            ("no_such_package.inner:f", None, "no module 'no_such_package.inner', neither in "),
            ("json.no_such_inner:f", None, "no module 'json.no_such_inner', neither in "),
        ],
    )
    def test_what_cannot_be_loaded(self, text, inputs, message):
        assert complaint(self.of, text, inputs).startswith(message)

    def test_arguments_by_name(self, folder):
        write(folder / "named.py", "def f(*, x, y=0): ...\ndef make(): return {'x': 1}\ndef other(): return {'z': 1}\n")
        assert self.of("named.py:f", "make").inputs(None) == Arguments(by_name={"x": 1})
        message = complaint(self.of("named.py:f", "other").inputs, None)
        assert message.startswith("named.py:f takes (x, y), not the 1 that named.py:other returns: ")

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            ("one", "mine.py:one must return a tuple of the arguments, or a dict by name, not int: return (x,)"),
            (
                "many",
                "mine.py:two takes (x, y, scale), not the 3 that mine.py:many returns: too many positional arguments",
            ),
            (
                "nothing",
                "mine.py:nothing must return a tuple of the arguments, or a dict by name, not NoneType: return (x,)",
            ),
            ("failing", "mine.py:failing failed: ValueError: no way"),
            ("two", "mine.py:two failed: TypeError: two() missing 1 required positional argument: 'x'"),
        ],
    )
    def test_inputs_at_fault(self, inputs, message):
        scenario = self.of("mine.py:two", inputs)
        assert complaint(scenario.inputs, None) == message

    def test_inputs_for_a_scenario(self, folder):
        write(folder / "toy.py", MINIMAL)
        assert complaint(self.of, "toy.py:f", "mine.py:pair") == (
            f"{folder / 'toy.py'} defines SCENARIO, which makes its own inputs: leave --inputs out"
        )

    @pytest.mark.parametrize(
        ("files", "place"),
        [
            ({"a_module_at_fault.py": "x = 1\n1 / 0\n"}, "a_module_at_fault.py:2: ZeroDivisionError: division by zero"),
            ({"a_module_at_fault.py": "\ndef f(:\n"}, "a_module_at_fault.py:2: syntax error: invalid syntax"),
            (
                {"a_module_at_fault.py": "\nimport no_such_module_anywhere\n"},
                "a_module_at_fault.py:2: ModuleNotFoundError: No module named 'no_such_module_anywhere'",
            ),
            (
                {"a_module_at_fault.py": "def g():\n    import sys\n    sys.exit(3)\ng()\n"},
                "a_module_at_fault.py:3: it ended the process while it was loaded: ",
            ),
        ],
    )
    def test_a_module_that_fails_names_file_and_line(self, folder, files, place):
        for name, text in files.items():
            write(folder / name, text)
        assert complaint(self.of, "a_module_at_fault:f").startswith(f"{folder}/{place}")

    def test_a_package_that_fails_names_its_file_and_line(self, folder):
        package = folder / "package_at_fault"
        package.mkdir()
        write(package / "__init__.py", "\n\nx = {}['key']\n")
        write(package / "inner.py", "def f(): ...\n")
        assert complaint(self.of, "package_at_fault.inner:f") == f"{package / '__init__.py'}:3: KeyError: 'key'"

    def test_a_function_without_a_signature_is_called_to_find_out(self):
        assert self.of("builtins:max", None).kind == "function"


def test_the_built_in_folder_is_beside_the_package_in_a_checkout():
    assert builtin_folder() == Path(module.__file__).resolve().parent.parent / "scenarios"
