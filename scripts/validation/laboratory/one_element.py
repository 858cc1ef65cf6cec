"""Operators on tensors of one element, which leave their kernels nothing to do, and views, under torch.profiler.

python one_element.py TRACE [OPTION ...]

writes the trace. OPTION is one of torch.profiler's that is switched on, such as with_stack.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

_WARM_UP, _TIMES = 20, 60

_CALLS = """
nn.relu(one); nn.gelu(one); nn.silu(one); nn.elu(one); nn.leaky_relu(one); nn.hardtanh(one); nn.logsigmoid(one); nn.dropout(one)
torch.sigmoid(one); torch.tanh(one); torch.exp(one); torch.sqrt(one); torch.rsqrt(one); torch.neg(one); torch.abs(one); one**2
torch.erf(one); torch.isnan(one); torch.zeros_like(one); torch.rand_like(one); one.clone(); one.double(); place.float()
one + other; one - other; one * other; one / other; one == other; one > 0.5; torch.minimum(one, other); torch.atan2(one, other)
one + 1.0; one.clamp(0, 1); torch.where(mask, one, other); mask & mask; place // 2; place % 2; one.masked_fill(mask, 0.0)
one.add_(0.0); one.mul_(1.0); one.div_(1.0); one.zero_(); one.fill_(1.0); one.copy_(other); one.lerp_(other, 0.0)
one.addcmul_(other, other, value=0.0); one.addcdiv_(other, other, value=0.0)
torch._foreach_add_(several, 0.0); torch._foreach_mul_(several, 1.0); torch._foreach_sqrt(several)
one.sum(); one.sum(1); one.mean(); one.max(); one.max(1); one.argmax(1); one.norm(); one.std(correction=0); one.cumsum(0)
mask.any(); line.item(); one.sort(1); one.topk(1); one.nonzero(); one.tril(); nn.softmax(one, 1); nn.log_softmax(one, 1)
nn.layer_norm(one, (1,)); nn.group_norm(picture, 1); nn.batch_norm(one, line, line); nn.embedding(place, one)
one @ one; torch.bmm(batch, batch); nn.linear(one, one, line); torch.dot(line, line); torch.mv(one, line)
nn.conv2d(picture, weight); nn.max_pool2d(picture, 1); nn.avg_pool2d(picture, 1); nn.interpolate(picture, scale_factor=2)
nn.pad(picture, (1, 1)); torch.cat([one, one]); torch.stack([one, one]); one.repeat(2, 1); one.roll(1, 0); one.flip(0)
one.index_select(0, place); one.gather(1, place[None]); one[place]; one.scatter(1, place[None], one)
one.index_put_((place,), line); torch.bincount(place); nn.mse_loss(one, other); nn.nll_loss(one, place); torch.arange(1)
nn.binary_cross_entropy_with_logits(one, other); torch.zeros(1); torch.rand(1); torch.randn(1)
one.t(); one.detach(); one.view(1); one.transpose(0, 1); one[0:1]; one[0]; one.unsqueeze(0); one.expand(2, 1)
one.permute(1, 0); one.as_strided((1,), (1,))
"""


def _tensors() -> dict[str, Any]:
    """What the calls are made of, by name."""
    return {
        "torch": torch,
        "nn": torch.nn.functional,
        "one": torch.rand(1, 1),
        "other": torch.rand(1, 1),
        "mask": torch.tensor([[True]]),
        "place": torch.zeros(1, dtype=torch.long),
        "line": torch.rand(1),
        "several": [torch.rand(1, 1) for _ in range(4)],
        "batch": torch.rand(1, 1, 1),
        "picture": torch.rand(1, 1, 2, 2),
        "weight": torch.rand(1, 1, 1, 1),
    }


def main() -> None:
    """Record every call, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    body = "\n".join(f"    {line}" for line in _CALLS.strip().splitlines())
    names = _tensors()
    exec(f"def calls():\n{body}", names)  # noqa: S102
    for _ in range(_WARM_UP):
        names["calls"]()
    with profile(activities=[ProfilerActivity.CPU], **dict.fromkeys(options.options, True)) as profiler:
        for _ in range(_TIMES):
            names["calls"]()
    profiler.export_chrome_trace(options.trace)


if __name__ == "__main__":
    main()
