"""Record three steps of a small training job with torch.profiler: ``python training_trace.py FILE``."""

import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

WIDTH = 64
LAYERS = 4
STEPS = 3


def main() -> None:
    """Train on one thread; write the trace of the steps after two of warm-up."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    inputs, targets = torch.randn(32, WIDTH), torch.randn(32, WIDTH)
    steps = schedule(wait=0, warmup=2, active=STEPS, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=steps, with_stack=True, with_modules=True, profile_memory=True
    ) as profiler:
        for _ in range(2 + STEPS):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
            profiler.step()
    profiler.export_chrome_trace(sys.argv[1])


if __name__ == "__main__":
    main()
