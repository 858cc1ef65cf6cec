"""What is compared: each figure of ours, of the peers, and the readings in which they may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overhead_lens.traces.budgets import DeviceBudget
from overhead_lens.traces.model import TraceAnalysis
from scripts.validation.peers import figures
from scripts.validation.peers.figures import Figure, nearest_rank
from scripts.validation.peers.readings import Read

HTA, TRACELENS = "HTA", "TraceLens"
Said = Mapping[str, Any]

_EVENTS = ("stream_argument", "last_step", "twice")
_TIMES = ("whole_us", *_EVENTS)
_TL = ("float64", "tl_categories", "tl_flows")

_Ours = Callable[[DeviceBudget], float | None]
_Plain = Callable[[Read], Figure]
_Says = Callable[[Said], Any]

_US, _MS = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Told:
    """How a peer tells a quantity.

    Attributes:
        function: Which of the functions of its script tells it.
        of: The figure in ns, a count or a percentage, from all that it said; None where it says none.
        readings: In what it may read the trace otherwise, all at once in what it says.
        rounding: What its last printed digit may hide.
    """

    function: str
    of: Callable[[Said], Figure]
    readings: tuple[str, ...]
    rounding: float = 0.0

    @property
    def exact(self) -> float:
        """What floating point may cost it: 1 ns of a time, nothing of a count; of a percentage all of its last digit."""
        return min(self.rounding, 1.0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """One thing that at least two tools say.

    Attributes:
        name: As the table calls it.
        unit: ``ns``, ``%``, or empty for a count.
        ours: As the analysis has it; None where it has none.
        figure: The same by plain code, under readings.
        peers: By peer.
    """

    name: str
    unit: str
    ours: Callable[[TraceAnalysis], Figure]
    figure: Callable[[Read], Figure]
    peers: Mapping[str, Told]


def quantities() -> Sequence[Quantity]:
    """Everything that is compared."""
    return (*_device(), *_idle(), *_launches(), *_names(), *_trace())


def _device() -> Iterable[Quantity]:
    yield Quantity(
        "device events", "", lambda analysis: sum(device.events for device in analysis.devices), figures.device_events,
        {
            HTA: Told("device_events", lambda said: said["device_events"], _EVENTS),
            TRACELENS: Told("device_events", lambda said: said["device_events"], ("tl_categories",)),
        },
    )  # fmt: skip
    yield Quantity(
        "device events with their launch", "",
        lambda analysis: sum(device.events - device.launch.unlinked for device in analysis.devices), figures.linked,
        {
            HTA: Told("linked", lambda said: said["linked"], (*_EVENTS, "hta_links")),
            TRACELENS: Told("device_events", lambda said: said["linked"], ("tl_categories", "tl_flows")),
        },
    )  # fmt: skip
    times: tuple[tuple[str, _Ours, _Plain, _Says, str], ...] = (
        ("device span", lambda it: it.span_ns, figures.span, lambda said: said["kernel"], "total_time"),
        ("device busy", lambda it: it.busy_ns, figures.busy, lambda said: said["kernel"] - said["idle"], "busy_time"),
        ("device idle", lambda it: it.idle_ns, figures.idle, lambda said: said["idle"], "idle_time"),
    )
    for name, ours, plain, says, key in times:
        told = {HTA: _hta_time("temporal", says, _TIMES), TRACELENS: _timeline(key, _TL)}
        yield Quantity(name, "ns", _of_device(ours), plain, told)
    # What TraceLens says of the last is the difference of two.
    kinds: tuple[tuple[str, _Ours, _Plain, tuple[str, ...], str | None], ...] = (
        ("compute", lambda it: it.kinds.compute_ns, figures.compute, ("COMPUTATION",), "computation_time"),
        (
            "communication", lambda it: it.kinds.communication_ns, figures.communication, ("COMMUNICATION",),
            "total_comm_time",
        ),
        ("copies", lambda it: it.kinds.copy_ns, figures.copies, ("MEMORY",), "total_memcpy_time"),
        (
            "compute beside communication", lambda it: it.kinds.overlap_ns, figures.overlap,
            ("COMPUTATION", "COMMUNICATION"), None,
        ),
    )  # fmt: skip
    for name, ours, plain, types, part in kinds:
        told = {
            HTA: _hta_time("kernels", _of_types(types), (*_TIMES, "hta_types", "hta_states")),
            TRACELENS: _timeline(part, (*_TL, "tl_types")),
        }
        yield Quantity(name, "ns", _of_device(ours), plain, told)
    yield Quantity(
        "copies beside nothing", "ns",
        _of_device(lambda it: it.busy_ns - it.kinds.compute_ns - it.kinds.communication_ns + it.kinds.overlap_ns),
        figures.exposed_copies, {TRACELENS: _timeline("exposed_memcpy_time", (*_TL, "tl_types"))},
    )  # fmt: skip
    yield Quantity(
        "compute beside communication", "%",
        _of_device(lambda it: 100 * it.kinds.overlap_ns / it.kinds.communication_ns if it.kinds.communication_ns else None),
        figures.overlap_percent,
        {HTA: Told("overlap", lambda said: said["overlap_percent"], (*_TIMES, "hta_types", "hta_states"), 0.005)},
    )  # fmt: skip


def _idle() -> Iterable[Quantity]:
    readings = (*_TIMES, "hta_links", "each_stream", "whole_gap")
    for name, ours, figure, keys in (
        ("idle until launched", lambda it: it.idle_ns - it.idle_blame["queue"], figures.waits_for_host, ("host_wait",)),
        (
            "idle after the launch",
            lambda it: it.idle_blame["queue"],
            figures.waits_for_device,
            ("kernel_wait", "other"),
        ),
    ):
        yield Quantity(name, "ns", _of_device(ours), figure, {HTA: _hta_time("idle", _idle_keys(keys), readings)})


def _launches() -> Iterable[Quantity]:
    readings = (*_TIMES, "launch_names", "each_pair", "after_return")
    yield Quantity(
        "launches", "", lambda analysis: sum(device.launch.count for device in analysis.devices), figures.launch_count,
        {HTA: Told("launches", lambda said: len(said["launches"]), readings[:-1])},
    )  # fmt: skip
    for name, ours, figure, share in (
        (
            "launch latency, median",
            lambda it: it.launch.median_ns if it.launch.count else None,
            figures.launch_median,
            0.5,
        ),
        ("launch latency, p99", lambda it: it.launch.p99_ns if it.launch.count else None, figures.launch_p99, 0.99),
        ("launch latency, most", lambda it: it.launch.max_ns if it.launch.count else None, figures.launch_max, 1.0),
    ):
        yield Quantity(name, "ns", _of_device(ours), figure, {HTA: _hta_time("launches", _latency(share), readings)})
    yield Quantity(
        "queue, most", "", _of_device(lambda it: it.launch.queue_depth_max), figures.queue_max,
        {HTA: Told("queue", lambda said: said["queue_max"], (*_TIMES, "queue_names", "each_pair", "each_stream", "any_order"))},
    )  # fmt: skip


def _names() -> Iterable[Quantity]:
    yield Quantity(
        "calls of operators", "", lambda analysis: {cost.name: cost.count for cost in analysis.operators},
        figures.operator_count, {HTA: Told("operators", lambda said: said["operator_count"], _EVENTS)},
    )  # fmt: skip
    yield Quantity(
        "time of operators", "ns", lambda analysis: {cost.name: cost.total_ns for cost in analysis.operators},
        figures.operator_total, {HTA: _hta_time("operators", lambda said: said["operator_total"], _TIMES)},
    )  # fmt: skip
    yield Quantity(
        "runs of kernels", "", lambda analysis: {cost.name: cost.count for cost in analysis.kernels}, figures.kernel_count,
        {TRACELENS: Told("kernels", lambda said: said["kernel_count"], ("tl_categories", "tl_kernels"))},
    )  # fmt: skip
    yield Quantity(
        "time of kernels", "ns", lambda analysis: {cost.name: cost.total_ns for cost in analysis.kernels}, figures.kernel_sum,
        {
            HTA: _hta_time("kernels", lambda said: said["kernel_sum"], (*_TIMES, "hta_types")),
            TRACELENS: Told(
                "kernels", lambda said: _scaled(said["kernel_sum"], _US), ("tl_categories", "tl_kernels"), 1.0
            ),
        },
    )  # fmt: skip
    yield Quantity(
        "mean time of kernels", "ns",
        lambda analysis: {cost.name: cost.total_ns / cost.count for cost in analysis.kernels}, figures.kernel_mean,
        {HTA: _hta_time("kernels", lambda said: said["kernel_mean"], (*_TIMES, "hta_types"))},
    )  # fmt: skip
    yield Quantity(
        "collectives", "", lambda analysis: len(analysis.collectives), figures.collective_count,
        {TRACELENS: Told("collectives", lambda said: said["collective_count"], ("tl_categories", "tl_kernels"))},
    )  # fmt: skip
    yield Quantity(
        "time of collectives", "ns", lambda analysis: sum(each.dur_ns for each in analysis.collectives),
        figures.collective_sum,
        {
            TRACELENS: Told(
                "collectives", lambda said: said["collective_sum"] * _US, ("tl_categories", "tl_kernels"), 1.0
            )
        },
    )  # fmt: skip


def _trace() -> Iterable[Quantity]:
    yield Quantity(
        "steps", "", lambda analysis: len(analysis.steps), figures.steps,
        {HTA: Told("steps", lambda said: said["steps"], ("last_step",))},
    )  # fmt: skip
    yield Quantity(
        "length of the trace", "ns", lambda analysis: analysis.window.wall_ns, figures.duration,
        {HTA: _hta_time("duration", lambda said: said["duration"], (*_TIMES, "last_start"))},
    )  # fmt: skip


# ---------------------------------------------------------------- how they are told
def _of_device(ours: Callable[[DeviceBudget], float | None]) -> Callable[[TraceAnalysis], Figure]:
    def of(analysis: TraceAnalysis) -> Figure:
        if len(analysis.devices) > 1:
            raise ValueError(f"{analysis.path} has several devices, which the peers take together")
        return ours(analysis.devices[0]) if analysis.devices else None

    return of


def _hta_time(function: str, of: Callable[[Said], Any], readings: tuple[str, ...]) -> Told:
    return Told(function, lambda said: _scaled(of(said), _US), readings, 0.5 * _US)


def _timeline(key: str | None, readings: tuple[str, ...]) -> Told:
    def of(said: Said) -> Figure:
        told = said["total_comm_time"] - said["exposed_comm_time"] if key is None else said[key]
        return float(told) * _MS

    return Told("timeline", of, readings, 1.0)


def _of_types(types: Sequence[str]) -> Callable[[Said], Any]:
    def of(said: Said) -> Any:
        told = said["kernel_types"]
        return (
            sum(time for name, time in told.items() if set(types) <= set(name.split(" overlapping "))) if told else None
        )

    return of


def _idle_keys(keys: Sequence[str]) -> Callable[[Said], Any]:
    return lambda said: sum(said["idle_split"].get(key, 0) for key in keys)


def _latency(share: float) -> Callable[[Said], Any]:
    return lambda said: nearest_rank([called + later for called, later in said["launches"]], share)


def _scaled(value: Any, by: int) -> Any:
    if isinstance(value, Mapping):
        return {name: each * by for name, each in value.items()}
    return None if value is None else value * by
