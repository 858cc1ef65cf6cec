"""What was measured, gathered from the tests' reports: lines on the terminal and a table in Markdown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import pytest

PROPERTY = "overhead"
"""Name of a test's property that holds a row: properties cross from the workers of xdist."""

_COLUMNS = ("test", "base", "new", "difference", "95 % interval", "limits", "state")


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One measured call, in words.

    Attributes:
        test: The test's id, and the number of the call from the second on.
        state: ``recorded``, ``updated``, what became of the limits, or the verdict where there are none.
        base, new: ns or instructions per call; empty if they were not measured.
        difference, interval: Of the call; the interval is empty for instructions.
    """

    test: str
    state: str
    new: str
    base: str = ""
    difference: str = ""
    interval: str = ""
    limits: str = ""
    place: str = ""

    @property
    def line(self) -> str:
        """The call on the terminal."""
        if not self.base:
            return f"{self.test}: {self.new}, {self.state} as the baseline in {self.place}"
        between = f" [{self.interval}]" if self.interval else ""
        return f"{self.test}: {self.base} → {self.new}, {self.difference}{between}: {self.state}"

    @property
    def cells(self) -> str:
        """The call as a row of the table."""
        # Not before there is a row: it imports the rules.
        from overhead_lens.report.printers.markdown import escaped

        cells = (self.test, self.base, self.new, self.difference, self.interval, self.limits, self.state)
        return f"| {' | '.join(map(escaped, cells))} |"


def report(node: pytest.Item, row: SummaryRow) -> None:
    """Give a test's report a row."""
    node.user_properties.append((PROPERTY, asdict(row)))


class Summary:
    """Listens to the reports of a session.

    Args:
        markdown: File that the table is appended to; None for none.
    """

    def __init__(self, markdown: Path | None) -> None:
        self._markdown = markdown
        self._rows: list[SummaryRow] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the rows of a test that is over."""
        if report.when == "teardown":
            rows = [cast("dict[str, str]", value) for name, value in report.user_properties if name == PROPERTY]
            self._rows += [SummaryRow(**row) for row in rows]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each call."""
        if self._rows:
            terminalreporter.section("overhead")
            for row in self._rows:
                terminalreporter.write_line(row.line)

    def pytest_sessionfinish(self) -> None:
        """Append the table."""
        if self._markdown is not None and self._rows:
            head = ["### Overhead", "", f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
            with self._markdown.open("a", encoding="utf-8") as file:
                file.write("\n".join([*head, *(row.cells for row in self._rows), "", ""]))
