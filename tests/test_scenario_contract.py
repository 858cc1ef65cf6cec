"""What a scenario is, how a name or a path finds one, and what a user is told about a file that is at fault."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens import scenario as module
from overhead_lens.errors import UsageError
from overhead_lens.scenario import (
    Published,
    Scenario,
    Target,
    Work,
    builtin_folder,
    builtin_paths,
    load,
    make_params,
    parse_target,
    parse_value,
)


@dataclass(frozen=True)
class Params:
    size: int = 10
    scale: float = 0.5
    label: str = "a"
    dtype: Literal["float32", "float64"] = "float32"
    rank: Literal[1, 2] = 1
    requires_grad: bool = False
    shape: tuple[int, ...] = (1,)
    derived: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1,\nnot {self.size}")


def make_scenario(**changes: Any) -> Scenario:
    parts: dict[str, Any] = {
        "name": "toy",
        "summary": "a toy",
        "source": "here",
        "params": Params,
        "inputs": lambda params: (params.size,),
        "variants": {"loop": lambda size: size, "batched": lambda size: size},
    }
    return Scenario(**(parts | changes))


def complaint(function: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(UsageError) as caught:
        function(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


MINIMAL = """\
from dataclasses import dataclass
from overhead_lens.scenario import Scenario
@dataclass(frozen=True)
class Params:
    size: int = 3
