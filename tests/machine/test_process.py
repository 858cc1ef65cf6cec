"""A worker as the recorder sees it, with a stand-in that speaks the protocol and misbehaves on request."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine import process
from overhead_lens.machine.cores import wait_until_idle
from overhead_lens.machine.operations import LOAD, Operation
from overhead_lens.machine.process import Worker, in_batches
from overhead_lens.target import Target
from tests.cli.run import scenario

STAND_IN = """
import json, os, signal, sys, time
def reply(**answer):
    print(json.dumps(answer), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    step = request["do"]
    if step == "double":
        reply(ok={"value": 2 * request["value"]})
    elif step in ("usage", "measurement"):
        reply(error={"kind": step, "message": "said so"})
    elif step == "spin":
        import threading
        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
        reply(ok={"value": 0})
    elif step == "sleep":
        time.sleep(600)
    elif step == "exit":
        print("last words\\n\\n", file=sys.stderr)
        sys.exit(7)
    elif step == "signal":
        os.kill(os.getpid(), request["number"])
    elif step == "half":
        os.write(1, b'{"ok": {"val')
        os._exit(7)
    elif step == "fork":
        if os.fork():
            os._exit(7)
        time.sleep(600)
    elif step == "hang_up":
        os.close(1)
        time.sleep(600)
"""


@pytest.fixture
def worker(stand_in_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setattr(process, "_WORKER", tmp_path / "stand_in.py")
    monkeypatch.setattr(process, "_LAST_WORDS_S", 0.5)
    with Worker("clock-3", tmp_path / "log", 120.0) as found:
        yield found
    # A killed process takes a moment to die where others keep the cores busy.
    end = time.monotonic() + 60
    while (left := group_of(found.pid)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


def state_of(pid: int) -> str:
    """The state of a process (proc(5), ``stat``): ``T`` where it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def wait_for_state(pid: int, states: str) -> None:
    for _ in range(6_000):
        if state_of(pid) in states:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} is {state_of(pid)}, not one of {states}")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_whose_threads_do_not_rest_is_stopped_until_it_is_asked(worker: Worker) -> None:
    assert worker.ask(said("double"), value=1) == {"value": 2}
    assert worker.ask(said("spin")) == {"value": 0}
    wait_until_idle([worker])
    wait_for_state(worker.pid, "T")
    # It answers, and goes on.
    assert worker.ask(said("double"), value=21) == {"value": 42}
    wait_for_state(worker.pid, "RS")
    worker.stop()
    worker.end()
    assert not Path(f"/proc/{worker.pid}").exists()


def said(name: str) -> Operation[dict[str, Any]]:
    """An operation of that name, whatever it replies."""
    return Operation(name, dict[str, Any])


def group_of(leader: int) -> list[int]:
    """Processes of a group that still run (proc(5): state is the field after the name, the group two further)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(group) == leader and state != "Z":
            found.append(int(path.parent.name))
    return found


def test_asked_and_answered(worker: Worker) -> None:
    assert worker.ask(said("double"), value=21) == {"value": 42}
    with pytest.raises(UsageError, match="^said so$"):
        worker.ask(said("usage"))
    with pytest.raises(MeasurementError, match="^said so$"):
        worker.ask(said("measurement"))
    assert worker.ask(said("double"), value=1) == {"value": 2}


@pytest.mark.parametrize(
    ("step", "arguments", "how"),
    [
        ("exit", {}, "ended with exit code 7 during 'exit': last words"),
        ("signal", {"number": 9}, "was killed by signal SIGKILL during 'signal'"),
        ("signal", {"number": 40}, "was killed by signal 40 during 'signal'"),
        ("half", {}, "ended with exit code 7 during 'half'"),
        ("fork", {}, "ended with exit code 7 during 'fork'"),
        ("hang_up", {}, "closed its connection and was ended during 'hang up'"),
    ],
)
def test_a_death_is_told_from_every_other(worker: Worker, step: str, arguments: dict[str, int], how: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        worker.ask(said(step), **arguments)
    assert str(caught.value) == f"clock-3 {how}"


def test_asking_the_dead(worker: Worker) -> None:
    with pytest.raises(MeasurementError):
        worker.ask(said("exit"))
    with pytest.raises(MeasurementError, match="^clock-3 ended with exit code 7 during 'double': last words$"):
        worker.ask(said("double"), value=1)


def test_a_step_that_takes_too_long(worker: Worker) -> None:
    worker._timeout_s = 0.25
    with pytest.raises(MeasurementError) as caught:
        worker.ask(said("sleep"))
    assert str(caught.value) == "clock-3 did not finish 'sleep' within 0.25 s and was ended (raise --timeout)"
    assert not group_of(worker.pid)


def test_ended_twice(worker: Worker) -> None:
    worker.send(said("sleep"))
    worker.end()
    worker.end()
    with pytest.raises(MeasurementError, match="was killed by signal SIGKILL"):
        worker.send(said("double"), value=1)


PARAMETERS_OF_ANY_TYPE = """
import os, sys
from dataclasses import dataclass
import torch
from overhead_lens.scenario import Scenario

@dataclass(frozen=True)
class Params:
    dtype: torch.dtype = torch.float32
    size: int = 3

print("printed at import")
os.write(1, b"written to stdout\\n")
SCENARIO = Scenario(name="typed", summary="", source="", params=Params, variants={"neg": torch.neg},
                    inputs=lambda params: (torch.ones(params.size, dtype=params.dtype),))
"""


@pytest.mark.measures
@pytest.mark.usefixtures("started_workers")
def test_the_real_worker_keeps_its_protocol_clean(tmp_path: Path) -> None:
    path = scenario(tmp_path, text=PARAMETERS_OF_ANY_TYPE)
    with Worker("tracer", tmp_path / "log", 120.0) as worker:
        target = Target(str(path), path)
        about = worker.ask(LOAD, target=target.to_json(), params={"size": "4"}, compile_options=None)
        assert about.params == {"dtype": "torch.float32", "size": 4}
        assert os.getpgid(worker.pid) == worker.pid
        assert set((tmp_path / "log").read_text().splitlines()) >= {"printed at import", "written to stdout"}
        unknown = "worker.operations:no_such_step"
        with pytest.raises(MeasurementError, match=f"^no such step failed: LookupError: no operation {unknown}$"):
            worker.ask(said(unknown))


@pytest.mark.parametrize(
    ("cores", "batches"),
    [(None, ["abc", "de"]), (1, ["abc", "de"]), (4, ["abcd", "e"]), (8, ["abcde"])],
)
def test_batches_have_at_least_three_and_at_most_one_for_each_core(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, batches: list[str]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert in_batches("abcde") == batches
