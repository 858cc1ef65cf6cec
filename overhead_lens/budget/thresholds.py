"""When a reader is warned, and which blocks count: every threshold, with its unit in its name."""

from __future__ import annotations

DISTURBED_BLOCK_SHARE = 0.15
"""A block counts while the reference loop beside it takes at most so much longer than usual."""

DISTURBED_BLOCKS_SHARE = 0.25
"""More blocks than this left out show a disturbed machine."""

CLOCK_DRIFT_SHARE = 0.05
"""By so much the reference loop may drift from the first process to the last."""

FEWEST_PROCESSES = 5
"""Fewer timed processes make intervals wider than they need be."""

FEWEST_SAMPLES = 2_500
"""Fewer leave a category of 1 % uncertain by more than 0.4 points."""

UNREADABLE_STACKS_SHARE = 0.01
"""More stacks that could not be read may hide what runs where they were taken."""

UNATTRIBUTED_SHARE = 0.02
"""More of the wall time that no rule claims is said."""

CORRECTED_TRACE_SHARE = 0.05
"""The corrected trace reaches this in calls that it was not calibrated with (docs/methodology/correction.md)."""

SET_UP_SHARE = 0.03
"""A function that sets operators up takes less of the call than this,"""

SET_UP_NS = 3_000
"""or less than this for each operator; one takes some 10 to 300 ns."""

PAGE_FAULTS_SHARE = 0.01
"""Page faults that take more of the call than this are said."""

LEAST_PAGE_FAULT_NS = 100
"""What a page fault takes at least, where it was not measured."""

ABOVE_PEAK_RATIO = 1.25
"""Peaks differ by so much from one measurement to the next on a machine that others use."""

BYTES_MATTER_SHARE = 0.1
"""Below this share of the call, how its bytes are read is not what it is about."""
