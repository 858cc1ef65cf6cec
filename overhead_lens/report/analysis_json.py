"""The fixed JSON of analyzed traces (``overhead-lens/analysis/1``). Durations are integer nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from overhead_lens.analysis.model import HostCategory
from overhead_lens.analysis.trace_model import SCHEMA, DeviceBudget, Step, ThreadBudget, TraceAnalysis, TraceFailure

ISSUES = ("partial_overlap", "negative_duration", "unlinked_device_event", "truncated")
"""Reasons that are listed also where their count is 0."""


def analysis_document(results: Sequence[TraceAnalysis | TraceFailure]) -> dict[str, Any]:
    """JSON values of analyses, in the order given; a trace that failed has its ``error`` and nothing else."""
    return {"schema": SCHEMA, "traces": [_trace(each) for each in results]}


def _trace(result: TraceAnalysis | TraceFailure) -> dict[str, Any]:
    if isinstance(result, TraceFailure):
        return {
            "path": result.path,
            "rank": None,
            "events": None,
            "error": result.error,
            "issues": {},
            "window": None,
            "host": [],
            "threads": [],
            "device": [],
            "steps": [],
        }
    return {
        "path": result.path,
        "rank": result.rank,
        "world_size": result.world_size,
        "events": result.events,
        "error": None,
        "issues": {**dict.fromkeys(ISSUES, 0), **result.issues},
        "window": {
            "start_ns": result.window.start_ns,
            "wall_ns": result.window.wall_ns,
            "steps": len(result.steps),
        },
        "host": [_category(each) for each in result.host],
        "threads": [_thread(each) for each in result.threads[1:]],
        "device": [_device(each) for each in result.devices],
        "steps": [_step(each) for each in result.steps],
        "operators": [asdict(each) for each in result.operators],
        "kernels": [asdict(each) for each in result.kernels],
        "notes": list(result.notes),
    }


def _category(category: HostCategory) -> dict[str, Any]:
    return {
        "category": category.category,
        "ns": category.ns,
        "ci95_ns": None,  # one recording has no interval
        "share": round(category.share, 5),
        "evidence": category.evidence,
        "parts": [{"name": part.name, "ns": part.ns} for part in category.parts],
        "top": [{"frame": frame.frame, "ns": frame.ns} for frame in category.top],
    }


def _thread(thread: ThreadBudget) -> dict[str, Any]:
    return {
        "pid": thread.pid,
        "tid": thread.tid,
        "name": thread.name,
        "covered_ns": thread.covered_ns,
        "host": [_category(each) for each in thread.host],
    }


def _device(device: DeviceBudget) -> dict[str, Any]:
    return {
        "device": device.device,
        "name": device.name,
        "events": device.events,
        "span_ns": device.span_ns,
        "busy_ns": device.busy_ns,
        "idle_ns": device.idle_ns,
        "kinds": asdict(device.kinds),
        "idle_blame": dict(device.idle_blame),
        "launch": asdict(device.launch),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "step": step.step,
        "start_ns": step.window.start_ns,
        "wall_ns": step.window.wall_ns,
        "host": [_category(each) for each in step.host],
        "device": [_device(each) for each in step.devices],
    }
