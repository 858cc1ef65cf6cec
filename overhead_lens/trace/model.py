"""The event frame: what the reader of torch.profiler's exports yields as one pandas frame.

One row per complete event, in file order:

===============  ========  =====================================================================
``name``         object    event name
``cat``          object    Kineto category (``cpu_op``, ``user_annotation``, ``python_function``, ...)
``pid, tid``     object    process and thread as the file names them
``start_ns``     int64     start; the smallest of the file is 0
``dur_ns``       int64     duration, >= 0
``correlation``  int64     links a launch to its device events; -1 where absent
``sequence``     int64     links a forward to its backward operator; -1 where absent
``device``       int64     device of a device event; -1 on the host
``stream``       int64     stream of a device event; -1 on the host
===============  ========  =====================================================================
"""

from __future__ import annotations

from overhead_lens.stack import Stack, StackFrame

__all__ = ["DEVICE_CATEGORIES", "EVENT_COLUMNS", "Stack", "StackFrame"]

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})

EVENT_COLUMNS = ("name", "cat", "pid", "tid", "start_ns", "dur_ns", "correlation", "sequence", "device", "stream")
