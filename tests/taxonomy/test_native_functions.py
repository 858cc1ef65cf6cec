"""C functions of a trace with stacks: whose are they?"""

from __future__ import annotations

import pytest

from overhead_lens.taxonomy.native_functions import is_other_package

OWN, SCIPY = "train.py(7): augment", "/usr/lib/python3.11/site-packages/scipy/ndimage/_interpolation.py(742): zoom"


@pytest.mark.parametrize(
    ("function", "caller", "is_other"),
    [
        ("<built-in function zoom_shift>", SCIPY, True),
        ("<built-in function zoom_shift>", "scipy/ndimage/_interpolation.py(742): zoom", True),
        # A file of its own, and callers that are no packages of others.
        ("<built-in function zoom_shift>", OWN, False),
        ("<built-in function zoom_shift>", "torch/nn/functional.py(3): interpolate", False),
        ("<built-in function zoom_shift>", "json/decoder.py(3): decode", False),
        # The interpreter's and torch's functions, called by a package.
        ("<built-in function len>", SCIPY, False),
        ("<built-in function sqrt>", SCIPY, False),
        ("<built-in function _cuda_getDevice>", SCIPY, False),
        ("<built-in function is_grad_enabled>", SCIPY, False),
        # A method tells its type, whoever calls it.
        ("<built-in method astype of numpy.ndarray object at 0x7f00>", OWN, True),
        ("<method 'reduce' of 'numpy.ufunc' objects>", OWN, True),
        ("<built-in method add of torch._C.TensorBase object at 0x7f00>", SCIPY, False),
        ("<built-in method append of list object at 0x7f00>", SCIPY, False),
        ("<built-in method acquire of _thread.lock object at 0x7f00>", SCIPY, False),
        ("aten::add", SCIPY, False),
    ],
)
def test_whose_a_function_is(function: str, caller: str, is_other: bool) -> None:
    assert is_other_package(function, caller) == is_other
