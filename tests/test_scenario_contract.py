"""What a scenario is, and its parameters from text."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.scenario import Scenario, Work, make_params, parse_value
from tests.complaint import complaint


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

    @pytest.mark.parametrize("bad", [{"units": 0}, {"flops": -1}, {"bytes": -1}])
    def test_work_is_of_at_least_one_unit_and_never_negative(self, bad):
        work = {"units": 1, "flops": 0, "bytes": 0} | bad
        assert complaint(Work, **bad) == (
            "work needs units >= 1, flops >= 0 and bytes >= 0, not "
            f"Work(units={work['units']}, flops={work['flops']}, bytes={work['bytes']})"
        )


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
