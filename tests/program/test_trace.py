"""The recording of steps ends with the program, whatever the program does."""

import json
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.program import start
from overhead_lens.program.area import Area, Phase, Word
from overhead_lens.program.trace import TRACE, StepTrace
from tests.worker.warm import ended

HEAD = f"""
import os, time, torch
from overhead_lens import marks
from overhead_lens.program import watcher
watcher._SCOUTING_NS = watcher._LONG_SCOUTING_NS = 100_000_000
def is_traced():
    return marks.watcher is not None and marks.watcher._phase == {int(Phase.TRACED)}
def work():
    torch.ones(8) + 1
    time.sleep(0.02)
"""
ENDS = "import sys\nwhile not is_traced():\n    work()\nwork()\nprint('over', 'torch._inductor' in sys.modules)\n"
# The program's own profiler would import Inductor, which takes long.
LEAN = "torch._lazy_modules.discard('_inductor')\n"
PROFILES_ITSELF = f"""{LEAN}
while not is_traced():
    work()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
    torch.ones(8) + 1
print('over', any(event.name == 'aten::add' for event in own.events()))
"""
SCHEDULED = f"""{LEAN}
schedule = torch.profiler.schedule(wait=30, warmup=1, active=1)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as own:
    for _ in range(150):
        work()
        own.step()
print('over True')
"""
AUTOGRAD = """
while not is_traced():
    work()
with torch.autograd.profiler.profile() as own:
    torch.ones(8) + 1
print('over', any(event.name == 'aten::add' for event in own.function_events))
"""
ENDED = f"""{LEAN}
schedule = torch.profiler.schedule(wait=0, warmup=0, active=1, repeat=1)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as own:
    for _ in range(200):
        if is_traced():
            break
        work()
        own.step()
    for _ in range(60):
        work()
        own.step()
print('over', own.record_steps)
"""
FORKS = """
while not is_traced():
    work()
child = os.fork()
if not child:
    print(torch._C._autograd._profiler_enabled(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print('over')
"""
PAUSES = """
seen = 0
while seen < 5:
    work()
    seen += is_traced()
    if seen == 3:
        time.sleep(2)
        seen += 1
    marks.step()
    if seen == 4:
        break
print(is_traced())
"""
RETURNS = """
def epoch(seen, steps):
    for _ in range(steps):
        work()
        seen += is_traced()
        if seen == 3:
            return
epoch(0, 1000)
time.sleep(0.2)
epoch(4, 10)
print(is_traced())
"""
# A device that torch says it has, and that torch.profiler was not built for, as here.
FOREIGN = f"torch.cuda.is_available = torch.cuda.is_initialized = lambda: True\n{ENDS}"
# Asked for the device, torch.profiler waits for it at the end, which fails here.
FAILING = f"torch.profiler.supported_activities = lambda: [torch.profiler.ProfilerActivity.CUDA]\n{FOREIGN}"
# No file can be opened any more.
EXHAUSTED = f"import resource\n{ENDS}resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"


