"""The files of a capture: one directory whose ``meta.json``, written last, says that it is complete.

====================  ================================================================================
``meta.json``         what was measured, how, where; its presence means that the capture is complete
``clock.parquet``     every timed block: process, block, calls, wall_ns, reference_ns, minor_faults, system_ns, cpu_ns, compiles;
                      of a comparison also compilation (how many times the process had compiled its call before) and steady_ns
``kineto.json.gz``    torch.profiler's export of the measured loop, byte for byte what it wrote
``kineto_stack.json.gz``  the same with Python stacks, a few calls: for the picture, not for numbers
``stacks.txt.gz``     py-spy's folded stacks, a root frame ``sampler N`` before each
``calibration.json``  what torch.profiler's events cost here: calibration calls timed bare and recorded
``ablation.parquet``  every timed block of rungs, and of a ladder's single steps: process, kind (rung, step; of a ladder), rung,
                      block, calls, wall_ns, reference_ns, minor_faults (of rungs)
``callgrind.out.gz``  callgrind's counts of the measured loop, byte for byte what it wrote; with ``--instructions``
``trace.pftrace``     all of it for the Perfetto UI
``*.log``             what each worker printed
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

MARK = ".claimed"
