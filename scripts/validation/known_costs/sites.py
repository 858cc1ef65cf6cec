"""The places for a cost, in ``scripts/validation/laboratory``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripts.validation.laboratory.known_cost import COMPILE_NS, KEPT_SHAPES

LABORATORY = Path(__file__).resolve().parents[1] / "laboratory"
RULES = LABORATORY / "native" / "rules.toml"
COSTS_NS = (50, 200, 1_000, 10_000, 100_000)
_BLOCK_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class Site:
    """A place for a cost.

    Attributes:
        file: Scenario file of the laboratory, without its ending.
        category: Where its time belongs.
        least_ns, most_ns: The smallest and the largest cost that the place can take: a page fault is no shorter.
        block_ns: Length of a timed block.
        event_ns: What the cost's single event takes where not every call has one; 0 where every call has.
        events: How many of them a block holds then.
        steady: Whether every call costs the same, so that blocks are timed in pieces, the middle one of which counts.
        threads: Whether the call runs on two threads, so that one process at a time is warmed up and sampled.
    """

    name: str
    file: str
    category: str
    variant: str | None = None
    compiled: bool = False
    least_ns: int = 0
    most_ns: int = 1_000_000
    block_ns: int = _BLOCK_NS
    event_ns: int = 0
    events: int = 0
    steady: bool = True
    threads: bool = False

    def calls_per_block(self, call_ns: float, cost_ns: int) -> int:
        """Calls that make a block: of the site's length, or a whole number of events, so that no block has one more."""
        if cost_ns and self.event_ns:
            return self.events * -(-self.event_ns // cost_ns)
        return max(1, round(self.block_ns / (call_ns + cost_ns)))


SITES = (
    Site("allocation, eager", "allocation", "allocation"),
    Site("allocation, compiled", "allocation", "allocation", compiled=True),
    Site("dispatch, eager", "dispatch", "dispatcher"),
    Site("dispatch, compiled", "dispatch", "dispatcher", "product", compiled=True),
    Site("kernel, eager", "extension", "kernel"),
    Site("kernel, compiled", "extension", "kernel", compiled=True),
    Site("binding, eager", "extension", "python", "binding"),
    Site("user_code, eager", "user_code", "python"),
    Site("user_code, compiled", "user_code", "python", "beside_compiled"),
    Site("library_code, eager", "user_code", "python", "library"),
    Site("lambda_guard, compiled", "lambda_guard", "guard", compiled=True),
    Site("many_guards, compiled", "many_guards", "guard", least_ns=200, most_ns=10_000),
    # The thread's system time is accounted by a tick of some ms: only long blocks tell it.
    Site("page_fault, eager", "page_fault", "allocation", least_ns=1_000, block_ns=10 * _BLOCK_NS),
    Site(
        "recompile, compiled",
        "recompile",
        "compile",
        least_ns=10_000,
        block_ns=10 * _BLOCK_NS,
        event_ns=COMPILE_NS,
        events=KEPT_SHAPES,
        steady=False,
    ),
    Site("kernel, two threads", "threads", "kernel", "kernel", least_ns=1_000, threads=True),
    Site("user_code, two threads", "threads", "python", "user_code", least_ns=200, threads=True),
    Site("compiled, two threads", "threads", "python", "beside_compiled", least_ns=200, threads=True),
)
