from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from overhead_lens.errors import MeasurementError, OverheadLensError, UsageError
from overhead_lens.machine import other_process
from overhead_lens.machine.other_process import OtherProcess, cpu_ns, examine, looks_like_python, permission_remedy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="proc(5) is Linux's")

MAPS = """\
55d0-55d1 r-xp 00000000 08:01 1 /usr/bin/python3.12
7f00-7f01 r-xp 00000000 08:01 2 /srv/my venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so
7f02-7f03 rw-p 00000000 00:00 0
7f03-7f04 rw-p 00000000 00:00 0 [heap]
"""


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A drawn /proc, in which this program may trace nothing."""
    monkeypatch.setattr(other_process, "PROC", tmp_path)
    draw(tmp_path, os.getpid(), Uid=f"{os.geteuid()} 0", CapEff="0")
    return tmp_path


def draw(proc: Path, pid: int, maps: str = "", words: tuple[str, ...] = ("python", "train.py"), **fields: str) -> Path:
    folder = proc / str(pid)
    folder.mkdir()
    known = {"Name": "python", "State": "S (sleeping)", "Tgid": str(pid), "PPid": "1", "TracerPid": "0", **fields}
    (folder / "status").write_text("".join(f"{name}:\t{value}\n" for name, value in known.items()))
    (folder / "cmdline").write_bytes("\0".join((*words, "")).encode())
    (folder / "maps").write_text(maps)
    return folder


def complaint(pid: int) -> tuple[str, int]:
    with pytest.raises(OverheadLensError) as caught:
        examine(pid)
    return str(caught.value), caught.value.exit_code


def test_versions_are_read_from_the_process_s_own_files(proc: Path) -> None:
    root = draw(proc, 4711, MAPS, ("python", "train.py", "a b")) / "root"
    torch = root / "srv/my venv/lib/python3.12/site-packages/torch"
    torch.mkdir(parents=True)
    (torch / "version.py").write_text("from typing import Optional\n__version__ = '2.13.0+cu130'\ndebug = False\n")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/python3.12").write_bytes(b"\x7fELF\x003.12\x00libpython3.12.0\x00/Python-3.12.7rc1\x00x")
    assert examine(4711) == OtherProcess(4711, "python train.py 'a b'", "3.12.7rc1", "2.13.0+cu130")
    assert looks_like_python(4711)


def test_without_the_files_only_the_minor_version_is_known(proc: Path) -> None:
    draw(proc, 4711, MAPS)
    assert examine(4711) == OtherProcess(4711, "python train.py", "3.12", None)


def test_no_python_and_no_torch(proc: Path) -> None:
    draw(proc, 4711, "55d0-55d1 r-xp 00000000 08:01 1 /usr/bin/sleep\n", ("sleep", "9"))
    assert examine(4711) == OtherProcess(4711, "sleep 9", None, None)
    assert not looks_like_python(4711)


@pytest.mark.parametrize(
    ("fields", "line", "code"),
    [
        ({"State": "T (stopped)"}, "process 5 is stopped: resume it (`kill -CONT 5`), then attach", 3),
        ({"State": "Z (zombie)"}, "process 5 has ended: it is a zombie that its parent, 1, has to collect", 2),
        ({"Tgid": "4"}, "5 is a thread of process 4: attach to 4", 2),
        ({"TracerPid": "77"}, "process 5 is watched already, by process 77 (gdb): wait until that has ended", 3),
        (
            {"TracerPid": "78"},
            "process 5 is watched already, by process 78 (of another container): wait until that has ended",
            3,
        ),
    ],
)
def test_processes_that_cannot_be_watched(proc: Path, fields: dict[str, str], line: str, code: int) -> None:
    draw(proc, 5, **fields)
    (draw(proc, 77, words=("gdb",)) / "comm").write_text("gdb\n")
    assert complaint(5) == (line, code)


def test_a_process_that_is_gone_and_this_very_one(proc: Path) -> None:
    assert complaint(5) == ("no process 5 (has it ended?)", 2)
    assert complaint(os.getpid()) == (f"process {os.getpid()} is this very program: it cannot watch itself", 2)


@pytest.mark.parametrize(
    "words", [("/venv/bin/py-spy", "top", "--pid", "5"), ("sudo", "py-spy", "record", "-p", "5", "-o", "x")]
)
def test_a_py_spy_lets_go_between_stacks_and_is_found_all_the_same(proc: Path, words: tuple[str, ...]) -> None:
    draw(proc, 5)
    draw(proc, 6, words=("py-spy", "top", "--pid", "55"))
    assert examine(5).pid == 5
    draw(proc, 7, words=words)
    assert complaint(5) == ("process 5 is watched already, by process 7 (py-spy): wait until that has ended", 3)


def yama(proc: Path, scope: str) -> None:
    (proc / "sys/kernel/yama").mkdir(parents=True)
    (proc / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")


def test_what_to_do_for_another_users_process(proc: Path) -> None:
    draw(proc, 5, Uid="1234 1234 1234 1234")
    assert permission_remedy(5) == "it belongs to user 1234: run this as that user, or as root (sudo)"


@pytest.mark.parametrize(
    ("scope", "euid", "remedy"),
    [
        ("3", 0, "Yama forbids tracing until the machine is restarted (kernel.yama.ptrace_scope is 3)"),
        ("1", 0, "this container may not trace: start it with `docker run --cap-add SYS_PTRACE`"),
        (
            "1",
            1000,
            "Yama forbids it (kernel.yama.ptrace_scope is 1): use sudo, or `sudo sysctl kernel.yama.ptrace_scope=0`",
        ),
        ("0", 1000, "run this as root (sudo); in a container, start that with `docker run --cap-add SYS_PTRACE`"),
    ],
)
def test_what_to_do_for_a_process_of_ones_own(
    proc: Path, monkeypatch: pytest.MonkeyPatch, scope: str, euid: int, remedy: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    draw(proc, 5, Uid=f"{euid} {euid}")
    yama(proc, scope)
    assert permission_remedy(5) == remedy


def test_what_to_do_for_another_container(proc: Path) -> None:
    for pid, number in ((5, 1), (os.getpid(), 2)):
        folder = proc / str(pid)
        if pid == 5:
            folder = draw(proc, 5, Uid=f"{os.geteuid()} 0")
        (folder / "ns").mkdir()
        (folder / "ns" / "mnt").symlink_to(f"mnt:[{number}]")
    assert (
        permission_remedy(5) == "it runs in another container: run this inside that container, or as root on the host"
    )


@pytest.fixture
def spinning() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process.pid
        process.kill()


def test_its_cpu_clock_and_its_versions_are_those_of_a_real_process(spinning: int) -> None:
    first = cpu_ns(spinning)
    while (now := cpu_ns(spinning)) == first:
        time.sleep(0.01)
    assert first is not None
    assert now is not None
    assert now > first
    while examine(spinning).python is None:  # Its libraries are not mapped yet.
        time.sleep(0.01)
    assert examine(spinning).python == ".".join(map(str, sys.version_info[:3]))
    assert examine(spinning).torch is None


def test_a_cpu_clock_of_nobody() -> None:
    assert cpu_ns(2**22 + 1) is None


def test_kinds_of_errors(proc: Path) -> None:
    draw(proc, 5, State="T (stopped)")
    with pytest.raises(MeasurementError):
        examine(5)
    with pytest.raises(UsageError):
        examine(6)