def run(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Run a program under the watcher, without a recorder."""
    program = folder / "program.py"
    program.write_text(HEAD + body, encoding="utf-8")
    Area.create(folder).write(Word.REFUSED, 1)
    return ended(start.__file__, folder, json.dumps({"tracer_pid": 1, "step": ""}), program, cwd=folder)


# libkineto tells of the program's own recording on stderr, in two lines; that of torch 2.9 does not.
@pytest.mark.parametrize(
    ("body", "said", "lines"),
    [(ENDS, "over False\n", {0}), (FOREIGN, "over False\n", {0}), (PROFILES_ITSELF, "over True\n", {0, 2})],
)
def test_the_program_ends_while_it_is_recorded(tmp_path: Path, body: str, said: str, lines: set[int]) -> None:
    done = run(tmp_path, body)
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert len(done.stderr.splitlines()) in lines, done.stderr
    events = json.loads((tmp_path / TRACE).read_text(encoding="utf-8"))["traceEvents"]
    assert "ProfilerStep#0" in {event["name"] for event in events}


@pytest.mark.parametrize("body", [SCHEDULED, AUTOGRAD])
def test_it_makes_way_for_a_profiler_of_the_program(tmp_path: Path, body: str) -> None:
    done = run(tmp_path, body)
    assert (done.returncode, done.stdout) == (0, "over True\n"), done.stderr


def windows(folder: Path) -> list[str]:
    events = json.loads((folder / TRACE).read_text(encoding="utf-8"))["traceEvents"]
    return [event["name"] for event in events if event["name"].startswith("ProfilerStep#")]


def test_windows_of_the_programs_profiler_are_not_recorded(tmp_path: Path) -> None:
    done = run(tmp_path, ENDED)
    assert (done.returncode, done.stdout) == (0, "over True\n"), done.stderr
    assert windows(tmp_path) == [f"ProfilerStep#{number}" for number in range(len(windows(tmp_path)))]


def test_a_forked_child_does_not_record(tmp_path: Path) -> None:
    done = run(tmp_path, FORKS)
    assert (done.returncode, done.stdout) == (0, "False\nover\n"), done.stderr


def test_steps_before_a_pause_are_kept(tmp_path: Path) -> None:
    done = run(tmp_path, PAUSES)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert "ProfilerStep#0" in windows(tmp_path)


def test_a_return_out_of_the_loop_ends_the_recording(tmp_path: Path) -> None:
    done = run(tmp_path, RETURNS)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    whole = [row for row in Area.open(tmp_path).rows() if row.phase == Phase.TRACED]
    # Of the third step, which did not end, there is a window and no row.
    assert (len(whole), windows(tmp_path)) == (2, [f"ProfilerStep#{number}" for number in range(3)])


@pytest.mark.parametrize("body", [FAILING, EXHAUSTED])
def test_an_end_that_fails_leaves_no_profiler_on(tmp_path: Path, body: str) -> None:
    done = run(tmp_path, body)
    # A profiler that is on when the interpreter ends crashes it.
    assert (done.returncode, done.stdout) == (0, "over False\n"), done.stderr
    assert not (tmp_path / TRACE).exists()


def test_a_log_that_cannot_be_written_leaves_the_programs_stderr_alone(tmp_path: Path) -> None:
    (tmp_path / "profiler.log").mkdir()
    done = run(tmp_path, ENDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over False\n", "")


# ---------------------------------------------------------------- a stand-in of torch
class Activity(Enum):
    """``torch.profiler.ProfilerActivity``."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4


class Profile:
    """``torch.profiler.profile``."""

    def __init__(self, activities: list[Activity]) -> None:
        self.activities = activities

    def __enter__(self) -> None:
        pass


def torch_with(supported: list[Activity], **is_initialized: bool) -> Any:
    """A torch whose profiler supports these activities, and these of its modules of devices."""
    devices = {name: SimpleNamespace(is_initialized=lambda its=its: its) for name, its in is_initialized.items()}
    profiler = SimpleNamespace(ProfilerActivity=Activity, supported_activities=lambda: supported, profile=Profile)
    autograd = SimpleNamespace(_profiler_enabled=lambda: False)
    return SimpleNamespace(_C=SimpleNamespace(_autograd=autograd), profiler=profiler, **devices)


@pytest.mark.parametrize(
    ("torch", "activities"),
    [
        (torch_with([Activity.CPU], cuda=False), [Activity.CPU]),
        (torch_with([Activity.CPU], cuda=True), [Activity.CPU]),
        (torch_with([Activity.CPU, Activity.CUDA], cuda=False, xpu=True), [Activity.CPU]),
        (torch_with([Activity.CPU, Activity.CUDA, Activity.HPU], cuda=True), [Activity.CPU, Activity.CUDA]),
        (torch_with([Activity.CPU, Activity.XPU, Activity.MTIA], cuda=False, xpu=True), [Activity.CPU, Activity.XPU]),
        (torch_with([Activity.CPU, Activity.MTIA], mtia=True, hpu=True), [Activity.CPU, Activity.MTIA]),
    ],
)
def test_the_profiler_is_asked_for_a_device_that_both_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: Any, activities: list[Activity]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.profiler.profiler", SimpleNamespace(torch=torch))
    trace = StepTrace(tmp_path)
    assert trace.begin(1e6)
    trace._cancel_limit()
    assert trace._profile.activities == activities
    assert trace.sees_device == (len(activities) > 1)


BACKWARD = """
import sys, time, torch
from pathlib import Path
from overhead_lens.program.trace import StepTrace, _later

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return value * 2

    @staticmethod
    def backward(context, gradient):
        _later(0.0, trace._stop)
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            gradient = gradient + 0
        return gradient

trace = StepTrace(Path(sys.argv[1]))
assert trace.begin(1e9)
Slow.apply(torch.ones(8, requires_grad=True)).sum().backward()
end = time.perf_counter() + 60
while trace._profile is not None and time.perf_counter() < end:
    torch.ones(8) + 1
print(torch._C._autograd._profiler_enabled())
"""


def test_it_does_not_end_within_a_backward_pass(tmp_path: Path) -> None:
    """Else the profiler stays on: the program could not start its own."""
    done = ended("-c", BACKWARD, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
