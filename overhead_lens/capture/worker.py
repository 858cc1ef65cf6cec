"""The measuring worker: one fresh process that loads a scenario and does what the recorder asks, one step at a time.

Started as a script, possibly by another interpreter that has torch but not this package's dependencies: only the
standard library, torch and the stdlib-only modules of this package are imported here.

Protocol: one JSON object per line. Requests come on stdin (``{"do": step, ...}``); replies go to what was stdout
(``{"ok": {...}}`` or ``{"error": {"kind": "usage" | "measurement", "message": line}}``). The process's own stdout
and stderr are sent to a log, so that neither a scenario nor torch can write into the protocol.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import IO, Any


def _import_package() -> None:
    """Make ``overhead_lens`` importable from where this file lies, without the rest of that site-packages folder."""
    if "overhead_lens" in sys.modules:
        return
    package = Path(__file__).resolve().parent.parent
    if sys.path and Path(sys.path[0]).resolve() == package / "capture":
        del sys.path[0]
    spec = importlib.util.spec_from_file_location(
        "overhead_lens", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["overhead_lens"] = module
    spec.loader.exec_module(module)


class Session:
    """The steps of the protocol, on the one workload of this process."""

    def __init__(self, requests: IO[str]) -> None:
        self._requests = requests
        self._workload: Any = None
        self._ladder: Any = None
        self._sweep: Any = None
        self._warm: dict[str, Any] = {}

    def load(self, path: str, variant: str | None, params: dict[str, str], compile_options: Any) -> dict[str, Any]:
        """Load, check; reply with what the metadata says of the workload."""
        from overhead_lens.capture import workload

        self._workload = workload.load(path, variant, params, compile_options)
        return workload.describe(self._workload)

    def start_afresh(self) -> dict[str, Any]:
        """Before torch is loaded: leave the memory that start-up used."""
        from overhead_lens.capture import heap

        heap.start_afresh()
        return {}

    def catalog(self, paths: dict[str, str]) -> dict[str, Any]:
        """Load scenario files and reply with what each offers; one that fails is a row with its error."""
        from overhead_lens.capture import catalog

        return {"scenarios": catalog.describe_all(paths)}

    def warm_up(self) -> dict[str, Any]:
        """Compile and call until settled."""
        from overhead_lens.capture import workload

        self._warm = workload.warm_up(self._workload)
        return self._warm

    def recompile(self) -> dict[str, Any]:
        """Compile once more, and call until settled: all but the compiled code is warm."""
        from overhead_lens.capture import workload

        compiled = workload.recompiled(self._workload)
        self._warm = workload.warm_up(compiled, least_ns=0)
        self._workload = compiled
        return self._warm

    def clock(self, block_ns: int, blocks: int, budget_ns: int, piece_ns: int | None = None) -> dict[str, Any]:
        """Time blocks of the bare loop, as a whole or in pieces; also how long other threads of this process ran meanwhile."""
        from overhead_lens.capture import clock

        before_ns = clock.other_threads_ns()
        rows, self._warm["call_ns"] = clock.measure_blocks(
            self._workload, self._warm["call_ns"], block_ns, blocks, budget_ns, piece_ns
        )
        return {"rows": rows, "others_ns": clock.other_threads_ns() - before_ns}

    def page_faults(self) -> dict[str, Any]:
        """Measure what page faults take beside the operating system's own time."""
        from overhead_lens.capture import page_faults

        return dict(page_faults.measure())

    def trace(self, folder: str) -> dict[str, Any]:
        """Record the loop with torch.profiler."""
        from overhead_lens.capture import profiler

        return profiler.trace(self._workload, folder, self._warm["call_ns"])

    def spin(self, chunk_ns: int, tracer_pid: int, reply: Any) -> dict[str, Any]:
        """Run the loop until a line arrives, which is consumed; replies once before, so that a sampler can attach."""
        from overhead_lens.capture import clock, spin

        spin.allow_tracing_by(tracer_pid)
        reply({"ok": {"pid": os.getpid()}})
        count = clock.calls_per_block(self._warm["call_ns"], chunk_ns)
        calls = spin.spin_until_input(self._workload, count, self._requests)
        self._requests.readline()
        return {"calls": calls}

    def compile_call(self) -> dict[str, Any]:
        """Compile and check, no more."""
        from overhead_lens.capture import workload

        workload.compile_call(self._workload)
        return {}

    def count_instructions(self, calls: int, rounds: int) -> dict[str, Any]:
        """Have callgrind, under which this process runs, count the measured loop."""
        from overhead_lens.capture import workload

        workload.count_instructions(self._workload, calls, rounds)
        return {}

    def calibrate(self, flags: list[str], compiled: bool) -> dict[str, Any]:
        """Measure what torch.profiler's events cost."""
        from overhead_lens.capture import calibration

        return calibration.measure_costs(flags, compiled=compiled)

    def build_rungs(self, names: list[str]) -> dict[str, Any]:
        """Make the rungs of the call."""
        from overhead_lens.capture import ablation

        self._ladder = ablation.Ladder(self._workload, names)
        return {}

    def time_rungs(self, block_ns: int, rounds: int, budget_ns: int, seed: int) -> dict[str, Any]:
        """Time the rungs of the call in turns."""
        return dict(self._ladder.measure(block_ns, rounds, budget_ns, seed))

    def steps(self, block_ns: int, rounds: int, seed: int) -> dict[str, Any]:
        """Time single steps of a compiled call as pairs."""
        from overhead_lens.capture import steps

        return dict(steps.measure_steps(block_ns, rounds, seed))

    def load_sweep(self, **what: Any) -> dict[str, Any]:
        """Load and check a scenario at several sizes; reply with what the metadata says of it."""
        from overhead_lens.capture import sweep

        self._sweep = sweep.Sweep(**what)
        return dict(self._sweep.describe())

    def warm_up_sweep(self, block_ns: int) -> dict[str, Any]:
        """Compile and call every variant at every size until settled."""
        return dict(self._sweep.warm_up(block_ns))

    def time_sweep(self, rounds: int, budget_ns: int, seed: int) -> dict[str, Any]:
        """Time every variant at every size in turns."""
        return {"rows": self._sweep.measure(rounds, budget_ns, seed)}

    def guards(self) -> dict[str, Any]:
        """List the guards of the compiled call."""
        from overhead_lens.capture import guards

        return guards.list_guards(self._workload)

    def peaks(self) -> dict[str, Any]:
        """Measure the machine's peaks."""
        from overhead_lens.capture import peaks

        return dict(peaks.measure_peaks())

    def environment(self) -> dict[str, Any]:
        """What only this process can tell: torch, Python and their threads."""
        from overhead_lens.capture import runtime

        return runtime.describe_runtime()


