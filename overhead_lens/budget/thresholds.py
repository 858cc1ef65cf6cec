"""Thresholds of warnings and of the choice of blocks; names carry the unit."""

from __future__ import annotations

DISTURBED_BLOCK_SHARE = 0.15  # A block counts if its reference loop takes at most so much longer than usual.
DISTURBED_BLOCKS_SHARE = 0.25  # A larger share of blocks left out shows a disturbed machine.
DELAYED_SHARE = 0.02  # A larger share of the blocks' time spent waiting for a core shows a busy machine.
CLOCK_DRIFT_SHARE = 0.05  # Drift of the reference loop from the first process to the last that needs no warning.
FEWEST_PROCESSES = 5  # Fewer timed processes make intervals wider than they need be.
FEWEST_SAMPLES = 2_500  # Fewer leave a category of 1 % uncertain by more than 0.4 points.
UNREADABLE_STACKS_SHARE = 0.01  # A larger share of unreadable stacks may hide code that runs only there.
UNATTRIBUTED_SHARE = 0.02  # A larger unattributed share of the wall time is reported.
# Stacks overstate waiting for a backward pass on another thread: above this share of it they are not believed.
BACKWARD_SHARE = 0.02
# Residual of the corrected trace in calls that it was not calibrated with (docs/methodology/correction.md).
CORRECTED_TRACE_SHARE = 0.05
# A function that sets operators up takes less of the call than this, or less than this per operator; 10 to 300 ns is usual.
SET_UP_SHARE = 0.03
SET_UP_NS = 3_000
PAGE_FAULTS_SHARE = 0.01  # Page faults that take a larger share of the call are reported.
LEAST_PAGE_FAULT_NS = 100  # Least time of a page fault, for captures that did not measure it.
ABOVE_PEAK_RATIO = 1.25  # Measured peaks differ by so much between measurements on a shared machine.
LISTED_KERNELS = 8  # Kernels of a device that a budget lists, by their time.
BYTES_MATTER_SHARE = 0.1  # Memory traffic that takes a smaller share of the call does not matter.
