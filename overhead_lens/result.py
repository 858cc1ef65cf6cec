"""What every result of the public API can do: be printed, written as JSON, tabulated, shown in a notebook."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """Base of results.

    What a result looks like stands in ``report/forms.py`` by its type, which is found by name: results know nothing of reports.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        # IPython asks a class before its bases, and would find a dataclass's own __repr__ there.
        cls._repr_pretty_ = Result._repr_pretty_  # type: ignore[method-assign]

    def to_json(self) -> str:
        """The JSON document that the command prints with ``--json``; `overhead-lens schema` describes it."""
        return str(_forms().to_json(self))

    def to_pandas(self) -> pd.DataFrame:
        """The result's main table; its columns carry their units."""
        table: pd.DataFrame = _forms().to_pandas(self)
        return table

    def print(self) -> None:
        """Print the report that the command prints."""
        importlib.import_module("overhead_lens.terminal.output").print_result(self)

    def to_html(self) -> str:
        """The report as one HTML file that holds everything and asks nothing of any network."""
        return str(_forms().to_html(self))

    def _repr_html_(self) -> str:
        return str(_forms().to_notebook(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows on a terminal: the report, where a dataclass would print every field."""
        printer.text("..." if cycle else str(_forms().to_text(self)).rstrip())


def _forms() -> Any:
    return importlib.import_module("overhead_lens.report.forms")