def _answer(session: Session, request: dict[str, Any], reply: Any) -> dict[str, Any]:
    from overhead_lens.errors import MeasurementError, UsageError

    step = request.pop("do")
    try:
        if step == "spin":
            request["reply"] = reply
        return {"ok": getattr(session, step)(**request)}
    except UsageError as error:
        return {"error": {"kind": "usage", "message": str(error)}}
    except (MeasurementError, OSError, MemoryError) as error:
        return {"error": {"kind": "measurement", "message": str(error) or type(error).__name__}}
    except Exception as error:
        import traceback

        traceback.print_exc()
        lines = str(error).splitlines() or [""]
        return {"error": {"kind": "measurement", "message": f"{step} failed: {type(error).__name__}: {lines[0]}"}}


def _die_with_parent(parent_pid: int) -> None:
    """End this process when the recorder is killed (prctl(2), PR_SET_PDEATHSIG), even in the middle of a loop."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:
            sys.exit(1)


def _fix_layout() -> None:
    """Start over without address-space randomization (personality(2)), where the recorder asks for it and it is allowed.

    The same code then lies at the same addresses in every process, which otherwise makes two processes of one thing differ
    by 2 % in a small call. A machine that refuses only makes intervals wider.
    """
    if sys.platform != "linux" or os.environ.pop("OVERHEAD_LENS_LAYOUT", None) != "fixed":
        return
    import ctypes

    address_no_randomize, ask = 0x0040000, 0xFFFFFFFF
    personality = ctypes.CDLL(None).personality
    personality.argtypes = [ctypes.c_ulong]
    before = personality(ask)
    if before != -1 and personality(before | address_no_randomize) != -1:
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606


def main(parent_pid: int) -> None:
    """Serve requests until stdin closes."""
    _die_with_parent(parent_pid)
    _fix_layout()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", buffering=1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    _import_package()

    def reply(answer: dict[str, Any]) -> None:
        # The worker is ended by a signal, which takes what is still in a buffer with it.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stdout.flush()
        # A parameter may be of any type, a torch.dtype for one: its text is what metadata can say of it.
        replies.write(json.dumps(answer, default=str) + "\n")
        replies.flush()

    session = Session(requests)
    while line := requests.readline():
        reply(_answer(session, json.loads(line), reply))


if __name__ == "__main__":
    main(int(sys.argv[1]))
