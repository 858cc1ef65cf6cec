"""A recorded trace with its events column by column and in one pandas frame; sampled stacks.

The event frame holds one row per complete event, in file order:

===============  ===========  =====================================================================
``name``         categorical  event name (object categories: names may hold lone surrogates)
``cat``          categorical  category as the file spells it (``cpu_op``, ``kernel``, ``Kernel``, ...)
``pid, tid``     categorical  process and thread, as text
``start_ns``     int64        start; the smallest of the file is 0
``dur_ns``       int64        duration, >= 0
``correlation``  int64        links a launch to its device events; -1 where absent
``sequence``     int64        links a forward to its backward operator; -1 where absent
``device``       int64        device of a device event (``args.device``, else ``pid``); -1 on the host
``stream``       int64        stream of a device event (``args.stream``, else ``tid``); -1 on the host
``external``     int64        ``External id``: links a runtime call to its operator, and in old traces to its kernel
===============  ===========  =====================================================================

The memory frame holds one row per allocation or release, in file order:

===================  ===========  =====================================================================
``pid, tid``         categorical  process and thread that asked for it, as text
``start_ns``         int64        when, on the axis of the events
``address``          int64        where; -1 where absent
``bytes``            int64        how much: positive for an allocation, negative for a release
``allocated_bytes``  int64        what the device's allocator had given out after it; -1 where absent
``reserved_bytes``   int64        what the allocator held of the device after it; -1 where absent
``device_type``      int64        number of c10's ``DeviceType``; -1 where absent
``device``           int64        number of the device; -1 on the host
===================  ===========  =====================================================================

The counter frame holds one row per value of a counter, in file order:

===================  ===========  =====================================================================
``name``, ``cat``    categorical  name and category of the event
``pid, tid``         categorical  process and thread that it stands at, as text
``series``           categorical  name of the value in the event; empty for a metric that is the event's name
``start_ns``         int64        when, on the axis of the events
``value``            float64      finite
===================  ===========  =====================================================================

The work frame holds one row per device event that says something of itself; -1 where it does not say this:

===================  ===========  =====================================================================
``row``              int64        row of the event frame, ascending
``bytes``            int64        how much was copied or set
``graph``            int64        the executable graph it was launched with; 0 outside of graphs
``graph_node``       int64        its node of that graph
``..._millionths``   int64        ``occupancy`` (of a percent), ``blocks_per_sm``, ``warps_per_sm``
===================  ===========  =====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Decode, Texts
from overhead_lens.readers.kineto.event import dicts
from overhead_lens.readers.kineto.frame import nothing

if TYPE_CHECKING:
    import pandas as pd

EVENT_COLUMNS = (*CODES, *NUMBERS)

Events = Mapping[str, Any]
"""A frame column by column: arrays of numbers, ``Texts``."""


def columns_of(frame: pd.DataFrame) -> Events:
    """The columns of a frame."""
    return {
        str(name): _texts(column) if column.dtype.kind == "O" else column.to_numpy() for name, column in frame.items()
    }


def _texts(column: pd.Series[Any]) -> Texts:
    """A column of texts; if it is not categorical, its categories are in order of their first places."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return Texts(column.cat.codes.to_numpy(), column.cat.categories.to_numpy(dtype=object))
    return Texts(*pd.factorize(column.to_numpy(dtype=object)))


def frame_of(columns: Events) -> pd.DataFrame:
    """A frame of columns, their names as objects: pandas looks these up in half the time."""
    import pandas as pd

    def column(each: Any) -> Any:
        if isinstance(each, Texts):
            return categorical(each)
        # Not the strings of pandas 3, which cannot hold half of a character.
        return pd.Series(each, dtype=object) if np.asarray(each).dtype == object else each

    made: pd.DataFrame = pd.DataFrame({name: column(each) for name, each in columns.items()}, copy=False)
    made.columns = made.columns.astype(object)
    return made


def categorical(texts: Texts) -> pd.Categorical:
    """The texts as pandas has them."""
    import pandas as pd

    index: Any = pd.Index(texts.categories, dtype=object)
    return pd.Categorical.from_codes(texts.codes, categories=index, validate=False)


class StackFrame(NamedTuple):
    """A Python or C++ function that was running, where its line is known."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Trace:
    """One file that torch.profiler exported, or a memory snapshot.

    Attributes:
        columns: Those of the event frame.
        memory: The columns of the memory frame; of a snapshot with ``stack``, a place in ``stacks`` or -1.
        stacks: Distinct stacks, the innermost frame first, of a snapshot; None of a trace.
        event_count: Entries of ``traceEvents``, of all phases.
        raw_bytes: Size of the decompressed JSON text.
        metadata: Values beside ``traceEvents``, as parsed.
        arguments: Decodes ``args`` of the given rows of the frame (shapes, stacks, group names).
    """

    path: str
    columns: Events
    event_count: int
    raw_bytes: int
    issues: Mapping[str, int] = field(default_factory=dict)
    thread_names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    arguments: Decode = lambda rows: [{} for _ in rows]
    memory: Events = field(default_factory=lambda: nothing().memory)
    counters: Events = field(default_factory=lambda: nothing().counters)
    work: Events = field(default_factory=lambda: nothing().work)
    stacks: Sequence[Sequence[StackFrame]] | None = None

    @cached_property
    def events(self) -> pd.DataFrame:
        """The event frame."""
        return frame_of(self.columns)

    @property
    def rank(self) -> int | None:
        """Rank in its distributed job; None if the file does not say."""
        return self._distributed("rank")

    @property
    def world_size(self) -> int | None:
        """Number of ranks of the job; None if the file does not say."""
        return self._distributed("world_size")

    @property
    def device_properties(self) -> list[dict[str, Any]]:
        """What the file says of each device: ``id``, ``name``, ``numSms``, ..."""
        return dicts(self.metadata.get("deviceProperties"))

    @property
    def device_names(self) -> Mapping[int, str]:
        """Device number to device name."""
        named = (each for each in self.device_properties if isinstance(each.get("id"), int))
        return {each["id"]: str(each.get("name", "")) for each in named}

    def _distributed(self, key: str) -> int | None:
        information = self.metadata.get("distributedInfo")
        value = information.get(key) if isinstance(information, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None
