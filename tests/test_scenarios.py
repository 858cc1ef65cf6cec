"""The built-in scenarios: they load, their variants are right and agree, and their checks notice a wrong result."""

from __future__ import annotations

import ast
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.errors import UsageError
from overhead_lens.scenario import Scenario, Work, make_params
from overhead_lens.target import Target, builtin_folder, builtin_paths
from overhead_lens.worker.load import load_scenario


def load(path: Path) -> Scenario:
    return load_scenario(Target(str(path), path))


SCENARIOS = {name: load(path) for name, path in builtin_paths().items()}
VARIANTS = {
    "add1": ["add1"],
    "elementwise_sqrt": ["loop", "whole"],
    "gelu": ["gelu"],
    "linear_loop": ["loop", "batched"],
    "row_col_sum": ["torch_rows", "torch_cols", "numpy_rows", "numpy_cols"],
    "split_stack": ["split_stack", "combined"],
    "sum_elements": ["torch", "numpy", "numpy_numba", "numba", "builtin", "python"],
}
EACH_VARIANT = [(name, variant) for name, variants in VARIANTS.items() for variant in variants]
# Variants of one scenario that do the same work in different ways.
ALIKE = [
    ("elementwise_sqrt", ["loop", "whole"]),
    ("linear_loop", ["loop", "batched"]),
    ("row_col_sum", ["torch_rows", "numpy_rows"]),
    ("row_col_sum", ["torch_cols", "numpy_cols"]),
    ("split_stack", ["split_stack", "combined"]),
    ("sum_elements", ["torch", "numpy", "numpy_numba", "numba", "builtin", "python"]),
]
# Enough elements to be wrong in an interesting place, few enough to try every place.
SMALL: dict[str, dict[str, int]] = {
    "add1": {"size": 7},
    "elementwise_sqrt": {"rows": 3, "cols": 4},
    "gelu": {"n": 7},
    "linear_loop": {"vectors": 3, "features": 4},
    "row_col_sum": {"rows": 3, "cols": 4},
    "split_stack": {"pieces": 3, "rows": 2, "cols": 8},
    "sum_elements": {"n": 7},
}
ANY_FLOAT = ["float32", "float64", "float16", "bfloat16"]
DRAWN = {
    "add1": {"size": st.integers(1, 50), "dtype": st.sampled_from(ANY_FLOAT), "requires_grad": st.booleans()},
    "elementwise_sqrt": {
        "rows": st.integers(1, 20),
        "cols": st.integers(1, 20),
        "dtype": st.sampled_from(["float32", "float64"]),
    },
    "gelu": {"n": st.integers(1, 300), "dtype": st.sampled_from(ANY_FLOAT), "requires_grad": st.booleans()},
    "linear_loop": {
        "vectors": st.integers(1, 8),
        "features": st.integers(1, 40),
        "dtype": st.sampled_from(ANY_FLOAT),
        "requires_grad": st.booleans(),
    },
    "row_col_sum": {
        "rows": st.integers(1, 20),
        "cols": st.integers(1, 20),
        "dtype": st.sampled_from(["float32", "float64"]),
    },
    "split_stack": {
        "pieces": st.integers(1, 5),
        "rows": st.integers(1, 6),
        "cols": st.integers(2, 40),
        "dtype": st.sampled_from(["float32", "float64"]),
        "requires_grad": st.booleans(),
    },
    "sum_elements": {"n": st.integers(1, 3000), "dtype": st.sampled_from(["float32", "float64"])},
}


def draw_params(data: st.DataObject, scenario: Scenario) -> Any:
    return scenario.params(**{name: data.draw(values, name) for name, values in DRAWN[scenario.name].items()})


def make_inputs(scenario: Scenario, params: Any, seed: int = 0) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    return scenario.inputs(params)


def elements(output: Any) -> np.ndarray:
    """An output of any scenario as one float64 vector."""
    if isinstance(output, list):
        return np.concatenate([elements(each) for each in output])
    if isinstance(output, torch.Tensor):
        output = output.detach().double().numpy()
    return np.asarray(output, dtype=np.float64).ravel()


