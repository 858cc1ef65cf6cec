"""The magics of IPython: ``%overhead f(x)`` and ``%%overhead`` measure code of the session in this process."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from overhead_lens import api
from overhead_lens.budget.model import Breakdown
from overhead_lens.errors import OverheadLensError
from overhead_lens.terminal.command import deprecated

# The options that a line begins with. The rest is Python, which is left as it is.
_LINE = re.compile(r"\s*(?P<options>(?:--?[a-z][\w-]*(?:\s+|$))*)(?P<code>.*)", re.DOTALL)

_FILE = "<overhead>"
_MOST_LETTERS = 60


@magics_class
class OverheadMagics(Magics):
    """``%overhead`` and ``%%overhead``."""

    @no_var_expand
    @magic_arguments()
    @argument("-c", "--compile", action="store_true", help="Measure torch.compile of it.")
    @argument(
        "--quick",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Take half the time, for wider intervals; --no-quick takes all of it.",
    )
    @argument("expression", nargs="*", help="What is called again and again; %%%%overhead takes the lines below.")
    @line_cell_magic
    def overhead(self, line: str, cell: str | None = None) -> Breakdown:
        """Measure an expression, or a cell, in this process and say where its time goes.

        Names that a cell assigns are its own, as for %%timeit: the session does not get them.
        """
        match = _LINE.fullmatch(line)
        assert match is not None
        words = match["options"].split()
        if "-q" in words:
            deprecated("%overhead -q", "%overhead, which is quick without it")
        options = parse_argstring(self.overhead, " ".join(word for word in words if word != "-q"))
        code = match["code"].strip()
        with _one_line():
            function = self._expression(code) if cell is None else self._cell(cell, code)
            return api.profile(function, compile=options.compile, quick=options.quick)

    def _expression(self, code: str) -> Callable[[], Any]:
        if not code:
            raise UsageError("%overhead takes an expression: %overhead f(x)")
        name = code if len(code) <= _MOST_LETTERS else f"{code[:_MOST_LETTERS]}…"
        return self._function([ast.Return(ast.parse(code, _FILE, mode="eval").body)], name)

    def _cell(self, cell: str, code: str) -> Callable[[], Any]:
        body = ast.parse(self.shell.transform_cell(cell), _FILE).body
        if code or not body:
            raise UsageError("%%overhead takes options in its line and code in the lines below")
        return self._function(body, "cell")

    def _function(self, body: list[ast.stmt], name: str) -> Callable[[], Any]:
        """A function of these statements that looks names up in the session."""
        tree = ast.parse("def cell(): ...", _FILE)
        (definition,) = tree.body
        assert isinstance(definition, ast.FunctionDef)
        definition.body = body
        namespace: dict[str, Callable[[], Any]] = {}
        exec(compile(ast.fix_missing_locations(tree), _FILE, "exec"), self.shell.user_ns, namespace)  # noqa: S102
        namespace["cell"].__qualname__ = name
        return namespace["cell"]


@contextmanager
def _one_line() -> Iterator[None]:
    """Show what is wrong as IPython shows a wrong magic: in one line."""
    try:
        yield
    except OverheadLensError as error:
        raise UsageError(str(error)) from None
    except SyntaxError as error:
        raise UsageError(f"{type(error).__name__}: {error.msg} (line {error.lineno})") from None
