"""The survey of operators: what it takes for a kernel that no rule knows, and that the rules know some of each kind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from overhead_lens.stack import Stack
from scripts.validation import operators as survey
from tests.accuracy.test_known_costs import require_laboratory
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack
from tests.worker.warm import TORCH, warm_workers

KERNEL = "at::native::AVX2::sin_kernel (libtorch_cpu.so)"
SET_UP = "at::native::resize_output (libtorch_cpu.so)"
STUB = "at::native::DispatchStubImpl::get_call_ptr (libtorch_cpu.so)"


def operator(**frames: int) -> list[Stack]:
    innermost = {
        "kernel": (ENTRY, KERNEL),
        "set_up": (ENTRY, SET_UP),
        "entry": (ENTRY,),
        "stub": (ENTRY, STUB),
        "python": (),
    }
    return [stack(USER, BINDING, *innermost[name], count=count) for name, count in frames.items()]


@pytest.mark.parametrize(
    ("frames", "share", "unknown"),
    [
        ({"kernel": 97, "set_up": 3}, 0.03, False),
        ({"kernel": 92, "set_up": 8}, 0.08, False),  # 1 in 93 by chance
        ({"kernel": 91, "set_up": 9}, 0.09, True),  # 1 in 318
        ({"kernel": 94, "set_up": 3, "entry": 3}, 0.06, False),
        ({"kernel": 50, "python": 50}, 0.5, False),
        ({"kernel": 40, "stub": 60}, 0.6, False),
    ],
)
def test_one_frame_that_takes_more_than_set_up_can_is_a_kernel_that_is_not_known(
    frames: dict[str, int],
    share: float,
    unknown: bool,  # noqa: FBT001
) -> None:
    found = survey.look_at("drawn", 1e6, operator(**frames), CLASSIFIER)
    assert (found.stacks, found.share, found.unknown) == (100, share, unknown)


# Beside other load a backward pass waits longer for its thread, and a caller was once sampled in place of its kernel.
@pytest.mark.measures
@pytest.mark.parametrize(
    "names",
    [
        ["index_select", "cat", "max_pool1d", "nll_loss", "quantize_per_channel"],
        pytest.param(["batch_norm channels_last backward"], marks=pytest.mark.quiet),
    ],
    ids=["forward", "backward"],
)
def test_kernels_of_each_kind_are_known(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_laboratory()
    monkeypatch.setattr(sys, "argv", ["operators", *names, "--result", str(tmp_path / "operators.json")])
    with warm_workers(TORCH):  # none of them is compiled
        survey.main()
    printed = capsys.readouterr().out
    last = printed.splitlines()[-1]
    if "no permission" in last or "not installed" in last:
        pytest.skip(last)
    assert last == f"The rules do not know a kernel of 0 of {len(names)} operators.", printed
