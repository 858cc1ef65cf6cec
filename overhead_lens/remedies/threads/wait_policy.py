"""OpenMP's threads spin while they wait for the next operator."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, Remedy, refuse


def _apply(call: Call) -> Call:
    import torch

    refuse(call.device != "cpu" or torch.get_num_threads() == 1, "no other thread works for the call")
    return call


REMEDY = Remedy(
    name="omp_wait_active",
    summary="threads spin between operators in place of sleeping",
    how="OMP_WAIT_POLICY=active",
    shrinks=("kernel", "wait"),
    source="https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html",
    apply=_apply,
    variables=lambda: {"OMP_WAIT_POLICY": "active"},
)
