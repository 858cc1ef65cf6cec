"""``compare`` as a user runs it, on a tiny scenario, and everything it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.machine import cores
from overhead_lens.terminal.call import by_side, parse_side
from tests.cli.run import TINY, error_line, lens, scenario
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.recorder.effort import little_effort
from tests.shared import made_once

SLOW = "for _ in range(200): pass"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose last commit made the scenario in ``bench/`` slower, and whose file on disk is broken."""
    folder = tmp_path / "repository"
    (folder / "bench").mkdir(parents=True)
    git(tmp_path, "init", "-q", str(folder))
    for body in ("pass", SLOW):
        scenario(folder / "bench", body)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", body)
    (folder / "bench" / "tiny.py").write_text("not python")
    return folder


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """One live comparison, the new side under an interpreter that is named."""
    return made_once("compared", compared_in, tmp_path_factory)


def compared_in(folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    path = scenario(folder)
    command = [path, f"{path} -p size=200", "--rounds", "3", "--json", "-o", "out", "--python", f"new={sys.executable}"]
    with little_effort(processes=3):
        return folder / "out", lens("compare", *command, cwd=folder)


@pytest.mark.measures
def test_json_is_the_contract_and_closes(compared: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = compared
    assert done.returncode == 1, done.stderr
    delta = validated(done.stdout)
    assert (delta["verdict"], delta["margin_share"]) == ("slower", 0.01)
    wall = delta["wall"]
    assert sum(change["delta_ns"] for change in delta["host"]) == wall["delta_ns"] == wall["new_ns"] - wall["base_ns"]
    assert validated((folder / "delta.json").read_text()) == delta
    assert sorted(path.name for path in folder.iterdir()) == ["base", "delta.json", "new"]


@pytest.mark.measures
def test_both_sides_are_ordinary_captures(compared: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, live = compared
    for side, size in (("base", 50), ("new", 200)):
        report = validated(lens("report", folder / side, "--json", cwd=folder).stdout)
        assert report["subject"]["params"] == {"size": size}
        assert report["wall"]["processes"] == 3
        assert (folder / side / "trace.pftrace").exists()
    refused = lens("diff", folder / "base", folder / "new", cwd=folder)
    assert error_line(refused).startswith("the captures differ in params: {'size': 50} against {'size': 200}")
    again = lens("diff", folder / "base", folder / "new", "--allow-mismatch", "--json", cwd=folder)
    documents = [validated(text) for text in (again.stdout, live.stdout)]
    for document in documents:
        # As the command line named them.
        del document["base"]["capture"], document["new"]["capture"]
    assert documents[0] == documents[1]


@pytest.mark.measures
def test_two_revisions_of_a_file(repository: Path) -> None:
    revisions = ["--rev", "base=HEAD~1", "--rev", "new=HEAD"]
    with little_effort(processes=3, sampled=False):
        done = lens("compare", "tiny.py", "tiny.py", *revisions, "-o", "out", cwd=repository / "bench")
    assert done.returncode == 1, done.stderr
    assert " slower: python +" in done.stdout
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    commits = [
        json.loads((repository / "bench" / "out" / side / "meta.json").read_text())["environment"]["git_commit"]
        for side in ("base", "new")
    ]
    assert commits == git(repository, "rev-list", "--reverse", "HEAD").split()


@pytest.mark.measures
def test_an_interrupted_comparison_removes_its_checkouts(repository: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "overhead_lens",
        "compare",
        "bench/tiny.py",
        "bench/tiny.py",
        "--rev",
        "base=HEAD",
        "-q",
    ]
    environment = {**os.environ, "TMPDIR": str(repository.parent)}
    process = subprocess.Popen(command, cwd=repository, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 180
    while not list(repository.glob("traces/*/base/clock-0.log")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(git(repository, "worktree", "list").splitlines()) == 2
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=180)
    assert (process.returncode, error) == (130, "overhead-lens: interrupted\n")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not list(repository.parent.glob("overhead-lens-*"))


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope", "add1"], "no scenario 'nope'"),
        (["add1", "add1:nope"], "scenario add1 has no variant 'nope'"),
        (["add1", "add1 -p size=0"], "scenario add1: bad parameters: size must be at least 1, not 0"),
        (["add1", "add1 -p"], "in 'add1 -p': Option '-p' requires an argument."),
        (["add1", "add1 --frob"], "in 'add1 --frob': No such option: --frob"),
        (["add1", "add1 'x"], 'in "add1 \'x": No closing quotation'),
        (["add1", "add1 --mode default"], "--mode needs --compile"),
        (["add1", "add1", "--python", "python3"], "--python takes base=... or new=..., not 'python3'"),
        (["add1", "add1", "--python", "base=a", "--python", "base=b"], "--python base=... is given twice"),
        (["add1", "add1", "--python", "base=/nonexistent/python"], "no interpreter /nonexistent/python"),
        (["add1", "add1", "--python", "base=/bin/true"], "/bin/true is not a Python interpreter that works"),
        (["add1", "add1", "--python", "new=bare"], "has no torch; install it there or name another interpreter"),
        (["add1", "add1", "--rev", "new=HEAD"], "--rev is for a .py file of your own, not for add1"),
        (["tiny.py", "tiny.py", "--rev", "new=HEAD"], "tiny.py is not in a git repository"),
        (["add1", "add1", "--rounds", "2"], "Invalid value for '--rounds': "),
        (["add1", "add1", "-o", "tiny.py"], "tiny.py is taken; nothing is overwritten, name another --output"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    scenario(tmp_path)
    before = sorted(tmp_path.iterdir())
    texts = [text.replace("new=bare", f"new={bare}") for text in arguments]
    done = lens("compare", *texts, cwd=tmp_path, env={"GIT_CEILING_DIRECTORIES": "/"})
    assert message in error_line(done)
    assert done.returncode == 2
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rev", "new=nope"], "no revision 'nope' in "),
        (["--rev", "new=--all"], "no revision '--all' in "),
        (["--rev", "base=HEAD", "--rev", "new=first"], "bench/other.py does not exist in revision first"),
    ],
)
def test_a_revision_that_is_not_there(repository: Path, arguments: list[str], message: str) -> None:
    git(repository, "tag", "first", "HEAD~1")
    (repository / "bench" / "other.py").write_text(TINY.replace("BODY", "pass"))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "another")
    done = lens("compare", "bench/other.py", "bench/other.py", *arguments, cwd=repository)
    assert error_line(done).startswith(message)
    assert done.returncode == 2
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not (repository / "traces").exists()


def test_diff_refuses_captures_of_different_machines(tmp_path: Path) -> None:
    base = draw_capture(tmp_path / "a", environment={"host": "a", "torch": "2.0"})
    new = draw_capture(tmp_path / "b", environment={"host": "b", "torch": "2.1"})
    done = lens("diff", base, new, cwd=tmp_path)
    assert error_line(done) == (
        "the captures differ in host: 'a' against 'b'; torch: '2.0' against '2.1': use --allow-mismatch to compare them anyway"
    )
    assert done.returncode == 2


def test_options_of_a_side_come_before_those_of_both() -> None:
    _, both = parse_side("- -p size=1 -p dtype=float64 --compile --inputs make")
    target, own = parse_side("add1 --mode reduce-overhead --device cuda -p size=3")
    call = own.over(both)
    assert (target, call.inputs) == ("add1", "make")
    assert call.params == {"size": "3", "dtype": "float64", "device": "cuda"}
    assert call.compile_options == {"mode": "reduce-overhead"}
    _, nothing = parse_side("add1")
    assert (nothing.params, nothing.compile_options, nothing.over(both)) == ({}, None, both)
    with pytest.raises(UsageError, match="parameter size is given twice"):
        parse_side("add1 -p size=1 -p size=2")
    assert by_side("--rev", ["new=a=b", "base=c"]) == {"new": "a=b", "base": "c"}


def test_the_quietest_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_WATCH_S", 0.0)
    ticks = iter([{0: 10, 1: 10, 2: 10}, {0: 12, 1: 20, 2: 19}] * 2 + [{}, {}])
    monkeypatch.setattr(cores, "_idle_ticks", lambda: next(ticks))
    assert [cores.quietest_core(allowed) for allowed in ([0, 1, 2], [0, 2], [0, 1])] == [1, 2, 1]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are chosen on Linux only")
def test_cores_that_nothing_else_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    per_second = os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 3, 5})
    monkeypatch.setattr(cores, "time", SimpleNamespace(monotonic=iter([10.0, 11.0]).__next__, sleep=lambda _: None))
    shares = {0: 1.0, 1: 0.69, 2: 0.71, 3: 1.0, 4: 1.0}
    ticks = iter([dict.fromkeys(shares, 5), {core: 5 + round(share * per_second) for core, share in shares.items()}])
    monkeypatch.setattr(cores, "_idle_ticks", lambda: next(ticks))
    monkeypatch.setattr(cores, "_CORES", tmp_path)
    assert cores.idle_cores() == [2, 3]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are chosen on Linux only")
def test_threads_of_one_core_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for core, threads in enumerate(["0-1\n", "0-1\n", "2,4\n", "3\n", "2,4\n"]):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(threads, encoding="ascii")
    monkeypatch.setattr(cores, "_CORES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4, 5})
    monkeypatch.setattr(cores, "_idle_shares", lambda: dict.fromkeys(range(6), 1.0))
    # Core 5 says nothing of its threads.
    assert cores.idle_cores() == [0, 2, 3, 5, 1, 4]
