"""Goes to another directory, then imports what lies beside it and writes a file where it is."""

import os
import sys
import tempfile
from pathlib import Path

print(Path(__file__).is_absolute(), Path(sys.path[0]).name)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    from beside import VALUE

    Path("written").write_text(str(VALUE))
    print(os.listdir())
    print(Path.cwd() == Path(folder).resolve())
    os.chdir("/")
