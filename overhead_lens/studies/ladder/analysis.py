"""The ablation ladder: a thing costs the difference of the call with and without it.

Differences are paired: both sides are timed in turns in the same processes, and the bootstrap draws the same processes for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.budget.thresholds import DISTURBED_BLOCKS_SHARE
from overhead_lens.budget.wall import undisturbed
from overhead_lens.result import Result
from overhead_lens.stats.bootstrap import PairedSides, paired_sides
from overhead_lens.stats.values import Interval
from overhead_lens.studies.ladder.stored import LadderMeta, read_ladder
from overhead_lens.subject import Subject
from overhead_lens.units import format_ns

# Layout and hash seed make the processes' medians of one rung differ by less.
_USUAL_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class RungKind:
    """A rung's title, and the rung it differs from in one thing (if any)."""

    title: str
    against: str | None


RUNGS: Mapping[str, RungKind] = {
    "eager": RungKind("eager", None),
    "compiled": RungKind("torch.compile", "eager"),
    "guards_filtered": RungKind("all guards filtered", "compiled"),
    "guard_eval_skipped": RungKind("guards skipped but differentiating ones", "compiled"),
    "direct_bytecode": RungKind("Dynamo's bytecode called directly", "compiled"),
    "generated_code": RungKind("Inductor's code called directly", "direct_bytecode"),
    "allocation_hoisted": RungKind("and its allocations hoisted out", "generated_code"),
    "kernel_binding": RungKind("kernels alone, generated binding", "allocation_hoisted"),
    "kernel_ctypes": RungKind("kernels alone, by ctypes", "kernel_binding"),
    "cpp_wrapper": RungKind("C++ wrapper", "compiled"),
    "cpp_wrapper_guards_filtered": RungKind("and all guards filtered", "cpp_wrapper"),
    "compiled_inference_mode": RungKind("compiled in inference mode", "compiled"),
    "compiled_requires_grad": RungKind("compiled, arguments require grad", "compiled"),
    "compiled_warm_heap": RungKind("compiled, malloc keeps its pages", "compiled"),
    "eager_inference_mode": RungKind("eager in inference mode", "eager"),
    "eager_requires_grad": RungKind("eager, arguments require grad", "eager"),
    "eager_warm_heap": RungKind("eager, malloc keeps its pages", "eager"),
}


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung, in ns per call.

    Attributes:
        ns: Median over processes; None if the rung could not be timed.
        step_ns: Paired difference to the rung it is compared with; None without one.
    """

    name: str
    ns: float | None
    ci95_ns: Interval | None
    step_ns: float | None
    step_ci95_ns: Interval | None
    minor_faults: float | None
    reason: str | None

    @property
    def kind(self) -> RungKind:
        """Title, and the rung it is compared with."""
        return RUNGS[self.name]

    @property
    def depth(self) -> int:
        """Number of comparisons up to the first rung."""
        depth, against = 0, self.kind.against
        while against is not None:
            depth, against = depth + 1, RUNGS[against].against
        return depth


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of the compiled call, ns; the layers sum to it, and the intervals are of paired differences."""

    name: str
    # Difference of the rungs' medians; the rungs' own steps are medians of paired differences, and may differ a little.
    ns: int
    ci95_ns: Interval


@dataclass(frozen=True, slots=True)
class Ladder(Result):
    """All rungs of one scenario.

    Attributes:
        layers: Of the compiled call, outermost first; none if a rung is missing.
    """

    subject: Subject
    processes: int
    rungs: tuple[Rung, ...]
    layers: tuple[Layer, ...]
    warnings: tuple[str, ...]
    environment: Mapping[str, Any]
    directory: str

    def rung(self, name: str) -> Rung | None:
        """The rung called ``name``."""
        return next((rung for rung in self.rungs if rung.name == name), None)

    @property
    def sentence(self) -> str:
        """The largest layer of the compiled call; empty if a rung is missing."""
        if not self.layers:
            return ""
        largest = max(self.layers, key=lambda layer: layer.ns)
        total_ns = sum(layer.ns for layer in self.layers)
        share = f"{format_ns(largest.ns)} ({largest.ns / total_ns:.0%})"
        return f"Of the compiled call's {format_ns(total_ns)}, {share} is {largest.name}."


