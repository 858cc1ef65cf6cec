"""Entry of the process that runs a user's program: makes this package importable and leaves no other trace."""

import os
import sys

if __name__ == "__main__":
    _before, _path = frozenset(sys.modules), [*sys.path]
    # Modules of the program, which PYTHONPATH puts before the standard library's, may have the same names.
    sys.path.sort(key=lambda folder: folder.removesuffix("/lib-dynload") != os.path.dirname(os.__file__))
    import importlib.util
    from pathlib import Path

    _package = Path(__file__).resolve().parent.parent
    _spec = importlib.util.spec_from_file_location(
        "overhead_lens", _package / "__init__.py", submodule_search_locations=[str(_package)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["overhead_lens"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["overhead_lens"])
    from overhead_lens.program.launch import main

    sys.path[:] = _path
    main(_before)
