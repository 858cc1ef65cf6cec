"""Kernels per token, of a trace whose user says how many tokens a step makes."""

from __future__ import annotations

from dataclasses import replace

from overhead_lens.traces.launch_figures.model import DeviceLaunches


def per_token(device: DeviceLaunches, tokens_per_step: int) -> DeviceLaunches:
    """The figures with kernels per token; a value from the trace itself is kept."""
    if device.kernels_per_token is not None or device.kernels_per_step is None:
        return device
    return replace(device, kernels_per_token=round(device.kernels_per_step / tokens_per_step, 3))
