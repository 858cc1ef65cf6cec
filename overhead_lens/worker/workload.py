"""Makes a scenario's variant ready to be measured: loads, checks, compiles, warms up. Runs in the worker."""

from __future__ import annotations

import dataclasses
import gc
import math
import random
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import torch

from overhead_lens import scenario as scenarios
from overhead_lens.errors import MeasurementError, UsageError, first_line
from overhead_lens.remedies.reached import PLAIN, holder_of, values_of
from overhead_lens.remedies.remedy import copied, updated
from overhead_lens.scenario import Arguments
from overhead_lens.target import Target, name_of, summary_of
from overhead_lens.worker.collector import collecting_rarely
from overhead_lens.worker.load import load as load_target
from overhead_lens.worker.load import load_scenario as load_scenario_of
from overhead_lens.worker.loop import MeasuredLoop, make_measured_loop

NO_COMPILER = "torch.compile found no working C++ compiler; install g++ or clang++ (or set CXX)"

_SEED = 20_240_229
_BATCH_NS = 20_000_000
_LEAST_WARM_UP_NS = 250_000_000
_MOST_WARM_UP_NS = 2_500_000_000
_STILL_FALLING = 0.1

_NUMBERS = frozenset({bool, int, float})


@dataclass(frozen=True, slots=True)
class Workload:
    """One callable with its arguments and the loop that measures it.

    Attributes:
        call: What is measured: ``original``, or what torch.compile made of it.
        args: Its arguments, those passed by name last.
        device: As the scenario names it, or the kind that the call's tensors are on.
        synchronize: Waits for the devices; None on the CPU.
        compile_options: Keyword arguments that torch.compile was given; None where ``call`` is ``original``.
        keywords: Names of the arguments that are passed by name.
        notes: Warnings for the report.
    """

    scenario: scenarios.Scenario
    variant: str
    params: Any
    call: Any
    original: Any
    args: tuple[Any, ...]
    device: str
    loop: MeasuredLoop
    synchronize: Callable[[], None] | None
    compile_options: Mapping[str, Any] | None
    keywords: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def on_device(self) -> bool:
        """Whether the call gives work to a device."""
        return self.synchronize is not None

    def call_once(self, function: Callable[..., Any]) -> Any:
        """Call ``function`` with the arguments."""
        split = len(self.args) - len(self.keywords)
        return function(*self.args[:split], **dict(zip(self.keywords, self.args[split:], strict=True)))

    def run(self, count: int) -> int:
        """Run the measured loop ``count`` times; returns the wall time in ns, device work included."""
        start_ns = time.perf_counter_ns()
        self.loop(self.call, self.args, count)
        return time.perf_counter_ns() - start_ns

    def calls_within(self, call_ns: float, duration_ns: int) -> int:
        """Number of calls of ``call_ns`` for a run of about ``duration_ns``; at least one."""
        return calls_within(call_ns, duration_ns)

    def compile_count(self) -> int:
        """Frames that Dynamo has considered for compilation in this process (``torch/_dynamo/utils.py``)."""
        utils = sys.modules.get("torch._dynamo.utils")
        return 0 if utils is None else int(utils.counters["frames"]["total"])


def calls_within(call_ns: float, duration_ns: int) -> int:
    """Number of calls of ``call_ns`` that take about ``duration_ns``; at least one."""
    return max(1, round(duration_ns / max(call_ns, 1.0)))


def load(target: Target, assignments: Mapping[str, str], compile_options: Mapping[str, Any] | None) -> Workload:
    """Load a scenario or function, make its inputs, and check the uncompiled variant's result.

    Args:
        compile_options: Keyword arguments of torch.compile, None to measure eagerly.

    Raises:
        UsageError: The scenario or a parameter is wrong, or the check fails.
        MeasurementError: The device is not there.
    """
    _search_beside(target)
    # A model that the file makes has the same weights in every process.
    seed()
    with collecting_rarely():
        return prepare(load_target(target), target.name, assignments, compile_options)


