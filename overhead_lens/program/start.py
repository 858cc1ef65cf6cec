"""Entry of the process that runs a user's program: makes this package importable and leaves no other trace."""

import sys

if __name__ == "__main__":
    _before = frozenset(sys.modules)
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

    main(_before)