SCENARIO = Scenario(name="toy", summary="", source="", params=Params, inputs=lambda p: (p.size,), variants={"f": abs})
"""


class TestScenario:
    def test_the_first_variant_is_the_default(self):
        assert make_scenario().variant(None) == "loop"
        assert make_scenario().variant("batched") == "batched"

    def test_an_unknown_variant_names_the_nearest(self):
        assert (
            complaint(make_scenario().variant, "bathced")
            == "scenario toy has no variant 'bathced'; did you mean 'batched'?"
        )
        assert complaint(make_scenario().variant, "zzz") == "scenario toy has no variant 'zzz' (it has: loop, batched)"

    def test_it_is_frozen(self):
        with pytest.raises(FrozenInstanceError):
            make_scenario().name = "other"

    @pytest.mark.parametrize("changes", [{"name": ""}, {"variants": {}}])
    def test_it_needs_a_name_and_a_variant(self, changes):
        assert complaint(make_scenario, **changes) == "a scenario needs a name and at least one variant"

    def test_params_must_be_a_dataclass_type(self):
        assert complaint(make_scenario, params=int) == (
            "scenario toy: params must be a dataclass type, not <class 'int'>"
        )
        assert complaint(make_scenario, params=Params()).startswith(
            "scenario toy: params must be a dataclass type, not P"
        )

    def test_every_parameter_needs_a_default(self):
        @dataclass(frozen=True)
        class Bare:
            size: int

        assert complaint(make_scenario, params=Bare) == "scenario toy: parameter size needs a default"

    def test_a_published_figure_must_name_what_exists(self):
        assert complaint(make_scenario, published=(Published("eager", 1.0, "whole"),)) == (
            "scenario toy: figure 'eager' names no variant 'whole'"
        )
        assert complaint(make_scenario, published=(Published("eager", 1.0, "loop", params={"n": 1}),)) == (
            "scenario toy: figure 'eager' names no parameter 'n'"
        )

    @pytest.mark.parametrize("bad", [{"units": 0}, {"flops": -1}, {"bytes": -1}])
    def test_work_is_of_at_least_one_unit_and_never_negative(self, bad):
        work = {"units": 1, "flops": 0, "bytes": 0} | bad
        assert complaint(Work, **bad) == (
            "work needs units >= 1, flops >= 0 and bytes >= shared_bytes >= 0, not "
            f"Work(units={work['units']}, flops={work['flops']}, bytes={work['bytes']}, shared_bytes=0)"
        )


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
        assert parse_target("linear_loop") == Target(path, None)
        assert parse_target("linear_loop:batched") == Target(path, "batched")

    def test_a_leading_underscore_hides_a_file(self):
        assert list(builtin_paths()) == ["add1", "linear_loop"]

    @pytest.mark.parametrize("name", ["my.py", "a:b.py", "add1.py"])
    def test_a_path(self, folder, name):
        write(folder / name, MINIMAL)
        for text in (name, f"./{name}", str(folder / name)):
            assert parse_target(text) == Target(folder / name, None)
            assert parse_target(f"{text}:f") == Target(folder / name, "f")

    def test_a_colon_in_a_folder_is_no_variant(self, folder):
        (folder / "run:1").mkdir()
        write(folder / "run:1" / "my.py", MINIMAL)
        assert parse_target("run:1/my.py") == Target(folder / "run:1" / "my.py", None)
        assert parse_target("run:1/my.py:f") == Target(folder / "run:1" / "my.py", "f")

    def test_an_unknown_name_names_the_nearest(self):
        assert complaint(parse_target, "linear_lop:loop") == (
            "no scenario 'linear_lop'; did you mean 'linear_loop'? (`overhead-lens scenarios` lists them)"
        )
        assert complaint(parse_target, "zzz") == "no scenario 'zzz' (`overhead-lens scenarios` lists them)"
        assert complaint(parse_target, ":x") == "no scenario ':x' (`overhead-lens scenarios` lists them)"

    def test_a_missing_file(self):
        assert complaint(parse_target, "nowhere/my.py:f") == "no scenario file nowhere/my.py"
        assert complaint(parse_target, "my.py") == "no scenario file my.py"
        assert complaint(parse_target, "add1.py") == "no scenario file add1.py; did you mean the built-in 'add1'?"

    def test_a_folder_is_no_file(self, folder):
        (folder / "inner.py").mkdir()
        assert complaint(parse_target, "inner.py") == "no scenario file inner.py"

    def test_the_windows_form_of_a_path_keeps_its_drive(self):
        assert complaint(parse_target, "C:\\work\\my.py") == "no scenario file C:\\work\\my.py"
        assert complaint(parse_target, "C:\\work\\my.py:f") == "no scenario file C:\\work\\my.py"


class TestLoad:
    def test_a_scenario(self, tmp_path):
        scenario = load(write(tmp_path / "toy.py", MINIMAL))
        assert (scenario.name, list(scenario.variants)) == ("toy", ["f"])
        assert make_params(scenario, {"size": "4"}).size == 4

    def test_its_module_can_be_looked_up_by_name(self, tmp_path):
        """Dynamo does so, and typing for annotations that are strings; file names are not always identifiers."""
        scenario = load(write(tmp_path / "my-toy.v2.py", "from __future__ import annotations\n" + MINIMAL))
        assert scenario.params.__module__ == "overhead_lens_scenario_my_toy_v2"
        assert sys.modules[scenario.params.__module__].SCENARIO is scenario
        assert make_params(scenario, {"size": "4"}).size == 4

    def test_it_may_import_its_neighbours_while_it_loads(self, tmp_path, monkeypatch):
        monkeypatch.delitem(sys.modules, "neighbour_of_toy", raising=False)
        before = list(sys.path)
        write(tmp_path / "neighbour_of_toy.py", "NAME = 'from a neighbour'\n")
        text = "import neighbour_of_toy\n" + MINIMAL.replace('summary=""', "summary=neighbour_of_toy.NAME")
        assert load(write(tmp_path / "toy.py", text)).summary == "from a neighbour"
        assert sys.path == before

    def test_what_it_adds_to_the_search_path_stays(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "path", list(sys.path))
        before = list(sys.path)
        load(write(tmp_path / "toy.py", "import sys; sys.path.append('/added')\n" + MINIMAL))
        assert sys.path == [*before, "/added"]

    def test_a_relative_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "toy.py", "x = 1\n1 / 0\n")
        assert complaint(load, Path("toy.py")) == f"{tmp_path / 'toy.py'}:2: ZeroDivisionError: division by zero"

    def test_a_syntax_error_names_its_line(self, tmp_path):
        path = write(tmp_path / "toy.py", "x = 1\n\ndef f(:\n")
        assert complaint(load, path) == f"{path}:3: syntax error: invalid syntax"

    def test_a_syntax_error_in_an_import_names_the_line_of_the_import(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        write(tmp_path / "broken_neighbour.py", "def f(:\n")
        path = write(tmp_path / "toy.py", "x = 1\nimport broken_neighbour\n")
        assert complaint(load, path) == f"{path}:2: SyntaxError: invalid syntax (broken_neighbour.py, line 1)"

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
        assert complaint(load, path).startswith(f"{path}:3: JSONDecodeError: Expecting property name")

    def test_a_missing_import(self, tmp_path):
        path = write(tmp_path / "toy.py", "\nimport no_such_module_anywhere\n")
        assert complaint(load, path) == f"{path}:2: ModuleNotFoundError: No module named 'no_such_module_anywhere'"

    def test_a_message_of_several_lines_becomes_one(self, tmp_path):
        path = write(tmp_path / "toy.py", "raise ImportError('\\nfirst\\n\\n  second\\n')\n")
        assert complaint(load, path) == f"{path}:1: ImportError: first second"

    def test_a_file_that_the_scenario_cannot_open_is_not_the_scenario(self, tmp_path):
        path = write(tmp_path / "toy.py", "\nopen('/no/such/data.csv')\n")
        assert complaint(load, path) == (
            f"{path}:2: FileNotFoundError: [Errno 2] No such file or directory: '/no/such/data.csv'"
        )

    def test_a_missing_file(self, tmp_path):
        path = tmp_path / "toy.py"
        assert complaint(load, path) == f"cannot read {path}: No such file or directory"

    def test_a_script_that_ends_the_process(self, tmp_path):
        path = write(tmp_path / "toy.py", "import sys\nsys.exit(0)\n")
        assert complaint(load, path) == f"{path}:2: the file ended the process; a scenario only defines SCENARIO"

    def test_an_interrupt_is_not_swallowed(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            load(write(tmp_path / "toy.py", "raise KeyboardInterrupt\n"))

    @pytest.mark.parametrize("text", ["x = 1\n", "SCENARIO = {'name': 'toy'}\n"])
    def test_no_scenario(self, tmp_path, text):
        path = write(tmp_path / "toy.py", text)
        assert complaint(load, path) == (
            f"{path} defines no SCENARIO = Scenario(...) (import it from overhead_lens.scenario)"
        )

    def test_a_scenario_that_breaks_the_contract_names_its_line(self, tmp_path):
        path = write(tmp_path / "toy.py", MINIMAL.replace('{"f": abs}', "{}"))
        assert complaint(load, path) == f"{path}:6: a scenario needs a name and at least one variant"

    def test_not_python(self, tmp_path):
        path = write(tmp_path / "toy.txt", "hello")
        assert complaint(load, path) == f"{path} is not a Python file"

    def test_bytes_that_are_no_text(self, tmp_path):
        path = tmp_path / "toy.py"
        path.write_bytes(b"x = '\xff'\n")
        assert complaint(load, path).startswith(f"{path}:1: syntax error: ")

    def test_a_failed_load_leaves_no_module(self, tmp_path):
        with pytest.raises(UsageError):
            load(write(tmp_path / "failed_toy.py", "1 / 0\n"))
        assert "overhead_lens_scenario_failed_toy" not in sys.modules


class TestParameters:
    def test_defaults(self):
        assert make_params(make_scenario(), {}) == Params()

    def test_each_field_is_set_by_its_type(self):
        texts = {
            "size": "1_000",
            "scale": "2",
            "label": "b=c",
            "dtype": "float64",
            "rank": "2",
            "requires_grad": "True",
        }
        params = make_params(make_scenario(), texts)
        assert params == Params(1000, 2.0, "b=c", "float64", 2, requires_grad=True)
        assert isinstance(params.scale, float)

    def test_an_unknown_parameter_names_the_nearest(self):
        assert complaint(make_params, make_scenario(), {"dtpye": "float32"}) == (
            "scenario toy has no parameter 'dtpye'; did you mean 'dtype'?"
        )
        assert complaint(make_params, make_scenario(), {"zzz": "1"}) == (
            "scenario toy has no parameter 'zzz' (it has: size, scale, label, dtype, rank, requires_grad, shape)"
        )

    def test_a_field_that_is_derived_cannot_be_set(self):
        assert complaint(make_params, make_scenario(), {"derived": "1"}).startswith(
            "scenario toy has no parameter 'derived'"
        )

    def test_a_scenario_without_parameters(self):
        @dataclass(frozen=True)
        class Nothing:
            pass

        assert complaint(make_params, make_scenario(params=Nothing), {"size": "1"}) == (
            "scenario toy has no parameter 'size' (it has: none)"
        )

    def test_values_that_the_dataclass_refuses(self):
        assert complaint(make_params, make_scenario(), {"size": "0"}) == (
            "scenario toy: bad parameters: size must be at least 1, not 0"
        )

    def test_a_type_that_cannot_be_resolved(self):
        @dataclass(frozen=True)
        class Odd:
            size: NoSuchType = 1  # noqa: F821

        assert complaint(make_params, make_scenario(params=Odd), {"size": "1"}) == (
            "scenario toy: the type of a parameter is unknown: name 'NoSuchType' is not defined"
        )

    @pytest.mark.parametrize(
        ("kind", "text", "message"),
        [
            (int, "ten", "parameter p must be of type int, not 'ten'"),
            (int, "1.5", "parameter p must be of type int, not '1.5'"),
            (int, "", "parameter p must be of type int, not ''"),
            (float, "fast", "parameter p must be of type float, not 'fast'"),
            (float, "nan", "parameter p must be finite, not 'nan'"),
            (float, "-inf", "parameter p must be finite, not '-inf'"),
            (bool, "maybe", "parameter p must be true or false, not 'maybe'"),
            (Literal["cpu", "cuda"], "gpu", "parameter p must be one of cpu, cuda, not 'gpu'"),
            (Literal[1, 2], "3", "parameter p must be one of 1, 2, not '3'"),
            (list, "1", "parameter p has type <class 'list'>, which cannot be set from the command line"),
        ],
    )
    def test_a_text_of_another_kind(self, kind, text, message):
        assert complaint(parse_value, "p", kind, text) == message

    @pytest.mark.parametrize("text", ["true", "TRUE", "1", "yes"])
    def test_true(self, text):
        assert parse_value("p", bool, text) is True

    @pytest.mark.parametrize("text", ["false", "False", "0", "no"])
    def test_false(self, text):
        assert parse_value("p", bool, text) is False

    @given(st.integers())
    def test_an_int_is_read_back(self, value):
        assert parse_value("p", int, str(value)) == value

    def test_an_int_beyond_the_range_of_a_float_is_read_back(self):
        assert parse_value("p", int, str(10**400)) == 10**400

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_float_is_read_back(self, value):
        assert parse_value("p", float, repr(value)) == value

    @given(st.text())
    def test_a_str_is_kept_as_it_is(self, text):
        assert parse_value("p", str, text) == text


def test_the_built_in_folder_is_beside_the_package_in_a_checkout():
    assert builtin_folder() == Path(module.__file__).resolve().parent.parent / "scenarios"