def load_scenario(target: Target) -> scenarios.Scenario:
    """The scenario that a target's file defines.

    Raises:
        UsageError: The file is wrong.
    """
    _search_beside(target)
    return load_scenario_of(target)


def _search_beside(target: Target) -> None:
    """Let imports find modules beside the file, as for a script."""
    for source in filter(None, (target.inputs, target)):
        sys.path[:0] = source.searched_first


def prepare(
    scenario: scenarios.Scenario,
    variant: str | None,
    assignments: Mapping[str, str],
    compile_options: Mapping[str, Any] | None,
) -> Workload:
    """The workload of a scenario, its uncompiled result checked; see ``load``."""
    name = scenario.variant(variant)
    params = scenarios.make_params(scenario, assignments)
    _check_device(_named_device(params))
    return _checked(scenario, name, params, _inputs(scenario, params), compile_options)


def of_callable(
    function: Callable[..., Any], arguments: Arguments, compile_options: Mapping[str, Any] | None
) -> Workload:
    """The workload of a callable of this process, called once to see that it runs.

    Raises:
        UsageError: The call fails.
    """
    name = name_of(function)
    scenario = scenarios.Scenario(
        name=name,
        summary=summary_of(function),
        source=str(getattr(function, "__module__", "")),
        params=scenarios.NoParams,
        inputs=lambda _params: arguments,
        variants={name: function},
        kind="callable",
    )
    return _checked(scenario, name, scenarios.NoParams(), arguments, compile_options)


def _checked(
    scenario: scenarios.Scenario,
    variant: str,
    params: Any,
    arguments: Arguments,
    compile_options: Mapping[str, Any] | None,
) -> Workload:
    """The workload, called once without torch.compile."""
    original, args, keywords = scenario.variants[variant], arguments.values, tuple(arguments.by_name)
    workload = Workload(
        scenario=scenario,
        variant=variant,
        params=params,
        call=compiled(original, compile_options),
        original=original,
        args=args,
        device=_named_device(params) or "cpu",
        loop=make_measured_loop(len(args), None, keywords),
        synchronize=None,
        compile_options=compile_options,
        keywords=keywords,
    )
    before = values_of(original) if arguments.reached else {}
    workload = _waiting(workload, _check(workload, original))
    after = values_of(original) if before else {}
    # What the call itself changes, such as a counter or what it keeps for the next call, need not be as where it was called.
    here = {path: value for path, value in before.items() if after.get(path) == value}
    return dataclasses.replace(workload, notes=tuple(_unlike(arguments.reached, here)))


