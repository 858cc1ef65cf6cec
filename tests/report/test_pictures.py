"""The figures of the pictures: what matplotlib is given to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from overhead_lens.cli.history import read as read_history
from overhead_lens.report.pictures import history, ladder, sweep
from overhead_lens.studies.ladder.analysis import make_ladder
from overhead_lens.terminal.progress import SILENT
from tests.drawn.captures import draw_capture
from tests.drawn.ladders import META, frame, typed
from tests.studies.test_ladder import CALL
from tests.studies.test_sweep import draw as drawn_sweep


@contextmanager
def figure_of(module: Any) -> Iterator[list[Any]]:
    """The axes that a picture draws instead of writing it."""
    axes: list[Any] = []
    with mock.patch.object(module, "save", lambda figure, _target: axes.extend(figure.axes)):
        yield axes


def bars(axes: Any) -> list[tuple[float, float]]:
    """Where each bar begins and how long it is, µs."""
    return [(round(bar.get_x(), 6), round(bar.get_width(), 6)) for bar in axes.patches]


def marks(axes: Any) -> list[list[float]]:
    """Heights of the lines with a mark for each point, in their order."""
    return [list(np.round(line.get_ydata(), 6)) for line in axes.lines if line.get_marker() in ("o", ".")]


def texts(axes: Any) -> list[str]:
    return [text.get_text().strip() for text in axes.texts]


def test_the_waterfall_of_a_compiled_call_above_the_times_of_its_rungs(tmp_path: Path) -> None:
    made = make_ladder(typed({**META, "names": list(CALL)}), frame(CALL), "")
    with figure_of(ladder) as axes:
        ladder.draw_ladder(made, tmp_path / "p.svg")
    falls, times = axes
    layers = [layer.ns / 1e3 for layer in made.layers]
    assert layers == [1.0, 3.0, 4.5, 0.6, 0.8, 0.1]
    assert bars(falls) == [(0, 10), (9, 1), (6, 3), (1.5, 4.5), (0.9, 0.6), (0.1, 0.8), (0, 0.1)]
    assert texts(falls) == ["1.00", "3.00", "4.50", "0.60", "0.80", "0.10", "10.00"]
    assert [label.get_text() for label in falls.get_yticklabels()] == [
        "torch.compile",
        *(layer.name for layer in made.layers),
    ]
    assert bars(times) == [(0, ns / 1e3) for (ns,) in CALL.values()]
    assert texts(times)[: len(CALL)] == ["2", "10", "9", "6", "1.5", "0.9", "0.1"]


def test_a_ladder_without_layers_has_no_waterfall(tmp_path: Path) -> None:
    made = make_ladder(typed({**META, "names": ["eager"]}), frame({"eager": [10.0]}), "")
    with figure_of(ladder) as axes:
        ladder.draw_ladder(made, tmp_path / "p.svg")
    (times,) = axes
    assert (bars(times), texts(times)) == ([(0, 0.01)], ["0.01"])


def test_times_lines_and_crossings_of_a_sweep(tmp_path: Path) -> None:
    made = drawn_sweep({"slow_start": lambda n: 2_000 + n * 0.1, "slow_rate": lambda n: 200 + n})
    with figure_of(sweep) as found:
        sweep.draw_sweep(made, tmp_path / "p.svg")
    (axes,) = found
    assert marks(axes) == [[2.01, 2.1, 3.0, 12.0], [0.3, 1.2, 10.2, 100.2]]
    first, second = (line for line in axes.lines if len(line.get_xdata()) == 200)
    assert (first.get_xdata()[0], first.get_xdata()[-1]) == (pytest.approx(100), pytest.approx(100_000))
    assert (first.get_ydata()[0], second.get_ydata()[-1]) == (pytest.approx(2.01), pytest.approx(100.2))
    (crossing,) = (line for line in axes.lines if line.get_linestyle() == ":")
    assert crossing.get_xdata()[0] == pytest.approx(2_000)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["slow_start", "slow_rate"]
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "log", "n")


def test_a_history_with_the_change_between_its_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    walls = [1_000 + number % 3 + (310 if number >= 6 else 0) for number in range(14)]
    for number, call_ns in enumerate(walls):
        started = (datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(hours=number)).isoformat()
        environment = {"host": "h", "torch": "2.13.0", "git_commit": f"{number:x}" * 40}
        draw_capture(tmp_path / f"c{number:02}", call_ns=call_ns, started=started, environment=environment)
    with figure_of(history) as found:
        history.draw_history(read_history(tmp_path, SILENT), tmp_path / "p.svg")
    (axes,) = found
    assert marks(axes)[0] == [ns / 1e3 for ns in walls]
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"wall", "python"}
    (change,) = (line for line in axes.lines if line.get_linestyle() == "--")
    assert change.get_xdata()[0] == 5.5
    assert texts(axes) == ["python +310 ns (wall +310 ns) between 5555555555 and 6666666666"]
    assert [label.get_text() for label in axes.get_xticklabels()] == [f"{number:x}" * 10 for number in range(14)]
    assert axes.get_title().endswith("(h, torch 2.13.0)")
