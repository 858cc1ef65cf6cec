"""A disturbed machine is one at the same share of blocks, whatever was measured."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pandas as pd
import pytest

from overhead_lens.budget.thresholds import DISTURBED_BLOCKS_SHARE
from overhead_lens.budget.warnings import clock_warnings
from overhead_lens.studies.ladder import analysis as ladder
from overhead_lens.studies.sweep import analysis as sweep
from tests.drawn.captures import ROW

BLOCKS = 100


def of_a_capture(left_out: int) -> list[str]:
    rows = [{**ROW, "process": process} for process in range(5) for _ in range(BLOCKS // 5)]
    return list(clock_warnings(pd.DataFrame(rows), BLOCKS - left_out, in_turns=False))


def of_a_ladder(left_out: int) -> list[str]:
    return list(ladder._warnings(left_out / BLOCKS, SimpleNamespace(values={}), []))


def of_a_sweep(left_out: int) -> list[str]:
    return list(sweep._warnings(SimpleNamespace(unsettled=0), 1 - left_out / BLOCKS))


@pytest.mark.parametrize("warnings_of", [of_a_capture, of_a_ladder, of_a_sweep])
def test_the_same_share_of_blocks_is_too_much(warnings_of: Callable[[int], list[str]]) -> None:
    most = round(DISTURBED_BLOCKS_SHARE * BLOCKS)
    assert warnings_of(most) == []
    (warning,) = warnings_of(most + 1)
    assert warning.startswith(f"{most + 1}% of the blocks were left out: ")
