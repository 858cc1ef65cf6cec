"""Run the tutorial and keep what it shows: ``python -m scripts.documentation.tutorial``, on a quiet machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


def main() -> None:
    """Execute every cell in a kernel of its own; write the notebook with its outputs."""
    notebook = nbformat.read(TUTORIAL, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, folder)
    for cell in notebook.cells:
        # When a cell ran, and what was said on the way, says nothing to a reader.
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    nbformat.write(notebook, TUTORIAL)


def execute(notebook: nbformat.NotebookNode, folder: str) -> None:
    """Run the cells in that folder.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed.
    """
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()


if __name__ == "__main__":
    main()
