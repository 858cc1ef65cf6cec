from __future__ import annotations

import pytest

from overhead_lens.budget.operators import operator_name, operator_path, operator_tree
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack

KNOWN = frozenset({"aten::add", "aten::to", "aten::_to_copy", "aten::copy_", "aten::empty_strided"})
TYPES = "at::TensorIteratorBase::compute_types (libtorch_cpu.so)"
TO = ("at::native::to (libtorch_cpu.so)", "at::_ops::to_dtype::call (libtorch_cpu.so)")
REDISPATCH = "at::_ops::add_Tensor::redispatch (libtorch_cpu.so)"


def test_names_tell_operator_from_overload() -> None:
    assert operator_name("add_Tensor", KNOWN) == "aten::add.Tensor"
    assert operator_name("_to_copy", KNOWN) == "aten::_to_copy"
    assert operator_name("copy_", KNOWN) == "aten::copy_"
    assert operator_name("sum_dim_IntList", KNOWN) == "aten::sum_dim_IntList"


def test_redispatch_is_the_same_operator_and_the_caller_is_kept() -> None:
    frames = stack(USER, BINDING, ENTRY, REDISPATCH, TYPES, *TO).frames
    assert operator_path(frames, KNOWN) == [
        ("aten::add.Tensor", ""),
        ("aten::to.dtype", "at::TensorIteratorBase::compute_types"),
    ]


def test_the_tree_divides_the_wall_without_remainder() -> None:
    stacks = [
        stack(USER, count=3),
        stack(USER, BINDING, ENTRY, count=2),
        stack(USER, BINDING, ENTRY, REDISPATCH, count=1),
        stack(USER, BINDING, ENTRY, TYPES, *TO, count=1),
    ]
    root = operator_tree(stacks, [CLASSIFIER.classify(each) for each in stacks], 1_000, KNOWN, "add1:add1")
    (add,) = root.children
    (to,) = add.children
    assert (root.total_ns, root.self_ns, root.categories) == (1_000, 429, {"python": 429})
    assert (add.name, add.total_ns, to.name, to.called_from) == (
        "aten::add.Tensor",
        571,
        "aten::to.dtype",
        "at::TensorIteratorBase::compute_types",
    )
    assert add.self_ns + to.total_ns == add.total_ns
    assert to.categories == {"dispatcher": to.self_ns}


@pytest.mark.parametrize(
    ("frames", "category"),
    [
        ((USER, "mkl_blas_avx512_sgemm_kernel_0 (libtorch_cpu.so)"), "operator unknown"),
        ((USER, "cblas_sgemm (libopenblas.so)"), "kernel"),
        ((USER, BINDING, "mkl_blas_avx512_sgemm_kernel_0 (libtorch_cpu.so)"), "kernel"),
        ((USER, "c10::TensorImpl::sizes (libtorch_cpu.so)"), ""),
    ],
)
def test_a_kernel_of_torch_whose_caller_is_lost_has_an_unknown_operator(frames: tuple[str, ...], category: str) -> None:
    stacks = [stack(USER, count=1), stack(*frames, count=3)]
    root = operator_tree(stacks, [CLASSIFIER.classify(each) for each in stacks], 1_000, KNOWN, "f:f")
    found = {child.name: child.categories for child in root.children}
    assert found == ({category: {"kernel": 750}} if category == "operator unknown" else {})
    assert root.categories.get("kernel", 0) == (750 if category == "kernel" else 0)
