"""Python functions of the standard library, and whatever a rule calls neutral, are their callers' time."""

from __future__ import annotations

import sys
from pathlib import Path

from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.taxonomy.rules import NEUTRAL, load_rules
from overhead_lens.traces.analyzer import Analyzer
from tests.drawn.timelines import analyzer_of, drawn, trace_of
from tests.traces.test_compiled_code import parts, python


def test_the_standard_librarys_time_is_its_callers() -> None:
    analysis = analyzer_of(
        python("[------------------)", "train.py(7): step"),
        python("  [------------)    ", "torch/utils/checkpoint.py(1130): pack_hook"),
        python("     [----)         ", "weakref.py(427): __setitem__"),
        python("      [-)           ", "<frozen abc>(117): __instancecheck__"),
    ).analysis()
    assert parts(analysis) == {"python/user": 6, "python/framework": 13}


def test_what_a_c_function_calls_is_its_python_callers() -> None:
    analysis = analyzer_of(
        python("[------------------)", "train.py(7): step"),
        python("  [------------)    ", "<built-in function isinstance>"),
        python("     [----)         ", "<frozen abc>(117): __instancecheck__"),
    ).analysis()
    assert parts(analysis) == {"python/user": 11, "python/binding": 8}


def test_what_nobody_calls_is_the_users() -> None:
    analysis = analyzer_of(
        python("[------)    ", "threading.py(982): run"),
        python("  [--)      ", "/opt/conda/lib/python3.11/queue.py(7): put"),
        python("         [-)", "torch/a.py(1): f"),
    ).analysis()
    assert parts(analysis) == {"python/user": 9, "python/framework": 2}


def test_own_rules_may_make_events_neutral(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[[rule]]\ncategory = "neutral"\nevent = "helper"\nsource = "mine"\n')
    entries = [
        python("[------------)", "torch/a.py(1): f"),
        python("  [--)        ", "helper.py(1): g"),
        drawn("       [----) ", "aten::empty"),
        drawn("        [-)   ", "helper::f"),
    ]
    analysis = Analyzer(trace_of(entries), default_classifier(own)).analysis()
    assert parts(analysis) == {"python/framework": 8, "allocation/tensor": 5}


def test_a_file_of_the_standard_library_is_known_without_its_folder() -> None:
    (rule,) = (rule for rule in load_rules() if rule.attribution.category == NEUTRAL and rule.event is not None)
    for name in ("weakref", "contextlib", "inspect", "typing", "functools", "enum", "threading", "queue", "types"):
        assert name in sys.stdlib_module_names
        assert rule.fits_event(f"{name}.py(7): f", "python_function")
    assert rule.fits_event("json/decoder.py(7): f", "python_function")
    for path in ("model/types.py", "types_of_mine.py", "torch/random.py", "/x/lib/python3.11/site-packages/six.py"):
        assert not rule.fits_event(f"{path}(7): f", "python_function")