def with_element(output: Any, position: int, value: float) -> Any:
    """A copy of ``output`` that differs in one element, of the same type, dtype and shape."""
    if isinstance(output, list):
        length = output[0].numel()
        inner = with_element(output[position // length], position % length, value)
        return [*output[: position // length], inner, *output[position // length + 1 :]]
    if isinstance(output, torch.Tensor):
        copy = output.detach().clone()
        copy.view(-1)[position] = value
        return copy
    if isinstance(output, np.ndarray):
        copy = output.copy()
        copy.reshape(-1)[position] = value
        return copy
    return value


class TestContract:
    def test_these_are_built_in(self):
        assert {name: list(scenario.variants) for name, scenario in SCENARIOS.items()} == VARIANTS

    @pytest.mark.parametrize("name", VARIANTS)
    def test_a_name_is_the_stem_of_its_file(self, name):
        assert SCENARIOS[name].name == name

    @pytest.mark.parametrize("name", VARIANTS)
    def test_all_that_a_report_prints_is_there(self, name):
        scenario = SCENARIOS[name]
        assert scenario.check is not None
        assert scenario.work is not None
        for text in (scenario.summary, scenario.source):
            assert text
            assert "\n" not in text

    @pytest.mark.parametrize("name", VARIANTS)
    def test_only_the_contract_is_imported_from_the_package(self, name):
        tree = ast.parse(builtin_paths()[name].read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        imported |= {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
        assert {each for each in imported if each.startswith("overhead_lens")} == {"overhead_lens.scenario"}

    @pytest.mark.parametrize(
        ("name", "defaults"),
        [
            ("add1", {"size": 10, "dtype": "float32", "device": "cpu", "requires_grad": False}),
            ("elementwise_sqrt", {"rows": 1000, "cols": 100, "dtype": "float64", "device": "cpu"}),
            ("gelu", {"n": 10_000_000, "dtype": "float32", "device": "cpu", "requires_grad": False}),
            (
                "linear_loop",
                {"vectors": 10_000, "features": 256, "dtype": "float32", "device": "cpu", "requires_grad": False},
            ),
            ("row_col_sum", {"rows": 1000, "cols": 1000, "dtype": "float32", "device": "cpu"}),
            (
                "split_stack",
                {
                    "pieces": 16,
                    "rows": 1024,
                    "cols": 256,
                    "dtype": "float32",
                    "device": "cpu",
                    "requires_grad": False,
                },
            ),
            ("sum_elements", {"n": 10_000, "dtype": "float32", "device": "cpu"}),
        ],
    )
    def test_defaults(self, name, defaults):
        assert vars(make_params(SCENARIOS[name], {})) == defaults

    @pytest.mark.parametrize("name", ["elementwise_sqrt", "row_col_sum", "sum_elements"])
    def test_numpy_stays_on_the_cpu(self, name):
        with pytest.raises(UsageError, match=r"^parameter device must be one of cpu, not 'cuda'$"):
            make_params(SCENARIOS[name], {"device": "cuda"})

    @pytest.mark.parametrize(
        ("name", "assignments", "message"),
        [
            ("add1", {"size": "0"}, "size must be at least 1, not 0"),
            ("elementwise_sqrt", {"cols": "-1"}, "rows and cols must be at least 1, not 1000 and -1"),
            ("gelu", {"n": "0"}, "n must be at least 1, not 0"),
            ("linear_loop", {"vectors": "0"}, "vectors and features must be at least 1, not 0 and 256"),
            ("row_col_sum", {"rows": "0"}, "rows and cols must be at least 1, not 0 and 1000"),
            ("split_stack", {"pieces": "0"}, "pieces and rows must be at least 1, not 0 and 1024"),
            ("split_stack", {"cols": "1"}, "cols must be at least 2, not 1: one number has no variance"),
            ("sum_elements", {"n": "0"}, "n must be at least 1, not 0"),
        ],
    )
    def test_impossible_sizes_are_refused(self, name, assignments, message):
        with pytest.raises(UsageError) as caught:
            make_params(SCENARIOS[name], assignments)
        assert str(caught.value) == f"scenario {name}: bad parameters: {message}"


class TestVariants:
    @pytest.mark.parametrize(("name", "variant"), EACH_VARIANT)
    @settings(max_examples=15)
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def test_passes_its_check(self, name, variant, data, seed):
        scenario = SCENARIOS[name]
        params = draw_params(data, scenario)
        arguments = make_inputs(scenario, params, seed)
        scenario.check(params, arguments, scenario.variants[variant](*arguments))

    @pytest.mark.parametrize(("name", "variants"), ALIKE)
    @settings(max_examples=15)
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def test_agrees_with_those_alike(self, name, variants, data, seed):
        scenario = SCENARIOS[name]
        params = draw_params(data, scenario)
        arguments = make_inputs(scenario, params, seed)
        first, *others = (elements(scenario.variants[variant](*arguments)) for variant in variants)
        tolerance = 200 * torch.finfo(getattr(torch, params.dtype)).eps
        for other in others:
            np.testing.assert_allclose(other, first, rtol=tolerance, atol=tolerance)

    @pytest.mark.parametrize("requires_grad", [False, True])
    @pytest.mark.parametrize(("name", "variant"), [pair for pair in EACH_VARIANT if "requires_grad" in DRAWN[pair[0]]])
    def test_autograd_records_only_when_asked(self, name, variant, requires_grad):
        scenario = SCENARIOS[name]
        arguments = make_inputs(scenario, scenario.params(**SMALL[name], requires_grad=requires_grad))
        output = scenario.variants[variant](*arguments)
        outputs = output if isinstance(output, list) else [output]
        assert {each.requires_grad for each in outputs} == {requires_grad}

    @pytest.mark.parametrize(
        ("variant", "expected"),
        [
            ("torch_rows", [6, 15]),
            ("numpy_rows", [6, 15]),
            ("torch_cols", [5, 7, 9]),
            ("numpy_cols", [5, 7, 9]),
        ],
    )
    def test_rows_are_rows(self, variant, expected):
        matrix = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        assert elements(SCENARIOS["row_col_sum"].variants[variant](matrix, matrix.numpy())).tolist() == expected

    @pytest.mark.parametrize(
        ("name", "variant"),
        [
            ("add1", "add1"),
            ("gelu", "gelu"),
            ("linear_loop", "loop"),
            ("linear_loop", "batched"),
            ("row_col_sum", "torch_rows"),
            ("row_col_sum", "torch_cols"),
            ("split_stack", "split_stack"),
            ("split_stack", "combined"),
        ],
    )
    def test_dynamo_takes_it_whole(self, name, variant):
        scenario = SCENARIOS[name]
        params = scenario.params(**SMALL[name])
        arguments = make_inputs(scenario, params)
        torch.compiler.reset()
        compiled = torch.compile(scenario.variants[variant], backend="eager", fullgraph=True)
        scenario.check(params, arguments, compiled(*arguments))

    def test_dynamo_takes_the_torch_sum_up_to_its_item(self):
        scenario = SCENARIOS["sum_elements"]
        params = scenario.params(n=7)
        arguments = make_inputs(scenario, params)
        torch.compiler.reset()
        scenario.check(params, arguments, torch.compile(scenario.variants["torch"], backend="eager")(*arguments))

    def test_the_first_call_leaves_compiled_functions_behind(self):
        scenario = SCENARIOS["sum_elements"]
        arguments = make_inputs(scenario, scenario.params(n=7))
        for variant in ("numpy_numba", "numba"):
            scenario.variants[variant](*arguments)
        # Of the file as it was loaded for this scenario: another test may have loaded it again since.
        file = scenario.variants["numba"].__globals__
        assert file["_compiled_call"].py_func is file["numpy_sum"]
        assert file["_compiled_loop"].py_func is file["python_sum"]


class TestMissingPackages:
    def test_only_the_numba_variants_need_numba(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "numba", None)
        scenario = load(builtin_paths()["sum_elements"])
        arguments = make_inputs(scenario, scenario.params(n=7))
        for variant in ("torch", "numpy", "builtin", "python"):
            scenario.variants[variant](*arguments)
        for variant in ("numpy_numba", "numba"):
            with pytest.raises(ModuleNotFoundError, match="^the numba variants need numba in this interpreter"):
                scenario.variants[variant](*arguments)

    def test_only_the_numpy_variants_of_row_col_sum_need_numpy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "numpy", None)
        scenario = load(builtin_paths()["row_col_sum"])
        params = scenario.params(rows=2, cols=3)
        arguments = make_inputs(scenario, params)
        for variant in ("torch_rows", "torch_cols"):
            scenario.check(params, arguments, scenario.variants[variant](*arguments))
        for variant in ("numpy_rows", "numpy_cols"):
            with pytest.raises(ModuleNotFoundError, match="^the numpy variants need NumPy"):
                scenario.variants[variant](*arguments)

    @pytest.mark.parametrize("name", ["add1", "gelu", "linear_loop", "split_stack"])
    def test_the_torch_scenarios_do_without_numpy(self, name, monkeypatch):
        monkeypatch.setitem(sys.modules, "numpy", None)
        assert load(builtin_paths()[name]).name == name

    @pytest.mark.parametrize("name", ["elementwise_sqrt", "sum_elements"])
    def test_without_numpy_the_line_that_needs_it_is_named(self, name, monkeypatch):
        path = builtin_paths()[name]
        line = path.read_text(encoding="utf-8").splitlines().index("import numpy as np") + 1
        monkeypatch.setitem(sys.modules, "numpy", None)
        with pytest.raises(UsageError, match=rf"^{re.escape(str(path))}:{line}: ModuleNotFoundError: .*numpy"):
            load(path)


class TestChecks:
    @pytest.mark.parametrize(("name", "variant"), EACH_VARIANT)
    @pytest.mark.parametrize("error", [1e-3, -1e-3, math.nan, math.inf])
    def test_one_wrong_element_anywhere_is_noticed(self, name, variant, error):
        scenario = SCENARIOS[name]
        params = scenario.params(**SMALL[name])
        arguments = make_inputs(scenario, params)
        output = scenario.variants[variant](*arguments)
        values = elements(output)
        for position, value in enumerate(values.tolist()):
            with pytest.raises(ValueError, match=rf"^{name}: .*expected .*got ") as caught:
                scenario.check(params, arguments, with_element(output, position, value + error))
            assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("name", "variant"), [pair for pair in EACH_VARIANT if pair[0] != "sum_elements"])
    def test_a_result_of_another_shape_is_noticed(self, name, variant):
        scenario = SCENARIOS[name]
        params = scenario.params(**SMALL[name])
        arguments = make_inputs(scenario, params)
        output = scenario.variants[variant](*arguments)
        # One short, except that three columns' sums could be three rows': two short.
        with pytest.raises(ValueError, match=rf"^{name}: .*expected .*got "):
            scenario.check(params, arguments, output[:-2] if name == "row_col_sum" else output[:-1])

    @pytest.mark.parametrize("name", ["add1", "elementwise_sqrt", "gelu", "linear_loop", "split_stack"])
    def test_a_result_of_another_dtype_is_noticed(self, name):
        scenario = SCENARIOS[name]
        params = scenario.params(**SMALL[name], dtype="float32")
        arguments = make_inputs(scenario, params)
        output = scenario.variants[VARIANTS[name][-1]](*arguments)
        doubled = output.astype("float64") if isinstance(output, np.ndarray) else output.double()
        with pytest.raises(ValueError, match=rf"^{name}: expected (torch\.)?float32 .*, got (torch\.)?float64 "):
            scenario.check(params, arguments, doubled)

    @pytest.mark.parametrize(("name", "variant"), EACH_VARIANT)
    def test_the_result_of_other_inputs_is_noticed(self, name, variant):
        scenario = SCENARIOS[name]
        params = scenario.params(**SMALL[name])
        arguments = make_inputs(scenario, params)
        doubled = make_inputs(scenario, params)
        (doubled[-1].weight.data if name == "split_stack" else elements_of(doubled)).mul_(2)
        output = scenario.variants[variant](*doubled)
        with pytest.raises(ValueError, match=f"^{name}: "):
            scenario.check(params, arguments, output)

    def test_gelu_may_round_to_the_numbers_there_are_below_the_smallest_normal_one(self):
        scenario = SCENARIOS["gelu"]
        x = torch.tensor([-6.616115570068359e-06], dtype=torch.float16)
        quantum = 2.0**-24
        params = scenario.params(n=1, dtype="float16")
        for steps, passes in ((0, True), (3, True), (-3, True), (5, False), (-5, False)):
            output = (x.double() / 2 + steps * quantum).half()
            if passes:
                scenario.check(params, (x,), output)
            else:
                with pytest.raises(ValueError, match="gelu: element 0"):
                    scenario.check(params, (x,), output)

    def test_the_last_of_many_elements_is_among_those_looked_at(self):
        scenario = SCENARIOS["gelu"]
        params = scenario.params(n=25_003)
        arguments = make_inputs(scenario, params)
        output = with_element(scenario.variants["gelu"](*arguments), 25_002, 99.0)
        with pytest.raises(ValueError, match=r"^gelu: element 25002: expected .*, got 99\.0$"):
            scenario.check(params, arguments, output)

    def test_the_last_of_many_rows_is_among_those_looked_at(self):
        scenario = SCENARIOS["row_col_sum"]
        params = scenario.params(rows=2503, cols=2)
        arguments = make_inputs(scenario, params)
        output = with_element(scenario.variants["torch_rows"](*arguments), 2502, 99.0)
        with pytest.raises(ValueError, match=r"^row_col_sum: row 2502: expected .*, got 99\.0$"):
            scenario.check(params, arguments, output)

    def test_a_total_that_stopped_growing_is_noticed(self):
        """Added one after the other in float32, 2**24 + 1 rounds to 2**24, ten thousand times."""
        array = np.ones(10_001, dtype=np.float32)
        array[0] = 2**24
        output = np.add.accumulate(array)[-1]
        assert output == 2**24
        scenario = SCENARIOS["sum_elements"]
        with pytest.raises(ValueError, match=r"^sum_elements: expected 16787216\.0, got 16777216\.0$"):
            scenario.check(scenario.params(n=10_001), (array,), output)


def elements_of(arguments: tuple[Any, ...]) -> torch.Tensor:
    """The data of a scenario's inputs as a tensor of the same memory."""
    arrays = [each for each in arguments if isinstance(each, (torch.Tensor, np.ndarray))]
    return torch.as_tensor(arrays[0]).detach()


def identity(features: int) -> torch.nn.Linear:
    linear = torch.nn.Linear(features, features).requires_grad_(False)  # noqa: FBT003
    linear.weight.copy_(torch.eye(features))
    linear.bias.zero_()
    return linear


def constant(value: float, features: int) -> torch.nn.Linear:
    linear = torch.nn.Linear(features, 1).requires_grad_(False)  # noqa: FBT003
    linear.weight.zero_()
    linear.bias.fill_(value)
    return linear


GELU_OF_1 = 0.5 * (1 + math.erf(1 / 1.41421))


@pytest.mark.parametrize(
    ("name", "params", "arguments", "right", "wrong", "message"),
    [
        (
            "add1",
            {"size": 3},
            (torch.tensor([1.0, 2.0, 3.0]),),
            torch.tensor([2.0, 3.0, 4.0]),
            torch.tensor([2.0, 3.0, 5.0]),
            "add1: element 2: expected 4.0, got 5.0",
        ),
        (
            "add1",
            {"size": 3},
            (torch.tensor([1.0, 2.0, 3.0]),),
            torch.tensor([2.0, 3.0, 4.0]),
            torch.tensor([2.0, 3.0]),
            "add1: expected torch.float32 (3,), got torch.float32 (2,)",
        ),
        (
            "elementwise_sqrt",
            {"rows": 2, "cols": 2},
            (np.array([[1.0, 4.0], [9.0, 16.0]]),),
            np.array([[1.0, 2.0], [3.0, 4.0]]),
            np.array([[1.0, 2.0], [3.5, 4.0]]),
            "elementwise_sqrt: element 0 of row 1: expected 3.0, got 3.5",
        ),
        (
            "gelu",
            {"n": 2},
            (torch.tensor([0.0, 1.0]),),
            torch.tensor([0.0, GELU_OF_1]),
            torch.tensor([0.0, 1.0]),
            f"gelu: element 1: expected {GELU_OF_1!r}, got 1.0",
        ),
        (
            "linear_loop",
            {"vectors": 2, "features": 2},
            (identity(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
            [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])],
            [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])],
            "linear_loop: element 1 of vector 1: expected 4.0, got 5.0",
        ),
        (
            "row_col_sum",
            {"rows": 2, "cols": 3},
            (torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), None),
            torch.tensor([6.0, 15.0]),
            torch.tensor([6.0, 14.0]),
            "row_col_sum: row 1: expected 15.0, got 14.0",
        ),
        (
            "row_col_sum",
            {"rows": 2, "cols": 2},
            (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), None),
            torch.tensor([4.0, 6.0]),
            torch.tensor([3.0, 6.0]),
            "row_col_sum: row 1: expected 7.0, got 6.0 or column 0: expected 4.0, got 3.0",
        ),
        (
            "row_col_sum",
            {"rows": 2, "cols": 3},
            (torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), None),
            np.array([5.0, 7.0, 9.0]),
            np.array([5.0]),
            "row_col_sum: expected 2 or 3 sums, got 1",
        ),
        (
            "split_stack",
            {"pieces": 2, "rows": 1, "cols": 2},
            (torch.tensor([1.0, 2.0, 3.0, 4.0]), (2, 1, 2), None, constant(2.0, 2)),
            torch.tensor([[[2.0]], [[2.0]]]),
            torch.tensor([[[2.0]], [[3.0]]]),
            "split_stack: row 0 of piece 1: expected 2.0, got 3.0",
        ),
        (
            "split_stack",
            {"pieces": 2, "rows": 1, "cols": 2},
            (torch.tensor([1.0, 2.0, 3.0, 4.0]), (2, 1, 2), None, constant(-2.0, 2)),
            torch.tensor([[[0.0]], [[0.0]]]),
            torch.tensor([[[-2.0]], [[0.0]]]),
            "split_stack: row 0 of piece 0: expected 0.0, got -2.0",
        ),
        (
            "sum_elements",
            {"n": 3},
            (np.array([1.0, 2.0, 3.0], dtype=np.float32),),
            6.0,
            7.0,
            "sum_elements: expected 6.0, got 7.0",
        ),
    ],
)
def test_a_check_tells_what_it_expected(name, params, arguments, right, wrong, message):
    scenario = SCENARIOS[name]
    scenario.check(scenario.params(**params), arguments, right)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        scenario.check(scenario.params(**params), arguments, wrong)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("add1", {}, Work(units=1, flops=10, bytes=80)),
        ("add1", {"size": 3, "dtype": "float64"}, Work(units=1, flops=3, bytes=48)),
        ("elementwise_sqrt", {}, Work(units=1000, flops=100_000, bytes=1_600_000)),
        ("elementwise_sqrt", {"rows": 2, "cols": 3, "dtype": "float32"}, Work(units=2, flops=6, bytes=48)),
        ("gelu", {}, Work(units=10_000_000, flops=50_000_000, bytes=80_000_000)),
        ("gelu", {"n": 3, "dtype": "bfloat16"}, Work(units=3, flops=15, bytes=12)),
        # 10,000 x 256 x 256 multiply-adds; (2 x 2,560,000 + 65,536 + 256) floats.
        ("linear_loop", {}, Work(units=10_000, flops=1_310_720_000, bytes=20_743_168)),
        # A vector: 2 x (2 products, 1 addition, 1 bias) = 8. Floats: 6 in, 6 out, 4 weights, 2 biases = 18.
        ("linear_loop", {"vectors": 3, "features": 2}, Work(units=3, flops=24, bytes=72)),
        ("row_col_sum", {}, Work(units=1_000_000, flops=999_000, bytes=4_004_000)),
        ("row_col_sum", {"rows": 2, "cols": 3, "dtype": "float64"}, Work(units=6, flops=4, bytes=64)),
        # 16,384 rows of 8 x 256 + 3 = 2051; (4,194,304 + 257 + 16,384) floats.
        ("split_stack", {}, Work(units=16, flops=33_603_584, bytes=16_843_780)),
        # 6 rows of 8 x 2 + 3 = 19; (12 + 3 + 6) floats.
        ("split_stack", {"pieces": 3, "rows": 2, "cols": 2}, Work(units=3, flops=114, bytes=84)),
        ("sum_elements", {}, Work(units=10_000, flops=9_999, bytes=40_004)),
        ("sum_elements", {"n": 1, "dtype": "float64"}, Work(units=1, flops=0, bytes=16)),
    ],
)
def test_work(name, params, expected):
    scenario = SCENARIOS[name]
    assert scenario.work(scenario.params(**params)) == expected


class TestReadme:
    @pytest.fixture
    def text(self):
        return (builtin_folder() / "README.md").read_text(encoding="utf-8")

    def test_its_table_lists_every_scenario_and_variant(self, text):
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", text, flags=re.MULTILINE)
        assert {name: re.findall(r"`(\w+)`", variants) for name, variants in rows} == VARIANTS

    @pytest.mark.parametrize("assignments", [{}, {"size": "8", "dtype": "float64"}])
    def test_its_example_works(self, text, tmp_path, assignments):
        (example,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        path: Path = tmp_path / "matmul.py"
        path.write_text(example, encoding="utf-8")
        scenario = load(path)
        params = make_params(scenario, assignments)
        arguments = make_inputs(scenario, params)
        for variant in scenario.variants.values():
            output = variant(*arguments)
            scenario.check(params, arguments, output)
            with pytest.raises(AssertionError):
                scenario.check(params, arguments, output + 1)
        assert scenario.work(scenario.params(size=2)) == Work(units=1, flops=12, bytes=0)
