"""What a trace says of its communication kernels: in their own arguments, or in those of the calls around their launch.

Newer traces repeat the arguments of ``record_param_comms`` in the kernel (libkineto/src/output_json.cpp,
``appendCollectiveMetadata``). In older ones, and where that link is lost, the launch is followed up::

    c10d::_allgather_base_      [--------------------------------]   Input Dims: output, input
      record_param_comms          [----------------------------]     Collective name, In msg nelems, ... (torch >= 2.1)
        nccl:_all_gather_base       [-----------------------]        Input Dims: input
          cudaLaunchKernel                [--]

``record_param_comms`` comes first, since it names the group and whether parts are alike. Shapes exist only in traces recorded
with ``record_shapes``. If one call launched several kernels, the call's size is their total, and no single kernel has a size.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from overhead_lens.readers.kineto.event import dicts
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Ints, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.collectives.definitions import element_bytes, kind_of, size_in_elements
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import distinct_values

GROUP_KEYS = ("Process Group Name", "Process Group Ranks")
_BASE = {"c10d::_allgather_base_", "c10d::_reduce_scatter_base_", "c10d::alltoall_base_"}
"""Operators whose first two arguments are output and input, one tensor each (torch/csrc/distributed/c10d/Ops.cpp)."""

_MOST = 1 << 50


class Description(NamedTuple):
    """The known properties of a collective; see ``Collective``."""

    kind: str = ""
    dtype: str = ""
    elements: int | None = None
    bytes: int | None = None
    group_size: int | None = None


class _Message(NamedTuple):
    kind: str
    dtype: str
    received: int | None
    sent: int | None
    group_size: int | None
    is_uneven: bool = False


def descriptions(
    trace: Trace, host: HostEvents, rows: Ints, launch: Ints, arguments: Sequence[Mapping[str, Any]]
) -> list[Description]:
    """Descriptions of communication kernels.

    Args:
        rows: int64: their rows of the event frame.
        launch: int64: rows of their launches, -1 where these are not in the trace.
        arguments: Their own arguments.
    """
    sizes = group_sizes(trace)
    undescribed = [at for at, own in enumerate(arguments) if not own.get("Collective name") and launch[at] >= 0]
    calls = dict(zip(undescribed, _calls(host, launch[undescribed]), strict=True)) if undescribed else {}
    shared = Counter(chain[0] for chain in calls.values() if chain)
    call_rows = sorted({row for chain in calls.values() for row in chain})
    names = dict(zip(call_rows, trace.columns["name"][call_rows], strict=True))
    call_arguments = dict(zip(call_rows, trace.arguments(call_rows), strict=True))
    made = []
    for at, (own, kernel) in enumerate(zip(arguments, trace.columns["name"][rows], strict=True)):
        chain = calls.get(at, [])
        around = [(names[row], call_arguments[row]) for row in chain]
        message = _own(own) or _of_calls(around) or _Message(kind_of(kernel), "", None, None, None)
        message = _with_output(message, around)
        alone = not chain or shared[chain[0]] == 1
        made.append(_description(message, own, sizes, is_alone=alone))
    return made


def recorded_arguments(trace: Trace, host: HostEvents, launch: Ints) -> list[Mapping[str, Any]]:
    """The arguments of ``record_param_comms`` around launches by their rows, -1 for none; empty where nothing was recorded.

    Older versions of Kineto do not repeat the number (``Seq``) in the kernel, and a lost link leaves it without its group.
    """
    records = passing(host.names, torch_names.COLLECTIVE_ARGUMENTS.__eq__)[host.name]
    rows = taken(host.rows, taken(host.around.nearest(records), host.places(launch)))
    used = distinct_values(rows[rows >= 0]).tolist()
    decoded = dict(zip(used, trace.arguments(used), strict=True))
    return [decoded.get(row, {}) for row in rows.tolist()]


def group_sizes(trace: Trace) -> dict[str, int]:
    """Ranks of every process group that the file lists, by name."""
    information = trace.metadata.get("distributedInfo")
    groups = dicts(information.get("pg_config")) if isinstance(information, dict) else []
    sizes = {str(group.get("pg_name")): _count(group.get("pg_size")) for group in groups}
    return {name: size for name, size in sizes.items() if size}


def _calls(host: HostEvents, launch: Ints) -> list[list[int]]:
    """Rows of the calls of communication around each launch, the innermost first."""
    is_call = passing(host.names, torch_names.communicates)[host.name]
    return [
        [int(host.rows[event]) for event in host.around.outward(at) if is_call[event]]
        for at in host.places(launch).tolist()
    ]


def _own(arguments: Mapping[str, Any]) -> _Message | None:
    """The description by the arguments of ``record_param_comms``."""
    name = arguments.get("Collective name")
    if not isinstance(name, str) or not name:
        return None
    received, sent = _elements(arguments.get("Out msg nelems")), _elements(arguments.get("In msg nelems"))
    kind = kind_of(name)
    uneven = kind == "all_to_all" and not _is_even(arguments)
    if uneven:
        received = sent = None
    dtype, group_size = str(arguments.get("dtype") or ""), _count(arguments.get("Group size"))
    return _Message(kind, dtype, received, sent, group_size, uneven)


def _is_even(arguments: Mapping[str, Any]) -> bool:
    """Whether an all_to_all sends the same amount to each rank; true without split sizes."""
    splits = [_list(arguments.get(key)) for key in ("In split size", "Out split size")]
    return all(split is not None and len(set(map(str, split))) <= 1 for split in splits)


def _list(value: Any) -> list[Any] | None:
    """A list, also from text; None if it is absent or truncated (``[1, 2, ..., 8]``)."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return [] if value is None else value if isinstance(value, list) else None


