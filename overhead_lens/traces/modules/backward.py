"""From nodes of the backward pass to the operators that made them, by autograd's sequence numbers.

A thread's operators carry the number that its next node will get; the operator that makes a node is the last to start with
the node's number (third_party/kineto's own links of ``fwdbwd`` flows follow the same rule, torch/csrc/profiler/collection.cpp)::

    forward     aten::linear 5 [ aten::t 5 [)  aten::addmm 6 [) )   number 5 is of TBackward0, 6 of AddmmBackward0
    backward                                   evaluate_function: AddmmBackward0 6 [)  ... TBackward0 5 [)

Numbers count for each thread by itself. Where operators of several threads carry them, the nodes' ``Fwd thread id`` tells the
thread: a number of the profiler's own that no operator carries. It is taken for the thread that answers most of its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from overhead_lens.readers.kineto.columns import Decode
from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import distinct_values

_FORWARD_THREAD = "Fwd thread id"
_MOST_THREADS = 64


def is_backward_node(name: str) -> bool:
    """Whether an event is the evaluation of a node of the backward pass."""
    return name.startswith(torch_names.BACKWARD_NODE_PREFIX)


def forward_operators(host: HostEvents, sequence: Ints, nodes: Ints, arguments: Decode) -> Ints:
    """The operator that made each node, by position among the host events, -1 for none; ``sequence``: int64 per host event."""
    operator = np.full(len(nodes), -1, dtype=np.int64)
    operators = _forward(host, sequence)
    process = _processes(host)
    for number in distinct_values(process[host.thread[nodes]]).tolist():
        mine = np.flatnonzero((process[host.thread[nodes]] == number) & (sequence[nodes] >= 0))
        able = operators[process[host.thread[operators]] == number]
        if len(mine) and len(able):
            operator[mine] = _of_process(host, sequence, nodes[mine], able, arguments)
    return operator


def _forward(host: HostEvents, sequence: Ints) -> Ints:
    """Operators with a number, but those of the backward pass: a node and the function in it have its number as well."""
    functions = {name.partition(": ")[2] for name in host.names if is_backward_node(name)}
    backward = passing(host.names, lambda name: name in functions or is_backward_node(name))
    return np.flatnonzero(host.operator & (sequence >= 0) & ~backward[host.name])


def _processes(host: HostEvents) -> Ints:
    """A number of the process per thread."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(pid, len(numbers)) for pid, _ in host.threads] or [0], dtype=np.int64)


def _of_process(host: HostEvents, sequence: Ints, nodes: Ints, operators: Ints, arguments: Decode) -> Ints:
    threads, counts = np.unique(host.thread[operators], return_counts=True)
    threads = threads[np.argsort(-counts, kind="stable")][:_MOST_THREADS]
    known: Ints = np.array(
        [_latest(host, sequence, nodes, operators[host.thread[operators] == thread]) for thread in threads.tolist()]
    )
    if len(threads) == 1:
        only: Ints = known[0]
        return only
    first_ns = [int(host.start_ns[operators[host.thread[operators] == thread]].min()) for thread in threads.tolist()]
    texts = [str(each.get(_FORWARD_THREAD, "")) for each in arguments(host.rows[nodes].tolist())]
    ids = {text: number for number, text in enumerate(sorted(set(texts) - {""}, key=lambda text: (len(text), text)))}
    id_of_node = np.array([ids.get(text, -1) for text in texts], dtype=np.int64)
    thread_of_id = _elected(id_of_node, known >= 0, first_ns, len(ids))
    column = np.append(thread_of_id, -1)[id_of_node]
    return np.where(column >= 0, known[column, np.arange(len(nodes))], -1)


def _elected(id_of_node: Ints, answered: Any, first_ns: Sequence[int], id_count: int) -> Ints:
    """For each id its thread: the pair with the most answers first; of equal ones the lower id and the earlier thread."""
    votes = [
        (-int(answered[thread][id_of_node == number].sum()), number, first_ns[thread], thread)
        for number in range(min(id_count, _MOST_THREADS))
        for thread in range(len(first_ns))
    ]
    elected = np.full(id_count, -1, dtype=np.int64)
    taken: set[int] = set()
    for count, number, _, thread in sorted(votes):
        if count and elected[number] < 0 and thread not in taken:
            elected[number] = thread
            taken.add(thread)
    return elected


def _latest(host: HostEvents, sequence: Ints, nodes: Ints, operators: Ints) -> Ints:
    """For each node the last of the operators that started before it with its number; -1 for none."""
    both = np.concatenate((nodes, operators))
    is_operator = np.arange(len(both)) >= len(nodes)
    order = np.lexsort((is_operator, host.start_ns[both], sequence[both]))
    last = np.maximum.accumulate(np.where(is_operator[order], np.arange(len(both)), -1))
    before = np.where(last >= 0, both[order[last]], -1)
    fits = (before >= 0) & (sequence[before] == sequence[both[order]])
    latest = np.full(len(both), -1, dtype=np.int64)
    latest[order] = np.where(fits, before, -1)
    return latest[: len(nodes)]
