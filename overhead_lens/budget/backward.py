"""Counts a backward pass on another thread in the budget of the thread that waits for it (pure).

The backward pass of a device runs on a thread of autograd's, and the caller of ``backward()`` waits for it
(torch/csrc/autograd/engine.cpp, ``Engine::execute``). What that thread does is work of the step::

    caller     #### forward ####|.......... wait ..........|#### optimizer ####
    autograd   ..... wait .....|### backward pass ###|.... wait ..............

For as long as autograd's threads work, the caller's wait is divided as their work is. The rest, such as waking them, stays
``wait``. Caller and threads sleep together, as for the GIL, only while none of them is on a core: stacks that show more are cut
to what the CPU clocks leave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.budget.asleep import FEWEST_AWAKE
from overhead_lens.budget.shares import Shares, divided, shares_of_blocks, shares_of_time
from overhead_lens.budget.threads import in_blocks
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.taxonomy.names import display_name
from overhead_lens.taxonomy.rules import Attribution

_ENGINE = "torch::autograd::Engine::"
_THREAD = f"{_ENGINE}thread_init"
_WAIT, _UNKNOWN = "wait", "unattributed"
_LOCK = Attribution(_WAIT, "lock")
# Assumed relative standard deviation of each category's share by a few recorded steps.
_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class BackwardWork:
    """What autograd's threads do while another thread waits for them.

    Attributes:
        shares: How their work divides; its evidence is ``samples`` or ``trace``. None if too few stacks show it, and no trace.
        busy_share: How much of the whole time they work.
        running_share: How much of it they are on a core, by their CPU clocks; 0 where those are unknown.
    """

    shares: Shares | None
    busy_share: float
    running_share: float = 0.0


def backward_work(
    threads: Sequence[SampledThread],
    pid: int,
    classifier: Classifier,
    running: Mapping[int, float],
    recorded: Mapping[int, Sequence[HostCategory]],
) -> BackwardWork | None:
    """The work of autograd's threads; None if there are none.

    Args:
        threads: All that were sampled: the thread seen most often tells how often the sampler looked.
        running: Share of the time that threads of process ``pid`` were on a core, by their CPU clocks.
        recorded: Budgets of threads in a trace, which divide the work that too few stacks show.
    """
    own = [thread for thread in threads if thread.process == pid]
    looks = max((thread.samples for thread in own), default=0)
    blocks: list[list[Stack]] = []
    busy_share = running_share = 0.0
    autograd = [thread for thread in own if _is_autograd(thread)]
    for thread in autograd:
        at_work = [[stack for stack in block if not _waits(stack, classifier)] for block in in_blocks(thread.blocks)]
        seen = sum(stack.count for block in at_work for stack in block)
        busy_share += max(seen / looks, running.get(thread.thread, 0.0))
        running_share += running.get(thread.thread, 0.0)
        blocks += at_work
    if not autograd:
        return None
    if sum(stack.count for block in blocks for stack in block) >= FEWEST_AWAKE:
        return BackwardWork(shares_of_blocks(blocks, classifier), busy_share, running_share)
    traced = _shares_of_trace(recorded.get(thread.thread, ()) for thread in autograd)
    return BackwardWork(traced, busy_share, running_share)


def _is_autograd(thread: SampledThread) -> bool:
    return any(frame.function.startswith(_THREAD) for stack in thread.stacks for frame in stack.frames)


def _waits(stack: Stack, classifier: Classifier) -> bool:
    verdict = classifier.classify(stack)
    return verdict.attribution == _LOCK and _is_engine(display_name(verdict.frame))


def _is_engine(frame: str) -> bool:
    return frame.startswith(_ENGINE)


def _shares_of_trace(threads: Iterable[Sequence[HostCategory]]) -> Shares | None:
    attributions: defaultdict[Attribution, float] = defaultdict(float)
    frames: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for category in (each for host in threads for each in host if each.ns and each.category not in (_WAIT, _UNKNOWN)):
        for part in category.parts:
            attributions[Attribution(category.category, part.name)] += part.ns
        if not category.parts:
            attributions[Attribution(category.category)] += category.ns
        for top in category.top:
            frames[category.category][top.frame] += top.ns
    return shares_of_time(attributions, frames, _SPREAD) if attributions else None


def waiting_share(shares: Shares) -> float:
    """The share of a thread's time that it waits for a backward pass on another thread."""
    # ``bounded`` scales each part of ``wait``, but all its frames alike, which may leave frames with more than their part.
    return min(_engine_weight(shares), shares.attributions.get(_LOCK, 0.0)) / shares.weight


def _engine_weight(shares: Shares) -> float:
    return sum(weight for frame, weight in shares.frames.get(_WAIT, {}).items() if _is_engine(frame))


def with_backward(shares: Shares, work: Shares | None, worked_share: float) -> Shares:
    """A thread's shares, ``worked_share`` (0 to 1) of its wait for backward passes divided as autograd's work, if known."""
    moved = worked_share * waiting_share(shares) * shares.weight
    if work is None or not moved:
        return shares
    factor = moved / work.weight
    attributions = defaultdict(float, shares.attributions)
    attributions[_LOCK] -= moved
    for attribution, weight in work.attributions.items():
        attributions[attribution] += factor * weight
    frames = {
        category: defaultdict(float, shares.frames.get(category, {})) for category in (*shares.frames, *work.frames)
    }
    of_engine = moved / _engine_weight(shares)
    for frame in filter(_is_engine, frames[_WAIT]):
        frames[_WAIT][frame] *= 1.0 - of_engine
    for category, weights in work.frames.items():
        for frame, weight in weights.items():
            frames[category][frame] += factor * weight
    of_wait = moved / (shares.share(_WAIT) * shares.weight)
    mean = np.array([[work.share(name) for name in HOST_CATEGORIES]])
    return replace(
        shares,
        attributions=attributions,
        frames=frames,
        replicates=divided(shares.replicates, _WAIT, of_wait, work.replicates),
        per_process=divided(shares.per_process, _WAIT, of_wait, mean),
    )


def backward_warning(work: Shares | None, worked_share: float) -> Iterator[str]:
    """How the wait for backward passes was divided, in ``worked_share`` of which autograd's threads work; nothing for 0."""
    if not worked_share:
        return
    works = f"autograd's thread works for {worked_share:.0%} of the wait for backward passes"
    if work is None:
        yield f"{works}: too few stacks show its work, so this part stays wait/lock"
    else:
        shown = "its stacks show" if work.evidence == "samples" else "the trace shows"
        yield f"{works}: this part is divided as {shown}"