def ladder_of(path: Path) -> Ladder:
    """The ladder stored in a directory.

    Raises:
        UsageError: It is not a ladder, or damaged.
    """
    meta, rows = read_ladder(path)
    return make_ladder(meta, rows, str(path))


def make_ladder(meta: LadderMeta, rows: pd.DataFrame, directory: str) -> Ladder:
    """The ladder of blocks: ``process``, ``rung``, ``block``, ``calls``, ``wall_ns``, ``reference_ns``, ``minor_faults``."""
    blocks = undisturbed(rows, ("process", "rung"))
    walls = paired_sides(blocks)
    faults = blocks["minor_faults"].groupby(blocks["rung"]).sum() / blocks["calls"].groupby(blocks["rung"]).sum()
    names = [name for name in meta.names if isinstance(name, str) and name in RUNGS]
    return Ladder(
        meta.subject,
        int(rows["process"].nunique()),
        tuple(_rung(name, walls, faults, meta.reasons.get(name)) for name in names),
        tuple(_layers(walls)),
        tuple(_warnings(1 - len(blocks) / len(rows), walls, [name for name in meta.names if name not in names])),
        meta.environment,
        directory,
    )


def _warnings(disturbed: float, walls: PairedSides, unknown: list[Any]) -> Iterator[str]:
    uneven = sum(values.max() > _USUAL_RATIO * values.min() for values in walls.values.values())
    if uneven:
        yield (
            f"processes differ by more than {_USUAL_RATIO:g} times in {uneven} of {len(walls.values)} rungs: "
            "another program may have held a core; run it again on a quiet machine"
        )
    if disturbed > DISTURBED_BLOCKS_SHARE:
        yield f"{disturbed:.0%} of the blocks were left out: the machine was disturbed"
    if unknown:
        yield f"this version does not know the rungs {', '.join(map(str, unknown))}"


def _rung(name: str, walls: PairedSides, faults: pd.Series[float], reason: str | None) -> Rung:
    if name not in walls.values:
        return Rung(name, None, None, None, None, None, reason or "not every process could time it")
    estimate = walls.estimate(name)
    against = RUNGS[name].against
    step_ns, step_ci95_ns = (walls.difference(name, against) if against else None) or (None, None)
    return Rung(name, estimate.value, estimate.interval(), step_ns, step_ci95_ns, float(faults[name]), None)


# Layers of the compiled call, outermost first: the difference of two rungs.
LAYERS = (
    ("guards", "compiled", "guards_filtered"),
    ("cache lookup, eval frame and wrapper of Dynamo", "guards_filtered", "direct_bytecode"),
    ("Dynamo's bytecode and AOTAutograd's runtime wrappers", "direct_bytecode", "generated_code"),
    ("allocation of outputs and temporaries", "generated_code", "allocation_hoisted"),
    ("Python of the generated code", "allocation_hoisted", "kernel_binding"),
    ("kernels with their binding", "kernel_binding", None),
)


def _layers(walls: PairedSides) -> Iterator[Layer]:
    if not {rung for _, *rungs in LAYERS for rung in rungs if rung} <= walls.values.keys():
        return
    ns = {name: round(walls.estimate(name).value) for name in walls.values}
    for name, upper, lower in LAYERS:
        low_ns, high_ns = walls.estimate(upper, lower).interval()
        layer_ns = ns[upper] - (ns[lower] if lower else 0)
        yield Layer(name, layer_ns, (min(low_ns, float(layer_ns)), max(high_ns, float(layer_ns))))
