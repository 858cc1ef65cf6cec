"""What a collective is, how large it counts as, and its bus bandwidth, as NCCL-tests define them.

Source: github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md and, for the kinds that it does not list, ``GetBw`` of src/gather.cu,
src/scatter.cu and src/sendrecv.cu. The size S is that of the whole array: of all_gather and gather what all ranks send together,
of reduce_scatter and scatter what all receive together, of all_to_all what one rank sends; of all others the one message. What a
trace calls "In msg nelems" and "Out msg nelems" are a rank's input and output (torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
"""

from __future__ import annotations

import re

_SPELLED = (
    ("allreduce", "all_reduce"), ("crossdevicereduce", "all_reduce"), ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"), ("alltoall", "all_to_all"), ("broadcast", "broadcast"), ("barrier", "barrier"),
    ("gather", "gather"), ("scatter", "scatter"), ("reduce", "reduce"),
)  # fmt: skip
"""The first that is found in a name decides; ``cross_device_reduce`` is the all-reduce of vLLM and SGLang."""
_POINT_TO_POINT = re.compile(r"(?:nccl:)?(send|recv)(?: \d+(?:->|<-)\d+)?")
"""``nccl:send 0->1`` where arguments do not say it (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp)."""
POINT_TO_POINT = frozenset({"send", "recv"})
"""What a pair of ranks does by itself."""
PAIRWISE_KERNEL = re.compile(r"SendRecv|Generic|ep::|Ep(Dispatch|Combine)")
"""Kernels that may end on each rank at another time: NCCL's sends and receives, of an all_to_all or of pairs of ranks that a
batch does not name, RCCL's one kernel for these and all else, and exchanges of tokens by DeepEP and MORI."""
_SEPARATORS = re.compile(r"[\W_]+")

_OF_SHARE = {"all_reduce": 2, **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"), 1)}
_WHOLE = frozenset({"broadcast", "reduce", "send", "recv"})

_BYTES_OF = {
    1: ("char", "signedchar", "byte", "unsignedchar", "bool"),
    2: ("half", "bfloat16", "short", "shortint", "uint16", "unsignedshort"),
    4: ("float", "int", "uint32", "unsignedint"),
    8: ("double", "long", "longint", "uint64", "unsignedlong", "complexfloat"),
    16: ("complexdouble",),
}  # fmt: skip
_ELEMENT_BYTES = {name: size for size, names in _BYTES_OF.items() for name in names}


def kind_of(name: str) -> str:
    """Kind of a collective by the name that torch or NCCL gives it; empty for none that is known."""
    pairwise = _POINT_TO_POINT.fullmatch(name)
    if pairwise is not None:
        return pairwise[1]
    compact = _SEPARATORS.sub("", name.lower())
    return next((kind for spelled, kind in _SPELLED if spelled in compact), "")


def element_bytes(dtype: str) -> int | None:
    """Size of an element, by the name that torch gives its type (``Float``, ``c10::BFloat16``); None for an unknown one."""
    name = _SEPARATORS.sub("", dtype.lower().replace("c10::", "")).replace("complexcfloat", "complexfloat")
    return 1 if name.startswith(("float4", "float8")) else _ELEMENT_BYTES.get(name)


def bus_factor(kind: str, group_size: int | None) -> float | None:
    """Bus bandwidth over algorithm bandwidth; None if it is not defined, or the number of ranks unknown."""
    if kind in _WHOLE:
        return 1.0
    if group_size is None or group_size < 1 or kind not in _OF_SHARE:
        return None
    return _OF_SHARE[kind] * ((group_size - 1) / group_size)


def size_in_elements(kind: str, received: int | None, sent: int | None, group_size: int | None) -> int | None:
    """Elements of S.

    Args:
        received: Elements of the rank's output; None where unknown.
        group_size: None where unknown.
    """
    known = [count for count in (sent, received) if count is not None]
    if not known or kind in ("", "barrier"):
        return None
    if kind == "all_to_all":
        return sent if sent is not None and received in (None, sent) else None
    one = {"all_gather": sent, "gather": sent, "reduce_scatter": received, "scatter": received}
    if kind in one and len(known) == 1:
        if known[0] != one[kind]:
            return known[0]
        return known[0] * group_size if group_size else None
    return max(known)
