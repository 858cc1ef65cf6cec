"""Names of the files of a capture.

====================  ================================================================================
``meta.json``         what was measured, how and where; written last: its presence means that the capture is complete
``clock.parquet``     every timed block: process, block, calls, wall_ns, reference_ns, minor_faults, system_ns, cpu_ns, compiles,
                      delayed_ns, contended_ns (waiting for a core, as of ``Waits.during``);
                      of a comparison also compilation (earlier compilations in the process) and steady_ns
``kineto.json.gz``    torch.profiler's export of the measured loop, unchanged
``kineto_stack.json.gz``  the same with Python stacks, a few calls: for pictures, not for numbers
``stacks.txt.gz``     py-spy's folded stacks with a root frame ``sampler N``
``calibration.json``  the cost of torch.profiler's events: calibration calls timed bare and recorded
``ablation.parquet``  every timed block of rungs: process, rung, block, calls, wall_ns, reference_ns, minor_faults
``callgrind.out.gz``  callgrind's counts of the measured loop, unchanged; with ``--instructions``
``trace.pftrace``     all of it for the Perfetto UI
``*.log``             the workers' output
====================  ================================================================================
"""

from __future__ import annotations

META = "meta.json"
CLOCK = "clock.parquet"
KINETO = "kineto.json.gz"
KINETO_STACK = "kineto_stack.json.gz"
STACKS = "stacks.txt.gz"
PERFETTO = "trace.pftrace"
ABLATION = "ablation.parquet"
CALIBRATION = "calibration.json"
CALLGRIND = "callgrind.out.gz"

DELTA = "delta.json"
"""What marks the directory of two captures that were recorded in turns: their difference."""

RANK = "rank-"
"""What the name of a directory begins with that holds the run of one rank of a job."""

MARK = ".claimed"
