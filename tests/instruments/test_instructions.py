"""Counting instructions with stand-ins for valgrind; the real one counts in the test of a gate."""

from __future__ import annotations

import contextlib
import gzip
import mmap
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instructions import worker
from overhead_lens.instruments.instructions.record import calls_of, count_instructions
from overhead_lens.instruments.instructions.worker import Switch
from overhead_lens.readers.callgrind import TRUNCATED, read_callgrind
from overhead_lens.target import Target
from overhead_lens.taxonomy.classifier import default_classifier
from tests.cli.hanging import LOADED
from tests.cli.run import scenario
from tests.worker.answering import session_of

pytestmark = pytest.mark.usefixtures("stand_in_workers")

# Answers as the worker does and leaves two dumps.
ANSWERING = """#!{python}
import json, sys
out = next(word.partition("=")[2] for word in sys.argv if word.startswith("--callgrind-out-file="))
for line in sys.stdin:
    step = json.loads(line)["do"].rpartition(":")[2]
    if step == "count":
        for number, text in enumerate({dumps!r}, 1):
            open(f"{{out}}.{{number}}", "w").write(text)
    print(json.dumps({{"ok": {loaded!r} if step == "load" else {{}}}}), flush=True)
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a ``valgrind`` first on PATH."""
    program = folder / "bin" / "valgrind"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def answering(folder: Path, monkeypatch: pytest.MonkeyPatch, *dumps: str) -> None:
    stand_in(folder, monkeypatch, ANSWERING.format(python=sys.executable, dumps=dumps, loaded=LOADED))


def count(folder: Path, timeout_s: float = 60.0, calls: int = 200) -> str | None:
    """The reason why nothing was counted of a tiny scenario."""
    path = scenario(folder)
    load = {"target": Target(str(path), path).to_json(), "params": {}, "compile_options": None}
    reason = count_instructions(load, calls, folder, timeout_s).reason
    assert (folder / "callgrind.out.gz").exists() == (reason is None)
    return reason


def test_without_valgrind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert count(tmp_path) == "valgrind is not installed (apt-get install valgrind)"


def test_a_valgrind_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "#!/bin/sh\necho 'valgrind: failed to start tool' >&2\nexit 1\n")
    assert count(tmp_path) == (
        "the worker under valgrind ended with exit code 1 during 'load': valgrind: failed to start tool"
    )


def test_a_valgrind_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "#!/nonexistent/interpreter\n")
    assert count(tmp_path) == "the worker under valgrind could not be started: No such file or directory"


def test_a_valgrind_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, f"#!/bin/sh\nsleep 600 &\necho $$ $! > {tmp_path}/pids\nwait\n")
    assert count(tmp_path, timeout_s=2.0) == (
        "the worker under valgrind did not finish 'load' within 2 s and was ended (raise --timeout)"
    )
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for _ in range(1_200):
        if not any(_alive(pid) for pid in pids):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pids} live on")


@pytest.mark.measures
def test_a_valgrind_that_only_runs_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    reason = count(tmp_path)
    assert reason is not None
    assert reason.startswith(
        ("this process does not run under valgrind", "instructions are counted on Linux on x86-64 only")
    )


def test_a_valgrind_that_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(tmp_path, monkeypatch)
    assert count(tmp_path) == "callgrind wrote no counts"


def test_the_round_with_the_fewest_instructions_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = [f"events: Ir\nfn=f\n1 {count}\ntotals: {count}\n" for count in (70, 50, 60)]
    answering(tmp_path, monkeypatch, *dumps, "events: Ir\nfn=f\n1 4\n")
    assert count(tmp_path) is None
    assert gzip.decompress((tmp_path / "callgrind.out.gz").read_bytes()).decode() == dumps[1]


def test_output_that_was_cut_off_is_stored_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(tmp_path, monkeypatch, "events: Ir\nfn=f\n1 4\n")
    assert count(tmp_path) is None
    graph = read_callgrind(tmp_path / "callgrind.out.gz")
    assert graph.issues == {TRUNCATED: 1}
    with pytest.raises(MeasurementError, match="cut off"):
        instruction_budget(graph, 1, default_classifier())


def test_nobody_elses_directory_is_counted_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(tmp_path, monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for number in range(100):
        (tmp_path / f"overhead_lens_counting_{number:02}").symlink_to(tmp_path / "mine")
    assert count(tmp_path) == f"no directory for counting is free in {tmp_path}"
    assert (tmp_path / "mine" / "file").exists()


def test_long_calls_are_counted_less_often() -> None:
    assert [calls_of(call_ns) for call_ns in (1e3, 1e6, 1e7, 1e9)] == [200, 20, 2, 1]


def test_outside_of_valgrind_there_is_nothing_to_switch() -> None:
    with pytest.raises(MeasurementError, match="valgrind|x86-64"):
        Switch()


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="it is refused before")
def test_a_system_that_allows_no_memory_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(MeasurementError, match="^this system allows no memory for a client request: Operation not per"):
        Switch()


@pytest.mark.parametrize(("compiles", "refused"), [([3, 3], False), ([3, 4], True)])
def test_a_call_that_compiles_while_it_is_counted(
    monkeypatch: pytest.MonkeyPatch, compiles: list[int], refused: bool
) -> None:
    monkeypatch.setattr(worker, "Switch", lambda: SimpleNamespace(start=lambda: None, stop=lambda: None))
    workload: Any = SimpleNamespace(
        run=lambda _: None, loop=lambda *_: None, call=None, args=(), compile_count=iter(compiles).__next__
    )
    message = "^the call was compiled while its instructions were counted$"
    with pytest.raises(MeasurementError, match=message) if refused else contextlib.nullcontext():
        worker.count(session_of(workload), 10, 2)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