def _of_calls(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> _Message | None:
    """What the calls around a launch say, innermost first; a size that its arguments lack, by the shapes of another."""
    ordered = sorted(calls, key=lambda call: call[0] != torch_names.COLLECTIVE_ARGUMENTS)
    messages = [message for name, arguments in ordered if (message := _call(name, arguments)) is not None]
    if not messages:
        return None
    first = messages[0]
    sized = next((one for one in messages if one.sent is not None or one.received is not None), first)
    if first.is_uneven or sized is first:
        return first
    return first._replace(dtype=first.dtype or sized.dtype, received=sized.received, sent=sized.sent)


def _call(name: str, arguments: Mapping[str, Any]) -> _Message | None:
    """The description by a call around the launch; None if the call has no kind of collective."""
    if name == torch_names.COLLECTIVE_ARGUMENTS:
        return _own(arguments)
    kind = kind_of(name.partition("::")[2] or name)
    if not kind or name.startswith("c10d::"):
        return None
    dtype, elements = _tensors(arguments, None)
    return _Message(kind, dtype, None, elements, None)


def _with_output(message: _Message, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> _Message:
    """The message with the input and output of the surrounding operator, if these are one tensor each."""
    base = next((arguments for name, arguments in calls if name in _BASE), None)
    if base is None or message.is_uneven or (message.sent is not None and message.received is not None):
        return message
    dtype, received = _tensors(base, 0)
    _, sent = _tensors(base, 1)
    if received is None or sent is None:
        return message
    small, large = sorted((received, sent))
    ratio = large // small if small and not large % small else None
    size = ratio if message.kind in ("all_gather", "reduce_scatter") else None
    return message._replace(dtype=dtype, received=received, sent=sent, group_size=message.group_size or size)


def _tensors(arguments: Mapping[str, Any], at: int | None) -> tuple[str, int | None]:
    """Type and number of elements of an event's tensors: of the tensor at ``at``, or of all."""
    dims, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list) or len(dims) != len(types):
        return "", None
    chosen = range(len(dims)) if at is None else range(at, min(at + 1, len(dims)))
    tensors = [place for place in chosen if element_bytes(str(types[place])) is not None]
    counts = [_numel(dims[place]) for place in tensors]
    dtypes = {str(types[place]) for place in tensors}
    if len(dtypes) != 1 or any(count is None for count in counts):
        return "", None
    return dtypes.pop(), sum(count for count in counts if count is not None)


def _numel(dims: Any) -> int | None:
    if not isinstance(dims, list) or not all(isinstance(size, int) and 0 <= size < _MOST for size in dims):
        return None
    return prod(dims)


def _description(message: _Message, own: Mapping[str, Any], sizes: Mapping[str, int], *, is_alone: bool) -> Description:
    group_size = message.group_size or sizes.get(str(own.get(GROUP_KEYS[0])))
    if not is_alone:
        return Description(message.kind, message.dtype, None, None, group_size)
    elements = size_in_elements(message.kind, message.received, message.sent, group_size)
    elements = elements if elements is None or elements < _MOST else None
    size = element_bytes(message.dtype)
    total = None if elements is None or size is None else elements * size
    return Description(message.kind, message.dtype, elements, total, group_size)


def _elements(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None


def _count(value: Any) -> int | None:
    number = _elements(value)
    return number or None