def _unlike(called: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """The warning that the function reaches other values here than where it was called."""
    if differing := [path for path in called if path in here and here[path] != called[path]]:
        path, more = differing[0], f" ({len(differing) - 1} more differ)" if len(differing) > 1 else ""
        yield (
            f"measured with {path} = {here[path]}, not {called[path]}, since fresh processes import the module again{more}:"
            " set it where the module is imported, or profile a lambda, which is measured in this process"
        )


def _named_device(params: Any) -> str | None:
    device = getattr(params, "device", None)
    return None if device is None else str(device)


def _waiting(workload: Workload, output: Any) -> Workload:
    """The workload with the devices of its tensors and the named one, which it waits for."""
    devices = list(devices_of((workload.original, workload.args, output)))
    name = _named_device(workload.params)
    if name is None:
        kind = devices[0].type if devices else "cpu"
    else:
        kind, device = name, torch.device(name)
        is_there = any(device in (other, torch.device(other.type)) for other in devices)
        devices += [device] if device.type != "cpu" and not is_there else []
    synchronize = _synchronizer(devices)
    loop = make_measured_loop(len(workload.args), synchronize, workload.keywords)
    return dataclasses.replace(workload, device=kind, loop=loop, synchronize=synchronize)


def devices_of(value: Any) -> tuple[torch.device, ...]:
    """Devices beside the CPU that hold tensors that a value reaches, each once."""
    devices = dict.fromkeys(tensor.device for tensor in _tensors(value))
    return tuple(device for device in devices if device.type not in {"cpu", "meta"})


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Tensors that a value reaches; classes are not entered: few of their methods are part of a call."""
    rest, seen = [value], {}
    while rest:
        value = rest.pop()
        # Some libraries' objects represent others, and raise an error when they are looked at.
        with suppress(Exception):
            if isinstance(value, torch.Tensor):
                yield value
            elif not isinstance(value, (*PLAIN, type)) and id(value) not in seen:
                seen[id(value)] = value
                rest += [each for each in reversed(_reached(value)) if type(each) not in _NUMBERS]


def _reached(value: Any) -> Sequence[Any]:
    """What an object refers to, and what the functions of libraries hold for their callers."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, weakref.ref):
        # Learning-rate schedulers replace `optimizer.step` by a function that holds the optimizer by a weak reference.
        return [value()]
    holder = holder_of(value)
    if holder is not None:
        return list(holder.parts.values())
    if isinstance(value, FunctionType):
        return list(value.__closure__ or ())
    owner = getattr(value, "__self__", None)
    return [owner] if isinstance(owner, torch.Tensor) else []


def describe(workload: Workload) -> dict[str, Any]:
    """Description of the workload for the capture's metadata, as JSON values."""
    scenario = workload.scenario
    work = scenario.work(workload.params) if scenario.work else scenarios.Work()
    return {
        "kind": scenario.kind,
        "scenario": scenario.name,
        "variant": workload.variant,
        "device": workload.device,
        "summary": scenario.summary,
        "params": dataclasses.asdict(workload.params),
        "work": dataclasses.asdict(work),
        "work_known": scenario.work is not None,
        "compiles": workload.compile_options is not None,
        "notes": workload.notes,
    }


def compile_call(workload: Workload) -> None:
    """Compile the call, unless it is eager, and check its result."""
    if workload.call is not workload.original:
        with collecting_rarely():
            _check(workload, workload.call)


def recompiled(workload: Workload) -> Workload:
    """The workload compiled again from torch.compile's caches: other code objects, guards and memory."""
    torch.compiler.reset()
    # Else the list of compilations would hold earlier ones, and call these recompilations.
    forget = getattr(sys.modules.get("torch._dynamo.utils"), "clear_compilation_metrics", None)
    if forget is not None:
        forget()
    return dataclasses.replace(workload, call=compiled(workload.original, workload.compile_options))


def compiled(function: Callable[..., Any], options: Mapping[str, Any] | None) -> Callable[..., Any]:
    """A function under torch.compile with these options; itself without.

    Dynamo calls functions and modules of torch by a wrapper, whose one code object would hold what is compiled for all of them,
    and for eight of them only. So each wrapper has a code object of its own.
    """
    if options is None:
        return function
    from torch._dynamo import external_utils

    wrap = external_utils.wrap_inline
    with updated([vars(external_utils)], {"wrap_inline": lambda inner: copied(wrap(inner))}):
        call: Callable[..., Any] = torch.compile(function, **options)
    return call


def warm_up(workload: Workload, least_ns: int = _LEAST_WARM_UP_NS) -> dict[str, Any]:
    """Call until compilation and caches settle, then freeze the garbage collector.

    Settled: no compilation in the last three batches, of about 20 ms each, and the last at most 10 % faster than the two before.

    Args:
        least_ns: Least time, even if it settles sooner.

    Returns:
        ``call_ns``: ns per call of the fastest of the last batches; ``settled``; ``compiles``: frames compiled.

    Raises:
        UsageError: A call fails.
        MeasurementError: It cannot be compiled.
    """
    started = time.perf_counter_ns()
    compile_call(workload)
    count, batches = 1, [(workload.compile_count(), 0.0)]
    while True:
        try:
            elapsed_ns = workload.run(count)
        except (Exception, SystemExit) as error:
            again = "failed when it was called again with the same arguments"
            raise UsageError(f"{_title(workload.scenario, workload.variant)} {again}: {first_line(error)}") from error
        batches.append((workload.compile_count(), elapsed_ns / count))
        spent_ns = time.perf_counter_ns() - started
        full = workload.calls_within(elapsed_ns / count, _BATCH_NS)
        settled = count >= full and _has_settled(batches)
        if (settled and (spent_ns >= least_ns)) or (spent_ns >= _MOST_WARM_UP_NS and len(batches) > 3):
            break
        if count < full:
            count = min(10 * count, math.ceil(1.1 * full))
    gc.collect()
    gc.freeze()
    return {"call_ns": min(ns for _, ns in batches[-3:]), "settled": settled, "compiles": workload.compile_count()}


def _has_settled(batches: list[tuple[int, float]]) -> bool:
    if len(batches) < 4 or batches[-3][0] != batches[-1][0]:
        return False
    return batches[-1][1] >= (1 - _STILL_FALLING) * min(batches[-2][1], batches[-3][1])


def lacks_compiler(error: BaseException) -> bool:
    """Whether torch.compile failed because of ``NO_COMPILER``."""
    text = f"{type(error).__name__} {error}"
    return "InvalidCxxCompiler" in text or "No working C++ compiler" in text


def _check_device(device: str | None) -> None:
    kind = (device or "cpu").partition(":")[0]
    if kind == "cpu":
        return
    module = getattr(torch, kind, None)
    if module is None or not hasattr(module, "is_available"):
        raise UsageError(f"this torch knows no device {device!r}")
    if not module.is_available():
        raise MeasurementError(f"no {kind} device can be used here (torch {torch.__version__}); run with --device cpu")


def _synchronizer(devices: Sequence[torch.device]) -> Callable[[], None] | None:
    """Waits for the devices; None if torch can wait for none of them."""
    waits: list[Callable[[], None]] = []
    for device in devices:
        module = getattr(torch, device.type, None)
        if (wait := getattr(module, "synchronize", None)) is not None:
            # Without an argument it waits for the current device only.
            waits.append(partial(wait, device) if getattr(module, "device_count", int)() > 1 else wait)

    def wait_for_all() -> None:
        for wait in waits:
            wait()

    return wait_for_all if len(waits) > 1 else next(iter(waits), None)


def seed() -> None:
    """Give all common sources of random numbers the seed that every process uses."""
    random.seed(_SEED)
    torch.manual_seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)


