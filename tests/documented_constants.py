"""Figures in running text that no result holds: constants of the code, which are compared, and definitions, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from overhead_lens.budget import thresholds
from overhead_lens.cli import attach, calibrate, open_
from overhead_lens.comparison.difference import MARGIN_SHARE
from overhead_lens.instruments.samples import sampler
from overhead_lens.machine import placement
from overhead_lens.program import watcher
from overhead_lens.readers.kineto import contents
from overhead_lens.recorder import paired
from overhead_lens.report.outlines import run as run_outline
from overhead_lens.stats import change_points
from overhead_lens.stats.shift import LEVEL
from overhead_lens.studies.advise import analysis as advice
from overhead_lens.studies.attach import inject
from overhead_lens.studies.run import delta, sampling, slowest
from overhead_lens.studies.run import warnings as run_warnings
from overhead_lens.studies.sweep import analysis as sweep
from overhead_lens.traces.findings import steps
from overhead_lens.traces.launch_figures.analysis import MOST_FLOOR_NS
from overhead_lens.traces.memory.model import SEGMENT_BYTES
from scripts.validation.known_costs import cell
from scripts.validation.wild.truth import TOLERATED_SHARE

Value = float | tuple[float, ...] | str

ANYWHERE: Mapping[str, Value] = {"95 %": LEVEL}

OF_A_PAGE: Mapping[str, Mapping[str, Value]] = {
    "docs/accuracy.md": {
        "200 ns": "the condition of the figure beside it",
        "5 points": TOLERATED_SHARE,
        "1 %": MARGIN_SHARE,
        "5 %": "costs that were added, and a condition of the figure beside it",
        "64 MB": "the condition of the figure beside it",
        "2 %": "a rate that so few captures cannot tell from 0",
    },
    "docs/comparison.md": {"1 %": MARGIN_SHARE},
    "docs/guide/advise.md": {
        "70 %": advice._MOSTLY_WORK,
        "30 %": advice._LITTLE_WORK,
        "2 %": advice.LEAST_SHARE,
        "2.5 %": (1 - LEVEL) / 2,
        "1 %": advice.MARGIN_SHARE,
    },
    "docs/guide/attach.md": {
        "20 s": attach._SECONDS,
        "1 %": "an example",
        "0.7 points": "its standard error by the binomial distribution, twice",
        "1 s": inject.Bounds().seconds,
        "256 MiB": inject.Bounds().grown_bytes,
        "10 s": inject._ANSWER_S,
    },
    "docs/guide/ci.md": {"1 %": MARGIN_SHARE},
    "docs/guide/compare.md": {"1 %": MARGIN_SHARE},
    "docs/guide/counters.md": {"0 %": "what Kineto's source does"},
    "docs/guide/findings.md": {"1.5 times": steps._UNLIKE, "2 MiB": SEGMENT_BYTES},
    "docs/guide/history.md": {"5 %": change_points.ALPHA},
    "docs/guide/install.md": {"50 s": calibrate._SECONDS},
    "docs/guide/launches.md": {"100 µs": MOST_FLOOR_NS},
    "docs/guide/many-traces.md": {"1 GB": "the size of a trace in the example"},
    "docs/guide/odd.md": {"2 %": thresholds.UNATTRIBUTED_SHARE, "1 %": thresholds.PAGE_FAULTS_SHARE},
    "docs/guide/pages.md": {"1.5 MB": "tests/report/page/test_browser.py holds every page to it"},
    "docs/guide/profile.md": {
        "1 MB": "more than each in traces/reference",
        "50 ns": "an example",
        "2 %": "a nanosecond of the example",
    },
    "docs/guide/pytest.md": {"1 %": MARGIN_SHARE},
    "docs/guide/run.md": {
        "80 %": run_outline._WORK_SHARE,
        "5 %": (watcher._SETTLED_SHARE, run_warnings._DRIFT_SHARE),
        "0.1 s": watcher._WINDOW_NS,
        "0.4 s": watcher._FIRST_SAMPLED_NS,
        "4 s": watcher._LONGEST_SAMPLED_NS,
        "24 s": watcher._SAMPLED_NS,
        "40 %": 1 - sampling._LEAST_RUNNING,
        "30 %": slowest._EXPLAINS,
        "1 ms": watcher._COUNTED_STEP_NS,
        "1 %": delta._PROCESS_SHARE,
    },
    "docs/guide/sweep.md": {"10 %": sweep.TOLERANCE_SHARE},
    "docs/guide/viewers.md": {"2 GB": open_._LARGEST_BYTES},
    "docs/methodology/analyze.md": {
        "32 MB": contents.UNCOMPILED_BYTES,
        "2 MB": contents.SMALL_BYTES,
    },
    "docs/methodology/answers.md": {
        "40 %": "how tests/drawn/causes.py draws",
        "5 %": "tests/traces/findings/test_causes.py",
    },
    "docs/methodology/change-points.md": {"5 %": change_points.ALPHA},
    "docs/methodology/correction.md": {"5 %": thresholds.CORRECTED_TRACE_SHARE},
    "docs/methodology/index.md": {"15 %": thresholds.DISTURBED_BLOCK_SHARE},
    "docs/methodology/instructions.md": {"1 %": "the change that is made"},
    "docs/methodology/known-costs.md": {"10 %": cell.TOLERATED_SHARE, "60 ns": cell.TOLERATED_NS},
    "docs/methodology/operators.md": {"3 µs": thresholds.SET_UP_NS},
    "docs/methodology/programs.md": {"80 %": "tests/programs/expected.py", "2 %": "tests/programs/expected.py"},
    "docs/methodology/sampling.md": {
        "300 Hz": sampler._RATE_HZ,
        "100 Hz": sampler._RATE_OF_THREADS_HZ,
        "2 %": placement._TEAM_SHARE,
        "1 %": thresholds.UNREADABLE_STACKS_SHARE,
    },
    "docs/methodology/trace-peers.md": {"1 ns": "what adding up floating point may cost"},
    "docs/methodology/verdicts.md": {
        "1 %": MARGIN_SHARE,
        "2 %": "a rate that so few captures cannot tell from 0",
        "5 ms": paired.BLOCK_NS,
        "0.25 ms": paired._PIECE_NS,
        "5 %": 1 - LEVEL,
    },
    "docs/recipes/gate.md": {"1 %": MARGIN_SHARE},
    "docs/reference/capture.md": {"1 ms": watcher._COUNTED_STEP_NS},
    "docs/reference/glossary.md": {"1 %": MARGIN_SHARE},
}
