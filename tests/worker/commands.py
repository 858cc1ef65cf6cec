"""The command line with all that it imports and makes at first use, up to the report of a run or of a watched process."""

import sys
from contextlib import suppress
from importlib import import_module

from overhead_lens.__main__ import application
from overhead_lens.errors import UsageError

_LATER = (
    *("documents.run", "report.forms", "report.outlines.process", "report.outlines.run", "report.printers.terminal"),
    *("studies.attach.record", "studies.run.analysis", "terminal.output"),
)

for _name in _LATER:
    import_module(f"overhead_lens.{_name}")
with suppress(UsageError):
    application()(["run", "--json-file", "no.json", "no script"], standalone_mode=False)
# Run as a program, it is a module of another name, beside which Python warns of this one.
del sys.modules["overhead_lens.__main__"]
