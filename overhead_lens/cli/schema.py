"""``overhead-lens schema``: the JSON schemas of the documents that commands print."""

from __future__ import annotations

import difflib
import json
from typing import Annotated

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal.command import argument


def schema(
    name: Annotated[str | None, argument("NAME", "Document to print; without a name, all are listed.")] = None,
) -> None:
    """Print the JSON schema of a document, or list the documents."""
    from overhead_lens.documents.registry import SUMMARIES, json_schema

    if name is None:
        width = max(map(len, SUMMARIES))
        for document, summary in SUMMARIES.items():
            typer.echo(f"{document:<{width}}  {summary}")
        return
    if name not in SUMMARIES:
        close = difflib.get_close_matches(name, SUMMARIES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"no document {name!r}{hint} (`overhead-lens schema` lists them)")
    typer.echo(json.dumps(json_schema(name), indent=1))
