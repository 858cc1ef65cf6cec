"""The plugin in sessions of its own. What would measure is a stand-in that draws captures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.pytest_plugin import gate
from overhead_lens.scenario import Arguments
from overhead_lens.studies.check.limits import Limits
from tests.drawn.captures import LOOP, ROW, complete
from tests.drawn.counts import draw_counts
from tests.excerpts import assert_shows, excerpt
from tests.worker.warm import WORKERS, ended

ROOT = Path(__file__).parents[2]
EMPTY = "at::_ops::empty::call (libtorch_cpu.so);at::detail::empty_cpu (libtorch_cpu.so)"
PLAIN = "def test_add(overhead):\n    overhead(len, 'x')\n"
PROCESSES = 3


class Machine:
    """What calls take on a drawn machine: ns by frame, or instructions by function.

    Attributes:
        meta: Fields of ``meta.json``.
        asked: Calls that were measured, with what was limited and as how many calls they were counted.
        disturbed: Numbers, from 0, of measurements that take twice as long.
    """

    def __init__(self) -> None:
        self.ns = {"work (ops.py:1)": 1_000}
        self.spread_ns = 0
        self.instructions = {"at::add(int)": 9_000, "at::detail::empty_cpu(int)": 1_000}
        self.meta: dict[str, Any] = {}
        self.asked: list[tuple[Any, Arguments, bool, int | None]] = []
        self.disturbed: list[int] = []

    def record_call(
        self, function: Any, arguments: Arguments, compile: bool, limits: Limits, calls: int | None, output: Path
    ) -> Path:
        self.asked.append((function, arguments, compile, calls))
        if limits.only_counts:
            return draw_counts(output, self.instructions, calls or 7)
        output.mkdir()
        wall_ns = sum(self.ns.values()) * (2 if len(self.asked) - 1 in self.disturbed else 1)
        rows = [
            {**ROW, "process": process, "block": block, "wall_ns": ROW["calls"] * (wall_ns + process * self.spread_ns)}
            for process in range(PROCESSES)
            for block in range(4)
        ]
        folded = "\n".join(f"main (worker.py:1);{LOOP};{frame} {ns}" for frame, ns in self.ns.items())
        return complete(output, rows, [folded] * PROCESSES, **self.meta)


Run = Callable[..., pytest.RunResult]


@pytest.fixture(scope="module", autouse=True)
def _all_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A session in this process forgets what it imported, and some libraries cannot be loaded twice."""
    folder, drawn = tmp_path_factory.mktemp("loaded"), Machine()
    places = [drawn.record_call(len, Arguments(()), False, Limits(), None, folder / name) for name in ("base", "new")]
    gate.by_time(gate.read_capture(places[0]).meta, *places, Limits(), gate.default_classifier(), force=True)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(gate, "record_call", made.record_call)
    return made


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the tests in this process, with no plugin of the machine but this one."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def runs(text: str = PLAIN, *arguments: object) -> pytest.RunResult:
        pytester.makepyfile(test_ops=text)
        return pytester.runpytest_inprocess("-p", "overhead_lens.pytest_plugin", *arguments)

    return runs


def said(result: pytest.RunResult, title: str) -> list[str]:
    """Lines of a section of the terminal's report that are not empty."""
    lines = result.outlines
    start = next(at for at, line in enumerate(lines) if re.fullmatch(rf"[=_]+ {re.escape(title)} [=_]+", line))
    end = next(at for at in range(start + 1, len(lines)) if re.match(r"={3,}", lines[at]))
    return [line for line in lines[start + 1 : end] if line]


def baselines(folder: Path) -> list[str]:
    return sorted(str(path.parent.parent.relative_to(folder)) for path in folder.glob("__overhead__/**/meta.json"))