def _inputs(scenario: scenarios.Scenario, params: Any) -> Arguments:
    seed()
    try:
        arguments = scenario.inputs(params)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"scenario {scenario.name}: making the inputs failed: {first_line(error)}") from error
    if isinstance(arguments, tuple):
        arguments = Arguments(arguments)
    if not isinstance(arguments, Arguments):
        raise UsageError(f"scenario {scenario.name}: inputs() must return a tuple, not {type(arguments).__name__}")
    return arguments


def _check(workload: Workload, call: Any) -> Any:
    """Call the original or the compiled function once, have the scenario check the output, and return it."""
    scenario = workload.scenario
    title = _title(scenario, workload.variant)
    try:
        output = workload.call_once(call)
    except (Exception, SystemExit) as error:
        if call is not workload.original:
            message = f"{NO_COMPILER}, or leave --compile out"
            if not lacks_compiler(error):
                message = f"torch.compile failed: {first_line(error)}"
            raise MeasurementError(message) from error
        # A function of C need not say what it takes.
        lacks = (
            isinstance(error, TypeError) and scenario.kind == "function" and not (workload.args or workload.keywords)
        )
        hint = "; name a function that returns its arguments in a tuple, --inputs my.py:make" if lacks else ""
        raise UsageError(f"{title} failed: {first_line(error)}{hint}") from error
    if scenario.check is None:
        return output
    try:
        scenario.check(workload.params, workload.args, output)
    except Exception as error:
        raise UsageError(f"{title} gives a wrong result: {first_line(error)}; nothing was timed") from error
    return output


def _title(scenario: scenarios.Scenario, variant: str) -> str:
    return scenario.name if scenario.kind == "callable" else f"{scenario.name}:{variant}"
