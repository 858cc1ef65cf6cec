"""A workload with remedies applied. Runs in the worker."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.remedies.registry import built_in, defined_in
from overhead_lens.remedies.remedy import Call, Context, NotApplicableError, Remedy, with_own_code
from overhead_lens.target import Target
from overhead_lens.worker.importing import module_of
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.outputs import outcome_of
from overhead_lens.worker.workload import Workload, compiled

VARIANT = "variant_"

# Never left. One that nothing refers to would be left at once, if it is a generator.
_entered = ExitStack()


@dataclass(frozen=True, slots=True)
class Remedied:
    """A workload with remedies, and the contexts it runs in: from the start, and after the first call."""

    workload: Workload
    contexts: tuple[Context, ...] = ()
    late_contexts: tuple[Context, ...] = ()

    def entered(self) -> AbstractContextManager[None]:
        """Enter all contexts, as for every call after the first."""
        return _inside((*self.contexts, *self.late_contexts))

    def entered_at_first(self) -> AbstractContextManager[None]:
        """Enter the contexts of its first call."""
        return _inside(self.contexts)


@contextmanager
def _inside(contexts: Sequence[Context]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        yield


def known_remedies(workload: Workload, file: str | None) -> Mapping[str, Remedy]:
    """The remedies that there are for a workload, by name.

    Raises:
        UsageError: The user's file is wrong.
    """
    own: Sequence[Remedy] = ()
    if file is not None:
        path = Path(file)
        own = defined_in(module_of(Target(file, path)), path)
    remedies: dict[str, Remedy] = {}
    for remedy in (*own, *_variants(workload), *built_in()):
        if remedy.name in remedies:
            raise UsageError(f"{file}: there is a remedy {remedy.name} already")
        remedies[remedy.name] = remedy
    return remedies


def changed(workload: Workload, remedies: Sequence[Remedy], folder: Path) -> Call:
    """The call that remedies make of a workload's, applied in their order.

    Raises:
        NotApplicableError: One of them cannot be tried on it.
    """
    call = Call(
        workload.original,
        workload.args,
        workload.keywords,
        workload.compile_options,
        device=workload.device.partition(":")[0],
        folder=folder / hashlib.sha256("+".join(each.name for each in remedies).encode()).hexdigest()[:16],
    )
    for remedy in remedies:
        call = remedy.apply(call)
    return call


def remedied(workload: Workload, remedies: Sequence[Remedy], folder: Path) -> Remedied:
    """The workload with remedies applied in their order; torch.compile compiles nothing yet, and no context is entered.

    Raises:
        NotApplicableError: One of them cannot be tried on it.
    """
    call = changed(workload, remedies, folder)
    function: Callable[..., Any] = call.function
    if call.build is not None:
        with _inside(call.contexts):
            function = call.build(call)
    if call.compile_options is not None:
        function = with_own_code(function)
    changed_workload = dataclasses.replace(
        workload,
        call=compiled(function, call.compile_options),
        original=function,
        args=call.args,
        keywords=call.keywords,
        loop=make_measured_loop(len(call.args), workload.synchronize, call.keywords),
        compile_options=call.compile_options,
    )
    return Remedied(changed_workload, call.contexts, call.late_contexts)


def for_good(workload: Workload, names: Sequence[str], file: str | None, folder: Path) -> Workload:
    """The workload with remedies, whose contexts this process does not leave.

    Raises:
        MeasurementError: A remedy does not apply.
    """
    remedies = known_remedies(workload, file)
    try:
        result = remedied(workload, [remedies[name] for name in names], folder)
    except NotApplicableError as error:
        raise MeasurementError(str(error)) from error
    _entered.enter_context(_inside(result.contexts))
    if result.late_contexts:
        first = result.workload
        outcome_of(first.call, first.args, first.keywords, function=workload.original)
    _entered.enter_context(_inside(result.late_contexts))
    return result.workload


def _variants(workload: Workload) -> Iterator[Remedy]:
    """The scenario's other variants."""

    def other(function: Callable[..., Any]) -> Callable[[Call], Call]:
        return lambda call: dataclasses.replace(call, function=function)

    for name, function in workload.scenario.variants.items():
        if name != workload.variant:
            yield Remedy(
                name=f"{VARIANT}{name}",
                summary=f"the scenario's variant {name}",
                how=f"{workload.scenario.name}:{name}",
                shrinks=("python", "dispatcher", "allocation", "kernel", "guard", "wait", "launch"),
                source=workload.scenario.source,
                apply=other(function),
                group="variant",
            )