# ---------------------------------------------------------------- baselines
def test_the_first_run_records_and_says_so(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    result = run()
    result.assert_outcomes(passed=1)
    (place,) = pytester.path.glob("__overhead__/test_ops/test_add/*")
    line = f"test_ops.py::test_add: 1.00 µs, recorded as the baseline in {place.relative_to(pytester.path)}"
    assert said(result, "overhead") == [line]
    (asked,) = machine.asked
    assert asked == (len, Arguments(("x",), {}), False, None)


def test_the_next_run_compares(machine: Machine, run: Run) -> None:
    run()
    result = run()
    result.assert_outcomes(passed=1)
    assert said(result, "overhead") == ["test_ops.py::test_add: 1.00 µs → 1.00 µs, +0 ns [+0 ns .. +0 ns]: same"]


def test_arguments_are_those_of_the_call(machine: Machine, run: Run) -> None:
    run("def test_add(overhead): overhead(sum, [1], start=2, compile=True)").assert_outcomes(passed=1)
    assert machine.asked == [(sum, Arguments(([1],), {"start": 2}), True, None)]


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_modules_are_searched_where_pytest_does(
    machine: Machine, run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """With --import-mode=importlib, in the root first: packages of others have a `tests` as well."""
    first: list[str] = []

    def record_call(*call: Any) -> Path:
        first.append(sys.path[0])
        return machine.record_call(*call)

    monkeypatch.setattr(gate, "record_call", record_call)
    monkeypatch.syspath_prepend("others")
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "test_root.py").write_text(PLAIN)
    run("", "--import-mode", mode, "tests").assert_outcomes(passed=1)
    assert first == [str(pytester.path / "tests" if mode == "prepend" else pytester.path)]


def test_each_call_of_each_test_has_its_baseline(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        class TestAdd:
            @pytest.mark.parametrize("size", ["a/b", "a b"])
            def test_sizes(self, overhead, size): overhead(len, size)
        def test_two(overhead):
            overhead(len, "x")
            overhead(len, "y")
    """
    result = run(text)
    result.assert_outcomes(passed=3)
    folders = [Path(each).name for each in baselines(pytester.path)]
    assert [re.sub("-[0-9a-f]{8}$", "-HASH", each) for each in folders] == [
        "TestAdd.test_sizes-a-b-HASH",
        "TestAdd.test_sizes-a-b-HASH",
        "test_two",
        "test_two.2",
    ]
    assert len({*folders}) == 4
    assert [line.partition(": ")[0] for line in said(result, "overhead")][2:] == [
        "test_ops.py::test_two",
        "test_ops.py::test_two (2)",
    ]


def test_an_update_records_anew(machine: Machine, run: Run) -> None:
    run()
    machine.ns["work (ops.py:1)"] = 2_000
    result = run(PLAIN, "--overhead-update")
    result.assert_outcomes(passed=1)
    assert ": 2.00 µs, updated as the baseline in __overhead__/test_ops/test_add/" in said(result, "overhead")[0]
    assert said(run(), "overhead") == ["test_ops.py::test_add: 2.00 µs → 2.00 µs, +0 ns [+0 ns .. +0 ns]: same"]


# ---------------------------------------------------------------- limits
def marked(limits: str, call: str = "overhead(len, 'x')") -> str:
    return f"import pytest\n@pytest.mark.overhead({limits})\ndef test_add(overhead):\n    {call}\n"


def regressed(machine: Machine, run: Run, text: str, ns: Mapping[str, int]) -> pytest.RunResult:
    run(text).assert_outcomes(passed=1)
    machine.ns = dict(ns)
    return run(text)


def test_a_regression_names_the_category_and_its_frames(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    text = marked('total="+3%", allocation="+100ns"')
    result = regressed(machine, run, text, {"work (ops.py:1)": 1_000, EMPTY: 500})
    result.assert_outcomes(failed=1)
    lines = said(result, "test_add")
    (place,) = pytester.path.glob("__overhead__/test_ops/test_add/*")
    assert lines[:-2] == [
        "test_ops.py::test_add: 500 ns slower: allocation +500 ns in at::detail::empty_cpu (libtorch_cpu.so)",
        "  total: +500 ns [+500 ns .. +500 ns], at most +30 ns allowed: broken",
        "  allocation: +500 ns [+476 ns .. +524 ns], at most +100 ns allowed: broken",
        "  allocation +500 ns: +500 ns at::detail::empty_cpu (libtorch_cpu.so)",
    ]
    assert lines[-2].startswith(
        f"  the whole difference: overhead-lens diff {place.relative_to(pytester.path)} {os.sep}"
    )
    assert lines[-2].endswith(f"{os.sep}capture.2")
    assert lines[-1] == "  if this is intended: --overhead-update records a new baseline"
    assert_shows("\n".join(lines), excerpt("docs/guide/pytest.md", "regression"))
    assert said(result, "overhead") == [
        "test_ops.py::test_add: 1.00 µs → 1.50 µs, +500 ns [+500 ns .. +500 ns]: broken"
    ]


@pytest.mark.parametrize(("disturbed", "passed"), [([1], 1), ([2], 1), ([1, 2], 0)])
def test_only_two_slow_captures_fail(machine: Machine, run: Run, disturbed: list[int], passed: int) -> None:
    machine.disturbed = disturbed
    run()
    run().assert_outcomes(passed=passed, failed=1 - passed)
    assert len(machine.asked) == (2 if 1 not in disturbed else 3)


@pytest.mark.parametrize(
    ("limits", "state", "passes"),
    [
        ('total="+50%"', "kept", True),
        ('total="+49%"', "broken", False),
        ('allocation="+600ns"', "kept", True),
        ('allocation="+0.4us"', "broken", False),
        ('allocation="+490ns"', "in doubt", True),
        ('python="+0ns", guard="+0%"', "kept", True),
        ("", "slower", False),
    ],
)
def test_a_limit_is_kept_broken_or_in_doubt(machine: Machine, run: Run, limits: str, state: str, passes: bool) -> None:
    result = regressed(machine, run, marked(limits), {"work (ops.py:1)": 1_000, EMPTY: 500})
    result.assert_outcomes(passed=int(passes), failed=int(not passes))
    assert said(result, "overhead")[0].endswith(f": {state}")


def test_a_failure_is_at_most_eight_lines(machine: Machine, run: Run) -> None:
    limits = ", ".join(f'{name}="+0ns"' for name in ("total", "python", "allocation", "dispatcher", "guard"))
    frames = {f"work{number} (ops.py:{number})": 300 for number in range(1, 10)}
    native = {f"at::_ops::op{number}::call (libtorch_cpu.so)": 300 for number in range(1, 10)}
    guard = {"torch::dynamo::run_root_guard_manager (libtorch_python.so)": 300}
    result = regressed(machine, run, marked(limits), {**frames, EMPTY: 300, **native, **guard})
    lines = said(result, "test_add")
    assert len(lines) == 8
    assert [line.split()[0] for line in lines[3:6]] == ["dispatcher", "python", "guard"]
    assert lines[3].count("+300 ns ") == 3
    assert "Traceback" not in result.stdout.str()


# ---------------------------------------------------------------- instructions
COUNTED = marked('instructions="+0.5%"')


def test_instructions_alone_are_counted_in_as_many_calls(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    result = run(COUNTED)
    result.assert_outcomes(passed=1)
    (place,) = pytester.path.glob("__overhead__/test_ops/test_add/instructions-torch-*")
    assert sorted(path.name for path in place.iterdir()) == ["callgrind.out.gz", "meta.json"]
    machine.instructions["at::detail::empty_cpu(int)"] += 50
    result = run(COUNTED)
    result.assert_outcomes(passed=1)
    assert said(result, "overhead") == ["test_ops.py::test_add: 10,000 → 10,050 instructions, +50 (+0.50%): kept"]
    assert [calls for *_, calls in machine.asked] == [None, 7]


def test_more_instructions_name_their_category(machine: Machine, run: Run) -> None:
    run(COUNTED)
    machine.instructions["at::detail::empty_cpu(int)"] += 51
    result = run(COUNTED)
    result.assert_outcomes(failed=1)
    lines = said(result, "test_add")
    assert lines[:3] == [
        "test_ops.py::test_add: +51 instructions per call (+0.51%): allocation +51",
        "  instructions: +51 (+0.51%), at most +50 (+0.50%) allowed: broken",
        "  allocation +51: +51 at::detail::empty_cpu (libtorch_cpu.so)",
    ]
    assert lines[3].startswith("  the baseline: __overhead__")
    assert lines[4:] == ["  if this is intended: --overhead-update records a new baseline"]


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ('guards="+3%"', "@pytest.mark.overhead(guards='+3%') is not a limit; one is "),
        ('total="3"', "@pytest.mark.overhead(total='3') is not a limit; one is "),
        ('total="-3%"', "@pytest.mark.overhead(total='-3%') is not a limit; one is "),
        ("total=3", "@pytest.mark.overhead(total=3) is not a limit; one is "),
        ('"+3%"', "@pytest.mark.overhead takes limits by name, not '+3%'; one is "),
    ],
)
def test_a_wrong_marker_is_a_line(machine: Machine, run: Run, limits: str, message: str) -> None:
    result = run(marked(limits))
    result.assert_outcomes(errors=1)
    (line,) = said(result, "ERROR at setup of test_add")
    assert line.startswith(message)
    assert line.endswith(
        "names: total, python, guard, dispatcher, allocation, kernel, launch, wait, compile, unattributed, instructions"
    )
    assert machine.asked == []


def meta_of(folder: Path) -> Path:
    (found,) = folder.glob("__overhead__/**/meta.json")
    return found


def test_a_baseline_that_cannot_be_read_is_a_line(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    run()
    meta = meta_of(pytester.path)
    sound = json.loads(meta.read_text())
    for text, fault in (
        ("{", "is damaged: meta.json: "),
        (
            json.dumps({**sound, "schema": "overhead-lens/capture/9"}),
            "has schema 'overhead-lens/capture/9'; this version reads ",
        ),
        (json.dumps({**sound, "units": "x"}), "is damaged: meta.json: Expected `int`, got `str` - at `$.units`"),
    ):
        meta.write_text(text)
        result = run()
        result.assert_outcomes(failed=1)
        (line,) = said(result, "test_add")
        assert line.startswith(f"the capture {meta.parent} {fault}")
        assert line.endswith(": --overhead-update records a new baseline")
    meta.unlink()
    (line,) = said(run(), "test_add")
    assert line.endswith("it has no meta.json (was it interrupted?): --overhead-update records a new baseline")
    assert len(machine.asked) == 1
    run(PLAIN, "--overhead-update").assert_outcomes(passed=1)
    run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("meta", "difference"),
    [
        ({"environment": {"torch": "2.0", "threads": 4, "host": "another"}}, "threads: None against 4"),
        ({"compile": True}, "compile_options: None against {}"),
    ],
)
def test_a_baseline_of_another_call_is_a_line(
    machine: Machine, run: Run, meta: dict[str, Any], difference: str
) -> None:
    run()
    machine.meta = meta
    (line,) = said(run(), "test_add")
    assert re.fullmatch(
        rf"the baseline __overhead__\S+ differs in {re.escape(difference)}: --overhead-update records a new baseline",
        line,
    )


@pytest.mark.parametrize(("kind", "names"), [("callable", ("name", "variant")), ("function", ("variant",))])
def test_a_baseline_of_another_function_is_refused(
    machine: Machine, tmp_path: Path, kind: str, names: tuple[str, ...]
) -> None:
    def record(name: str) -> Path:
        capture = machine.record_call(len, Arguments(()), False, Limits(), None, tmp_path / name)
        meta = json.loads((capture / "meta.json").read_text())
        meta["subject"] |= {"kind": kind, **dict.fromkeys(names, name)}
        (capture / "meta.json").write_text(json.dumps(meta))
        return capture

    with pytest.raises(UsageError, match=f"differs in {kind}: 'Small' against 'Large': --overhead-update"):
        gate._timed_against(record("Small"), record("Large"), Limits())


def test_a_baseline_without_instructions_is_a_line(machine: Machine, run: Run) -> None:
    run(marked('total="+3%"'))
    (line,) = said(run(marked('total="+3%", instructions="+1%"')), "test_add")
    assert line.startswith("the baseline has no instruction counts; ")
    assert line.endswith(": --overhead-update records a new baseline")


def test_a_folder_that_cannot_be_written_is_a_line(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "__overhead__").write_text("mine")
    result = run()
    result.assert_outcomes(failed=1)
    (line,) = said(result, "test_add")
    assert re.fullmatch(r"cannot write the baseline \S+/__overhead__/\S+: Not a directory", line)


def test_what_cannot_be_measured_is_a_line(run: Run) -> None:
    result = run(marked('instructions="+1%"', "overhead(lambda: 1)"))
    result.assert_outcomes(failed=1)
    assert said(result, "test_add") == [
        "instructions are counted in a fresh process: a lambda has no name that can be imported"
    ]


# ---------------------------------------------------------------- options
def test_a_table_in_markdown(machine: Machine, run: Run, pytester: pytest.Pytester) -> None:
    ids = "@pytest.mark.parametrize('f', [None], ids=['<a>*|*'])\n"
    text = marked('total="+50%"', "overhead(len, 'x')\n    overhead(len, 'y')")
    text = text.replace("@pytest.mark.overhead", f"{ids}@pytest.mark.overhead").replace("(overhead)", "(f, overhead)")
    run(text)
    machine.ns[EMPTY] = 500
    (pytester.path / "summary.md").write_text("# Mine\n")
    run(text, "--overhead-markdown", "summary.md").assert_outcomes(passed=1)
    row = "1.00 µs | 1.50 µs | +500 ns | +500 ns .. +500 ns | total +500 ns | kept |"
    assert (pytester.path / "summary.md").read_text().splitlines() == [
        "# Mine",
        "### Overhead",
        "",
        "| test | base | new | difference | 95 % interval | limits | state |",
        "|---|---|---|---|---|---|---|",
        rf"| test\_ops.py::test\_add\[&lt;a>\*\|\*] | {row}",
        rf"| test\_ops.py::test\_add\[&lt;a>\*\|\*] (2) | {row}",
        "",
    ]


def test_a_table_that_cannot_be_written_ends_the_session_before_it_measures(machine: Machine, run: Run) -> None:
    result = run(PLAIN, "--overhead-markdown", "gone/summary.md")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines == [
        "ERROR: --overhead-markdown: cannot write to gone/summary.md: No such file or directory",
        "",
    ]


def test_the_marker_and_the_options_are_listed(run: Run) -> None:
    result = run(PLAIN, "--markers", "--strict-markers")
    assert any(line.startswith('@pytest.mark.overhead(total="+3%", guard="+100ns", ') for line in result.outlines)
    result = run(PLAIN, "--help")
    assert {"--overhead-update", "--overhead-markdown=FILE"} <= {
        line.split()[0] for line in result.outlines if line.split()
    }


# ---------------------------------------------------------------- sessions of their own
DRAWN = """
    import pytest
    @pytest.fixture
    def overhead(overhead, monkeypatch):
        from overhead_lens.pytest_plugin import gate
        from tests.pytest_plugin.test_plugin import Machine
        monkeypatch.setattr(gate, "record_call", Machine().record_call)
        return overhead
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the tests in a process of their own; captures are drawn there, too, unless ``drawn=False``."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))

    def runs(text: str, *arguments: object, drawn: bool = True) -> pytest.RunResult:
        pytester.makepyfile(test_ops=text)
        plugin = ("-p", "overhead_lens.pytest_plugin")
        if drawn:
            pytester.makeconftest(DRAWN)
            return pytester.runpytest_subprocess(*plugin, *arguments)
        words = ("-m", "pytest", *plugin, "-p", "tests.recorder.effort", *arguments)
        done = ended(*words, cwd=pytester.path, modules=WORKERS)
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0.0)

    return runs


def test_a_session_that_measures_nothing_loads_nothing(session: Run) -> None:
    text = """
        import sys
        def test_light():
            heavy = ("torch", "numpy", "pandas", "msgspec", "rich", "typer", "scipy", "overhead_lens.api")
            assert [name for name in heavy if name in sys.modules] == []
    """
    result = session(text)
    result.assert_outcomes(passed=1)
    assert "overhead" not in result.stdout.str().replace("overhead_lens", "")


def test_nothing_is_timed_in_parallel(session: Run) -> None:
    result = session(PLAIN, "-p", "xdist", "-n", "2")
    result.assert_outcomes(errors=1)
    (line,) = [line for line in result.outlines if line.startswith("calls are timed")]
    assert line == (
        "calls are timed one at a time: run with `-n 0` or `-p no:xdist`, "
        'or count instead with @pytest.mark.overhead(instructions="+0.5%")'
    )


def test_instructions_are_counted_in_parallel(session: Run, pytester: pytest.Pytester) -> None:
    session(COUNTED, "-p", "xdist", "-n", "2", "--overhead-markdown", "o.md").assert_outcomes(passed=1)
    assert len(baselines(pytester.path)) == 1
    assert (
        r"| test\_ops.py::test\_add |  | 10,000 instructions |  |  |  | recorded |"
        in (pytester.path / "o.md").read_text()
    )


def test_one_worker_times(session: Run) -> None:
    result = session(PLAIN, "-p", "xdist", "-n", "1")
    result.assert_outcomes(passed=1)
    assert ": 1.00 µs, recorded as the baseline in " in said(result, "overhead")[0]


def test_it_works_beside_pytest_benchmark(session: Run) -> None:
    text = PLAIN + "def test_other(benchmark, overhead):\n    benchmark(len, 'x')\n    overhead(len, 'x')\n"
    session(text, "-p", "pytest_benchmark.plugin").assert_outcomes(passed=2)


def test_installing_it_gives_pytest_the_plugin(tmp_path: Path) -> None:
    info = tmp_path / "overhead_lens-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: overhead-lens\nVersion: 9.9\n")
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.entry-points.pytest11]\n")[2]
    (info / "entry_points.txt").write_text(f"[pytest11]\n{declared.splitlines()[0].replace(chr(34), '')}\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    env.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--markers", "-c", os.devnull],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "@pytest.mark.overhead(" in done.stdout


# ---------------------------------------------------------------- measured
@pytest.mark.measures
def test_a_call_is_measured_and_compared(session: Run, pytester: pytest.Pytester) -> None:
    text = """
        import pytest
        def work(n): return sum(range(n))
        @pytest.mark.overhead(total="+1000%")
        def test_fresh(overhead): overhead(work, 1000)
        def test_fails(overhead): overhead(lambda: 1 / 0)
    """
    session(text, drawn=False).assert_outcomes(passed=1, failed=1)
    result = session(text, drawn=False)
    result.assert_outcomes(passed=1, failed=1)
    assert re.fullmatch(r"test_ops.py::test_fresh: .* → .*, .* \[.*\]: kept", said(result, "overhead")[0])
    assert said(result, "test_fails") == ["test_fails.<locals>.<lambda> failed: ZeroDivisionError: division by zero"]
    meta = json.loads(meta_of(pytester.path).read_text())
    assert (meta["subject"]["kind"], meta["target"]) == ("function", "test_ops:work")
